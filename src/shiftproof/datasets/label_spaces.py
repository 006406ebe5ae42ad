"""Label spaces: the classes that predictions are scored among, projected when predictions are analysed.

*Full*: all outputs of the model. *Subset*: only the classes of the images, such as 200 of 1000. *Merged*: class groups,
many outputs as one class. Labels of the images and columns of the scores are matched here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from shiftproof.columns import FEW, in_blocks, room
from shiftproof.datasets.classes import match_columns, resolve, with_wnids
from shiftproof.datasets.near_names import near_told, renamed
from shiftproof.datasets.sample_table import SampleTable
from shiftproof.errors import BadInput, ClassMismatch, listed
from shiftproof.metrics.accuracy import to_top5
from shiftproof.reference import ilsvrc_classes
from shiftproof.types import Classes, Gives, Head, Keep, Labels, Logits, Predictions, Sample, Scored, Top5

Unmatched = Literal["error", "unlabelled", "wrong"]
Rule = Literal["max", "mean", "sum", "median"]

RULES: Mapping[Rule, Callable[..., NDArray[np.floating]]] = {
    "max": np.max,
    "mean": np.mean,
    "sum": np.sum,
    "median": np.median,
}
"""How the scores of a class group become the score of one class."""


@dataclass(frozen=True)
class LabelSpace:
    """The classes to score among, the model's columns behind each, and the place of each class of the images."""

    classes: Classes
    columns: tuple[tuple[int, ...], ...]  # one entry a class; none for a class the model lacks
    label_of: tuple[int, ...]  # a place in `classes` for each class of the images, or -1
    outputs: int
    convention: Mapping[str, str]
    rule: Rule = "max"

    @cached_property
    def keeps_scores(self) -> bool:
        """Whether the scores stay as they are, so that only labels change."""
        return self.columns[: self.outputs] == tuple((column,) for column in range(self.outputs))

    def project(self, predictions: Predictions) -> Predictions:
        """The predictions with labels and scores in these classes; a class that the model lacks is never predicted."""
        columns = self.outputs if predictions.logits is None else predictions.logits.shape[1]
        if columns != self.outputs:
            raise ClassMismatch(f"these classes are of a model with {self.outputs} outputs, but the scores have {columns}")
        labels = self._labels(predictions.labels)
        convention = {**predictions.convention, **self.convention}
        dropped = int((predictions.labels >= 0).any(axis=1).sum() - (labels >= 0).any(axis=1).sum())
        if dropped:
            convention["images of classes the model lacks"] = f"{dropped:,} of {len(labels):,}, left unlabelled"
        if self.keeps_scores:
            logits = None if predictions.logits is None else self._widened(predictions.logits, predictions.gives)
            head = predictions.head if len(self.columns) == self.outputs else None
            return dataclasses.replace(
                predictions, labels=labels, classes=self.classes, convention=convention, logits=logits, head=head
            )
        logits = self._scores(predictions.need_logits(), predictions.gives)
        if predictions.gives == "probabilities":
            convention["probabilities"] = "made to sum to one over these classes"
        return dataclasses.replace(
            predictions,
            labels=labels,
            classes=self.classes,
            convention=convention,
            logits=logits,
            top5=self._top5(logits, predictions.gives),
            head=self._head(predictions.head),
        )

    def _labels(self, labels: Labels) -> Labels:
        # the last entry is for -1, no label
        places = np.array([*self.label_of, -1], dtype=np.int64)
        found = room(labels.shape, np.int64)
        for start, some in in_blocks(labels, FEW):
            found[start : start + len(some)] = places[some]
        return found

    def _widened(self, logits: Logits, gives: str) -> Logits:
        extra = len(self.columns) - self.outputs
        if extra == 0:
            return logits
        never = np.full((len(logits), extra), _never(gives), dtype=logits.dtype)
        return np.concatenate([logits, never], axis=1)

    def _scores(self, logits: Logits, gives: str) -> Logits:
        scores = np.full((len(logits), len(self.columns)), _never(gives), dtype=np.result_type(logits, np.float32))
        single = [place for place, columns in enumerate(self.columns) if len(columns) == 1]
        scores[:, single] = logits[:, [self.columns[place][0] for place in single]]
        for place, columns in enumerate(self.columns):
            if len(columns) > 1:
                scores[:, place] = RULES[self.rule](logits[:, list(columns)].astype(scores.dtype), axis=1)
        if gives == "probabilities":
            # as a softmax over these classes alone would have them
            total = scores.sum(axis=1, keepdims=True)
            np.divide(scores, total, out=scores, where=total > 0)
        return scores

    def _top5(self, logits: Logits, gives: Gives) -> Top5:
        """The top five, or fewer: classes that the model lacks are never among them."""
        top5 = to_top5(logits, gives)
        can_win = max(sum(map(bool, self.columns)), 1)
        return Top5(top5.classes[:, :can_win], top5.scores[:, :can_win], top5.log_total)

    def _head(self, head: Head | None) -> Head | None:
        if head is None or any(len(columns) != 1 for columns in self.columns):
            return None
        rows = [columns[0] for columns in self.columns]
        return Head(head.weights[rows], head.bias[rows])


def match_classes(
    of_set: Classes, of_model: Classes | None, *, outputs: int, scored: Scored = "full", unmatched: Unmatched = "error"
) -> LabelSpace:
    """The label space of some images and a model.

    Classes are matched by wnid, else by name with case, underscores and spaces aside and every WordNet name of an ILSVRC
    class admitted. `unmatched` is how images of classes that the model lacks are treated: an error, unlabelled images, or
    images that are always misclassified.

    >>> space = match_classes(Classes(("Dog", "cat")), Classes(("cat", "dog", "eel")), outputs=3, scored="subset")
    >>> space.columns, space.convention["classes"]
    (((1,), (0,)), '2 of 3')
    """
    return _matched(of_set, of_model, outputs, scored, unmatched)


@lru_cache(8)  # the same classes meet under every condition of a run
def _matched(of_set: Classes, of_model: Classes | None, outputs: int, scored: Scored, unmatched: Unmatched) -> LabelSpace:
    if scored not in ("full", "subset"):
        raise BadInput(f"predictions are scored among 'full' or 'subset' classes, not {scored!r}")
    matching = match_columns(of_set, of_model, outputs)
    lacking = matching.unmatched()
    if lacking and unmatched == "error":
        raise ClassMismatch(_mismatch(of_set, lacking, outputs, matching.model))
    convention = {"labels": matching.how} | _lacking_convention(lacking, unmatched)
    if scored == "subset":
        return _subset(of_set, matching.columns, outputs, unmatched, convention)
    kept = lacking if unmatched == "wrong" else []
    classes = _joined(matching.model, of_set, kept)
    label_of = list(matching.columns)
    for extra, place in enumerate(kept):
        label_of[place] = outputs + extra
    columns = (*((column,) for column in range(outputs)), *(() for _ in kept))
    return LabelSpace(classes, columns, tuple(label_of), outputs, {"classes": f"all {outputs}", **convention})


def merge_classes(
    groups: Mapping[str, Sequence[str]],
    of_model: Classes | None = None,
    *,
    of_set: Classes | None = None,
    rule: Rule = "max",
    unmatched: Unmatched = "error",
) -> LabelSpace:
    """Class groups, many classes of the model as one: each is scored by the rule over its members' scores.

    Members are wnids or names; a group without members is a class the model lacks. Labels of the images are the groups
    in their order, or `of_set`, whose classes are groups or members of one. The default of `of_model` is ILSVRC-2012.

    >>> space = merge_classes({"fish": ["tench", "goldfish"], "bird": ["n01514668"]})
    >>> space.columns, space.convention["classes"]
    (((0, 1), (7,)), '2 merged by max from 3 of 1000')
    """
    if rule not in RULES:
        raise BadInput(f"scores of a class group are merged by {', '.join(RULES)}, not by {rule!r}")
    model = with_wnids(of_model or ilsvrc_classes())
    found, missing = resolve((member for members in groups.values() for member in members), model)
    if missing:
        raise ClassMismatch(f"members of the class groups that are not classes of the model: {listed(missing)}")
    columns = tuple(tuple(dict.fromkeys(found[member] for member in members)) for members in groups.values())
    taken = [column for group in columns for column in group]
    if len(set(taken)) < len(taken):
        twice = sorted({model.names[column] for column in taken if taken.count(column) > 1})
        raise ClassMismatch(f"classes of the model are in more than one class group: {listed(twice)}")
    classes = Classes(tuple(groups))
    of_set = of_set or classes
    label_of = _places_in_groups(of_set, classes, columns, model)
    lacking = [place for place, group in enumerate(label_of) if group < 0 or not columns[group]]
    if lacking and unmatched == "error":
        raise ClassMismatch(_mismatch(of_set, lacking, len(groups), Classes(tuple(groups))))
    if unmatched == "unlabelled":
        label_of = [-1 if place in lacking else group for place, group in enumerate(label_of)]
    strangers = [place for place in lacking if label_of[place] < 0] if unmatched == "wrong" else []
    for extra, place in enumerate(strangers):
        label_of[place] = len(groups) + extra
    classes = _joined(classes, of_set, strangers)
    columns += ((),) * len(strangers)
    convention = {
        "classes": f"{len(groups)} merged by {rule} from {len(taken)} of {len(model)}",
        **_lacking_convention(lacking, unmatched),
    }
    return LabelSpace(classes, columns, tuple(label_of), len(model), convention, rule)


def choose_classes(classes: Classes, columns: Sequence[int]) -> LabelSpace:
    """Some of the classes alone, by their columns; labels of the others are dropped.

    >>> space = choose_classes(Classes(("cat", "dog", "eel")), [0, 2])
    >>> space.classes.names, space.label_of
    (('cat', 'eel'), (0, -1, 1))
    """
    place_of = {column: place for place, column in enumerate(columns)}
    return LabelSpace(
        _joined(Classes((), () if classes.wnids else None), classes, columns),
        tuple((column,) for column in columns),
        tuple(place_of.get(column, -1) for column in range(len(classes))),
        len(classes),
        {"classes": f"{len(columns)} of {len(classes)}"},
    )


def padded_labels(samples: Sequence[Sample]) -> Labels:
    """The labels of the samples, (images, labels), padded with -1.

    >>> padded_labels([Sample("a", (3,)), Sample("b"), Sample("c", (1, 2))]).tolist()
    [[3, -1], [-1, -1], [1, 2]]
    """
    if isinstance(samples, SampleTable):
        return samples.padded_labels()
    width = max((len(sample.labels) for sample in samples), default=1) or 1
    if width == 1:
        return np.fromiter((sample.labels[0] if sample.labels else -1 for sample in samples), np.int64, len(samples))[
            :, None
        ]
    labels = np.full((len(samples), width), -1, dtype=np.int64)
    for row, sample in enumerate(samples):
        labels[row, : len(sample.labels)] = sample.labels
    return labels


def _subset(
    of_set: Classes, columns: Sequence[int], outputs: int, unmatched: Unmatched, convention: Mapping[str, str]
) -> LabelSpace:
    _refuse_doubles(of_set, columns)
    kept = [place for place, column in enumerate(columns) if column >= 0 or unmatched == "wrong"]
    order = {place: new for new, place in enumerate(kept)}
    classes = _joined(Classes((), () if of_set.wnids else None), of_set, kept)
    sources = tuple((columns[place],) if columns[place] >= 0 else () for place in kept)
    label_of = tuple(order.get(place, -1) for place in range(len(of_set)))
    scored = f"{sum(column >= 0 for column in columns)} of {outputs}"
    return LabelSpace(classes, sources, label_of, outputs, {"classes": scored, **convention})


def _refuse_doubles(of_set: Classes, columns: Sequence[int]) -> None:
    """Two classes with one column would tie on every image, and the second would never be predicted."""
    first_with: dict[int, str] = {}
    for name, column in zip(of_set.names, columns, strict=True):
        if column >= 0 and column in first_with:
            raise ClassMismatch(f"{first_with[column]} and {name} are one class of the model; join them to score a subset")
        first_with[column] = name


def _joined(first: Classes, second: Classes, places: Sequence[int]) -> Classes:
    """The first classes, followed by those of the second at the given places."""
    names = first.names + tuple(second.names[place] for place in places)
    if first.wnids is None:
        return Classes(names)
    return Classes(names, first.wnids + tuple(second.keys[place] for place in places))


def _places_in_groups(of_set: Classes, groups: Classes, columns: Sequence[Sequence[int]], model: Classes) -> list[int]:
    """The group that each class of the images is, or is a member of; -1 where it is neither."""
    by_name, others = resolve(of_set.names, groups)
    members, _ = resolve(of_set.wnids or others, model)
    group_of = {column: group for group, inside in enumerate(columns) for column in inside}
    pairs = zip(of_set.names, of_set.keys, strict=True)
    return [by_name.get(name, group_of.get(members.get(key, -1), -1)) for name, key in pairs]


def _mismatch(of_set: Classes, lacking: Sequence[int], outputs: int, of_model: Classes) -> str:
    return (
        f"{len(lacking)} of {len(of_set)} classes of the images are not among the {outputs} classes of the model: "
        f"{near_told(of_set, lacking, of_model)}; say which is which with --class-map, a JSON file as "
        '{"NAME OF THE IMAGES": "NAME OF THE MODEL"} or near for the similar ones, give the model its class names, or leave '
        "these images unlabelled with --unmatched unlabelled"
    )


def _lacking_convention(lacking: Sequence[int], unmatched: Unmatched) -> dict[str, str]:
    if not lacking:
        return {}
    fate = "left unlabelled" if unmatched == "unlabelled" else "always misclassified"
    return {"classes the model lacks": f"{len(lacking)}, {fate}"}


def _never(gives: str) -> Any:
    return 0.0 if gives == "probabilities" else -np.inf


@dataclass(frozen=True)
class Scoring:
    """The choice of a label space: which classes are scored among, how classes the model lacks are treated, class groups.

    `groups` are names, each with the model's classes (wnids or names) that belong to it. `class_map` has names of the
    images' classes, each with that of the model's class it stands for; with "near" the similar names are taken.
    """

    classes: Scored = "full"
    unmatched: Unmatched = "error"
    groups: Mapping[str, Sequence[str]] | None = None
    rule: Rule = "max"
    class_map: Mapping[str, str] | Literal["near"] | None = None

    @property
    def keep(self) -> Keep:
        """The least that must be stored: among other classes than the model's own, the top five are others."""
        return "top5" if self.classes == "full" and self.groups is None else "logits"

    def space(self, of_set: Classes, of_model: Classes | None, *, outputs: int) -> LabelSpace:
        """The label space of these images and this model; ClassMismatch where classes do not match."""
        of_set, told = self.renamed(of_set, of_model)
        if self.groups is not None:
            space = merge_classes(self.groups, of_model, of_set=of_set, rule=self.rule, unmatched=self.unmatched)
        else:
            space = match_classes(of_set, of_model, outputs=outputs, scored=self.classes, unmatched=self.unmatched)
        return dataclasses.replace(space, convention={**space.convention, **told}) if told else space

    def renamed(self, of_set: Classes, of_model: Classes | None) -> tuple[Classes, dict[str, str]]:
        """The classes of the images by the names that the class map gives them, and the convention that says so."""
        if self.class_map is None:
            return of_set, {}
        if self.groups is not None:
            of_model = Classes(tuple(self.groups))
        if of_model is None:
            raise ClassMismatch("a class map needs the names of the model's classes; --classes gives them")
        near = self.class_map == "near"
        classes, told = renamed(of_set, of_model, None if self.class_map == "near" else self.class_map)
        pairs = listed([f"{old} is {new}" for old, new in told.items()])
        return classes, {"class map": f"{pairs} (similar names)" if near else pairs} if told else {}
