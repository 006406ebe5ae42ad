"""What rejecting new classes costs: right answers that go with them, by detector and by what was shown."""

from __future__ import annotations

from collections.abc import Sequence

from shiftproof.reports.detector_findings import DetectorFindings
from shiftproof.reports.detector_names import set_title, written
from shiftproof.reports.heat_maps import Heat, RowGroup, heat_map
from shiftproof.reports.parts import Cell, Chart, Column, Part, Table
from shiftproof.reports.published_detectors import SOURCE, published_discarded
from shiftproof.reports.standings import detector_of
from shiftproof.reports.tables import compact_cell, order_of
from shiftproof.reports.words import evidence, figure, kept_together
from shiftproof.types import Measurement

AS_PUBLISHED = "75 %"
"""The share of new classes that the published numbers reject."""


def right_answers_discarded(found: DetectorFindings) -> list[Part]:
    """A heat map of shares, the published ones beside those of the same detectors."""
    shown = found.numbers("correct_discarded", outside=found.outside)
    if not shown:
        return []
    rejected = str(shown[0].about.get("rejected", "some"))
    shown = [one for one in shown if str(one.about.get("rejected", "some")) == rejected]
    insides = list(dict.fromkeys(str(one.about.get("inside", "")) for one in shown))
    detectors = list(dict.fromkeys(map(detector_of, shown)))
    published = _published(detectors) if rejected == AS_PUBLISHED else {}
    title = kept_together(f"Right answers thrown away when {rejected} of {set_title(found.outside)} is rejected")
    heat = [_heat(one) for one in shown] + [
        Heat(written(name), column, value, f"{figure(value, 'share')} ({SOURCE}, ResNet-50, other images)")
        for name, row in published.items()
        for column, value in row.items()
    ]
    columns = list(dict.fromkeys(column for row in published.values() for column in row))
    blocks = [[set_title(inside) for inside in insides], *([columns] if columns else [])]
    spec = heat_map(
        heat,
        [RowGroup("Percent of right answers", [written(name) for name in detectors])],
        blocks,
        x_title="right answers on",
        description=f"{title}, percent. {'; '.join(f'{cell.row} {cell.column} {100 * cell.value:.0f}' for cell in heat)}.",
    )
    note = "The stronger the colour, the more is lost. Intervals: in the figures." + (
        f" Behind the gap: as published with a ResNet-50 ({SOURCE}), where ImageNet-OOD is rejected; other images than here."
        if columns
        else ""
    )
    return [Chart(title, spec, _figures(title, shown, insides, published, columns), note)]


def _heat(found: Measurement) -> Heat:
    tip = f"{figure(found.value, 'share')} ({evidence(found)})"
    return Heat(written(detector_of(found)), set_title(str(found.about.get("inside", ""))), found.value, tip)


def _published(detectors: Sequence[str]) -> dict[str, dict[str, float]]:
    """Under names that no set here has."""
    known = published_discarded()
    return {
        name: {f"published {column}": value for column, value in known[name].items()} for name in detectors if name in known
    }


def _figures(
    title: str,
    shown: Sequence[Measurement],
    insides: Sequence[str],
    published: dict[str, dict[str, float]],
    columns: Sequence[str],
) -> Table:
    by_place = {(detector_of(one), str(one.about.get("inside", ""))): one for one in shown}
    rows = []
    for detector in dict.fromkeys(map(detector_of, shown)):
        theirs = [published.get(detector, {}).get(column) for column in columns]
        rows.append(
            [
                Cell(written(detector)),
                *(compact_cell(by_place.get((detector, inside))) for inside in insides),
                *(Cell("–") if value is None else Cell(figure(value, "share"), order_of(value)) for value in theirs),
            ]
        )
    heads = [*(set_title(inside) for inside in insides), *columns]
    return Table(title, [Column("Detector"), *(Column(head, True) for head in heads)], rows)
