"""Classes of options behave as frozen dataclasses do, though none has methods generated for it."""

from __future__ import annotations

import copy
import inspect
import pickle
from dataclasses import FrozenInstanceError, dataclass, fields, replace

import pytest

from shiftproof.options import CorruptionChoice, FilterModelNames


@dataclass(frozen=True, kw_only=True)
class Standard:
    """The same fields as the standard library has them."""

    given: frozenset[str] = frozenset()
    corruptions: tuple[str, ...] = ("imagenet-c",)
    severities: tuple[int, ...] = (1, 2, 3, 4, 5)


def test_equal_values_are_equal_however_they_were_chosen() -> None:
    chosen, default = CorruptionChoice(given=frozenset({"severities"})), CorruptionChoice()
    assert chosen == default
    assert hash(chosen) == hash(default)
    assert chosen.given != default.given
    assert CorruptionChoice(severities=(1,)) != default
    assert default != Standard()


def test_options_are_copied_pickled_and_replaced() -> None:
    some = CorruptionChoice(severities=(1, 3))
    assert copy.deepcopy(some) == pickle.loads(pickle.dumps(some)) == replace(some, corruptions=("imagenet-c",)) == some
    assert replace(some, severities=(2,)).severities == (2,)


def test_the_signature_and_the_fields_are_those_of_a_dataclass() -> None:
    assert str(inspect.signature(CorruptionChoice)) == str(inspect.signature(Standard)).removesuffix(" -> None")
    assert [one.name for one in fields(CorruptionChoice)] == [one.name for one in fields(Standard)]
    assert repr(CorruptionChoice(severities=(1,))) == "CorruptionChoice(corruptions=('imagenet-c',), severities=(1,))"


def test_options_cannot_be_set_again_misspelt_or_left_out() -> None:
    some = CorruptionChoice()
    for name in ("severities", "severity"):
        with pytest.raises(FrozenInstanceError, match=name):
            setattr(some, name, (1,))
    with pytest.raises(FrozenInstanceError, match="severities"):
        del some.severities
    with pytest.raises(TypeError, match="unexpected keyword argument 'severity'"):
        CorruptionChoice(severity=(1,))  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="missing a required argument: 'filter'"):
        FilterModelNames()
