"""How often heat is beside the object, worked by hand on drawn maps, and measured on real photos."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from shiftproof.datasets.boxed.coco import open_coco
from shiftproof.errors import BadInput
from shiftproof.models import load_model
from shiftproof.options import PredictionSettings
from shiftproof.runs.predict import fill_studies
from shiftproof.runs.saliency import ImageSaliency, SaliencyMaps, SaliencyRequest
from shiftproof.runs.store import Store
from shiftproof.studies.measure import measure
from shiftproof.studies.saliency import BY_CHANCE, PREDICTED, TRUE
from shiftproof.studies.saliency.study import GRID, SaliencyStudy, cells_inside, upsampled
from shiftproof.types import DrawnBox, DrawnHeat, Finding, Gallery, Measurement, Predictions, Results, Run, Sample
from studies.contracts import findings_of, skipped_by

WINDOW = (50.0, 0.0, 150.0, 100.0)  # the middle of images of 200 x 100
LEFT, RIGHT = np.array([[50, 0, 100, 100]]), np.array([[100, 0, 150, 100]])
NOWHERE = np.zeros((0, 4))


def hot(*corners: tuple[int, int]) -> NDArray[np.floating]:
    """A map of 4 x 4 that is hot in some cells."""
    heat = np.zeros((4, 4))
    for corner in corners:
        heat[corner] = 1.0
    return heat


class Looked:
    """What reads answers and maps that were drawn; it remembers which were asked for."""

    def __init__(self, predictions: Predictions, maps: Mapping[str, list[Any]], boxes: Mapping[str, Any]) -> None:
        self.predictions, self.maps, self.boxes = predictions, maps, boxes
        self.asked: dict[str, list[int]] = {}

    def __call__(self, run: Run) -> Predictions:
        return self.predictions

    def images(self, ref: Any) -> Any:
        samples = [Sample(key, boxes=self.boxes.get(key)) for key in self.predictions.ids]
        return dataclasses.make_dataclass("Images", ["samples"])(samples)

    def saliency(self, run: Run, predictions: Predictions, asked: SaliencyRequest, method: str | None) -> SaliencyMaps:
        self.asked = {key: list(classes) for key, classes in asked.items()}
        return SaliencyMaps(
            "occlusion",
            {key: ImageSaliency(tuple(asked[key]), np.stack(self.maps[key]), (100, 200), WINDOW) for key in asked},
        )


@pytest.fixture
def drawn(predictions_of: Any) -> Looked:
    """Three mistakes, of which two look beside the object, and two right answers, of which one does."""
    predictions = predictions_of(
        [0, 0, 0, 1, 1], [2, 2, 2, 1, 1], [0.5, 0.9, 0.6, 0.7, 0.8], ids=["beside", "at", "far", "right", "lucky"]
    )
    upper_left, upper_right = hot((0, 0)), hot((0, 3))
    maps = {
        "beside": [upper_left, upper_right],
        "at": [upper_right, upper_right],
        "far": [upper_left, hot()],
        "right": [upper_right],
        "lucky": [upper_left],
    }
    return Looked(predictions, maps, dict.fromkeys(maps, RIGHT))


@pytest.fixture
def study(stored: Any) -> SaliencyStudy:
    store = stored(first=None)
    return SaliencyStudy(store.models, store.dataset)


def number(findings: list[Finding], metric: str, which: str, of: str = PREDICTED) -> Measurement:
    (found,) = (
        one
        for one in findings
        if isinstance(one, Measurement) and (one.metric, one.about["predictions"], one.about["map"]) == (metric, which, of)
    )
    return found


def test_hottest_points_off_the_object_are_counted_for_each_map(drawn: Looked, study: SaliencyStudy) -> None:
    findings = findings_of(study, drawn)
    wrong = number(findings, "pointing_game_miss_rate", "misclassified")
    assert (wrong.value, wrong.images) == (2 / 3, 3)
    truth = number(findings, "pointing_game_miss_rate", "misclassified", TRUE)
    assert (truth.value, truth.images) == (0.0, 2)
    assert truth.convention["left out"] == "1 of 3: no box within the input, or an empty map"
    right = number(findings, "pointing_game_miss_rate", "correct")
    assert (right.value, right.images) == (1 / 2, 2)


def test_an_answer_that_is_any_of_the_labels_is_no_mistake_to_look_into(drawn: Looked, study: SaliencyStudy) -> None:
    labels = np.array([[0, 2], *([label, -1] for label in (0, 0, 1, 1))])  # the answer to the first is 2
    asked = study.saliency_request(dataclasses.replace(drawn.predictions, labels=labels), drawn.images(None))
    assert (list(asked["beside"]), list(asked["at"])) == ([2], [2, 0])


def test_the_interval_is_exact(drawn: Looked, study: SaliencyStudy) -> None:
    low, high = number(findings_of(study, drawn), "salient_region_miss_rate", "misclassified").ends or (0.0, 0.0)
    assert binom.sf(1, 3, low) == pytest.approx(0.025)
    assert binom.cdf(2, 3, high) == pytest.approx(0.025)


def test_a_wider_hot_region_reaches_the_object_where_that_is_warm_at_all(drawn: Looked, study: SaliencyStudy) -> None:
    drawn = Looked(drawn.predictions, {**drawn.maps, "beside": [hot((0, 0)) + 0.1 * hot((0, 3))] * 2}, drawn.boxes)
    metric = "salient_region_miss_rate"
    narrow, wide = (
        number(findings_of(dataclasses.replace(study, region=share), drawn), metric, "misclassified").value
        for share in (0.01, 0.9)
    )
    assert (narrow, wide) == (2 / 3, 1 / 3)


def test_heat_on_the_object_stands_beside_what_chance_would_give(drawn: Looked, study: SaliencyStudy) -> None:
    inside = number(findings_of(study, drawn), "saliency_on_object", "misclassified")
    assert inside.value == pytest.approx(1 / 3)  # all of one map, nothing of the two others
    assert inside.convention[BY_CHANCE] == "50 %"
    assert inside.convention["saliency map"].startswith("loss of probability behind a grey square")


def test_mistakes_are_looked_into_for_both_classes_and_right_answers_for_one(drawn: Looked, study: SaliencyStudy) -> None:
    findings_of(study, drawn)
    assert drawn.asked == {"beside": [2, 0], "at": [2, 0], "far": [2, 0], "right": [1], "lucky": [1]}


def test_so_many_answers_are_looked_into_as_was_asked_spread_over_the_set(drawn: Looked, study: SaliencyStudy) -> None:
    findings_of(dataclasses.replace(study, images=2), drawn)
    assert list(drawn.asked) == ["beside", "at", "right", "lucky"]


def test_images_without_boxes_are_left_out_where_others_have_some(drawn: Looked, study: SaliencyStudy) -> None:
    some = Looked(drawn.predictions, drawn.maps, {"at": LEFT, "right": RIGHT, "lucky": NOWHERE})
    findings_of(study, some)
    assert list(some.asked) == ["at", "right"]


def test_images_without_a_label_are_not_looked_into(drawn: Looked, study: SaliencyStudy) -> None:
    labels = drawn.predictions.labels.copy()
    labels[[0, 3]] = -1
    partly = Looked(dataclasses.replace(drawn.predictions, labels=labels), drawn.maps, drawn.boxes)
    assert number(findings_of(study, partly), "pointing_game_miss_rate", "misclassified").images == 2
    assert list(partly.asked) == ["at", "far", "lucky"]
    nowhere = dataclasses.replace(drawn.predictions, labels=np.full_like(labels, -1))
    assert study.saliency_request(nowhere, partly.images(None)) == {}


def test_without_any_box_there_are_pictures_and_a_reason(drawn: Looked, study: SaliencyStudy) -> None:
    bare = Looked(drawn.predictions, drawn.maps, {})
    assert [type(one) for one in findings_of(study, bare)] == [Gallery, Gallery]
    assert skipped_by(study, bare) == ["photos: no image has a box to compare saliency maps with"]


def test_an_object_outside_of_what_the_model_sees_is_not_missed(drawn: Looked, study: SaliencyStudy) -> None:
    away = Looked(drawn.predictions, drawn.maps, dict.fromkeys(drawn.maps, np.array([[0, 0, 40, 100]])))
    assert not [one for one in findings_of(study, away) if isinstance(one, Measurement)]


def test_the_gallery_shows_those_off_the_object_first_each_beside_its_maps(drawn: Looked, study: SaliencyStudy) -> None:
    wrong, _ = (one for one in findings_of(study, drawn) if isinstance(one, Gallery))
    assert [item.id for item in wrong.items] == ["far"] * 3 + ["beside"] * 3 + ["at"] * 3
    photo, answer, truth = wrong.items[:3]
    assert (photo.caption, photo.heat) == ("labelled cat", None)
    assert answer.caption == "for the predicted class, eel 60 %, off the object"
    assert truth.caption == "for the true class, cat"
    assert answer.boxes == (DrawnBox((0.5, 0.0, 0.75, 1.0), "truth"),)
    assert answer.heat is not None
    assert answer.heat.window == (0.25, 0.0, 0.75, 1.0)
    assert answer.heat.rows[0] == (1.0, 0.0, 0.0, 0.0)


def test_heat_comes_back_from_json(drawn: Looked, study: SaliencyStudy) -> None:
    results = Results(tuple(one for one in findings_of(study, drawn) if isinstance(one, Gallery)))
    again = Results.from_json(results.to_json())
    assert again == results
    assert isinstance(again.galleries[0].items[1].heat, DrawnHeat)


def test_a_map_on_the_grid_keeps_its_mean_and_its_hottest_corner() -> None:
    heat = np.random.default_rng(0).random((7, 7))
    heat[6, 0] = 2.0
    fine = upsampled(heat)
    assert fine.shape == (GRID, GRID)
    assert fine.mean() == pytest.approx(heat.mean(), rel=0.02)
    assert fine[-1, 0] == pytest.approx(2.0) == fine.max()


def test_cells_inside_are_those_of_any_box_and_of_none_beyond_the_window() -> None:
    both = cells_inside(np.concatenate([LEFT, RIGHT]), WINDOW)
    assert both.all()
    assert cells_inside(np.array([[0, 0, 75, 50]]), WINDOW).mean() == 1 / 8
    assert not cells_inside(NOWHERE, WINDOW).any()


@pytest.mark.parametrize("choice", [{"images": 0}, {"region": 0.0}, {"region": 1.5}])
def test_impossible_choices_are_refused(study: SaliencyStudy, choice: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="at least one image and a salient region between 0 and 1 of the input"):
        dataclasses.replace(study, **choice)


@pytest.mark.real
def test_lite_looks_at_the_objects_of_real_photos_far_beyond_chance(real_data: Path, real_runs: Path) -> None:
    pytest.importorskip("onnxruntime")
    boxes = Path(__file__).parents[1] / "boxes" / "ilsvrc_objects.json"
    photos = open_coco(str(boxes), images=real_data / "ilsvrc-sample-1000")
    model, store = load_model("lite:0"), Store(real_runs)
    study = SaliencyStudy([model], photos, images=99)
    fill_studies(model, [study], [photos], store=store, settings=PredictionSettings(workers=0))
    findings = list(measure(study, store=store, datasets=[photos]).shown)
    inside = number(findings, "saliency_on_object", "correct")
    by_chance = float(inside.convention[BY_CHANCE].removesuffix(" %")) / 100
    assert inside.images > 80
    assert inside.ends is not None
    assert inside.ends[0] > by_chance + 0.05
    missed = number(findings, "pointing_game_miss_rate", "correct")
    assert missed.ends is not None
    assert missed.ends[1] < (1 - by_chance) / 2
