"""Recipes that choose images: by class, by merged classes, a part of a dataset."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import shiftproof as sp
from shiftproof.datasets.clusters import Clustering
from shiftproof.errors import BadInput
from shiftproof.training.recipe import chosen_recipes
from shiftproof.types import Dataset
from toys import save_colour_network

Draw = Callable[..., Path]


def chosen(recipe: str, images: Dataset) -> tuple[Dataset, Dataset | None]:
    (one,) = chosen_recipes(recipe)
    assert one.recipe.select is not None
    return one.recipe.select(images, Clustering(), 0, **one.settings)


def test_classes_are_chosen_by_a_file_and_keep_their_names(tmp_path: Path, draw_photos: Draw) -> None:
    (tmp_path / "two.txt").write_text("red\nblue\n")
    images, _ = chosen(f"subset:{tmp_path / 'two.txt'}", sp.open_dataset(str(draw_photos(3))))
    assert images.classes is not None
    assert images.classes.names == ("red", "blue")
    assert [(sample.id, sample.labels) for sample in images.samples][2:4] == [("blue/002.png", (1,)), ("red/000.png", (0,))]


def test_classes_are_merged_by_groups(tmp_path: Path, draw_photos: Draw) -> None:
    (tmp_path / "groups.json").write_text(json.dumps({"cold": ["blue", "green"], "warm": ["red"], "none": ["violet"]}))
    images, _ = chosen(f"subset?groups={tmp_path / 'groups.json'}", sp.open_dataset(str(draw_photos(2))))
    assert images.classes is not None
    assert images.classes.names == ("cold", "warm")
    assert [sample.labels for sample in images.samples] == [(0,)] * 4 + [(1,)] * 2


def test_a_subset_needs_classes_that_the_images_have(tmp_path: Path, draw_photos: Draw) -> None:
    images = sp.open_dataset(str(draw_photos(2)))
    (tmp_path / "other.txt").write_text("violet\n")
    with pytest.raises(BadInput, match="has none of the 1 classes that were chosen; it has blue, green, red"):
        chosen(f"subset:{tmp_path / 'other.txt'}", images)
    with pytest.raises(BadInput, match="subset: name classes as subset:imagenet-a"):
        chosen("subset", images)
    with pytest.raises(BadInput, match="should lie between 0 and 1, got 1"):
        chosen_recipes("split:1")


def test_what_a_split_left_out_is_listed_and_measured(tmp_path: Path, draw_photos: Draw) -> None:
    save_colour_network(tmp_path / "colours.onnx")
    said, options = list[str](), sp.TrainOptions(recipe="split:0.75+linear-probe", l2=0.1)
    settings = sp.ModelSettings(preprocess="squash,size=16,mean=0,std=1")
    out, store = tmp_path / "better", tmp_path / "runs"
    trained = sp.train(
        str(tmp_path / "colours.onnx"),
        draw_photos(8),
        out,
        options=options,
        model_options=settings,
        store=store,
        tell=said.append,
    )
    held_out = set(trained.record.split["held out"])
    assert len(held_out) == 6
    assert trained.record.split["training"] + len(trained.record.split["validation"]) == 18
    assert held_out.isdisjoint(trained.record.split["validation"])
    assert said == [
        f"6 images took no part; to measure on them: shiftproof run {out} {out / 'held-out.csv'} --allow-outside"
    ]
    measured = sp.run(
        str(out),
        out / "held-out.csv",
        studies=["accuracy"],
        dataset_options=sp.DatasetSettings(allow_outside=True),
        store=store,
    )
    (accuracy,) = (one for one in measured.measurements if one.metric == "top1_accuracy")
    assert (accuracy.value, accuracy.images) == (1.0, 6)
