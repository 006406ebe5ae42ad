"""The samples of a dataset of many images, kept in columns: each is made when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain
from json.encoder import encode_basestring
from typing import Any, NamedTuple, TypeAlias, TypeGuard, cast, overload

import numpy as np
from numpy.typing import NDArray

from shiftproof.columns import BLOCK, Coded, Parsed, Texts, in_blocks, room
from shiftproof.types import Fact, Labels, Sample
from shiftproof.types.images import fingerprint_of_text, stable_text

FactColumn: TypeAlias = Coded[Any] | Parsed[Any]
"""A fact of every image, `ABSENT` for one that has not even an empty one."""

Labelled: TypeAlias = Coded[tuple[int, ...]]

FEW = 2**14
"""Samples that are made once and then kept."""


LONG = 2**16
"""Samples of a dataset beyond which predictions, too, keep ids and facts in columns."""


class _Absent:
    """Stands for a fact that an image does not have."""

    def __reduce__(self) -> str:
        return "ABSENT"


ABSENT = _Absent()


class SampleTable(Sequence[Sample]):
    """Samples by their columns.

    >>> table = SampleTable(Texts.of(["a", "b"]), Coded(np.array([0, 1]), [(), (3,)]), {})
    >>> table[1], len(table)
    (Sample(id='b', labels=(3,), facts={}, boxes=None), 2)
    """

    def __init__(
        self, ids: Texts, labels: Labelled, facts: Mapping[str, FactColumn], digests: NDArray[np.uint8] | None = None
    ) -> None:
        self.ids, self.labels, self.facts = ids, labels, facts
        self.digests = digests  # (images, bytes), as a manifest tells them; zeros where it does not

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, place: int) -> Sample: ...
    @overload
    def __getitem__(self, place: slice) -> list[Sample]: ...
    def __getitem__(self, place: int | slice) -> Sample | list[Sample]:
        if len(self) <= FEW:
            return self._kept[place]
        if isinstance(place, slice):
            if place.step not in (None, 1):
                return [self[one] for one in range(*place.indices(len(self)))]
            return self._made(place)
        row = range(len(self))[place]
        return self._made(slice(row, row + 1))[0]

    def __iter__(self) -> Iterator[Sample]:
        if len(self) <= FEW:
            return iter(self._kept)
        starts = range(0, len(self), BLOCK)
        return chain.from_iterable(self._made(slice(start, start + BLOCK)) for start in starts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (SampleTable, list, tuple)):
            return NotImplemented
        return len(self) == len(other) and all(one == same for one, same in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # as of a list

    def __repr__(self) -> str:
        return f"<SampleTable: {len(self):,} samples>"

    def take(self, places: NDArray[np.integer]) -> SampleTable:
        """Some of the samples, in this order."""
        facts = {name: column.take(places) for name, column in self.facts.items()}
        digests = None if self.digests is None else self.digests[places]
        return SampleTable(self.ids.take(places), self.labels.take(places), facts, digests)

    @property
    def used_label_sets(self) -> list[tuple[int, ...]]:
        """The labels of an image, for every combination that there is."""
        counts = np.zeros(len(self.labels.values), np.int64)
        for _, codes in in_blocks(self.labels.codes, LONG):
            counts += np.bincount(codes, minlength=len(counts))
        return [self.labels.values[code] for code in np.flatnonzero(counts).tolist()]

    @cached_property
    def _padded_label_sets(self) -> Labels:
        """Labels as images have them together, (label sets, labels), padded with -1."""
        told = self.labels.values
        width = max(map(len, self.used_label_sets), default=1) or 1
        return np.array([[*one, *[-1] * (width - len(one))][:width] for one in told], np.int64).reshape(len(told), width)

    def padded_labels(self) -> Labels:
        """The labels of all samples, (images, labels), padded with -1."""
        table = self._padded_label_sets
        labels = room((len(self), table.shape[1]), np.int64)
        for start, codes in in_blocks(self.labels.codes, LONG):
            labels[start : start + len(codes)] = table[codes]
        return labels

    def fact_columns(self) -> dict[str, Sequence[Fact]]:
        """Every fact, None for an image that has not even an empty one."""
        return {name: _with_none(column) for name, column in self.facts.items()}

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """Which images have a label, (images,)."""
        return np.asarray(np.array([bool(one) for one in self.labels.values], bool)[self.labels.codes])

    @cached_property
    def ids_together(self) -> tuple[str, ...]:
        """The ids of few samples, made once."""
        return tuple(self.ids)

    @cached_property
    def labelled_images(self) -> int:
        """How many images have a label."""
        return int(self.labelled.sum())

    @cached_property
    def _kept(self) -> list[Sample]:
        return self._made(slice(0, len(self)))

    def _made(self, rows: slice) -> list[Sample]:
        ids, labels = self.ids[rows], self.labels[rows]
        if not self.facts:
            return [Sample(image, told) for image, told in zip(ids, labels, strict=True)]
        columns = [column[rows] for column in self.facts.values()]
        facts = (_without_absent(zip(self.facts, cells, strict=True)) for cells in zip(*columns, strict=True))
        return [Sample(image, told, own) for image, told, own in zip(ids, labels, facts, strict=True)]


def _with_none(column: FactColumn) -> Sequence[Fact]:
    if isinstance(column, Coded):
        return Coded(column.codes, [None if value is ABSENT else value for value in column.values])
    return Parsed(column.texts, partial(_parsed_or_none, column.parse))


def _parsed_or_none(parse: Callable[[str], Any], cell: str) -> Fact:
    value = parse(cell)
    return None if value is ABSENT else cast(Fact, value)


def _without_absent(cells: Iterable[tuple[str, Any]]) -> dict[str, Fact]:
    return {name: value for name, value in cells if value is not ABSENT}


class Counted(NamedTuple):
    """What a dataset holds, counted."""

    images: int
    labelled: int


def counted_samples(samples: Sequence[Sample]) -> Counted:
    if isinstance(samples, SampleTable):
        return Counted(len(samples), samples.labelled_images)
    return Counted(len(samples), sum(1 for sample in samples if sample.labels))


def is_long(samples: Sequence[Sample]) -> TypeGuard[SampleTable]:
    """Whether samples are so many that what is made of them stays in columns too."""
    return isinstance(samples, SampleTable) and len(samples) > LONG


def ids_of(samples: Sequence[Sample]) -> Sequence[str]:
    """The id of each sample."""
    if isinstance(samples, SampleTable):
        return samples.ids_together if len(samples) <= FEW else samples.ids
    return [sample.id for sample in samples]


class _ById(Mapping[str, Sample]):
    """The samples of a table by their ids."""

    def __init__(self, table: SampleTable) -> None:
        self._table = table

    def __len__(self) -> int:
        return len(self._table)

    def __iter__(self) -> Iterator[str]:
        return iter(self._table.ids)

    def __getitem__(self, image_id: str) -> Sample:
        place = self._table.ids.place(image_id)
        if place is None:
            raise KeyError(image_id)
        return self._table[place]


def samples_by_id(samples: Sequence[Sample]) -> Mapping[str, Sample]:
    """Samples by their ids."""
    return _ById(samples) if isinstance(samples, SampleTable) else {sample.id: sample for sample in samples}


def labels_used(samples: Sequence[Sample]) -> set[int]:
    """Every label that some image has."""
    if isinstance(samples, SampleTable):
        return {label for told in samples.used_label_sets for label in told}
    return {label for sample in samples for label in sample.labels}


def fact_names(samples: Sequence[Sample]) -> list[str]:
    """Every fact that some image has, in the order in which they come."""
    if isinstance(samples, SampleTable):
        return [*samples.facts]
    return [*dict.fromkeys(name for sample in samples for name in sample.facts)]


def taken(samples: Sequence[Sample], rows: NDArray[np.bool_]) -> Sequence[Sample]:
    """The samples of these rows; the same where that is all of them."""
    if rows.all():
        return samples
    if isinstance(samples, SampleTable):
        return samples.take(np.flatnonzero(rows))
    return [samples[row] for row in np.flatnonzero(rows).tolist()]


def samples_fingerprint(keys: Sequence[str], samples: Sequence[Sample]) -> str:
    """The digest that `types.fingerprint_of` has of class keys and of the id, labels and facts of each sample.

    >>> from shiftproof.types import fingerprint_of
    >>> some = [Sample("a", (1,)), Sample("b", facts={"z": 1, "a": None})]
    >>> plain = [(sample.id, sample.labels, sample.facts) for sample in some]
    >>> samples_fingerprint(("x", "y"), some) == fingerprint_of(("x", "y"), plain)
    True
    """
    rows = _texts_of_table(samples) if isinstance(samples, SampleTable) and not samples.facts else _texts_of(samples)
    return fingerprint_of_text(chain((f"[{stable_text(keys)},[",), rows, ("]]",)))


def _texts_of(samples: Sequence[Sample]) -> Iterator[str]:
    for start, some in in_blocks(samples):
        text = stable_text([(sample.id, sample.labels, sample.facts) for sample in some])
        yield "," * bool(start) + text[1:-1]


def _texts_of_table(samples: SampleTable) -> Iterator[str]:
    """The same, of images without facts."""
    labels = Coded(samples.labels.codes, [stable_text(one) for one in samples.labels.values])
    for start, ids in in_blocks(samples.ids):
        told = zip(map(encode_basestring, ids), labels[start : start + len(ids)], strict=True)
        yield "," * bool(start) + ",".join([f"[{image},{own},{{}}]" for image, own in told])
