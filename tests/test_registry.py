"""Names, near misses, install hints and plug-ins."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from shiftproof import catalog
from shiftproof.errors import MissingExtra, ShiftproofError, UnknownName, listed
from shiftproof.registry import Registry

SHAPES = Registry("shape", {"circle": "math:cos", "square": "math:sqrt", "odd": "nowhere_at_all:thing"})


def test_an_entry_is_imported_when_it_is_asked_for() -> None:
    assert SHAPES.load("square")(9) == 3


def test_a_slip_is_answered_with_the_nearest_name() -> None:
    with pytest.raises(UnknownName, match=r"no shape called 'sqare'; did you mean square\?"):
        SHAPES["sqare"]


def test_a_wild_guess_is_answered_with_all_names() -> None:
    with pytest.raises(UnknownName, match="there are: circle, odd, square"):
        SHAPES["xyz"]


def test_a_missing_optional_library_becomes_its_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    registry = Registry("model", {"some": "shiftproof_needs_onnxruntime:load"})

    def missing(name: str) -> None:
        raise ModuleNotFoundError("No module named 'onnxruntime'", name="onnxruntime")

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(MissingExtra, match=r"model 'some' needs: pip install 'shiftproof\[onnx\]'"):
        registry.load("some")


def test_a_library_that_no_extra_brings_stays_an_import_error() -> None:
    with pytest.raises(ModuleNotFoundError, match="nowhere_at_all"):
        SHAPES.load("odd")


def test_an_installed_package_adds_an_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "round_things-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: round-things\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[shiftproof.shape]\nwheel = math:tau\nsquare = math:pi\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    registry = Registry("shape", {"square": "math:sqrt"})
    assert list(registry) == ["square", "wheel"]
    assert registry.load("wheel") == pytest.approx(6.283185307)
    assert registry["square"] == "math:sqrt", "a built-in wins over a plug-in of its name"


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in catalog.KINDS.items() for name in names])
def test_every_catalog_entry_loads_and_says_what_it_is(kind: str, name: str) -> None:
    try:
        entry = catalog.KINDS[kind].load(name)
    except MissingExtra as missing:
        pytest.skip(str(missing))
    assert entry.__doc__
    assert entry.__doc__.strip().partition("\n")[0].endswith(".")


def test_every_error_descends_from_one_root_and_is_in_the_family_tree() -> None:
    from shiftproof import errors

    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    for kind in kinds:
        assert issubclass(kind, ShiftproofError | Warning)
        assert errors.__doc__
        assert kind.__name__ in errors.__doc__


def test_long_lists_are_cut_and_counted() -> None:
    assert listed("abc") == "a, b, c"
    assert listed([str(number) for number in range(20)], most=2) == "0, 1 and 18 more"
