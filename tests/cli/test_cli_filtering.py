"""Images that models get wrong, and images that fool them, as people make review projects of them."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

import shiftproof as sp
from command import Shiftproof
from mixtures import draw_mixture
from shiftproof.curation.project import load_project
from shiftproof.datasets.image_list import some_of
from shiftproof.metrics import is_correct
from toys import save_colour_network

DOG, TABBY = "n02084071", "n02123045"
COLOURS = "onnx:colours.onnx?preprocess=squash,mean=0,std=1&classes=names.txt"
BESIDE = ("novel", "animals", "hard", "--filter", COLOURS, "--id-classes", "none", "--id-images", "photos")


@pytest.fixture
def shiftproof(shiftproof: Shiftproof) -> Shiftproof:
    """Runs the command in a folder with pictures and a network that tells colours apart."""
    for name, mixture in {
        "red/plain": (90, 5, 5),
        "red/green": (2, 96, 2),
        "red/blue": (2, 2, 96),
        "green/red": (96, 2, 2),
    }.items():
        draw_mixture(Path("photos") / f"{name}.png", mixture)
        draw_mixture(Path("animals") / DOG / f"{Path(name).name}.png", mixture)
    draw_mixture(Path("animals") / TABBY / "cat.png", (96, 2, 2))
    save_colour_network(Path("colours.onnx"))
    Path("names.txt").write_text("blue\ngreen\nred\n")
    Path("one.csv").write_text("path,label,role,answer\nphotos/red/plain.png,red,gold,keep\n")
    return shiftproof


def test_people_see_what_each_step_leaves_and_the_project_last(shiftproof: Shiftproof) -> None:
    said = shiftproof("curate", "adversarial", "photos", "hard", "--filter", COLOURS)
    assert said.code == 0, said.err
    lines = said.out.splitlines()
    assert [line.split()[-1] for line in lines] == ["left", "4", "4", "3", "3", "3", "3", "hard"]
    assert "squash" in said.err, "how the model sees images is told before it is asked"
    assert "shiftproof review hard" in said.err
    project = load_project("hard")
    assert {item.id for item in project.items} == {"red/green.png", "red/blue.png", "green/red.png"}
    assert project.making.command.startswith("shiftproof curate adversarial photos hard --filter")


@pytest.mark.parametrize("command", ["adversarial", "novel"])
def test_instructions_and_what_is_verified_are_the_makers_to_say(shiftproof: Shiftproof, command: str) -> None:
    images, inside = ("photos", ()) if command == "adversarial" else ("animals", ("--id-classes", "none"))
    Path("told.txt").write_text("Look twice.")
    told = ("--instructions", "told.txt", "--verify", "flagged", "--reviewers-per-item", "5")
    assert shiftproof("curate", command, images, "hard", "--filter", COLOURS, *inside, *told).code == 0
    project = load_project("hard")
    assert (project.instructions, project.verify, project.reviewers_each) == ("Look twice.", "flagged", 5)


@pytest.mark.parametrize("command", ["adversarial", "novel"])
def test_what_models_took_it_for_does_not_tell_known_images_from_others(shiftproof: Shiftproof, command: str) -> None:
    images, inside = ("photos", ()) if command == "adversarial" else ("animals", ("--id-classes", "none"))
    said = shiftproof("curate", command, images, "hard", "--filter", COLOURS, "--gold", "one.csv", *inside)
    assert said.code == 0, said.err
    shown = {item.role: set(item.shown) for item in load_project("hard").items}
    assert shown["gold"] == shown["asked"]
    assert shown["gold"], "the answer of the model"


def test_json_has_the_steps_what_stays_and_every_reason(shiftproof: Shiftproof) -> None:
    Path("left_out.csv").write_text("wnid,reason\nblue,overlapping\n")
    asked = ("curate", "adversarial", "photos", "hard", "--filter", COLOURS, "--exclude-classes", "left_out.csv")
    told = json.loads(shiftproof(*asked, "--target", "2", "--per-class", "1", "--json").out)
    assert told["steps"][2] == {"name": "of the 2 classes chosen", "left": 4}
    assert told["kept"] == ["green/red.png", "red/green.png"]
    reasons = {gone["id"]: gone["reason"] for gone in told["removed"]}
    assert reasons["red/blue.png"].startswith("probability 50.0% for the true class"), "as much red as green, without blue"
    assert told["short_classes"] == ["green", "red"]
    assert load_project("hard").target == 2


def test_new_classes_that_fool_the_model(shiftproof: Shiftproof) -> None:
    Path("inside.txt").write_text(f"{TABBY}\n")
    asked = ("curate", "novel", "animals", "fooled", "--filter", COLOURS, "--id-classes", "inside.txt", "--json")
    told = json.loads(shiftproof(*asked, "--per-class", "3").out)
    assert [step["left"] for step in told["steps"]] == [5, 5, 4, 4, 4, 3, 3]
    assert {gone["reason"] for gone in told["removed"]} == {"its class is an ID class", "3 of its class come before it"}
    assert load_project("fooled").class_of[DOG].name == "dog"
    without = json.loads(shiftproof(*asked, "--exclude-hyponyms", "organism", "--id-classes", "none").out)
    assert [step["left"] for step in without["steps"]] == [5, 5, 5, 5], "without an inside nothing goes by its meaning"


def test_candidates_stand_beside_inside_images(shiftproof: Shiftproof) -> None:
    asked = ("curate", "novel", "animals", "fooled", "--filter", COLOURS, "--id-classes", "none", "--id-images", "photos")
    said = shiftproof(*asked, "--quiet")
    assert said.code == 0, said.err
    project = load_project("fooled")
    assert project.screen_name == "nearest-pair"
    green = project.by_id[f"{DOG}/green.png"]
    assert (green.facts["inside"], green.beside) == ("red/green.png", "red")
    known = f"photos/red/plain.png,photos/green/red.png,{DOG},green,gold,drop image"
    Path("known.csv").write_text(f"path,pictures,label,beside,role,answer\n{known}\n")
    assert shiftproof(*asked, "--gold", "known.csv").code == 0
    (gold,) = (item for item in load_project("fooled").items if item.role == "gold")
    assert (len(gold.images), gold.beside, set(gold.shown)) == (2, "green", set(green.shown))


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (("adversarial", "nowhere", "hard", "--filter", COLOURS), "nowhere"),
        (("adversarial", "photos", "hard", "--filter", "lit:0"), "did you mean lite"),
        (("adversarial", "photos", "hard", "--filter", COLOURS, "--filter", COLOURS), "a name of its own"),
        (("adversarial", "photos", "hard", "--filter", COLOURS, "--among-classes", "imagenet-a"), "none of the model's"),
        (("adversarial", "photos", "hard", "--filter", f"{COLOURS}&colour=red"), "option of a model"),
        (("adversarial", "photos", "hard", "--filter", COLOURS, "--gold", "photos"), "a role, training or gold"),
        ((*BESIDE, "--gold", "one.csv"), "one picture, but the screen nearest-pair shows 2"),
        (("novel", "photos", "hard", "--filter", COLOURS), "no wnids"),
        (("novel", "animals", "hard", "--filter", COLOURS, "--min-confidence", "1"), "no candidate of animals is left"),
    ],
)
def test_mistakes_are_one_sentence(shiftproof: Shiftproof, typed: tuple[str, ...], told: str) -> None:
    said = shiftproof("curate", *typed, "--quiet")
    assert (said.code, said.err.count("\n")) == (1, 1), said.err
    assert told in said.err
    assert not Path("hard/project.json").exists()


@pytest.mark.real
def test_other_models_do_worse_on_what_survives_than_on_any_of_two_hundred_random_sets(
    shiftproof: Shiftproof, real_data: Path, real_runs: Path
) -> None:
    photos, models = real_data / "ilsvrc-sample-1000", real_data / "models"
    mobilenet = f"onnx:{models}/mobilenetv2_int8_torchvision.onnx?preprocess=imagenet,size=244"
    filters = ("--filter", "lite:0", "--filter", mobilenet, "--limit", "300")
    told = json.loads(shiftproof("curate", "adversarial", photos, "hard", *filters, "--store", real_runs, "--json").out)
    assert 5 <= len(told["kept"]) <= 15, "of all thousand some thirty survive"
    every = some_of(sp.open_dataset(photos), 300)
    # drawn of sixty, and of those that other tests predict: the others' answers on all would tell no more
    drawn_of = [sample.id for sample in some_of(some_of(every, 200), 60).samples]
    asked = [sample for sample in every.samples if sample.id in {*drawn_of, *told["kept"]}]
    images = dataclasses.replace(every, samples=asked)
    rng = np.random.default_rng(6)
    draws = [rng.choice(drawn_of, len(told["kept"]), replace=False) for _ in range(200)]
    for spec, preprocess in (("lite:1", None), (f"onnx:{models}/SqueezeNet_fp16.onnx", "caffe")):
        said = sp.predict(sp.load_model(spec, preprocess=preprocess), images, store=real_runs, keep="logits")
        right = dict(zip(said.ids, is_correct(said.labels, said.top5.classes).tolist(), strict=True))
        kept = np.mean([right[image_id] for image_id in told["kept"]])
        random = [np.mean([right[image_id] for image_id in drawn]) for drawn in draws]
        assert kept < min(random)


def test_photos_above_the_pixel_limit_are_skipped_unread(shiftproof: Shiftproof) -> None:
    asked = ("curate", "adversarial", "photos", "hard", "--filter", COLOURS)
    for store in ("before", "again"):  # they are candidates, and now this process has their pictures in memory
        assert shiftproof(*asked, "--store", store).code == 0
    said = shiftproof(*asked, "--max-pixels", "10")
    assert said.code == 1
    assert "0 misclassified by colours" in said.err
