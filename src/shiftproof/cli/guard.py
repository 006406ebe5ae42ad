"""The commands that write a guard, and that watch a stream of images with one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import shiftproof as sp
from shiftproof.cli.emit import Bar, Table, emit, interruptible, remark
from shiftproof.cli.options import Asked, Output, command

if TYPE_CHECKING:
    from shiftproof.studies.guard.guard import Guard
    from shiftproof.studies.guard.watching import Watch


@command(
    "model",
    "dataset",
    options=lambda: (
        *(sp.GuardOptions, sp.ModelSettings, sp.DatasetSettings, sp.ScoringSettings, sp.PredictionSettings),
        sp.options.StorePlace,
    ),
    output=Output("a folder with the guard", "guard"),
)
def guard(asked: Asked) -> None:
    """Write a guard for production: it accepts or abstains, image by image, in Python or inside the ONNX model.

    Without --ood it abstains where the model is likely wrong.

    Example: shiftproof guard lite:0 photos/ --ood clothes/ --ood-detector energy -o guard/
    """
    prediction = asked[sp.PredictionSettings]
    with interruptible(Bar(quiet=prediction.quiet)) as progress:
        made = sp.guard(
            asked.argument("model"),
            asked.argument("dataset"),
            asked.output,
            options=asked[sp.GuardOptions],
            store=asked[sp.options.StorePlace].store,
            model_options=asked[sp.ModelSettings],
            dataset_options=asked[sp.DatasetSettings],
            scoring=asked[sp.ScoringSettings],
            prediction=prediction,
            progress=progress,
            tell=remark,
        )
    record = made.record
    remarks = [f"evaluated: {record.points[0].expected.judged}", *(f"note: {note}" for note in record.notes)]
    emit(record.to_json(), as_json=asked.json, shown=_shown(made), remarks=remarks, path=asked.output)


def _shown(made: Guard) -> list[str | Table]:
    """Thresholds with what to expect of them, the promise of prediction sets beside what was measured, the calibration."""
    from shiftproof.metrics.wording import figure
    from shiftproof.studies.guard.card import coverage_rows, point_rows

    record, calibration = made.record, made.record.calibration
    before, after = (figure(error, "share") for error in (calibration.error_before, calibration.error_after))
    threshold = f"abstains where {made.detector.name} scores at least {made.threshold:.6g}"
    return [
        Table(point_rows(record), right=("score", "FPR", "TPR", "cost")),
        Table(coverage_rows(record), right=("promised", "covered", "classes in a set", "accuracy")),
        f"{threshold} ({record.points[0].chosen})",
        f"temperature {calibration.temperature:.3g}: RMS calibration error {before} before, {after} after",
    ]


@command(
    "guard",
    "source",
    options=lambda: (
        *(sp.WatchOptions, sp.ModelSettings, sp.DatasetSettings, sp.PredictionSettings),
        sp.options.StorePlace,
    ),
    output=Output("a folder with a log, watch.jsonl, and a page, watch.html", "watch"),
)
def watch(asked: Asked) -> None:
    """Watch a stream through a guard: how often it abstains, and whether OOD scores have drifted.

    SOURCE is a folder of photos, which may grow, a .csv, .jsonl or .npy file of scores, or - for JSON lines from elsewhere.
    The same command goes on where it stopped.

    Example: shiftproof watch guard/ production/ -o watch/
    """
    prediction = asked[sp.PredictionSettings]
    with interruptible(Bar(quiet=prediction.quiet)) as progress:
        seen = sp.watch(
            asked.argument("guard"),
            asked.argument("source"),
            asked.output,
            options=asked[sp.WatchOptions],
            store=asked[sp.options.StorePlace].store,
            model_options=asked[sp.ModelSettings],
            dataset_options=asked[sp.DatasetSettings],
            prediction=prediction,
            progress=progress,
            tell=remark,
        )
    emit(seen.to_json(), as_json=asked.json, shown=_seen(seen), path=f"{asked.output}/watch.html" if len(seen) else None)


def _seen(seen: Watch) -> list[str | Table]:
    """Windows as a table, the last ten of many; then shares and the verdict."""
    from shiftproof.metrics.wording import count, figure, images
    from shiftproof.studies.guard.card import rate

    if not len(seen):
        return ["no image was seen yet"]
    windows = [
        {
            "images": f"{one.first:,} to {one.first + one.images - 1:,}",
            "abstained": rate(one.abstained),
            "median score": f"{one.median_score:.4g}",
            "evidence": f"{one.evidence:.3g}",
        }
        for one in list(seen.windows())[-10:]
    ]
    reasons = ", ".join(f"{reason} {number:,}" for reason, number in seen.reasons.items() if number)
    usual = figure(seen.reference_abstained, "share")
    drift = f"no drift reported after {images(len(seen))}"
    if seen.alarm is not None:
        drift = f"drift: reported at image {count(seen.alarm)}, likely begun near image {count(seen.began or 1)}"
    return [
        Table(windows, right=("images", "abstained", "median score", "evidence")),
        f"abstained on {rate(seen.abstained)} ({reasons}); on {usual} of the images that the guard was made with",
        f"{drift} (evidence {seen.evidence:.3g}, reported at {seen.level:g})",
    ]
