"""Where a detector's AUROC comes from: right answers that look familiar, wrong ones that do, or neither."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shiftproof.reports.charts import COLOURS, NARROW, PERCENT, Spec, by_series, channel, mark_at, row_axis, start
from shiftproof.reports.detector_findings import BLIND, NEW_CLASS, DetectorFindings
from shiftproof.reports.detector_names import set_title, written
from shiftproof.reports.label_places import Place
from shiftproof.reports.landscape import landscape
from shiftproof.reports.parts import Cell, Chart, Column, Part, Table
from shiftproof.reports.published_detectors import SOURCE, published_parts
from shiftproof.reports.standings import detector_of
from shiftproof.reports.tables import compact_cell, order_of
from shiftproof.reports.words import figure
from shiftproof.types import Measurement

SIDES = ("right answers", "wrong answers")


@dataclass(frozen=True)
class Parts:
    """One detector: its AUROC against new classes, of right and wrong answers alone, and of one against the other."""

    detector: str
    accuracy: float  # of the answers that are right or wrong
    whole: Measurement  # images without a label count in it too
    right: Measurement
    wrong: Measurement
    each_other: Measurement | None

    @property
    def shares(self) -> tuple[float, float]:
        """What right and what wrong answers add to the AUROC of both."""
        return self.accuracy * self.right.value, (1 - self.accuracy) * self.wrong.value


def decomposition(found: DetectorFindings) -> list[Part]:
    """AUROC as the sum of two parts, and the two against each other."""
    accuracy = accuracy_behind(found)
    parts = parts_of(found, accuracy.value) if accuracy else []
    if accuracy is None or not parts:
        return []
    figures = _figures("Where the AUROC comes from", parts)
    return [_bars(parts, accuracy, figures), _scatter(parts, found, figures)]


def accuracy_behind(found: DetectorFindings) -> Measurement | None:
    """The share of right answers to the unchanged images, by which every detector's two parts make up its AUROC."""
    return next(iter(found.numbers("inside_accuracy", inside=found.main_case(NEW_CLASS).inside)), None)


def parts_of(found: DetectorFindings, accuracy: float) -> list[Parts]:
    """Those of every detector, unchanged images against everything foreign, the longest bar first."""
    case = found.main_case(NEW_CLASS)
    where = {"inside": case.inside, "outside": case.outside}
    standing = found.main(NEW_CLASS)
    right = {detector_of(one): one for one in found.numbers("auroc_correct_inside", **where)}
    wrong = {detector_of(one): one for one in found.numbers("auroc_wrong_inside", **where)}
    other = {detector_of(one): one for one in found.numbers("auroc_correct_wrong", inside=case.inside)}
    parts = [
        Parts(name, accuracy, one, right[name], wrong[name], other.get(name))
        for one in (standing.aurocs if standing else [])
        if (name := detector_of(one)) in right and name in wrong
    ]
    return sorted(parts, key=lambda one: -sum(one.shares))


def _bars(parts: Sequence[Parts], accuracy: Measurement, figures: Table) -> Chart:
    title = "Where the AUROC comes from"
    rows = [row for one in parts for row in _rows(one)]
    labels = [written(one.detector) for one in parts]
    x = channel("value", "AUROC", {"domain": [0, 1], "nice": False}, PERCENT)
    x["axis"]["tickCount"] = {"expr": f"{NARROW} ? 3 : 5"}
    tooltip = [
        {"field": "label", "title": "detector"},
        {"field": "series", "title": "from"},
        {"field": "tip", "title": "points"},
    ]
    said = "; ".join(f"{row['label']} {row['series']} {row['tip']}" for row in rows)
    beside = {"condition": {"test": NARROW, "field": "figure"}, "field": "text"}
    spec: Spec = {
        **start(f"{title}: {said}.", rows),
        "height": 24 * len(parts),
        "encoding": {"y": {"field": "label", "type": "nominal", "sort": labels, "axis": row_axis()}},
        "layer": [
            {
                "mark": {"type": "bar", "height": {"band": 0.66}},
                "encoding": {
                    "x": {**x, "stack": None, "field": "from"},
                    "x2": {"field": "to"},
                    "color": by_series(SIDES, COLOURS),
                    "tooltip": tooltip,
                },
            },
            mark_at(BLIND),
            {
                "transform": [{"filter": f"datum.series == '{SIDES[0]}'"}],
                "mark": {"type": "text", "align": "left", "dx": 10},
                "encoding": {"x": {"value": "width"}, "text": beside},
            },
        ],
    }
    most = [figure(share, "share") for share in (accuracy.value, 1 - accuracy.value)]
    unlabelled = " Images without a label are neither and left out." if "without label" in accuracy.convention else ""
    note = (
        f"Right answers looking less foreign than new classes give up to {most[0]}, wrong ones up to {most[1]}; "
        f"the two add up to the AUROC of new classes.{unlabelled}"
    )
    return Chart(title, spec, figures, note, half=True)


def _rows(one: Parts) -> list[Spec]:
    first, second = one.shares
    label, whole = written(one.detector), figure(first + second, "share")
    shared = {"label": label, "figure": whole, "text": f"{100 * first:.1f} + {100 * second:.1f} = {whole}"}
    return [
        {**shared, "series": SIDES[0], "from": 0.0, "to": first, "tip": f"{100 * first:.1f}"},
        {**shared, "series": SIDES[1], "from": first, "to": first + second, "tip": f"{100 * second:.1f}"},
    ]


def _scatter(parts: Sequence[Parts], found: DetectorFindings, figures: Table) -> Chart:
    title = "Right and wrong answers against new classes"
    named_ones = found.two()
    places = [
        Place(
            written(one.detector),
            one.right.value,
            one.wrong.value,
            f"right {figure(one.right.value, 'share')}, wrong {figure(one.wrong.value, 'share')}",
            own=one.detector in named_ones,
            x_interval=one.right.interval if one.detector in named_ones else None,
            y_interval=one.wrong.interval if one.detector in named_ones else None,
        )
        for one in parts
    ]
    spec = landscape(
        places,
        x_title="AUROC, right answers against new classes",
        y_title="AUROC, wrong answers against new classes",
        description=f"{title}. {'; '.join(f'{place.name}: {place.detail}' for place in places)}.",
        what="detector",
    )
    note = (
        f"{set_title(found.image_set)} against {set_title(found.outside)}. "
        "Farther right, failures are found better; higher up, new classes are told from mistakes better too."
    )
    return Chart(title, spec, figures, note, half=True)


def _figures(title: str, parts: Sequence[Parts]) -> Table:
    published = published_parts()
    over = ("New classes against", "Share of the AUROC from", f"Published, {SOURCE}")
    columns = [
        Column("Detector"),
        Column("all images", True, over[0]),
        Column("right answers", True, over[0]),
        Column("wrong answers", True, over[0]),
        Column("right answers", True, over[1]),
        Column("wrong answers", True, over[1]),
        Column("Wrong against right", True),
        Column("right answers", True, over[2]),
        Column("wrong answers", True, over[2]),
    ]
    rows = [
        [
            Cell(written(one.detector)),
            *(compact_cell(number) for number in (one.whole, one.right, one.wrong)),
            *(Cell(figure(part, "share"), part) for part in one.shares),
            compact_cell(one.each_other),
            *_published_cells(published.get(one.detector)),
        ]
        for one in parts
    ]
    return Table(
        title, columns, rows, "AUROC. Published: with a ResNet-50, ImageNet against ImageNet-OOD, other images than here."
    )


def _published_cells(values: tuple[float, float] | None) -> list[Cell]:
    return [Cell(figure(value, "share"), order_of(value)) for value in values] if values else [Cell("–"), Cell("–")]
