"""The commands that write datasets: corrupted pictures and perturbation sequences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import shiftproof as sp
from shiftproof.cli.emit import emit
from shiftproof.cli.options import Asked, command

if TYPE_CHECKING:
    from shiftproof.writing import Written


@command(
    "source",
    "destination",
    options=lambda: (
        *(sp.CorruptionChoice, sp.PictureSettings, sp.DatasetSettings, sp.options.CorruptedLayout),
        *(sp.options.SubsetSettings, sp.options.WorkerSettings, sp.options.EngineSettings),
    ),
)
def corrupt(asked: Asked) -> None:
    """Write the images of SOURCE under corruptions into the folder DESTINATION; what is there is not made again.

    Example: shiftproof corrupt photos/ photos-c/ --corruptions fog,frost --severities 1,3,5
    """
    with asked.work("pictures", "written before") as settings:
        written = sp.corrupt_dataset(
            asked.argument("source"),
            asked.argument("destination"),
            corruptions=asked[sp.CorruptionChoice],
            pictures=asked[sp.PictureSettings],
            layout=asked[sp.options.CorruptedLayout].layout,
            **settings,
        )
    emit(**_told(written, "pictures"), as_json=asked.json)


@command(
    "source",
    "destination",
    options=lambda: (
        *(sp.PerturbationChoice, sp.options.EditionSettings, sp.DatasetSettings, sp.options.PerturbedLayout),
        *(sp.options.SubsetSettings, sp.options.WorkerSettings, sp.options.EngineSettings),
    ),
)
def perturb(asked: Asked) -> None:
    """Write the images of SOURCE as perturbation sequences into the folder DESTINATION; what is there is not made again.

    Example: shiftproof perturb photos/ photos-p/ --perturbations tilt,brightness --limit 100
    """
    how = asked[sp.options.EditionSettings]
    with asked.work("sequences", "written before") as settings:
        written = sp.perturb_dataset(
            asked.argument("source"),
            asked.argument("destination"),
            perturbations=asked[sp.PerturbationChoice],
            edition=how.edition,
            seed=how.seed,
            layout=asked[sp.options.PerturbedLayout].layout,
            **settings,
        )
    emit(**_told(written, "sequences"), as_json=asked.json)


def _told(written: Written, unit: str) -> dict[str, Any]:
    skipped = [{"id": image.id, "reason": image.reason} for image in written.skipped_images]
    counts = {"written": written.written, "written_before": written.written_before}
    before = f", {written.written_before:,} were written before" if written.written_before else ""
    return {
        "value": {"destination": str(written.destination), **counts, "skipped_images": skipped},
        "remarks": [
            *(f"skipped: {image['id']}: {image['reason']}" for image in skipped),
            f"{written.written:,} {unit} written{before}, {len(skipped):,} images skipped",
        ],
        "shown": [str(written.destination)],
    }
