"""Clusters: which images are one independent unit. Confidence intervals and tests resample clusters, not images.

Frames of a clip, corrupted versions or crops of a photo are not so many independent images. Where a dataset says where its
images come from, that is used; otherwise a fact of the images or a table can be named.
"""

from __future__ import annotations

import csv
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from shiftproof.datasets.boxed.crops import image_of
from shiftproof.datasets.published.imagenet import clean_id
from shiftproof.datasets.sample_table import fact_names
from shiftproof.errors import BadInput, UnknownName
from shiftproof.files import repeated
from shiftproof.types import Clusters, Dataset, Sample

EACH_IMAGE = "image"
"""The name for clusters of one image each, where images are independent although their dataset says otherwise."""


MOST_JUDGED = 200_000
"""Images whose names are looked at for signs of clusters."""


class _Source(NamedTuple):
    """A way in which facts say where an image comes from."""

    facts: tuple[str, ...]  # that such images have
    unit: str
    key: Callable[[Sample], str]


SOURCES = (
    _Source(("clip",), "clip", lambda sample: str(sample.facts["clip"])),
    _Source(("anchor", "offset"), "clip", lambda sample: _folder(str(sample.facts["anchor"]))),
    _Source(("sequence", "perturbation"), "source image", lambda sample: str(sample.facts["sequence"])),
    _Source(("sequence",), "clip", lambda sample: str(sample.facts["sequence"])),
    _Source(("corruption", "severity"), "source image", lambda sample: image_behind(sample)),
    _Source(("photo", "varied"), "source image", lambda sample: str(sample.facts["photo"])),
    _Source(("cut",), "source image", lambda sample: image_of(sample.id)),
)
"""The first whose facts an image has says which cluster it belongs to."""


@dataclass(frozen=True)
class Clustering:
    """The rule that assigns images to clusters: what the dataset says, a fact of its images, or a table of ids."""

    by: str | None = None
    table: Mapping[str, str] | None = None  # cluster by image id
    links: bool = False  # whether the table lists only near-duplicates
    joined: Mapping[str, str] = field(default_factory=dict)  # cluster that another is joined with: near-duplicates

    def of(self, samples: Sequence[Sample]) -> Clusters | None:
        """The clusters of these images; None where each image is its own."""
        found = self.unjoined(samples)
        if not self.joined:
            return found
        found = found or Clusters("image", tuple(sample.id for sample in samples))
        return replace(found, keys=tuple(self.joined.get(key, key) for key in found.keys), near_duplicates=True)

    def joining(self, samples: Sequence[Sample], alike: Mapping[str, str]) -> Clustering:
        """The same rule with clusters joined that share near-duplicates, unless the user named what a cluster is.

        Near-duplicates have one value in `alike`, by image id.
        """
        if self.by is not None or not alike:
            return self
        found, first = self.unjoined(samples), dict[str, str]()
        keys = [sample.id for sample in samples] if found is None else found.keys
        pairs = [
            (key, first.setdefault(alike[sample.id], key))
            for sample, key in zip(samples, keys, strict=True)
            if sample.id in alike
        ]
        return replace(self, joined={key: case for key, case in linked(pairs).items() if key != case})

    def unjoined(self, samples: Sequence[Sample]) -> Clusters | None:
        """The clusters without joining near-duplicates."""
        if self.by == EACH_IMAGE:
            return Clusters("image", tuple(sample.id for sample in samples))
        if self.table is not None:
            return Clusters("cluster", tuple(self.table.get(sample.id, sample.id) for sample in samples), named=True)
        if self.by is not None:
            return Clusters(self.by, tuple(_named(sample, self.by) for sample in samples), named=True)
        if not _may_tell(samples):
            return None
        sources = [_source_of(sample) for sample in samples]
        units = list(dict.fromkeys(source.unit for source in sources if source is not None))
        if not units:
            return None
        keys = (sample.id if source is None else source.key(sample) for sample, source in zip(samples, sources, strict=True))
        return Clusters(" or ".join(units), tuple(keys))

    def check(self, datasets: Iterable[Dataset]) -> None:
        """UnknownName where no dataset has the fact that was named, BadInput where a table lists none of their images."""
        datasets = list(datasets)
        if self.table:
            ids = [sample.id for images in datasets for sample in images.samples]
            if ids and self.table.keys().isdisjoint(ids):
                raise BadInput(
                    f"{self.by} lists no image of these datasets: it has ids such as {next(iter(self.table))}, "
                    f"they have ids such as {ids[0]}"
                )
        if self.by in (None, EACH_IMAGE) or self.table is not None:
            return
        known = dict.fromkeys(fact for images in datasets for fact in fact_names(images.samples))
        if self.by not in known:
            raise UnknownName("fact of these images to cluster them by", str(self.by), [*known, EACH_IMAGE])

    def without(self, samples: Sequence[Sample]) -> int:
        """The number of images without the named fact or a row of the table; near-duplicates need no row each."""
        if self.by in (None, EACH_IMAGE) or self.links:
            return 0
        if self.table is not None:
            return sum(sample.id not in self.table for sample in samples)
        return sum(sample.facts.get(str(self.by)) is None for sample in samples)


def clustering(by: str | None) -> Clustering:
    """The clusters as `--cluster` names them: a fact, `image` for one image each, or a CSV file of ids.

    A file has the columns `id` and `cluster`, or `id` and `other`, as `shiftproof curate duplicates` writes
    them for near-duplicates.
    """
    if by is None or not os.path.isfile(by):
        if by is not None and by.lower().endswith(".csv"):
            raise BadInput(f"there is no file {by} to take clusters from")
        return Clustering(by)
    try:
        with open(by, encoding="utf-8-sig", newline="") as file:  # as spreadsheets write it
            reader = csv.DictReader(file, strict=True)
            rows, named = list(reader), reader.fieldnames or ()
    except (OSError, UnicodeDecodeError, csv.Error) as problem:
        raise BadInput(f"{by} cannot be read as a table of clusters: {problem}") from problem
    if (twice := repeated(named)) is not None:
        raise BadInput(f"{by} has two columns called {twice!r}; rename or remove one of them")
    columns = set(filter(None, named))
    if {"id", "cluster"} <= columns:
        return Clustering(by, _listed(by, ((row["id"], row["cluster"]) for row in rows)))
    if {"id", "other"} <= columns:
        return Clustering(by, linked((row["id"], row["other"]) for row in rows if row["id"] and row["other"]), links=True)
    raise BadInput(
        f"{by} should have the columns id and cluster, or id and other as duplicates.csv has; "
        f"got {', '.join(sorted(columns)) or 'an empty file'}"
    )


def image_behind(sample: Sample) -> str:
    """The id of the clean image that a corrupted one was made from.

    >>> image_behind(Sample("noise/shot_noise/4/n01440764/a.JPEG", facts={"corruption": "shot_noise", "severity": 4}))
    'n01440764/a.JPEG'
    """
    severity = sample.facts.get("severity")
    return (clean_id(sample.id, severity) if isinstance(severity, int) else "") or sample.id


def looks_clustered(samples: Sequence[Sample]) -> str | None:
    """Why these images seem to be clustered, judged by their names alone; None where they do not.

    >>> frames = [Sample(f"ward/patient{p:02d}_{slice_:03d}.png", (0,)) for p in range(8) for slice_ in range(5)]
    >>> looks_clustered(frames)
    '40 images look like 8 series of numbered pictures, such as ward/patient00_000.png'
    >>> looks_clustered([Sample(f"cat/IMG_{number}.jpg", (0,)) for number in range(40)]) is None
    True
    >>> looks_clustered([Sample(f"{year}_{number:06d}.jpg") for year in range(2007, 2013) for number in range(40)]) is None
    True
    """
    if len(samples) > MOST_JUDGED:
        why = looks_clustered(samples[:MOST_JUDGED])
        return why and f"of the first {MOST_JUDGED:,} images {why}"
    names = Counter((sample.labels, os.path.basename(sample.id)) for sample in samples if sample.labels)
    repeated = sum(count for count in names.values() if count > 1)
    if names and repeated > len(samples) / 2:
        shown = next(name for (_, name), count in names.items() if count > 1)
        return f"{repeated:,} of {len(samples):,} images share their name and class with another, such as {shown}"
    of_sample = [_series(sample.id) for sample in samples]
    series = Counter(of_sample)
    folders = Counter(os.path.dirname(folder) for folder in series)
    kinds = _kinds(samples, of_sample)
    # IMG_0001 to IMG_0999 are one series of a folder, or most of it, and no sign of anything; dozens of short ones are
    many = [
        name
        for name, count in series.items()
        if 1 < count <= len(samples) / 2 and folders[os.path.dirname(name)] > 2 and name not in kinds
    ]
    pictures = sum(series[name] for name in many)
    if len(many) > 4 and pictures > 0.8 * len(samples):
        shown = samples[of_sample.index(many[0])].id
        return f"{len(samples):,} images look like {len(series):,} series of numbered pictures, such as {shown}"
    return None


_COUNTER = re.compile(r"[ _.-]*(frame|slice|crop|view)?[ _.-]*(?<![0-9])[0-9]+$", re.IGNORECASE)

_NO_SOURCE = re.compile(r"(19|20)[0-9]{2}|n[0-9]{8}")
"""Years and wnids: names that unrelated images share."""


def _series(image_id: str) -> str:
    """An id without its ending and the last number in it, as far as something is left."""
    stem = os.path.splitext(image_id)[0]
    folder, name = os.path.split(stem)
    shorter = _COUNTER.sub("", name)
    return f"{folder}/{shorter}" if shorter and shorter != name else stem


def _kinds(samples: Sequence[Sample], series: Sequence[str]) -> set[str]:
    """Series that are named after what their pictures show or are, as beagle_12 and art_3 are, and not after a source.

    Their name is a year, as in 2007_000027 of VOC, or the wnid of a class, as in n01440764_10026; or it has no number in
    it, and is found in several folders, or is the only one of its class.
    """
    of_class: dict[tuple[int, ...], set[str]] = {}
    for sample, name in zip(samples, series, strict=True):
        of_class.setdefault(sample.labels, set()).add(name)
    every = set().union(*of_class.values())
    homes = Counter(os.path.basename(name) for name in every)
    alone = {name for names in of_class.values() if len(names) == 1 < len(of_class) for name in names}
    return {
        name
        for name in every
        if _NO_SOURCE.fullmatch(os.path.basename(name))
        or (not re.search("[0-9]", os.path.basename(name)) and (homes[os.path.basename(name)] > 1 or name in alone))
    }


def _folder(anchor: str) -> str:
    return os.path.dirname(anchor) or anchor


def _may_tell(samples: Sequence[Sample]) -> bool:
    """Whether images have facts that say where they come from; most have none, and there may be millions."""
    names = {*fact_names(samples)}
    return any(names.issuperset(source.facts) for source in SOURCES)


def _source_of(sample: Sample) -> _Source | None:
    if not sample.facts:  # as of most images, of which there may be millions
        return None
    return next((one for one in SOURCES if all(sample.facts.get(fact) is not None for fact in one.facts)), None)


def _named(sample: Sample, fact: str) -> str:
    """The fact of an image; one that lacks it is its own cluster."""
    value = sample.facts.get(fact)
    return sample.id if value is None else str(value)


def _listed(name: str, rows: Iterable[tuple[str | None, str | None]]) -> dict[str, str]:
    """Clusters as a table lists them; an image without one is left out, and is its own cluster."""
    found: dict[str, str] = {}
    for image, cluster in rows:
        if image and cluster and found.setdefault(image, cluster) != cluster:
            raise BadInput(f"{name} puts {image} into two clusters, {found[image]} and {cluster}; an image is of one")
    return found


def linked(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Connected components of the pairs, each named after one of its members."""
    above: dict[str, str] = {}

    def top(key: str) -> str:
        while above.setdefault(key, key) != key:
            above[key] = key = above[above[key]]
        return key

    for first, second in pairs:
        above[top(first)] = top(second)
    return {key: top(key) for key in list(above)}
