from __future__ import annotations

import io
import re
import shutil
import string
import subprocess
from pathlib import Path

import pytest

import shiftproof as sp
from shiftproof.tables import Table, latex_escaped, markdown_escaped, parquet_bytes, table_text
from shiftproof.types import Interval, Measurement

AWKWARD = [
    *string.punctuation,
    "[x] after the end of a row",
    "*starred",
    "a--b ---c ,,d ''e'' ``f''",
    r"\input{/etc/passwd} \\ & % $x_1^2$ #1 ~ \end{tabular}",
    "two\nlines\tand a tab",
    "\x1b[2J steers a terminal",
    "88.7\u202f% ± 2 × 3 ≤ 4 − 1 → 5 – 6 — 7 … 20 °",
    "Würzburg, São Paulo, Łódź",
]
TABLE = Table([{"name & %": text, "value_1": f"{place}"} for place, text in enumerate(AWKWARD)], right=("value_1",))

COMMANDS = re.compile(
    r"\\text(?:backslash|asciitilde|asciicircum|asciigrave|less|greater|bar)\{\}|\\char34\{\}|\\ldots\{\}|\\[{}$&#_%,]"
    r"|\$(?:-|\\pm|\\times|\\leq|\\geq|\\approx|\\rightarrow|\^\\circ)\$|\{[\[\]*]?\}|~"
)


@pytest.mark.parametrize("text", AWKWARD)
def test_latex_has_no_special_character_left(text: str) -> None:
    assert not re.search(r'[\\{}$&#_%~^`<>|"\[\]*\n\t\x00-\x1f]', COMMANDS.sub("", latex_escaped(text)))


def test_signs_of_latex_are_told_apart() -> None:
    assert latex_escaped("--level, a-b, ''") == "-{}-level, a-b, '{}'"
    assert latex_escaped("88.7\u202f%") == r"88.7\,\%"


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
@pytest.mark.parametrize("encoding", ["OT1", "T1"])
def test_latex_compiles_and_shows_what_was_written(tmp_path: Path, encoding: str) -> None:
    lines = [
        r"\documentclass{article}",
        rf"\usepackage[{encoding}]{{fontenc}}\usepackage{{booktabs}}",
        r"\begin{document}",
        table_text([TABLE, TABLE], "latex"),
        r"\end{document}",
    ]
    (tmp_path / "table.tex").write_text("\n".join(lines), encoding="utf-8")
    done = subprocess.run(
        ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "-no-shell-escape", "table.tex"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        errors="replace",
    )
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Missing character" not in (tmp_path / "table.log").read_text(encoding="latin-1")


def test_a_latex_table_is_one_of_booktabs() -> None:
    told = table_text([Table([{"model": "a_b", "value": "1 %"}], right=("value",)), Table([])], "latex").splitlines()
    assert told[1:] == [
        r"\begin{tabular}{lr}",
        r"\toprule",
        r"model & value \\",
        r"\midrule",
        r"a\_b & 1 \% \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


def test_a_markdown_table_has_as_many_cells_in_every_row() -> None:
    lines = table_text([TABLE], "markdown").splitlines()
    assert len(lines) == len(AWKWARD) + 2
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {3}
    assert lines[1] == "| --- | ---: |"
    assert markdown_escaped("<script>&_*") == r"&lt;script>&amp;\_\*"


def test_headline_numbers_of_results_as_text() -> None:
    found = Measurement(
        "top1_accuracy", 0.887, {"model": "my_model", "dataset": "photos"}, 1000, {}, Interval(0.866, 0.906, 0.95, "exact")
    )
    results = sp.Results((found,))
    assert r"my\_model & photos & Top-1 accuracy & 88.7\,\% & 86.6 to 90.6 & 1,000 \\" in sp.format_results(results, "latex")
    assert sp.format_results(results, "markdown").splitlines()[-1] == (
        "| my\\_model | photos | Top-1 accuracy | 88.7\u202f% | 86.6 to 90.6 | 1,000 |"
    )
    assert sp.format_results(sp.Results(()), "markdown") == ""


def test_parquet_takes_names_that_are_no_text() -> None:
    from pyarrow import parquet

    table = parquet.read_table(io.BytesIO(parquet_bytes([{"id": "caf\udce9.jpg", "n": 1}, {"id": "b", "n": "two"}])))
    assert table.to_pylist() == [{"id": "caf\\udce9.jpg", "n": "1"}, {"id": "b", "n": "two"}]
