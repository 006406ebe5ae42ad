"""What the gate says: to people in sentences, to machines as JSON, JUnit XML, GitHub annotations and Markdown."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from shiftproof.errors import listed
from shiftproof.files import printable
from shiftproof.metrics.table import Unit, metric_info
from shiftproof.metrics.wording import counted, figure, span
from shiftproof.studies.gate.checks import Check, Verdict, WorstSlice
from shiftproof.types import encodable

EXIT_CODES: Mapping[Verdict, int] = {"pass": 0, "fail": 3, "undecided": 4}
SIGNS: Mapping[Verdict, str] = {"pass": "✅", "fail": "❌", "undecided": "⚠️"}
LEVELS: Mapping[Verdict, str] = {"pass": "notice", "fail": "error", "undecided": "warning"}
MOST_NAMED = 5


@dataclass(frozen=True)
class Gate:
    """The verdict on a model, and what stands behind it."""

    verdict: Verdict
    model: str
    dataset: str
    against: str | None  # the model that it is compared with
    images: int
    compared: int  # of these, images that the baseline has too
    checks: tuple[Check, ...]
    worst: tuple[WorstSlice, ...] = ()
    slices: int = 0  # that were looked at for the worst
    lost: tuple[str, ...] = ()  # images that only the baseline has right, the most confident mistakes first
    gained: int = 0  # images that only the new model has right
    new_images: tuple[str, ...] = ()  # without a result of the baseline
    gone_images: tuple[str, ...] = ()  # of the baseline, but not in the dataset
    changed_images: tuple[str, ...] = ()  # another picture or label under the same id
    notes: tuple[str, ...] = ()
    written: str | None = None  # the baseline file that was written
    made: str = ""
    versions: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """0 pass, 3 fail, 4 undecided."""
        return EXIT_CODES[self.verdict]

    @property
    def headline(self) -> str:
        """One line: the verdict, on what, against what."""
        beside = f" against {self.against}" if self.against else ""
        return f"{self.verdict}: {self.model}{beside} on {self.dataset}, {counted(self.images, 'image')}"

    @property
    def remarks(self) -> list[str]:
        """What else is to be known: images that could not be paired, and notes."""
        kinds = {"new": self.new_images, "gone": self.gone_images, "changed": self.changed_images}
        told = [
            f"{counted(len(ids), 'image')} {kind} since the baseline, not compared: {listed(ids, MOST_NAMED)}"
            for kind, ids in kinds.items()
            if ids
        ]
        return [*told, *self.notes]

    def rows(self) -> list[dict[str, str]]:
        """The checks as a table, for people."""
        return [
            {
                "rule": rule_told(one),
                "new": _tidy(figure(one.value, metric_info(one.metric).unit)),
                "baseline": "" if one.baseline is None else _tidy(figure(one.baseline, metric_info(one.metric).unit)),
                "difference": "" if one.baseline is None else _tidy(figure(one.difference or 0.0, _unit(one))),
                "90 % CI": _tidy(span(one.interval, _unit(one)).removesuffix(" points")),
                "images": f"{one.images:,}",
                "verdict": one.verdict if one.outcome == one.verdict else f"{one.verdict} ({one.outcome})",
            }
            for one in self.checks
        ]

    def sentences(self) -> list[str]:
        """What an undecided check would need, for people."""
        return [f"{rule_told(one)}: {_advice(one)}" for one in self.checks if one.verdict == "undecided" and one.images]

    def told(self) -> list[str]:
        """A sentence for each check that does not pass."""
        return [told(one) for one in self.checks if one.outcome != "pass"]

    def to_json(self) -> str:
        """Everything as one JSON document."""
        data = dataclasses.asdict(self)
        data["exit_code"] = self.exit_code
        data["checks"] = [
            {"rule": rule_told(one), **plain, "difference": one.difference, "outcome": one.outcome, "told": told(one)}
            for one, plain in zip(self.checks, data["checks"], strict=True)
        ]
        return encodable(json.dumps(data, ensure_ascii=False, indent=1))

    def to_junit(self) -> str:
        """JUnit XML, a test case a check: fail is a failure, undecided is skipped unless a policy says otherwise."""
        failures, skipped = (sum(one.outcome == kind for one in self.checks) for kind in ("fail", "undecided"))
        counts = {"tests": str(len(self.checks)), "failures": str(failures), "skipped": str(skipped), "errors": "0"}
        root = ElementTree.Element("testsuites", {"name": "shiftproof gate", **counts})
        named = {"name": _xml(f"{self.model} on {self.dataset}"), "timestamp": self.made.partition("+")[0], "time": "0"}
        suite = ElementTree.SubElement(root, "testsuite", {**named, **counts})
        for one in self.checks:
            case = {"classname": _xml(f"gate.{self.dataset}"), "name": _xml(rule_told(one)), "time": "0"}
            element = ElementTree.SubElement(suite, "testcase", case)
            if one.outcome == "fail":
                ElementTree.SubElement(element, "failure", {"message": _xml(told(one)), "type": one.verdict})
            elif one.outcome == "undecided":
                ElementTree.SubElement(element, "skipped", {"message": _xml(told(one))})
            ElementTree.SubElement(element, "system-out").text = _xml(told(one))
        ElementTree.indent(root)
        return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"

    def to_annotations(self) -> list[str]:
        """Workflow commands of GitHub: one for each check that does not pass, or one that all do."""
        open_checks = [one for one in self.checks if one.outcome != "pass"]
        if not open_checks:
            return [_annotation("notice", "shiftproof gate", self.headline)]
        return [_annotation(LEVELS[one.outcome], f"shiftproof gate: {one.verdict}", told(one)) for one in open_checks]

    def to_markdown(self) -> str:
        """A comment for a pull request: the verdict, every check, the worst slices and pictures' names."""
        beside = f" against {_code(self.against)}" if self.against else ""
        lines = [
            f"### {SIGNS[self.verdict]} shiftproof gate: {self.verdict}",
            "",
            f"{_code(self.model)}{beside} on {_code(self.dataset)}, {counted(self.images, 'image')}",
            "",
            *_grid(("", "rule", "new", "baseline", "difference (90 % CI)"), map(_row, self.checks)),
        ]
        open_checks = [told(one) for one in self.checks if one.verdict == "undecided"]
        lines += ["", *(f"- {_plain(text)}" for text in open_checks)] if open_checks else []
        if self.worst:
            lines += [
                "",
                f"**Worst slices** of {self.slices}, chosen after looking, so none of them is a test:",
                "",
                *_grid(("slice", "images", "difference", "pictures that got worse"), map(_slice_row, self.worst)),
            ]
        elif self.lost:
            pictures = ", ".join(map(_code, self.lost[:MOST_NAMED]))
            counts = f"{len(self.lost)} by the baseline alone, {self.gained} by the new model alone"
            lines += ["", f"Correct: {counts}. Pictures that got worse: {pictures}"]
        lines += ["", *(f"- {_plain(text)}" for text in self.remarks)] if self.remarks else []
        return "\n".join(lines) + "\n"


def rule_told(check: Check) -> str:
    """A rule in words, as "Top-1 accuracy: at most 1.0 points below the baseline"."""
    info = metric_info(check.metric)
    where = "".join([f" of {check.slice}" if check.slice else "", f" under {check.condition}" if check.condition else ""])
    limit = figure(check.limit, "loss" if info.unit == "share" and check.kind == "margin" else info.unit)
    worse = "below" if info.direction == "high" else "above"
    held = {"margin": f"at most {limit} {worse} the baseline", "least": f"at least {limit}", "most": f"at most {limit}"}
    return _tidy(f"{info.title}{where}: {held[check.kind]}")


def told(check: Check) -> str:
    """A check in a sentence: the rule, the numbers, and of an open one how many images would decide."""
    unit = metric_info(check.metric).unit
    policy = f", which counts as {check.outcome}" if check.verdict == "undecided" and check.outcome != "undecided" else ""
    if not check.images:
        return _tidy(f"{rule_told(check)}: undecided{policy}, there is no image to compare")
    numbers = f"{figure(check.value, unit)} of {counted(check.images, 'image')}"
    if check.difference is not None and check.baseline is not None:
        numbers = f"{numbers}, baseline {figure(check.baseline, unit)}, {_change(check)}"
    elif check.interval is not None:
        numbers = f"{numbers} (90 % CI {span(check.interval, unit)})"
    if check.clusters < check.images:
        numbers += f", {counted(check.clusters, check.unit)}"
    text = f"{rule_told(check)}: {check.verdict}{policy}; {numbers}"
    return _tidy(f"{text}; {_advice(check)}" if check.verdict == "undecided" else text)


def _advice(check: Check) -> str:
    """How many images would decide, and what these can notice."""
    if check.interval is None:
        return "too few clusters for an interval"
    unit = metric_info(check.metric).unit
    measured = "difference" if check.kind == "margin" else "value"
    size = "" if check.detectable is None else figure(check.detectable, "loss" if unit == "share" else unit)
    more = (
        f"about {rounded(check.needed):,} images would decide it, if the {measured} stays as it is"
        if check.needed
        else f"the {measured} is the limit itself, which no number of images would decide"
    )
    what = f"a drop of {size}" if check.kind == "margin" else f"a value {size} on the wrong side"
    return f"{more}; these {counted(check.images, 'image')} would detect {what} with 80 % power"


def rounded(number: int) -> int:
    """Upwards to two figures, since more would pretend to know.

    >>> rounded(2314), rounded(99), rounded(101)
    (2400, 99, 110)
    """
    scale: int = 10 ** max(0, len(str(number)) - 2)
    return -(-number // scale) * scale


def _unit(check: Check) -> Unit:
    """Of the number that is tested."""
    unit = metric_info(check.metric).unit
    return "points" if check.kind == "margin" and unit == "share" else unit


def _change(check: Check) -> str:
    return f"{figure(check.difference or 0.0, _unit(check))} ({span(check.interval, _unit(check)).removesuffix(' points')})"


def _row(check: Check) -> Sequence[str]:
    unit = metric_info(check.metric).unit
    baseline = "" if check.baseline is None else figure(check.baseline, unit)
    change = _change(check) if check.baseline is not None else f"CI {span(check.interval, unit)}"
    return SIGNS[check.outcome], _plain(rule_told(check)), figure(check.value, unit), baseline, change


def _slice_row(one: WorstSlice) -> Sequence[str]:
    pictures = ", ".join(map(_code, one.pictures))
    return _code(f"{one.fact}={one.group}"), f"{one.images:,}", figure(one.difference, "points"), pictures


def _grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *lines]


def _code(text: str | None) -> str:
    """A name as code, which nothing in it can end; @ calls nobody there."""
    return f"`{printable(text or '').replace('`', chr(39))}`"


def _plain(text: str) -> str:
    """A sentence that is read as it stands: no HTML, no links, no mentions."""
    return re.sub(r"([\\`*_<>\[\]#@])", r"\\\1", printable(text)).replace("\\@", "@\u200b")


def _tidy(text: str) -> str:
    return printable(text.replace("\u202f", " "))


def _xml(text: str) -> str:
    """What XML can hold."""
    return re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "?", printable(text))


def _annotation(level: str, title: str, message: str) -> str:
    body = message.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return f"::{level} title={title.replace('%', '%25').replace(':', '%3A').replace(',', '%2C')}::{body}"
