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
from shiftproof.types import About, Curve, Finding, Measurement

JOINT = {"interval": f"95 %, BCa bootstrap over images, {RESAMPLES} draws, each image in all its cells together"}
OF_LOSSES = frozenset({"relative_corrupted_error", "relative_corruption_error", "relative_mean_corruption_error"})
"""What is taken from errors under corruption and of clean images together."""

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


class _Number(NamedTuple):
    """A number to be had from any drawing of the images."""

    metric: str
    about: About
    of: Callable[[_Both], NDArray[np.floating]]
    convention: Mapping[str, str]


def findings(
    cells: Cells,
    baseline: Baseline | None,
    about: About,
    convention: Mapping[str, str],
    *,
    clean_convention: Mapping[str, str],
) -> Iterator[Finding]:
    """Every number and curve of one model; a baseline that is a model has the same images in the same order."""
    if cells.clean_wrong is not None:
        yield evidence.share("clean_error", int(cells.clean_wrong.sum()), len(cells), about, clean_convention)
    yield from _each_cell(cells, about, convention)
    drawings = list(_drawings(cells, baseline))
    for number in _numbers(cells, baseline):
        seen, drawn, left_out = (number.of(drawing) for drawing in drawings)
        if np.isfinite(seen[0]):
            interval = interval_of(seen, drawn, left_out)
            told = {**convention, **number.convention, **({} if interval is None else JOINT)}
            told |= clean_told(convention, clean_convention) if number.metric in OF_LOSSES else {}
            yield Measurement(number.metric, float(seen[0]), {**about, **number.about}, len(cells), told, interval)
    yield from _curves(cells, about, {**convention, **clean_told(convention, clean_convention)})


def clean_told(convention: Mapping[str, str], clean_convention: Mapping[str, str]) -> dict[str, str]:
    """Whether clean pictures were saved as corrupted ones were: what the save alone costs is in every difference else.

    >>> clean_told({"output": "jpeg85"}, {"output": "raw"})
    {'clean pictures': 'raw, corrupted ones jpeg85: what that save costs counts as lost to corruption'}
    >>> clean_told({"output": "jpeg85"}, {"output": "jpeg85"})
    {'clean pictures': 'jpeg85, as corrupted ones; published ones were not saved again'}
    """
    clean, corrupted = clean_convention.get("output"), convention.get("output")
    if clean != corrupted:
        return {"clean pictures": f"{clean}, corrupted ones {corrupted}: what that save costs counts as lost to corruption"}
    if clean == "jpeg85":
        return {"clean pictures": "jpeg85, as corrupted ones; published ones were not saved again"}
    return {}


def _drawings(cells: Cells, baseline: Baseline | None) -> Iterator[_Both]:
    """The errors as seen, with images drawn again, and with some left out."""
    errors = [_Errors.of(means, cells) for means in resampled_means(cells.columns)]
    if baseline is not None and baseline.cells is not None:
        # the same seed draws the same images for both
        for own, means in zip(errors, resampled_means(baseline.cells.columns), strict=True):
            other = _Errors.of(means, baseline.cells)
            yield _Both(own, other.by_corruption, other.losses)
        return
    constants = np.full((1, len(cells.corruptions)), np.nan)
    if baseline is not None and baseline.errors is not None:
        constants = baseline.errors[None]
    clean = np.nan if baseline is None or baseline.clean_error is None else baseline.clean_error
    yield from (_Both(own, constants, constants - clean) for own in errors)


def compared(cells: Cells, baseline: Baseline | str) -> tuple[Cells, Baseline | None]:
    """The cells of the images that the baseline answered too, and the baseline where there is one for the same cells."""
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
        yield f"{baseline.told} has answers in other cells than {model}, so nothing can be divided by it"
        return
    other = against.cells
    if other is None:
        return
    if not len(cells):
        yield f"no image was read and labelled for both {model} and {baseline.told}"
        return
    means = other.wrong.mean(axis=(0, 2))
    perfect = [name for name, mean in zip(other.corruptions, means, strict=True) if mean == 0]
    if perfect:
        yield f"{baseline.told} makes no mistakes under {listed(perfect)}, so nothing can be divided by it"
    if other.clean_wrong is not None:
        lost = np.abs(means - other.clean_wrong.mean())
        unharmed = [name for name, loss in zip(other.corruptions, lost, strict=True) if loss < _ROUNDING]
        if unharmed:
            yield f"{baseline.told} loses nothing under {listed(unharmed)}, so no added error can be divided by it"


def _each_cell(cells: Cells, about: About, convention: Mapping[str, str]) -> Iterator[Measurement]:
    counts = cells.wrong.sum(axis=0)
    for corruption, row in zip(cells.corruptions, counts.tolist(), strict=True):
        for severity, wrong in zip(cells.severities, row, strict=True):
            cell = {**about, "corruption": corruption, "severity": severity}
            yield evidence.share("corrupted_error", wrong, len(cells), cell, convention)


def _numbers(cells: Cells, baseline: Baseline | None) -> Iterator[_Number]:
    """The means over cells, and what they are in multiples of the baseline's."""
    severities = {"severities": ", ".join(map(str, cells.severities))}
    counted = _counted(cells.corruptions)
    averaged = {**severities, "corruptions": averaged_corruptions([cells.corruptions[place] for place in counted])}
    for place, name in enumerate(cells.corruptions):
        yield _Number("corruption_mean_error", {"corruption": name}, _mean([place]), severities)
    for group, members in GROUPS.items():
        places = [place for place, name in enumerate(cells.corruptions) if name in members]
        if places:
            told = {**severities, "corruptions": ", ".join(cells.corruptions[place] for place in places)}
            yield _Number("group_error", {"group": group}, _mean(places), told)
    yield _Number("mean_corrupted_error", {}, _mean(counted), averaged)
    if cells.clean_wrong is not None:
        yield _Number("relative_corrupted_error", {}, _mean_loss(counted), averaged)
    if baseline is not None:
        beside = {"baseline": baseline.told}
        for metric, mean_metric, ratio in [
            ("corruption_error", "mean_corruption_error", _mean_ratio),
            ("relative_corruption_error", "relative_mean_corruption_error", _mean_relative_ratio),
        ]:
            for place, name in enumerate(cells.corruptions):
                yield _Number(metric, {"corruption": name}, ratio([place]), {**severities, **beside})
            yield _Number(mean_metric, {}, ratio(counted), {**averaged, **beside})


def _counted(corruptions: Sequence[str]) -> list[int]:
    """The corruptions a mean is over: those of the fifteen, or all where none of them is there."""
    tested = [place for place, name in enumerate(corruptions) if name in IMAGENET_C]
    return tested or list(range(len(corruptions)))


def averaged_corruptions(corruptions: Sequence[str]) -> str:
    """Which corruptions a mean is over, in words.

    >>> averaged_corruptions(IMAGENET_C), averaged_corruptions(["fog", "snow"])
    ('the 15 of ImageNet-C', 'fog, snow')
    """
    return "the 15 of ImageNet-C" if set(corruptions) == set(IMAGENET_C) else ", ".join(corruptions)


def _mean(places: Sequence[int]) -> Callable[[_Both], NDArray[np.floating]]:
    return lambda both: np.asarray(both.own.by_corruption[:, places].mean(axis=1))


def _mean_loss(places: Sequence[int]) -> Callable[[_Both], NDArray[np.floating]]:
    return lambda both: np.asarray(both.own.losses[:, places].mean(axis=1))


def _mean_ratio(places: Sequence[int]) -> Callable[[_Both], NDArray[np.floating]]:
    return lambda both: _divided(both.own.by_corruption[:, places], both.baseline[:, places])


def _mean_relative_ratio(places: Sequence[int]) -> Callable[[_Both], NDArray[np.floating]]:
    return lambda both: _divided(both.own.losses[:, places], both.baseline_losses[:, places])


def _divided(own: NDArray[np.floating], baseline: NDArray[np.floating]) -> NDArray[np.floating]:
    """The mean over corruptions of what stands in multiples of the baseline's; not a number where that is nothing."""
    divisors = np.where(np.abs(baseline) < _ROUNDING, np.nan, baseline)
    return np.asarray((own / divisors).mean(axis=1))


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
