"""Results as runs of Weights & Biases."""

from __future__ import annotations

import math
from pathlib import Path

import wandb

from shiftproof.files import write_whole
from shiftproof.publishing import Published, PublishOptions, numbers_of, origin_told, published_models, refusals_told
from shiftproof.types import Results


def publish_to_wandb(results: Results, options: PublishOptions, folder: Path) -> list[Published]:
    """Runs of a project of Weights & Biases, one a model: a summary, and all measurements as a table and as a file."""
    advice = "" if options.offline else "; --offline writes them to disk"
    with refusals_told("Weights & Biases", advice, wandb.Error):
        folder.mkdir(parents=True, exist_ok=True)
        return _runs(results, options, folder)


def _runs(results: Results, options: PublishOptions, folder: Path) -> list[Published]:
    rows = results.rows()
    columns = list(rows[0])
    data = [["" if row[name] is None else str(row[name]) for name in columns] for row in rows]
    made = []
    for card in published_models(results):
        run = wandb.init(
            project=options.experiment,
            name=card.name,
            config={"fingerprint": card.fingerprint, **origin_told(results)},
            mode="offline" if options.offline else None,
            dir=folder,
            settings=wandb.Settings(silent=True),
        )
        numbers = {name: value for name, value in numbers_of(results, card.name).items() if math.isfinite(value)}
        run.summary.update(numbers)
        run.log({"measurements": wandb.Table(columns=columns, data=data)})
        kept = Path(run.dir) / "results.json"  # what lies there goes along with the run
        write_whole(kept, results.to_json(indent=1).encode())
        run.save(str(kept), base_path=run.dir)
        if options.attach is not None:
            run.save(options.attach, base_path=str(Path(options.attach).parent), policy="now")
        place = str(Path(run.dir).parent) if run.offline else str(run.url)
        run.finish()
        made.append(Published(card.name, place, len(numbers)))
    return made
