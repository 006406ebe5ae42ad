"""Classes as reviewers see them: name, synonyms, and hypernyms in WordNet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from shiftproof.curation.project import Item, ReviewClass
from shiftproof.datasets.classes import WNID
from shiftproof.datasets.manifest import SEPARATOR, joined_labels
from shiftproof.datasets.wordnet import wordnet
from shiftproof.types import Classes

TOGETHER = SEPARATOR
"""Separates the keys of several classes of one image, as labels in manifests."""


def review_class(key: str, name: str | None = None, references: Sequence[str] = ()) -> ReviewClass:
    """A class by its wnid, with synonyms and hypernyms from WordNet, or by its name alone.

    `references` are example pictures, files of the project.

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
    """The classes of a dataset, or those of some keys; a key of several classes is named after all of them."""
    names, shown = dict(zip(classes.keys, classes.names, strict=True)), references or {}

    def name_of(key: str) -> str:
        return " and ".join(review_class(part, names.get(part)).name for part in key.split(TOGETHER))

    wanted = classes.keys if keys is None else sorted(set(keys))
    return tuple(review_class(key, name_of(key), shown.get(key, ())) for key in wanted)


def joined_keys(keys: Iterable[str]) -> str | None:
    """The joint key of the classes of an image; None without any, BadInput where a key holds the separator."""
    return joined_labels(keys) or None


def classes_of(item: Item) -> frozenset[str]:
    """Keys of the classes of an item: its labels, or the correct classes in a human test.

    >>> sorted(classes_of(Item("a", ("1.jpg",), "cat|dog"))), sorted(classes_of(Item("b", (), answer={"class": ["cat"]})))
    (['cat', 'dog'], ['cat'])
    """
    right = (item.answer or {}).get("class", ())
    told = item.label.split(TOGETHER) if item.label else [right] if isinstance(right, str) else right
    return frozenset(told)
