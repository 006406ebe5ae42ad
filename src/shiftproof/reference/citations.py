"""What to cite behind a number: the works that benchmarks, OOD detectors, corruptions and metrics stem from."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from shiftproof import __version__
from shiftproof.catalog import KINDS
from shiftproof.errors import UnknownName
from shiftproof.files import read_text

if TYPE_CHECKING:
    from shiftproof.types import Results

ABOUT = {"ood_detector": "ood", "versus": "ood", "corruption": "corruptions", "perturbation": "perturbations"}
"""Keys of what a number is about, and the kinds of entries that they name."""

WILD = frozenset("*?")
"""What makes an entry behind a work a pattern; most are names, and found at once."""


@dataclass(frozen=True)
class Citation:
    """One work, and the entries behind which it stands: kind/name, such as ``ood/energy``."""

    key: str
    type: str  # of BibTeX: article, inproceedings, ...
    fields: Mapping[str, str]  # author, title, year and where it was published
    behind: tuple[str, ...] = ()

    @property
    def bibtex(self) -> str:
        """The work for a BibTeX file; its title keeps its capitals."""
        told = {**self.fields, "title": f"{{{self.fields['title']}}}"}
        lines = [f"  {name} = {{{value}}}" for name, value in told.items()]
        return "\n".join([f"@{self.type}{{{self.key},", ",\n".join(lines), "}"])

    @property
    def in_a_line(self) -> str:
        """First author, year and title.

        >>> cite(["energy"])[1].in_a_line
        'Liu et al. (2020): Energy-based Out-of-distribution Detection'
        """
        first, *others = (name.rpartition(" ")[2] for name in self.fields["author"].split(" and "))
        several = f" and {others[0]}" if len(others) == 1 else " et al." if others else ""
        return f"{first}{several} ({self.fields['year']}): {self.fields['title']}"


SHIFTPROOF = Citation(
    "shiftproof",
    "software",
    {
        "author": "{The shiftproof developers}",
        "title": "shiftproof: how a vision model holds up outside its test set",
        "version": __version__,
    },
)


def cite(what: Results | Iterable[str | Path] | None = None) -> list[Citation]:
    """The works behind results, or behind entries and files of results; all of them where nothing is named.

    Entries go by their names in the catalog, such as ``energy`` or ``ood/energy``, and by those of published datasets.
    shiftproof itself comes first.

    >>> [one.key for one in cite(["energy", "imagenet-r"])]
    ['shiftproof', 'hendrycks2021many', 'liu2020energy']
    """
    if what is None:
        return [SHIFTPROOF, *_works()]
    used = {entry for name in what for entry in _entries_of(name)} if isinstance(what, Iterable) else set(used_by(what))
    found = [(work, tuple(sorted(entry for entry in used if _stands_behind(work, entry)))) for work in _works()]
    return [SHIFTPROOF, *(Citation(work.key, work.type, work.fields, behind) for work, behind in found if behind)]


def used_by(results: Results) -> Iterator[str]:
    """Every entry that a result is made with, as kind/name."""
    for finding in results.shown:
        yield from (f"{ABOUT[key]}/{value}" for key, value in finding.about.items() if key in ABOUT)
    yield from (f"corruptions/{one.about['condition']}" for one in results.shown if "condition" in one.about)
    yield from (f"metrics/{one.metric}" for one in results.measurements)
    yield from (f"curves/{one.name}" for one in results.curves)
    yield from (f"published/{card.published}" for card in results.datasets if card.published)


@cache
def _works() -> tuple[Citation, ...]:
    text = files("shiftproof.reference").joinpath("citations.toml").read_text(encoding="utf-8")
    works = []
    for key, told in tomllib.loads(text).items():
        kind, behind = told.pop("type"), tuple(told.pop("behind"))
        works.append(Citation(key, kind, told, behind))
    return tuple(works)


def _stands_behind(work: Citation, entry: str) -> bool:
    return entry in work.behind or any(fnmatchcase(entry, one) for one in work.behind if set(one) & WILD)


def _entries_of(name: str | Path) -> Iterator[str]:
    """The entries of a name, of which there may be one of several kinds; or those behind a file of results."""
    text = str(name)
    if text.endswith(".json"):
        from shiftproof.types import Results  # only here: names are cited without numpy

        yield from used_by(Results.from_json(read_text(Path(text))))
        return
    known = [f"{kind}/{one}" for kind, registry in KINDS.items() for one in registry]
    known += [pattern for work in _works() for pattern in work.behind if pattern.startswith("published/")]
    found = [entry for entry in known if text in (entry, entry.partition("/")[2])]
    if not found:
        raise UnknownName("entry or file of results (.json)", text, sorted({entry.partition("/")[2] for entry in known}))
    yield from found
