"""A stream of images seen through a guard: a log that is appended to, shares by window, and evidence of drift.

::

    watch/watch.jsonl  a line that says what is watched, then a line for each image, appended and never changed
          watch.html   the page: has the score drifted, how often does the guard abstain

What is known of a stream is computed from its log, so that a watch that was killed goes on where it stopped.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from shiftproof.errors import BadInput
from shiftproof.files import parse_json, refusal, write_whole
from shiftproof.metrics.intervals import clopper_pearson
from shiftproof.metrics.sequential import DriftTest, likely_start
from shiftproof.metrics.wording import figure, images
from shiftproof.studies.guard.card import rate
from shiftproof.studies.guard.guard import ARRAYS, REASONS, Guard, calibrated
from shiftproof.studies.threshold.expected import Share
from shiftproof.types import Features, Logits

FORMAT = 1
LOG, PAGE = "watch.jsonl", "watch.html"
SEED = 0


@dataclass(frozen=True)
class Observation:
    """One image of a stream, as the guard saw it; None where that is not known, or no number."""

    id: str
    ood_score: float | None
    accept: bool
    reason: str
    calibrated_probability: float | None = None
    entropy: float | None = None  # of the calibrated probabilities, in nats
    predicted: int | None = None


@dataclass(frozen=True)
class Window:
    """So many images in a row. What is estimated of them without labels, such as their accuracy, belongs here too."""

    first: int  # image, counted from 1
    images: int
    abstained: Share
    median_score: float
    mean_probability: float | None  # None where none is known
    evidence: float  # at its end


def observed(guard: Guard, ids: Sequence[str], logits: Logits, features: Features | None) -> list[Observation]:
    """What the guard says of images, a value each."""
    found = guard.check(logits, features)
    rows = np.where(np.isfinite(logits), logits, 0)
    probabilities = calibrated(rows, guard.record.model.gives, guard.record.calibration.temperature)
    logs = np.log(probabilities, out=np.zeros_like(probabilities), where=probabilities > 0)
    entropies = -(probabilities * logs).sum(axis=1)
    return [
        Observation(
            one,
            _number(found.ood_score[row]),
            bool(found.accept[row]),
            str(found.reason[row]),
            _number(found.calibrated_probability[row]),
            None if found.reason[row] == "not_finite" else _number(entropies[row]),
            None if found.reason[row] == "not_finite" else int(found.predicted[row]),
        )
        for row, one in enumerate(ids)
    ]


def from_score(guard: Guard, id_: str, score: float, probability: float | None = None) -> Observation:
    """An image of which only its score was sent here."""
    if not math.isfinite(score):
        return Observation(id_, None, accept=False, reason="not_finite", calibrated_probability=probability)
    accept = score < guard.threshold
    return Observation(id_, score, accept, "accepted" if accept else "ood_score", probability)


def _number(value: Any) -> float | None:
    return float(value) if math.isfinite(value) else None


class Watch:
    """All that was seen of a stream, and what follows from it."""

    def __init__(self, guard: Guard, *, false_alarm: float = 0.01, window: int = 100) -> None:
        if not 0 < false_alarm < 1:
            raise BadInput(f"the probability of a false alarm lies between 0 and 1, got {false_alarm}")
        if window < 1:
            raise BadInput(f"a window has at least one image, got {window}")
        self.guard, self.false_alarm, self.window = guard, false_alarm, window
        self.observations: list[Observation] = []
        self.test = DriftTest(guard.reference)
        self._tested: list[int] = []  # places of the images that have a score
        self._coins = np.random.default_rng(SEED)

    def add(self, observations: Sequence[Observation]) -> list[dict[str, Any]]:
        """More images; as lines of the log, with the rank of each score and the evidence after it."""
        start = len(self.observations)
        self.observations += observations
        scored = [(place, one.ood_score) for place, one in enumerate(observations) if one.ood_score is not None]
        ranks = iter(self.test.add([score for _, score in scored], self._coins.random(len(scored)).tolist()))
        evidence = iter(self.test.history[len(self._tested) :])
        last = self.test.history[len(self._tested) - 1] if self._tested else 1.0
        self._tested += [start + place for place, _ in scored]
        lines = []
        for one in observations:
            rank = next(ranks) if one.ood_score is not None else None
            last = next(evidence) if one.ood_score is not None else last
            lines.append({**asdict(one), "rank": rank, "evidence": last})
        return lines

    def __len__(self) -> int:
        return len(self.observations)

    @property
    def level(self) -> float:
        """The evidence at which drift is reported: reached without drift with at most the probability of a false alarm."""
        return 1 / self.false_alarm

    @property
    def evidence(self) -> float:
        return self.test.evidence

    @property
    def tested(self) -> list[int]:
        """The images, counted from 1, that have a score and so a part in the test, in its order."""
        return [place + 1 for place in self._tested]

    @property
    def alarm(self) -> int | None:
        """The image, counted from 1, at which drift was first reported; None: it never was."""
        place = self.test.alarm_at(self.level)
        return None if place is None else self._tested[place - 1] + 1

    @property
    def began(self) -> int | None:
        """The image from which on the scores most likely differ, judged when drift was reported."""
        place = self.test.alarm_at(self.level)
        return None if place is None else self._tested[likely_start(self.test.ranks[:place]) - 1] + 1

    @property
    def abstained(self) -> Share:
        """Share of images that the guard abstains on."""
        return _abstained(self.observations)

    @cached_property
    def reference_abstained(self) -> float:
        """The same among the in-distribution images that the guard was made with."""
        return float((self.guard.reference >= self.guard.threshold).mean())

    @property
    def reasons(self) -> dict[str, int]:
        """Images by reason."""
        return {reason: sum(one.reason == reason for one in self.observations) for reason in REASONS}

    def windows(self) -> Iterator[Window]:
        """Consecutive images, the last window perhaps with fewer."""
        evidence = dict(zip(self._tested, self.test.history, strict=True))
        last = 1.0
        for start in range(0, len(self), self.window):
            some = self.observations[start : start + self.window]
            last = next(
                (evidence[place] for place in range(start + len(some) - 1, start - 1, -1) if place in evidence), last
            )
            scores = [one.ood_score for one in some if one.ood_score is not None]
            known = [one.calibrated_probability for one in some if one.calibrated_probability is not None]
            yield Window(
                start + 1,
                len(some),
                _abstained(some),
                float(np.median(scores)) if scores else math.nan,
                float(np.mean(known)) if known else None,
                last,
            )

    def rows(self, most: int = 10) -> list[dict[str, str]]:
        """The last windows, for people."""
        return [
            {
                "images": f"{one.first:,} to {one.first + one.images - 1:,}",
                "abstained": rate(one.abstained),
                "median score": f"{one.median_score:.4g}",
                "evidence": f"{one.evidence:.3g}",
            }
            for one in list(self.windows())[-most:]
        ]

    def sentences(self) -> list[str]:
        """How often the guard abstains and why, and whether there is drift."""
        if not len(self):
            return ["no image was seen yet"]
        reasons = ", ".join(f"{reason} {number:,}" for reason, number in self.reasons.items() if number)
        usual = figure(self.reference_abstained, "share")
        drift = f"no drift reported after {images(len(self))}"
        if self.alarm is not None:
            drift = f"drift: reported at image {self.alarm:,}, likely begun near image {self.began:,}"
        return [
            f"abstained on {rate(self.abstained)} ({reasons}); on {usual} of the images that the guard was made with",
            f"{drift} (evidence {self.evidence:.3g}, reported at {self.level:g})",
        ]

    def to_json(self) -> str:
        """The state of the stream: shares, evidence, alarm, windows."""
        told = {
            "model": self.guard.record.model.name,
            "images": len(self),
            "abstained": asdict(self.abstained) if len(self) else None,
            "reference_abstained": self.reference_abstained,
            "reasons": self.reasons,
            "evidence": self.evidence,
            "level": self.level,
            "false_alarm": self.false_alarm,
            "alarm": self.alarm,
            "began": self.began,
            "windows": [_plain(window) for window in self.windows()],
        }
        return json.dumps(told, indent=1)


def _plain(window: Window) -> dict[str, Any]:
    median = window.median_score
    return {**asdict(window), "median_score": median if math.isfinite(median) else None}


def _abstained(observations: Sequence[Observation]) -> Share:
    images, abstained = len(observations), sum(not one.accept for one in observations)
    if not images:
        raise BadInput("no image was seen yet")
    return Share(abstained / images, *clopper_pearson(abstained, images), images)


class WatchLog:
    """The log of a stream in a folder; a line that was cut off by a kill is dropped."""

    def __init__(self, folder: Path, watch: Watch) -> None:
        self.path, self.watch = folder / LOG, watch
        guard = watch.guard
        self._told = {
            "format": FORMAT,
            "model": guard.record.model.fingerprint,
            "guard": guard.record.files.get(ARRAYS, ""),
            "threshold": guard.threshold if math.isfinite(guard.threshold) else None,
        }
        folder.mkdir(parents=True, exist_ok=True)

    def resume(self) -> int:
        """Takes in what was seen before, and how many images that were; BadInput where the log is of something else."""
        if not self.path.exists():
            write_whole(self.path, self._line(self._told))
            return 0
        data = self.path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        first, *rest = whole.splitlines() or [b""]
        header = parse_json(first or b"null", f"the first line of {self.path}")
        if not isinstance(header, dict) or "format" not in header:
            raise BadInput(f"{self.path} is not a log of shiftproof watch; name another folder with -o")
        if header != self._told:
            raise BadInput(
                f"{self.path} was begun with another guard or threshold, or another version of this program; name another "
                "folder with -o"
            )
        self.watch.add([self._observation(line, number) for number, line in enumerate(rest, 2)])
        if len(whole) < len(data):
            write_whole(self.path, whole)
        return len(rest)

    def append(self, observations: Sequence[Observation]) -> None:
        """Takes in more images and writes them down, on disk when it returns."""
        lines = b"".join(map(self._line, self.watch.add(observations)))
        try:
            with self.path.open("ab") as file:
                file.write(lines)
                file.flush()
                os.fsync(file.fileno())
        except OSError as problem:
            raise refusal(problem, self.path) from problem

    def _observation(self, line: bytes, number: int) -> Observation:
        where = f"line {number} of {self.path}"
        told = parse_json(line, where)
        try:
            one = Observation(**{name: told[name] for name in Observation.__dataclass_fields__})
            score = one.ood_score
            if not isinstance(one.id, str) or not isinstance(one.accept, bool) or one.reason not in REASONS:
                raise TypeError("an image has an id, whether it is accepted, and a reason")
            if score is not None and (not isinstance(score, int | float) or not math.isfinite(score)):
                raise TypeError("a score is a finite number")
        except (KeyError, TypeError, AttributeError) as problem:
            raise BadInput(f"{where} is damaged: {problem!r}; remove the line, or name another folder with -o") from problem
        return one

    @staticmethod
    def _line(told: Any) -> bytes:
        return json.dumps(told).encode() + b"\n"


def scores_in(rows: Iterable[Any], guard: Guard, where: str) -> Iterator[Observation]:
    """Scores that were sent from elsewhere, rows with ``ood_score`` and perhaps ``id`` and ``calibrated_probability``."""
    for number, row in enumerate(rows, 1):
        try:
            score = row["ood_score"] if isinstance(row, dict) else row
            value = math.nan if score in (None, "") else float(score)
            sure = row.get("calibrated_probability") if isinstance(row, dict) else None
            name = str((row.get("id") if isinstance(row, dict) else None) or number)
            yield from_score(guard, name, value, None if sure in (None, "") else _number(float(str(sure))))
        except OverflowError as problem:
            raise BadInput(f"row {number} of {where} has a number that is too large: {str(row)[:80]!r}") from problem
        except (KeyError, TypeError, ValueError) as problem:
            raise BadInput(f"row {number} of {where} has no number called ood_score: {str(row)[:80]!r}") from problem
