"""Images and pairs for people to look through."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Pillow

from shiftproof.curation.ood_candidates import (
    DROP_REASONS,
    NearestPair,
    candidate_pairs,
    choose_images,
    save_manifest,
    save_pairs,
    with_folders,
)
from shiftproof.datasets import open_dataset
from shiftproof.errors import BadInput, NotKept
from shiftproof.types import Classes, Predictions, Top5

ABATTOIR, ADAPTER, ABACUS = "n02666943", "n02678897", "n02666196"


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    """Two classes of 30 and 5 images; a third has none."""
    for wnid, images in ((ABATTOIR, 30), (ADAPTER, 5)):
        (tmp_path / "21k" / wnid).mkdir(parents=True)
        for number in range(images):
            Pillow.new("RGB", (8, 8), (number, 0, 0)).save(tmp_path / "21k" / wnid / f"{wnid}_{number}.png")
    return tmp_path / "21k"


def predictions(
    features: list[list[float]], labels: list[int] | None = None, *, name: str = "image", **options: object
) -> Predictions:
    images = len(features)
    top5 = Top5(np.zeros((images, 5), int), np.zeros((images, 5)), np.zeros(images))
    ids = tuple(f"{name}{place}" for place in range(images))
    rows = np.array(labels if labels is not None else [-1] * images)[:, None]
    return Predictions(ids, rows, "logits", top5, features=np.array(features), **options)  # type: ignore[arg-type]


def test_no_more_images_than_asked_and_all_where_there_are_fewer(collection: Path) -> None:
    chosen = choose_images(collection, [ABATTOIR, ADAPTER, ABACUS], per_class=10)
    assert {wnid: len(images) for wnid, images in chosen.items()} == {ABATTOIR: 10, ADAPTER: 5}
    assert all((collection / image).is_file() for images in chosen.values() for image in images)


def test_the_choice_is_the_seeds_and_other_classes_do_not_change_it(collection: Path) -> None:
    alone = choose_images(collection, [ABATTOIR], per_class=10)
    together = choose_images(collection, [ADAPTER, ABATTOIR], per_class=10)
    assert alone[ABATTOIR] == together[ABATTOIR]
    assert alone[ABATTOIR] != choose_images(collection, [ABATTOIR], per_class=10, seed=1)[ABATTOIR]


def test_more_of_a_class_keep_those_chosen_before(collection: Path) -> None:
    few, many = (set(choose_images(collection, [ABATTOIR], per_class=count)[ABATTOIR]) for count in (10, 20))
    assert few < many


def test_the_choice_leans_to_no_end_of_the_folder(collection: Path) -> None:
    times = np.zeros(30)
    for seed in range(300):
        for image in choose_images(collection, [ABATTOIR], per_class=10, seed=seed)[ABATTOIR]:
            times[int(image.rpartition("_")[2].partition(".")[0])] += 1
    # each is chosen a third of the time: 100 of 300, within five standard deviations
    assert np.abs(times - 100).max() < 5 * np.sqrt(300 / 3 * 2 / 3)


def test_the_manifest_opens_as_an_dataset_and_is_the_same_bytes_again(collection: Path, tmp_path: Path) -> None:
    chosen = choose_images(collection, [ABATTOIR, ADAPTER], per_class=3)
    manifest = tmp_path / "out" / "manifest.csv"
    save_manifest(manifest, collection, chosen)
    first = manifest.read_bytes()
    images = open_dataset(manifest, allow_outside=True)
    assert [sample.id for sample in images.samples] == [*chosen[ABATTOIR], *chosen[ADAPTER]]
    assert images.classes is None
    assert images.samples[0].facts == {"folder": ABATTOIR, "name": "abattoir"}
    source = images.source(images.samples[0])
    assert source.decode(source.read()).shape == (8, 8, 3)
    save_manifest(manifest, collection, chosen)
    assert manifest.read_bytes() == first
    assert [path.name for path in manifest.parent.iterdir()] == ["manifest.csv"]


def test_folders_without_these_classes_are_refused(collection: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="has no images in folders such as n02666196"):
        choose_images(collection, [ABACUS])
    with pytest.raises(BadInput, match="is not a folder"):
        choose_images(tmp_path / "nowhere", [ABACUS])
    with pytest.raises(BadInput, match="no class is left"):
        choose_images(collection, [])


def test_each_outside_image_stands_beside_the_inside_image_nearest_it() -> None:
    inside = predictions([[1, 0], [0, 1]], [0, 1], classes=Classes(("tench", "eel"), ("n01440764", "n01441000")), name="in")
    outside = predictions([[3, 3.1], [0, 7], [9, 1]], facts={"folder": ("a", "b", "c")}, name="out")
    found = candidate_pairs(outside, inside)
    assert [(pair.outside, pair.inside) for pair in found] == [("out1", "in1"), ("out2", "in0"), ("out0", "in1")]
    assert found[0] == NearestPair("out1", "in1", 0.0, "b", "n01441000")
    # by direction alone: 9, 1 at unit length beside 1, 0
    assert found[1].distance == pytest.approx(np.hypot(9 / np.sqrt(82) - 1, 1 / np.sqrt(82)))


def test_pairs_are_those_of_every_distance_looked_at() -> None:
    generator = np.random.default_rng(0)
    inside, outside = (generator.normal(size=(count, 16)) for count in (60, 90))
    found = candidate_pairs(predictions(outside.tolist()), predictions(inside.tolist()), first=40)
    ins, outs = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (inside, outside))
    distances = np.linalg.norm(outs[:, None] - ins[None], axis=2)
    order = np.argsort(distances.min(axis=1))[:40]
    assert [pair.outside for pair in found] == [f"image{row}" for row in order]
    assert [pair.inside for pair in found] == [f"image{place}" for place in distances.argmin(axis=1)[order]]
    assert [pair.distance for pair in found] == pytest.approx(distances.min(axis=1)[order])


def test_pairs_need_features_and_images() -> None:
    some = predictions([[1.0, 0.0]])
    with pytest.raises(BadInput, match="of one of them there are none"):
        candidate_pairs(some.take(np.array([], int)), some)
    bare = Predictions(some.ids, some.labels, "logits", some.top5)
    with pytest.raises(NotKept, match="have no features"):
        candidate_pairs(bare, some)


@pytest.mark.parametrize("name", ["pairs.csv", "pairs.jsonl"])
def test_a_list_of_pairs_has_room_for_the_reason_of_dropping(tmp_path: Path, name: str) -> None:
    save_pairs(tmp_path / name, [NearestPair("a, b.png", "c.png", 1 / 3, "n02666943", "n01440764")])
    text = (tmp_path / name).read_text()
    (row,) = [json.loads(text)] if name.endswith("jsonl") else list(csv.DictReader(text.splitlines()))
    assert {key: str(value) for key, value in row.items()} == {
        "outside": "a, b.png",
        "inside": "c.png",
        "distance": "0.333333",
        "outside_class": "n02666943",
        "inside_class": "n01440764",
        "drop": "",
    }
    assert "inappropriate class" in DROP_REASONS


def test_classes_that_a_model_lacks_become_a_fact(collection: Path) -> None:
    images = with_folders(open_dataset(collection))
    assert images.classes is None
    assert images.samples[0].labels == ()
    assert {sample.facts["folder"] for sample in images.samples} == {ABATTOIR, ADAPTER}
    assert with_folders(images) is images
