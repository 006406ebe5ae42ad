"""Images worth looking at: those that two detectors see differently, and outside images beside the inside one nearest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from shiftproof.metrics.ranks import mid_ranks
from shiftproof.studies.distance_analysis import Surroundings
from shiftproof.studies.novelty_goals import best_detector, new_class
from shiftproof.studies.novelty_scores import Judged, Scored
from shiftproof.types import Gallery, GalleryItem, ImageSetRef

Refs = Mapping[str, ImageSetRef]
"""The image set behind each variant."""


def disagreements(judged: Judged, refs: Refs, *, shown: int, between: tuple[str, str] | None = None) -> Iterator[Gallery]:
    """Images that two detectors place most unlike: the best of new classes and the baseline, where none are named."""
    between = between or _best_and_baseline(judged)
    if between is None or not judged.detectors.keys() >= set(between):
        return
    name, versus = between
    sets = [judged.inside, *judged.outside]
    ours, theirs = (_places(sets, detector) for detector in between)
    rows = [(one, row) for one in sets for row in range(len(one))]
    items = []
    for place in np.argsort(-np.abs(ours - theirs), kind="stable")[:shown].tolist():
        scored, row = rows[place]
        kind = _kind(scored, row) if scored is judged.inside else f"outside ({scored.name})"
        caption = f"{name} {100 * ours[place]:.0f} %, {versus} {100 * theirs[place]:.0f} %: {kind}"
        items.append(GalleryItem(scored.ids[row], caption, image_set=refs[scored.name]))
    about = {**judged.about, "detector": name, "versus": versus}
    title = f"Where {name} and {versus} disagree most: how many of 100 images they find less foreign"
    yield Gallery("detector_disagreement", about, refs[judged.inside.name], title, tuple(items))


def _best_and_baseline(judged: Judged) -> tuple[str, str] | None:
    rivals = [name for name in judged.detectors if name != judged.baseline]
    if not judged.outsides or not rivals:
        return None
    return best_detector(new_class(judged.inside.only(rivals), judged.outsides[-1].only(rivals))), judged.baseline


def nearest_pairs(
    judged: Judged, surroundings: Surroundings, refs: Refs, *, percentiles: Sequence[float]
) -> Iterator[Gallery]:
    """Outside images at these percentiles of the distance, each followed by the inside image nearest it."""
    inside = refs[judged.inside.name]
    for outside in judged.outside:
        if outside.name not in surroundings.nearness:
            continue
        neighbours, distances = surroundings.nearness[outside.name]
        order = np.argsort(distances, kind="stable")
        items: list[GalleryItem] = []
        for percentile in percentiles:
            row = int(order[round(percentile / 100 * (len(order) - 1))])
            caption = f"{outside.name}, at {distances[row]:.3g}: farther than {percentile:g} %"
            items.append(GalleryItem(outside.ids[row], caption, image_set=refs[outside.name]))
            items.append(GalleryItem(neighbours[row], "nearest inside", image_set=inside))
        about = {**judged.about, "set": outside.name}
        title = f"Images of {outside.name}, each beside the inside image nearest it for {surroundings.space}"
        yield Gallery("nearest_pairs", about, refs[outside.name], title, tuple(items))


def _places(sets: list[Scored], detector: str) -> NDArray[np.floating]:
    """Share of all images that are less foreign, (images,)."""
    scores = np.concatenate([one.scores[detector] for one in sets])
    return (mid_ranks(scores) - 0.5) / len(scores)


def _kind(inside: Scored, row: int) -> str:
    if not inside.labelled[row]:
        return "inside"
    return "correct" if inside.correct[row] else "wrong"
