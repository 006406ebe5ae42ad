"""Analyses of an AUROC: its decomposition by correctness, random networks, and distance to the ID images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shiftproof.metrics.wording import evidence, figure
from shiftproof.reports.charts import (
    COLOURS,
    DASHES,
    NARROW,
    PERCENT,
    SHAPES,
    Spec,
    between,
    by_series,
    channel,
    finite,
    mark_at,
    row_axis,
    start,
)
from shiftproof.reports.page import curves_named
from shiftproof.reports.parts import Cell, Chart, Column, Part, Table
from shiftproof.reports.scatter_plot import Place, scatter_plot
from shiftproof.reports.tables import compact_cell, curve_table, order_of
from shiftproof.studies.ood.charts import CHANCE_LINE, auroc_ends, share_cell
from shiftproof.studies.ood.findings import (
    CHANCE,
    FAILURE,
    NEW_CLASS,
    SOURCE,
    DetectorFindings,
    detector_of,
    published_parts,
    written,
)
from shiftproof.studies.ood.scores import MISTAKES_ALONE
from shiftproof.types import Curve, Measurement

SIDES = ("correct predictions", "misclassifications")


@dataclass(frozen=True)
class Parts:
    """One detector: AUROC of new classes against all, correct and misclassified images, and of the latter two."""

    detector: str
    accuracy: float  # on the labelled images
    whole: Measurement  # images without a label count in it too
    right: Measurement
    wrong: Measurement
    each_other: Measurement | None

    @property
    def shares(self) -> tuple[float, float]:
        """What correct predictions and what misclassifications add to the AUROC of both."""
        return self.accuracy * self.right.value, (1 - self.accuracy) * self.wrong.value


def decomposition(found: DetectorFindings) -> list[Part]:
    """AUROC as the sum of two parts, and the two against each other."""
    accuracy = accuracy_behind(found)
    parts = parts_of(found, accuracy.value) if accuracy else []
    if accuracy is None or not parts:
        return []
    figures = _parts_table("Decomposition of the AUROC (Yang et al., 2024)", parts)
    return [_stacked_bars(parts, accuracy, figures), _correct_and_wrong(parts, found, figures)]


def accuracy_behind(found: DetectorFindings) -> Measurement | None:
    """Accuracy on the clean images, by which every detector's two parts make up its AUROC."""
    return next(iter(found.numbers("id_accuracy", id=found.main_case(NEW_CLASS).id)), None)


def parts_of(found: DetectorFindings, accuracy: float) -> list[Parts]:
    """Those of every detector, clean ID images against all OOD images, the longest bar first."""
    case = found.main_case(NEW_CLASS)
    where = {"id": case.id, "ood": case.ood}
    standing = found.main(NEW_CLASS)
    right = {detector_of(one): one for one in found.numbers("auroc_correct_id", **where)}
    wrong = {detector_of(one): one for one in found.numbers("auroc_misclassified_id", **where)}
    other = {detector_of(one): one for one in found.numbers("auroc_correct_wrong", id=case.id)}
    parts = [
        Parts(name, accuracy, one, right[name], wrong[name], other.get(name))
        for one in (standing.aurocs if standing else [])
        if (name := detector_of(one)) in right and name in wrong
    ]
    return sorted(parts, key=lambda one: -sum(one.shares))


def _stacked_bars(parts: Sequence[Parts], accuracy: Measurement, figures: Table) -> Chart:
    title = "Decomposition of the AUROC (Yang et al., 2024)"
    rows = [row for one in parts for row in _stacked(one)]
    labels = [written(one.detector) for one in parts]
    x = channel("value", "AUROC", {"domain": [0, 1], "nice": False}, PERCENT)
    x["axis"]["tickCount"] = {"expr": f"{NARROW} ? 3 : 5"}
    tooltip = [
        {"field": "label", "title": "ood_detector"},
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
            mark_at(CHANCE),
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
        f"Correct predictions scoring below new classes give up to {most[0]}, wrong ones up to {most[1]}; "
        f"the two add up to the AUROC of new classes.{unlabelled}"
    )
    return Chart(title, spec, figures, note, half=True)


def _stacked(one: Parts) -> list[Spec]:
    first, second = one.shares
    label, whole = written(one.detector), figure(first + second, "share")
    shared = {"label": label, "figure": whole, "text": f"{100 * first:.1f} + {100 * second:.1f} = {whole}"}
    return [
        {**shared, "series": SIDES[0], "from": 0.0, "to": first, "tip": f"{100 * first:.1f}"},
        {**shared, "series": SIDES[1], "from": first, "to": first + second, "tip": f"{100 * second:.1f}"},
    ]


def _correct_and_wrong(parts: Sequence[Parts], found: DetectorFindings, figures: Table) -> Chart:
    title = "Correct predictions and misclassifications against new classes"
    named_ones = found.two()
    places = [
        Place(
            written(one.detector),
            one.right.value,
            one.wrong.value,
            f"correct {figure(one.right.value, 'share')}, misclassified {figure(one.wrong.value, 'share')}",
            own=one.detector in named_ones,
            x_interval=one.right.ends if one.detector in named_ones else None,
            y_interval=one.wrong.ends if one.detector in named_ones else None,
        )
        for one in parts
    ]
    spec = scatter_plot(
        places,
        x_title="AUROC, correct predictions against new classes",
        y_title="AUROC, misclassifications against new classes",
        description=f"{title}. {'; '.join(f'{place.name}: {place.detail}' for place in places)}.",
        what="ood_detector",
    )
    note = (
        f"{found.dataset} against {found.ood}. "
        "Farther right: better failure detection; higher up: new classes are also separated from misclassifications."
    )
    return Chart(title, spec, figures, note, half=True)


def _parts_table(title: str, parts: Sequence[Parts]) -> Table:
    published = published_parts()
    over = ("New classes against", "Share of the AUROC from", f"Published, {SOURCE}")
    columns = [
        Column("Detector"),
        Column("all images", True, over[0]),
        Column("correct predictions", True, over[0]),
        Column("misclassifications", True, over[0]),
        Column("correct predictions", True, over[1]),
        Column("misclassifications", True, over[1]),
        Column("Misclassified against correct", True),
        Column("correct predictions", True, over[2]),
        Column("misclassifications", True, over[2]),
    ]
    rows = [
        [
            Cell(written(one.detector)),
            *(compact_cell(number) for number in (one.whole, one.right, one.wrong)),
            *(Cell(figure(part, "share"), part) for part in one.shares),
            compact_cell(one.each_other),
            *map(share_cell, published.get(one.detector, (None, None))),
        ]
        for one in parts
    ]
    return Table(
        title, columns, rows, "AUROC. Published: with a ResNet-50, ImageNet against ImageNet-OOD, other images than here."
    )


MOST_STRIPS = 4
TRAINED, RANDOM = "trained network", "random networks"


def random_strips(found: DetectorFindings) -> list[Part]:
    """A chart for each of a few detectors: a row for each shift, a dot for each network."""
    tried = dict.fromkeys(detector_of(one) for one in found.numbers("random_network_auroc"))
    few = [name for name in [*found.two(), *found.few()] if name in tried] or list(tried)
    shown = list(dict.fromkeys(few))[:MOST_STRIPS]
    return [_strip(detector, found) for detector in shown]


def random_failures(found: DetectorFindings) -> list[Part]:
    """A row for each detector and ID dataset: failure detection by the trained network and by random ones."""
    means = found.numbers("mean_random_network_failure_auroc")
    rows = []
    for one in means:
        name, id_set, ood_set = detector_of(one), str(one.about.get("id")), str(one.about.get("ood"))
        alone = found.numbers("auroc_correct_wrong", ood_detector=name, id=id_set)
        pooled = found.numbers("auroc", goal=FAILURE, ood_detector=name, id=id_set, ood=ood_set)
        trained = next(iter(alone if ood_set == MISTAKES_ALONE else pooled), None)
        to_find = "misclassifications" if ood_set == MISTAKES_ALONE else f"misclassifications and {ood_set}"
        titles = [written(name), id_set, to_find]
        rows.append([*map(Cell, titles), compact_cell(trained), compact_cell(one)])
    columns = [*map(Column, ("Detector", "Negatives: correct predictions on", "Positives"))]
    columns += [Column("Trained network", True), Column("Mean of random networks", True)]
    note = (
        "AUROC of detecting the trained network's failures. Far from 50 % with random networks: "
        "low-level statistics predict its failures."
    )
    return [Table("Failure detection by random networks", columns, rows, note, folded=True)] if rows else []


def _strip(detector: str, found: DetectorFindings) -> Chart:
    networks = found.numbers("random_network_auroc", ood_detector=detector)
    trained = found.numbers("shift_auroc", ood_detector=detector)
    means = found.numbers("mean_random_network_auroc", ood_detector=detector)
    shifts = list(dict.fromkeys(_shift(one) for one in [*trained, *networks]))
    title = f"{written(detector)}: trained and random networks"
    ends = auroc_ends([*networks, *trained])
    rows = [*(_dot(one, RANDOM) for one in networks), *(_dot(one, TRAINED) for one in trained)]
    x = channel("value", "AUROC against the clean images", between(ends), PERCENT)
    x["axis"]["tickCount"] = {"expr": f"{NARROW} ? 3 : 5"}
    look = {"color": by_series([TRAINED, RANDOM], COLOURS), "shape": by_series([TRAINED, RANDOM], [SHAPES[2], SHAPES[0]])}
    tooltip = [{"field": "label", "title": "dataset"}, {"field": "series"}, {"field": "tip", "title": "AUROC"}]
    spec: Spec = {
        **start(f"{title}. {_strip_in_words(trained, means)}", rows),
        "height": 34 * len(shifts),
        "encoding": {"y": {"field": "label", "type": "nominal", "sort": shifts, "axis": row_axis()}},
        "layer": [
            mark_at(CHANCE),
            {
                "mark": {"type": "rule", "strokeWidth": 9, "opacity": 0.3, "color": COLOURS[0]},
                "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}},
            },
            {
                "transform": [{"filter": f"datum.series == '{RANDOM}'"}],
                "mark": {"type": "point", "filled": True, "size": 45, "opacity": 0.6},
                "encoding": {"x": x, "tooltip": tooltip, **look},
            },
            {
                "transform": [{"filter": f"datum.series == '{TRAINED}'"}],
                "mark": {"type": "point", "filled": True, "size": 130, "opacity": 1, "stroke": "var(--card)"},
                "encoding": {"x": x, "tooltip": tooltip, **look},
            },
        ],
    }
    note = f"Random networks as far from 50 % as the trained one: low-level statistics explain the score. {CHANCE_LINE}"
    return Chart(title, spec, _networks_table(title, trained, networks, means), note, half=True)


def _dot(found: Measurement, series: str) -> Spec:
    printed = figure(found.value, "share")
    network = f"network {found.about['network']}: " if "network" in found.about else ""
    return {
        "label": _shift(found),
        "series": series,
        "value": finite(found.value),
        "low": finite(found.ends[0]) if found.ends and series == TRAINED else None,
        "high": finite(found.ends[1]) if found.ends and series == TRAINED else None,
        "tip": f"{network}{printed}" if network else f"{printed} ({evidence(found)})",
    }


def _strip_in_words(trained: Sequence[Measurement], means: Sequence[Measurement]) -> str:
    mean = {_shift(one): f", random networks {figure(one.value, 'share')} on average" for one in means}
    return " ".join(f"{_shift(one)}: {figure(one.value, 'share')}{mean.get(_shift(one), '')}." for one in trained)


def _networks_table(
    title: str, trained: Sequence[Measurement], networks: Sequence[Measurement], means: Sequence[Measurement]
) -> Table:
    """A row for each shift: the trained network, the mean of the random ones, then each of them."""
    numbers = sorted({int(one.about.get("network", 0)) for one in networks})
    own, mean = ({_shift(one): one for one in found} for found in (trained, means))
    each = {(_shift(one), int(one.about.get("network", 0))): one for one in networks}
    columns = [Column("Dataset"), Column("Trained", True), Column("Mean of random", True)]
    columns += [Column(f"Random {number}", True) for number in numbers]
    rows = [
        [
            Cell(shift),
            compact_cell(own.get(shift)),
            compact_cell(mean.get(shift)),
            *(compact_cell(each.get((shift, number))) for number in numbers),
        ]
        for shift in dict.fromkeys(map(_shift, [*trained, *networks]))
    ]
    return Table(title, columns, rows)


def _shift(found: Measurement) -> str:
    return str(found.about.get("shift", ""))


def distance_charts(found: DetectorFindings) -> list[Part]:
    """A scatter plot with fitted lines for the best detector and for the baseline, then the lines of all in a table."""
    curves = [one for one in curves_named(found.findings, "distance_auroc") if len(one.x)]
    shown = [name for name in found.two() if any(detector_of(one) == name for one in curves)]
    scatters = [_against_distance(name, [one for one in curves if detector_of(one) == name], found) for name in shown]
    return [*scatters, *_lines(found), *_intercepts(found)]


def _against_distance(detector: str, curves: Sequence[Curve], found: DetectorFindings) -> Chart:
    title = f"{written(detector)}: AUROC against distance"
    names = [_set(one) for one in curves]
    fits = [_fit(one, found) for one in curves]
    ends = [value for one in curves for value in one.y]
    x = channel("x", curves[0].x_label, {"zero": False, "nice": True})
    low = max(0.0, min([0.5, *ends]) - 0.05)
    y = channel("y", "AUROC against the ID images", {"domain": [low, min(1.0, max(ends) + 0.05)], "nice": True}, PERCENT)
    colour = {"color": by_series(names, COLOURS)}
    tooltip = [
        {"field": "series", "title": "dataset"},
        {"field": "x_tip", "title": "distance"},
        {"field": "tip", "title": "AUROC"},
    ]
    point = {"type": "point", "filled": True, "size": 26, "opacity": 0.65}
    line = {"type": "line", "strokeWidth": 2.2, "clip": True}
    spec: Spec = {
        **start(
            f"{title}. {' '.join(filter(None, map(_start_in_words, fits)))}", [row for one in curves for row in _points(one)]
        ),
        "height": 320,
        "layer": [
            {"mark": point, "encoding": {"x": x, "y": y, "tooltip": tooltip, **colour, "shape": by_series(names, SHAPES)}},
            {
                "data": {"values": [row for fit in fits for row in _ends_of(fit)]},
                "mark": line,
                "encoding": {"x": x, "y": y, **colour, "strokeDash": by_series(names, DASHES)},
            },
        ],
    }
    note = "A point is a bin of images of similar distance. Separate lines: the datasets differ in more than distance."
    return Chart(title, spec, curve_table(title, curves, names), note, half=True)


Fit = tuple[Curve, Measurement | None, Measurement | None]
"""The points of a set, and the slope and intercept of the line through them."""


def _fit(curve: Curve, found: DetectorFindings) -> Fit:
    where = {"ood_detector": detector_of(curve), "set": _set(curve)}
    slope, start_at = found.numbers("distance_slope", **where), found.numbers("distance_intercept", **where)
    return curve, next(iter(slope), None), next(iter(start_at), None)


def _ends_of(fit: Fit) -> list[Spec]:
    """Where the line enters and leaves the groups of its set."""
    curve, slope, start_at = fit
    if slope is None or start_at is None:
        return []
    return [
        {"series": _set(curve), "x": x, "y": finite(start_at.value + slope.value * x)} for x in (min(curve.x), max(curve.x))
    ]


def _start_in_words(fit: Fit) -> str:
    curve, _, start_at = fit
    return f"{_set(curve)}: intercept {figure(start_at.value, 'share')}." if start_at else ""


def _points(curve: Curve) -> list[Spec]:
    return [
        {
            "series": _set(curve),
            "x": round(x, 5),
            "y": finite(round(y, 5)),
            "x_tip": f"{x:.3g}",
            "tip": figure(y, "share"),
        }
        for x, y in zip(curve.x, curve.y, strict=True)
    ]


def _lines(found: DetectorFindings) -> list[Part]:
    """A row for each detector and dataset: intercept and slope of its line, both with CIs."""
    starts = found.numbers("distance_intercept")
    slopes = {(detector_of(one), _set(one)): one for one in found.numbers("distance_slope")}
    rows = [
        [
            Cell(written(detector_of(one))),
            Cell(_set(one)),
            compact_cell(one),
            compact_cell(slopes.get((detector_of(one), _set(one)))),
        ]
        for one in starts
    ]
    columns = [
        Column("Detector"),
        Column("Dataset"),
        Column("Intercept", True),
        Column("Slope", True),
    ]
    note = (
        "Linear fits of AUROC by distance, over bins of images of similar distance. "
        "Datasets whose CIs of the intercept do not overlap differ in more than distance."
    )
    return [Table("Lines of AUROC against distance", columns, rows, note, folded=True)] if rows else []


def _intercepts(found: DetectorFindings) -> list[Part]:
    """A row for each detector and pair of a covariate-shifted and an OOD dataset: whether the intercepts differ."""
    gaps = {_pair(one): one.value for one in found.numbers("distance_intercept_gap")}
    rows = []
    for one in found.numbers("distance_intercept_difference"):
        gap = gaps.get(_pair(one))
        apart = "" if gap is None else f"{'apart' if gap > 0 else 'overlap'} by {figure(abs(gap), 'points').lstrip('+')}"
        names = [written(detector_of(one)), *_pair(one)[1:]]
        rows.append([*map(Cell, names), compact_cell(one), Cell(apart, order_of(gap) if gap is not None else "")])
    columns = [*map(Column, ("Detector", "Covariate-shifted", "OOD"))]
    columns += [Column("Intercept difference, covariate-shifted − OOD", True), Column("CIs of the intercepts", True)]
    note = (
        "Apart and higher: at equal distance covariate shift scores higher than new classes. Overlapping: not significant."
    )
    return [Table("Do the intercepts differ?", columns, rows, note, folded=True)] if rows else []


def _pair(found: Measurement) -> tuple[str, str, str]:
    return detector_of(found), _set(found), str(found.about.get("versus", ""))


def _set(finding: Curve | Measurement) -> str:
    return str(finding.about.get("set", ""))
