"""Which of a model's classes a test set is about, and why the others were left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from shiftproof.curation.tables import load_rows
from shiftproof.errors import BadInput, listed
from shiftproof.image_sets.class_matching import resolve, with_wnids
from shiftproof.image_sets.label_spaces import choose_classes
from shiftproof.types import Classes

REASONS: Mapping[str, str] = {
    "rare": "hardly anybody knows it",
    "dated": "it has gone out of use",
    "coarse": "it holds too many kinds of things",
    "backdrop": "it is seen behind or around most other things",
    "overlapping": "its images show another class as well",
}
"""Why the makers of ImageNet-A left classes out (Hendrycks et al., 2021); a table may give other reasons too."""


@dataclass(frozen=True)
class ClassChoice:
    """The classes that answers are taken over, and the reasons why others are none of them, by wnid or name."""

    classes: Classes
    left_out: Mapping[str, str] = field(default_factory=dict)

    def why_not(self, key: str) -> str:
        """Why a class is none of them."""
        return f"its class is {self.left_out[key]}" if key in self.left_out else "its class was not chosen"


def choose_some(
    classes: Classes, *, only: Sequence[str] | None = None, left_out: Mapping[str, str] | None = None
) -> ClassChoice:
    """Some of a model's classes: `only` these, or all, without those that are `left_out` for a reason.

    >>> choose_some(Classes(("cat", "dog", "web site")), left_out={"web site": "overlapping"}).classes.names
    ('cat', 'dog')
    """
    known, reasons = with_wnids(classes), dict(left_out or {})
    wanted, unknown = resolve(known.keys if only is None else only, known)
    unwanted, strange = resolve(reasons, known)
    if strangers := unknown + strange:
        raise BadInput(f"{len(strangers)} of the classes named are none of the model's: {listed(strangers)}")
    columns = sorted(set(wanted.values()).difference(unwanted.values()))
    if len(columns) < 2:
        raise BadInput(f"{len(columns)} classes are chosen, among which there is nothing to mistake")
    return ClassChoice(choose_classes(known, columns).classes, {known.keys[unwanted[key]]: reasons[key] for key in reasons})


def load_left_out(path: str | Path) -> dict[str, str]:
    """Reasons for leaving classes out: a table with the columns `wnid` and `reason`, such as one of the REASONS."""
    rows = load_rows(path, "a table of classes to leave out")
    if not rows or not all(row.get("wnid") and row.get("reason") for row in rows):
        raise BadInput(
            f"{path} should be a table with the columns wnid and reason and both in every row; reasons are "
            f"{listed(REASONS)} or your own"
        )
    return {row["wnid"]: row["reason"] for row in rows}
