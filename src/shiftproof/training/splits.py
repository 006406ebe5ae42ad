"""Seeded splits of a dataset, by class, that never part a cluster: a clip, the versions of a photo, near-duplicates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from shiftproof.datasets.clusters import Clustering
from shiftproof.datasets.subsets import View
from shiftproof.errors import BadInput
from shiftproof.randomness import rng_for
from shiftproof.types import Dataset, Sample


def split(
    images: Dataset,
    share: float,
    *,
    seed: int = 0,
    clustering: Clustering | None = None,
    names: tuple[str, str],
    strata: Sequence[tuple[int, ...]] | None = None,
) -> tuple[View, View]:
    """The images without, and with, about this `share` of the clusters of every class; each named after its part.

    `strata` say what counts as the class of each image, where that is not its labels. Whether a cluster is drawn depends
    on its key, the seed and the other clusters of its class alone. A class of at least two clusters is on both sides.
    BadInput where a side would be empty.
    """
    keys = _cluster_keys(images.samples, clustering or Clustering())
    drawn = _drawn(strata or [sample.labels for sample in images.samples], keys, share, seed)
    sides = [[place for place, key in enumerate(keys) if (key in drawn) == side] for side in (False, True)]
    if not all(sides):
        raise BadInput(
            f"{images.ref.name} cannot be split: its {len(images.samples):,} labelled images are "
            f"{len(set(keys)):,} clusters, and one must be left on each side; add images of other clips or photos"
        )
    first, second = (_part(images, places, name) for places, name in zip(sides, names, strict=True))
    return first, second


def _cluster_keys(samples: Sequence[Sample], clustering: Clustering) -> Sequence[str]:
    found = clustering.of(samples)
    return [sample.id for sample in samples] if found is None else found.keys


def _drawn(strata: Sequence[tuple[int, ...]], keys: Sequence[str], share: float, seed: int) -> Collection[str]:
    """The clusters that are drawn: of those of each class, in a random order, until they hold the share of its images."""
    sizes = Counter(keys)
    labels: dict[str, Counter[tuple[int, ...]]] = {}
    for stratum, key in zip(strata, keys, strict=True):
        labels.setdefault(key, Counter())[stratum] += 1
    of_class: dict[tuple[int, ...], list[str]] = {}
    for key, counts in labels.items():
        of_class.setdefault(min(counts, key=lambda label: (-counts[label], label)), []).append(key)
    drawn: set[str] = set()
    for clusters in of_class.values():
        clusters.sort(key=lambda key: (rng_for(key, "split", seed).random(), key))
        wanted, held = share * sum(sizes[key] for key in clusters), 0
        for place, key in enumerate(clusters[:-1]):  # the last stays, so that training has the class
            if place and held + sizes[key] / 2 > wanted:  # the first is drawn, so that validation has it
                break
            drawn.add(key)
            held += sizes[key]
    return drawn


def _part(images: Dataset, places: Sequence[int], name: str) -> View:
    samples = [images.samples[place] for place in places]
    truths = images.truths and images.truths.of_images([sample.id for sample in samples])
    return View(images, images.classes, samples, f"{images.ref.name}, {name}", notes=images.notes, truths=truths)
