"""What the docs use is public: a name of the package, or of a module that the map lists."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from pathlib import Path

import pytest

import shiftproof as sp

ROOT = Path(__file__).parents[1]
MAP = ROOT / "docs" / "architecture.md"
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
IMPORT = re.compile(r"^\s*(?:>>> |\.\.\. )?(?:from (shiftproof[\w.]*) import ([\w, ]+)|import (shiftproof[\w.]*))", re.M)
USE = re.compile(r"\bsp\.([A-Za-z]\w*)")


def listed_modules() -> set[str]:
    """The modules that the map lists as public, as extension points, or as steps that pages show."""
    section = MAP.read_text(encoding="utf-8").partition("## What is public\n")[2].partition("\n## ")[0]
    rows = "\n".join(line for line in section.splitlines() if line.startswith("|"))
    return set(re.findall(r"`(shiftproof\.[\w.]+)`", rows))


def not_public(text: str, modules: set[str]) -> list[str]:
    """What the code on a page uses of the package that is not public."""
    code = "\n".join(re.findall(r"```python\n(.*?)```", text, re.S))
    used = {f"shiftproof.{name}" for name in USE.findall(code) if name not in sp.__all__}
    for home, names, module in IMPORT.findall(code):
        if home == "shiftproof":
            used |= {f"shiftproof.{name.strip()}" for name in names.split(",") if name.strip() not in sp.__all__}
        elif (home or module) not in {*modules, "shiftproof"}:
            used.add(home or module)
    return sorted(used)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_import_public_names_alone(page: Path) -> None:
    assert not_public(page.read_text(encoding="utf-8"), listed_modules()) == []


def test_the_test_above_can_fail() -> None:
    page = "```python\n>>> from shiftproof.runs.rows import Rows\n>>> from shiftproof import run, rows\n>>> sp.rows\n```"
    assert not_public(page, listed_modules()) == ["shiftproof.rows", "shiftproof.runs.rows"]


def test_every_listed_module_is_there() -> None:
    modules = listed_modules()
    assert len(modules) > 20
    absent = [name for name in sorted(modules) if not _is_there(name)]
    assert absent == []


def _is_there(name: str) -> bool:
    place = ROOT.joinpath("src", *name.split("."))
    return place.with_suffix(".py").exists() or (place / "__init__.py").exists()


def test_every_public_name_is_there_and_known_to_type_checkers() -> None:
    for name in sp.__all__:
        assert getattr(sp, name) is not None
    tree = ast.parse(Path(str(sp.__file__)).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    imported = {
        (f"{node.module}.{alias.name}" if node.module != "shiftproof" else alias.name)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    homes = {name: vars(sp)["_HOMES"].get(name) for name in sp.__all__ if name != "__version__"}
    assert imported == {f"{home}.{name}" if home else name for name, home in homes.items()}
    for module in ("curate", "metrics", "options"):
        assert importlib.import_module(f"shiftproof.{module}") is getattr(sp, module)


def test_signatures_of_jobs_name_every_keyword_and_others_are_refused() -> None:
    jobs = {name: getattr(sp, name) for name in sp.__all__ if vars(sp)["_HOMES"].get(name) == "shiftproof.bench"}
    assert len(jobs) > 10
    for name, job in jobs.items():
        assert not any(one.kind is one.VAR_KEYWORD for one in inspect.signature(job).parameters.values()), name
    told = inspect.signature(sp.guard).parameters
    assert (told["store"].default, told["prediction"].default) == ("runs", None)
    assert told["prediction"].annotation == "PredictionSettings | None"
    with pytest.raises(TypeError, match=r"^guard\(\): no keyword called 'opitons'; did you mean options"):
        sp.guard("lite:0", "photos", opitons=None)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^run\(\): no keyword called 'stor'; did you mean store\?$"):
        sp.run("lite:0", "photos", stor="runs")  # type: ignore[call-arg]
