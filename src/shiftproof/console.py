"""What the command prints: tables for people on standard output, progress and remarks on standard error."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.table import Column, Table
from rich.text import Text

from shiftproof.curation.sifting import Step
from shiftproof.files import CONTROL, printable
from shiftproof.metrics.meanings import meaning_of
from shiftproof.reports.words import figure, has_too_few, unit_of_evidence
from shiftproof.studies.results import Results, encodable
from shiftproof.studies.verdicts import verdicts
from shiftproof.types import Measurement

SUMMARY_ABOUT = {"model", "image_set", "condition", "severity", "versus", "fact", "group", "scored"}
LINE_SECONDS = 10


def remark(text: str) -> None:
    """A line for the person at the terminal, out of the way of what other programs read."""
    print(printable(text), file=sys.stderr)  # noqa: T201


def say(text: str) -> None:
    print(printable(text))  # noqa: T201


def say_json(value: object) -> None:
    text = value if isinstance(value, str) else encodable(json.dumps(value, ensure_ascii=False, indent=1))
    print(CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text))  # noqa: T201


def say_table(rows: Sequence[Mapping[str, Any]], *, right: Sequence[str] = ()) -> None:
    """Rows under their keys, numbers to the right; plain text where the output is not a terminal."""
    console = Console(highlight=False, soft_wrap=not sys.stdout.isatty())
    table = Table(box=None, pad_edge=False, header_style="bold")
    columns = list(rows[0]) if rows else []
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(str(row[column]))) for column in columns))
    if not sys.stdout.isatty():
        console.width = 400
    console.print(table)


def say_steps(steps: Iterable[Step], what: str) -> None:
    """What each step of a choice left."""
    left = f"{what} left"
    say_table([{"step": step.name, left: f"{step.left:,}"} for step in steps], right=(left,))


OTHER_HEADLINES = (
    "imagenet_o_aupr",
    "answer_kept_share",
    "pm_k_accuracy",
    "pm_k_drop",
    "hardest_frames_accuracy",
    "mean_average_precision",
    "anchor_average_precision",
    "pm_k_average_precision",
    "pm_k_precision_drop",
    "object_accuracy",
    "object_difference",
    "scaled_crop_total",
    "input_size_accuracy",
    "hot_point_miss_rate",
    "hot_region_miss_rate",
)
"""Numbers that are about more than a model and its images, and yet what was asked for."""


def say_results(results: Results) -> None:
    """The headline numbers, what may be said of models compared, and what was set aside or left out."""
    found = [one for one in results.measurements if _is_headline(one)]
    detectors = list(_of_detectors(results.measurements))
    left_open = _sampling_errors(results.measurements)
    for some in filter(None, (found, detectors)):
        rows = [{**_row(one, some), **_left_open(one, some, left_open)} for one in some]
        say_table(rows, right=("value", "95 % CI", "images", "cases", THESE_PHOTOS))
    if found or detectors:
        say(unit_of_evidence(results))
    if left_open:
        say(f"{THESE_PHOTOS.capitalize()}: what cells that were not run leave open of the number of these photos alone.")
    for verdict in verdicts(results.measurements):
        say(verdict.text)
    for image_set in results.image_sets:
        for image in image_set.set_aside[:20]:
            remark(f"set aside: {image.id}: {image.reason}")
        if len(image_set.set_aside) > 20:
            remark(f"set aside: {len(image_set.set_aside) - 20} more in {image_set.name}; --json lists them all")
    for reason in results.skipped:
        remark(f"left out: {reason}")
    for warning in results.warnings:
        remark(f"warning: {warning}")


def _is_headline(measurement: Measurement) -> bool:
    if measurement.metric in OTHER_HEADLINES:
        return True
    per_group = measurement.metric == "group_accuracy"
    return not per_group and set(measurement.about) <= SUMMARY_ABOUT


def _of_detectors(measurements: Sequence[Measurement]) -> Iterator[Measurement]:
    """AUROC of each detector at either goal: on the inside images as they are, against all outside sets at once."""
    found = [one for one in measurements if one.metric == "auroc" and one.about.get("inside") == one.about["image_set"]]
    # the last outside set is all of them, where there are several
    last = {(one.about["image_set"], one.about["goal"]): one.about["outside"] for one in found}
    yield from (one for one in found if last[one.about["image_set"], one.about["goal"]] == one.about["outside"])


def _row(measurement: Measurement, beside: Sequence[Measurement]) -> dict[str, str]:
    meaning = meaning_of(measurement.metric)
    keys = list(dict.fromkeys(key for one in beside for key in one.about))
    several = [key for key in keys if key in ("model", "image_set") or len({one.about.get(key) for one in beside}) > 1]
    return {
        **{key.replace("_", " "): str(measurement.about.get(key, "")) for key in several},
        "metric": meaning.title,
        "value": figure(measurement.value, meaning.unit),
        "95 % CI": _interval(measurement),
        "images": f"{measurement.images:,}",
        **({"cases": _cases(measurement)} if any(_cases(one) != f"{one.images:,}" for one in beside) else {}),
    }


def _interval(measurement: Measurement) -> str:
    if measurement.interval is None:
        return "too few" if has_too_few(measurement) else ""
    return " to ".join(_bare(figure(bound, meaning_of(measurement.metric).unit)) for bound in measurement.interval)


def _cases(measurement: Measurement) -> str:
    return f"{measurement.images if measurement.clusters is None else measurement.clusters:,}"


THESE_PHOTOS = "exactly these photos"
"""The column of sampling errors."""

_Whose = frozenset[tuple[str, str | int]]


def _sampling_errors(measurements: Sequence[Measurement]) -> dict[tuple[str, _Whose], float]:
    """By the number that each is of, where only some cells were run."""
    return {
        (str(one.about["number"]), frozenset(item for item in one.about.items() if item[0] != "number")): one.value
        for one in measurements
        if one.metric == "sampling_error" and one.value > 0
    }


def _left_open(
    measurement: Measurement, beside: Sequence[Measurement], errors: Mapping[tuple[str, _Whose], float]
) -> dict[str, str]:
    found = {(one.metric, frozenset(one.about.items())) for one in beside}
    if not found & errors.keys():
        return {}
    error = errors.get((measurement.metric, frozenset(measurement.about.items())))
    return {THESE_PHOTOS: "" if error is None else f"± {_bare(figure(error, 'share'))}"}


def _bare(text: str) -> str:
    """A figure without its unit, which stands beside it already."""
    return text.removesuffix("points").removesuffix("%").strip()


class _Rate(ProgressColumn):
    def __init__(self, unit: str) -> None:
        super().__init__()
        self._unit = unit

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else _rate(speed, self._unit), no_wrap=True)


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
        self._started = self._spoke = time.monotonic()
        if self._quiet or done == total:
            return
        if sys.stderr.isatty():
            # one line whatever the width: a long name is cut, the figures never
            name = TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, ratio=1))
            columns = (name, BarColumn(bar_width=20), MofNCompleteColumn(), _Rate(self._unit), TimeRemainingColumn())
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True, expand=True)
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
            left = (self._total - self._done) / rate
            remark(f"{self._what}: {self._done:,} of {self._total:,}, {_rate(rate, self._unit)}, {left:.0f} s left")

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
