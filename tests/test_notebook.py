"""The notebook of the docs runs, and what is saved of it is small."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parents[1] / "docs" / "tutorials" / "notebook.ipynb"


@pytest.mark.real
def test_the_notebook_runs_and_shows_a_table_and_a_chart(tmp_path: Path) -> None:
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [kinds_of(cell) for cell in notebook.cells if cell.cell_type == "code"]
    assert shown == [kinds_of(cell) for cell in nbformat.read(NOTEBOOK, as_version=4).cells if cell.cell_type == "code"]
    assert any("text/html" in kinds for kinds in shown)
    assert any("image/svg+xml" in kinds for kinds in shown)


def test_the_saved_notebook_is_small() -> None:
    assert NOTEBOOK.stat().st_size < 200_000


def kinds_of(cell: Any) -> list[str]:
    """The kinds of what a cell shows: a table, a chart, text; of a picture that is there twice, the one that is saved."""
    return sorted(kind for output in cell.outputs for kind in output.get("data", {}) if kind != "image/jpeg")
