"""Results of each kind a report may be asked to draw, and how it is opened."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from patience import PATIENCE
from reports import made_up, made_up_ood
from shiftproof.reports.build import save_report
from shiftproof.types import (
    Caution,
    ConfusionMatrix,
    Curve,
    DatasetCard,
    DatasetRef,
    Finding,
    Gallery,
    GalleryItem,
    Image,
    Interval,
    Measurement,
    ModelCard,
    Results,
    Seen,
    Skipped,
    SkippedImage,
)

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PHOTOS = DatasetRef("photos", "f00d", "/photos")
CONVENTION = {"picture": "the image"}
NASTY = "<script>alert(1)</script>"
NASTY_ID = """a "quoted" 'id' & </script><b>.jpg"""


def share(metric: str, right: int, total: int, **about: str) -> Measurement:
    """A share with a made-up interval around it."""
    value = right / total
    interval = Interval(max(0.0, value - 0.1), min(1.0, value + 0.1), method="Clopper-Pearson")
    return Measurement(metric, value, {"dataset": "photos", **about}, total, CONVENTION, interval)


def findings_of(model: str, right: int, *, classes: int = 30) -> list[Finding]:
    """Everything the studies of accuracy and calibration give for one model on 1,000 images."""
    about = {"model": model, "dataset": "photos"}
    names = [NASTY, *(f"class {place}" for place in range(1, classes))]
    mistakes = (GalleryItem(NASTY_ID, f"predicted {NASTY} 98 %, labelled cat"), GalleryItem("b.jpg", "predicted dog 90 %"))
    return [
        share("top1_accuracy", right, 1000, model=model),
        share("top5_accuracy", 980, 1000, model=model),
        share("group_accuracy", 90, 100, model=model, fact="site", group="meadow"),
        share("group_accuracy", 25, 50, model=model, fact="site", group="pier"),
        share("worst_group_accuracy", 25, 50, model=model, fact="site", group="pier"),
        *(share("class_accuracy", place % 11, 10, **about, **{"class": name}) for place, name in enumerate(names)),
        share("confusion_rate", 3, 10, **about, **{"class": NASTY, "predicted": "class 2"}),
        ConfusionMatrix(
            "confusion_matrix", about, tuple(names[:4]), (0, 0, 1, 2, 3), (0, 2, 1, 2, 0), (7, 3, 9, 8, 2), 29, {}
        ),
        Gallery("confident_mistakes", about, PHOTOS, "Most confident misclassifications", mistakes),
        Measurement("overconfidence", 0.038, about, 1000, CONVENTION, Interval(0.03, 0.046)),
        Measurement("rms_calibration_error", 0.052, about, 1000, {"bins": "10 of 100 images"}),
        Curve(
            "reliability",
            about,
            "mean confidence",
            "share right",
            x=(0.25, 0.9),
            y=(0.2, 0.8),
            images=1000,
            convention=CONVENTION,
            counts=(100, 900),
            low=(0.1, 0.75),
            high=(0.3, 0.85),
        ),
        Curve(
            "confidence_histogram",
            about,
            "confidence",
            "share of images",
            x=(0.25, 0.75),
            y=(0.1, 0.9),
            images=1000,
            convention={},
            counts=(100, 900),
        ),
    ]


def results_of(*findings: Finding, models: tuple[str, ...] = ("toy",)) -> Results:
    """Findings with a card for each model and for the photos."""
    return Results(
        (*findings, Caution("toy was a filter model of photos"), Skipped("the Brier score needs all logits")),
        models=tuple(
            ModelCard(name, "cafe", "logits", {"size": 224}, Seen("drawings", filtered=("photos",))) for name in models
        ),
        datasets=(
            DatasetCard("photos", "f00d", 1001, 1001, "/photos", skipped_images=(SkippedImage("bad.jpg", "truncated"),)),
        ),
        command="shiftproof run toy photos",
        made="2026-01-02T03:04:05+00:00",
        versions={"shiftproof": "0.1.0"},
    )


@pytest.fixture(scope="session")
def results() -> Results:
    """One model on one dataset."""
    return results_of(*findings_of("toy", 887))


@pytest.fixture(scope="session")
def compared() -> Results:
    """Two models on the same images, and a study the report knows nothing of."""
    about = {"model": "toy", "versus": "other", "dataset": "photos"}
    return results_of(
        *findings_of("toy", 887),
        *findings_of("other", 700),
        Measurement("accuracy_difference", 0.187, about, 1000, CONVENTION, Interval(0.15, 0.22)),
        Measurement("accuracy_difference_p", 1e-9, about, 1000, {"test": "exact McNemar"}),
        share("agreement", 800, 1000, **about),
        share("wobble_rate", 3, 100, model="toy", perturbation="tilt"),
        share("wobble_rate", 5, 100, model="toy", perturbation="snow"),
        Curve("wobble", {"model": "toy"}, "level", "change", (1.0, 2.0, 3.0), (0.1, float("nan"), 0.4), 100, {}),
        models=("toy", "other"),
    )


@pytest.fixture(scope="session")
def shifted() -> Results:
    """Two models under corruptions and perturbations, beside a baseline."""
    models = {"toy": (0.13, 0.05), "other": (0.3, 0.07)}
    found = [
        finding
        for name, (clean, shaky) in models.items()
        for findings in (
            made_up.corruption_findings(name, clean, baseline="other", corruptions=("fog", "brightness", "contrast")),
            made_up.perturbation_findings(name, shaky, baseline="other"),
        )
        for finding in findings
    ]
    return results_of(*found, models=tuple(models))


@pytest.fixture(scope="session")
def novel() -> Results:
    """The best and the worst of the detectors of two models, with means over both."""
    detectors = ("msp", "energy", "vim", "relative_mahalanobis", "max_logit", "entropy", "max_cosine", "knn")
    found = [list(made_up_ood.ood_findings(name, detectors, seed=seed)) for name, seed in (("toy", 5), ("other", 9))]
    return results_of(*found[0], *found[1], *made_up_ood.means_over(*found), models=("toy", "other"))


@pytest.fixture(scope="session")
def open_photo() -> Callable[[DatasetRef, str], Image]:
    """A gradient of 800 x 600 in place of a photo."""

    def open_image(dataset: DatasetRef, image_id: str) -> Image:
        assert dataset in (PHOTOS, made_up_ood.CLOTHES)
        return np.stack([np.tile(np.linspace(0, 255, 800), (600, 1))] * 3, axis=2).astype(np.uint8)

    return open_image


@pytest.fixture(scope="session")
def saved(
    tmp_path_factory: pytest.TempPathFactory, open_photo: Callable[[DatasetRef, str], Image]
) -> Callable[[Results], Path]:
    """The file of a report, written once."""
    folder = tmp_path_factory.mktemp("reports")
    written: list[tuple[Results, Path]] = []

    def save(results: Results) -> Path:
        for one, path in written:
            if one is results:
                return path
        written.append((results, save_report(folder / f"{len(written)}.html", results, open_image=open_photo)))
        return written[-1][1]

    return save


@pytest.fixture
def show(browser: Browser, saved: Callable[[Results], Path]) -> Iterator[Callable[..., Page]]:
    """Opens a report offline from its file, and its sections where asked; whatever it complains of or asks for fails."""
    complaints: list[str] = []
    contexts = []

    def open_report(results: Results, *, width: int = 1280, color_scheme: str = "light", opened: bool = False) -> Page:
        context = browser.new_context(viewport={"width": width, "height": 800}, offline=True, color_scheme=color_scheme)  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(1000 * PATIENCE)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: complaints.extend([request.url] if request.url.startswith("http") else []))
        page.goto(saved(results).as_uri())
        page.wait_for_selector("html[data-drawn]")
        if opened:
            page.evaluate("document.querySelectorAll('details.more').forEach((fold) => (fold.open = true))")
        return page

    yield open_report
    for context in contexts:
        context.close()
    assert complaints == []
