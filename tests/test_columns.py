"""Columns: what they hold is what was put in, however long they are."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shiftproof import columns
from shiftproof.columns import Coded, GrowingCells, GrowingNumbers, Texts, room
from shiftproof.errors import BadInput

LISTS = st.lists(st.text(alphabet=st.characters(), max_size=6), max_size=40)


@pytest.fixture(params=["in memory", "in files"], autouse=True)
def _sizes(request: pytest.FixtureRequest) -> Iterator[None]:
    """Once as short columns are kept, and once as long ones are: in files, some rows at a time, found by their hashes."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "in files":
            for name, value in (("IN_MEMORY", 3), ("BLOCK", 4), ("FEW", 2)):
                patch.setattr(columns, name, value)
        yield


@settings(max_examples=40)
@given(LISTS, st.data())
def test_texts_are_a_sequence_of_what_was_put_in(texts: list[str], data: st.DataObject) -> None:
    column = Texts.of(texts)
    assert list(column) == texts == column[:] == [column[place] for place in range(len(texts))]
    assert column == texts
    assert column == tuple(texts)
    assert hash(column) == hash(tuple(texts))
    assert column == pickle.loads(pickle.dumps(column))
    assert column != [*texts, "x"]
    assert column.has_empty == ("" in texts)
    chosen = data.draw(st.lists(st.sampled_from(range(len(texts))), max_size=9) if texts else st.just([]))
    assert column.take(np.array(chosen, int)) == [texts[place] for place in chosen]


@settings(max_examples=40)
@given(LISTS, LISTS, st.integers(0, 50))
def test_texts_are_found_where_they_stand_first(texts: list[str], others: list[str], near: int) -> None:
    column, wanted = Texts.of(texts), [*others, *texts]
    found = [texts.index(one) if one in texts else -1 for one in wanted]
    assert column.places(wanted, near).tolist() == found
    assert [column.place(one) for one in wanted] == [None if place < 0 else place for place in found]
    assert column.places(texts[near:], near).tolist() == found[len(others) + near :]
    twice = [place for place, text in enumerate(texts) if text in texts[:place]]
    assert column.repeated == (twice[0] if twice else None)


def test_texts_with_equal_hashes_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_hashes", lambda texts: np.full(len(texts), 7, np.uint64))
    texts = [str(number) for number in range(9)]
    assert Texts.of(texts).repeated is None
    assert Texts.of([*texts, "4", "2"]).repeated == 9
    assert Texts.of(texts).places(["3", "x", "8"]).tolist() == [3, -1, 8]


@settings(max_examples=40)
@given(LISTS)
def test_cells_are_kept_whether_few_or_many_of_them_differ(texts: list[str]) -> None:
    growing = GrowingCells()
    for start in range(0, len(texts), 3):
        growing.add(texts[start : start + 3])
    whole = growing.whole()
    assert list(whole) == texts
    assert isinstance(whole, Coded) == (len(set(texts)) <= columns.FEW)


def test_numbers_and_room_hold_what_is_written() -> None:
    growing = GrowingNumbers(np.int32)
    for start in range(0, 100, 7):
        growing.add(np.arange(start, min(start + 7, 100)))
    assert growing.whole().tolist() == list(range(100))
    held = room((50, 2), np.float32)
    held[:] = np.arange(100).reshape(50, 2)
    assert held.sum() == 4950
    assert type(held) is np.ndarray


def test_a_full_disk_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    monkeypatch.setattr(columns, "IN_MEMORY", 3)
    with pytest.raises(BadInput, match=r"needs room in .*No space left on device; .* TMPDIR"):
        Texts.of(["long enough"])
