"""Classes and confidence in words, for tables and captions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from shiftproof.types import Classes


class ClassNames:
    """A readable name of each class, no two alike: a repeated name is followed by its wnid.

    >>> names = ClassNames(Classes(("crane", "crane", "tench"), ("n02012849", "n03126707", "n01440764")))
    >>> names[0], names[2]
    ('crane (n02012849)', 'tench')
    >>> ClassNames(None)[3]
    'class 3'
    """

    def __init__(self, classes: Classes | None) -> None:
        self.classes = classes
        self.times = Counter(classes.names) if classes else Counter[str]()

    def __getitem__(self, place: int) -> str:
        if self.classes is None or not 0 <= place < len(self.classes):
            return f"class {place}"
        name = self.classes.names[place]
        key = self.classes.wnids[place] if self.classes.wnids else f"class {place}"
        return name if self.times[name] == 1 else f"{name} ({key})"

    def of_labels(self, labels: Iterable[int]) -> str:
        """The right classes of one image.

        >>> ClassNames(Classes(("cat", "dog"))).of_labels([1, 0, -1])
        'dog or cat'
        """
        return " or ".join(self[int(label)] for label in labels if label >= 0)


def sure_of(name: str, confidence: float) -> str:
    """A predicted class with the model's confidence, where it is known.

    >>> sure_of("espresso", 0.978), sure_of("espresso", float("nan"))
    ('espresso 98 %', 'espresso')
    """
    return f"{name} {100 * confidence:.0f} %" if np.isfinite(confidence) else name
