"""Sets that hold corrupted images already give the numbers of the study that corrupts them itself."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shiftproof as sp
from shiftproof.options import PredictionSettings
from shiftproof.runs.predict import fill_studies
from shiftproof.runs.store import Store
from shiftproof.studies.corruption.published import PublishedCorruptionStudy
from shiftproof.studies.corruption.study import CorruptionStudy
from shiftproof.types import DatasetRef, Gallery, Measurement, ModelRef
from shiftproof.writing import write_corrupted
from studies.contracts import findings_of, skipped_by

NAMES, SEVERITIES, IMAGES = ("snow", "fog", "contrast"), (1, 2, 5), 30
MODEL, BASE = ModelRef("model", "1"), ModelRef("base", "2")
CORRUPTED, CLEAN = DatasetRef("photos-c", "3"), DatasetRef("photos", "4")
METRICS = (
    "clean_error", "corrupted_error", "corruption_mean_error", "group_error", "mean_corrupted_error",
    "relative_corrupted_error", "corruption_error", "relative_corruption_error", "mean_corruption_error",
    "relative_mean_corruption_error",
)  # fmt: skip


def wrong(model: str, name: str, severity: int) -> Any:
    seed = [len(model), sum(map(ord, name)), severity]
    return np.random.default_rng(seed).random(IMAGES) < 0.15 + 0.1 * severity


def plain(image: int) -> str:
    return f"n{image % 5}/photo{image}.JPEG"


@pytest.fixture
def labels() -> Any:
    return np.arange(IMAGES) % 5


@pytest.fixture
def load_cells(predictions_of: Any, labels: Any) -> Any:
    """Answers as they come from images corrupted here."""

    def load(run: Any) -> Any:
        missed = wrong(run.model.name, run.condition.name, run.condition.severity)
        return predictions_of(labels, labels + missed, ids=[plain(image) for image in range(IMAGES)])

    return load


def loader_of_set(predictions_of: Any, labels: Any, corrupted_id: Any, clean_id: Any = plain) -> Any:
    """Answers as they come from one set with all cells in it, its rows mixed."""

    def load(run: Any) -> Any:
        if run.dataset == CLEAN:
            missed = wrong(run.model.name, "clean", 0)
            return predictions_of(labels, labels + missed, ids=[clean_id(image) for image in range(IMAGES)])
        rows = [(name, severity, image) for name in NAMES for severity in SEVERITIES for image in range(IMAGES)]
        rows = [rows[place] for place in np.random.default_rng(0).permutation(len(rows))]
        tables = {(name, s): wrong(run.model.name, name, s) for name in NAMES for s in SEVERITIES}
        right = np.array([labels[image] for *_, image in rows])
        return predictions_of(
            right,
            right + [tables[name, severity][image] for name, severity, image in rows],
            ids=[corrupted_id(*row) for row in rows],
            facts={"corruption": [row[0] for row in rows], "severity": [row[1] for row in rows]},
        )

    return load


def imagenet_c(name: str, severity: int, image: int) -> str:
    return f"weather/{name}/{severity}/{plain(image)}"


def cifar_c(name: str, severity: int, image: int) -> str:
    return f"{name}/{severity}/{image:05d}"


def values(findings: Any, metric: str) -> dict[Any, Any]:
    found = [one for one in findings if isinstance(one, Measurement) and one.metric == metric]
    keys = ("corruption", "severity", "group")
    return {tuple(one.about.get(key) for key in keys): (one.value, one.ends, one.images) for one in found}


@pytest.mark.parametrize(
    ("corrupted_id", "clean_id"),
    [
        (imagenet_c, plain),
        (imagenet_c, lambda image: f"photo{image}.JPEG"),
        (cifar_c, lambda image: f"test_batch/{image:05d}"),
    ],
)
def test_the_numbers_are_those_of_the_images_corrupted_here(
    predictions_of: Any, labels: Any, load_cells: Any, corrupted_id: Any, clean_id: Any
) -> None:
    load = loader_of_set(predictions_of, labels, corrupted_id, clean_id)
    held = findings_of(PublishedCorruptionStudy([MODEL], CORRUPTED, clean_set=CLEAN, baseline=BASE), load)
    here = findings_of(CorruptionStudy([MODEL], CLEAN, NAMES, SEVERITIES, baseline=BASE), load_cells)
    for metric in METRICS:
        expected, found = values(here, metric), values(held, metric)
        assert expected
        assert set(found) == set(expected)
        for cell, (value, interval, images) in expected.items():
            assert found[cell][0] == pytest.approx(value)
            assert found[cell][2] == images == IMAGES
            # numbers of CIFAR sort otherwise than names, so there other images are drawn again
            if interval is not None and (corrupted_id is imagenet_c or metric in METRICS[:2]):
                assert found[cell][1] == pytest.approx(interval)


def test_without_the_clean_images_what_needs_them_is_left_out_and_said(predictions_of: Any, labels: Any) -> None:
    load = loader_of_set(predictions_of, labels, imagenet_c)
    study = PublishedCorruptionStudy([MODEL], CORRUPTED, baseline=BASE)
    found: list[Any] = findings_of(study, load)
    metrics = {one.metric for one in found if isinstance(one, Measurement)}
    assert "mean_corruption_error" in metrics
    assert not {"clean_error", "relative_corrupted_error", "relative_mean_corruption_error"} & metrics
    assert any("clean images" in reason for reason in skipped_by(study, load))
    galleries = {one.name: one for one in found if isinstance(one, Gallery)}
    assert all(item.id.startswith("weather/snow/1/") for item in galleries["fragile_photos"].items)


def test_galleries_show_the_files_of_the_sets(predictions_of: Any, labels: Any) -> None:
    load = loader_of_set(predictions_of, labels, imagenet_c)
    found = findings_of(PublishedCorruptionStudy([MODEL], CORRUPTED, clean_set=CLEAN), load)
    galleries = {one.name: one for one in found if isinstance(one, Gallery)}
    assert galleries["fragile_photos"].dataset == CLEAN
    sheet = galleries["contact_sheet"]
    assert sheet.dataset == CORRUPTED
    assert len({item.id.split("/", 3)[3] for item in sheet.items}) == 1
    assert {tuple(item.id.split("/")[1:3]) for item in sheet.items} == {(n, str(s)) for n in NAMES for s in SEVERITIES}
    assert all(item.condition is None for item in sheet.items)


def test_files_are_pictures_already_and_clean_images_are_cut_as_the_published_ones_were() -> None:
    class Published:
        ref, published, cut = CORRUPTED, "imagenet-c", None

    corrupted, clean = PublishedCorruptionStudy([MODEL], Published(), clean_set=CLEAN).runs()  # type: ignore[arg-type]
    assert (corrupted.condition.picture, corrupted.dataset) == ("whole", CORRUPTED)
    assert (clean.condition.picture, clean.dataset) == ("imagenet-224", CLEAN)
    assert PublishedCorruptionStudy([MODEL], CORRUPTED, clean_set=CLEAN).runs()[1].condition.picture == "whole"


def test_a_severity_that_some_corruption_lacks_is_left_out_and_said(predictions_of: Any, labels: Any) -> None:
    whole = loader_of_set(predictions_of, labels, imagenet_c)

    def load(run: Any) -> Any:
        found = whole(run)
        return found.take(~np.array([key.startswith("weather/fog/2/") for key in found.ids]))

    study = PublishedCorruptionStudy([MODEL], CORRUPTED)
    cells = values(findings_of(study, load), "corrupted_error")
    assert {severity for _, severity, _ in cells} == {1, 5}
    assert any("severity 2 is left out" in reason for reason in skipped_by(study, load))


def test_means_over_other_cells_than_the_baselines_are_not_divided_by_it(predictions_of: Any, labels: Any) -> None:
    whole = loader_of_set(predictions_of, labels, imagenet_c)

    def load(run: Any) -> Any:
        found = whole(run)
        lacks = np.array([run.model == BASE and key.startswith("weather/fog/2/") for key in found.ids])
        return found.take(~lacks)

    study = PublishedCorruptionStudy([MODEL], CORRUPTED, baseline=BASE)
    found: list[Any] = findings_of(study, load)
    assert len(values(found, "corrupted_error")) == len(NAMES) * len(SEVERITIES)
    assert not values(found, "corruption_error")
    assert any("predictions in other cells" in reason for reason in skipped_by(study, load))


def test_published_errors_are_those_of_the_cells_that_each_model_has(predictions_of: Any, labels: Any) -> None:
    whole = loader_of_set(predictions_of, labels, imagenet_c)

    def load(run: Any) -> Any:
        found = whole(run)
        lacks = np.array([run.model == BASE and key.startswith("weather/fog/2/") for key in found.ids])
        return found.take(~lacks)

    together, alone = (
        values(
            [
                one
                for one in findings_of(PublishedCorruptionStudy(models, CORRUPTED, baseline="alexnet"), load)
                if one.about["model"] == BASE.name
            ],
            "corruption_error",
        )
        for models in ([MODEL, BASE], [BASE])
    )
    assert together == alone
    assert alone


def test_a_few_images_of_imagenet_c_are_not_those_that_alexnet_was_measured_on(predictions_of: Any, labels: Any) -> None:
    load = loader_of_set(predictions_of, labels, imagenet_c)
    study = PublishedCorruptionStudy([MODEL], CORRUPTED, published="imagenet-c")
    assert any("50,000 in each cell" in reason for reason in skipped_by(study, load))
    assert not values(findings_of(study, load), "mean_corruption_error")


def test_images_that_do_not_say_how_they_were_corrupted_give_a_reason(predictions_of: Any) -> None:
    study = PublishedCorruptionStudy([MODEL], CORRUPTED)
    answers = predictions_of([0, 1], [0, 1])
    assert findings_of(study, lambda run: answers) == []
    assert any("corruption and severity" in reason for reason in skipped_by(study, lambda run: answers))


def test_an_image_skipped_in_one_cell_is_counted_once(predictions_of: Any, labels: Any) -> None:
    import dataclasses

    from shiftproof.types import SkippedImage

    whole = loader_of_set(predictions_of, labels, imagenet_c)

    def load(run: Any) -> Any:
        found = whole(run)
        lost = "weather/fog/2/" + plain(7)
        kept = found.take(np.array([key != lost for key in found.ids]))
        return dataclasses.replace(kept, skipped_images=(SkippedImage(lost, "truncated"),))

    found: list[Any] = findings_of(PublishedCorruptionStudy([MODEL], CORRUPTED), load)
    assert {one.images for one in found if isinstance(one, Measurement)} == {IMAGES - 1}
    assert found[0].convention["skipped images"] == f"1 of {IMAGES}"


@pytest.mark.parametrize(
    ("layout", "edition", "picture", "output"),
    [
        ("imagenet-c", "imagenet-224", None, "jpeg85"),
        ("imagenet-c", "tiny-64", None, "raw"),
        ("imagenet-c", "tiny-64", "image", "raw"),
        ("cifar-c", "cifar-32", None, "raw"),
    ],
)
@pytest.mark.filterwarnings("ignore:tiny-64 is made for")
def test_a_written_set_beside_the_images_it_was_made_from_gives_the_numbers_of_the_study_that_corrupts_them(
    layout: Any, edition: str, picture: Any, output: Any, draw_photos: Any, colour_model: Any, tmp_path: Path
) -> None:
    photos = sp.open_dataset(draw_photos(4))
    some = dataclasses.replace(photos, samples=photos.samples[1::2])  # so that rows of arrays are not those of the photos
    names = ["contrast", "shot_noise"]
    how: dict[str, Any] = {"corruptions": names, "edition": edition, "output": output}
    write_corrupted(some, tmp_path / "c", layout=layout, picture=picture, workers=0, **how)
    written = sp.open_dataset(tmp_path / "c")
    ours = CorruptionStudy([colour_model], some, picture="whole" if picture == "image" else picture, **how)
    theirs = PublishedCorruptionStudy([colour_model], written, clean_set=photos)
    images, store = [photos, some, written], Store(tmp_path / "runs")
    fill_studies(colour_model, [ours, theirs], images, store=store, settings=PredictionSettings(workers=0))
    found = [sp.measure(study, store=tmp_path / "runs", datasets=images).measurements for study in (ours, theirs)]
    values = [
        {(one.metric, one.about.get("corruption"), one.about.get("severity")): (one.value, one.images) for one in results}
        for results in found
    ]
    assert values[0] == values[1]
    assert ("clean_error", None, None) in values[1]
