"""The table of docs/intervals.md is the one that its figures make, and no figure has crept away from what is promised."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
FIGURES = json.loads((ROOT / "benchmarks" / "coverage.json").read_text())["coverage"]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    # by its path: `coverage` is also the name of a library
    spec = importlib.util.spec_from_file_location("coverage_by_simulation", ROOT / "benchmarks" / "coverage.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_of_the_docs_is_made_of_the_figures(script: ModuleType) -> None:
    page = (ROOT / "docs" / "intervals.md").read_text()
    assert script.table(FIGURES) in page


def test_every_figure_is_of_a_cell_that_is_simulated_and_of_enough_simulations(script: ModuleType) -> None:
    cells = {f"{row.name}/{cases}/{design}" for row in script.rows() for cases in row.cases for design in row.designs}
    assert {*FIGURES} == cells
    assert all(cell["simulations"] >= 2000 for cell in FIGURES.values())
    held = [cell["held"] for cell in FIGURES.values()]
    assert min(held) > 0.85


def test_a_few_simulations_of_some_numbers_run_and_mostly_hold(script: ModuleType) -> None:
    for row in script.rows():
        if row.name in ("accuracy-80", "auroc-few-0.97", "fpr", "aupr", "rms-off", "robustness-linear"):
            tally = script.simulate(row, 26, "clusters", 60)
            assert tally.held > 0.8
            assert tally.held + tally.below + tally.above == pytest.approx(1)
