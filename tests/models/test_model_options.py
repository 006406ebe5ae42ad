import pytest

from shiftproof.errors import ClassMismatch
from shiftproof.models.options import ModelOptions
from shiftproof.types import Classes


def test_a_thousand_outputs_are_ilsvrc_and_the_note_says_so() -> None:
    classes, notes = ModelOptions().classes_of(1000)
    assert classes is not None
    assert classes.keys[0] == "n01440764"
    assert "ILSVRC-2012" in notes[0]


def test_a_thousand_and_one_begin_with_the_background() -> None:
    classes, _ = ModelOptions().classes_of(1001)
    assert classes is not None
    assert classes.names[:2] == ("background", "tench")
    assert len(set(classes.keys)) == 1001


def test_other_counts_stay_unnamed() -> None:
    classes, notes = ModelOptions().classes_of(10)
    assert classes is None
    assert "--classes" in notes[0]


def test_the_users_word_on_the_classes_goes_before_the_models_own() -> None:
    given, own = Classes(("a", "b")), Classes(("c", "d"))
    assert ModelOptions(classes=given).classes_of(2, own) == (given, ())
    assert ModelOptions().classes_of(2, own) == (own, ())


def test_as_many_classes_as_outputs_are_named_or_it_is_refused() -> None:
    with pytest.raises(ClassMismatch, match="gives 3 scores an image but 2 classes"):
        ModelOptions(classes=Classes(("a", "b"))).classes_of(3)
