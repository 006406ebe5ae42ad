"""Images worth looking at: where detectors disagree, at percentiles of a score, and outside ones beside the nearest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from shiftproof.metrics.ranks import images_below
from shiftproof.studies.distance_analysis import Surroundings
from shiftproof.studies.novelty_goals import best_detector, new_class
from shiftproof.studies.novelty_scores import Judged, Scored
from shiftproof.studies.novelty_variants import Variant
from shiftproof.types import CLEAN, Gallery, GalleryItem

Variants = Mapping[str, Variant]
"""What is behind each name: the image set, its role and its condition."""


def disagreements(
    judged: Judged, variants: Variants, *, shown: int, each: int = 0, between: tuple[str, str] | None = None
) -> Iterator[Gallery]:
    """Images that two detectors place most unlike: the best of new classes and the baseline, where none are named.

    Over all sets together first, then `each` for each set and each of the two that finds them the more foreign.
    """
    between = _two_shown(judged, between)
    if between is None:
        return
    name, versus = between
    places = {detector: _places(judged, detector) for detector in between}
    sets = [judged.inside, *judged.outside]
    ours, theirs = (np.concatenate([places[detector][one.name] for one in sets]) for detector in between)
    rows = [(one, row) for one in sets for row in range(len(one))]
    items = []
    for place in np.argsort(-np.abs(ours - theirs), kind="stable")[:shown].tolist():
        one, row = rows[place]
        items.append(_item(one, row, variants, _both(name, ours[place], versus, theirs[place]), named=True))
    about = {**judged.about, "detector": name, "versus": versus}
    title = f"Where {name} and {versus} disagree most: how many of 100 images they find less foreign"
    yield Gallery("detector_disagreement", about, variants[judged.inside.name].image_set, title, tuple(items))
    for one in (judged.inside, *judged.shifted, *judged.outside) if each else ():
        for first, second in (between, between[::-1]):
            yield from _one_way(judged, one, first, second, places, variants, each)


def _one_way(
    judged: Judged,
    scored: Scored,
    first: str,
    second: str,
    places: Mapping[str, Mapping[str, NDArray[np.floating]]],
    variants: Variants,
    most: int,
) -> Iterator[Gallery]:
    """Those images of one set that the first detector finds the most foreign beside the second."""
    ours, theirs = places[first][scored.name], places[second][scored.name]
    order = np.argsort(theirs - ours, kind="stable")[:most]
    items = [
        _item(scored, row, variants, _both(first, ours[row], second, theirs[row]))
        for row in order.tolist()
        if ours[row] > theirs[row]
    ]
    if items:
        variant = variants[scored.name]
        about = {**judged.about, "detector": first, "versus": second, "set": scored.name, "side": variant.role}
        title = f"{scored.name} ({variant.role}): more foreign to {first} than to {second}"
        yield Gallery("disagreement_by_set", about, variant.image_set, title, tuple(items))


def scored_examples(
    judged: Judged, variants: Variants, *, percentiles: Sequence[float], of: tuple[str, str] | None = None
) -> Iterator[Gallery]:
    """Images of each set at these percentiles of a detector's score in that set, least foreign first."""
    for name in _two_shown(judged, of) or tuple(judged.detectors)[:1] if percentiles else ():
        for one in (judged.inside, *judged.shifted, *judged.outside):
            scores, variant = one.scores[name], variants[one.name]
            order = np.argsort(scores, kind="stable")
            items = []
            for percentile in percentiles:
                row = int(order[round(percentile / 100 * (len(order) - 1))])
                items.append(_item(one, row, variants, f"{percentile:g} %, score {scores[row]:.3g}"))
            about = {**judged.about, "detector": name, "set": one.name, "side": variant.role}
            title = f"{one.name} ({variant.role}): images at percentiles of {name}"
            yield Gallery("score_percentiles", about, variant.image_set, title, tuple(items))


def _two_shown(judged: Judged, named: tuple[str, str] | None) -> tuple[str, str] | None:
    """The two detectors that are looked at, if this model has both."""
    two = named or _best_and_baseline(judged)
    return two if two is not None and judged.detectors.keys() >= set(two) else None


def _best_and_baseline(judged: Judged) -> tuple[str, str] | None:
    rivals = [name for name in judged.detectors if name != judged.baseline]
    if not judged.outsides or not rivals:
        return None
    return best_detector(new_class(judged.inside.only(rivals), judged.outsides[-1].only(rivals))), judged.baseline


def nearest_pairs(
    judged: Judged, surroundings: Surroundings, variants: Variants, *, percentiles: Sequence[float]
) -> Iterator[Gallery]:
    """Outside images at these percentiles of the distance, each followed by the inside image nearest it."""
    inside = variants[judged.inside.name].image_set
    for outside in judged.outside:
        if outside.name not in surroundings.nearness:
            continue
        neighbours, distances = surroundings.nearness[outside.name]
        order = np.argsort(distances, kind="stable")
        items: list[GalleryItem] = []
        for percentile in percentiles:
            row = int(order[round(percentile / 100 * (len(order) - 1))])
            caption = f"{outside.name}, at {distances[row]:.3g}: farther than {percentile:g} %"
            items.append(GalleryItem(outside.ids[row], caption, image_set=variants[outside.name].image_set))
            items.append(GalleryItem(neighbours[row], "nearest inside", image_set=inside))
        about = {**judged.about, "set": outside.name}
        title = f"Images of {outside.name}, each beside the inside image nearest it for {surroundings.space}"
        yield Gallery("nearest_pairs", about, variants[outside.name].image_set, title, tuple(items))


def _places(judged: Judged, detector: str) -> dict[str, NDArray[np.floating]]:
    """Share of the inside and outside images that look less foreign than each image, by set; of itself, half."""
    order = np.concatenate([one.scores[detector] for one in (judged.inside, *judged.outside)])
    sets = (judged.inside, *judged.shifted, *judged.outside)
    return {one.name: images_below(one.scores[detector], order) / len(order) for one in sets}


def _both(first: str, ours: float, second: str, theirs: float) -> str:
    return f"{first} {100 * ours:.0f} %, {second} {100 * theirs:.0f} %"


def _item(scored: Scored, row: int, variants: Variants, said: str, *, named: bool = False) -> GalleryItem:
    """An image as its variant shows it, and what it is; outside sets are named where several stand together."""
    variant = variants[scored.name]
    condition = None if variant.condition == CLEAN else variant.condition
    outside = f"outside ({scored.name})" if named else "outside"
    kind = outside if variant.role == "outside" else _kind(scored, row)
    return GalleryItem(scored.ids[row], f"{said}: {kind}", condition=condition, image_set=variant.image_set)


def _kind(scored: Scored, row: int) -> str:
    if not scored.labelled[row]:
        return "inside"
    return "correct" if scored.correct[row] else "wrong"
