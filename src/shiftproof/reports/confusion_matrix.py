"""The confusion matrix of the report: whole for a few classes, of many the classes that are confused most often."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shiftproof.metrics.wording import count, figure, images
from shiftproof.reports.charts import NARROW, Spec, row_axis, start
from shiftproof.reports.heat_map import LEVELS
from shiftproof.reports.parts import Cell, Chart, Column, Part, Table
from shiftproof.types import ConfusionMatrix

MOST_CLASSES = 30
"""Of more classes a part of the matrix is drawn."""
WITH_COUNTS = 16
"""Classes whose cells are wide enough for a figure."""
CELL = 24
AT_LEAST = 2
"""Images of a pair of classes that are more than an accident."""

Counts = Mapping[tuple[int, int], int]
"""Images by true and predicted class."""


def confusion_parts(found: ConfusionMatrix) -> list[Part]:
    """The matrix as a heat map, or that part of it in which classes are confused; every pair in the data."""
    counts = dict(zip(zip(found.true, found.predicted, strict=True), found.counts, strict=True))
    whole = len(found.classes) <= MOST_CLASSES
    shown = list(range(len(found.classes))) if whole else most_confused(counts)
    if len(shown) < 2:
        return [_table("Confused pairs of classes", found, counts, mistakes_only=True)] if _mistakes(counts) else []
    title = "Confusion matrix" if whole else f"Confusion matrix: the {len(shown)} classes confused most often"
    return [
        Chart(
            title,
            confusion_spec(found.classes, counts, shown, description=_described(title, found, counts)),
            _table(title, found, counts, mistakes_only=not whole),
            _note(found, counts, shown, whole=whole),
        )
    ]


def most_confused(counts: Counts) -> list[int]:
    """The classes of the most frequent confusions, as many as a drawing holds; none where no pair comes twice.

    >>> most_confused({(0, 0): 9, (0, 1): 5, (2, 3): 2, (4, 5): 1})
    [0, 1, 2, 3]
    """
    chosen: dict[int, None] = {}
    for pair, times in _mistakes(counts):
        more = [place for place in pair if place not in chosen]
        if times < AT_LEAST or len(chosen) + len(more) > MOST_CLASSES:
            break
        chosen |= dict.fromkeys(more)
    return list(chosen)


def _mistakes(counts: Counts) -> list[tuple[tuple[int, int], int]]:
    """Pairs of different classes, the most frequent first."""
    wrong = [(pair, times) for pair, times in counts.items() if pair[0] != pair[1]]
    return sorted(wrong, key=lambda one: -one[1])


def confusion_spec(classes: Sequence[str], counts: Counts, shown: Sequence[int], *, description: str) -> Spec:
    """A row for each true class and a column for each predicted one, coloured by the share of the row's images."""
    totals = _totals(counts)
    rows = [
        _cell(classes, true, predicted, counts[true, predicted], totals[true])
        for true in shown
        for predicted in shown
        if (true, predicted) in counts
    ]
    names = [classes[place] for place in shown]
    axis = {"domain": False, "ticks": False, "grid": False}
    x = {"field": "predicted", "type": "nominal", "scale": {"domain": names}, "title": "predicted"}
    y = {"field": "true", "type": "nominal", "scale": {"domain": names}, "title": "true"}
    upright = {**axis, "orient": "top", "labelAngle": -90, "labelLimit": {"expr": f"{NARROW} ? 90 : 140"}}
    told = [{"field": name} for name in ("true", "predicted", "images", "share")]
    figures = {
        "mark": {"type": "text", "fontSize": {"expr": f"{NARROW} ? 9 : 11"}},
        "encoding": {"text": {"field": "images"}, "color": {"field": "ink", "type": "nominal", "scale": None}},
    }
    return {
        **start(description, rows),
        "height": CELL * len(shown),
        "encoding": {"x": {**x, "axis": upright}, "y": {**y, "axis": {**row_axis(), **axis}}, "tooltip": told},
        "layer": [
            {
                "mark": {"type": "rect", "cornerRadius": 2},
                "encoding": {"fill": {"field": "fill", "type": "nominal", "scale": None}},
            },
            *([figures] if len(shown) <= WITH_COUNTS else []),
        ],
    }


def _totals(counts: Counts) -> dict[int, int]:
    totals: dict[int, int] = {}
    for (true, _), times in counts.items():
        totals[true] = totals.get(true, 0) + times
    return totals


def _cell(classes: Sequence[str], true: int, predicted: int, times: int, total: int) -> Spec:
    level = min(LEVELS - 1, int(LEVELS * times / total))
    return {
        "true": classes[true],
        "predicted": classes[predicted],
        "images": count(times),
        "share": f"{figure(times / total, 'share')} of {count(total)}",
        "fill": f"var(--heat-{level})",
        "ink": "var(--ink-on-heat)" if level >= LEVELS // 2 else "var(--ink)",
    }


def _described(title: str, found: ConfusionMatrix, counts: Counts) -> str:
    often = [
        f"{found.classes[true]} as {found.classes[predicted]} {count(times)}"
        for (true, predicted), times in _mistakes(counts)[:5]
    ]
    return f"{title} of {images(found.images)}. Most frequent: {'; '.join(often) or 'none'}."


def _note(found: ConfusionMatrix, counts: Counts, shown: Sequence[int], *, whole: bool) -> str:
    several = found.convention.get("several labels", "")
    told = "A row for each true class, a column for each predicted one; a stronger colour is a larger share of the row."
    told = f"{told} {several}".strip()
    if whole:
        return told
    inside = sum(times for (true, predicted), times in _mistakes(counts) if true in shown and predicted in shown)
    every = sum(times for _, times in _mistakes(counts))
    return f"{told} Drawn: {count(inside)} of {count(every)} misclassifications; the data has every pair."


def _table(title: str, found: ConfusionMatrix, counts: Counts, *, mistakes_only: bool) -> Table:
    """A row for each pair, the most frequent misclassification first."""
    totals = _totals(counts)
    right = [] if mistakes_only else [(pair, times) for pair, times in counts.items() if pair[0] == pair[1]]
    rows = [
        [
            Cell(found.classes[true]),
            Cell(found.classes[predicted]),
            Cell(count(times), times),
            Cell(figure(times / totals[true], "share"), times / totals[true]),
        ]
        for (true, predicted), times in [*_mistakes(counts), *right]
    ]
    heads = [Column("True class"), Column("Predicted class"), Column("Images", True), Column("Share of the class", True)]
    return Table(title, heads, rows)
