"""The confusion matrix in a report: whole where it is small, its confused part where it is not."""

from __future__ import annotations

import vl_convert

from shiftproof.reports.confusion_matrix import MOST_CLASSES, confusion_parts
from shiftproof.reports.parts import Chart, Table
from shiftproof.types import ConfusionMatrix


def matrix(classes: int, cells: dict[tuple[int, int], int]) -> ConfusionMatrix:
    true, predicted = zip(*cells, strict=True)
    names = tuple(f"class {place}" for place in range(classes))
    about = {"model": "toy", "dataset": "photos"}
    return ConfusionMatrix("confusion_matrix", about, names, true, predicted, tuple(cells.values()), sum(cells.values()), {})


def test_a_small_matrix_is_drawn_whole_coloured_by_the_share_of_its_row() -> None:
    (chart,) = confusion_parts(matrix(3, {(0, 0): 3, (0, 1): 1, (1, 1): 5, (2, 0): 2}))
    assert isinstance(chart, Chart)
    cells = {(row["true"], row["predicted"]): row for row in chart.spec["data"]["values"]}
    assert {pair: cell["images"] for pair, cell in cells.items()} == {
        ("class 0", "class 0"): "3",
        ("class 0", "class 1"): "1",
        ("class 1", "class 1"): "5",
        ("class 2", "class 0"): "2",
    }
    assert cells["class 0", "class 1"]["fill"] == "var(--heat-2)", "one of four"
    assert cells["class 2", "class 0"]["fill"] == "var(--heat-9)", "all"
    svg = vl_convert.vegalite_to_svg({**chart.spec, "width": 500})
    assert svg.count('fill="var(--heat-') == 4
    assert "NaN" not in svg
    # misclassifications first, the most frequent on top
    assert [cell.order for cell in chart.figures.rows[0]][2:] == [2, 1.0]
    assert len(chart.figures.rows) == 4


def test_of_many_classes_those_confused_most_often_are_drawn_and_every_pair_is_in_the_data() -> None:
    right = {(place, place): 10 for place in range(1000)}
    wrong = {(2 * place, 2 * place + 1): 1 + place % 7 for place in range(500)}
    (chart,) = confusion_parts(matrix(1000, {**right, **wrong}))
    assert isinstance(chart, Chart)
    assert str(MOST_CLASSES) in chart.title
    names = chart.spec["encoding"]["x"]["scale"]["domain"]
    assert len(names) == MOST_CLASSES
    drawn = {(row["true"], row["predicted"]): row["images"] for row in chart.spec["data"]["values"]}
    assert {times for (true, predicted), times in drawn.items() if true != predicted} == {"7"}
    assert len(chart.figures.rows) == 500
    assert f"Drawn: 105 of {sum(wrong.values()):,} misclassifications" in chart.note


def test_where_no_pair_comes_twice_there_is_a_table_and_no_drawing() -> None:
    cells = {(place, (place + 1) % 40): 1 for place in range(40)}
    (table,) = confusion_parts(matrix(40, cells))
    assert isinstance(table, Table)
    assert len(table.rows) == 40


def test_many_classes_without_a_mistake_need_neither() -> None:
    assert confusion_parts(matrix(40, {(place, place): 2 for place in range(40)})) == []
