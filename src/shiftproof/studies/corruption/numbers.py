"""Numbers of one model under corruption: mean errors, what they are in multiples of a baseline's, and their intervals."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.corruptions import CIFAR_C_BAR, IMAGENET_C, IMAGENET_C_BAR, corruption_groups
from shiftproof.errors import listed
from shiftproof.metrics.calibration import overconfidence_interval
from shiftproof.metrics.intervals import LEAST_CLUSTERS
from shiftproof.metrics.resampling import RESAMPLES, interval_of, left_out_interval, resampled_means
from shiftproof.metrics.table import unseen
from shiftproof.metrics.wording import counted
from shiftproof.studies import evidence
from shiftproof.studies.corruption.cells import Baseline, Cells
from shiftproof.types import About, BaselineRef, Clusters, Curve, Finding, Interval, Measurement, NoInterval

JOINT = f"BCa bootstrap, {RESAMPLES} draws, each in all its cells together,"
PLAIN_LOSSES = ("relative_corrupted_error", "corruption_mean_loss")
LOSSES = (*PLAIN_LOSSES, "relative_corruption_error", "relative_mean_corruption_error")
OF_LOSSES = frozenset([*LOSSES, *map(unseen, LOSSES)])
"""What is taken from errors under corruption and of clean images together."""

OF_BASELINE_LOSSES = OF_LOSSES - {*PLAIN_LOSSES, *map(unseen, PLAIN_LOSSES)}
LEFT_OUT = "jackknife, each in all its cells together,"

AT_ALL = 0.68
"""Level of the interval that must leave out 0 for a loss to be divided by.

Nothing wider than a few times the number is then left. At 0.95 most sets of 26 photos would go without an interval, and
those of the others would hold 90 times in 100: photos on which the loss happens to be large give ratios that are too small.
"""

_ROUNDING = 1e-12
"""Differences of means below this are none."""


@dataclass(frozen=True)
class _Errors:
    """Mean errors, (drawings, ...): over the images as they are, or over images drawn again."""

    cells: NDArray[np.floating]  # (drawings, corruptions, severities)
    clean: NDArray[np.floating]  # (drawings,), nan where unchanged images were not run

    @classmethod
    def of(cls, means: NDArray[np.floating], cells: Cells) -> _Errors:
        shape = (len(means), len(cells.corruptions), len(cells.severities))
        corrupted = means[:, : shape[1] * shape[2]].reshape(shape)
        return cls(corrupted, np.full(len(means), np.nan) if cells.clean_wrong is None else means[:, -1])

    @cached_property
    def by_corruption(self) -> NDArray[np.floating]:
        """(drawings, corruptions)."""
        return np.asarray(self.cells.mean(axis=2))

    @property
    def losses(self) -> NDArray[np.floating]:
        """What each corruption adds to the clean error, (drawings, corruptions)."""
        return np.asarray(self.by_corruption - self.clean[:, None])


class _Both(NamedTuple):
    """The model's errors and the baseline's, in the same drawings; published ones are the same in all of them."""

    own: _Errors
    baseline: NDArray[np.floating]  # (drawings or 1, corruptions)
    baseline_losses: NDArray[np.floating]  # (drawings or 1, corruptions)

    @classmethod
    def of(
        cls, own: NDArray[np.floating], theirs: NDArray[np.floating] | None, cells: Cells, baseline: Baseline | None
    ) -> _Both:
        """From means of columns, (drawings, columns): the model's, and the baseline's where it is a model."""
        errors = _Errors.of(own, cells)
        if theirs is not None and baseline is not None and baseline.cells is not None:
            other = _Errors.of(theirs, baseline.cells)
            return cls(errors, other.by_corruption, other.losses)
        constants = np.full((1, len(cells.corruptions)), np.nan)
        if baseline is not None and baseline.errors is not None:
            constants = baseline.errors[None]
        clean = np.nan if baseline is None or baseline.clean_error is None else baseline.clean_error
        return cls(errors, constants, constants - clean)


class Number(NamedTuple):
    """A number to be had from any drawing of the images."""

    metric: str
    about: About
    of: Callable[[_Both], NDArray[np.floating]]
    convention: Mapping[str, str]
    over: tuple[int, ...]  # the corruptions it is a mean over, by their places
    baseline: BaselineRef | None = None  # what it is in multiples of


class Measured(NamedTuple):
    """A number as the images have it; None for an interval where they cannot tell it."""

    number: Number
    value: float
    interval: tuple[float, float] | None
    unsure: tuple[str, ...] = ()  # corruptions under which the baseline may lose nothing, so that the ratio may be anything

    def within(self, method: str, clusters: Clusters) -> Interval | NoInterval:
        """The interval with its method, or why there is none."""
        if self.interval is None and self.unsure:
            cases = counted(clusters.count, clusters.unit)
            why = f"{cases} do not show that {listed(self.unsure)} adds to the baseline's error"
            return NoInterval(why, too_few=True)
        return evidence.resampled_by(method, clusters, self.interval)


def findings(
    cells: Cells,
    baseline: Baseline | None,
    about: About,
    convention: Mapping[str, str],
    *,
    clean_convention: Mapping[str, str],
    seen: Collection[str] = (),
) -> Iterator[Finding]:
    """Every number and curve of one model; a baseline that is a model has the same images in the same order.

    What the model has `seen` in training is said beside each number it is part of, and means without it stand beside.
    """
    if cells.clean_wrong is not None:
        yield evidence.Subject(about, clean_convention, cells.clusters).share("clean_error", cells.clean_wrong)
    losses_told = clean_told(convention, clean_convention)
    yield from _each_cell(cells, about, convention, losses_told, seen)
    for measured in measured_means(cells, baseline, seen):
        number = measured.number
        within = measured.within(LEFT_OUT if number.metric in OF_BASELINE_LOSSES else JOINT, cells.clusters)
        beside = losses_told if number.metric in OF_LOSSES else {}
        told, named = {**convention, **number.convention, **beside}, {**about, **number.about}
        count = cells.clusters.count
        found = evidence.measurement(number.metric, measured.value, named, len(cells), told, within, count)
        yield dataclasses.replace(found, baseline=number.baseline)
    yield from _curves(cells, about, {**convention, **losses_told})


def clean_told(convention: Mapping[str, str], clean_convention: Mapping[str, str]) -> dict[str, str]:
    """Whether clean pictures were encoded as corrupted ones were: else the loss from the encoding is in every difference.

    >>> clean_told({"output": "jpeg85"}, {"output": "raw"})
    {'clean pictures': 'raw, corrupted ones jpeg85: the loss from the encoding counts as corruption'}
    >>> clean_told({"output": "jpeg85"}, {"output": "jpeg85"})
    {'clean pictures': 'jpeg85, as corrupted ones; published ones were not re-encoded'}
    """
    clean, corrupted = clean_convention.get("output"), convention.get("output")
    if clean != corrupted:
        return {"clean pictures": f"{clean}, corrupted ones {corrupted}: the loss from the encoding counts as corruption"}
    if clean == "jpeg85":
        return {"clean pictures": "jpeg85, as corrupted ones; published ones were not re-encoded"}
    return {}


def measured_means(cells: Cells, baseline: Baseline | None, seen: Collection[str] = ()) -> Iterator[Measured]:
    """Every mean over cells that there is, and what it is in multiples of the baseline's."""
    clusters = cells.clusters
    own = resampled_means(cells.columns, clusters=clusters.numbers)
    # the same seed draws the same images for both
    theirs = None
    if baseline is not None and baseline.cells is not None:
        theirs = resampled_means(baseline.cells.columns, clusters=clusters.numbers)
    drawings = [
        _Both.of(means, None if theirs is None else theirs[place], cells, baseline) for place, means in enumerate(own)
    ]
    whole, _, without = drawings
    losses = zip(whole.baseline_losses.T, without.baseline_losses.T, strict=True)
    may_be_none = [theirs is not None and loss_may_be_none(*loss, cases=clusters.count) for loss in losses]
    for number in _numbers(cells, baseline, seen):
        observed, drawn, left_out = (number.of(drawing) for drawing in drawings)
        if not np.isfinite(observed[0]):
            continue
        if number.metric in OF_BASELINE_LOSSES:  # drawings of a ratio to a small number have long tails
            unsure = tuple(cells.corruptions[place] for place in number.over if may_be_none[place])
            within = None if unsure else left_out_interval(observed, left_out, cases=clusters.count)
            yield Measured(number, float(observed[0]), within, unsure if clusters.count >= LEAST_CLUSTERS else ())
        else:
            yield Measured(number, float(observed[0]), interval_of(observed, drawn, left_out, cases=clusters.count))


def loss_may_be_none(loss: NDArray[np.floating], left_out: NDArray[np.floating], *, cases: int) -> bool:
    """Whether a loss lies within a standard error or so of none, so that a ratio to it may be anything (Fieller, 1954)."""
    within = left_out_interval(loss, left_out, cases=cases, level=AT_ALL)
    return within is not None and within[0] <= 0 <= within[1]


def slopes(number: Number, cells: Cells, baseline: Baseline | None) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """How a number follows the model's error in each cell, and the baseline's, to first order; (cells,) each."""
    count, step = len(cells.corruptions) * len(cells.severities), 1e-6
    means = cells.columns.mean(axis=0, keepdims=True)
    still = np.zeros((1 + count, means.shape[1]))
    moved = still.copy()
    moved[1:, :count] = step * np.eye(count)
    theirs = None if baseline is None or baseline.cells is None else baseline.cells.columns.mean(axis=0, keepdims=True)
    own = number.of(_Both.of(means + moved, None if theirs is None else theirs + still, cells, baseline))
    if theirs is None:
        return (own[1:] - own[0]) / step, np.zeros(count)
    other = number.of(_Both.of(means + still, theirs + moved, cells, baseline))
    return (own[1:] - own[0]) / step, (other[1:] - other[0]) / step


def compared(cells: Cells, baseline: Baseline | str) -> tuple[Cells, Baseline | None]:
    """The cells of the images that the baseline was run on too, and the baseline where there is one for the same cells."""
    if isinstance(baseline, str):
        return cells, None
    if baseline.cells is None:
        return cells, baseline
    if (cells.corruptions, cells.severities) != (baseline.cells.corruptions, baseline.cells.severities):
        return cells, None
    answered = set(baseline.cells.ids)
    shared = [image for image in cells.ids if image in answered]
    return cells.take(shared), dataclasses.replace(baseline, cells=baseline.cells.take(shared))


def why_no_ratios(cells: Cells, baseline: Baseline | str, model: str) -> Iterator[str]:
    """Why errors are not divided by a baseline's, or some cannot be."""
    if isinstance(baseline, str):
        yield baseline
        return
    yield from baseline.reasons
    cells, against = compared(cells, baseline)
    if against is None:
        yield f"{baseline.ref.name} has predictions in other cells than {model}, so the CE is undefined"
        return
    other = against.cells
    if other is None:
        return
    if not len(cells):
        yield f"no image was read and labelled for both {model} and {baseline.ref.name}"
        return
    means = other.wrong.mean(axis=(0, 2))
    perfect = [name for name, mean in zip(other.corruptions, means, strict=True) if mean <= 0]
    if perfect:
        yield f"{baseline.ref.name} has no errors under {listed(perfect)}, so the CE is undefined"
    if other.clean_wrong is not None:
        lost = np.abs(means - other.clean_wrong.mean())
        unharmed = [name for name, loss in zip(other.corruptions, lost, strict=True) if loss < _ROUNDING]
        if unharmed:
            yield f"{baseline.ref.name} loses no accuracy under {listed(unharmed)}, so the relative CE is undefined"


def seen_told(corruptions: Iterable[str], seen: Collection[str]) -> dict[str, str]:
    """What stands beside a number of these corruptions where a model was trained with some of them.

    >>> seen_told(["fog", "snow"], ["snow"]), seen_told(["fog"], ["snow"])
    ({'seen in training': 'snow'}, {})
    """
    among = [name for name in corruptions if name in seen]
    return {"seen in training": ", ".join(among)} if among else {}


def _each_cell(
    cells: Cells, about: About, convention: Mapping[str, str], losses_told: Mapping[str, str], seen: Collection[str]
) -> Iterator[Measurement]:
    """Error, loss and overconfidence in every cell, as far as clean images and confidences are known."""
    for place, corruption in enumerate(cells.corruptions):
        told = {**convention, **seen_told([corruption], seen)}
        for column, severity in enumerate(cells.severities):
            cell = {**about, "corruption": corruption, "severity": severity}
            wrong = np.asarray(cells.wrong[:, place, column], bool)
            subject = evidence.Subject(cell, told, cells.clusters)
            yield subject.share("corrupted_error", wrong)
            if cells.clean_wrong is not None:
                yield subject.also(told=losses_told).difference("corruption_loss", ~cells.clean_wrong, ~wrong)
            if cells.confidence is not None and np.isfinite(sure := cells.confidence[:, place, column]).all():
                ends = overconfidence_interval(sure, ~wrong, clusters=cells.clusters.numbers)
                gap = float((sure - ~wrong).mean())
                yield subject.resampled("corrupted_overconfidence", gap, "Zou-Donner", ends)


def _numbers(cells: Cells, baseline: Baseline | None, seen: Collection[str]) -> Iterator[Number]:
    """The means over cells, and what they are in multiples of the baseline's; each also over unseen corruptions alone."""
    severities = {"severities": ", ".join(map(str, cells.severities))}
    counted = _counted(cells.corruptions)
    for place, name in enumerate(cells.corruptions):
        told = {**severities, **seen_told([name], seen)}
        yield Number("corruption_mean_error", {"corruption": name}, _mean([place]), told, (place,))
        if cells.clean_wrong is not None:
            yield Number("corruption_mean_loss", {"corruption": name}, _mean_loss([place]), told, (place,))
    for group, members in corruption_groups().items():
        places = [place for place, name in enumerate(cells.corruptions) if name in members]
        if places:
            yield from _over("group_error", {"group": group}, _mean, places, cells, severities, seen, named=True)
    yield from _over("mean_corrupted_error", {}, _mean, counted, cells, severities, seen)
    c_bar = next((ten for ten in (IMAGENET_C_BAR, CIFAR_C_BAR) if set(ten) <= set(cells.corruptions)), ())
    if c_bar:
        places = [cells.corruptions.index(name) for name in c_bar]
        yield from _over("mean_c_bar_error", {}, _mean, places, cells, severities, seen)
    if cells.clean_wrong is not None:
        yield from _over("relative_corrupted_error", {}, _mean_loss, counted, cells, severities, seen)
    if baseline is not None:
        beside = {"baseline": baseline.ref.name}
        for metric, mean_metric, ratio in [
            ("corruption_error", "mean_corruption_error", _mean_ratio),
            ("relative_corruption_error", "relative_mean_corruption_error", _mean_relative_ratio),
        ]:
            for place, name in enumerate(cells.corruptions):
                told = {**severities, **beside, **seen_told([name], seen)}
                yield Number(metric, {"corruption": name}, ratio([place]), told, (place,), baseline.ref)
            means = _over(mean_metric, {}, ratio, counted, cells, {**severities, **beside}, seen)
            yield from (number._replace(baseline=baseline.ref) for number in means)


def _over(
    metric: str,
    about: About,
    mean: Callable[[Sequence[int]], Callable[[_Both], NDArray[np.floating]]],
    places: Sequence[int],
    cells: Cells,
    told: Mapping[str, str],
    seen: Collection[str],
    *,
    named: bool = False,
) -> Iterator[Number]:
    """A mean over these corruptions and, where the model has seen some of them in training, over the others."""
    left = [place for place in places if cells.corruptions[place] not in seen]
    for name, some in [(metric, places), *([(unseen(metric), left)] if left and len(left) < len(places) else [])]:
        names = [cells.corruptions[place] for place in some]
        averaged = {"corruptions": ", ".join(names) if named else averaged_corruptions(names)}
        yield Number(name, about, mean(some), {**told, **averaged, **seen_told(names, seen)}, tuple(some))


def _counted(corruptions: Sequence[str]) -> list[int]:
    """The corruptions a mean is over: those of the fifteen, or all where none of them is there."""
    tested = [place for place, name in enumerate(corruptions) if name in IMAGENET_C]
    return tested or list(range(len(corruptions)))


def averaged_corruptions(corruptions: Sequence[str]) -> str:
    """Which corruptions a mean is over, in words.

    >>> averaged_corruptions(IMAGENET_C), averaged_corruptions(["fog", "snow"])
    ('the 15 of ImageNet-C', 'fog, snow')
    """
    published = {"ImageNet-C": IMAGENET_C, "ImageNet-C-bar": IMAGENET_C_BAR, "CIFAR-10-C-bar": CIFAR_C_BAR}
    whole = next((title for title, names in published.items() if set(corruptions) == set(names)), None)
    return f"the {len(corruptions)} of {whole}" if whole else ", ".join(corruptions)


def _mean(places: Sequence[int]) -> Callable[[_Both], NDArray[np.floating]]:
    return lambda both: np.asarray(both.own.by_corruption[:, places].mean(axis=1))


def _mean_loss(places: Sequence[int]) -> Callable[[_Both], NDArray[np.floating]]:
    return lambda both: np.asarray(both.own.losses[:, places].mean(axis=1))


def _mean_ratio(places: Sequence[int]) -> Callable[[_Both], NDArray[np.floating]]:
    # errors that are estimated from some cells may come out below nothing
    return lambda both: _divided(both.own.by_corruption[:, places], np.maximum(both.baseline[:, places], 0.0))


def _mean_relative_ratio(places: Sequence[int]) -> Callable[[_Both], NDArray[np.floating]]:
    return lambda both: _divided(both.own.losses[:, places], both.baseline_losses[:, places])


def _divided(own: NDArray[np.floating], baseline: NDArray[np.floating]) -> NDArray[np.floating]:
    """The mean over corruptions of what stands in multiples of the baseline's; not a number where that is nothing."""
    divisors = np.where(np.abs(baseline) < _ROUNDING, np.nan, baseline)
    return np.asarray((own / divisors).mean(axis=1))


def _curves(cells: Cells, about: About, convention: Mapping[str, str]) -> Iterator[Curve]:
    """The error of each corruption against its severity; severity 0 is the unchanged image."""
    clean = [] if cells.clean_wrong is None else [cells.clean_wrong]
    severities = tuple(float(severity) for severity in ((0,) if clean else ()) + cells.severities)
    for place, corruption in enumerate(cells.corruptions):
        wrong = zip(severities, [*clean, *cells.wrong[:, place].T], strict=True)
        points = [evidence.Point(severity, flags, cells.clusters) for severity, flags in wrong]
        named, axes = {**about, "corruption": corruption}, ("severity", "error")
        yield evidence.Subject(named, convention, cells.clusters).share_curve("degradation", axes, points)
