"""The data card of a guard: what it is made of and what to expect of it, as a page in Markdown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from shiftproof.metrics.wording import figure, span
from shiftproof.studies.guard.guard import ARRAYS, GRAPH, REASONS, RECORD, GuardRecord, Point
from shiftproof.studies.threshold.expected import Share


def card_of(record: GuardRecord, references: int) -> str:
    """Everything in ``guard.json`` that a person should know before relying on the guard."""
    model, calibration = record.model, record.calibration
    detector = record.detector
    parts = [
        f"# Guard of {model.name}",
        f"Abstains where the OOD score ({detector['name']}) reaches {_number(record.points[0].threshold)}: "
        f"{record.points[0].chosen}, {_goal(record)}. Written {record.made} by shiftproof {record.versions['shiftproof']}.",
        "## Thresholds",
        f"Rates: {record.points[0].expected.judged}. Cost per image at an OOD share of {figure(record.ood_share, 'share')}, "
        f"{record.false_alarm_cost:g} a false positive and {record.miss_cost:g} a false negative.",
        _table(point_rows(record)),
        _table(_set_rows(record.points[0])),
        "## Calibration",
        f"Temperature {calibration.temperature:.4g}, fitted to {calibration.images:,} labelled images. RMS calibration "
        f"error on images it was not fitted to: {figure(calibration.error_before, 'share')} before, "
        f"{figure(calibration.error_after, 'share')} after.",
        "## Prediction sets",
        f"Promised: {figure(record.promised, 'share')} of sets hold the true class, **on images like those it was made "
        "with**. Measured on images that the sets were not made with:",
        _table(coverage_rows(record)),
        "## Made with",
        _table(_dataset_rows(record)),
        f"Model {model.name}, fingerprint {model.fingerprint}, {model.classes:,} classes, gives {model.gives}; trained on: "
        f"{model.training_data}. {references:,} reference scores for the test of drift. Parameters of {detector['name']}: "
        + (", ".join(f"{name} {value}" for name, value in detector["parameters"].items()) or "none")
        + f", preset {detector['preset']}.",
        *(["## To know", "\n".join(f"- {note}" for note in record.notes)] if record.notes else []),
        "## Files",
        f"`{RECORD}` (all of this), `{ARRAYS}` (arrays)"
        + (
            f", `{GRAPH}` (the model with outputs `ood_score`, `accept`, `calibrated_probability`; largest difference from "
            f"Python {record.onnx_difference:.1e})."
            if record.onnx_difference is not None
            else "."
        ),
        "Reasons: " + "; ".join(f"`{reason}`: {words}" for reason, words in REASONS.items()) + ".",
    ]
    return "\n\n".join(parts) + "\n"


def point_rows(record: GuardRecord) -> list[dict[str, str]]:
    """Each threshold with its error rates and cost, as people read them, the one in use first."""
    return [
        {
            "threshold": point.chosen,
            "score": _number(point.threshold),
            "FPR": rate(point.expected.false_alarms),
            "TPR": rate(point.expected.found),
            "cost": f"{point.expected.cost:.4g}",
        }
        for point in record.points
    ]


def coverage_rows(record: GuardRecord) -> list[dict[str, str]]:
    """The promise of prediction sets beside what was measured, on each set of images."""
    return [
        {
            "images": one.images_of,
            "promised": figure(record.promised, "share"),
            "covered": rate(one.covered),
            "classes in a set": f"{one.size:.1f}",
            "accuracy": figure(one.accuracy, "share"),
        }
        for one in record.coverage
    ]


def rate(share: Share | None) -> str:
    """A share with its CI and its images."""
    return "" if share is None else f"{figure(share.value, 'share')} ({span(share.interval, 'share')}) of {share.images:,}"


def _number(score: float) -> str:
    return f"{score:.6g}" if math.isfinite(score) else "never"


def _goal(record: GuardRecord) -> str:
    found = "images of new classes" if record.goal == "new-class" else "mistakes and images of new classes"
    return f"to find {found}"


def _set_rows(point: Point) -> list[dict[str, str]]:
    sets = point.expected.sets.items()
    return [{"images": name, "FPR": rate(one.get("false_alarms")), "TPR": rate(one.get("found"))} for name, one in sets]


def _dataset_rows(record: GuardRecord) -> list[dict[str, str]]:
    return [
        {"dataset": one.name, "images": f"{one.images:,}", "skipped": f"{one.skipped_images:,}", "digest": one.fingerprint}
        for one in record.datasets
    ]


def _table(rows: Sequence[Mapping[str, str]]) -> str:
    lines = [list(rows[0]), ["---"] * len(rows[0]), *(list(row.values()) for row in rows)] if rows else []
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in line) + " |" for line in lines
    )
