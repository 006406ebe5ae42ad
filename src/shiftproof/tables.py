"""Tables as texts and files: LaTeX, Markdown, CSV and Parquet."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from shiftproof.files import defused, encodable, printable
from shiftproof.registry import missing_extra

TextFormat = Literal["latex", "markdown"]


class Table(NamedTuple):
    """Rows under their keys; the columns to the right hold numbers."""

    rows: Sequence[Mapping[str, Any]]
    right: Sequence[str] = ()


def table_text(tables: Iterable[Table], form: TextFormat) -> str:
    """Tables one below the other, for a paper or a page; those without rows are left out."""
    write = {"latex": _latex, "markdown": _markdown}[form]
    head = "% needs \\usepackage{booktabs} in the preamble\n" if form == "latex" else ""
    return head + "\n".join(write(table) for table in tables if table.rows)


def _latex(table: Table) -> str:
    columns = list(table.rows[0])
    lines = [[latex_escaped(str(row[name])) for name in columns] for row in table.rows]
    first, *rest = (" & ".join(cells) + r" \\" for cells in ([latex_escaped(name) for name in columns], *lines))
    sides = "".join("r" if name in table.right else "l" for name in columns)
    body = [rf"\begin{{tabular}}{{{sides}}}", r"\toprule", first, r"\midrule", *rest, r"\bottomrule", r"\end{tabular}"]
    return "\n".join(body) + "\n"


LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        **{letter: f"\\{letter}" for letter in "{}$&#_%"},
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "`": r"\textasciigrave{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        '"': r"\char34{}",
        # after the end of a row these would be read as its argument
        **{letter: f"{{{letter}}}" for letter in "[]*"},
        "\0": "{}",
        "\u00a0": "~",
        "\u2009": r"\,",
        "\u202f": r"\,",
        "–": "--",
        "—": "---",
        "…": r"\ldots{}",
        "−": "$-$",
        "±": r"$\pm$",
        "×": r"$\times$",
        "≤": r"$\leq$",
        "≥": r"$\geq$",
        "≈": r"$\approx$",
        "→": r"$\rightarrow$",
        "°": r"$^\circ$",
    }
)


def latex_escaped(text: str) -> str:
    r"""A text in one line, as LaTeX prints it; letters of other scripts stay, for XeLaTeX and LuaLaTeX.

    >>> print(latex_escaped("50 % of a_b\\c"))
    50 \% of a\_b\textbackslash{}c
    """
    apart = re.sub(r"([-,'])(?=\1)", "\\1\0", printable(_in_a_line(text)))  # two of them would become one sign
    return apart.translate(LATEX)


def _markdown(table: Table) -> str:
    columns = list(table.rows[0])
    rule = ["---:" if name in table.right else "---" for name in columns]
    rows = [[markdown_escaped(str(row[name])) for name in columns] for row in table.rows]
    cells = ([markdown_escaped(name) for name in columns], rule, *rows)
    return "".join(f"| {' | '.join(row)} |\n" for row in cells)


MARKDOWN = str.maketrans({**{letter: f"\\{letter}" for letter in "\\`*_[|~$"}, "<": "&lt;", "&": "&amp;"})


def markdown_escaped(text: str) -> str:
    r"""A text in one line, with Markdown and HTML escaped.

    >>> print(markdown_escaped("<b>|[a](b)"))
    &lt;b>\|\[a](b)
    """
    return printable(_in_a_line(text)).translate(MARKDOWN)


def _in_a_line(text: str) -> str:
    return " ".join(text.splitlines()).replace("\t", " ")


def csv_text(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], *, head: bool = True) -> str:
    """Rows as CSV; texts that a spreadsheet would take for a formula begin with an apostrophe."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=columns, lineterminator="\n")
    if head:
        writer.writeheader()
    writer.writerows({name: defused(cell) for name, cell in row.items()} for row in rows)
    return encodable(text.getvalue())


def parquet_bytes(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Rows as a Parquet file; a column of mixed kinds, as classes by name and by number, becomes text."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ModuleNotFoundError as missing:
        raise missing_extra("Parquet", missing) from missing
    file = io.BytesIO()
    columns = {name: _alike([row[name] for row in rows]) for name in (rows[0] if rows else ())}
    parquet.write_table(pyarrow.table(columns), file)
    return file.getvalue()


def as_dataframe(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Rows as a pandas DataFrame."""
    try:
        import pandas
    except ModuleNotFoundError as missing:
        raise missing_extra("a pandas table", missing) from missing
    return pandas.DataFrame(rows)


def _alike(values: Sequence[Any]) -> Sequence[Any]:
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) > 1 and not kinds <= {int, float}:
        values = [None if value is None else str(value) for value in values]
    return [encodable(value) if isinstance(value, str) else value for value in values]
