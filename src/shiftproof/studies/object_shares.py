"""How much of their images objects fill: by class, and as a histogram beside that of another boxed set."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from shiftproof.image_sets.crops import image_of
from shiftproof.metrics.object_size import compare_shares
from shiftproof.studies import evidence
from shiftproof.studies.class_names import ClassNames
from shiftproof.types import Clusters, Curve, Finding, ImageSet, Measurement

BINS = 20


def shares_of(objects: ImageSet) -> NDArray[np.floating]:
    """Share of its image that each object of a set of crops fills, nan where that is not known, (objects,)."""
    return np.array([sample.facts.get("share") for sample in objects.samples], float)


def share_findings(objects: ImageSet, *, of: str, beside: ImageSet | None) -> Iterator[Finding]:
    """Mean share of each class, the histogram of all, and that of another set with how far the two overlap."""
    shares = shares_of(objects)
    known = np.isfinite(shares)
    if not known.any():
        return
    labels, names = np.array([sample.labels[0] for sample in objects.samples]), ClassNames(objects.classes)
    convention = {"share": "area of the box over that of its image"}
    clusters = Clusters("source image", tuple(image_of(sample.id) for sample in objects.samples))
    for label in np.unique(labels[known]).tolist():
        about, rows = {"image_set": of, "class": names[label]}, known & (labels == label)
        yield evidence.mean("class_object_share", shares[rows], about, convention, clusters.take(rows), bounds=(0.0, 1.0))
    others = shares_of(beside) if beside is not None else shares
    others = others[np.isfinite(others)]
    compared = compare_shares(shares[known], others if len(others) else shares[known], bins=BINS)
    yield _histogram(of, of, compared.edges, compared.first, int(known.sum()))
    if beside is not None and len(others):
        name, counted = beside.ref.name, int(known.sum()) + len(others)
        yield _histogram(of, name, compared.edges, compared.second, len(others))
        about = {"image_set": of, "beside": name}
        yield Measurement("object_share_overlap", compared.overlap, about, counted, {**convention, "bins": f"{BINS}, equal"})


def _histogram(of: str, objects: str, edges: NDArray[np.floating], shares: NDArray[np.floating], count: int) -> Curve:
    return Curve(
        "object_shares",
        {"image_set": of, "objects_of": objects},
        "share of the image",
        "share of the objects",
        x=tuple(((edges[1:] + edges[:-1]) / 2).tolist()),
        y=tuple(shares.tolist()),
        images=count,
        convention={"bins": f"{len(shares)} of equal width; each holds its lower edge, the last both"},
        counts=tuple(np.round(shares * count).astype(int).tolist()),
    )
