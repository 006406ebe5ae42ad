"""Names, near misses, install hints and plug-ins."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from shiftproof import catalog
from shiftproof.errors import BadInput, BrokenPlugin, MissingExtra, PluginWarning, ShiftproofError, UnknownName, listed
from shiftproof.registry import EXTRA_OF, Registry
from shiftproof.studies.kind import StudyKind

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


WITHOUT = """
import json, sys
from shiftproof import catalog
from shiftproof.errors import MissingExtra
from shiftproof.registry import EXTRA_OF
sys.modules.update(dict.fromkeys(EXTRA_OF))
asked = {}
for kind, registry in catalog.KINDS.items():
    for name in registry:
        asked[f"{kind} {name}"] = said = []
        for ask in (registry.describe, registry.load):
            try:
                ask(name)
            except MissingExtra as missing:
                said.append(str(missing).partition("[")[2].partition("]")[0])
print(json.dumps(asked))
"""


def extras() -> dict[str, list[str]]:
    """The extras of the package, each with what it requires."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    return dict(project["optional-dependencies"])


def brought_by(extra: str) -> set[str]:
    """The packages that an extra brings, through other extras too, and the extras themselves."""
    found = {extra}
    for requirement in extras()[extra]:
        if requirement.startswith("shiftproof["):
            found.update(*map(brought_by, requirement.partition("[")[2].partition("]")[0].split(",")))
        else:
            found.add(re.split(r"[^\w-]", requirement)[0].replace("-", "_"))
    return found


def test_without_any_optional_library_every_entry_names_the_extra_that_brings_all_of_it() -> None:
    ran = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True)
    asked = {entry: said for entry, said in json.loads(ran.stdout).items() if said}
    assert all(len(said) == 2 and len(set(said)) == 1 for said in asked.values()), "listed and loaded, they need the same"
    assert {entry: said[0] for entry, said in asked.items() if entry.startswith("models ")} == {
        "models lite": "lite",
        "models onnx": "onnx",
        "models torch": "torch",
        "models timm": "timm",
        "models torchvision": "torchvision",
        "models hf": "transformers",
        "models tflite": "tflite",
    }
    assert {said[0] for said in asked.values()} <= extras().keys()


@pytest.mark.parametrize(
    ("spec", "missing", "extra"),
    [
        ("timm:resnet18", "timm", "timm"),
        ("torchvision:resnet18", "torchvision", "torchvision"),
        ("hf:google/vit", "transformers", "transformers"),
        ("torch:own.py:make", "timm", "timm"),
        ("torch:own.py:make_late", "timm", "timm"),
    ],
)
def test_where_torch_is_there_the_library_that_is_missing_is_named(
    spec: str, missing: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    from shiftproof.models import load_model

    late = "def make_late():\n    import timm\n"
    (tmp_path / "own.py").write_text(late if "late" in spec else f"import timm\n{late}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingExtra, match=rf"needs: pip install 'shiftproof\[{extra}\]'"):
        load_model(spec)


@pytest.mark.parametrize("missing", ["cv2", "numba"])
def test_a_library_that_changes_pixels_is_missed_before_the_first_picture(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from shiftproof.runs.prepare import check_condition
    from shiftproof.types import Condition

    fog = Condition("fog", 1)
    check_condition(fog)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingExtra, match=r"corruption 'fog' needs: pip install 'shiftproof\[corruptions\]'"):
        check_condition(fog)


def test_a_users_file_that_imports_what_no_extra_brings_is_told(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    from shiftproof.models import load_model

    (tmp_path / "own.py").write_text("import nowhere_at_all\n")
    with pytest.raises(BadInput, match=r"own\.py imports nowhere_at_all, which is not installed here"):
        load_model(f"torch:{tmp_path / 'own.py'}:make")


def test_the_extras_bring_what_they_are_named_for() -> None:
    for library, extra in EXTRA_OF.items():
        renamed = {"cv2": "opencv_python_headless", "mlflow": "mlflow_skinny", "open_clip": "open_clip_torch"}
        package = renamed.get(library, library)
        assert package in brought_by(extra), f"{library} of [{extra}]"
    assert set(extras()) - {"all", "dev", "docs"} <= brought_by("all"), "[all] leaves something out"


def test_a_library_that_no_extra_brings_stays_an_import_error() -> None:
    with pytest.raises(ModuleNotFoundError, match="nowhere_at_all"):
        SHAPES.load("odd")


def install(folder: Path, package: str, *entries: str) -> None:
    info = folder / f"{package.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("\n".join(["[shiftproof.shape]", *entries]))


def test_an_installed_package_adds_an_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "round-things", "wheel = math:sin", "square = math:pi")
    monkeypatch.syspath_prepend(str(tmp_path))
    registry = Registry("shape", {"square": "math:sqrt"})
    with pytest.warns(PluginWarning, match="shape 'square' of the plug-in round-things is not used: shiftproof has one of"):
        assert list(registry) == ["square", "wheel"]
    assert registry.load("wheel")(0) == 0
    assert registry["square"] == "math:sqrt", "a built-in wins over a plug-in of its name"


def test_a_name_that_two_packages_add_or_that_nobody_could_type_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "first", "wheel = math:sin", "a,b = math:cos")
    install(tmp_path, "second", "wheel = cmath:sin")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.warns(PluginWarning) as told:
        assert list(Registry("shape", {})) == ["wheel"]
    assert sorted(str(one.message).partition(" is not used: ")[2] for one in told) in (
        ["a name has letters, digits, - and _ alone", "math has one of that name"],
        ["a name has letters, digits, - and _ alone", "cmath has one of that name"],
    )


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("nowhere_at_all:thing", r"No module named 'nowhere_at_all'; install what it needs"),
        ("math:no_such_thing", r"AttributeError: module 'math' has no attribute 'no_such_thing'"),
        ("faulty_module:thing", r"ZeroDivisionError: division by zero"),
        ("severities_of_four:DIM", r"dim: a corruption has 5 severities, got 4"),
        ("math:sqrt", r"it should be a Corruption, got builtin_function_or_method"),
    ],
)
def test_a_plug_in_that_fails_is_one_sentence_and_the_others_go_on(
    place: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "faulty_module.py").write_text("1 / 0\n")
    (tmp_path / "severities_of_four.py").write_text(
        "from shiftproof.corruptions import Corruption, Severities\n"
        "DIM = Corruption(lambda image, rng, *, by: image, 'dim', Severities('by', (1, 2, 3, 4)))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    fog = {"fog": "shiftproof.corruptions.weather:FOG"}
    registry = Registry("corruption", fog, entry="shiftproof.corruptions.entry:Corruption")
    monkeypatch.setitem(registry.plugged_in, "dim", place)
    with pytest.raises(BrokenPlugin) as said:
        registry.load("dim")
    assert str(said.value) == f"corruption 'dim' of a plug-in ({place}) cannot be used: {reason}"
    with pytest.warns(PluginWarning, match="corruption 'dim' of a plug-in"):
        assert registry.usable == ("fog",)
    assert list(registry) == ["fog", "dim"]
    assert registry.usable == ("fog",)  # warned of once


def test_a_built_in_that_fails_keeps_its_traceback() -> None:
    with pytest.raises(ModuleNotFoundError, match="nowhere_at_all"):
        list(SHAPES.loaded())


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in catalog.KINDS.items() for name in names])
def test_every_catalog_entry_loads_and_says_what_it_is(kind: str, name: str) -> None:
    try:
        description = catalog.KINDS[kind].describe(name)
    except MissingExtra as missing:
        pytest.skip(str(missing))
    assert description if kind == "editions" else description.endswith((".", "?"))


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


OWN_OPTIONS = """
from shiftproof.options import EditionSettings, option
from shiftproof.studies.options import StudyOptions

class Inherited(EditionSettings, StudyOptions):
    questions: int = option(3, "How often to ask again.")

class Shared(StudyOptions):
    seed: int = option(7, "Seed of the plug-in.")

class Changed(EditionSettings, StudyOptions):
    seed: int = option(7, "Random seed.")

class OfAStudy(StudyOptions):
    published_bins: bool = option(False, "Bins of the plug-in.")
"""


def test_an_option_of_a_plug_in_has_no_name_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_options.py").write_text(OWN_OPTIONS)
    monkeypatch.syspath_prepend(str(tmp_path))

    def options(name: str) -> Any:
        return StudyKind("Patience", "How patient?", "own_options:Study", options=f"own_options:{name}").load_options()

    assert {one.name for one in fields(options("Inherited"))} == {"given", "edition", "seed", "questions"}
    for name, typed in (("Shared", "--seed"), ("Changed", "--seed"), ("OfAStudy", "--published-bins")):
        with pytest.raises(BrokenPlugin) as said:
            options(name)
        assert str(said.value) == (
            f"study 'Patience' of a plug-in (own_options:{name}) cannot be used: shiftproof has an option {typed}; "
            "inherit it as it is, or give yours another name"
        )
