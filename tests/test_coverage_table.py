"""The table of docs/intervals.md is the one that its figures make, and no figure has crept away from what is promised."""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import shiftproof
from shiftproof.catalog import METRICS
from shiftproof.metrics import metric_info

ROOT = Path(__file__).parent.parent
MAKERS = {
    *("share", "mean", "difference", "resampled", "share_of", "measured", "mean_accuracy_answered", "rms_measurement"),
    "share_curve",
}
"""Functions that give the number of the name that comes first an interval, or a curve a band."""

FIGURES = json.loads((ROOT / "benchmarks" / "coverage.json").read_text())["coverage"]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("interval_coverage", ROOT / "benchmarks" / "interval_coverage.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_benchmark_has_the_name_of_a_library() -> None:
    # a script's own folder comes first: numba would find our coverage.py in the place of the library that it asks for
    scripts = {file.stem for file in (ROOT / "benchmarks").glob("*.py")}
    assert not scripts & {*sys.stdlib_module_names, *importlib.metadata.packages_distributions()}


def test_the_table_of_the_docs_is_made_of_the_figures(script: ModuleType) -> None:
    page = (ROOT / "docs" / "intervals.md").read_text()
    assert script.table(FIGURES) in page
    assert script.numbers_told() in page


def test_every_number_of_a_report_that_has_an_interval_is_in_the_table(script: ModuleType) -> None:
    simulated = {number for numbers in script.STANDS_FOR.values() for number in numbers.split()}
    # a new metric is put into a row of the table, or says that it has no interval
    having = {name for name in METRICS.built_in if metric_info(name).interval}
    assert having <= simulated
    assert not (METRICS.built_in.keys() - having) & simulated
    with_interval = {*_named_with_an_interval()}
    assert {"top1_accuracy", "auroc_difference", "reliability", "kept_share", "degradation"} <= with_interval <= simulated
    curves = with_interval - METRICS.keys()
    assert simulated <= METRICS.keys() | curves


def test_every_row_stands_for_some_number_of_a_report(script: ModuleType) -> None:
    standing = [name for names in script.STANDS_FOR for name in names.split()]
    assert sorted(standing) == sorted(row.name for row in script.rows())


def _named_with_an_interval() -> Iterator[str]:
    """Names that the source gives an interval or a band where it names them: not those that it makes up of parts."""
    # few files name a number in such a call, and to parse all the others takes seconds
    names = "|".join(("[Mm]easurement", "number", "[Cc]urve", *MAKERS))
    named = re.compile(rf"\b(?:{names})\(\s*(?:#.*\s+)*[\"'(]")
    for text in map(Path.read_text, Path(shiftproof.__file__).parent.rglob("*.py")):
        for call in ast.walk(ast.parse(text)) if named.search(text) else ():
            if not isinstance(call, ast.Call) or not call.args or not isinstance(call.args[0], ast.Constant):
                continue
            of = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            given = {keyword.arg for keyword in call.keywords}
            measured = of in ("Measurement", "measurement") and (len(call.args) > 5 or "interval" in given)
            measured |= of == "number" and len(call.args) > 2  # name, value, and what it lies within
            banded = (of == "Curve" and "low" in given) or (of == "curve" and "band" in given)
            if measured or banded or of in MAKERS:
                yield str(call.args[0].value)


def test_every_figure_is_of_a_cell_that_is_simulated_and_of_enough_simulations(script: ModuleType) -> None:
    cells = {f"{row.name}/{cases}/{design}" for row in script.rows() for cases, design in row.cells}
    assert {*FIGURES} == cells
    assert all(cell["simulations"] >= 2000 for cell in FIGURES.values())
    held = [cell["held"] for cell in FIGURES.values()]
    assert min(held) > 0.85


def test_a_few_simulations_of_some_numbers_run_and_mostly_hold(script: ModuleType) -> None:
    for row in script.rows():
        if row.name in ("accuracy-80", "auroc-few-0.97", "fpr", "aupr", "rms-off", "robustness-linear"):
            (tally,) = script.simulate([row], 26, "clusters", 60)
            assert tally.held > 0.8
            assert tally.held + tally.below + tally.above == pytest.approx(1)
