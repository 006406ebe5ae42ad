"""The words by which people say why two frames are not alike; every vocabulary has the other answers to a pair too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shiftproof.curation.screens import PAIR, Choice
from shiftproof.errors import BadInput

REASONS = ("motion", "background", "blur", "other")
"""Why a pair is dissimilar, as the paper has it (Shankar et al., 2021); the screen's own."""

VOCABULARIES: Mapping[str, tuple[Choice, ...]] = {
    "paper": tuple(PAIR.choice(name) for name in REASONS),
    "released": (
        Choice("deformation", "d", "Dissimilar: deformation"),
        Choice("background-change", "b", "Dissimilar: background change"),
        Choice("occlusion-increased", "c", "Dissimilar: more covered"),
        Choice("blur-increase", "r", "Dissimilar: more blur"),
        Choice("problematic", "x", "Dissimilar: problematic"),
        Choice("dissimilar", "o", "Dissimilar: other"),
    ),
}
"""Those of the paper, and the words that the files of YTBB-Robust hold."""


def pair_choices(vocabulary: str) -> tuple[Choice, ...]:
    """The answers to a pair with the reasons of a vocabulary, or with reasons of one's own as ``rain:w,night:n``.

    >>> [choice.key for choice in pair_choices("rain:w,night:n")]
    ['s', 'w', 'n', 'l', 'u', 'a']
    """
    reasons = VOCABULARIES.get(vocabulary) or [_own(part, vocabulary) for part in vocabulary.split(",")]
    first, *others = [choice for choice in PAIR.choices if choice.name not in REASONS]
    return (first, *reasons, *others)


def _own(part: str, vocabulary: str) -> Choice:
    name, _, key = (text.strip() for text in part.partition(":"))
    if not name or len(key) != 1:
        known: Sequence[str] = list(VOCABULARIES)
        raise BadInput(f"reasons are {' or '.join(known)}, or words with a key each as rain:w,night:n; got {vocabulary!r}")
    return Choice(name, key.lower(), f"Dissimilar: {name}")
