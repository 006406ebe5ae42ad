"""The random-network check: what networks that never learned anything tell apart too is not about classes."""

from __future__ import annotations

from collections.abc import Sequence

from shiftproof.reports.charts import (
    COLOURS,
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
from shiftproof.reports.detector_charts import BLIND_LINE, auroc_ends
from shiftproof.reports.detector_findings import BLIND, FAILURE, DetectorFindings
from shiftproof.reports.detector_names import set_title, written
from shiftproof.reports.parts import Cell, Chart, Column, Part, Table
from shiftproof.reports.standings import detector_of
from shiftproof.reports.tables import compact_cell
from shiftproof.reports.words import evidence, figure
from shiftproof.studies.novelty_variants import MISTAKES_ALONE
from shiftproof.types import Measurement

MOST_STRIPS = 4
TRAINED, RANDOM = "trained network", "random networks"


def random_strips(found: DetectorFindings) -> list[Part]:
    """A chart for each of a few detectors: a row for each shift, a dot for each network."""
    tried = dict.fromkeys(detector_of(one) for one in found.numbers("random_network_auroc"))
    few = [name for name in [*found.two(), *found.few()] if name in tried] or list(tried)
    shown = list(dict.fromkeys(few))[:MOST_STRIPS]
    return [_strip(detector, found) for detector in shown]


def random_failures(found: DetectorFindings) -> list[Part]:
    """A row for each detector and inside set: failures as the trained network and random ones tell them."""
    means = found.numbers("mean_random_network_failure_auroc")
    rows = []
    for one in means:
        name, inside, outside = detector_of(one), str(one.about.get("inside")), str(one.about.get("outside"))
        alone = found.numbers("auroc_correct_wrong", detector=name, inside=inside)
        pooled = found.numbers("auroc", goal=FAILURE, detector=name, inside=inside, outside=outside)
        trained = next(iter(alone if outside == MISTAKES_ALONE else pooled), None)
        to_find = "wrong answers" if outside == MISTAKES_ALONE else f"wrong answers and {set_title(outside)}"
        titles = [written(name), set_title(inside), to_find]
        rows.append([*map(Cell, titles), compact_cell(trained), compact_cell(one)])
    columns = [*map(Column, ("Detector", "Among right answers of", "To be found"))]
    columns += [Column("Trained network", True), Column("Mean of random networks", True)]
    note = (
        "AUROC of finding the trained network's failures. Far from 50 % with random networks: "
        "pixels alone tell where the trained one fails."
    )
    return [Table("Failures as random networks see them", columns, rows, note, folded=True)] if rows else []


def _strip(detector: str, found: DetectorFindings) -> Chart:
    networks = found.numbers("random_network_auroc", detector=detector)
    trained = found.numbers("shift_auroc", detector=detector)
    means = found.numbers("mean_random_network_auroc", detector=detector)
    shifts = list(dict.fromkeys(set_title(_shift(one)) for one in [*trained, *networks]))
    title = f"{written(detector)}: trained and random networks"
    ends = auroc_ends([*networks, *trained])
    rows = [*(_row(one, RANDOM) for one in networks), *(_row(one, TRAINED) for one in trained)]
    x = channel("value", "AUROC against the unchanged images", between(ends), PERCENT)
    x["axis"]["tickCount"] = {"expr": f"{NARROW} ? 3 : 5"}
    look = {"color": by_series([TRAINED, RANDOM], COLOURS), "shape": by_series([TRAINED, RANDOM], [SHAPES[2], SHAPES[0]])}
    tooltip = [{"field": "label", "title": "set"}, {"field": "series"}, {"field": "tip", "title": "AUROC"}]
    spec: Spec = {
        **start(f"{title}. {_said(trained, means)}", rows),
        "height": 34 * len(shifts),
        "encoding": {"y": {"field": "label", "type": "nominal", "sort": shifts, "axis": row_axis()}},
        "layer": [
            mark_at(BLIND),
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
    note = f"Where the circles lie as far from 50 % as the diamond, pixels explain what is noticed. {BLIND_LINE}"
    return Chart(title, spec, _figures(title, trained, networks, means), note, half=True)


def _row(found: Measurement, series: str) -> Spec:
    printed = figure(found.value, "share")
    network = f"network {found.about['network']}: " if "network" in found.about else ""
    return {
        "label": set_title(_shift(found)),
        "series": series,
        "value": finite(found.value),
        "low": finite(found.interval[0]) if found.interval and series == TRAINED else None,
        "high": finite(found.interval[1]) if found.interval and series == TRAINED else None,
        "tip": f"{network}{printed}" if network else f"{printed} ({evidence(found)})",
    }


def _said(trained: Sequence[Measurement], means: Sequence[Measurement]) -> str:
    mean = {_shift(one): f", random networks {figure(one.value, 'share')} on average" for one in means}
    return " ".join(f"{set_title(_shift(one))}: {figure(one.value, 'share')}{mean.get(_shift(one), '')}." for one in trained)


def _figures(
    title: str, trained: Sequence[Measurement], networks: Sequence[Measurement], means: Sequence[Measurement]
) -> Table:
    """A row for each shift: the trained network, the mean of the random ones, then each of them."""
    numbers = sorted({int(one.about.get("network", 0)) for one in networks})
    own, mean = ({_shift(one): one for one in found} for found in (trained, means))
    each = {(_shift(one), int(one.about.get("network", 0))): one for one in networks}
    columns = [Column("Set"), Column("Trained", True), Column("Mean of random", True)]
    columns += [Column(f"Random {number}", True) for number in numbers]
    rows = [
        [
            Cell(set_title(shift)),
            compact_cell(own.get(shift)),
            compact_cell(mean.get(shift)),
            *(compact_cell(each.get((shift, number))) for number in numbers),
        ]
        for shift in dict.fromkeys(map(_shift, [*trained, *networks]))
    ]
    return Table(title, columns, rows)


def _shift(found: Measurement) -> str:
    return str(found.about.get("shift", ""))
