"""Models with what is said of them in one text."""

from __future__ import annotations

from pathlib import Path

import pytest

from shiftproof.errors import BadInput, UnknownName
from shiftproof.models import load_model, load_spelled, spelled_options
from toys import save_colour_network


def test_what_is_said_behind_the_question_mark_is_what_the_options_say(tmp_path: Path) -> None:
    save_colour_network(tmp_path / "colours.onnx")
    (tmp_path / "names.txt").write_text("blue\ngreen\nred\n")
    names = tmp_path / "names.txt"
    spelled = load_spelled(
        f"onnx:{tmp_path}/colours.onnx?preprocess=squash,mean=0,std=1&classes={names}&name=eye&scores=scores"
    )
    said = load_model(
        f"onnx:{tmp_path}/colours.onnx", preprocess="squash,mean=0,std=1", classes=names, name="eye", output="scores"
    )
    assert spelled.ref == said.ref
    assert spelled.classes == said.classes
    assert spelled.preprocessing == said.preprocessing


def test_without_a_question_mark_a_text_is_the_model_alone() -> None:
    assert spelled_options("onnx:what?.onnx") == ("onnx:what?.onnx", {})
    assert load_spelled("lite:0", name="given").ref.name == "given"
    assert load_spelled("lite:0?name=said", name="given").ref.name == "said"


def test_slips_are_named() -> None:
    with pytest.raises(UnknownName, match="did you mean preprocess"):
        load_spelled("lite:0?prepar=imagenet")
    with pytest.raises(BadInput, match="threads of lite:0 should be a whole number, got 'two'"):
        load_spelled("lite:0?threads=two")
