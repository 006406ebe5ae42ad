"""A robustness profile in the time there is: which study gets the next forward passes, and how far each has come.

Images come first, unchanged, for every study that needs no others: all of them, or as many, drawn at random, as fit into
`CLEAN_SHARE` of the time, or into all of it where no other study could begin in the rest. Then every other study takes its
least part, the cheapest first; from there on the next part goes to the study whose confidence interval it narrows most for
the time it takes. Which images and cells a part consists of depends on the seed and on earlier results; time decides only
how far each study gets.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from shiftproof.datasets.subsets import drawn
from shiftproof.errors import BadInput
from shiftproof.metrics.table import metric_info
from shiftproof.runs.records import Reached
from shiftproof.studies.choice import StudyEntry
from shiftproof.studies.options import Assembled, Parts
from shiftproof.types import CLEAN, Dataset, Keep, Measurement, Results, fingerprint_of, richest

if TYPE_CHECKING:
    from shiftproof.runs.predict import Progress

CLEAN_SHARE = 0.3  # of the time, for unchanged images
FIRST_IMAGES = 64  # from which the rate is known
GROWTH = 1.6  # a part, over the part before it
LEAST_GROWTH = 1.25  # a smaller step is not worth its overhead
PART_SHARE = 0.35  # of the time left, for a study of exactly the images it begins with
PASSES_EACH = 3  # of each of these images
LEAST_IMAGES = 50
ANEW = 4  # times as many images for which such a study begins anew
GUESSED_PACE = 0.05  # seconds a forward pass, until one was made
OVERRUN = 0.05  # of the time, by which a step that was estimated too short may be late
REPORT_SHARE = 0.1  # of the time, kept for measuring and the report at least
REPORT_TIMES = 2.5  # as long as measuring took: measuring everything once more, and a report, which takes about as long
LEAST_SPREAD = 0.1  # standard deviation that the width of an interval is compared with at least


class Offer(NamedTuple):
    """The next part of a study: what it may bring, and what it takes."""

    name: str
    units: int  # done
    more: int  # units after it
    seconds: float
    width: float | None = None  # of the confidence interval now, in standard deviations; None: not measured yet
    settled: float = 0.0  # of that, what more units do not narrow

    @property
    def gain(self) -> float:
        """By how much a second narrows the interval."""
        if self.width is None:
            return math.inf
        return (self.width - narrowed(self.width, self.settled, self.more / self.units)) / max(self.seconds, 1e-9)


def narrowed(width: float, settled: float, growth: float) -> float:
    """The width to expect of an interval after `growth` times as many units; what is `settled` stays.

    >>> narrowed(0.4, 0.0, 4.0)
    0.2
    >>> round(narrowed(0.5, 0.3, 4.0), 4)  # 0.3 and 0.4 at a right angle; 0.4 becomes 0.2
    0.3606
    """
    return math.hypot(settled, math.sqrt(max(width**2 - settled**2, 0.0) / growth))


def best_offer(offers: Iterable[Offer], seconds: float) -> Offer | None:
    """The one that narrows an interval most in its time, cut to the seconds left; first those never begun, cheapest first.

    None where none fits: a study begins with its least part or not at all, and steps below `LEAST_GROWTH` are not taken.

    >>> flips, errors = Offer("flips", 10, 20, 30.0, 0.4), Offer("errors", 500, 1000, 10.0, 0.2)
    >>> best_offer([flips, errors], 100.0).name  # 0.117 in 30 s against 0.059 in 10 s
    'errors'
    """
    fitting = [cut for offer in offers if (cut := _cut(offer, seconds))]
    return max(fitting, key=lambda offer: (offer.gain, -offer.seconds), default=None)


def _cut(offer: Offer, seconds: float) -> Offer | None:
    if offer.seconds <= seconds:
        return offer
    if not offer.units or seconds <= 0:
        return None
    more = offer.units + int((offer.more - offer.units) * seconds / offer.seconds)
    return offer._replace(more=more, seconds=seconds) if more >= LEAST_GROWTH * offer.units else None


class Width(NamedTuple):
    """Of a confidence interval, in standard deviations of a single case; and what of it more units do not narrow."""

    now: float | None
    settled: float = 0.0


UNKNOWN = Width(None)


def width_of(metric: str, results: Results) -> Width:
    """The width of the interval of a study's main number.

    In standard deviations of a single case, so that 0.05 about an error of one half and 0.01 about one of a hundredth
    count alike. The sampling error of a study that was sampled is what more of it narrows; the rest comes from the images.
    """
    numbers = [one for one in results.measurements if one.metric == metric]
    if not numbers:
        return Width(None)
    number, ends = numbers[0], numbers[0].ends
    sampled = [
        2 * one.value for one in results.measurements if one.metric == "sampling_error" and one.about["number"] == metric
    ]
    spread = _spread(number)
    if ends is None:
        return Width(sampled[0] / spread if sampled else 0.0)
    width = (ends[1] - ends[0]) / spread
    settled = math.sqrt(max(width**2 - (sampled[0] / spread) ** 2, 0.0)) if sampled else 0.0
    return Width(width, settled)


def _spread(number: Measurement) -> float:
    share = metric_info(number.metric).unit == "share" and 0 <= number.value <= 1
    return max(math.sqrt(number.value * (1 - number.value)) if share else abs(number.value), LEAST_SPREAD)


class OutOfTime(Exception):
    """A step took longer than it may; what it stored stays."""


@dataclass
class Watched:
    """Progress of one step, however many runs it consists of, under a time limit."""

    progress: Progress | None
    title: str
    expected: int  # forward passes
    left: Callable[[], float]  # seconds before the step is broken off
    passes: int = 0

    def begin(self, what: str, total: int, done: int) -> None:
        """A run begins; all of a step are shown as one."""

    def advance(self, images: int) -> None:
        if self.progress and not self.passes:
            self.progress.begin(self.title, max(self.expected, images), 0)
        self.passes += images
        if self.progress:
            self.progress.advance(images)
        if self.left() < 0:
            raise OutOfTime

    def end(self) -> None:
        """A run has ended."""

    def close(self) -> None:
        """The step has ended."""
        if self.progress and self.passes:
            self.progress.end()


def clock_face(seconds: float) -> str:
    """Minutes and seconds.

    >>> clock_face(125.4), clock_face(-3)
    ('2:05', '0:00')
    """
    whole = max(0, round(seconds))
    return f"{whole // 60}:{whole % 60:02d}"


class Desk(Protocol):
    """What a profile has done for it."""

    def assemble(self, entry: StudyEntry, images: Dataset, units: int | None = None) -> Assembled: ...

    def fill(self, works: Sequence[Assembled], progress: Progress, *, keep: Keep | None = None) -> None:
        """Predicts what these studies need and is not stored; at least `keep` is stored of it."""

    def measure(self, work: Assembled) -> Results: ...

    def save(self, reached: Reached) -> None: ...

    def tell(self, text: str) -> None: ...

    def leave_out(self, entry: StudyEntry, why: str) -> None:
        """A study that is not measured, since there is no time for it or it cannot be."""


@dataclass
class Partial:
    """A study that is done in parts, as far as it has come."""

    entry: StudyEntry
    images: Dataset
    parts: Parts
    passes: int  # of a unit
    units: int = 0
    width: Width = UNKNOWN
    pace: float | None = None  # seconds a forward pass, in its last step
    measuring: float = 0.0  # seconds, the last time
    stopped: bool = False
    problem: str = ""

    @property
    def growing(self) -> bool:
        """Whether more of it would tell more."""
        return not self.stopped and self.units < self.parts.most and self.width.now != 0.0

    def offer(self, pace: float) -> Offer:
        """Its next part, where a forward pass takes so many seconds unless a step of its own has shown otherwise."""
        more = max(self.parts.least, math.ceil(self.units * GROWTH))
        more = self.parts.most if more * 1.3 > self.parts.most else more
        seconds = (more - self.units) * self.passes * (self.pace or pace)
        return Offer(self.entry.name, self.units, more, seconds, self.width.now, self.width.settled)


class TimedProfile:
    """The profile of one model on one dataset, as far as the minutes carry it.

    Minutes count from the first call on: one that was stopped goes on, and one that is complete goes on with more of them.
    """

    def __init__(
        self,
        entries: Sequence[StudyEntry],
        images: Dataset,
        desk: Desk,
        *,
        minutes: float,
        reached: Reached | None = None,
        started: float | None = None,
        progress: Progress | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.entries, self.images, self.desk, self.minutes, self.progress = entries, images, desk, minutes, progress
        self.clock, self.started = clock, clock() if started is None else started
        asked = fingerprint_of(*sorted(entry.key for entry in entries))
        before = reached or Reached()
        if before.studies != asked:  # other studies have minutes of their own
            before = dataclasses.replace(before, seconds=0.0, minutes=0.0, studies=asked)
        self.before = self.reached = before
        self.complete = before.minutes >= minutes
        self.whole = [entry for entry in entries if entry.parts(images) is None]
        self.pace = before.pace or GUESSED_PACE
        self.measuring = 0.0  # seconds, of the studies that are not done in parts

    def spend(self) -> Reached:
        """Predicts until the time is up or nothing is left, and says how far each study has come."""
        try:
            images, partials = self._first(CLEAN_SHARE)
            none_begins = best_offer(self._offers(partials), self._left(partials)) is None
            if none_begins and self._left(partials) > 0 and not any(one.units for one in partials):
                images, partials = self._first(1.0)
            self._tell_estimate(images, partials)
            while offer := best_offer(self._offers(partials), self._left(partials)):
                self._step(next(one for one in partials if one.entry.name == offer.name), offer.more)
        finally:
            self._save()
        for one in partials:
            if one.problem or not one.units:
                self.desk.leave_out(one.entry, one.problem or self._too_slow(one))
        self._save(minutes=max(self.minutes, self.before.minutes))
        return self.reached

    def _first(self, share: float) -> tuple[Dataset, list[Partial]]:
        """The images that fit unchanged into a share of the time, and the studies that go on with them."""
        images = self._unchanged(share)
        self._time_measuring(images)
        others = [entry for entry in self.entries if entry not in self.whole]
        return images, [self._begun(entry, self._images_of(entry, images)) for entry in others]

    def _offers(self, partials: Iterable[Partial]) -> Iterator[Offer]:
        return (one.offer(self.pace) for one in partials if one.growing)

    def _too_slow(self, state: Partial) -> str:
        """Why a study was not begun, and what measures it; a smaller part would not be the same number."""
        parts, seconds = state.parts, state.offer(self.pace).seconds
        each = f", {state.passes:,} forward passes each" if state.passes > 1 else ""
        enough = math.ceil(LEAST_GROWTH * seconds / (1 - REPORT_SHARE) / 60)
        return (
            f"its smallest part ({parts.least:,} {parts.unit}{each}) takes about {clock_face(seconds)} min; "
            f"--studies {state.entry.name} --minutes {enough} measures it"
        )

    @property
    def _spent(self) -> float:
        return self.before.seconds + self.clock() - self.started

    def _left(self, partials: Sequence[Partial] = ()) -> float:
        """Seconds for forward passes, without those for measuring and the report."""
        if self.complete:
            return -math.inf
        measuring = self.measuring + sum(one.measuring for one in partials)
        return 60 * self.minutes - self._spent - max(REPORT_SHARE * 60 * self.minutes, REPORT_TIMES * measuring)

    def _watched(self, title: str, seconds: float, passes: int) -> Watched:
        """Progress of a step that may take these seconds, and somewhat longer; what was stored before is waited for."""
        end = math.inf if self.complete else self.clock() + max(0.0, seconds) + OVERRUN * 60 * self.minutes
        left = clock_face(60 * self.minutes - self._spent)
        return Watched(self.progress, f"{title} ({left} left)", passes, lambda: end - self.clock())

    def _save(self, **changes: Any) -> None:
        seconds = self.before.seconds if self.complete else self._spent
        self.reached = dataclasses.replace(self.reached, **{"seconds": seconds, **changes})
        self.desk.save(self.reached)

    def _unchanged(self, share: float) -> Dataset:
        """As many images as fit into a share of the time, with what studies need of them that are not done in parts."""
        every, keep = len(self.images.samples), self._keep()
        count = self.reached.images or min(FIRST_IMAGES, every)
        held: Dataset | None = None
        while True:
            images = drawn(self.images, count)
            works = [self.desk.assemble(entry, images) for entry in self.whole]
            # the first images are waited for, however long they take
            seconds = math.inf if held is None else self._left()
            watched = self._watched("Unchanged images", seconds, len(images.samples) - self.reached.images)
            begun = self.clock()
            try:
                self.desk.fill(works, watched, keep=keep)
            except OutOfTime:
                return held or images
            finally:
                watched.close()
            if watched.passes:
                self.pace = (self.clock() - begun) / watched.passes
                self._save(pace=self.pace)
            held, size = images, len(images.samples)
            self._save(images=size, units={**self.reached.units, **dict.fromkeys((entry.key for entry in self.whole), None)})
            if size == every or self._left() < 0:
                return images
            runs = dict.fromkeys(run for work in works for study in work.studies for run in study.runs())
            of_image = self.pace * sum(run.dataset == images.ref for run in runs)
            seconds = min(share * 60 * self.minutes - self._spent, self._left())
            fit = size + seconds / of_image if of_image else every  # where no study has unchanged images
            count = every if every <= min(1.5 * fit, 4 * size) else int(min(fit, 2 * size))
            if count < LEAST_GROWTH * size:
                return images

    def _keep(self) -> Keep | None:
        """The richest that any study needs of unchanged images, so that none is predicted twice."""
        few = drawn(self.images, min(FIRST_IMAGES, len(self.images.samples)))
        works = [self.desk.assemble(entry, few, entry.least(few)) for entry in self.entries]
        studies = [study for work in works for study in work.studies]
        clean = (few.ref, CLEAN)
        keeps = [study.keep for study in studies if any((run.dataset, run.condition) == clean for run in study.runs())]
        return richest(keeps) if keeps and "boxes" not in keeps else None

    def _time_measuring(self, images: Dataset) -> None:
        """How long it takes to measure the studies that are not done in parts."""
        begun = self.clock()
        for entry in () if self.complete else self.whole:
            self.desk.measure(self.desk.assemble(entry, images))
        self.measuring = self.clock() - begun

    def _images_of(self, entry: StudyEntry, images: Dataset) -> Dataset:
        """The images of a study that is done in parts: all, unless its parts are of exactly the images it began with.

        Then as many as leave it time for several passes each; it begins anew only where there is time for many more.
        """
        parts, known = entry.parts(images), self.before.drawn.get(entry.key, 0)
        if parts is None or parts.nested or entry.options is None:
            return images
        images = entry.options.of(images)
        seconds = PART_SHARE * max(0.0, self._left())
        count = min(len(images.samples), max(int(seconds / (PASSES_EACH * self.pace)), LEAST_IMAGES))
        if known and count < ANEW * known:
            return drawn(images, known)
        some = drawn(images, count)
        units = {key: done for key, done in self.reached.units.items() if key != entry.key}
        self._save(units=units, drawn={**self.reached.drawn, entry.key: len(some.samples)})
        return some

    def _begun(self, entry: StudyEntry, images: Dataset) -> Partial:
        """A study that is done in parts, with what is stored of it."""
        parts = entry.parts(images)
        if parts is None:
            raise ValueError(f"{entry.name} is not done in parts")
        work = self.desk.assemble(entry, images, parts.least)
        sizes = {one.ref: len(one.samples) for one in work.datasets}
        runs = dict.fromkeys(run for study in work.studies for run in study.runs())
        passes = parts.passes or max(1, round(sum(sizes[run.dataset] for run in runs) / parts.least))
        state = Partial(entry, images, parts, passes)
        units = min(self.reached.units.get(entry.key) or 0, parts.most)
        if units:
            self._step(state, units)
        return state

    def _step(self, state: Partial, units: int) -> None:
        work = self.desk.assemble(state.entry, state.images, units)
        watched = self._watched(state.entry.kind.title, self._left(), (units - state.units) * state.passes)
        begun = self.clock()
        try:
            self.desk.fill([work], watched)
        except OutOfTime:
            state.stopped = True
            return
        except BadInput as problem:
            state.stopped, state.problem = True, str(problem)
            return
        finally:
            watched.close()
        filled = self.clock()
        if watched.passes:  # the latest is the best guess for studies not yet begun
            self.pace = state.pace = (filled - begun) / watched.passes
        if not self.complete:
            state.width = width_of(state.parts.metric, self.desk.measure(work))
        state.measuring, state.units = self.clock() - filled, units
        self._save(units={**self.reached.units, state.entry.key: units})

    def _tell_estimate(self, images: Dataset, partials: Sequence[Partial]) -> None:
        """How many forward passes a full profile takes, and how many of them the minutes buy."""
        if self.complete:
            self.desk.tell(f"complete for {self.before.minutes:g} minutes; more --minutes go on, --full takes everything")
            return
        every = len(self.images.samples)
        full = every + sum(parts.most * one.passes for one in partials if (parts := one.entry.parts(self.images)))
        told = [f"the full profile (--full) is {full:,} forward passes"]
        if self.reached.pace:
            minutes, bought = full * self.pace / 60, 60 * self.minutes / self.pace
            told.append(f"about {minutes:,.0f} minutes at {1 / self.pace:.0f} images/s")
            told.append(f"of which {self.minutes:g} minutes buy about {min(bought, full):,.0f}")
        if len(images.samples) < every:
            told.append(f"on {len(images.samples):,} of {every:,} images")
        self.desk.tell(", ".join(told))


def common_reach(every: Sequence[Reached]) -> Reached:
    """How far the profiles of several models on one dataset have come, all of them.

    >>> common = common_reach([Reached(60, {"flips": 8, "errors": 700}), Reached(100, {"flips": 24, "errors": None})])
    >>> common.images, common.units
    (60, {'flips': 8})
    """
    shared = [key for key in every[0].units if all(one.units.get(key) for one in every)]
    units = {key: min(one.units[key] or 0 for one in every) for key in shared}
    kept = {key: min(one.drawn[key] for one in every) for key in shared if all(key in one.drawn for one in every)}
    return Reached(min(one.images for one in every), units, kept)
