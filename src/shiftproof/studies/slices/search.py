"""Groups of images that may go wrong together, and the choice of those that are worth confirming on other images."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shiftproof.datasets.wordnet import wordnet
from shiftproof.metrics.slices import group_scores
from shiftproof.studies.accuracy.study import GENERAL, as_numbers, slices_by
from shiftproof.types import Fact, Features

Kind = Literal["facts", "pairs of facts", "classes", "WordNet", "features"]

RANGES = 5
"""Groups that a numeric fact of many values is cut into."""

TAIL = 0.1
"""Share of the images in the lowest and the highest group of a numeric fact."""

WIDEST = 50
"""Groups of a fact above which it is not paired with others."""

ENOUGH = 1.645
"""Standard errors below the others at which a group is worth confirming: a chance of 5 % each."""

CONSIDERED = 500
"""Groups, from the worst on, among which those to confirm are chosen."""

NEIGHBOURHOODS = (6, 12, 24)
"""Clusters that features are divided into, from coarse to fine."""

DIMENSIONS = 32
"""Principal components of the features that are clustered."""

LLOYD_STEPS = 20

LEARNED = 4000
"""Images that principal components and clusters are learned from, at most."""

Members = NDArray[np.bool_]


@dataclass(frozen=True)
class Grouping:
    """Groups that share no image, and the place of each image's group in their names; -1 of none."""

    kind: Kind
    names: Sequence[str]
    groups: NDArray[np.integer]  # (images,)
    fact: str = ""  # that divides the images, where it is one


@dataclass(frozen=True)
class Group:
    """A group of images, and how far it lies below the others on those that find it."""

    kind: Kind
    words: str
    score: float
    members: Callable[[], Members]  # among all images


def by_facts(facts: Mapping[str, Sequence[Fact]]) -> Iterator[Grouping]:
    """The groups of every fact; of a number of many values ranges, and those of few and of many."""
    for fact, values in facts.items():
        found = slices_by(fact, values, ranges=RANGES)
        if len(found.names) < 2 or found.why_useless:
            continue
        yield Grouping("facts", [f"{fact} {name}" for name in found.names], found.groups, fact)
        if (numbers := as_numbers(values)) is not None:
            yield from _tails(fact, numbers)


def _tails(fact: str, numbers: NDArray[np.floating]) -> Iterator[Grouping]:
    known = numbers[np.isfinite(numbers)]
    if len(np.unique(known)) <= 2 * RANGES:
        return
    low, high = np.quantile(known, [TAIL, 1 - TAIL])
    groups = np.where(numbers <= low, 0, np.where(numbers >= high, 1, -1))
    yield Grouping("facts", [f"{fact} at most {low:.3g}", f"{fact} at least {high:.3g}"], groups, fact)


def in_pairs(groupings: Sequence[Grouping]) -> Iterator[Grouping]:
    """The groups of two facts at a time."""
    narrow = [one for one in groupings if len(one.names) <= WIDEST and one.groups.min(initial=0) >= 0]
    for first, second in combinations(narrow, 2):
        names = [f"{one} and {other}" for one in first.names for other in second.names]
        yield Grouping("pairs of facts", names, first.groups * len(second.names) + second.groups)


def by_class(labels: NDArray[np.integer], names: Callable[[int], str]) -> Grouping:
    """The images of each class."""
    classes, groups = np.unique(labels, return_inverse=True)
    return Grouping("classes", [f"class {names(place)}" for place in classes.tolist()], groups)


@dataclass(frozen=True)
class Branch:
    """A noun of WordNet, and the classes of the images that are a kind of it."""

    words: str
    classes: NDArray[np.integer]


def branches(wnids: Sequence[str], used: Sequence[int]) -> list[Branch]:
    """Every noun above several of the classes in use; of those above the same classes the most particular."""
    tree = wordnet()
    below: dict[str, list[int]] = {}
    for place in used:
        if wnids[place] in tree:
            for above in tree.ancestors(wnids[place]):
                below.setdefault(above, []).append(place)
    narrowest: dict[tuple[int, ...], str] = {}
    for noun, places in below.items():
        known = narrowest.get(tuple(places))
        if len(places) > 1 and noun not in GENERAL and (known is None or known in tree.ancestors(noun)):
            narrowest[tuple(places)] = noun
    return [Branch(f"kinds of {tree.name(noun)}", np.array(places)) for places, noun in sorted(narrowest.items())]


def by_features(features: Features, *, seed: int = 0) -> Iterator[NDArray[np.integer]]:
    """The cluster of each image, (images,), in coarse and fine divisions: k-means of principal components."""
    generator = np.random.default_rng(seed)
    some = np.sort(generator.permutation(len(features))[:LEARNED])
    middle = features[some].mean(axis=0, dtype=np.float64)
    _, _, axes = np.linalg.svd(features[some] - middle, full_matrices=False)
    reduced = np.asarray((features - middle) @ axes[:DIMENSIONS].T, np.float64)
    for count in NEIGHBOURHOODS:
        if 4 * count > len(some):
            return
        yield _nearest(reduced, k_means(reduced[some], count, generator))


def k_means(points: NDArray[np.floating], count: int, generator: np.random.Generator) -> NDArray[np.floating]:
    """Centres of so many clusters, (clusters, dimensions), by Lloyd's steps from a spread-out start (k-means++)."""
    centres = points[generator.integers(len(points), size=1)]
    nearest = _squares(points, centres)[:, 0]
    while len(centres) < count:
        chances = nearest / nearest.sum() if nearest.sum() > 0 else None
        centres = np.concatenate([centres, points[generator.choice(len(points), size=1, p=chances)]])
        nearest = np.minimum(nearest, _squares(points, centres[-1:])[:, 0])
    for _ in range(LLOYD_STEPS):
        own = _nearest(points, centres)
        sizes = np.bincount(own, minlength=count)
        sums = np.stack([np.bincount(own, column, count) for column in points.T], axis=1)
        centres = np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], centres)  # an empty one stays
    return centres


def _nearest(points: NDArray[np.floating], centres: NDArray[np.floating]) -> NDArray[np.integer]:
    return np.asarray(_squares(points, centres).argmin(axis=1))


def _squares(points: NDArray[np.floating], centres: NDArray[np.floating]) -> NDArray[np.floating]:
    """Squared distances, (points, centres)."""
    found = (points**2).sum(axis=1)[:, None] - 2 * points @ centres.T + (centres**2).sum(axis=1)
    return np.asarray(np.maximum(found, 0))


def described(members: Members, groupings: Sequence[Grouping], kinds: Sequence[Branch], labels: NDArray[np.integer]) -> str:
    """What images have in common that others have not, in words; empty where nothing stands out.

    Every image has a label.
    """
    told: list[tuple[float, str]] = []
    for one in groupings:
        inside = np.bincount(one.groups[members & (one.groups >= 0)], minlength=len(one.names)) / members.sum()
        overall = np.bincount(one.groups[one.groups >= 0], minlength=len(one.names)) / len(members)
        told += [(_weight(share, all_), name) for share, all_, name in zip(inside, overall, one.names, strict=True)]
    if kinds:
        count = 1 + max(int(labels.max()), *(int(branch.classes.max()) for branch in kinds))
        counts = [(np.bincount(some, minlength=count), len(some)) for some in (labels[members], labels)]
        for branch in kinds:
            told.append((_weight(*(float(each[branch.classes].sum() / images) for each, images in counts)), branch.words))
    best = sorted(told, key=lambda one: (-one[0], one[1]))[:3]
    return ", ".join(words for weight, words in best if weight > 0)


def _weight(inside: float, overall: float) -> float:
    """How much a description tells: share of the members times how much more frequent it is among them; 0 of a rare one.

    >>> round(_weight(0.5, 0.125), 3), _weight(0.1, 0.001)
    (0.693, 0.0)
    """
    return inside * math.log(inside / overall) if inside >= 0.25 and inside > 1.5 * overall else 0.0


@dataclass(frozen=True)
class Search:
    """Which images are right, in which half, and how small a group may be."""

    correct: NDArray[np.bool_]  # (images,)
    finds: NDArray[np.bool_]  # the half that finds
    least: int  # images of a group in either half

    def groups(self, grouping: Grouping) -> Iterator[Group]:
        """Those groups that are large enough and worse than the others."""
        known = grouping.groups >= 0
        count = len(grouping.names)
        finding, confirming = (
            np.bincount(grouping.groups[known & half], minlength=count) for half in (self.finds, ~self.finds)
        )
        right = np.bincount(grouping.groups[known & self.finds & self.correct], minlength=count)
        for place in self._worse(right, finding, confirming):
            yield Group(
                grouping.kind,
                grouping.names[place[0]],
                place[1],
                lambda number=place[0]: grouping.groups == number,  # type: ignore[misc]
            )

    def kinds(self, found: Sequence[Branch], labels: NDArray[np.integer]) -> Iterator[Group]:
        """The same of nouns, whose images are those of their classes."""
        if not found:
            return
        count = 1 + int(labels.max())
        totals = [
            np.bincount(labels[rows], minlength=count) for rows in (self.finds & self.correct, self.finds, ~self.finds)
        ]
        right, finding, confirming = (np.array([total[one.classes].sum() for one in found]) for total in totals)
        for place, score in self._worse(right, finding, confirming):
            yield Group(
                "WordNet",
                found[place].words,
                score,
                lambda number=place: np.isin(labels, found[number].classes),  # type: ignore[misc]
            )

    def _worse(
        self, right: NDArray[np.integer], finding: NDArray[np.integer], confirming: NDArray[np.integer]
    ) -> list[tuple[int, float]]:
        images = int(self.finds.sum())
        scores = group_scores(right, finding, int((self.finds & self.correct).sum()), images)
        # of more than half of the images the others are the group to speak of
        fit = (finding >= self.least) & (confirming >= self.least) & (2 * finding <= images) & (scores > ENOUGH)
        return [(place, float(scores[place])) for place in np.flatnonzero(fit).tolist()]

    def chosen(self, groups: Sequence[Group], most: int) -> list[tuple[Group, Members]]:
        """The worst groups, each with something to tell beside those before it."""
        taken: list[tuple[Group, Members]] = []
        for group in sorted(groups, key=lambda one: (-one.score, one.words))[:CONSIDERED]:
            members = group.members()
            if all(self._adds(members, other) for _, other in taken):
                taken.append((group, members))
            if len(taken) == most:
                break
        return taken

    def _adds(self, members: Members, other: Members) -> bool:
        """Whether a group is still worse where the other is left out, or among the other where it lies within it."""
        outside = self.finds & ~other
        beyond = members & outside
        if beyond.sum() >= self.least:
            return self._score(beyond, outside) > ENOUGH
        return self._score(members & other & self.finds, other & self.finds) > ENOUGH

    def _score(self, members: Members, among: Members) -> float:
        inside = np.array([members.sum()])
        right = np.array([(members & self.correct).sum()])
        return float(group_scores(right, inside, int((among & self.correct).sum()), max(1, int(among.sum())))[0])
