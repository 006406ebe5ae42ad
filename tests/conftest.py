"""What many tests share: drawn images, toy classifiers, the folder of real data and a browser."""

from __future__ import annotations

import gc
import os
import shutil
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import nullcontext
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from _pytest.runner import runtestprotocol
from PIL import Image as Pillow

from command import Said, Shiftproof
from shiftproof.models import wrap_model
from shiftproof.types import Classifier
from toys import COLOURS, colour_scores

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Without garbage collection: tests by the thousand that all stay, and looking through them is a fifth of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


if "PYTEST_XDIST_WORKER" in os.environ:

    @pytest.hookimpl
    def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Tells the controller what a test came to, and of its set-up and teardown only where these failed or skipped it.

        Of six messages a test two are left: to send and to read them takes longer than the smallest tests.
        """
        for report in runtestprotocol(item, log=False, nextitem=nextitem):
            if report.when == "call" or not report.passed:
                item.ihook.pytest_runtest_logreport(report=report)
        return True


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache folder of the test session's own, so that what is cached was made by the code under test.

    Processes of pytest-xdist share it: what is slow to make is made once.
    """
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "cache"
    folder.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHIFTPROOF_CACHE", str(folder))
        yield folder


NUMBERS = count()
"""Of the tests of this process that have files."""


@pytest.fixture
def tmp_path(tmp_path: Path) -> Path:
    """A folder at a path that no other test of this process has had: much is cached by path, or by path, size and time.

    Before pytest 9.2 the next test of a name has the path of the last one that passed, whose folder is gone.
    """
    own = tmp_path / f"test{next(NUMBERS)}"
    own.mkdir()
    return own


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real photos and models that SHIFTPROOF_TEST_DATA names."""
    folder = os.environ.get("SHIFTPROOF_TEST_DATA")
    if not folder:
        pytest.skip("SHIFTPROOF_TEST_DATA is not set: no real photos to test with")
    return Path(folder)


@pytest.fixture(scope="session")
def real_runs(own_cache: Path) -> Path:
    """A store for the tests on real photos, in all processes: what they ask alike is answered once."""
    return own_cache / "runs"


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    # first the one without a window, for a third of the time; Playwright itself takes it where it brings a browser
    chromium = next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "google-chrome"))), None)
    if chromium is None:
        pytest.skip("no chromium found")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def one_worker() -> Iterator[None]:
    """Heads are fitted by one process for all tests of a file: starting one takes longer than most fits."""
    from shiftproof.runs.workers import Workers
    from shiftproof.training import cross_validated, heads

    with Workers(1) as pool, pytest.MonkeyPatch.context() as patch:
        for module in (heads, cross_validated):
            patch.setattr(module, "Workers", lambda _count: nullcontext(pool))
        yield


@pytest.fixture
def shiftproof(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shiftproof:
    """Runs the command in an empty folder of its own."""
    from shiftproof.cli.main import main

    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> Said:
        monkeypatch.setattr(sys, "argv", ["shiftproof", *map(str, arguments)])
        capsys.readouterr()
        try:
            main()
            code: Any = 0
        except SystemExit as ended:
            code = ended.code or 0
        return Said(code, *capsys.readouterr())

    return run


@pytest.fixture
def draw_photos(tmp_path: Path) -> Callable[..., Path]:
    """Draws a folder a class of noisy single-coloured images."""

    def draw(count: int = 5, name: str = "photos") -> Path:
        rng = np.random.default_rng(3)
        for colour, rgb in COLOURS.items():
            folder = tmp_path / name / colour
            folder.mkdir(parents=True)
            for number in range(count):
                pixels = np.clip(np.array(rgb) + rng.normal(0, 60, (24, 32, 3)), 0, 255).astype(np.uint8)
                Pillow.fromarray(pixels).save(folder / f"{number:03}.png")
        return tmp_path / name

    return draw


@pytest.fixture
def colour_model() -> Classifier:
    return wrap_model(
        lambda inputs: (colour_scores(inputs), np.asarray(inputs, np.float32).mean(axis=3).reshape(len(inputs), -1)),
        name="colours",
        version="1",
        class_names=sorted(COLOURS),
        size=(16, 16),
        preprocess="squash,mean=0,std=1",
        has_features=True,
    )
