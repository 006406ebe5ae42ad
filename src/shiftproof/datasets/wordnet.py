"""The noun synsets of WordNet 3.0: their words, hypernyms and hyponyms, and distances between them.

ImageNet's classes are some of them. A wnid such as ``n02084071`` is the offset of a synset in WordNet 3.0 and in no other
release. A synset may have several hypernyms, so the hierarchy is no tree; its root is ``entity``.
"""

from __future__ import annotations

import gzip
from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from shiftproof.datasets.classes import WNID, plain_name
from shiftproof.errors import BadInput, UnknownName
from shiftproof.reference import ilsvrc_classes

NOUNS = "wordnet30_nouns.tsv.gz"
"""In `shiftproof.reference`; made by tools/make_wordnet.py."""

ENTITY, DOG = "n00001740", "n02084071"


class Noun(NamedTuple):
    """One noun synset: its words and direct hypernyms."""

    wnid: str
    hypernyms: tuple[str, ...]  # it is a kind of these
    instance_of: tuple[str, ...]  # it is an instance of these, as the Rhine is of river
    words: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class WordNet:
    """Noun synsets by wnid; hypernyms and hyponyms always include instances."""

    rows: Mapping[str, str]  # as `packed` writes them, each split up when it is asked for: half the time to load
    _steps_up: dict[str, Mapping[str, int]] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.rows)

    def __contains__(self, wnid: object) -> bool:
        return wnid in self.rows

    def noun(self, wnid: str) -> Noun:
        """The synset of a wnid; UnknownName where there is none."""
        if wnid not in self.rows:
            raise self._unknown_wnid(wnid)
        hypernyms, instance_of, words = self.rows[wnid].split("\t")
        return Noun(wnid, tuple(hypernyms.split()), tuple(instance_of.split()), tuple(words.split(", ")))

    def words(self, wnid: str) -> tuple[str, ...]:
        """The words of a synset, the usual one first.

        >>> wordnet().words("n02084071")
        ('dog', 'domestic dog', 'Canis familiaris')
        """
        return self.noun(wnid).words

    def name(self, wnid: str) -> str:
        """The usual word."""
        return self.noun(wnid).words[0]

    def hypernyms(self, wnid: str) -> tuple[str, ...]:
        """Direct hypernyms.

        >>> [wordnet().name(above) for above in wordnet().hypernyms("n02084071")]
        ['canine', 'domestic animal']
        """
        noun = self.noun(wnid)
        return noun.hypernyms + noun.instance_of

    def hyponyms(self, wnid: str) -> tuple[str, ...]:
        """Direct hyponyms."""
        self.noun(wnid)
        return self._below.get(wnid, ())

    def siblings(self, wnid: str) -> frozenset[str]:
        """Sister terms: the other direct hyponyms of its direct hypernyms."""
        return frozenset(sister for above in self.hypernyms(wnid) for sister in self.hyponyms(above)) - {wnid}

    def ancestors(self, wnid: str) -> frozenset[str]:
        """All hypernyms up to ``entity``, on every path."""
        return frozenset(self.steps_up(wnid)) - {wnid}

    def descendants(self, wnid: str) -> frozenset[str]:
        """All hyponyms, direct and indirect."""
        found: set[str] = set()
        waiting = [*self.hyponyms(wnid)]
        while waiting:
            lower = waiting.pop()
            if lower not in found:
                found.add(lower)
                waiting += self.hyponyms(lower)
        return frozenset(found)

    def paths(self, wnid: str) -> tuple[tuple[str, ...], ...]:
        """Every path of hypernyms, from the synset itself to ``entity``.

        >>> [len(path) for path in wordnet().paths("n02084071")]
        [14, 9]
        """
        above = self.hypernyms(wnid)
        return tuple((wnid, *path) for higher in above for path in self.paths(higher)) if above else ((wnid,),)

    def steps_up(self, wnid: str) -> Mapping[str, int]:
        """The fewest steps to each of its hypernyms, and 0 to itself."""
        if wnid not in self._steps_up:
            steps = {wnid: 0}
            for above in self.hypernyms(wnid):
                for higher, further in self.steps_up(above).items():
                    steps[higher] = min(steps.get(higher, further + 1), further + 1)
            self._steps_up[wnid] = steps
        return self._steps_up[wnid]

    def depth(self, wnid: str) -> int:
        """Depth below ``entity``: the fewest steps.

        >>> wordnet().depth("n00001740"), wordnet().depth("n02084071")
        (0, 8)
        """
        return self.steps_up(wnid)[ENTITY]

    def distance(self, one: str, other: str) -> int:
        """Length of the shortest path between two synsets through a common hypernym; 0 only of a synset to itself.

        >>> wordnet().distance("n02123045", "n02124075")  # tabby and Egyptian cat, both domestic cats
        2
        """
        ups, others = self.steps_up(one), self.steps_up(other)
        return min(ups[above] + others[above] for above in ups.keys() & others.keys())

    def lowest_common_ancestors(self, one: str, other: str) -> tuple[str, ...]:
        """The lowest common hypernyms of two synsets; there may be several.

        A synset counts among its own here, so that of dog and poodle is dog.

        >>> wordnet().lowest_common_ancestors("n02123045", "n02084071")  # tabby and dog
        ('n02075296', 'n01317541')
        """
        common = self.steps_up(one).keys() & self.steps_up(other).keys()
        higher = {above for shared in common for above in self.ancestors(shared)}
        return tuple(sorted(common - higher, key=lambda shared: (-self.depth(shared), shared)))

    def find(self, word: str) -> tuple[str, ...]:
        """Every synset of a word, whatever its case and underscores, the one with most hyponyms first.

        >>> [wordnet().words(wnid) for wnid in wordnet().find("Organism")]
        [('organism', 'being'), ('organism',)]
        """
        plain = plain_name(word)
        if plain not in self._by_word:
            raise self._unknown_word(word, plain)
        return tuple(sorted(self._by_word[plain], key=lambda wnid: (-len(self.descendants(wnid)), wnid)))

    @cached_property
    def _below(self) -> dict[str, tuple[str, ...]]:
        below: dict[str, list[str]] = {}
        for wnid, row in self.rows.items():
            for above in row.rpartition("\t")[0].split():
                below.setdefault(above, []).append(wnid)
        return {above: tuple(lower) for above, lower in below.items()}

    @cached_property
    def _by_word(self) -> dict[str, list[str]]:
        by_word: dict[str, list[str]] = {}
        for wnid, row in self.rows.items():
            for word in dict.fromkeys(row.rpartition("\t")[2].casefold().split(", ")):
                by_word.setdefault(word, []).append(wnid)
        return by_word

    def _unknown_wnid(self, wnid: str) -> UnknownName | BadInput:
        if not WNID.fullmatch(wnid):
            return BadInput(f"{wnid!r} is no wnid; they look like {DOG}, which is dog")
        known = list(self.rows)
        place = bisect(known, wnid)
        return UnknownName("noun of WordNet 3.0", wnid, known[max(place - 3, 0) : place + 3])

    def _unknown_word(self, word: str, plain: str) -> UnknownName | BadInput:
        # comparing with all 117,000 words would take seconds
        alike = [known for known in self._by_word if known[:1] == plain[:1] and abs(len(known) - len(plain)) <= 2]
        near = get_close_matches(plain, alike, cutoff=0.75)
        if near:
            return UnknownName("noun of WordNet 3.0", word, near)
        return BadInput(f"no noun of WordNet 3.0 is called {word!r}; give its wnid, such as {DOG} for dog")


@cache
def wordnet() -> WordNet:
    """The synsets that come with the package; read when first needed."""
    return _unpacked(gzip.decompress(files("shiftproof.reference").joinpath(NOUNS).read_bytes()).decode())


def load_wordnet(data_noun: str | Path) -> WordNet:
    """The synsets of another copy of WordNet 3.0: its file ``dict/data.noun``."""
    try:
        with open(data_noun, encoding="utf-8") as lines:
            found = _unpacked(packed(parse_data_noun(lines)))
    except (OSError, ValueError) as problem:
        raise BadInput(f"{data_noun} cannot be read as data.noun of WordNet: {problem}") from problem
    if DOG not in found or found.name(DOG) != "dog":
        raise BadInput(f"{data_noun} is not of WordNet 3.0, whose offsets are ImageNet's wnids: no dog at {DOG}")
    return found


def parse_data_noun(lines: Iterable[str]) -> Iterator[Noun]:
    """The nouns of a file ``data.noun``; the licence at its head, which is indented, is skipped.

    >>> line = "02084071 05 n 02 dog 0 domestic_dog 0 002 @ 02083346 n 0000 ~ 01322604 n 0000 | a member of the genus Canis"
    >>> next(parse_data_noun([line]))
    Noun(wnid='n02084071', hypernyms=('n02083346',), instance_of=(), words=('dog', 'domestic dog'))
    """
    for line in lines:
        if line.startswith(" "):
            continue
        place, _, _, count, *rest = line.partition(" | ")[0].split()
        words = 2 * int(count, 16)  # each is followed by a number
        pointers = rest[words + 1 :]
        above = [(kind, f"n{where}") for kind, where in zip(pointers[::4], pointers[1::4], strict=True)]
        yield Noun(
            f"n{place}",
            tuple(where for kind, where in above if kind == "@"),
            tuple(where for kind, where in above if kind == "@i"),
            tuple(word.replace("_", " ") for word in rest[:words:2]),
        )


def packed(nouns: Iterable[Noun]) -> str:
    """Nouns as the package keeps them: wnid, hypernyms, what it is an instance of, and words, a line each."""
    rows = ((noun.wnid, " ".join(noun.hypernyms), " ".join(noun.instance_of), ", ".join(noun.words)) for noun in nouns)
    return "".join("\t".join(row) + "\n" for row in rows)


def _unpacked(text: str) -> WordNet:
    rows = (line.partition("\t") for line in text.splitlines())
    return WordNet({wnid: row for wnid, _, row in rows})


def ilsvrc_index(wnid: str) -> int:
    """The label of a class in ILSVRC-2012.

    >>> ilsvrc_index("n01440764"), ilsvrc_wnid(0)
    (0, 'n01440764')
    """
    if wnid not in _ilsvrc_places():
        raise UnknownName("class of ILSVRC-2012", wnid, get_close_matches(wnid, _ilsvrc_places()))
    return _ilsvrc_places()[wnid]


def ilsvrc_wnid(index: int) -> str:
    """The class of a label in ILSVRC-2012."""
    if not 0 <= index < len(_ilsvrc_places()):
        raise BadInput(f"labels of ILSVRC-2012 go from 0 to 999, got {index}")
    return ilsvrc_classes().keys[index]


@cache
def _ilsvrc_places() -> dict[str, int]:
    return {wnid: place for place, wnid in enumerate(ilsvrc_classes().keys)}
