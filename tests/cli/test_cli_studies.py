"""What is typed after `shiftproof run` becomes the study that was meant."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pillow

import shiftproof as sp
from shiftproof.datasets.image_list import FileImage, ImageList
from shiftproof.errors import BadInput, UnknownName
from shiftproof.runs.store import Store
from shiftproof.studies.calibration.study import CalibrationStudy
from shiftproof.studies.choice import StudyChoice, chosen_entries
from shiftproof.studies.corruption.budgeted import BudgetedCorruptionStudy
from shiftproof.studies.corruption.study import CorruptionStudy
from shiftproof.studies.natural_adversarial.study import NaturalAdversarialStudy
from shiftproof.studies.options import Context, StudyOptions
from shiftproof.studies.perturbation.study import PerturbationStudy
from shiftproof.studies.temporal.study import TemporalStudy
from shiftproof.types import Classes, Condition, DatasetRef, ModelRef, Sample

MODEL = ModelRef("toy", "f" * 32)
CONTEXT = Context(Store("runs"))


@pytest.fixture
def images(draw_photos: Callable[..., Path]) -> ImageList:
    return sp.open_dataset(draw_photos(4))


def corruption_study(images: ImageList, **options: Any) -> Any:
    (study,) = sp.CorruptionOptions(**options).assemble(CorruptionStudy, [MODEL], images, CONTEXT).studies
    return study


def test_a_corruption_study_is_made_as_typed(images: ImageList, tmp_path: Path) -> None:
    assert corruption_study(images) == CorruptionStudy([MODEL], images)
    Pillow.new("RGB", (9, 9)).save(tmp_path / "frost1.png")
    typed = corruption_study(
        images, corruptions=("fog", "frost"), severities=(2, 5), edition="tiny-64", at="model-size", encoding="raw", seed=3,
        scale_severity=True, frost_folder=str(tmp_path), baseline="alexnet",
    )  # fmt: skip
    named: dict[str, Any] = {
        "edition": "tiny-64", "picture": "model-size", "output": "raw", "seed": 3, "scale_severity": True,
    }  # fmt: skip
    clean, fog, fog_most, frost, frost_most = typed.conditions()
    assert clean == Condition("clean", picture="model-size")
    assert (fog, fog_most) == (Condition("fog", 2, **named), Condition("fog", 5, **named))
    assert (frost.severity, frost_most.severity) == (2, 5)
    assert frost.frost.folder == str(tmp_path)
    assert typed.baseline == "alexnet"


def test_a_budget_makes_another_study_and_a_half_width_is_in_points(images: ImageList) -> None:
    spent, known = corruption_study(images, budget=300), corruption_study(images, half_width=0.5)
    assert isinstance(spent, BudgetedCorruptionStudy)
    assert (spent.budget, spent.precision) == (300, None)
    assert (known.budget, known.precision) == (None, pytest.approx(0.005))


def test_sequences_are_made_of_images_spread_over_the_set_at_every_level_of_noise(images: ImageList) -> None:
    options = sp.PerturbationOptions(
        perturbations=("tilt", "shot_noise"), levels=(1, 3), edition="cifar-32", seed=2, sequences=3
    )
    bench = options.assemble(PerturbationStudy, [MODEL], images, CONTEXT)
    _, *sets = bench.datasets
    facts = [(one.samples[0].facts["perturbation"], one.samples[0].facts["level"]) for one in sets]
    assert facts == [("tilt", 1), ("shot_noise", 1), ("shot_noise", 3)]
    for made in sets:
        assert {sample.facts["sequence"] for sample in made.samples} == {"blue/000.png", "green/000.png", "red/000.png"}
        assert "edition=cifar-32&seed=2" in str(made.ref.location)


def test_a_set_that_holds_corrupted_images_or_sequences_is_taken_as_it_is(images: ImageList) -> None:
    from shiftproof.datasets.perturbed import perturbed
    from shiftproof.studies.corruption.published import PublishedCorruptionStudy

    frames = perturbed(images, "tilt", edition="cifar-32")
    taken = sp.PerturbationOptions().assemble(PerturbationStudy, [MODEL], frames, CONTEXT)
    assert taken.datasets == [frames]
    held = [Sample(f"fog/1/{sample.id}", sample.labels, {"corruption": "fog", "severity": 1}) for sample in images.samples]
    corrupted = ImageList("held", held, images.classes, images.source)  # type: ignore[arg-type]
    assert isinstance(corruption_study(corrupted), PublishedCorruptionStudy)


@pytest.mark.parametrize(
    ("options", "problem", "words"),
    [
        ({"corruptions": ("fogg",)}, UnknownName, "did you mean fog"),
        ({"severities": (0, 1)}, BadInput, "severities should be some of 1 to 5"),
        ({"edition": "imagenet-225"}, UnknownName, "imagenet-224"),
        ({"frost_folder": "nowhere"}, BadInput, "no folder nowhere"),
    ],
)
def test_a_slip_is_told_at_once(images: ImageList, options: dict[str, Any], problem: Any, words: str) -> None:
    with pytest.raises(problem, match=words):
        corruption_study(images, **options)


def test_calibration_is_thorough_where_asked(images: ImageList) -> None:
    for asked in (False, True):
        options = sp.CalibrationOptions(thorough_calibration=asked)
        (study,) = options.assemble(CalibrationStudy, [MODEL], images, CONTEXT).studies
        assert study == CalibrationStudy([MODEL], images, thorough=asked)


def test_bins_are_the_published_ones_where_asked(images: ImageList) -> None:
    kinds: list[tuple[type[StudyOptions], Callable[..., Any]]] = [
        (sp.CalibrationOptions, CalibrationStudy),
        (sp.NaturalAdversarialOptions, NaturalAdversarialStudy),
    ]
    for options, kind in kinds:
        (study,) = options(published_bins=True).assemble(kind, [MODEL], images, CONTEXT).studies  # type: ignore[call-arg]
        assert study == kind([MODEL], images, published_bins=True)


def hard_photos(images: ImageList, **options: Any) -> Any:
    return sp.NaturalAdversarialOptions(**options).assemble(NaturalAdversarialStudy, [MODEL], images, CONTEXT)


def test_hard_photos_stand_beside_ordinary_and_novel_ones(images: ImageList, draw_photos: Callable[..., Path]) -> None:
    ordinary, novel = draw_photos(2, "validation"), draw_photos(1, "tools")
    bench = hard_photos(images, clean_images=str(ordinary), ood=(f"novel={novel}",))
    assert [one.ref.name for one in bench.datasets] == ["photos", "validation", "novel"]
    sets = [one.ref for one in bench.datasets]
    assert bench.studies == [NaturalAdversarialStudy([MODEL], sets[0], ordinary=sets[1], novel=sets[2])]
    assert hard_photos(images).studies == [NaturalAdversarialStudy([MODEL], images)]
    with pytest.raises(BadInput, match="takes one dataset of OOD photos; got tools, validation"):
        hard_photos(images, ood=(str(novel), str(ordinary)))


def test_novel_photos_are_looked_for_by_the_detectors_named(images: ImageList, draw_photos: Callable[..., Path]) -> None:
    learned = {"training": str(draw_photos(2, "more")), "set": ("knn.neighbours=5",)}
    bench = hard_photos(images, ood_detectors=("knn", "energy"), **learned)
    (study,) = bench.studies
    assert isinstance(study, NaturalAdversarialStudy)
    assert study.detectors == ("knn", "energy")
    assert isinstance(study.training, DatasetRef)
    assert study.training.name == "more"
    assert study.parameters == {"knn": {"neighbours": 5}}
    assert [run.dataset.name for run in study.runs()] == ["photos", "more"]
    assert [one.ref.name for one in bench.datasets] == ["photos", "more"]
    assert kinds_of(images, "natural-adversarial", ood_detectors=("knn", "energy"), **learned) == [
        "accuracy",
        "natural-adversarial",
    ]
    (plain,) = hard_photos(images, ood_detectors=("msp",), **learned).studies
    assert plain == NaturalAdversarialStudy([MODEL], images, detectors=["msp"], parameters={"knn": {"neighbours": 5}})


def kinds_of(images: ImageList, *names: str, **options: Any) -> list[str]:
    """Which studies are run of these images, where these options are given to all that have them."""
    told: dict[str, StudyOptions] = {
        "natural-adversarial": sp.NaturalAdversarialOptions(**options),
        "ood": sp.OODOptions(**options),
    }
    return [entry.name for entry in chosen_entries(StudyChoice(names or None, told), images, boxes=False)]


def test_hard_photos_are_studied_only_where_named_and_then_take_the_outside_images(images: ImageList) -> None:
    assert kinds_of(images, ood=("tools",)) == ["accuracy", "calibration", "corruption", "perturbation", "ood"]
    assert kinds_of(images, "natural-adversarial", ood=("tools",)) == ["accuracy", "natural-adversarial"]
    with pytest.raises(BadInput, match="--training: only the study ood"):
        kinds_of(images, "natural-adversarial", ood=("tools",), training="more")
    with pytest.raises(BadInput, match="--id: only the study ood"):
        kinds_of(images, "natural-adversarial", ood=("tools",), id=("more",))


def test_a_profile_has_the_studies_that_fit_the_images_and_named_studies_come_beside_accuracy(images: ImageList) -> None:
    usual = ["accuracy", "calibration", "corruption", "perturbation", "ood"]
    assert kinds_of(images) == usual
    samples = [Sample(f"clip/{frame}", (0,), {"anchor": "clip/1", "offset": frame - 1}) for frame in range(3)]
    frames = ImageList("clip", samples, Classes(("cat",)), lambda _: FileImage("none"))
    assert set(kinds_of(frames)) == {*usual, "temporal"}
    assert kinds_of(frames, "temporal") == ["accuracy", "temporal"]
    corrupted = [Sample("fog/1/a", (0,), {"corruption": "fog", "severity": 1})]
    assert "perturbation" not in kinds_of(dataclasses.replace(frames, samples=corrupted))
    sequences = [Sample("a/tilt/00", (0,), {"sequence": "a", "frame": 0})]
    assert "corruption" not in kinds_of(dataclasses.replace(frames, samples=sequences))


def test_all_names_every_study_that_fits(images: ImageList) -> None:
    named = kinds_of(images, "all")
    assert {*kinds_of(images), "natural-adversarial", "input-sizes", "saliency"} <= set(named)
    assert not {"temporal", "objects", "comparison", "detection"} & set(named)


def test_a_study_of_frames_is_made_as_typed(images: ImageList) -> None:
    typed = sp.TemporalOptions(largest_k=3, without_anchor=True, trend="ytbb", published_intervals=True)
    (study,) = typed.assemble(TemporalStudy, [MODEL], images, CONTEXT).studies
    frames = TemporalStudy([MODEL], images, largest_k=3, include_anchor=False, published="ytbb_robust_models")
    assert study == dataclasses.replace(frames, published_intervals=True)
