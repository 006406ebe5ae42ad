"""What people see on a terminal: one line of progress, gone when the run is over."""

from __future__ import annotations

import io
import json
import re
import sys
from typing import Any

import pytest

from shiftproof.cli import results as printed
from shiftproof.cli.emit import Bar, Table, remark, say, say_json, say_table
from shiftproof.metrics.table import MetricInfo
from shiftproof.reports import headline
from shiftproof.types import Measurement, Results


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def open_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Standard error as a terminal of 60 columns."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    for name, value in {"TERM": "xterm", "COLUMNS": "60", "LINES": "20"}.items():
        monkeypatch.setenv(name, value)
    return terminal


def test_a_long_name_leaves_the_figures_on_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch)
    bar = Bar()
    bar.begin("a[/]model_with_a_name_that_goes_on_and_on · photographs · clean", total=200, done=0)
    bar.advance(40)
    bar.advance(40)
    bar.end()
    lines = re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.getvalue()))
    shown = [line for line in lines if " 80/200 " in line]
    assert shown
    assert all(line.startswith("a[/]m") and "images/s" in line and len(line) <= 60 for line in shown)


def test_the_bar_makes_room_for_one_line_that_sums_up(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch)
    bar = Bar()
    bar.begin("model · photos · clean", total=10, done=4)
    bar.advance(6)
    bar.end()
    erased, summary = terminal.getvalue().rsplit("\x1b[2K", 1)
    assert erased
    assert re.fullmatch(r"model · photos · clean: 6 images in [\d.]+ s, \d+ images/s\n", summary)


def test_names_do_not_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    name = "a\x1b[2J\u202e\x9b31m.jpg"
    say(name)
    remark(name)
    say_table(Table([{"image": name}]))
    spoken = capsys.readouterr()
    told = r"a\x1b[2J\u202e\x9b31m.jpg"
    assert spoken.err == f"{told}\n"
    assert [line.strip() for line in spoken.out.splitlines()] == [told, "image", told]
    say_json({"image": name})
    text = capsys.readouterr().out
    assert json.loads(text) == {"image": name}
    assert "\x1b" not in text
    assert "\x9b" not in text


@pytest.mark.parametrize(
    ("rule", "about", "shown"), [("always", 1, True), (None, 1, False), (None, 0, True), ("never", 0, False)]
)
def test_whether_a_number_is_printed_stands_with_its_metric(
    rule: Any, about: int, shown: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    info = MetricInfo("Recovered", "", headline=rule)
    monkeypatch.setattr(headline, "metric_info", lambda _: info)
    whose: dict[str, str | int] = {"model": "net", "dataset": "photos"} | ({"attempt": 2} if about else {})
    printed.say_results(Results((Measurement("recovered", 0.5, whose, 10, {}),)))
    assert ("Recovered" in capsys.readouterr().out) == shown
