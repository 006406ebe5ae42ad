"""Recipes about which images are trained with: of some classes, of merged classes, a part of a hard dataset."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from shiftproof.datasets.classes import resolve, wnids_named
from shiftproof.datasets.clusters import Clustering
from shiftproof.datasets.subsets import View, load_groups
from shiftproof.errors import BadInput
from shiftproof.training.recipe import Recipe
from shiftproof.training.splits import split
from shiftproof.types import Classes, Dataset


def of_some_classes(
    images: Dataset,
    clustering: Clustering,  # noqa: ARG001
    seed: int,  # noqa: ARG001
    *,
    classes: str,
    groups: str,
) -> tuple[Dataset, None]:
    """The images of the chosen classes, or of groups of classes that are merged into one class each."""
    if bool(classes) == bool(groups):
        raise BadInput("subset: name classes as subset:imagenet-a or subset:FILE, or merged ones as subset?groups=FILE.json")
    members = load_groups(groups) if groups else {key: [key] for key in wnids_named(classes)}
    return merged(images, members), None


def merged(images: Dataset, members: Mapping[str, Sequence[str]]) -> View:
    """The images labelled by groups of their classes, by wnid or name; those of other classes are left out."""
    known = images.classes or Classes(())
    places, _ = resolve([key for keys in members.values() for key in keys], known)
    groups = {name: sorted({places[key] for key in keys if key in places}) for name, keys in members.items()}
    present = [name for name, inside in groups.items() if inside]
    if not present:
        raise BadInput(
            f"{images.ref.name} has none of the {len(members):,} classes that were chosen; it has {known.in_short}"
        )
    group_of = {place: new for new, name in enumerate(present) for place in groups[name]}
    labelled = [
        dataclasses.replace(sample, labels=tuple(dict.fromkeys(group_of[one] for one in sample.labels if one in group_of)))
        for sample in images.samples
    ]
    # a class that stands alone keeps its own name
    alone = [known.names[groups[name][0]] if list(members[name]) == [name] else name for name in present]
    wnids = None if known.wnids is None else tuple(known.wnids[groups[name][0]] for name in present)
    kept = Classes(tuple(alone), wnids if all(len(groups[name]) == 1 for name in present) else None)
    return View(images, kept, [sample for sample in labelled if sample.labels], notes=images.notes)


def part_of(images: Dataset, clustering: Clustering, seed: int, *, share: float) -> tuple[Dataset, Dataset]:
    """A share of the images of every class, by whole clusters, and the others."""
    return split(images, 1 - share, seed=seed, clustering=clustering, names=(f"{share:.0%}", "held out"))


def _check_share(*, share: float) -> None:
    if not 0 < share < 1:
        raise BadInput(f"split: the share of the images to train with should lie between 0 and 1, got {share:g}")


SUBSET = Recipe(
    title="Subset of classes",
    description="Only images of the chosen classes, or of groups of classes merged into one; the head has only these.",
    cites=("hendrycks2021natural",),
    settings={"classes": "", "groups": ""},
    select=of_some_classes,
)

SPLIT = Recipe(
    title="Part of a hard dataset",
    description="Trains on a share of the images of every class, and lists the others as a test set.",
    cites=("hendrycks2021natural",),
    settings={"share": 0.8},
    check=_check_share,
    select=part_of,
)
