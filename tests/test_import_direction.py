"""Imports point one way: a part knows those below it and none above."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import shiftproof

ROOT = Path(shiftproof.__file__).parent
LEVELS = (
    {"types", "errors", "registry", "catalog", "randomness", "reference", "class_lists", "files", "digests", "chunks"},
    {"metrics", "corruptions", "detectors"},
    {
        "image_sets",
        "models",
        "store",
        "stored_boxes",
        "stored_rows",
        "answers",
        "row_writer",
        "recording",
        "recorded_boxes",
        "planning",
        "prediction",
        "looking",
        "stored_looks",
        "stored_models",
        "loading",
        "loading_boxes",
        "parallel",
        "preparing",
        "writing",
    },
    {"studies", "curation"},
    {"reports", "review"},
    {
        "console",
        "cli",
        "cli_novelty",
        "cli_objects",
        "cli_probe",
        "cli_crops",
        "cli_curation",
        "cli_duplicates",
        "cli_export",
        "cli_filtering",
        "cli_frames",
        "cli_human_test",
        "cli_operating",
        "cli_options",
        "cli_review",
        "cli_models",
        "cli_steps",
        "cli_studies",
        "cli_writing",
        "demo",
        "demo_review",
        "__init__",
        "__main__",
    },
)
LEVEL_OF = {part: level for level, parts in enumerate(LEVELS) for part in parts}
STRANGERS = [{"image_sets", "models"}]
"""Parts of one level that should not need each other."""


def imported_parts(text: str) -> Iterator[str]:
    """The parts of the package that a module imports, wherever in it."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("shiftproof."):
            yield str(node.module).split(".")[1]


def upward(part: str, text: str) -> list[str]:
    return [
        other
        for other in imported_parts(text)
        if LEVEL_OF[other] > LEVEL_OF[part] or any({part, other} == pair for pair in STRANGERS)
    ]


def test_no_part_imports_one_above_it() -> None:
    modules = {path.relative_to(ROOT): path.read_text(encoding="utf-8") for path in ROOT.rglob("*.py")}
    found = {str(path): upward(path.parts[0].removesuffix(".py"), text) for path, text in modules.items()}
    assert {path: parts for path, parts in found.items() if parts} == {}


def test_an_import_against_the_direction_would_be_noticed() -> None:
    assert upward("metrics", "def late():\n    from shiftproof.studies.results import Results") == ["studies"]
    assert upward("image_sets", "from shiftproof.models import load_model") == ["models"]
