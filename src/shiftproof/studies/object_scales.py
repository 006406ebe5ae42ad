"""Objects by how large a model sees them: accuracy by scale factor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from shiftproof.metrics.scale_factors import INPUT_SIDE, accuracy_by_scale, scale_factor
from shiftproof.studies import evidence
from shiftproof.types import About, Clusters, Fact, ImageSet, Measurement, Truths

SEEN = 0.875
"""Share of an image's shorter side that a crop of 224 sees of 256, and that the inputs of most models are."""

CONVENTION = {
    "scale factor": (
        f"longer side of the box over {SEEN:g} of the image's shorter side, which is what a centre crop sees, as the next "
        "lower power of two; the published bins hold both their ends, so that objects of exactly half count twice there"
    )
}


def seen_scale_factors(longer_sides: NDArray[np.floating], sizes: NDArray[np.floating]) -> NDArray[np.floating]:
    """The scale factor of objects with these longer sides in images of these widths and heights, (objects, 2).

    >>> seen_scale_factors(np.array([350.0, 175.0, 174.0]), np.array([[500, 400]] * 3))  # the crop sees 350 of 400
    array([1.  , 0.5 , 0.25])
    """
    boxes = np.zeros((len(longer_sides), 4))
    boxes[:, 2] = INPUT_SIDE * longer_sides / (SEEN * sizes.min(axis=1))
    return scale_factor(boxes)


def factors_from_facts(facts: Mapping[str, Sequence[Fact]]) -> NDArray[np.floating] | None:
    """The scale factors of crops, (objects,); None where the sizes of their images are not known."""
    if not {"longer_side", "width", "height"} <= set(facts):
        return None
    columns = [np.array([np.nan if one is None else one for one in facts[name]], float) for name in ("width", "height")]
    sizes, longer = np.stack(columns, axis=1), np.array(facts["longer_side"], float)
    return seen_scale_factors(longer, sizes) if np.isfinite(sizes).all() else None


def largest_factors(images: ImageSet) -> dict[str, float]:
    """The scale factor of the largest object of every image of a boxed set whose size is known, by the image's id."""
    truths: Truths | None = getattr(images, "truths", None)
    if truths is None:
        return {}
    longer = np.zeros(len(truths.ids))
    np.maximum.at(longer, truths.image, (truths.boxes[:, 2:] - truths.boxes[:, :2]).max(axis=1, initial=0))
    facts = {sample.id: sample.facts for sample in images.samples}
    sizes = np.array([[facts[one].get(side) for side in ("width", "height")] for one in truths.ids], float)
    told = np.flatnonzero(np.isfinite(sizes).all(axis=1) & (longer > 0))
    factors = seen_scale_factors(longer[told], sizes[told]).tolist()
    return {truths.ids[place]: factor for place, factor in zip(told.tolist(), factors, strict=True)}


def accuracies_by_scale(
    metric: str,
    correct: NDArray[np.bool_],
    factors: NDArray[np.floating],
    about: About,
    convention: Mapping[str, str],
    clusters: Clusters,
) -> Iterator[Measurement]:
    """Accuracy on the objects of each scale factor that has any; inputs of the side `kept_at` keep such objects as large."""
    table = accuracy_by_scale(correct, factors)
    for factor, side, total in zip(table.factors, table.input_sizes, table.tally.total.tolist(), strict=True):
        if total:
            named = {**about, "scale_factor": factor_name(factor), "kept_at": side or "none"}
            rows = factors == factor
            yield evidence.share(metric, correct[rows], named, {**convention, **CONVENTION}, clusters.take(rows))


def factor_name(factor: float) -> str:
    """A scale factor as people write it.

    >>> factor_name(1.0), factor_name(0.125), factor_name(0.0)
    ('1', '1/8', 'below 1/32')
    """
    if factor == 0:
        return "below 1/32"
    return "1" if factor == 1 else f"1/{round(1 / factor)}"
