"""What is typed after `shiftproof run` becomes the study that was meant."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pillow

import shiftproof as sp
from shiftproof.cli_studies import (
    make_calibration,
    make_corruption,
    make_natural_adversarial,
    make_perturbation,
    make_temporal,
    studies_asked,
)
from shiftproof.errors import BadInput, UnknownName
from shiftproof.image_sets.image_list import FileImage, ImageList
from shiftproof.studies.budgeted_corruption import BudgetedCorruptionStudy
from shiftproof.studies.calibration import CalibrationStudy
from shiftproof.studies.corruption import CorruptionStudy
from shiftproof.studies.natural_adversarial import NaturalAdversarialStudy
from shiftproof.studies.perturbation import PerturbationStudy
from shiftproof.studies.temporal import TemporalStudy
from shiftproof.types import Classes, Condition, ImageSetRef, ModelRef, Sample

MODEL = ModelRef("toy", "f" * 32)
UNTOUCHED: dict[str, Any] = {
    "corruptions": "imagenet-c", "severities": "1,2,3,4,5", "perturbations": "imagenet-p", "levels": "1", "sequences": 100,
    "edition": "imagenet-224", "at": "picture", "output": None, "seed": 0, "scale_strengths": False, "frost_folder": None,
    "baseline": None, "clean_images": None, "budget": None, "precision": None,
}  # fmt: skip


@pytest.fixture
def images(draw_photos: Callable[..., Path]) -> ImageList:
    return sp.open_images(draw_photos(4))


def corruption_study(images: ImageList, **options: Any) -> Any:
    (study,) = make_corruption(CorruptionStudy, [MODEL], images, {**UNTOUCHED, **options}).studies
    return study


def test_a_corruption_study_is_made_as_typed(images: ImageList, tmp_path: Path) -> None:
    assert corruption_study(images) == CorruptionStudy([MODEL], images)
    Pillow.new("RGB", (9, 9)).save(tmp_path / "frost1.png")
    typed = corruption_study(
        images, corruptions="fog,frost", severities="2,5", edition="tiny-64", at="model-size", output="raw", seed=3,
        scale_strengths=True, frost_folder=str(tmp_path), baseline="alexnet",
    )  # fmt: skip
    named: dict[str, Any] = {
        "edition": "tiny-64", "picture": "model-size", "output": "raw", "seed": 3, "scale_strengths": True,
    }  # fmt: skip
    clean, fog, fog_most, frost, frost_most = typed.conditions()
    assert clean == Condition("clean", picture="model-size")
    assert (fog, fog_most) == (Condition("fog", 2, **named), Condition("fog", 5, **named))
    assert (frost.severity, frost_most.severity) == (2, 5)
    assert frost.frost.folder == str(tmp_path)
    assert typed.baseline == "alexnet"


def test_a_budget_makes_another_study_and_precision_is_in_points(images: ImageList) -> None:
    spent, known = corruption_study(images, budget=300), corruption_study(images, precision=0.5)
    assert isinstance(spent, BudgetedCorruptionStudy)
    assert (spent.budget, spent.precision) == (300, None)
    assert (known.budget, known.precision) == (None, pytest.approx(0.005))


def test_sequences_are_made_of_images_spread_over_the_set_at_every_level_of_noise(images: ImageList) -> None:
    options = {"perturbations": "tilt,shot_noise", "levels": "1,3", "edition": "cifar-32", "seed": 2, "sequences": 3}
    bench = make_perturbation(PerturbationStudy, [MODEL], images, {**UNTOUCHED, **options})
    _, *sets = bench.image_sets
    facts = [(one.samples[0].facts["perturbation"], one.samples[0].facts["level"]) for one in sets]
    assert facts == [("tilt", 1), ("shot_noise", 1), ("shot_noise", 3)]
    for made in sets:
        assert {sample.facts["sequence"] for sample in made.samples} == {"blue/000.png", "green/000.png", "red/000.png"}
        assert "edition=cifar-32&seed=2" in str(made.ref.location)


def test_a_set_that_holds_corrupted_images_or_sequences_is_taken_as_it_is(images: ImageList) -> None:
    from shiftproof.image_sets.perturbed import perturbed
    from shiftproof.studies.published_corruption import PublishedCorruptionStudy

    frames = perturbed(images, "tilt", edition="cifar-32")
    assert make_perturbation(PerturbationStudy, [MODEL], frames, UNTOUCHED).image_sets == [frames]
    held = [Sample(f"fog/1/{sample.id}", sample.labels, {"corruption": "fog", "severity": 1}) for sample in images.samples]
    corrupted = ImageList("held", held, images.classes, images.source)  # type: ignore[arg-type]
    assert isinstance(corruption_study(corrupted), PublishedCorruptionStudy)


@pytest.mark.parametrize(
    ("options", "problem", "words"),
    [
        ({"corruptions": "fogg"}, UnknownName, "did you mean fog"),
        ({"severities": "0,1"}, BadInput, "severities should be some of 1 to 5"),
        ({"edition": "imagenet-225"}, UnknownName, "imagenet-224"),
        ({"frost_folder": "nowhere"}, BadInput, "no folder nowhere"),
    ],
)
def test_a_slip_is_told_at_once(images: ImageList, options: dict[str, Any], problem: Any, words: str) -> None:
    with pytest.raises(problem, match=words):
        corruption_study(images, **options)


NO_DETECTORS: dict[str, Any] = {"training": None, "detectors": None, "preset": "authors", "chosen": (), "store": "runs"}


def test_calibration_is_thorough_where_asked(images: ImageList) -> None:
    for asked in (False, True):
        options = {"thorough_calibration": asked, "published_bins": False}
        (study,) = make_calibration(CalibrationStudy, [MODEL], images, options).studies
        assert study == CalibrationStudy([MODEL], images, thorough=asked)


def test_bins_are_the_published_ones_where_asked(images: ImageList) -> None:
    options = {"thorough_calibration": False, "published_bins": True, "clean_images": None, "out_images": (), **NO_DETECTORS}
    for make, kind in ((make_calibration, CalibrationStudy), (make_natural_adversarial, NaturalAdversarialStudy)):
        (study,) = make(kind, [MODEL], images, options).studies
        assert study == kind([MODEL], images, published_bins=True)


def test_hard_photos_stand_beside_ordinary_and_novel_ones(images: ImageList, draw_photos: Callable[..., Path]) -> None:
    ordinary, novel = draw_photos(2, "validation"), draw_photos(1, "tools")
    untouched: dict[str, Any] = {"clean_images": None, "out_images": (), "published_bins": False, **NO_DETECTORS}
    options = {**untouched, "clean_images": str(ordinary), "out_images": (f"novel={novel}",)}
    bench = make_natural_adversarial(NaturalAdversarialStudy, [MODEL], images, options)
    assert [one.ref.name for one in bench.image_sets] == ["photos", "validation", "novel"]
    sets = [one.ref for one in bench.image_sets]
    assert bench.studies == [NaturalAdversarialStudy([MODEL], sets[0], ordinary=sets[1], novel=sets[2])]
    alone = make_natural_adversarial(NaturalAdversarialStudy, [MODEL], images, untouched)
    assert alone.studies == [NaturalAdversarialStudy([MODEL], images)]
    with pytest.raises(BadInput, match="takes one set of novel photos; got tools, validation"):
        make_natural_adversarial(
            NaturalAdversarialStudy, [MODEL], images, {**options, "out_images": (str(novel), str(ordinary))}
        )


def test_novel_photos_are_looked_for_by_the_detectors_named(images: ImageList, draw_photos: Callable[..., Path]) -> None:
    learned = {
        **NO_DETECTORS,
        "detectors": "knn,energy",
        "training": str(draw_photos(2, "more")),
        "chosen": ("knn.neighbours=5",),
    }
    options = {"clean_images": None, "out_images": (), "published_bins": False, **learned}
    bench = make_natural_adversarial(NaturalAdversarialStudy, [MODEL], images, options)
    (study,) = bench.studies
    assert isinstance(study, NaturalAdversarialStudy)
    assert study.detectors == ("knn", "energy")
    assert isinstance(study.training, ImageSetRef)
    assert study.training.name == "more"
    assert study.parameters == {"knn": {"neighbours": 5}}
    assert [run.image_set.name for run in study.runs()] == ["photos", "more"]
    assert [one.ref.name for one in bench.image_sets] == ["photos", "more"]
    untyped = {"studies": "natural-adversarial", "more_images": (), "out_images": (), "shifted": ()}
    assert list(studies_asked({**untyped, **learned}, images)) == ["natural-adversarial"]
    (plain,) = make_natural_adversarial(NaturalAdversarialStudy, [MODEL], images, {**options, "detectors": "msp"}).studies
    assert plain == NaturalAdversarialStudy([MODEL], images, detectors=["msp"], parameters={"knn": {"neighbours": 5}})


def test_hard_photos_are_studied_only_where_named_and_then_take_the_outside_images(images: ImageList) -> None:
    untyped = {
        "studies": None,
        "more_images": (),
        "out_images": ("tools",),
        "shifted": (),
        "training": None,
        "detectors": None,
    }
    assert "natural-adversarial" not in studies_asked(untyped, images)
    assert list(studies_asked({**untyped, "studies": "natural-adversarial"}, images)) == ["natural-adversarial"]
    with pytest.raises(BadInput, match="--training: only the study out-of-distribution"):
        studies_asked({**untyped, "studies": "natural-adversarial", "training": "more"}, images)
    with pytest.raises(BadInput, match="--images: only the study out-of-distribution"):
        studies_asked({**untyped, "studies": "natural-adversarial", "more_images": ("more",)}, images)


def test_frames_of_video_are_asked_only_the_study_of_frames_unless_others_are_named() -> None:
    samples = [Sample(f"clip/{frame}", (0,), {"anchor": "clip/1", "offset": frame - 1}) for frame in range(3)]
    frames = ImageList("clip", samples, Classes(("cat",)), lambda _: FileImage("none"))
    untyped = {"studies": None, "more_images": (), "out_images": (), "shifted": (), "training": None, "detectors": None}
    assert list(studies_asked(untyped, frames)) == ["temporal"]
    assert list(studies_asked({**untyped, "studies": "accuracy"}, frames)) == ["accuracy"]


def test_a_study_of_frames_is_made_as_typed(images: ImageList) -> None:
    typed = {"largest_k": 3, "without_anchor": True, "beside": "ytbb", "published_intervals": True}
    (study,) = make_temporal(TemporalStudy, [MODEL], images, typed).studies
    frames = TemporalStudy([MODEL], images, largest_k=3, include_anchor=False, published="ytbb_robust_models")
    assert study == dataclasses.replace(frames, published_intervals=True)
