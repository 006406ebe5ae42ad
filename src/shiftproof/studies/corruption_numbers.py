"""Numbers of one model under corruption: mean errors, what they are in multiples of a baseline's, and their intervals."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.corruptions import GROUPS, IMAGENET_C
from shiftproof.errors import listed
from shiftproof.metrics import clopper_pearson
from shiftproof.metrics.resampling import RESAMPLES, interval_of, resampled_means
from shiftproof.studies import evidence
from shiftproof.studies.cells import Baseline, Cells
from shiftproof.types import About, Curve, Finding, Measurement, Run

JOINT = {"interval": f"95 %, BCa bootstrap over images, {RESAMPLES} draws, each image in all its cells together"}
_ROUNDING = 1e-12
"""Differences of means below this are none."""


@dataclass(frozen=True)
class _Errors:
    """Mean errors, (drawings, ...): over the images as they are, or over images drawn again."""

    cells: NDArray[np.floating]  # (drawings, corruptions, severities)
    clean: NDArray[np.floating] | None  # (drawings,)

    @classmethod
    def of(cls, means: NDArray[np.floating], cells: Cells) -> _Errors:
        shape = (len(means), len(cells.corruptions), len(cells.severities))
        corrupted = means[:, : shape[1] * shape[2]].reshape(shape)
        return cls(corrupted, None if cells.clean_wrong is None else means[:, -1])

    @cached_property
    def by_corruption(self) -> NDArray[np.floating]:
        """(drawings, corruptions)."""
        return np.asarray(self.cells.mean(axis=2))


class _Both(NamedTuple):
    """The model's errors and the baseline's, in the same drawings."""

    own: _Errors
    baseline: NDArray[np.floating]  # (drawings or 1, corruptions)
    baseline_clean: NDArray[np.floating] | None  # (drawings or 1,)

    @property
    def ratios(self) -> NDArray[np.floating]:
        with np.errstate(divide="ignore", invalid="ignore"):  # what is not a number is not reported
            return np.asarray(self.own.by_corruption / self.baseline)

    @property
    def relative_ratios(self) -> NDArray[np.floating] | None:
        if self.own.clean is None or self.baseline_clean is None:
            return None
        lost, theirs = self.own.by_corruption - self.own.clean[:, None], self.baseline - self.baseline_clean[:, None]
        theirs = np.where(np.abs(theirs) < _ROUNDING, 0, theirs)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(lost / theirs)


class _Number(NamedTuple):
    """A number to be had from any drawing of the images."""

    metric: str
    about: About
    of: Callable[[_Both], NDArray[np.floating]]
    convention: Mapping[str, str]


def findings(cells: Cells, baseline: Baseline | None, about: About, convention: Mapping[str, str]) -> Iterator[Finding]:
    """Every number and curve of one model; a baseline that is a model has the same images in the same order."""
    yield from _each_cell(cells, about, convention)
    own = resampled_means(cells.columns)
    errors = [_Errors.of(means, cells) for means in own]
    if baseline is not None and baseline.cells is not None:
        other = resampled_means(baseline.cells.columns)
        theirs = [_Errors.of(means, baseline.cells) for means in other]
        drawings = [_Both(one, two.by_corruption, two.clean) for one, two in zip(errors, theirs, strict=True)]
    else:
        constants = np.full((1, len(cells.corruptions)), np.nan)
        if baseline is not None and baseline.errors is not None:
            constants = baseline.errors[None]
        clean = None if baseline is None or baseline.clean_error is None else np.array([baseline.clean_error])
        drawings = [_Both(one, constants, clean) for one in errors]
    for number in _numbers(cells, baseline):
        seen, drawn, left_out = (number.of(drawing) for drawing in drawings)
        if np.isfinite(seen[0]):
            interval = interval_of(seen, drawn, left_out)
            told = {**convention, **number.convention, **({} if interval is None else JOINT)}
            yield Measurement(number.metric, float(seen[0]), {**about, **number.about}, len(cells), told, interval)
    yield from _curves(cells, about, convention)


def compared(cells: Cells, baseline: Baseline | str) -> tuple[Cells, Baseline | None]:
    """The cells of the images that the baseline answered too, and the baseline where there is one."""
    if isinstance(baseline, str):
        return cells, None
    if baseline.cells is None:
        return cells, baseline
    answered = set(baseline.cells.ids)
    shared = [image for image in cells.ids if image in answered]
    return cells.take(shared), dataclasses.replace(baseline, cells=baseline.cells.take(shared))


def why_no_ratios(cells: Cells, baseline: Baseline | str, run: Run) -> str | None:
    """Why errors are not divided by a baseline's, or some cannot be; None where all are."""
    name = run.image_set.name
    if isinstance(baseline, str):
        return baseline if baseline.startswith(f"{name}: ") else f"{name}: {baseline}"
    cells, against = compared(cells, baseline)
    other = against.cells if against else None
    if other is None:
        return None
    if not len(cells):
        return f"{name}: no image was read and labelled for both {run.model.name} and {baseline.told}"
    means = other.wrong.mean(axis=(0, 2))
    perfect = [corruption for corruption, mean in zip(other.corruptions, means, strict=True) if mean == 0]
    if perfect:
        return f"{name}: {baseline.told} makes no mistakes under {listed(perfect)}, so nothing can be divided by it"
    if other.clean_wrong is not None:
        lost = np.abs(means - other.clean_wrong.mean())
        unharmed = [corruption for corruption, loss in zip(other.corruptions, lost, strict=True) if loss < _ROUNDING]
        if unharmed:
            return (
                f"{name}: {baseline.told} loses nothing under {listed(unharmed)}, so nothing relative can be divided by it"
            )
    return None


def _each_cell(cells: Cells, about: About, convention: Mapping[str, str]) -> Iterator[Measurement]:
    images = len(cells)
    if cells.clean_wrong is not None:
        yield evidence.share("clean_error", int(cells.clean_wrong.sum()), images, about, convention)
    counts = cells.wrong.sum(axis=0)
    for corruption, row in zip(cells.corruptions, counts.tolist(), strict=True):
        for severity, wrong in zip(cells.severities, row, strict=True):
            cell = {**about, "corruption": corruption, "severity": severity}
            yield evidence.share("corrupted_error", wrong, images, cell, convention)


def _numbers(cells: Cells, baseline: Baseline | None) -> Iterator[_Number]:
    """The means over cells, and what they are in multiples of the baseline's."""
    averaged = {
        "severities": ", ".join(map(str, cells.severities)),
        "corruptions": averaged_corruptions(cells.corruptions),
    }
    for place, name in enumerate(cells.corruptions):
        told = {"severities": averaged["severities"]}
        yield _Number("corruption_mean_error", {"corruption": name}, _corruption_mean(place), told)
    for group, members in GROUPS.items():
        places = [place for place, name in enumerate(cells.corruptions) if name in members]
        if places:
            told = {**averaged, "corruptions": listed((cells.corruptions[place] for place in places), most=19)}
            yield _Number("group_error", {"group": group}, _group_mean(places), told)
    yield _Number("mean_corrupted_error", {}, lambda both: both.own.by_corruption.mean(axis=1), averaged)
    if cells.clean_wrong is not None:
        yield _Number("relative_corrupted_error", {}, _lost, averaged)
    if baseline is None:
        return
    averaged["baseline"] = baseline.told
    told = {key: value for key, value in averaged.items() if key != "corruptions"}
    relative = cells.clean_wrong is not None and (
        baseline.clean_error is not None or (baseline.cells is not None and baseline.cells.clean_wrong is not None)
    )
    for place, name in enumerate(cells.corruptions):
        yield _Number("corruption_error", {"corruption": name}, _ratio(place), told)
    if relative:
        for place, name in enumerate(cells.corruptions):
            yield _Number("relative_corruption_error", {"corruption": name}, _relative_ratio(place), told)
    yield _Number("mean_corruption_error", {}, lambda both: both.ratios.mean(axis=1), averaged)
    if relative:
        yield _Number("relative_mean_corruption_error", {}, _mean_relative_ratio, averaged)


def averaged_corruptions(corruptions: Sequence[str]) -> str:
    """Which corruptions a mean is over, in words.

    >>> averaged_corruptions(IMAGENET_C), averaged_corruptions(["fog", "snow"])
    ('the 15 of ImageNet-C', 'fog, snow')
    """
    return "the 15 of ImageNet-C" if set(corruptions) == set(IMAGENET_C) else ", ".join(corruptions)


def _corruption_mean(place: int) -> Callable[[_Both], NDArray[np.floating]]:
    return lambda both: both.own.by_corruption[:, place]


def _group_mean(places: Sequence[int]) -> Callable[[_Both], NDArray[np.floating]]:
    return lambda both: np.asarray(both.own.by_corruption[:, places].mean(axis=1))


def _ratio(place: int) -> Callable[[_Both], NDArray[np.floating]]:
    return lambda both: both.ratios[:, place]


def _relative_ratio(place: int) -> Callable[[_Both], NDArray[np.floating]]:
    return lambda both: _relative_ratios(both)[:, place]


def _mean_relative_ratio(both: _Both) -> NDArray[np.floating]:
    return np.asarray(_relative_ratios(both).mean(axis=1))


def _relative_ratios(both: _Both) -> NDArray[np.floating]:
    ratios = both.relative_ratios
    return np.full_like(both.ratios, np.nan) if ratios is None else ratios


def _lost(both: _Both) -> NDArray[np.floating]:
    return np.asarray(both.own.by_corruption.mean(axis=1) - (0 if both.own.clean is None else both.own.clean))


def _curves(cells: Cells, about: About, convention: Mapping[str, str]) -> Iterator[Curve]:
    """The error of each corruption against its severity; severity 0 is the unchanged image."""
    images = len(cells)
    clean = [] if cells.clean_wrong is None else [int(cells.clean_wrong.sum())]
    severities = tuple(float(severity) for severity in ((0,) if clean else ()) + cells.severities)
    for corruption, row in zip(cells.corruptions, cells.wrong.sum(axis=0).tolist(), strict=True):
        wrong = np.array([*clean, *row])
        low, high = clopper_pearson(wrong, np.full(len(wrong), images))
        yield Curve(
            "degradation",
            {**about, "corruption": corruption},
            "severity",
            "share wrong",
            x=severities,
            y=tuple((wrong / images).tolist()),
            images=images,
            convention={**convention, **evidence.EXACT},
            counts=(images,) * len(wrong),
            low=tuple(low.tolist()),
            high=tuple(high.tolist()),
        )
