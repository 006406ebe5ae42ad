"""Lists of classes as people keep them, read as wnids."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from shiftproof.class_lists import WNID, classes_from
from shiftproof.curation.tables import load_rows
from shiftproof.errors import BadInput, ShiftproofError, listed
from shiftproof.image_sets.wordnet import wordnet


def wnids_from(named: str | Path) -> tuple[str, ...]:
    """The classes of a list: ``ilsvrc2012``, a table with a column `wnid`, or a file of wnids or names, one a line.

    A name should be that of one noun alone; of words with several meanings the wnid tells which.
    """
    if Path(named).suffix.lower() == ".csv":
        return _column(Path(named))
    entries = classes_from(named).keys
    found = [_nouns(entry) for entry in entries]
    strange = [entry for entry, nouns in zip(entries, found, strict=True) if not nouns]
    if strange:
        shown = listed((repr(entry[:40]) for entry in strange), most=3)
        told = f"{len(strange)} of {len(entries)} lines are neither wnids nor nouns of WordNet 3.0: {shown}"
        raise BadInput(f"{named} is not a list of classes: {told}")
    unclear = {entry: nouns for entry, nouns in zip(entries, found, strict=True) if len(nouns) > 1}
    if unclear:
        raise BadInput(f"{named}: words of several meanings; use wnids: {listed(map(_meanings, unclear), most=3)}")
    return tuple(dict.fromkeys(nouns[0] for nouns in found))


def noun_named(word: str) -> str:
    """A noun by its wnid, or by its word: of several meanings the one that holds most others.

    >>> noun_named("organism"), noun_named("n00015388")
    ('n00004475', 'n00015388')
    """
    return wordnet().find(word)[0] if WNID.fullmatch(word) is None else _known(word)


def _known(wnid: str) -> str:
    wordnet().words(wnid)
    return wnid


def _column(path: Path) -> tuple[str, ...]:
    rows = load_rows(path, "a list of classes")
    if not rows or "wnid" not in rows[0]:
        raise BadInput(f"{path} should be a table with a column 'wnid' and a row for each class")
    return tuple(dict.fromkeys(str(row["wnid"]) for row in rows))


def _nouns(entry: str) -> Sequence[str]:
    if WNID.match(entry):
        return [entry[:9]]
    try:
        return wordnet().find(entry)
    except ShiftproofError:
        return []


def _meanings(word: str) -> str:
    tree = wordnet()
    told = (f"{wnid} ({', '.join(tree.name(above) for above in tree.hypernyms(wnid))})" for wnid in tree.find(word))
    return f"{word} is {' or '.join(told)}"
