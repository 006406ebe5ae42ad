"""The study of corruptions, on tables small enough for paper."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import t as student

import shiftproof
from shiftproof.corruptions import CIFAR_C_BAR, IMAGENET_C, IMAGENET_C_BAR, corruption_groups
from shiftproof.corruptions.selection import corruptions_named, trained_with
from shiftproof.errors import BadInput, UnknownName
from shiftproof.metrics import mean_corruption_error, relative_mean_corruption_error
from shiftproof.metrics.resampling import jackknife_interval
from shiftproof.reports.tables import interval_cell
from shiftproof.studies.corruption.cells import Baseline, Cells, alexnet_errors
from shiftproof.studies.corruption.numbers import findings, measured_means
from shiftproof.studies.corruption.study import CorruptionStudy
from shiftproof.types import (
    BaselineRef,
    Condition,
    Curve,
    DatasetRef,
    FrostPictures,
    Gallery,
    GalleryItem,
    Measurement,
    ModelRef,
    Results,
    Seen,
)
from studies.contracts import findings_of, skipped_by

NAMES = ("fog", "snow", "contrast")
LABELS = np.array([0, 1, 2, 3])

# which of four images are wrong: fog 1, fog 2, snow 1, snow 2, contrast 1, contrast 2
WRONG: dict[str, Any] = {
    "model": {
        "clean": [0, 0, 0, 1],
        "cells": [[0, 0, 1, 1], [0, 1, 1, 1], [0, 0, 0, 1], [0, 0, 1, 1], [0] * 4, [0, 0, 1, 0]],
    },
    "base": {
        "clean": [0, 0, 1, 1],
        "cells": [[1, 1, 1, 1], [1, 1, 1, 1], [0, 1, 1, 1], [0, 1, 1, 1], [0, 1, 1, 1], [1] * 4],
    },
}
MODEL, BASE = (ModelRef(name, f"fingerprint of {name}") for name in WRONG)
PHOTOS = DatasetRef("photos", "fingerprint of photos")


@pytest.fixture
def load(predictions_of: Any) -> Any:
    def answer(run: Any) -> Any:
        table, condition = WRONG[run.model.name], run.condition
        wrong = table["clean"]
        if condition.name != "clean":
            wrong = table["cells"][2 * NAMES.index(condition.name) + condition.severity - 1]
        return predictions_of(LABELS, LABELS + np.array(wrong))

    return answer


@pytest.fixture
def load_thrice(predictions_of: Any, load: Any) -> Any:
    """The same images three times over: as many as it takes for an interval."""

    def answer(run: Any) -> Any:
        once = load(run)
        return predictions_of(np.tile(once.labels[:, 0], 3), np.tile(once.top5.classes[:, 0], 3))

    return answer


def study(**options: Any) -> CorruptionStudy:
    return CorruptionStudy([MODEL], PHOTOS, **{"corruptions": NAMES, "severities": (1, 2), **options})


def numbers(findings: Any, metric: str, key: str | None = None) -> dict[Any, Any]:
    found = [one for one in findings if isinstance(one, Measurement) and one.metric == metric]
    return {one.about[key] if key else None: pytest.approx(one.value) for one in found}


def test_means_over_cells_are_as_on_paper(load: Any) -> None:
    findings: list[Any] = findings_of(study(), load)
    cells = [one for one in findings if isinstance(one, Measurement) and one.metric == "corrupted_error"]
    assert [(one.about["corruption"], one.about["severity"], one.value) for one in cells] == [
        ("fog", 1, 0.5), ("fog", 2, 0.75), ("snow", 1, 0.25), ("snow", 2, 0.5), ("contrast", 1, 0.0), ("contrast", 2, 0.25),
    ]  # fmt: skip
    assert numbers(findings, "clean_error") == {None: 0.25}
    assert numbers(findings, "corruption_mean_error", "corruption") == {"fog": 0.625, "snow": 0.375, "contrast": 0.125}
    assert numbers(findings, "group_error", "group") == {"weather": 0.5, "digital": 0.125}
    assert numbers(findings, "mean_corrupted_error") == {None: 0.375}
    assert numbers(findings, "relative_corrupted_error") == {None: 0.125}
    assert not numbers(findings, "mean_corruption_error")


def test_the_mean_of_c_bar_stands_apart_from_that_of_imagenet_c(predictions_of: Any) -> None:
    def load(run: Any) -> Any:
        wrong = [run.condition.name in IMAGENET_C_BAR, run.condition.name == "fog", run.condition.name == "sparkles", False]
        return predictions_of(LABELS, LABELS + np.array(wrong))

    both: list[Any] = findings_of(study(corruptions=[*IMAGENET_C, *IMAGENET_C_BAR]), load)
    assert numbers(both, "mean_corrupted_error") == {None: 1 / 4 / 15}
    assert numbers(both, "mean_c_bar_error") == {None: 1 / 4 + 1 / 4 / 10}
    told = {one.metric: one.convention for one in both if isinstance(one, Measurement) and not one.about.get("corruption")}
    assert told["mean_corrupted_error"]["corruptions"] == "the 15 of ImageNet-C"
    assert told["mean_c_bar_error"]["corruptions"] == "the 10 of ImageNet-C-bar"
    of_cifar: list[Any] = findings_of(study(corruptions=CIFAR_C_BAR), load)
    assert numbers(of_cifar, "mean_c_bar_error") == {None: 5 / 40 + 1 / 40}
    some: list[Any] = findings_of(study(corruptions=[*IMAGENET_C, *IMAGENET_C_BAR[1:]]), load)
    assert not numbers(some, "mean_c_bar_error")


def test_c_bar_is_chosen_by_name() -> None:
    assert corruptions_named("c-bar") == corruptions_named("imagenet-c-bar") == IMAGENET_C_BAR
    assert corruptions_named("cifar-c-bar,fog") == (*CIFAR_C_BAR, "fog")
    assert set(corruptions_named("all")) >= {*IMAGENET_C, *IMAGENET_C_BAR, *CIFAR_C_BAR}
    assert trained_with(["imagenet-c"]) == set(IMAGENET_C)
    assert trained_with(["C-bar"]) == {*IMAGENET_C_BAR, *CIFAR_C_BAR}


class Declared:
    """Loads answers and knows what the model says of its past."""

    def __init__(self, load: Any, *augmentations: str) -> None:
        self._load, self._augmentations = load, augmentations

    def __call__(self, run: Any) -> Any:
        return self._load(run)

    def seen(self, run: Any) -> Seen:
        return Seen(augmentations=self._augmentations if run.model == MODEL else ())


def test_means_over_unseen_corruptions_stand_beside_the_published_ones(load: Any) -> None:
    plain: list[Any] = findings_of(study(baseline=BASE), load)
    findings: list[Any] = findings_of(study(baseline=BASE), Declared(load, "RandomFog", "mixup"))
    means = [one for one in findings if isinstance(one, Measurement) and one.metric.startswith("unseen_")]
    # of snow and contrast alone: errors 0.375 and 0.125, clean 0.25; ratios 0.5 and 0.125 / 0.875; relative 0.5 and -1 / 3
    assert {one.metric: one.value for one in means} == {
        "unseen_group_error": pytest.approx(0.375),  # of weather, which has snow left; digital loses nothing
        "unseen_mean_corrupted_error": pytest.approx(0.25),
        "unseen_relative_corrupted_error": pytest.approx(0.0),
        "unseen_mean_corruption_error": pytest.approx((0.5 + 0.125 / 0.875) / 2),
        "unseen_relative_mean_corruption_error": pytest.approx((0.5 - 1 / 3) / 2),
    }
    assert {one.convention["corruptions"] for one in means} == {"snow, contrast", "snow"}
    assert not any("seen in training" in one.convention for one in means)
    # what was there before is the same, and says that part of it was part of training
    others = [one for one in findings if one not in means]
    assert [getattr(one, "value", None) for one in others] == [getattr(one, "value", None) for one in plain]
    told = {
        (one.metric, one.about.get("corruption", one.about.get("group")))
        for one in others
        if isinstance(one, Measurement) and one.convention.get("seen in training") == "fog"
    }
    of_fog = (
        *("corrupted_error", "corruption_loss", "corrupted_overconfidence"),
        *("corruption_mean_error", "corruption_mean_loss", "corruption_error", "relative_corruption_error"),
    )
    of_all = ("mean_corrupted_error", "relative_corrupted_error", "mean_corruption_error", "relative_mean_corruption_error")
    assert told == {*((name, "fog") for name in of_fog), *((name, None) for name in of_all), ("group_error", "weather")}


@pytest.mark.parametrize("augmentations", [(), ("mixup", "cutout"), ("imagenet-c",)])
def test_without_both_seen_and_unseen_corruptions_there_is_one_mean(load: Any, augmentations: tuple[str, ...]) -> None:
    findings = findings_of(study(baseline=BASE), Declared(load, *augmentations))
    assert not any(isinstance(one, Measurement) and one.metric.startswith("unseen_") for one in findings)


@pytest.mark.parametrize(
    ("declared", "names"),
    [
        ("gaussian_noise", {"gaussian_noise"}),
        ("GaussianBlur", {"gaussian_blur"}),
        ("noise", {"gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise"}),
        ("blur, jpeg", {*corruption_groups()["blur"], "gaussian_blur", "jpeg_compression"}),
        ("Color Jitter (0.4)", {"brightness", "contrast", "saturate"}),
        ("imagenet-c", set(IMAGENET_C)),
        ("random-rotation", {"rotate"}),
        ("horizontal flip", set()),
        ("augmix", set()),  # made to have nothing of ImageNet-C
    ],
)
def test_augmentations_are_known_by_what_people_call_them(declared: str, names: set[str]) -> None:
    assert trained_with([declared]) == names


def test_ratios_to_a_baseline_are_as_on_paper_and_by_the_metrics(load: Any) -> None:
    findings: list[Any] = findings_of(study(baseline=BASE), load)
    # the baseline's means: 1, 0.75 and 0.875; clean 0.5
    expected = {"fog": 0.625, "snow": 0.5, "contrast": 0.125 / 0.875}
    assert numbers(findings, "corruption_error", "corruption") == expected
    # 0.375 / 0.5, 0.125 / 0.25 and -0.125 / 0.375
    expected = {"fog": 0.75, "snow": 0.5, "contrast": -1 / 3}
    assert numbers(findings, "relative_corruption_error", "corruption") == expected
    own, other = (np.mean(WRONG[name]["cells"], axis=1).reshape(3, 2) for name in ("model", "base"))
    assert numbers(findings, "mean_corruption_error") == {None: mean_corruption_error(own, other)}
    relative = relative_mean_corruption_error(own, 0.25, other, 0.5)
    assert numbers(findings, "relative_mean_corruption_error") == {None: relative}
    ratio = next(one for one in findings if getattr(one, "metric", "") == "corruption_error")
    assert ratio.convention["baseline"] == "base"


def test_the_baseline_beside_itself_is_one_by_definition(load: Any) -> None:
    findings: list[Any] = findings_of(CorruptionStudy([BASE], PHOTOS, NAMES, (1, 2), baseline=BASE), load)
    for metric in ("corruption_error", "mean_corruption_error", "relative_mean_corruption_error"):
        for one in findings:
            if isinstance(one, Measurement) and one.metric == metric:
                assert one.value == pytest.approx(1)
                assert one.ends is None


def test_curves_begin_at_the_clean_image(load: Any) -> None:
    curves = {one.about["corruption"]: one for one in findings_of(study(), load) if isinstance(one, Curve)}
    assert (curves["fog"].x, curves["fog"].y) == ((0, 1, 2), (0.25, 0.5, 0.75))
    assert curves["fog"].counts == (4, 4, 4)
    assert set(curves) == set(NAMES)


def test_the_most_fragile_photo_is_right_unchanged_and_wrong_in_most_cells(load: Any) -> None:
    galleries = {one.name: one for one in findings_of(study(), load) if isinstance(one, Gallery)}
    captions = [item.caption for item in galleries["fragile_photos"].items]
    # the fourth is wrong in five cells of six, but wrong unchanged too
    assert captions == ["eel: misclassified in 4 of 6", "dog: misclassified in 1 of 6"]
    assert [item.id for item in galleries["fragile_photos"].items] == ["002.png", "001.png"]


def test_the_contact_sheet_shows_the_first_photo_that_is_right_under_every_condition(load: Any) -> None:
    galleries = {one.name: one for one in findings_of(study(), load) if isinstance(one, Gallery)}
    items = galleries["contact_sheet"].items
    assert {item.id for item in items} == {"000.png"}
    cells = [(item.corruption, item.severity, item.correct) for item in items]
    assert cells[:3] == [("fog", 1, True), ("fog", 2, True), ("snow", 1, True)]
    assert [item.condition for item in items] == study().conditions()[1:]


def test_the_contact_sheet_of_the_fifteen_has_the_other_four_too(predictions_of: Any) -> None:
    asked = CorruptionStudy([MODEL], PHOTOS)
    found: list[Any] = findings_of(asked, lambda run: predictions_of(LABELS, LABELS))
    sheet = next(one for one in found if isinstance(one, Gallery) and one.name == "contact_sheet")
    assert len(sheet.items) == 5 * (15 + 4)
    assert {item.condition.name for item in sheet.items if item.condition} == {*IMAGENET_C, *corruption_groups()["extra"]}


def test_runs_are_the_clean_picture_and_every_cell_for_the_models_and_the_baseline() -> None:
    asked = study(baseline=BASE, frost=FrostPictures("panes", "abc"), corruptions=("frost", "fog"))
    runs = asked.runs()
    assert len(runs) == 2 * (1 + 2 * 2)
    clean, frost, _, fog, _ = (run.condition for run in runs[:5])
    assert (clean.name, clean.picture, clean.output, clean.edition) == ("clean", "imagenet-224", "raw", None)
    assert (fog.edition, fog.output, fog.picture, fog.frost) == ("imagenet-224", "jpeg85", "imagenet-224", None)
    assert frost.frost == FrostPictures("panes", "abc")
    assert study(baseline=MODEL).runs() == study().runs()


def test_small_pictures_are_not_saved_as_jpeg_unless_asked() -> None:
    assert study(edition="cifar-32").conditions()[1].output == "raw"
    assert study(edition="cifar-32", output="jpeg85").conditions()[1].output == "jpeg85"
    assert study(edition="tiny-64").conditions()[1].output == "jpeg85"
    assert study(picture="model-size").conditions()[0].picture == "model-size"


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"corruptions": ["fogg"]}, UnknownName, "fog"),
        ({"corruptions": []}, BadInput, "at least one"),
        ({"severities": (3, 3)}, BadInput, "once"),
        ({"severities": (6,)}, BadInput, "1 to 5"),
        ({"edition": "imagenet-225"}, UnknownName, "imagenet-224"),
        ({"picture": "hole"}, UnknownName, "whole"),
        ({"baseline": "alexnett"}, UnknownName, "alexnet"),
    ],
)
def test_a_slip_is_told_before_any_image_is_opened(options: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        study(**options)


class Published:
    """A dataset of which only this is asked."""

    def __init__(self, published: str) -> None:
        self.ref, self.published = PHOTOS, published


def test_alexnet_is_the_baseline_only_where_its_errors_belong(load: Any) -> None:
    def stated(**options: Any) -> str | None:
        given = {"corruptions": NAMES, "severities": (1, 2), "dataset": Published("imagenet"), **options}
        found = CorruptionStudy([MODEL], **given)
        measured: list[Any] = findings_of(found, load)
        ratios = [one for one in measured if getattr(one, "metric", "") == "mean_corruption_error"]
        return ratios[0].convention["baseline"] if ratios else "; ".join(skipped_by(found, load))

    assert stated() == "AlexNet's published errors on these images"
    assert "ImageNet validation set; give --baseline" in str(stated(dataset=PHOTOS))
    assert "jpeg85; give" in str(stated(output="raw"))
    assert "imagenet-224; give" in str(stated(edition="inception-299"))
    assert "imagenet-224; give" in str(stated(picture="model-size"))
    assert "imagenet-224; give" in str(stated(scale_severity=True))
    assert stated(dataset=PHOTOS, baseline="alexnet") == (
        "AlexNet's published errors, which are of other images: the ImageNet validation set"
    )


OF_LOSSES = (
    *("relative_corrupted_error", "relative_corruption_error", "relative_mean_corruption_error"),
    *("corruption_loss", "corruption_mean_loss"),
)


def test_what_a_save_alone_costs_is_told_where_clean_and_corrupted_pictures_are_compared(load: Any) -> None:
    def told(**options: Any) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for one in findings_of(study(baseline=BASE, **options), load):
            if isinstance(one, Measurement):
                found.setdefault(one.metric, set()).add(one.convention.get("clean pictures", ""))
        return found

    published = told()  # the pictures of ImageNet-C, which were saved once more than the clean ones
    assert set(OF_LOSSES) < set(published)
    for metric, words in published.items():
        if metric in OF_LOSSES:
            assert words == {"raw, corrupted ones jpeg85: the loss from the encoding counts as corruption"}
        else:
            assert words == {""}
    alike = told(clean_output="jpeg85")
    assert alike["relative_corrupted_error"] == {"jpeg85, as corrupted ones; published ones were not re-encoded"}
    assert told(output="raw")["relative_corrupted_error"] == {""}
    (curve, *_) = [one for one in findings_of(study(), load) if isinstance(one, Curve)]
    assert curve.convention["clean pictures"].startswith("raw, corrupted ones jpeg85")


def test_clean_pictures_can_be_saved_as_corrupted_ones_are() -> None:
    from shiftproof.corruptions.apply import apply
    from shiftproof.corruptions.kernels.jpeg import jpeg85

    clean, *cells = study(clean_output="jpeg85").conditions()
    assert clean == Condition("clean", picture="imagenet-224", output="jpeg85")
    assert {cell.output for cell in cells} == {"jpeg85"}
    assert study().conditions()[0].output == "raw"
    picture = np.random.default_rng(0).integers(0, 256, (40, 40, 3), np.uint8)
    assert np.array_equal(apply(clean, picture, key="a"), jpeg85(picture))


def test_alexnet_needs_the_original_frost_where_frost_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cv2")
    monkeypatch.setattr("shiftproof.corruptions.frost_pictures.ORIGINAL_FROST", "the digest")
    options: dict[str, Any] = {"corruptions": ("frost",), "dataset": Published("imagenet")}
    ours = CorruptionStudy([MODEL], **options)
    original = CorruptionStudy([MODEL], **options, frost=FrostPictures("panes", "the digest"))
    assert "frost" in str(ours._why_not_published())
    assert original._why_not_published() is None


def test_published_errors_are_constants_so_the_interval_is_that_of_the_error_alone(load_thrice: Any) -> None:
    found: list[Any] = findings_of(study(corruptions=("fog",), baseline="alexnet"), load_thrice)
    error, ratio = (
        next(one for one in found if isinstance(one, Measurement) and one.metric == metric)
        for metric in ("corruption_mean_error", "corruption_error")
    )
    divisor = np.mean([0.67474, 0.76050])  # AlexNet under fog at severities 1 and 2
    assert ratio.value == pytest.approx(error.value / divisor)
    assert error.ends is not None
    assert ratio.ends == pytest.approx(tuple(bound / divisor for bound in error.ends))
    # the model is wrong on a quarter of the unchanged images, AlexNet on 0.4348
    assert numbers(found, "relative_corruption_error") == {None: (error.value - 0.25) / (divisor - 0.4348)}


@pytest.mark.parametrize("images", [26, 100])
def test_intervals_of_few_photos_are_as_wide_as_students(images: int) -> None:
    """Of values that lie evenly there is no skew to correct, and Student's interval of a mean is the one to have."""

    values, widths = np.linspace(0.1, 0.9, images), []
    for seed in range(20):  # in another order other photos are drawn; 1000 draws leave some noise
        wrong = np.random.default_rng(seed).permutation(values).reshape(images, 1, 1)
        cells = Cells(tuple(f"{place:03d}" for place in range(images)), ("fog",), (1,), wrong, None)
        (mean,) = [one for one in measured_means(cells, None) if one.number.metric == "mean_corrupted_error"]
        low, high = mean.interval or (0.0, 0.0)
        widths.append(high - low)
    low, high = student.interval(0.95, images - 1, values.mean(), values.std(ddof=1) / np.sqrt(images))
    assert np.mean(widths) == pytest.approx(high - low, rel=0.04)  # percentiles as they are: 26 photos 8 % too narrow


def test_a_mean_is_over_the_fifteen_also_where_others_were_asked_for(predictions_of: Any) -> None:
    asked = CorruptionStudy([MODEL], PHOTOS, ("fog", "spatter"), (1,), baseline="alexnet")
    wrong = {"fog": 1, "spatter": 0, "clean": 0}
    found: list[Any] = findings_of(asked, lambda run: predictions_of(LABELS, LABELS + wrong[run.condition.name]))
    assert numbers(found, "mean_corrupted_error") == {None: 1}
    assert numbers(found, "corruption_error", "corruption") == {"fog": 1 / 0.67474}
    assert any("spatter" in reason for reason in skipped_by(asked, lambda run: predictions_of(LABELS, LABELS)))
    assert alexnet_errors(IMAGENET_C, (1, 2, 3, 4, 5)).reasons == ()


def test_images_that_some_cell_lacks_are_left_out_of_all_and_counted(predictions_of: Any) -> None:
    def load(run: Any) -> Any:
        rows = slice(1, None) if run.condition.name == "snow" else slice(None)
        ids = [f"{place}.png" for place in range(4)][rows]
        labels = np.array([0, 1, -1, 3])[rows]
        return predictions_of(labels, np.abs(labels) + (run.condition.name == "fog"), ids=ids)

    found: list[Any] = findings_of(study(), load)
    assert {one.images for one in found if isinstance(one, Measurement)} == {2}
    told = found[0].convention
    assert told["skipped images"] == "1 of 4"
    assert told["without label"] == "1 of 3, left out of what needs labels"


def test_images_in_another_order_are_the_same_images(predictions_of: Any, load: Any) -> None:
    def shuffled(run: Any) -> Any:
        found = load(run)
        return found if run.condition.name != "snow" else found.take(np.array([2, 0, 3, 1]))

    plain, mixed = (findings_of(study(baseline=BASE), answers) for answers in (load, shuffled))
    assert [repr(one) for one in plain] == [repr(one) for one in mixed]


def test_images_the_baseline_did_not_read_are_left_out_and_counted(load: Any) -> None:
    def partly(run: Any) -> Any:
        return load(run) if run.model == MODEL else load(run).take(np.array([0, 1, 3]))

    found: list[Any] = findings_of(study(baseline=BASE), partly)
    assert {one.images for one in found if isinstance(one, Measurement)} == {3}
    assert found[0].convention["without the baseline's prediction"] == "1 of 4, left out"


def test_a_baseline_without_mistakes_is_told_and_not_divided_by(load: Any, predictions_of: Any) -> None:
    def perfect(run: Any) -> Any:
        return load(run) if run.model == MODEL or run.condition.name != "fog" else predictions_of(LABELS, LABELS)

    asked = study(baseline=BASE)
    found: list[Any] = findings_of(asked, perfect)
    assert set(numbers(found, "corruption_error", "corruption")) == {"snow", "contrast"}
    assert not numbers(found, "mean_corruption_error")
    assert any("base has no errors under fog" in reason for reason in skipped_by(asked, perfect))


def test_the_numbers_say_how_they_were_made(load: Any) -> None:
    found: list[Any] = findings_of(study(baseline=BASE, corruptions=("fog", "snow")), load)
    told = next(one for one in found if getattr(one, "metric", "") == "mean_corruption_error").convention
    assert told["corruptions"] == "fog, snow"
    assert told["severities"] == "1, 2"
    assert (told["edition"], told["output"], told["picture"], told["seed"]) == (
        "imagenet-224",
        "jpeg85",
        "imagenet-224",
        "0",
    )
    clean = next(one for one in found if getattr(one, "metric", "") == "clean_error").convention
    assert clean["output"] == "raw"


def test_results_with_conditions_come_back_from_json(load: Any) -> None:
    frosty = Condition("frost", 2, frost=FrostPictures("panes", "abc"))
    sheet = Gallery("contact_sheet", {}, PHOTOS, "One photo", (GalleryItem("a.png", "frost 2", frosty),))
    results = Results((*findings_of(study(), load), sheet))
    assert Results.from_json(results.to_json()) == results


def test_the_study_is_a_public_name() -> None:
    assert shiftproof.CorruptionStudy is CorruptionStudy


def test_a_ratio_to_what_is_lost_has_the_interval_of_leaving_images_out() -> None:
    """Drawings of a ratio to a small number have long tails."""
    from shiftproof.studies.corruption.numbers import measured_means

    clean, foggy, theirs = np.arange(40) < 8, np.arange(40) < 12, np.arange(40) < 30
    ids = tuple(map(str, range(40)))
    cells, other = (Cells(ids, ("fog",), (1,), wrong[:, None, None], clean) for wrong in (foggy, theirs))
    means = {one.number.metric: one for one in measured_means(cells, Baseline(BaselineRef.of(BASE), cells=other))}

    def ratio(kept: Any) -> float:
        return float((foggy[kept].mean() - clean[kept].mean()) / (theirs[kept].mean() - clean[kept].mean()))

    found = means["relative_mean_corruption_error"]
    assert found.value == pytest.approx(4 / 22)
    assert found.interval == pytest.approx(jackknife_interval(ratio, np.arange(40)))
    assert means["mean_corruption_error"].interval is not None


def test_a_ratio_to_a_loss_that_may_be_none_has_too_few_images_for_an_interval() -> None:
    """Fog adds two of forty to the baseline's mistakes, by six that it costs and four that it mends."""
    place, ids = np.arange(40), tuple(map(str, range(40)))
    clean, foggy = place < 8, place < 20
    mended, snowy = (place >= 4) & (place < 14), place < 30
    own = Cells(ids, ("fog", "snow"), (1,), np.stack([foggy, foggy], axis=1)[:, :, None], clean)
    base = Cells(ids, ("fog", "snow"), (1,), np.stack([mended, snowy], axis=1)[:, :, None], clean)
    found = {
        (one.metric, one.about.get("corruption")): one
        for one in findings(own, Baseline(BaselineRef.of(BASE), cells=base), {"model": "own"}, {}, clean_convention={})
        if isinstance(one, Measurement)
    }
    assert found["relative_corruption_error", "snow"].ends is not None
    for key in (("relative_corruption_error", "fog"), ("relative_mean_corruption_error", None)):
        assert found[key].value == pytest.approx({"fog": 6.0, None: (6 + 12 / 22) / 2}[key[1]])
        assert found[key].ends is None
        why = "too few: 40 images do not show that fog adds to the baseline's error"
        assert found[key].how_sure == why
        assert interval_cell(found[key], "share").text == "too few clusters"
    assert found["mean_corruption_error", None].ends is not None
