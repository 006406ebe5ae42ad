"""Imports point one way: a part knows those below it and none above."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import shiftproof

ROOT = Path(shiftproof.__file__).parent
LEVELS = (
    {
        "columns",
        "types",
        "errors",
        "registry",
        "catalog",
        "options",
        "randomness",
        "reference",
        "files",
        "places",
        "remote",
        "cores",
        "tables",
    },
    {"metrics", "corruptions", "ood"},
    {"judging"},
    {"datasets"},
    {"models", "runs"},
    {"reports", "writing", "publishing"},
    {"studies", "curation", "training"},
    {"review"},
    {"bench"},
    {"curate"},
    {"demo"},
    {"cli", "pytest_plugin", "__init__", "__main__"},
)
LEVEL_OF = {part: level for level, parts in enumerate(LEVELS) for part in parts}


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """All below a node, at any depth; nothing is imported in an expression, and most of a module is expressions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            yield child
            yield from statements(child)


def imported_parts(text: str) -> Iterator[str]:
    """The parts of the package that a module imports, wherever in it and in whichever form."""
    for node in statements(ast.parse(text)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "shiftproof":
            names = [f"shiftproof.{alias.name}" for alias in node.names if alias.name in LEVEL_OF]
        else:
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        yield from (name.split(".")[1] for name in names if name.startswith("shiftproof."))


def upward(part: str, text: str) -> list[str]:
    return [other for other in imported_parts(text) if LEVEL_OF[other] > LEVEL_OF[part]]


def test_no_part_imports_one_above_it() -> None:
    modules = {path.relative_to(ROOT): path.read_text(encoding="utf-8") for path in ROOT.rglob("*.py")}
    found = {str(path): upward(path.parts[0].removesuffix(".py"), text) for path, text in modules.items()}
    assert {path: parts for path, parts in found.items() if parts} == {}


def test_an_import_against_the_direction_would_be_noticed() -> None:
    assert upward("metrics", "def late():\n    from shiftproof.studies.base import CleanStudy") == ["studies"]
    assert upward("datasets", "from shiftproof.models import load_model") == ["models"]
    nested = "try: ...\nexcept OSError:\n  match 1:\n    case 1:\n      with x as y:\n        from shiftproof import models"
    assert upward("datasets", nested) == ["models"]
    assert upward("metrics", "from shiftproof import __version__, studies") == ["studies"]
    assert upward("metrics", "import shiftproof.studies.base as base") == ["studies"]
    assert upward("reports", "from shiftproof.studies.evidence import verdicts") == ["studies"]
