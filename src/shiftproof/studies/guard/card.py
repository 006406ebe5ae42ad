"""The data card of a guard: what it is made of and what to expect of it, as a page in Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from shiftproof.metrics.wording import figure, span
from shiftproof.studies.guard.guard import ARRAYS, GRAPH, RECORD, REASONS, Coverage, GuardRecord, Point
from shiftproof.studies.threshold.expected import Share


def card_of(record: GuardRecord, references: int) -> str:
    """Everything in ``guard.json`` that a person should know before relying on the guard."""
    model, calibration = record.model, record.calibration
    detector = record.detector
    parts = [
        f"# Guard of {model.name}",
        f"Abstains where the OOD score ({detector['name']}) reaches {_number(record.points[0].threshold)}: "
        f"{record.points[0].chosen}, {_goal(record)}. Written {record.made} by shiftproof {record.versions.get('shiftproof')}.",
        "## Thresholds",
        "Rates of " + record.points[0].expected.judged + ". Cost per image at an OOD share of "
        f"{figure(record.ood_share, 'share')}, {record.false_alarm_cost:g} a false positive and {record.miss_cost:g} a false "
        "negative.",
        _table(("threshold", "score", "FPR", "TPR", "cost"), [_point_row(point) for point in record.points]),
        _table(("images", "FPR", "TPR"), _set_rows(record.points[0])),
        "## Calibration",
        f"Temperature {calibration.temperature:.4g}, fitted to {calibration.images:,} labelled images. RMS calibration error "
        f"on images it was not fitted to: {figure(calibration.error_before, 'share')} before, "
        f"{figure(calibration.error_after, 'share')} after.",
        "## Prediction sets",
        f"Promised: {figure(record.promised, 'share')} of sets hold the true class, **on images like those it was made with**. "
        "Measured on images that the sets were not made with:",
        _table(("images", "promised", "covered", "classes in a set", "accuracy"), _coverage_rows(record)),
        "## Made with",
        _table(
            ("dataset", "images", "skipped", "fingerprint"),
            [(one.name, f"{one.images:,}", f"{one.skipped_images:,}", one.fingerprint) for one in record.datasets],
        ),
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


def coverage_cells(one: Coverage, promised: float) -> tuple[str, ...]:
    """Images, promise, measured coverage with its CI, set size and accuracy, as people read them."""
    return (
        one.images_of,
        figure(promised, "share"),
        rate(one.covered),
        f"{one.size:.1f}",
        figure(one.accuracy, "share"),
    )


def rate(share: Share | None) -> str:
    """A share with its CI and its images."""
    return "" if share is None else f"{figure(share.value, 'share')} ({span(share.interval, 'share')}) of {share.images:,}"


def _number(score: float) -> str:
    return f"{score:.6g}" if math.isfinite(score) else "never"


def _goal(record: GuardRecord) -> str:
    found = "images of new classes" if record.goal == "new-class" else "mistakes and images of new classes"
    return f"to find {found}"


def _point_row(point: Point) -> tuple[str, ...]:
    expected = point.expected
    return point.chosen, _number(point.threshold), rate(expected.false_alarms), rate(expected.found), f"{expected.cost:.4g}"


def _set_rows(point: Point) -> list[tuple[str, ...]]:
    return [(name, rate(one.get("false_alarms")), rate(one.get("found"))) for name, one in point.expected.sets.items()]


def _coverage_rows(record: GuardRecord) -> list[tuple[str, ...]]:
    return [coverage_cells(one, record.promised) for one in record.coverage]


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in line) + " |" for line in lines)
