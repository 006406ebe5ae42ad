"""The demo, as a newcomer sees it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from patience import PATIENCE
from review.served import served
from shiftproof.curation.project import load_project
from shiftproof.demo import MODELS
from shiftproof.reference import load_table
from shiftproof.reports.build import build_report
from shiftproof.reports.build import results_of as embedded_results
from shiftproof.types import Results

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ASKED_FOR_TORCH = "asked for torch"
"""A file that is made when the demo tries to import torch."""


CHECKOUT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    if find_spec("foolbox") is None or find_spec("skvideo") is None:
        pytest.skip("the extra 'demo' is not installed")
    folder = tmp_path_factory.mktemp("newcomer")
    # -m looks first in the folder it starts in, so this is the torch that the demo would find
    (folder / "torch.py").write_text(f"from pathlib import Path; Path({ASKED_FOR_TORCH!r}).touch(); raise ImportError")
    if made_by_this_code(CHECKOUT / "shiftproof-demo"):  # its 6,500 predictions take a minute and a half
        shutil.copytree(CHECKOUT / "shiftproof-demo" / "runs", folder / "shiftproof-demo" / "runs")
    run = [sys.executable, "-m", "shiftproof", "demo"]
    return folder, subprocess.run(run, cwd=folder, capture_output=True, text=True, check=True)


def made_by_this_code(made: Path) -> bool:
    """Whether `make demo` has run whole since any source file last changed."""
    if not (made / "report.html").exists():
        return False
    sources = [path for path in (CHECKOUT / "src").rglob("*") if path.suffix in {".py", ".csv", ".json"}]
    changed = max(path.stat().st_mtime for path in [*sources, CHECKOUT / "pyproject.toml", CHECKOUT / "constraints.txt"])
    return min(path.stat().st_mtime for path in made.rglob("*") if path.is_file()) > changed


def test_its_last_line_is_the_path_of_the_report_and_nothing_else(
    demo: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    folder, ran = demo
    last = ran.stdout.splitlines()[-1]
    assert (folder / last).is_file()
    assert last == "shiftproof-demo/report.html"


def test_the_review_project_that_it_names_is_served_and_judged(
    demo: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    folder, ran = demo
    (command,) = [line for line in ran.stderr.splitlines() if "shiftproof review" in line]
    *_, location, option, name = command.split()
    project = load_project(folder / location)
    roles = Counter(item.role for item in project.items)
    assert roles == {"asked": 12, "training": 2, "gold": 2}
    assert all(set(item.shown) == {"lite:0", "lite:1"} for item in project.items)
    with served(project.folder, invite=[name]) as server:
        assert option == "--invite"
        assert server.links[name]


def test_answers_that_are_known_are_those_of_the_labels(demo: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    project = load_project(demo[0] / "shiftproof-demo" / "review")
    truth = {Path(photo["file"]).name: photo["labels"].split("|") for photo in load_table("demo_photos")}
    known = [item for item in project.items if item.role != "asked"]
    for item in known:
        right = item.label in truth[str(item.facts["id"])]
        assert item.answer == ({"choice": "keep"} if right else {"choice": "reject", "reasons": ["not the class"]})
    for role in ("training", "gold"):
        answers = [item.answer["choice"] for item in known if item.role == role and item.answer]
        assert sorted(answers) == ["keep", "reject"]


def test_it_needs_no_torch(demo: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder, _ = demo
    assert not (folder / ASKED_FOR_TORCH).exists()
    for model in MODELS:  # nor do its networks, should all of its predictions have been there
        photos = "shiftproof-demo/id-photos.csv?allow_outside=true"
        run = [sys.executable, "-m", "shiftproof", "run", model, photos, "--studies", "accuracy", "--store", "another"]
        subprocess.run(run, cwd=folder, capture_output=True, check=True)
    assert not (folder / ASKED_FOR_TORCH).exists()


def results_of(demo: tuple[Path, subprocess.CompletedProcess[str]]) -> Results:
    folder, _ = demo
    return embedded_results((folder / "shiftproof-demo" / "report.html").read_text(encoding="utf-8"))


def test_ood_photos_are_detected_and_random_networks_run_too(
    demo: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    found = results_of(demo).measurements
    asked = {"ood_detector": "msp", "goal": "new-class", "id": "id-photos"}
    novelty = {
        one.about["model"]: one.value for one in found if one.metric == "auroc" and asked.items() <= one.about.items()
    }
    assert set(novelty) == {"lite:0", "lite:1"}
    assert min(novelty.values()) > 0.7
    networks = {one.about["network"] for one in found if one.metric == "random_network_auroc"}
    assert networks == {1, 2}


def test_a_clip_that_is_correct_on_its_anchors_is_not_on_every_frame_around_them(
    demo: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    found = results_of(demo).measurements
    anchors = {one.about["model"]: one for one in found if one.metric == "anchor_accuracy"}
    around = {one.about["model"]: one for one in found if one.metric == "pm_k_accuracy" and one.about["k"] == 10}
    assert set(anchors) == set(around) == {"lite:0", "lite:1"}
    for model, anchor in anchors.items():
        assert anchor.images == around[model].images == 5
        assert anchor.value >= 0.6
        assert anchor.value > around[model].value


def test_every_photo_is_credited_and_most_are_correct(demo: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    results = results_of(demo)
    credited = {credit for card in results.datasets for credit in card.credits}
    assert credited == {photo["credit"] for photo in load_table("demo_photos")}
    top1 = {found.about["model"]: found for found in results.measurements if found.metric == "top1_accuracy"}
    assert set(top1) == {"lite:0", "lite:1"}
    for found in top1.values():
        assert found.images == 26
        assert found.value > 0.8
        low, high = found.ends or (0, 0)
        assert high - low > 0.2, "with so few photos the interval is wide, and shown"
    assert build_report(results)


@pytest.mark.real
def test_its_report_has_three_megabytes_and_twelve_screens_at_most(
    demo: tuple[Path, subprocess.CompletedProcess[str]], browser: Browser
) -> None:
    report = demo[0] / "shiftproof-demo" / "report.html"
    assert report.stat().st_size <= 3_000_000
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(report.as_uri())
    page.wait_for_selector("html[data-drawn]", timeout=1000 * PATIENCE)
    assert page.evaluate("document.documentElement.scrollHeight") <= 12 * 800
    page.close()
