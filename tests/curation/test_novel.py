"""Images of new classes that models are sure of, worked by hand on pictures whose colours are the shares of classes."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import shiftproof as sp
from mixtures import CLASSES, PREPARE, Mixture, draw_mixture, mixture_model, shares, shares_on_the_left
from shiftproof.curation.filtered_project import save_filtered
from shiftproof.curation.filtering import Filtered, FilterModels, choose_some
from shiftproof.curation.novel import filter_novel, nearest_id_images
from shiftproof.curation.ood_candidates import choose_images, save_manifest
from shiftproof.errors import BadInput
from shiftproof.models import wrap_model
from shiftproof.runs.store import Store
from shiftproof.types import Classes

TABBY, CAT, DOG, SOCK = "n02123045", "n02121808", "n02084071", "n04254777"
PHOTOS: dict[str, Mixture] = {
    f"{TABBY}/inside": (90, 5, 5),
    f"{CAT}/above": (90, 5, 5),
    f"{DOG}/sure": (80, 10, 10),
    f"{DOG}/surer": (10, 85, 5),
    f"{DOG}/unsure": (40, 35, 25),
    f"{SOCK}/half": (50, 25, 25),
}


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    for name, mixture in PHOTOS.items():
        draw_mixture(tmp_path / "photos" / f"{name}.png", mixture)
    return tmp_path / "photos"


@pytest.fixture
def filters(tmp_path: Path) -> FilterModels:
    return FilterModels([mixture_model()], Store(tmp_path / "runs"), workers=0)


def _left(filtered: Filtered) -> list[str]:
    return [Path(sample.id).stem for sample in filtered.choice.left]


def _reasons(filtered: Filtered) -> dict[str, str]:
    return {Path(gone.item.id).stem: gone.reason for gone in filtered.choice.removed}


def test_what_is_inside_or_related_goes_and_so_does_what_the_model_is_not_sure_of(
    photos: Path, filters: FilterModels
) -> None:
    filtered = filter_novel(sp.open_dataset(photos), filters, [TABBY])
    assert _left(filtered) == ["surer", "sure", "half"], "the surest mistakes first"
    assert _reasons(filtered) == {
        "inside": "its class is an ID class",
        "above": "its class is a hypernym of tabby",
        "unsure": "confidence 40.0%",
    }
    assert [step.left for step in filtered.choice.steps] == [6, 6, 5, 4, 3]
    assert filtered.shown(f"{DOG}/surer.png") == {"eye": "green (85%)"}
    assert _left(filter_novel(sp.open_dataset(photos), filters, None, least_share=0.82)) == ["above", "inside", "surer"]


def test_subtrees_go_and_a_class_keeps_so_many(photos: Path, filters: FilterModels) -> None:
    images = sp.open_dataset(photos)
    assert _left(filter_novel(images, filters, [TABBY], subtrees=[DOG])) == ["half"]
    one = filter_novel(images, filters, [TABBY], per_class=1)
    assert (_left(one), _reasons(one)["sure"]) == (["surer", "half"], "1 of its class come before it")


def test_every_model_must_be_sure(tmp_path: Path, filters: FilterModels) -> None:
    draw_mixture(tmp_path / "photos" / DOG / "halved.png", (80, 10, 10), (20, 50, 30), (80, 10, 10), (20, 50, 30))
    draw_mixture(tmp_path / "photos" / DOG / "whole.png", (60, 20, 20))
    both = dataclasses.replace(filters, models=[mixture_model(), mixture_model(shares_on_the_left, "one-eyed")])
    filtered = filter_novel(sp.open_dataset(tmp_path / "photos"), both, [TABBY], least_share=0.55)
    assert _left(filtered) == ["whole"]
    assert filtered.facts[f"{DOG}/whole.png"]["least_confidence"] == pytest.approx(0.6)
    surer = filter_novel(sp.open_dataset(tmp_path / "photos"), both, [TABBY], least_share=0.3)
    assert _left(surer) == ["whole", "halved"], "by the model least sure"


def test_shares_are_taken_over_chosen_classes(photos: Path, filters: FilterModels) -> None:
    chosen = dataclasses.replace(filters, chosen=choose_some(Classes(CLASSES), only=["red", "green"]))
    filtered = filter_novel(sp.open_dataset(photos), chosen, [TABBY], least_share=0.53)
    assert filtered.shown(f"{DOG}/unsure.png") == {"eye": "red (53%)"}, "40 of 75"
    assert "unsure" in _left(filtered)


def test_the_manifest_of_novel_classes_is_taken_as_it_is(photos: Path, filters: FilterModels, tmp_path: Path) -> None:
    save_manifest(tmp_path / "manifest.csv", photos, choose_images(photos, [DOG, SOCK]))
    filtered = filter_novel(sp.open_dataset(tmp_path / "manifest.csv"), filters, [TABBY])
    assert _left(filtered) == ["surer", "sure", "half"]
    project = save_filtered(filtered, sp.open_dataset(tmp_path / "manifest.csv"), tmp_path / "project").project
    assert (project.screen_name, project.items[0].label, project.class_of[DOG].name) == ("clarity", DOG, "dog")


def test_candidates_stand_beside_the_inside_image_nearest_them(photos: Path, filters: FilterModels, tmp_path: Path) -> None:
    for colour, mixture in zip(CLASSES, np.diag([100, 100, 100]).tolist(), strict=True):
        draw_mixture(tmp_path / "known" / colour / "plain.png", tuple(mixture))
    seeing = wrap_model(
        lambda inputs: (shares(inputs), shares(inputs)),
        name="eye",
        version="2",
        class_names=CLASSES,
        size=(16, 16),
        preprocess=PREPARE,
        gives="probabilities",
        has_features=True,
    )
    filters = dataclasses.replace(filters, models=[seeing])
    images, known = sp.open_dataset(photos), sp.open_dataset(tmp_path / "known")
    filtered = filter_novel(images, filters, [TABBY])
    beside = nearest_id_images(filtered, images, known, filters)
    project = save_filtered(filtered, images, tmp_path / "project", beside=beside).project
    assert project.screen_name == "nearest-pair"
    nearest = {Path(item.id).stem: item for item in project.items}
    assert {name: item.facts["inside"] for name, item in nearest.items()} == {
        "surer": "green/plain.png",
        "sure": "red/plain.png",
        "half": "red/plain.png",
    }
    surer = nearest["surer"]
    assert (surer.group, surer.beside) == (DOG, "green")
    assert project.image(surer.images[1]).read_bytes() == (tmp_path / "known/green/plain.png").read_bytes()


def test_classes_that_wordnet_cannot_place_are_named(tmp_path: Path, filters: FilterModels) -> None:
    for name in ("dress", "hat"):
        draw_mixture(tmp_path / "clothes" / name / "a.png", (90, 5, 5))
    images = sp.open_dataset(tmp_path / "clothes")
    with pytest.raises(BadInput, match=r"2 of 2 classes are no wnids.*dress, hat; name them by wnids"):
        filter_novel(images, filters, [TABBY])
    assert len(filter_novel(images, filters, None).choice.left) == 2
