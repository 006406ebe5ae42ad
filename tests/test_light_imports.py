"""Importing the package and asking for help stay instant, in fresh processes."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from shiftproof.catalog import KINDS, entries, plugins
from shiftproof.errors import MissingExtra
from shiftproof.runs.records import StoredModel
from shiftproof.runs.store import Store
from shiftproof.types import Head, ModelRef

HEAVY = (
    "numpy",
    "torch",
    "onnxruntime",
    "onnx",
    "pandas",
    "scipy",
    "PIL",
    "cv2",
    "numba",
    "jinja2",
    "rich",
    "starlette",
    "fastapi",
    "pyarrow",
)

OF_STUDIES = (
    *("shiftproof.studies.measure", "shiftproof.reports", "shiftproof.models", "shiftproof.bench"),
    *("shiftproof.runs.predict", "shiftproof.runs.workers"),
)
"""Parts of ours that only commands need which measure something."""

OPTIONAL = ("torch", "onnxruntime", "onnx", "cv2", "numba", "av", "pyarrow", "starlette", "uvicorn", "sqlalchemy")

COMMAND = """
import sys
from shiftproof.cli.main import main
sys.argv = ["shiftproof", *{words}]
try:
    main()
except SystemExit as ended:
    assert ended.code == 0
"""


def heavy_after(code: str) -> set[str]:
    """Which heavy libraries, and parts of ours, a fresh process has loaded after running the code."""
    tell = f"\nimport sys\nprint('LOADED', *(set({(*HEAVY, *OF_STUDIES)!r}) & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code + tell], capture_output=True, text=True, check=True)
    return set(ran.stdout.rpartition("LOADED")[2].split())


def heavy_after_command(*words: str) -> set[str]:
    return heavy_after(COMMAND.format(words=words))


def test_nothing_heavy_is_imported() -> None:
    assert heavy_after("import shiftproof") == set()


@pytest.mark.parametrize("command", ["--help", "run --help-all", "cite energy", "cite"])
def test_what_needs_no_image_and_no_number_loads_nothing_heavy(command: str) -> None:
    assert heavy_after_command(*command.split()) == set()


@pytest.mark.parametrize("kind", KINDS)
def test_what_there_is_is_listed_without_the_libraries_that_run_it(kind: str) -> None:
    assert heavy_after_command("list", kind) == set()


def test_stores_are_merged_checked_and_listed_with_numpy_alone(tmp_path: Path) -> None:
    model = StoredModel(ModelRef("mine", "1c0ffee1"), "logits", {"size": [8, 8]}, outputs=2)
    Store(tmp_path / "other").save_model(model, Head(np.ones((2, 3), np.float32), np.ones(2, np.float32)))
    store, other = str(tmp_path / "runs"), str(tmp_path / "other")
    assert heavy_after_command("merge", store, other) == {"numpy"}
    assert (tmp_path / "runs/models/1c0ffee1/head.safetensors").exists()
    assert heavy_after_command("check", "--store", store) == {"numpy"}
    assert heavy_after_command("models", "--store", store) == {"numpy"}


def test_a_dataset_is_checked_without_the_libraries_that_read_images(tmp_path: Path) -> None:
    for name in ("cat/a.png", "dog/b.png"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()
    assert heavy_after_command("check", str(tmp_path)) == {"numpy"}


def test_the_test_above_can_fail() -> None:
    assert heavy_after("import shiftproof\nshiftproof.Condition") == {"numpy"}


def test_stored_predictions_are_measured_and_drawn_without_what_runs_models() -> None:
    read = "import shiftproof.bench.steps\nfrom shiftproof.reports.sections import section_makers\nassert section_makers()"
    read += "\nfrom shiftproof.corruptions.entry import check_kernels\ncheck_kernels('what is stored of changed pictures')"
    of_runs = {"shiftproof.models", "shiftproof.runs.predict", "shiftproof.runs.workers"}
    assert not heavy_after(read) & (of_runs | {"cv2", "numba"})


def test_every_study_is_had_without_any_optional_library() -> None:
    without = f"import sys\nsys.modules.update(dict.fromkeys({OPTIONAL!r}))\n"
    load_all = (
        "from shiftproof.catalog import STUDIES\nassert len([STUDIES.load(name).load_study() for name in STUDIES]) > 5"
    )
    ran = subprocess.run([sys.executable, "-c", without + load_all], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_a_description_is_that_of_the_loaded_entry() -> None:
    for registry in KINDS.values():
        for name in registry:
            with contextlib.suppress(MissingExtra):
                assert registry.describe(name) == str(getattr(registry.load(name), registry.says)).strip().partition("\n")[0]


def test_a_library_that_is_missing_is_named_in_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    assert entries("models")["torch"] == "(model 'torch' needs: pip install 'shiftproof[torch]')"
    assert not entries("models")["onnx"].startswith("(")


def test_the_library_that_reads_entry_points_is_not_loaded_where_no_plug_in_is_installed() -> None:
    loaded = "from shiftproof.cli.options import study_options\nassert study_options()\nimport sys\n"
    ran = subprocess.run(
        [sys.executable, "-c", f"{loaded}print('importlib.metadata' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.strip() == str(bool(plugins()))
