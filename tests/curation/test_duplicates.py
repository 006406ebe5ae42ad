"""Images that are there twice, drawn and planted among real photos."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Pillow

import shiftproof as sp
from blotches import blotches, cut_a_little, darker, mirrored, saved_badly, shrunk
from shiftproof.curation import perceptual_hashes
from shiftproof.curation.duplicates import Duplicate, FeatureDistances, save_listing, without_duplicates
from shiftproof.datasets import ImageList, open_dataset
from shiftproof.datasets.clusters import Clustering
from shiftproof.datasets.perturbed import perturbed
from shiftproof.errors import BadInput, MissingRuns
from shiftproof.runs.load import alike_in
from shiftproof.runs.store import Store
from shiftproof.types import Classifier, Image, Sample

Draw = Callable[[str, Mapping[str, Image]], ImageList]


@pytest.fixture
def draw(tmp_path: Path) -> Draw:
    """Saves pictures into a folder of their class, and opens the set."""

    def save(name: str, pictures: Mapping[str, Image]) -> ImageList:
        for path, image in pictures.items():
            (tmp_path / name / path).parent.mkdir(parents=True, exist_ok=True)
            Pillow.fromarray(image).save(tmp_path / name / path)
        return open_dataset(tmp_path / name)

    return save


def test_of_pictures_that_look_alike_the_first_stays(draw: Draw, tmp_path: Path) -> None:
    first, other = blotches(1), blotches(2)
    images = draw(
        "photos", {"a/1.png": first, "a/2.png": other, "b/3.png": darker(first), "b/4.jpg": shrunk(other), "b/5.png": first}
    )
    choice = without_duplicates(images, store=tmp_path / "runs", workers=0)
    assert choice.left == ("a/1.png", "a/2.png")
    assert [(step.name, step.left) for step in choice.steps] == [
        ("start", 5),
        ("can be read", 5),
        ("not there before, by hash", 2),
    ]
    likeness = {gone.item: gone.reason for gone in choice.removed}
    assert {item: isinstance(one, Duplicate) and one.other for item, one in likeness.items()} == {
        "b/3.png": "a/1.png",
        "b/4.jpg": "a/2.png",
        "b/5.png": "a/1.png",
    }
    assert str(likeness["b/5.png"]) == "near-duplicate of a/1.png in photos: 0 of 64 bits differ"


def test_what_is_in_a_training_set_goes_first(draw: Draw, tmp_path: Path) -> None:
    images = draw("photos", {"a/1.png": blotches(1), "a/2.png": blotches(2), "a/3.png": saved_badly(blotches(2))})
    training = draw("training", {"a/old.png": cut_a_little(blotches(2)), "a/new.png": blotches(9)})
    choice = without_duplicates(images, against=training, store=tmp_path / "runs", workers=0)
    assert choice.left == ("a/1.png",)
    assert [(step.name, step.left) for step in choice.steps[2:]] == [
        ("not in training, by hash", 1),
        ("not there before, by hash", 1),
    ]
    assert {str(gone.reason).partition(":")[0] for gone in choice.removed} == {"near-duplicate of a/old.png in training"}


def test_what_cannot_be_read_goes_with_its_reason(draw: Draw, tmp_path: Path) -> None:
    images = draw("photos", {"a/1.png": blotches(1)})
    (tmp_path / "photos" / "a" / "2.png").write_bytes(b"no picture")
    images = open_dataset(tmp_path / "photos")
    choice = without_duplicates(images, store=tmp_path / "runs", workers=0)
    assert [(gone.item, gone.step) for gone in choice.removed] == [("a/2.png", "can be read")]


def test_what_is_made_of_images_that_look_alike_looks_alike(draw: Draw, tmp_path: Path) -> None:
    images = draw("photos", {"1.png": blotches(1), "2.png": blotches(2), "3.png": darker(blotches(1))})
    store = Store(tmp_path / "runs")
    without_duplicates(images, store=store.root, workers=0)
    for made in (images, perturbed(images, "tilt", edition="tiny-64"), cut_down(images, ["3.png", "1.png"])):
        clusters = Clustering().joining(made.samples, alike_in(made, store)).of(made.samples)
        assert clusters is not None
        case_of = dict(zip((image_behind(sample) for sample in made.samples), clusters.keys, strict=True))
        assert case_of["1.png"] == case_of["3.png"] != case_of.get("2.png")


def image_behind(sample: Sample) -> str:
    return str(sample.facts.get("sequence", sample.id))


def cut_down(images: ImageList, ids: list[str]) -> ImageList:
    return dataclasses.replace(images, samples=[one for one in images.samples if one.id in ids])


def test_hashes_are_remembered_until_a_file_changes(draw: Draw, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images = draw("photos", {f"a/{seed}.png": blotches(seed) for seed in range(3)})
    first = perceptual_hashes.hash_dataset(images, tmp_path / "runs", workers=0)
    monkeypatch.setattr(perceptual_hashes, "decoded", lambda _: "not opened")
    again = perceptual_hashes.hash_dataset(images, tmp_path / "runs", workers=0)
    assert (again.ids, again.hashes.tolist(), again.unreadable) == (first.ids, first.hashes.tolist(), {})
    Pillow.fromarray(blotches(7, width=50)).save(tmp_path / "photos" / "a" / "1.png")
    assert perceptual_hashes.hash_dataset(images, tmp_path / "runs", workers=0).unreadable == {"a/1.png": "not opened"}


def test_features_find_what_hashes_miss(draw: Draw, tmp_path: Path, colour_model: Classifier) -> None:
    # the features of this model are brightnesses in squares: of one colour, which hashes do not compare, they are alike
    red, blue = np.full((40, 40, 3), (200, 30, 30), np.uint8), np.full((40, 40, 3), (30, 30, 200), np.uint8)
    striped = np.where(np.arange(40)[:, None, None] % 2, red, blue).astype(np.uint8)
    images = draw("photos", {"a/1.png": red, "a/2.png": blotches(3), "a/3.png": red // 2, "a/4.png": striped})
    store = Store(tmp_path / "runs")
    assert without_duplicates(images, store=tmp_path / "runs", workers=0).left == (
        "a/1.png",
        "a/2.png",
        "a/3.png",
        "a/4.png",
    )
    distances = FeatureDistances(colour_model.ref, store, most=1e-4)
    with pytest.raises(MissingRuns):
        without_duplicates(images, features=distances, store=tmp_path / "runs", workers=0)
    sp.predict(colour_model, open_dataset(tmp_path / "photos", labels="none"), store=store, keep="features", workers=0)
    choice = without_duplicates(images, features=distances, store=tmp_path / "runs", workers=0)
    assert choice.steps[-1].name == "not there before, by features"
    gone = {one.item: one.reason for one in choice.removed}
    assert list(gone) == ["a/3.png"]
    assert str(gone["a/3.png"]) == "near-duplicate of a/1.png in photos: features 0.000 apart"


def test_a_distance_is_less_than_one(tmp_path: Path, colour_model: Classifier) -> None:
    with pytest.raises(BadInput, match="0 to 1, got 1"):
        FeatureDistances(colour_model.ref, Store(tmp_path), most=1)


def test_what_is_left_opens_again_with_its_labels_and_facts(draw: Draw, tmp_path: Path) -> None:
    images = draw("photos", {"red/1.png": blotches(1), "red/2.png": blotches(2), "blue/3.png": blotches(3)})
    save_listing(tmp_path / "distinct" / "manifest.csv", images, ["blue/3.png", "red/1.png"])
    again = open_dataset(tmp_path / "distinct", allow_outside=True)
    assert again.classes is not None
    named = {sample.id: [again.classes.names[label] for label in sample.labels] for sample in again.samples}
    assert named == {"blue/3.png": ["blue"], "red/1.png": ["red"]}
    assert again.source(again.samples[0]).read() == (tmp_path / "photos" / "blue" / "3.png").read_bytes()


def test_a_class_that_a_listing_would_make_two_of_is_refused(draw: Draw, tmp_path: Path) -> None:
    images = draw("photos", {"red|blue/1.png": blotches(1), "red/2.png": blotches(2)})
    with pytest.raises(BadInput, match=r"red\|blue would be read as several classes"):
        save_listing(tmp_path / "distinct" / "manifest.csv", images, ["red|blue/1.png"])
    save_listing(tmp_path / "distinct" / "manifest.csv", images, ["red/2.png"])


PLANTED = {"shrunk": shrunk, "saved": saved_badly, "cut": cut_a_little, "mirrored": mirrored}


@pytest.mark.real
def test_copies_among_real_photos_are_found_and_no_photo_is_taken_for_another(real_data: Path, tmp_path: Path) -> None:
    originals = open_dataset(real_data / "ilsvrc-sample-1000")
    (tmp_path / "mixed").mkdir()
    for sample in originals.samples[::8]:
        (tmp_path / "mixed" / sample.id).symlink_to(real_data / "ilsvrc-sample-1000" / sample.id)
    for number, sample in enumerate(originals.samples[::50]):
        how = list(PLANTED)[number % len(PLANTED)]
        source = originals.source(sample)
        copy = PLANTED[how](source.decode(source.read()))
        Pillow.fromarray(copy).save(tmp_path / "mixed" / f"z {how} {sample.id}", quality=90)
        (tmp_path / "mixed" / sample.id).unlink(missing_ok=True)
        (tmp_path / "mixed" / sample.id).symlink_to(real_data / "ilsvrc-sample-1000" / sample.id)
    images = open_dataset(tmp_path / "mixed", labels="none")
    model, store = sp.load_model("lite:0"), Store(tmp_path / "runs")
    sp.predict(model, images, store=store, keep="features")
    choice = without_duplicates(images, features=FeatureDistances(model.ref, store), store=tmp_path / "runs")
    gone = {one.item: one.reason for one in choice.removed}
    assert all(item.startswith("z ") for item in gone), "a photo was taken for another"
    assert all(isinstance(one, Duplicate) and item.endswith(one.other) for item, one in gone.items())
    by_hash = {item for item, one in gone.items() if isinstance(one, Duplicate) and one.by == "hash"}
    assert {item.split()[1] for item in by_hash} == {"shrunk", "saved", "cut"}
    assert len(gone) == 20
