"""The commands that train, as they are typed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from command import Shiftproof
from toys import save_colour_network

pytestmark = pytest.mark.usefixtures("one_worker")


def test_a_model_is_trained_run_and_listed(shiftproof: Shiftproof, tmp_path: Path, draw_photos: Callable[..., Path]) -> None:
    save_colour_network(tmp_path / "colours.onnx")
    draw_photos(8)
    preprocess = ("--preprocess", "squash,size=16,mean=0,std=1")
    said = shiftproof("train", "colours.onnx", "photos", "--recipe", "linear-probe", *preprocess, "--workers", 0)
    assert said.code == 0, said.err
    header, row, path = said.out.splitlines()
    assert header.split() == ["folder", "seed", "validation", "accuracy"]
    assert row.split() == ["better", "0", "clean", "100.0", "%"]
    assert path == "better"
    assert "to measure it: shiftproof run better DATASET" in said.err

    said = shiftproof("run", "better", "photos", "--studies", "accuracy", "--json")
    assert said.code == 0, said.err
    assert "note: trained from colours.onnx on photos: linear-probe, head level, seed 0" in said.err
    (told,) = [one for one in json.loads(said.out)["warnings"] if "was trained on" in one]
    assert told.startswith("better was trained on a dataset called photos: ")
    draw_photos(4, "others")
    other = json.loads(shiftproof("run", "better", "others", "--studies", "accuracy", "--json").out)
    assert not any("was trained on" in one for one in other["warnings"])

    told = json.loads(shiftproof("train", "colours.onnx", "photos", "--recipe", "linear-probe", *preprocess, "--json").out)
    assert (told["folder"], told["level"], told["recipes"]) == ("better", "head", ["linear-probe"])
    assert "wise-ft" in shiftproof("list", "recipes").out


def test_slips_are_told_before_anything_is_opened(shiftproof: Shiftproof) -> None:
    for typed, told in (
        (["--recipe", "agmix"], "no recipe called 'agmix'; did you mean augmix"),
        (["--recipe", "mixup"], "the recipe mixup is done at network level; say --level network"),
        (["--recipe", "outlier-exposure", "--level", "network"], "needs images of none of the classes"),
        (
            ["--outliers", "others"],
            "--outliers are for outlier-exposure, reject-class, and baseline looks at none; leave them",
        ),
        (
            ["--level", "network", "--schedule", "step", "--milestones", "0,3"],
            "milestones should be whole numbers from 1 on with commas between them, as 1,3; got '0,3'",
        ),
    ):
        said = shiftproof("train", "no-such-model.onnx", "no-such-folder", *typed)
        assert said.code == 1
        assert told in said.err
        assert len(said.err.splitlines()) == 1


def test_recipes_are_trained_and_compared_on_images_that_took_no_part(
    shiftproof: Shiftproof, tmp_path: Path, draw_photos: Callable[..., Path]
) -> None:
    save_colour_network(tmp_path / "colours.onnx")
    draw_photos(20)
    typed = ["recipes", "colours.onnx", "photos", "--preprocess", "squash,size=16,mean=0,std=1", "--workers", 0]
    typed += ["--recipes", "baseline,cutout,corrupted:contrast", "--seeds", 2, "--copies", 1]
    typed += ["--corruptions", "fog,contrast"]
    said = shiftproof(*typed, "--json")
    assert said.code == 0, said.err
    results = json.loads(said.out)
    assert [card["name"] for card in results["models"]] == ["baseline", "cutout", "corrupted:contrast"]
    assert all(card["notes"][0] == "trained as seed 0, seed 1" for card in results["models"])
    (judged,) = results["datasets"]
    trained = json.loads((tmp_path / "recipes" / "cutout" / "seed-1" / "training.json").read_text())
    assert trained["split"]["training"] + len(trained["split"]["validation"]) + judged["images"] == 3 * 20
    gains = {(one["metric"], one["about"]["recipe"]): one for one in results["findings"] if "gain" in one.get("metric", "")}
    for recipe in ("cutout", "corrupted:contrast"):
        gain = gains["recipe_gain", recipe]
        assert gain["about"]["versus"] == "baseline"
        assert gain["convention"]["shifts"] == "1 of 2, in no training"  # contrast took part in one of them
    by_shift = {
        (one["about"]["recipe"], one["about"]["shift"])
        for one in results["findings"]
        if one.get("metric") == "recipe_shift_gain"
    }
    assert ("cutout", "contrast, severity 3") in by_shift
    assert ("corrupted:contrast", "contrast, severity 3") not in by_shift
    assert sum("as augmentation of its training" in one for one in results["warnings"]) == 1  # a recipe, not each seed
    assert not any("was trained on a dataset" in one for one in results["warnings"])  # they are other images of it
    assert (tmp_path / "recipes.html").exists()


def test_a_network_without_weights_is_told_to_be_for_training(shiftproof: Shiftproof) -> None:
    for command in ("run", "train"):
        said = shiftproof(command, "scratch:resnet-8", "no-such-folder")
        assert said.code == 1
        assert "shiftproof train scratch:resnet-8 DATASET --level network" in said.err
        assert len(said.err.splitlines()) == 1


def test_images_to_judge_on_of_classes_that_are_not_learned_are_told_before_training(
    shiftproof: Shiftproof, tmp_path: Path, draw_photos: Callable[..., Path]
) -> None:
    save_colour_network(tmp_path / "colours.onnx")
    draw_photos(8)
    (draw_photos(2, "others") / "blue").rename(tmp_path / "others" / "purple")
    (tmp_path / "bare").mkdir()
    (draw_photos(1, "few") / "red" / "000.png").rename(tmp_path / "bare" / "one.png")
    typed = [
        "recipes",
        "colours.onnx",
        "photos",
        "--preprocess",
        "squash,size=16,mean=0,std=1",
        "--recipes",
        "baseline,noise",
    ]
    said = shiftproof(*typed, "--judge-on", "others")
    assert said.code == 1
    assert "1 of 3 classes of others are not among the 3 that baseline learns from photos: purple; judge on" in said.err
    said = shiftproof(*typed, "--judge-on", "bare")
    assert (said.code, "has no labels to judge on" in said.err) == (1, True)
    assert not (tmp_path / "recipes").exists()
    said = shiftproof(*typed, "--outliers", "others")
    assert "--outliers are for outlier-exposure, reject-class, and baseline,noise looks at none" in said.err


def test_recipes_that_cannot_be_compared_are_told_at_once(shiftproof: Shiftproof) -> None:
    for recipes, told in (
        ("cutout", "two or more recipes"),
        ("cutout,cutout", "each once"),
        ("cutout,agmix", "did you mean augmix"),
    ):
        said = shiftproof("recipes", "no-such-model.onnx", "no-such-folder", "--recipes", recipes)
        assert said.code == 1
        assert told in said.err
        assert len(said.err.splitlines()) == 1
    said = shiftproof("recipes", "no-such-model.onnx", "no-such-folder", "--severities", 9)
    assert (said.code, "severities should be some of 1 to 5" in said.err) == (1, True)


def test_models_compare_without_the_network_whose_classes_are_others(
    shiftproof: Shiftproof, tmp_path: Path, draw_photos: Callable[..., Path]
) -> None:
    save_colour_network(tmp_path / "colours.onnx")
    (tmp_path / "shades.txt").write_text("dark\nlight\npale\n")
    draw_photos(8)
    preprocess = ("--preprocess", "squash,size=16,mean=0,std=1", "--workers", 0)
    typed = ("colours.onnx", "photos", "--classes", "shades.txt", *preprocess)
    for name, recipe in (("probe", "linear-probe"), ("covered", "cutout?side=0.2")):
        assert shiftproof("train", *typed, "--recipe", recipe, "--copies", 1, "-o", name).code == 0
        assert shiftproof("run", name, "photos", "--studies", "accuracy").code == 0
    said = shiftproof("compare", "photos", "--json")
    assert said.code == 0, said.err
    assert {card["name"] for card in json.loads(said.out)["models"]} == {"probe", "covered"}
    assert "note: colours is left out: 3 of 3 classes of the images are not among the 3 classes of the model" in said.err
    named = shiftproof("compare", "colours", "probe", "photos")
    assert named.code == 1
    assert "3 of 3 classes of the images are not among" in named.err
