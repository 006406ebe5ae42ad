"""What the command prints: tables for people on standard output, progress and remarks on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shiftproof.files import CONTROL, encodable, printable, write_whole
from shiftproof.places import as_path
from shiftproof.tables import Table as Table
from shiftproof.tables import table_text

if TYPE_CHECKING:
    from rich.progress import Progress

    from shiftproof.curation.funnel import Step
    from shiftproof.options import TextTables

LINE_SECONDS = 10
INTERRUPTED = 130


def remark(text: str) -> None:
    """A line for the person at the terminal, out of the way of what other programs read."""
    print(printable(text), file=sys.stderr)  # noqa: T201


def say(text: str) -> None:
    print(printable(text))  # noqa: T201


def say_json(value: object) -> None:
    import json

    text = value if isinstance(value, str) else encodable(json.dumps(value, ensure_ascii=False, indent=1))
    print(CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text))  # noqa: T201


def steps_table(steps: Iterable[Step], what: str) -> Table:
    """How many each step of a choice left."""
    left = f"{what} left"
    return Table([{"step": step.name, left: f"{step.left:,}"} for step in steps], right=(left,))


def say_table(table: Table) -> None:
    """A table; plain text where the output is not a terminal."""
    if not sys.stdout.isatty():
        _say_plain(table)
        return
    from rich.console import Console
    from rich.table import Table as Grid
    from rich.text import Text

    grid = Grid(box=None, pad_edge=False, header_style="bold")
    columns = list(table.rows[0]) if table.rows else []
    for column in columns:
        grid.add_column(column, justify="right" if column in table.right else "left", overflow="fold")
    for row in table.rows:
        grid.add_row(*(Text(printable(str(row[column]))) for column in columns))
    Console(highlight=False).print(grid)


def _say_plain(table: Table) -> None:
    """Columns as wide as their widest cell, two blanks apart."""
    if not table.rows:
        return
    columns = [[printable(str(text)) for text in (name, *(row[name] for row in table.rows))] for name in table.rows[0]]
    widths = [max(map(_width, column)) for column in columns]
    to_right = [name in table.right for name in table.rows[0]]
    for cells in zip(*columns, strict=True):
        blanks = [" " * (width - _width(cell)) for cell, width in zip(cells, widths, strict=True)]
        padded = [
            f"{blank}{cell}" if right else f"{cell}{blank}"
            for cell, blank, right in zip(cells, blanks, to_right, strict=True)
        ]
        say("  ".join(padded).rstrip())


def _width(text: str) -> int:
    """Columns of a terminal that a text takes: two for a letter of East Asia, none for what combines with the last."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(letter) else 2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def emit(
    value: object,
    *,
    as_json: bool,
    shown: Iterable[str | Table] = (),
    remarks: Iterable[str] = (),
    path: str | Path | None = None,
    files: TextTables | None = None,
) -> None:
    """What a command found: its value as JSON, or for people lines and tables, and remarks beside them.

    Tables are also written as `files` where that was asked for. The path of what was written comes last; beside JSON it is
    a remark.
    """
    if files is not None:
        shown = list(shown)
        write_tables([one for one in shown if isinstance(one, Table)], files)
    if as_json:
        say_json(value)
    else:
        for one in shown:
            if isinstance(one, Table):
                say_table(one)
            else:
                say(one)
        for text in remarks:
            remark(text)
    if path is not None:
        (remark if as_json else say)(str(path))


def write_tables(tables: Iterable[Table], files: TextTables) -> None:
    """Tables as LaTeX and Markdown, where that was asked for."""
    tables = list(tables)
    if files.latex is not None:
        write_whole(as_path(files.latex), encodable(table_text(tables, "latex")).encode())
    if files.markdown is not None:
        write_whole(as_path(files.markdown), encodable(table_text(tables, "markdown")).encode())


class interruptible:  # noqa: N801 reads as a statement
    """Ctrl-C becomes a sentence: nothing that was committed is lost."""

    def __init__(self, progress: Bar) -> None:
        self._progress = progress

    def __enter__(self) -> Bar:
        return self._progress

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self._progress.stop()
        if kind is KeyboardInterrupt:
            remark("\nstopped; every finished batch is stored: the same command goes on from here")
            sys.exit(INTERRUPTED)


def _rate(speed: float, unit: str) -> str:
    return f"{speed:.0f} {unit}/s" if speed >= 10 else f"{speed:.2g} {unit}/s"


class Bar:
    """Progress of a run: a bar on a terminal, a line now and then elsewhere."""

    def __init__(self, *, quiet: bool = False, unit: str = "images", before: str = "answered before") -> None:
        self._quiet, self._unit, self._words_before = quiet, unit, before
        self._bar: Progress | None = None
        self._task: Any = None

    def begin(self, what: str, total: int, done: int) -> None:
        what = printable(what)
        self._what, self._total, self._done, self._before = what, total, done, done
        self._status = ""
        self._started = self._spoke = time.monotonic()
        if self._quiet or done == total:
            return
        if sys.stderr.isatty():
            self._bar = _bar(self._unit)
            self._bar.start()
            self._task = self._bar.add_task(what, total=total, completed=done)
        else:
            again = f", {done:,} of them {self._words_before}" if done else ""
            remark(f"{what}: {total:,} {self._unit}{again}")

    def advance(self, images: int) -> None:
        self._done += images
        if self._bar is not None:
            self._bar.advance(self._task, images)
        elif not self._quiet and time.monotonic() - self._spoke > LINE_SECONDS:
            self._spoke = time.monotonic()
            rate = (self._done - self._before) / (self._spoke - self._started)
            left = max(0, self._total - self._done) / rate
            done = f"{self._what}: {self._done:,} of {self._total:,}, {_rate(rate, self._unit)}, {left:.0f} s left"
            remark(f"{done} ({self._status})" if self._status else done)

    def status(self, text: str) -> None:
        """Who works, beside how far it is."""
        self._status = text
        if self._bar is not None:
            self._bar.update(self._task, description=printable(f"{self._what} · {text}"))

    def end(self) -> None:
        now = self._done - self._before
        seconds = time.monotonic() - self._started
        self.stop()
        if now and not self._quiet:
            rate = _rate(now / max(seconds, 1e-9), self._unit)
            remark(f"{self._what}: {now:,} {self._unit} in {seconds:.1f} s, {rate}")

    def stop(self) -> None:
        """Takes the bar off the screen, finished or not."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def _bar(unit: str) -> Progress:
    """One line whatever the width: a long name is cut, the figures never."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.table import Column
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text("" if speed is None else _rate(speed, unit), no_wrap=True)

    name = TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, ratio=1))
    columns = (name, BarColumn(bar_width=20), MofNCompleteColumn(), Rate(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True, expand=True)
