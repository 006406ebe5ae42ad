"""Results in a model repository of Hugging Face: evaluation results, and a section of the model card."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shiftproof.errors import BadInput
from shiftproof.files import encodable, printable, read_text, write_whole
from shiftproof.metrics.table import metric_info
from shiftproof.metrics.wording import figure, span
from shiftproof.publishing import Published, PublishOptions, published_models
from shiftproof.reports.headline import format_results
from shiftproof.tables import markdown_escaped
from shiftproof.types import Measurement, Results

BEGIN, END = "<!-- shiftproof: begin -->", "<!-- shiftproof: end -->"
"""Around the section of a model card that is ours, so that it can be written again."""


def publish_to_huggingface(results: Results, options: PublishOptions, folder: Path) -> list[Published]:
    """Files in the folder of a model repository: ``.eval_results/NAME.yaml`` and a section of README.md.

    Evaluation results need the name of a benchmark on the Hub; nothing is uploaded.
    """
    cards = published_models(results)
    if len(cards) != 1:
        raise BadInput(f"a model repository is of one model, and these results are of {len(cards)}")
    model = cards[0].name
    written = [folder / "README.md"]
    entries = [] if options.benchmark is None else evaluation_results(results, model, options)
    _write_section(written[0], section(results))
    if options.benchmark is not None:
        place = folder / ".eval_results" / f"{re.sub(r'[^A-Za-z0-9._-]', '_', options.benchmark.rpartition('/')[2])}.yaml"
        write_whole(place, encodable("".join(map(_yaml, entries))).encode())
        written.append(place)
    return [Published(model, ", ".join(map(str, written)), len(entries))]


def evaluation_results(results: Results, model: str, options: PublishOptions) -> list[dict[str, Any]]:
    """Entries as files below ``.eval_results`` have them: the metric on each whole dataset."""
    if options.benchmark is None or not re.fullmatch(r"[\w.-]+/[\w.-]+", options.benchmark):
        raise BadInput(f"--benchmark should be ORGANISATION/NAME of a dataset on the Hub, got {options.benchmark}")
    metric_info(options.benchmark_metric)  # an unknown name is answered with the nearest
    found = [
        one
        for one in results.measurements
        if one.metric == options.benchmark_metric
        and one.about.get("model") == model
        and set(one.about) <= {"model", "dataset"}
    ]
    if len(found) != 1:
        there = ", ".join(str(one.about.get("dataset")) for one in found) or "none"
        raise BadInput(
            f"one dataset with {options.benchmark_metric} of {model} is one benchmark, and these results have: {there}"
        )
    if not math.isfinite(found[0].value):
        raise BadInput(f"{options.benchmark_metric} of {model} is not a number here, which no benchmark takes")
    task = {"id": options.benchmark, "task_id": options.task or options.benchmark_metric}
    entry: dict[str, Any] = {"dataset": task, "value": found[0].value}
    return [{**entry, **({"date": results.made} if results.made else {}), "notes": _notes(found[0], results)}]


def _notes(found: Measurement, results: Results) -> str:
    info = metric_info(found.metric)
    within = f", {100 * found.interval.level:g} % CI {span(found.ends, info.unit)}" if found.interval else ""
    version = results.versions.get("shiftproof")
    by = f"; shiftproof {version}" if version else ""
    return f"{info.title} {figure(found.value, info.unit)} of {found.images:,} images{within}{by}"


def _yaml(entry: Mapping[str, Any]) -> str:
    """An entry of a list; texts are quoted as in JSON, which YAML reads."""
    lines = []
    for name, value in entry.items():
        if isinstance(value, Mapping):
            lines += [f"{name}:", *(f"  {key}: {json.dumps(inner, ensure_ascii=False)}" for key, inner in value.items())]
        else:
            lines.append(f"{name}: {json.dumps(value, ensure_ascii=False)}")
    return "- " + "\n  ".join(lines) + "\n"


def section(results: Results) -> str:
    """The headline numbers in Markdown, with how they came about."""
    sets = [
        f"- {markdown_escaped(card.name)}: {card.images:,} images, fingerprint {markdown_escaped(card.fingerprint)}"
        for card in results.datasets
        if card.origin is None
    ]
    version = results.versions.get("shiftproof", "")
    made = markdown_escaped(f"Measured with shiftproof {version}{f' on {results.made[:10]}' if results.made else ''}.")
    # as code nothing of it is escaped, so it may not be what ends the section either
    told = printable(" ".join(results.command.split())).replace("<!--", "<!")
    command = [f"    {told}", ""] if told else []
    warnings = [f"- {markdown_escaped(text)}" for text in results.warnings]
    parts = ["## Robustness", "", made, "", *command, format_results(_whole(results), "markdown"), "### Datasets", "", *sets]
    return "\n".join([*parts, *(["", "### Warnings", "", *warnings] if warnings else [])]) + "\n"


def _whole(results: Results) -> Results:
    """Without numbers of companions, which readers of a card do not know."""
    companions = {card.name for card in results.models if card.companion is not None}
    kept = (one for one in results.findings if not (isinstance(one, Measurement) and one.about.get("model") in companions))
    return dataclasses.replace(results, findings=tuple(kept))


def _write_section(path: Path, text: str) -> None:
    """Puts the section into a model card, in the place of the one before or at the end."""
    before = read_text(path) if path.exists() else ""
    own = f"{BEGIN}\n{text}{END}\n"
    start = before.find(BEGIN)
    end = before.find(END, max(start, 0))
    if start >= 0 and end > start:
        after = before[end + len(END) :].removeprefix("\n")
        card = f"{before[:start]}{own}{after}"
    else:
        card = f"{before.rstrip()}\n\n{own}" if before.strip() else own
    write_whole(path, encodable(card).encode())
