"""One model at several input sizes, worked by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Pillow
from scipy.stats import norm

from shiftproof.datasets import open_dataset
from shiftproof.metrics.accuracy import to_top5
from shiftproof.models import wrap_model
from shiftproof.models.input_sizes import at_input_size
from shiftproof.options import PredictionSettings
from shiftproof.runs.predict import fill_studies
from shiftproof.runs.store import Store
from shiftproof.studies.input_sizes.study import InputSizeStudy, Sized
from shiftproof.studies.measure import measure
from shiftproof.types import (
    Classes,
    Curve,
    DatasetRef,
    Finding,
    Inputs,
    Logits,
    Measurement,
    ModelRef,
    Predictions,
    Run,
)
from studies.contracts import findings_of, skipped_by

MODEL, PHOTOS = ModelRef("net", "own"), DatasetRef("photos", "p")
SMALL, LARGE = ModelRef("net at 96", "96"), ModelRef("net at 320", "320")
SIZES = {"net": (Sized(320, LARGE), Sized(224, MODEL), Sized(96, SMALL))}

RIGHT = {MODEL: range(6), LARGE: range(8), SMALL: range(1, 3)}
"""Which of ten images each is right on."""


def answers(run: Run) -> Predictions:
    images = 9 if run.model == SMALL else 10  # the last one could not be read at 96
    logits = np.zeros((images, 2))
    logits[np.arange(images), [0 if place in RIGHT[run.model] else 1 for place in range(images)]] = 3
    ids = tuple(f"{place}.png" for place in range(images))
    return Predictions(ids, np.zeros((images, 1), int), "logits", to_top5(logits, "logits"), Classes(("cat", "dog")))


def found(study: InputSizeStudy, metric: str) -> dict[int, Measurement]:
    return by_size(findings_of(study, answers), metric)


def by_size(findings: Sequence[Finding], metric: str) -> dict[int, Measurement]:
    numbers = [one for one in findings if isinstance(one, Measurement) and one.metric == metric]
    return {int(one.about.get("input_size", 0)): one for one in numbers}


def test_accuracy_is_told_at_every_size_of_the_images_read_at_all() -> None:
    study = InputSizeStudy([MODEL], PHOTOS, sizes=SIZES)
    accuracy = {size: (one.value, one.images) for size, one in found(study, "input_size_accuracy").items()}
    assert accuracy == {96: (2 / 9, 9), 224: (6 / 9, 9), 320: (8 / 9, 9)}
    (curve,) = (one for one in findings_of(study, answers) if isinstance(one, Curve))
    assert list(curve.x) == [96, 224, 320]
    assert curve.y == pytest.approx((2 / 9, 6 / 9, 8 / 9))


def test_every_size_is_compared_with_the_models_own_image_by_image() -> None:
    study = InputSizeStudy([MODEL], PHOTOS, sizes=SIZES)
    differences = found(study, "input_size_difference")
    assert {size: one.value for size, one in differences.items()} == {96: pytest.approx(-4 / 9), 320: pytest.approx(2 / 9)}
    chances = found(study, "input_size_p")
    # four of nine lost and none won, one image added to each way of differing: 5 and 1 of 11; twice for two comparisons
    assert chances[96].value == pytest.approx(4 * norm.sf((4 / 11) / np.sqrt((6 / 11 - (4 / 11) ** 2) / 11)))
    assert chances[320].value == pytest.approx(4 * norm.sf((2 / 11) / np.sqrt((4 / 11 - (2 / 11) ** 2) / 11)))


def test_the_best_size_says_whether_its_lead_may_be_chance() -> None:
    (best,) = found(InputSizeStudy([MODEL], PHOTOS, sizes=SIZES), "best_input_size").values()
    assert (best.value, best.convention["best"]) == (320, "its lead over 224 is not significant (p = 0.59)")
    two = {"net": SIZES["net"][1:]}
    (best,) = found(InputSizeStudy([MODEL], PHOTOS, sizes=two), "best_input_size").values()
    assert (best.value, best.convention["best"]) == (224, "the model's own")


def test_of_sizes_that_do_equally_well_the_models_own_is_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    for other in (SMALL, LARGE):
        monkeypatch.setitem(RIGHT, other, RIGHT[MODEL])
    (best,) = found(InputSizeStudy([MODEL], PHOTOS, sizes=SIZES), "best_input_size").values()
    assert (best.value, best.convention["best"]) == (224, "the model's own")


def test_the_size_of_enlarged_pictures_is_told_as_such() -> None:
    sizes = {"net": (Sized(96, SMALL, "picture"), Sized(224, MODEL))}
    stated = {
        size: one.convention["input"]
        for size, one in found(InputSizeStudy([MODEL], PHOTOS, sizes=sizes), "input_size_accuracy").items()
    }
    assert stated == {96: "pictures of this size, upscaled to the model's own", 224: "of this size"}


def test_rectangular_sizes_stand_beside_square_ones_in_the_order_of_their_pixels() -> None:
    """The paper's comparison of 224 x 224 with 800 x 600."""
    sizes = {"net": (Sized((600, 800), LARGE), Sized(224, MODEL), Sized(96, SMALL))}
    study = InputSizeStudy([MODEL], PHOTOS, sizes=sizes, wanted=(96, (600, 800), (800, 600)))
    findings = findings_of(study, answers)
    accuracy = [one for one in findings if isinstance(one, Measurement) and one.metric == "input_size_accuracy"]
    assert [one.about["input_size"] for one in accuracy] == [96, 224, "600 x 800"]
    (curve,) = (one for one in findings if isinstance(one, Curve))
    assert list(curve.x) == pytest.approx([96, 224, 480_000**0.5])
    assert "of a rectangle" in curve.x_label
    (best,) = (one for one in findings if isinstance(one, Measurement) and one.metric == "best_input_size")
    assert best.convention["size"] == "600 x 800"
    assert skipped_by(study, answers) == ["net on photos: nothing at 800 x 600, which it does not take or was not run at"]


def test_one_size_alone_is_skipped_with_its_reason() -> None:
    study = InputSizeStudy([MODEL], PHOTOS, sizes={"net": (Sized(224, MODEL),)})
    assert study.runs() == []
    assert findings_of(study, answers) == []
    assert skipped_by(study, answers) == [
        "net on photos: the model is available at one input size only, so there is nothing to compare"
    ]


def stripes(inputs: Inputs) -> Logits:
    """Whether neighbouring pixels differ: stripes, which small inputs blur to grey, against plain."""
    rough = np.abs(np.diff(np.asarray(inputs, np.float32), axis=3)).mean(axis=(1, 2, 3))
    return np.stack([rough, np.full_like(rough, 0.05)], axis=1)


def test_fine_stripes_are_lost_in_small_inputs_and_the_larger_object_keeps_them_longer(tmp_path: Path) -> None:
    """Stripes 2 and 8 pixels wide in images of 64: inputs of 64 show both, inputs of 16 only the second."""
    for name, width in (("fine.png", 2), ("wide.png", 8)):
        columns = (np.arange(64) // width % 2 * 255).astype(np.uint8)
        Pillow.fromarray(np.broadcast_to(columns[None, :, None], (64, 64, 3)).copy()).save(tmp_path / name)
    boxes = [(0, [0, 0, 28, 10]), (1, [0, 0, 64, 64])]
    text = {
        "images": [{"id": i, "file_name": n, "width": 64, "height": 64} for i, n in enumerate(("fine.png", "wide.png"))],
        "annotations": [{"image_id": image, "category_id": 0, "bbox": box} for image, box in boxes],
        "categories": [{"id": 0, "name": "striped"}, {"id": 1, "name": "plain"}],
    }
    (tmp_path / "boxes.json").write_text(json.dumps(text))
    model = wrap_model(
        stripes,
        name="stripes",
        version="1",
        class_names=["striped", "plain"],
        size=(64, 64),
        preprocess="squash,mean=0,std=1",
    )
    small = at_input_size(model, 16)
    images = open_dataset(tmp_path / "boxes.json")
    study = InputSizeStudy([model], images, sizes={"stripes": [Sized(16, small), Sized(64, model)]})
    for one in (model, small):
        fill_studies(one, [study], [images], store=Store(tmp_path / "runs"), settings=PredictionSettings(workers=0))
    results = measure(study, store=tmp_path / "runs", datasets=[images])
    accuracy = {size: one.value for size, one in by_size(results.shown, "input_size_accuracy").items()}
    assert accuracy == {16: 0.5, 64: 1.0}
    by_scale = {
        (one.about["input_size"], one.about["scale_factor"]): one.value
        for one in results.measurements
        if one.metric == "input_size_scale_accuracy"
    }
    # 28 of 64 pixels are more than a quarter and no more than half
    assert by_scale == {(16, "1"): 1.0, (16, "1/2"): 0.0, (64, "1"): 1.0, (64, "1/2"): 1.0}
