"""The command as people use it: what it prints, what it writes, how it refuses."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

import shiftproof as sp
from command import Said, Shiftproof
from shiftproof import catalog
from shiftproof.cli.main import cli
from shiftproof.runs import write
from shiftproof.types import ModelRef
from toys import COLOURS, save_colour_network

Draw = Callable[..., Path]


@pytest.fixture
def network(tmp_path: Path) -> list[str]:
    """A model on the command line."""
    save_colour_network(tmp_path / "colours.onnx")
    (tmp_path / "classes.txt").write_text("\n".join(sorted(COLOURS)))
    return ["colours.onnx", "--preprocess", "unit,resize=squash", "--classes", "classes.txt"]


CLEAN = ["--studies", "calibration"]
"""Accuracy and calibration: what unchanged images are enough for."""


def arguments(network: list[str], images: Path) -> list[object]:
    return [network[0], images, *network[1:]]


def test_options_that_say_nothing_are_refused(
    shiftproof: Shiftproof, network: list[str], draw_photos: Draw, tmp_path: Path
) -> None:
    photos = draw_photos(1)
    assert "expected names of studies" in shiftproof("run", *arguments(network, photos), "--studies", ",").err
    how = ["--edition", "tiny-64", "--quiet"]
    shiftproof("corrupt", photos, "c", "--corruptions", "contrast", "--severities", "1", *how)
    shiftproof("perturb", photos, "p", "--perturbations", "translate", "--layout", "cifar-p", *how)
    made = [("c", "corruption", ("--budget", 30, "--severities", 3)), ("p", "perturbation", ("--sequences", 1))]
    for folder, study, typed in made:
        said = shiftproof("run", *arguments(network, tmp_path / folder), "--studies", study, *typed)
        assert (said.code, said.out) == (1, "")
        assert f"{folder} holds" in said.err
        assert all(str(option) in said.err for option in typed[::2])


def test_runs_that_predict_cannot_make_are_told_how_they_can(
    shiftproof: Shiftproof, network: list[str], draw_photos: Draw
) -> None:
    shiftproof("predict", *arguments(network, draw_photos(1)), "--quiet")
    said = shiftproof("measure", *arguments(network, Path("photos")), "--studies", "corruption")
    assert "images have no prediction; make them with: shiftproof run, with the same options" in said.err


def test_run_predicts_measures_and_reports(
    shiftproof: Shiftproof, network: list[str], draw_photos: Draw, tmp_path: Path
) -> None:
    photos = draw_photos()
    said = shiftproof("run", *arguments(network, photos), *CLEAN)
    assert said.code == 0
    assert "Clean accuracy" in said.out
    assert "Top-1 accuracy" not in said.out
    assert said.out.splitlines()[-1] == "report.html"
    assert "Top-1 accuracy" in shiftproof("measure", "colours", photos, "--verbose").out
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "15 images" in report
    assert "shiftproof run colours.onnx" in report, "the report names the command that made it"
    assert "15 images in" in said.err, "progress and rate go to standard error"


def test_every_study_is_asked_of_the_set_before_its_review_too(
    shiftproof: Shiftproof, network: list[str], draw_photos: Draw
) -> None:
    reviewed, before = draw_photos(2, "reviewed"), draw_photos(3, "before")
    asked = ["--unreviewed", before, "--studies", "accuracy,calibration"]
    said = json.loads(shiftproof("run", *arguments(network, reviewed), *asked, "--json").out)
    found = [(one["metric"], one["about"]["dataset"], one["images"]) for one in said["findings"] if "metric" in one]
    for metric in ("top1_accuracy", "rms_calibration_error"):
        assert [one[1:] for one in found if one[0] == metric] == [("reviewed", 6), ("before", 9)]
    same = shiftproof("run", *arguments(network, reviewed), *CLEAN, "--unreviewed", reviewed)
    assert "both datasets are called reviewed" in same.err


def test_a_second_run_does_not_predict(shiftproof: Shiftproof, network: list[str], draw_photos: Draw) -> None:
    photos = draw_photos()
    first = shiftproof("run", *arguments(network, photos), *CLEAN)
    second = shiftproof("run", *arguments(network, photos), *CLEAN)
    assert second.out == first.out
    assert "images/s" not in second.err


def test_the_edition_that_fits_is_told_before_anything_is_run_and_found_again_in_the_store(
    shiftproof: Shiftproof, network: list[str], draw_photos: Draw
) -> None:
    photos = draw_photos(1)  # 24 x 32, for a network that takes 8 x 8
    asked = ["--studies", "corruption,perturbation", "--corruptions", "contrast", "--perturbations", "brightness"]
    planned = shiftproof("plan", *arguments(network, photos), *asked)
    told = "edition cifar-32: chosen for pictures of 24 pixels"
    assert planned.err.count(told) == 1
    assert "warning: no edition is made for pictures of 24 pixels" in planned.err
    said = shiftproof("run", *arguments(network, photos), *asked, "--json")
    assert told in said.err
    results = json.loads(said.out)
    found = {one["metric"]: one["convention"] for one in results["findings"] if "metric" in one}
    for metric in ("mean_corrupted_error", "flip_probability"):
        assert found[metric]["edition"] == "cifar-32"
        assert found[metric]["why this edition"] in planned.err
    assert any("no edition is made for" in warning for warning in results["warnings"])
    # by the model's name alone, and by its size as the store knows it
    again = shiftproof("measure", "colours", photos, *asked, "--json")
    assert json.loads(again.out)["findings"] == results["findings"]
    named = shiftproof("plan", *arguments(network, photos), *asked, "--edition", "imagenet-224")
    assert "edition" not in named.err


def test_the_steps_one_at_a_time_give_the_same_numbers(
    shiftproof: Shiftproof, network: list[str], draw_photos: Draw
) -> None:
    photos = draw_photos()
    whole = shiftproof("run", *arguments(network, photos), *CLEAN, "--store", "whole", "--json")
    planned = json.loads(shiftproof("plan", *arguments(network, photos), *CLEAN, "--json").out)
    assert [(row["images"], row["stored"], row["to do"]) for row in planned] == [(15, 0, 15)]
    early = shiftproof("measure", *arguments(network, photos))
    assert early.code == 1
    assert "shiftproof predict" in early.err
    predicted = json.loads(shiftproof("predict", *arguments(network, photos), "--json").out)
    assert predicted == {"predicted": 15, "stored_before": 0, "skipped_images": []}
    assert json.loads(shiftproof("plan", *arguments(network, photos), *CLEAN, "--json").out)[0]["to do"] == 0
    measured = shiftproof("measure", *arguments(network, photos), "--json")
    assert json.loads(measured.out)["findings"] == json.loads(whole.out)["findings"]
    by_name = shiftproof("measure", "colours", photos, "--json")
    assert json.loads(by_name.out)["findings"] == json.loads(whole.out)["findings"], "a stored model needs no file any more"
    assert shiftproof("report", "colours", photos, "-o", "late.html").out.splitlines()[-1] == "late.html"
    assert Path("late.html").exists()


def first_value(said: Said) -> Any:
    assert said.code == 0, said.err
    return json.loads(said.out)["findings"][0]["value"]


@pytest.mark.parametrize("again", [["run", *CLEAN], ["measure"], ["report"]], ids=lambda again: again[0])
def test_what_is_said_of_a_model_later_counts(
    again: list[str], shiftproof: Shiftproof, network: list[str], draw_photos: Draw, tmp_path: Path
) -> None:
    images = draw_photos()
    model, options = network[0], network[1:]
    (tmp_path / "wrong.txt").write_text("\n".join(sorted(COLOURS, reverse=True)))
    wrong = first_value(shiftproof("run", model, images, *CLEAN, *options[:-1], "wrong.txt", "--json"))
    right = first_value(shiftproof(*again, model, images, *options, "--name", "other", "--json"))
    assert (wrong, right) == (pytest.approx(1 / 3), 1)
    assert json.loads(shiftproof("measure", "other", images, "--json").out)["models"][0]["name"] == "other"
    assert shiftproof("measure", model, images, *options, "--preprocess", "imagenet").code == 1, "that one was never run"


def test_measurements_come_as_csv_and_parquet_too(shiftproof: Shiftproof, network: list[str], draw_photos: Draw) -> None:
    from pyarrow import parquet

    shiftproof("run", *arguments(network, draw_photos()), *CLEAN, "--csv", "m.csv", "--parquet", "m.parquet")
    with Path("m.csv").open() as file:
        rows = list(csv.DictReader(file))
    table = parquet.read_table("m.parquet").to_pylist()
    assert [row["metric"] for row in rows] == [row["metric"] for row in table]
    assert [float(row["value"]) for row in rows] == [row["value"] for row in table]
    assert rows[0]["metric"] == "top1_accuracy"
    assert rows[0]["images"] == "15"


@pytest.mark.parametrize("keep", [[], ["--keep", "top5"], ["--half"]])
@pytest.mark.parametrize("scored", ["subset", "merge"])
def test_answers_are_scored_among_other_classes_than_the_models(
    scored: str, keep: list[str], shiftproof: Shiftproof, network: list[str], draw_photos: Draw
) -> None:
    images = draw_photos()
    for photo in (images / "red").iterdir():
        photo.write_bytes((images / "green" / photo.name).read_bytes())
    (images / "blue").rename(images.parent / "blue")
    Path("groups.json").write_text(json.dumps({"warm": ["red"], "other": ["blue", "green"]}))
    how = {"subset": ["--scored", "subset"], "merge": ["--class-groups", "groups.json"]}[scored]
    said = shiftproof("run", *arguments(network, images), *CLEAN, *how, *keep, "--json")
    found = {one["metric"]: one for one in json.loads(said.out)["findings"] if "metric" in one}
    assert found["top1_accuracy"]["value"] == 0.5
    assert found["top1_accuracy"]["convention"]["classes"].startswith("2 ")
    planned = json.loads(shiftproof("plan", *arguments(network, images), *CLEAN, *how, "--json").out)
    assert {run["keep"] for run in planned} == {"logits"}


def test_images_that_lose_their_label_are_counted_and_told(
    shiftproof: Shiftproof, network: list[str], draw_photos: Draw
) -> None:
    photos = draw_photos()
    (photos / "blue").rename(photos / "lilac")  # which is no class of the model
    refused = shiftproof("run", *arguments(network, photos), *CLEAN)
    assert refused.code == 1
    assert "--unmatched unlabelled" in refused.err
    said = shiftproof("run", *arguments(network, photos), *CLEAN, "--unmatched", "unlabelled", "--json")
    results = json.loads(said.out)
    (card,) = results["datasets"]
    assert (card["images"], card["labelled"]) == (15, 10)
    accuracy = next(one for one in results["findings"] if one.get("metric") == "top1_accuracy")
    assert accuracy["images"] == 10
    assert accuracy["convention"]["images of classes the model lacks"] == "5 of 15, left unlabelled"
    assert "photos: 5 of 15 images are of classes that colours lacks" in " ".join(results["warnings"])
    assert "10 of them labelled" in Path("report.html").read_text(encoding="utf-8")


def test_compare_counts_no_network_that_a_study_made_of_another(
    shiftproof: Shiftproof, network: list[str], draw_photos: Draw
) -> None:
    photos, other = draw_photos(), draw_photos(4, "other")
    novel = ["--studies", "ood", "--ood", other, "--ood-detectors", "msp", "--quiet", "--json"]
    alone = []
    for name, preprocess in (("sharp", "unit,resize=squash"), ("swapped", "unit,resize=squash,channels=bgr")):
        model = [network[0], photos, "--preprocess", preprocess, "--classes", "classes.txt", "--name", name]
        said = shiftproof("run", *model, *novel, "--random-networks", 1)
        assert said.code == 0, said.err
        alone.append(next(one["value"] for one in json.loads(said.out)["findings"] if one.get("metric") == "auroc"))
    compared = json.loads(shiftproof("compare", photos, *novel[:-2], "--json").out)
    mean = next(one for one in compared["findings"] if one.get("metric") == "mean_auroc")
    assert mean["value"] == pytest.approx(sum(alone) / 2)
    assert [card["name"] for card in compared["models"]] == ["sharp", "swapped"]


def test_a_model_that_was_prepared_wrongly_first_is_compared_as_it_was_last(
    shiftproof: Shiftproof, network: list[str], draw_photos: Draw
) -> None:
    photos = draw_photos()
    for name, preprocess in (("mine", "unit,resize=squash,channels=bgr"), ("other", "unit"), ("mine", "unit,resize=squash")):
        shiftproof("predict", network[0], photos, "--preprocess", preprocess, "--classes", "classes.txt", "--name", name)
    said = shiftproof("compare", photos, "--json")
    assert said.code == 0, said.err
    accuracies = {
        one["about"]["model"]: one["value"]
        for one in json.loads(said.out)["findings"]
        if one.get("metric") == "top1_accuracy"
    }
    assert set(accuracies) == {"mine", "other"}
    assert accuracies["mine"] == 1  # blue and red change places otherwise, which leaves a third
    listed = shiftproof("models", "--json")
    assert listed.code == 0, listed.err
    assert sorted(one["name"].partition("@")[0] for one in json.loads(listed.out)) == ["mine", "mine", "other"]


def test_compare_needs_only_the_store(shiftproof: Shiftproof, network: list[str], draw_photos: Draw, tmp_path: Path) -> None:
    photos = draw_photos()
    shiftproof("predict", *arguments(network, photos), "--name", "sharp")
    alone = shiftproof("compare", photos)
    assert alone.code == 1
    assert "two models" in alone.err
    shiftproof(
        "predict", network[0], photos, "--preprocess", "unit,channels=bgr", "--classes", "classes.txt", "--name", "swapped"
    )
    (tmp_path / "colours.onnx").unlink()
    said = shiftproof("compare", photos, "-o", "compared.html")
    assert said.code == 0
    assert "sharp is better than swapped" in said.out
    assert Path("compared.html").exists()
    chosen = shiftproof("compare", "swapped", "sharp", photos, "--json")
    found = json.loads(chosen.out)
    assert [card["name"] for card in found["models"]] == ["swapped", "sharp"]
    next_steps = [f"shiftproof run MODEL {photos} --name {name}" for name in ("swapped", "sharp")]
    assert [one["command"] for one in found["again"]] == next_steps
    refs = [ModelRef(one["name"], one["fingerprint"]) for one in found["models"]]
    assert [one.command for one in sp.compare(refs, str(photos)).again] == ["", ""]  # a program goes on with what it has
    unknown = shiftproof("compare", "sharb", "swapped", photos)
    assert (unknown.code, unknown.err) == (1, "shiftproof: no stored model called 'sharb'; did you mean sharp?\n")


def test_a_study_that_one_of_the_models_lacks_is_told_to_be_left_out(
    shiftproof: Shiftproof, network: list[str], draw_photos: Draw
) -> None:
    photos = draw_photos()
    shown = ["--corruptions", "contrast", "--severities", 5, "--edition", "tiny-64"]
    shiftproof("run", *arguments(network, photos), "--name", "sharp", "--studies", "corruption", *shown, "--quiet")
    swapped = [network[0], photos, "--preprocess", "unit,channels=bgr", "--classes", "classes.txt", "--name", "swapped"]
    shiftproof("predict", *swapped)
    compared = shiftproof("compare", photos, *shown, "--json")
    assert compared.code == 0, compared.err
    said = json.loads(compared.out)
    (told,) = [one for one in said["warnings"] if "is left out" in one]
    assert told.startswith("Corruption robustness is left out, for want of some of what it needs: ")
    assert "swapped" in told


def test_all_studies_compare_what_is_stored_and_tell_that_saliency_maps_were_never_made(
    shiftproof: Shiftproof, network: list[str], draw_photos: Draw
) -> None:
    photos = draw_photos(4)
    for name, preprocess in (("sharp", "unit,resize=squash"), ("swapped", "unit,resize=squash,channels=bgr")):
        model = [network[0], photos, "--preprocess", preprocess, "--classes", "classes.txt", "--name", name]
        shiftproof("run", *model, "--studies", "input-sizes", "--input-sizes", "8,12", "--quiet")
    compared = shiftproof("compare", photos, "--studies", "all", "--input-sizes", "8,12", "--json")
    assert compared.code == 0, compared.err
    said = json.loads(compared.out)
    (told,) = [one for one in said["warnings"] if "is left out" in one]
    assert told.startswith("Saliency is left out, for want of some of what it needs: sharp on photos: 12 of 12 images have")
    tested = [one["about"] for one in said["findings"] if one.get("metric") == "accuracy_difference"]
    assert {one["model"] for one in tested} == {"sharp"}  # and not at other input sizes
    assert {one["versus"] for one in tested} == {"swapped"}
    alone = json.loads(shiftproof("compare", photos, "--json").out)
    assert [card["name"] for card in alone["models"]] == ["sharp", "swapped"]


def test_shards_of_two_machines_merge(shiftproof: Shiftproof, network: list[str], draw_photos: Draw) -> None:
    photos = draw_photos(20)
    whole = json.loads(shiftproof("run", *arguments(network, photos), *CLEAN, "--store", "whole", "--json").out)
    for part in (1, 2):
        shiftproof("predict", *arguments(network, photos), "--shard", f"{part}/2", "--store", f"machine{part}")
    assert shiftproof("measure", "colours", photos, "--store", "machine1").code == 1, "one shard is not the whole"
    shiftproof("merge", "runs", "machine1", "machine2")
    assert json.loads(shiftproof("measure", "colours", photos, "--json").out)["findings"] == whole["findings"]


def test_unreadable_images_are_listed_and_counted(shiftproof: Shiftproof, network: list[str], draw_photos: Draw) -> None:
    photos = draw_photos()
    (photos / "red" / "broken.jpg").write_text("no image")
    said = shiftproof("run", *arguments(network, photos), *CLEAN)
    assert said.code == 0
    assert "skipped: red/broken.jpg" in said.err
    assert "broken.jpg" in Path("report.html").read_text(encoding="utf-8")
    found = json.loads(shiftproof("measure", "colours", photos, "--json").out)
    assert found["datasets"][0]["skipped_images"][0]["id"] == "red/broken.jpg"
    assert all(
        finding["convention"]["skipped images"] == "1 of 16"
        for finding in found["findings"]
        if finding["kind"] == "Measurement"
    )
    strict = shiftproof("run", *arguments(network, photos), *CLEAN, "--strict")
    assert (strict.code, strict.err.count("\n") > 0) == (1, True)
    assert "leave out --strict" in strict.err


def test_images_that_are_all_unreadable_leave_nothing_to_measure(
    shiftproof: Shiftproof, network: list[str], draw_photos: Draw
) -> None:
    images = draw_photos(1)
    for photo in images.glob("*/*.png"):
        photo.write_text("no image")
    said = shiftproof("run", *arguments(network, images), *CLEAN)
    assert said.code == 0
    assert "nothing to measure, all 3 images were skipped" in said.err


def test_file_names_that_are_not_text_come_as_valid_json(
    shiftproof: Shiftproof, network: list[str], draw_photos: Draw
) -> None:
    images = draw_photos(1)
    name = os.fsdecode(b"caf\xe9.png")
    (images / "red" / "000.png").rename(images / "red" / name)
    (images / "blue" / name).write_text("no image")
    few = ["--corruptions", "contrast", "--perturbations", "tilt"]  # every study of a profile, and each in little time
    for command in (["run", *few], ["measure"], ["predict"]):
        said = shiftproof(*command, *arguments(network, images), "--json")
        said.out.encode()
        assert f"blue/{name}" in json.dumps(json.loads(said.out), ensure_ascii=False)


def test_unlabelled_images_skip_what_needs_labels_and_say_so(
    shiftproof: Shiftproof, network: list[str], draw_photos: Draw, tmp_path: Path
) -> None:
    flat = tmp_path / "flat"
    flat.mkdir()
    for number, photo in enumerate(draw_photos().rglob("*.png")):
        photo.rename(flat / f"{number}.png")
    said = shiftproof("run", *arguments(network, flat), *CLEAN)
    assert said.code == 0
    assert "Top-1" not in said.out
    assert "No image has a label, so nothing here says how often the model is right" in said.out
    assert len(said.err.splitlines()) + len(said.out.splitlines()) < 20
    more = shiftproof("run", *arguments(network, flat), *CLEAN, "--verbose")
    assert "left out: flat: accuracy needs labels" in more.err


def test_what_a_model_was_trained_with_is_no_test_of_it(
    shiftproof: Shiftproof, network: list[str], draw_photos: Draw, tmp_path: Path
) -> None:
    photos = draw_photos(2)
    cells = ["--corruptions", "contrast,fog", "--severities", "5", "--edition", "tiny-64"]
    how = [*arguments(network, photos), "--augmented", "contrast", "--quiet", "--json"]
    ran = json.loads(shiftproof("run", *how, "--studies", "corruption", *cells).out)
    (warning,) = [one for one in ran["warnings"] if "augmentation" in one]
    assert warning.startswith("colours declares contrast as augmentation of its training and is tested under contrast: ")
    values = {one["metric"]: one["value"] for one in ran["findings"] if "corruption" not in one["about"] and "metric" in one}
    fog = next(one for one in ran["findings"] if one.get("metric") == "corruption_mean_error" and "fog" in str(one["about"]))
    assert values["unseen_mean_corrupted_error"] == fog["value"]
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "corrupted images, under corruptions that were no part of training, are misclassified" in report
    assert "declares contrast as augmentation" in report
    # nothing is said of what was not tested, nor of a model that declares nothing
    other = json.loads(shiftproof("run", *how, "--studies", "corruption", "--corruptions", "fog", *cells[2:]).out)
    silent = json.loads(shiftproof("run", *how[:-4], "--quiet", "--json", "--studies", "corruption", *cells).out)
    assert not any("augmentation" in one for result in (other, silent) for one in result["warnings"])
    # images that were corrupted before, sequences, and corruptions as a shift for detectors
    shiftproof("corrupt", photos, "c", *cells, "--quiet")
    shiftproof("perturb", photos, "p", "--perturbations", "tilt", "--layout", "cifar-p", *cells[4:], "--quiet")
    declared = [*network[1:], "--augmented", "contrast", "--augmented", "tilt", "--quiet", "--json"]
    for given in (
        ["c", "--studies", "corruption"],
        ["p", "--studies", "perturbation"],
        [photos, "--studies", "ood", "--shifted", "contrast:5"],
    ):
        said = shiftproof("run", network[0], *given, *declared)
        assert any("declares contrast, tilt as augmentation" in one for one in json.loads(said.out)["warnings"]), said.err


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many images each call gave to a model."""
    made: list[int] = []
    classify = write.classify_batch

    def counted(model: Any, keep: Any, precision: Any, batch: Any, sizes: Any) -> Any:
        made.append(len(batch))
        return classify(model, keep, precision, batch, sizes)

    monkeypatch.setattr(write, "classify_batch", counted)
    return made


def test_what_cannot_be_measured_is_told_before_the_first_pass(
    shiftproof: Shiftproof, network: list[str], draw_photos: Draw, passes: list[int]
) -> None:
    flat = draw_photos(2) / "red"
    why = "red: the error under corruption needs labels, and no image has one"
    for command in ("run", "plan"):
        said = shiftproof(command, *arguments(network, flat), "--studies", "corruption")
        assert (said.code, said.out, passes) == (1, "", [])
        assert said.err == f"shiftproof: nothing can be measured: {why}\n"
    limited = shiftproof("run", *arguments(network, flat), "--studies", "corruption", "--budget", 100)
    assert (limited.code, passes) == (1, [])
    both = [*arguments(network, flat), "--studies", "accuracy,corruption", "--json"]
    planned = shiftproof("plan", *both)
    assert [run["condition"] for run in json.loads(planned.out)] == ["clean"]
    assert f"left out: {why}" in planned.err
    ran = shiftproof("run", *both, "--quiet")
    assert (ran.code, sum(passes)) == (0, 2), ran.err
    assert why in json.loads(ran.out)["skipped"]
    found = json.loads(ran.out)["findings"]
    assert {one["metric"] for one in found if one["kind"] == "Measurement"} == {"predicted_share"}
    measured = shiftproof("measure", *arguments(network, flat), "--studies", "corruption")
    assert (measured.code, measured.err) == (1, f"shiftproof: nothing can be measured: {why}\n")
    predicted = shiftproof("predict", *arguments(network, flat))
    assert "note: no image of red has a label" in predicted.err


def test_a_cluster_that_is_not_there_is_told_before_the_first_pass(
    shiftproof: Shiftproof, network: list[str], draw_photos: Draw, passes: list[int]
) -> None:
    photos = draw_photos(2)
    for cluster, told in (("none.csv", "no file none.csv"), ("patint", "no fact of these images to cluster them by")):
        said = shiftproof("run", *arguments(network, photos), "--cluster", cluster, "--studies", "accuracy", "--quiet")
        assert (said.code, passes) == (1, [])
        assert told in said.err


def test_labels_that_no_model_knows_are_none(
    shiftproof: Shiftproof, network: list[str], draw_photos: Draw, passes: list[int]
) -> None:
    photos = draw_photos(1)
    for number, folder in enumerate(sorted(photos.iterdir())):
        folder.rename(photos / f"cloth{number}")
    said = shiftproof("run", *arguments(network, photos), "--studies", "corruption", "--unmatched", "unlabelled")
    assert (said.code, passes) == (1, [])
    assert "photos: the error under corruption needs labels, and no image has one that a model here knows" in said.err


def test_studies_that_need_no_labels_run_without(
    shiftproof: Shiftproof, network: list[str], draw_photos: Draw, passes: list[int]
) -> None:
    flat = draw_photos(2) / "red"
    how = ["--perturbations", "translate", "--edition", "tiny-64", "--sequences", 1]
    said = shiftproof("run", *arguments(network, flat), "--studies", "perturbation,saliency", *how, "--json", "--quiet")
    assert said.code == 0, said.err
    assert sum(passes) > 2
    assert json.loads(said.out)["findings"]


def test_near_chance_accuracy_is_warned_about(shiftproof: Shiftproof, draw_photos: Draw, network: list[str]) -> None:
    photos = draw_photos()
    said = shiftproof("run", network[0], photos, *CLEAN, "--preprocess", "unit,channels=bgr", "--classes", "classes.txt")
    assert "no better than chance" in said.err
    assert "no better than chance" in Path("report.html").read_text(encoding="utf-8")


def test_chance_is_that_of_the_classes_scored(shiftproof: Shiftproof, network: list[str], draw_photos: Draw) -> None:
    images = draw_photos(9)
    for photo in (images / "blue").iterdir():
        photo.write_bytes((images / "green" / photo.name).read_bytes())
    shutil.rmtree(images / "red")
    said = shiftproof("run", *arguments(network, images), *CLEAN, "--scored", "subset")
    assert "accuracy of 9 in 18: no better than chance among 2 classes" in said.err


def test_a_model_that_chose_the_images_is_warned_about(shiftproof: Shiftproof, tmp_path: Path) -> None:
    from PIL import Image

    from shiftproof.reference import wnids_of

    for number, wnid in enumerate(wnids_of("imagenet_a_classes")):
        (tmp_path / "hard" / wnid).mkdir(parents=True)
        for copy in range(8):
            Image.new("RGB", (8, 8), (number, copy, 0)).save(tmp_path / "hard" / wnid / f"{copy}.png")
    save_colour_network(tmp_path / "colours.onnx")
    typed = ["run", "colours.onnx", "hard", "--classes", "classes.txt", "--filtered", "imagenet-a", "--unmatched", "wrong"]
    assert shiftproof(*typed, *CLEAN).code == 1, "the classes file is missing"
    (tmp_path / "classes.txt").write_text("n01498041\nn01531178\nn01534433")
    said = shiftproof(*typed, *CLEAN)
    assert said.code == 0
    assert "was a filter model of imagenet-a" in said.err
    differences = shiftproof("check", "hard", "--published", "imagenet-a")
    assert differences.code == 1
    assert "differs from imagenet-a: 1,600 of 7,500 images" in differences.out
    assert json.loads(shiftproof("check", "hard", "--json").out)["published"] == "imagenet-a"


@pytest.mark.parametrize("kind", catalog.KINDS)
def test_list_shows_every_entry(kind: str, shiftproof: Shiftproof) -> None:
    listed = shiftproof("list", kind)
    assert listed.code == 0
    as_json = json.loads(shiftproof("list", kind, "--json").out)
    assert [row["name"] for row in as_json] == list(catalog.KINDS[kind])
    assert all(row["name"] in listed.out and row["what it is"] for row in as_json)


@pytest.mark.parametrize(
    ("wrong", "advice"),
    [
        (["run", "onyx:model", "photos"], "no model called 'onyx'; did you mean onnx?"),
        (["run", "nothing.onnx", "photos"], "nothing.onnx"),
        (["run", "lite:0", "no/such/folder"], "no/such/folder"),
        (["run", "lite:0", "photos", "--studies", "acuracy"], "no study called 'acuracy'; did you mean accuracy?"),
        (["run", "lite:0", "photos", "--studies", "comparison"], "shiftproof compare"),
        (["run", "lite:0", "photos", "--preprocess", "imagnet"], "did you mean imagenet"),
        (["run", "lite:0", "photos"], "classes of the images are not among"),
        (["run", "lite:0", "empty"], "empty"),
        (["measure", "lite:0", "photos", "--unmatched", "unlabelled"], "shiftproof predict lite:0"),
        (["measure", "lite:0", "photos", "--class-groups", "none.json"], "should hold class groups"),
        (["measure", "lite:0", "photos", "--unmatched", "unlabelled", "--store", "file"], "shiftproof predict lite:0"),
        (["predict", "lite:0", "photos", "--store", "file", "--quiet"], "cannot write file"),
        (["merge", "runs", "nowhere"], "no store at nowhere"),
    ],
)
def test_a_users_mistake_is_one_sentence_and_exit_code_1(
    wrong: list[str], advice: str, shiftproof: Shiftproof, draw_photos: Draw, tmp_path: Path
) -> None:
    draw_photos()
    (tmp_path / "photos" / "red").rename(tmp_path / "photos" / "reddish")
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    (tmp_path / "none.json").write_text("{}")
    said = shiftproof(*wrong)
    assert said.code == 1
    assert advice in said.err
    assert said.err.startswith("shiftproof: ")
    assert said.err.count("\n") == 1
    assert said.out == ""


@pytest.mark.parametrize(
    "wrong", [["run"], ["run", "lite:0"], ["list", "modles"], ["predict", "a", "b", "--shard", "3/2"], ["nothing"]]
)
def test_wrong_usage_is_exit_code_2(wrong: list[str], shiftproof: Shiftproof) -> None:
    assert shiftproof(*wrong).code == 2


def test_a_file_without_permission_is_one_sentence(shiftproof: Shiftproof, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", "model.onnx")

    monkeypatch.setattr("shiftproof.models.by_settings.load_model", refuse)
    assert shiftproof("run", "model.onnx", "photos") == Said(1, "", "shiftproof: Permission denied: model.onnx\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    ("streams", "environment", "code", "told"),
    [
        ("", {"PYTHONIOENCODING": "ascii"}, 0, ""),
        (">&-", {}, 0, ""),
        (">&- <&- 2>&-", {}, 0, ""),
        ("> /dev/full", {}, 1, "shiftproof: No space left on device\n"),
    ],
)
def test_streams_of_any_kind_do(
    streams: str,
    environment: dict[str, str],
    code: int,
    told: str,
    shiftproof: Shiftproof,
    network: list[str],
    draw_photos: Draw,
) -> None:
    images = draw_photos(1)
    (images / "red" / "000.png").rename(images / "red" / "rött 日.png")
    shiftproof("run", *arguments(network, images), *CLEAN)
    command = f"{sys.executable} -m shiftproof report colours photos -o again.html {streams}"
    said = subprocess.run(
        ["sh", "-c", command],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert (said.returncode, said.stderr) == (code, told)
    assert Path("again.html").exists(), "the report is written before anything is printed"


def test_a_bug_keeps_its_traceback(shiftproof: Shiftproof, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shiftproof.datasets.open_dataset", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        shiftproof("run", "lite:0", "photos")


def every_command() -> dict[str, click.Command]:
    """Commands by what people type; of a group, those inside it."""
    found: dict[str, click.Command] = {}
    for name, command in cli.commands.items():
        inner = command.commands if isinstance(command, click.Group) else {}
        found |= {f"{name} {one}": below for one, below in inner.items()}
        if not inner or getattr(command, "invoke_without_command", False):
            found[name] = command
    return found


@pytest.mark.parametrize("name", sorted(every_command().keys() - {"help"}))
def test_every_command_answers_in_json_where_asked(name: str) -> None:
    assert "json" in {parameter.name for parameter in every_command()[name].params}


@pytest.mark.parametrize("name", sorted(every_command()))
def test_every_command_that_loads_a_model_can_be_told_to_trust_it(name: str) -> None:
    options = {parameter.name for parameter in every_command()[name].params}
    assert ("trust" in options) == bool(options & {"model", "filter", "feature_model", "guard"})


def test_a_model_file_that_is_a_program_runs_only_with_trust(
    shiftproof: Shiftproof, draw_photos: Draw, tmp_path: Path
) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    network = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(3, 3)).eval()
    exported = torch.export.export(network, (torch.zeros(2, 3, 16, 16),))
    torch.export.save(exported, tmp_path / "colours.pt2")
    (tmp_path / "classes.txt").write_text("\n".join(sorted(COLOURS)))
    typed = [
        "torch:colours.pt2",
        draw_photos(1),
        "--preprocess",
        "unit,resize=squash",
        "--classes",
        "classes.txt",
        "--quiet",
    ]
    for command in ("run", "predict", "plan", "measure", "report"):
        said = shiftproof(command, *typed[: -1 if command in ("plan", "measure", "report") else None])
        assert said.code == 1
        assert "can run any code on this machine, as you" in said.err
        assert "say --trust" in said.err
    assert shiftproof("predict", *typed, "--trust").code == 0
    filtered = ("curate", "adversarial", tmp_path / "photos", "hard", "--filter", "torch:colours.pt2?preprocess=unit")
    assert "say --trust" in shiftproof(*filtered).err


@pytest.mark.parametrize("name", sorted(every_command()))
def test_every_command_explains_itself_with_an_example(name: str) -> None:
    help_text = CliRunner().invoke(cli, [*name.split(), "--help"]).output
    assert f"Example: shiftproof {name}" in " ".join(help_text.split())


@pytest.mark.parametrize("name", sorted(every_command()))
def test_every_command_is_in_the_docs(name: str) -> None:
    page = Path(__file__).parents[2] / "docs" / "command.md"
    assert f"shiftproof {name}" in page.read_text()
