"""Classes as reviewers meet them: by name, with the other words for them and what they are kinds of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from shiftproof.class_lists import WNID
from shiftproof.curation.project import ReviewClass
from shiftproof.image_sets.manifest import SEPARATOR, joined_labels
from shiftproof.image_sets.wordnet import wordnet
from shiftproof.types import Classes

TOGETHER = SEPARATOR
"""Stands between the keys of several classes that an image shows at once, as between labels in manifests."""


def review_class(key: str, name: str | None = None, references: Sequence[str] = ()) -> ReviewClass:
    """A class by its wnid with what WordNet knows of it, or by its name alone; references are files of the project.

    >>> tabby = review_class("n02123045")
    >>> tabby.name, tabby.gloss, tabby.path[-3:]
    ('tabby', 'also called tabby cat', ('animal', 'domestic animal', 'domestic cat'))
    """
    if WNID.fullmatch(key) is None or key not in wordnet():
        return ReviewClass(key, name or key, references=tuple(references))
    tree = wordnet()
    word, *others = tree.words(key)
    _, *above = min(tree.paths(key), key=len)
    gloss = f"also called {', '.join(others)}" if others else ""
    shown = word if name in (None, key) else name  # folders are often named by the wnid alone
    return ReviewClass(key, shown, gloss, tuple(tree.name(one) for one in reversed(above)), tuple(references))


def review_classes(
    classes: Classes, keys: Iterable[str] | None = None, references: Mapping[str, Sequence[str]] | None = None
) -> tuple[ReviewClass, ...]:
    """The classes of an image set, or those of these keys; a key of several classes together is told as all of them."""
    names, shown = dict(zip(classes.keys, classes.names, strict=True)), references or {}

    def name_of(key: str) -> str:
        return " and ".join(review_class(part, names.get(part)).name for part in key.split(TOGETHER))

    wanted = classes.keys if keys is None else sorted(set(keys))
    return tuple(review_class(key, name_of(key), shown.get(key, ())) for key in wanted)


def joined_keys(keys: Iterable[str]) -> str | None:
    """The key of classes that an image shows together; None where there are none, BadInput where one looks like several."""
    return joined_labels(keys) or None
