"""A verdict on models: the scorecard, the worst findings, and what both are judged by."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from shiftproof.types.findings import GalleryItem, Interval, Measurement
from shiftproof.types.images import DatasetRef

Mark = Literal["good", "typical", "weak"]
MARKS: tuple[Mark, ...] = get_args(Mark)
"""The best first."""

EXAMPLES = "examples"
"""Galleries of this name hold pictures for the first page of a report; no section draws them."""


@dataclass(frozen=True)
class Standard:
    """What a number is judged by, a rule or published models: it is weak beyond `weak`, and good as far as `good`.

    >>> rule = Standard("rule", weak=0.7, good=0.9)
    >>> rule.marks(0.91, 0.95), rule.marks(0.6, 0.8), rule.marks(0.6, 0.95)
    (('good',), ('typical', 'weak'), ('good', 'typical', 'weak'))
    """

    told: str
    weak: float
    good: float | None = None  # None: a limit alone
    worse: Literal["above", "below"] = "below"  # on which side of `weak` a number is weak
    published: tuple[float, ...] = ()  # the same number of published models, lowest first; quantiles where they are many

    def mark(self, value: float) -> Mark:
        """The mark of one value."""
        if self.excess(value, self.weak) > 0:
            return "weak"
        return "good" if self.good is not None and self.excess(value, self.good) <= 0 else "typical"

    def marks(self, low: float, high: float) -> tuple[Mark, ...]:
        """Every mark that the true value may deserve if it lies between these two, the best first."""
        best, worst = sorted((self.mark(low), self.mark(high)), key=MARKS.index)
        return MARKS[MARKS.index(best) : MARKS.index(worst) + 1]

    def excess(self, value: float, limit: float) -> float:
        """How far a value is on the worse side of a limit; negative on the better side."""
        return value - limit if self.worse == "above" else limit - value


@dataclass(frozen=True)
class Axis:
    """A line of the scorecard."""

    name: str
    title: str
    found: Measurement
    section: str  # key of the report's section that has more of it
    standard: Standard | None = None  # None: nothing to judge it by

    @property
    def marks(self) -> tuple[Mark, ...]:
        """The marks that its confidence interval allows; none without a standard or an interval."""
        if self.standard is None or self.found.ends is None:
            return ()
        return self.standard.marks(*self.found.ends)

    @property
    def mark(self) -> Mark | None:
        """The one mark that its confidence interval allows; None where there are several, or none."""
        return self.marks[0] if len(self.marks) == 1 else None


@dataclass(frozen=True)
class Again:
    """How a model was measured on a dataset, for steps that go on from there."""

    model: str
    dataset: str
    command: str = ""  # of model, dataset and their settings; empty where these are not what can be typed
    given: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)  # options as typed, by study and option
    store: str = ""


Setting: TypeAlias = str | bool | tuple[str, ...]


@dataclass(frozen=True)
class NextStep:
    """What to do about a weakness, and the studies that tell more of it, where there are some."""

    told: str
    studies: Mapping[str, Mapping[str, Setting]] = field(default_factory=dict)  # with the options of each
    report: str = "report.html"

    def command(self, again: Again) -> str:
        """The command that goes on from another, with the options that were given for these studies.

        >>> before = Again("net", "photos", "shiftproof run net.onnx photos", {"corruption": {"--seed": ("--seed", "3")}})
        >>> NextStep("Look closer.", {"corruption": {"corruptions": ("fog",)}}, "fog.html").command(before)
        'shiftproof run net.onnx photos --studies corruption --seed 3 --corruptions fog -o fog.html'
        """
        words: dict[str, tuple[str, ...]] = {}
        for study, settings in self.studies.items():
            words |= again.given.get(study, {})
            for name, value in settings.items():
                typed = f"--{name.replace('_', '-')}"
                words[typed] = (typed,) if value is True else (typed, _typed(value))
        options = [word for some in words.values() for word in some]
        return f"{again.command} {shlex.join(['--studies', ','.join(self.studies), *options, '-o', self.report])}"


def _typed(value: Setting) -> str:
    return ",".join(value) if isinstance(value, tuple) else str(value)


@dataclass(frozen=True)
class Weakness:
    """One number that the evidence shows to be on the worse side of its standard."""

    sentence: str
    found: Measurement
    standard: Standard
    interval: Interval  # of all candidates together
    beyond: float  # how far its nearer end is on the worse side of the standard
    p: float  # corrected for all candidates
    kind: str  # what it is one of, as classes or corruptions
    section: str
    next_step: NextStep
    example: GalleryItem | None = None
    dataset: DatasetRef | None = None  # of the example
    more: int = 0  # others of its kind that are not among the findings shown


@dataclass(frozen=True)
class Profile:
    """The verdict on one model."""

    model: str
    axes: tuple[Axis, ...]
    weaknesses: tuple[Weakness, ...]  # the worst first
    candidates: int  # how many numbers were looked at, of all models judged together
    images: int = 0  # behind the largest of them

    @property
    def datasets(self) -> Sequence[str]:
        """Names of the datasets that the scorecard is about."""
        return list(dict.fromkeys(str(axis.found.about["dataset"]) for axis in self.axes if "dataset" in axis.found.about))
