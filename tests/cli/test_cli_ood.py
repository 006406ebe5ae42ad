"""the OOD study as it is typed: what becomes of the options, and what it finds in a store."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pillow

import shiftproof as sp
from command import Said, Shiftproof
from shiftproof.cli.main import main
from shiftproof.datasets.image_list import ImageList
from shiftproof.errors import BadInput, MissingRuns, ShiftproofError, UnknownName
from shiftproof.models import random_network
from shiftproof.models.loaded import LoadedClassifier
from shiftproof.options import PredictionSettings
from shiftproof.runs.predict import check_stored, fill_studies
from shiftproof.runs.store import Store
from shiftproof.studies.ood.study import OODStudy
from shiftproof.studies.options import Context, detector_parameters
from shiftproof.types import Classifier, Condition, ModelRef
from toys import COLOURS, save_colour_network

MODEL = ModelRef("toy", "f" * 32)
Draw = Callable[..., Path]


@pytest.fixture
def hats(tmp_path: Path) -> Path:
    """Unlabelled pictures of no colour that the toys know, under the same names as the photos of one class."""
    folder, rng = tmp_path / "hats", np.random.default_rng(8)
    folder.mkdir()
    for number in range(6):
        pixels = np.clip(120 + rng.normal(0, 60, (24, 32, 3)), 0, 255).astype(np.uint8)
        Pillow.fromarray(pixels).save(folder / f"{number:03}.png")
    return folder


@pytest.fixture
def shiftproof(shiftproof: Shiftproof, tmp_path: Path) -> Shiftproof:
    """Runs the command on a small network."""
    save_colour_network(tmp_path / "colours.onnx")
    (tmp_path / "classes.txt").write_text("\n".join(sorted(COLOURS)))

    def run(command: str, images: object, *arguments: object) -> Said:
        model = ["--preprocess", "unit,resize=squash", "--classes", "classes.txt"] if command in ("run", "plan") else []
        return shiftproof(command, "colours.onnx" if model else "colours", images, *model, *arguments)

    return run


def made(images: ImageList, tmp_path: Path, **options: Any) -> Any:
    return assembled(MODEL, images, tmp_path, **{"edition": "imagenet-224", **options})


def assembled(model: Any, images: ImageList, tmp_path: Path, **options: Any) -> Any:
    return sp.OODOptions(**options).assemble(OODStudy, [model], images, Context(Store(tmp_path / "runs")))


def test_sets_detectors_and_parameters_are_taken_as_typed(draw_photos: Draw, hats: Path, tmp_path: Path) -> None:
    images = sp.open_dataset(draw_photos(2))
    bench = made(
        images, tmp_path, ood=(str(hats), f"caps={shutil.copytree(hats, tmp_path / 'b=c')}"),
        shifted=(f"drawn={draw_photos(2, 'sketches')}", "fog:3", "contrast:1"), training=str(draw_photos(3, "more")),
        ood_detectors=("energy", "msp+knn"), preset="openood", set=("knn.neighbours=5",), ood_baseline="entropy",
        rejected=0.9,
        distance_model="toy",
        edition="tiny-64", seed=4,
    )  # fmt: skip
    (study,) = bench.studies
    assert list(study.ood_datasets) == ["hats", "caps"]
    assert list(study.shifted) == ["drawn"]
    fog, contrast = study.conditions
    assert fog == Condition("fog", 3, edition="tiny-64", picture="model-size", output="raw", seed=4)
    assert str(contrast) == "contrast 1"
    assert study.training.name == "more"
    assert study.detectors == ("entropy", "energy", "msp+knn")
    assert (study.preset, study.baseline, study.rejected) == ("openood", "entropy", 0.9)
    assert study.parameters == {"knn": {"neighbours": 5}}
    assert study.distance_model == MODEL
    assert study.keep == "logits"  # nothing of this model is stored, and it is not at hand
    assert [one.name for one in bench.datasets] == ["drawn", "hats", "caps", "more"]


def test_further_inside_sets_and_what_can_be_chosen_of_numbers_are_taken_as_typed(
    draw_photos: Draw, hats: Path, tmp_path: Path
) -> None:
    bench = made(
        sp.open_dataset(draw_photos(2)), tmp_path, ood=(str(hats),), id=(f"again={draw_photos(2, 'more')}",),
        tpr=0.9, risk=0.1, area="trapezoid", auroc_interval="bootstrap", distance_groups=7, pairs_at=(1, 99),
        disagree=("vim", "knn"),
        scores_at=(5,), examples=2,
    )  # fmt: skip
    (study,) = bench.studies
    assert [one.name for one in bench.datasets] == list(study.id_datasets) + list(study.ood_datasets) == ["again", "hats"]
    assert (study.tpr, study.risk, study.area, study.auroc_interval) == (0.9, 0.1, "trapezoid", "bootstrap")
    assert (study.groups, study.pairs_at, study.disagree) == (7, (1, 99), ("vim", "knn"))
    assert (study.scores_at, study.examples) == ((5,), 2)
    plain = OODStudy([MODEL], sp.open_dataset(tmp_path / "photos"), random_networks={"toy": ()}, keep="logits")
    assert made(sp.open_dataset(tmp_path / "photos"), tmp_path).studies == [plain]


def test_values_are_numbers_words_or_nothing() -> None:
    typed = detector_parameters(["a.b=5", "a.c=0.5", "a.d=none", "a.e=True", "f.g=euclid"])
    assert typed == {"a": {"b": 5, "c": 0.5, "d": None, "e": True}, "f": {"g": "euclid"}}
    assert isinstance(typed["a"]["b"], int)


@pytest.mark.parametrize(
    ("options", "problem", "words"),
    [
        ({"ood": ("=hats",)}, BadInput, "--ood takes NAME=DIR"),
        ({"ood": ("hats=",)}, BadInput, "--ood takes NAME=DIR"),
        ({"ood": ("hats=nowhere",)}, ShiftproofError, "nowhere"),
        ({"ood": ("hats", "hats")}, BadInput, "two datasets of --ood are called hats"),
        ({"shifted": ("fogg:3",)}, UnknownName, "did you mean fog"),
        ({"shifted": ("fog:7",)}, BadInput, "severity should be 1 to 5"),
        ({"shifted": ("fog:3", "fog:3")}, BadInput, "given twice: fog 3"),
        ({"training": "nowhere"}, ShiftproofError, "nowhere"),
        ({"ood_detectors": ("msp", "enrgy")}, UnknownName, "did you mean energy"),
        ({"ood_detectors": ()}, BadInput, "expected names of OOD detectors"),
        ({"set": ("knn.neighbors=5",)}, UnknownName, "did you mean neighbours"),
        ({"set": ("neighbours=5",)}, BadInput, "as knn.neighbours=50"),
        ({"set": ("knn.neighbours=5", "knn.neighbours=6")}, BadInput, "given twice"),
        ({"set": ("knn.neighbours=many",)}, BadInput, "neighbours of knn should be a whole number, got 'many'"),
        ({"set": ("knn.neighbours=2.5",)}, BadInput, "neighbours of knn should be a whole number, got 2.5"),
        ({"set": ("vim.dimension=half",)}, BadInput, "dimension of vim should be a whole number or none"),
        ({"set": ("odin.temperature=none",)}, BadInput, "temperature of odin should be a number, got None"),
        ({"set": ("openmax.distance=cosine",)}, BadInput, "distance of openmax should be eucos or euclidean"),
        ({"preset": "opening"}, UnknownName, "openood"),
        ({"id": ("hats",), "ood": ("hats",)}, BadInput, "given twice: hats"),
        ({"pairs_at": (0, 101)}, BadInput, "pairs at should be some of 0 to 100"),
        ({"disagree": ("vim",)}, BadInput, "--disagree takes two OOD detectors, as vim,knn; got 'vim'"),
        ({"disagree": ("vim", "kn")}, UnknownName, "did you mean knn"),
        ({"random_networks": 1, "random_fan": "out"}, MissingRuns, "no toy redrawn 1 fan out, as made of this model"),
        ({"odin_eps": 0.1, "odin_normalised": True}, MissingRuns, "no toy odin 0.1 normalised, as made of this model"),
        ({"random_networks": 1}, MissingRuns, "no toy redrawn 1, as made of this model with these options, is stored"),
        ({"odin_eps": 0.1}, MissingRuns, "no toy odin 0.1, as made of this model with these options, is stored"),
    ],
)
def test_a_slip_is_told_at_once(
    draw_photos: Draw, hats: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: Any, problem: Any, words: str
) -> None:
    monkeypatch.chdir(hats.parent)
    with pytest.raises(problem, match=words):
        made(sp.open_dataset(draw_photos(1)), tmp_path, **options)


def test_ood_images_are_for_the_study_of_them_and_accuracy_comes_beside_it(
    shiftproof: Shiftproof, draw_photos: Draw, hats: Path
) -> None:
    photos, named = draw_photos(4), ("--studies", "ood", "--json", "--quiet")
    code, out, err = shiftproof("run", photos, "--ood", hats, *named)
    assert code == 0, err
    metrics = {found["metric"] for found in json.loads(out)["findings"] if found["kind"] == "Measurement"}
    assert {"top1_accuracy", "auroc", "fpr_at_tpr", "shift_auroc"} <= metrics
    code, out, err = shiftproof("run", photos, "--id", draw_photos(3, "more"), "--ood-detectors", "msp", *named)
    assert code == 0, err
    id_sets = [one["about"]["id"] for one in json.loads(out)["findings"] if one.get("metric") == "id_accuracy"]
    assert id_sets == ["photos", "more"]
    code, _, err = shiftproof("run", photos, "--ood", hats, "--studies", "accuracy")
    assert (code, err.count("\n")) == (1, 1)
    assert "--ood: only the study ood uses these" in err


def test_random_networks_are_planned_run_and_found_again(shiftproof: Shiftproof, draw_photos: Draw, hats: Path) -> None:
    typed = ["--ood", hats, "--shifted", "contrast:5", "--training", draw_photos(8, "more"), "--random-networks", 2]
    asked = [draw_photos(6), "--studies", "ood", "--edition", "tiny-64", *typed, "--json"]
    code, out, err = shiftproof("plan", *asked)
    assert code == 0, err
    planned = [(row["model"], row["dataset"], row["condition"], row["to do"]) for row in json.loads(out)]
    sets = [("photos", "clean", 18), ("photos", "contrast 5", 18), ("hats", "clean", 6), ("more", "clean", 24)]
    models = ["colours", "colours redrawn 1", "colours redrawn 2"]
    assert planned == [(model, *one) for model in models for one in sets]
    code, out, err = shiftproof("run", *asked, "--quiet")
    assert code == 0, err
    code, again, err = shiftproof("measure", *asked)
    assert code == 0, err
    ran, measured = json.loads(out), json.loads(again)
    assert ran["findings"] == measured["findings"]
    found = [one for one in ran["findings"] if one.get("metric") == "random_network_auroc"]
    assert {(one["about"]["network"], one["about"]["shift"]) for one in found} == {
        (network, shift) for network in (1, 2) for shift in ("contrast 5", "hats")
    }
    assert {"knn", "vim", "mahalanobis"} <= {one["about"]["ood_detector"] for one in found}
    assert any(reason.startswith("confidence on colours: ") for reason in ran["skipped"])


def test_networks_made_of_another_model_by_the_same_name_are_not_taken(draw_photos: Draw, tmp_path: Path) -> None:
    save_colour_network(tmp_path / "colours.onnx")
    model = sp.load_model(str(tmp_path / "colours.onnx"), preprocess="unit,resize=squash", classes=sorted(COLOURS))
    images, network = sp.open_dataset(draw_photos(1)), random_network(model, 1)
    sp.predict(network, images, store=tmp_path / "runs", workers=0)
    (drawn,) = assembled(model, images, tmp_path, random_networks=1, random_fan="out").companions
    assert drawn.ref == random_network(model, 1, fan="out").ref != network.ref
    (study,) = assembled(model.ref, images, tmp_path, random_networks=1).studies
    assert network.ref in {run.model for run in study.runs()}
    namesake = ModelRef("colours", "f" * 32)
    with pytest.raises(MissingRuns, match="no colours redrawn 1, as made of this model"):
        assembled(namesake, images, tmp_path, random_networks=1)


def test_the_headline_of_every_detector_is_printed(shiftproof: Shiftproof, draw_photos: Draw, hats: Path) -> None:
    photos, others = draw_photos(4), shutil.copytree(hats, hats.parent / "caps")
    typed = ["--studies", "ood", "--ood-detectors", "msp,energy", "--quiet", "--verbose"]
    code, out, err = shiftproof("run", photos, *typed, "--ood", hats, "--ood", others)
    assert code == 0, err
    rows = [line.split()[2:5] for line in out.splitlines() if " AUROC" in line]  # and not "(AUROC)" of the scorecard
    assert rows == [[goal, name, "AUROC"] for goal in ("new-class", "failure") for name in ("msp", "energy")]
    assert "warning: 6 images of hats are in caps too" in err


def test_only_some_classes_are_measured(shiftproof: Shiftproof, tmp_path: Path) -> None:
    kinds = {"n02119789": "blue", "n02100735": "green", "n02110185": "red"}
    for wnid, colour in kinds.items():
        (tmp_path / "photos" / wnid).mkdir(parents=True)
        for number in range(3):
            Pillow.new("RGB", (24, 24), COLOURS[colour]).save(tmp_path / "photos" / wnid / f"{number}.png")
    (tmp_path / "classes.txt").write_text("\n".join(kinds))
    (tmp_path / "two.txt").write_text("n02119789\nn02110185\n")
    code, out, err = shiftproof("run", "photos", "--only-classes", "two.txt", "--studies", "accuracy", "--json", "--quiet")
    assert code == 0, err
    (accuracy,) = [one for one in json.loads(out)["findings"] if one.get("metric") == "top1_accuracy"]
    assert (accuracy["images"], accuracy["about"]["dataset"]) == (6, "photos, 2 classes")
    code, _, err = shiftproof("run", "photos", "--only-classes", "imagenet-a", "--studies", "accuracy")
    assert (code, "no image of the 200 classes" in err) == (1, True)


def test_images_are_measured_among_the_classes_above_their_own(shiftproof: Shiftproof, tmp_path: Path) -> None:
    kinds = {"n02119789": "blue", "n02100735": "green", "n02110185": "red"}  # a fox, and two dogs
    for wnid, colour in kinds.items():
        (tmp_path / "photos" / wnid).mkdir(parents=True)
        Pillow.new("RGB", (24, 24), COLOURS[colour]).save(tmp_path / "photos" / wnid / "0.png")
    (tmp_path / "classes.txt").write_text("n03100240\nn02124075\nn02084071\n")  # blue is a convertible, red a dog
    code, out, err = shiftproof("run", "photos", "--coarse-classes", "coco", "--studies", "accuracy", "--json")
    assert code == 0, err
    assert "note: 2 of 3 images are of 1 of the 80 coarse classes" in err
    (accuracy,) = [one for one in json.loads(out)["findings"] if one.get("metric") == "top1_accuracy"]
    assert (accuracy["value"], accuracy["images"], accuracy["about"]["dataset"]) == (0.5, 2, "photos, 1 coarse classes")


def test_sets_with_the_same_names_are_told_apart_and_outside_labels_need_not_be_known(
    colour_model: Classifier, draw_photos: Draw, tmp_path: Path
) -> None:
    """Shifted photos are copies under the same names, painted over; OOD ones have classes of their own."""
    photos = draw_photos(5)
    painted, ood_set = (shutil.copytree(photos, tmp_path / name) for name in ("painted", "ood"))
    for path in painted.rglob("*.png"):
        with Pillow.open(path) as picture:
            Pillow.blend(picture.convert("RGB"), Pillow.new("RGB", picture.size, (0, 90, 0)), 0.5).save(path)
    for colour in COLOURS:
        (ood_set / colour).rename(ood_set / f"not {colour}")
    sets = {name: sp.open_dataset(tmp_path / name) for name in ("photos", "painted", "ood")}
    study = OODStudy([colour_model], sets["photos"], shifted={"painted": sets["painted"]}, ood_datasets={"ood": sets["ood"]})
    store = Store(tmp_path / "runs")
    fill_studies(colour_model, [study], sets.values(), store=store, settings=PredictionSettings(workers=0))
    results = sp.measure(study, store=store)

    def auroc(**about: str) -> float:
        (found,) = [
            one.value
            for one in results.measurements
            if one.metric in ("auroc", "shift_auroc") and about.items() <= one.about.items()
        ]
        return found

    # the OOD images are the very same pictures, so every detector is blind; the painted ones are all greener
    assert auroc(goal="new-class", ood_detector="msp", id="photos", ood="ood") == 0.5
    assert auroc(ood_detector="msp", shift="painted") != 0.5
    assert "15 images of photos are in ood too, which biases the numbers" in results.warnings
    assert [card.name for card in results.datasets] == ["photos", "painted", "ood"]


def test_a_class_that_the_model_lacks_is_read_alike_in_every_set(
    shiftproof: Shiftproof, draw_photos: Draw, hats: Path
) -> None:
    """Photos of pink, which no answer can get right, stand inside or among the training images, but not in both."""
    photos, more = draw_photos(4), draw_photos(6, "more")
    pink = shutil.copytree(hats, more.parent / "pink")
    typed = ["--studies", "ood", "--ood", hats, "--unmatched", "wrong", "--json", "--quiet"]
    for place, mistakes in ((more / "pink", 0), (photos / "pink", 6)):
        pink = pink.rename(place)
        code, out, err = shiftproof("run", photos, "--training", more, *typed)
        assert code == 0, err
        failures = [
            one["images"]
            for one in json.loads(out)["findings"]
            if one.get("metric") == "auroc" and one["about"]["goal"] == "failure"
        ]
        assert set(failures) == {12 + mistakes + 6}


def test_a_choice_of_classes_needs_an_inside_set_that_has_some(
    shiftproof: Shiftproof, draw_photos: Draw, hats: Path
) -> None:
    caps = shutil.copytree(hats, hats.parent / "caps")
    typed = ["--studies", "ood", "--training", draw_photos(4), "--ood", hats, "--scored", "subset", "--quiet"]
    code, _, err = shiftproof("run", caps, *typed)
    assert (code, "caps has no labels, so photos cannot be read among its classes" in err) == (1, True)


COLOUR_MODULE = """
from torch import nn

def colours():
    network = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 3))
    network[2].weight.data = 20 * network[2].weight.data.new_tensor([[0, 0, 1], [0, 1, 0], [1, 0, 0]])
    network[2].bias.data.zero_()
    return network
"""


def test_odin_moves_inputs_of_torch_models_and_others_are_told_that_they_cannot(
    shiftproof: Shiftproof, draw_photos: Draw, hats: Path, tmp_path: Path
) -> None:
    photos, typed = draw_photos(4), ["--studies", "ood", "--ood", hats, "--odin-eps", 0.05, "--json"]
    code, _, err = shiftproof("run", photos, *typed)
    assert (code, "colours gives no gradients" in err) == (1, True)
    pytest.importorskip("torch")
    (tmp_path / "network.py").write_text(COLOUR_MODULE)
    (tmp_path / "colours.onnx").unlink()
    model = sp.load_model(
        f"torch:{tmp_path}/network.py:colours", preprocess="unit,resize=squash,size=16", classes=sorted(COLOURS)
    )
    images, options = sp.open_dataset(photos), {"ood": (str(hats),), "odin_eps": 0.05, "set": ("odin.temperature=7",)}
    bench = assembled(model, images, tmp_path, **options)
    (moved,) = bench.companions
    assert isinstance(moved, LoadedClassifier)
    assert moved.notes[-1].endswith("at temperature 7")  # of the detector, which makes scores of these answers
    assert "(divided by std)" in moved.notes[-1]
    (otherwise,) = assembled(model, images, tmp_path, **options, odin_normalised=True).companions
    assert isinstance(otherwise, LoadedClassifier)
    assert "(not divided by std)" in otherwise.notes[-1]
    store, sets = Store(tmp_path / "runs"), [images, *bench.datasets]
    for one in (model, moved):
        fill_studies(one, bench.studies, sets, store=store, settings=PredictionSettings(workers=0))
    results = sp.measure(bench.studies, store=store)
    measured = {one.about["ood_detector"]: one for one in results.measurements if one.metric == "auroc"}
    assert "inputs colours odin 0.05" in measured["odin_eps"].convention["parameters"]


def test_distance_may_be_measured_by_a_model_of_other_classes(
    colour_model: Classifier, draw_photos: Draw, hats: Path, tmp_path: Path
) -> None:
    """A ruler that tells light from dark knows no colour by name."""
    ruler = sp.wrap_model(
        lambda inputs: (np.zeros((len(inputs), 2)), np.asarray(inputs, np.float32).mean(axis=(1, 3))),
        name="ruler", version="1", class_names=["light", "dark"], size=(16, 16), preprocess="squash,mean=0,std=1",
        has_features=True,
    )  # fmt: skip
    images, ood_set = sp.open_dataset(draw_photos(4)), sp.open_dataset(hats)
    study = OODStudy([colour_model], images, ood_datasets={"hats": ood_set}, detectors=["msp"], distance_model=ruler)
    store = Store(tmp_path / "runs")
    for model in (colour_model, ruler):
        fill_studies(model, [study], [images, ood_set], store=store, settings=PredictionSettings(workers=0))
    check_stored([study], [images, ood_set], store=store, besides=[colour_model.ref])
    results = sp.measure(study, store=store)
    (pairs,) = [one for one in results.galleries if one.name == "nearest_pairs"]
    assert "nearest it for ruler" in pairs.title
    assert results.skipped == ()


def test_answers_that_another_model_never_gave_are_missed_before_the_work_begins(
    colour_model: Classifier, draw_photos: Draw, hats: Path, tmp_path: Path
) -> None:
    images, ood_set = sp.open_dataset(draw_photos(2)), sp.open_dataset(hats)
    study = OODStudy([colour_model], images, ood_datasets={"hats": ood_set}, distance_model=MODEL)
    with pytest.raises(MissingRuns, match=r"toy on photos .clean.: 6 of 6 images have no prediction"):
        check_stored([study], [images, ood_set], store=Store(tmp_path / "runs"), besides=[colour_model.ref])


@pytest.mark.real
def test_real_photos_go_through_the_command(
    real_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("onnxruntime")
    photos = sorted((real_data / "ilsvrc-sample-1000").glob("*.jpg"))[::25]
    id_set, hats = tmp_path / "id", real_data / "ood-clothing" / "test" / "hat"
    id_set.mkdir()
    for photo in photos:
        shutil.copy(photo, id_set)
    monkeypatch.chdir(tmp_path)
    typed = ["run", "lite:0", str(id_set), "--ood", f"hats={hats}", "--shifted", "gaussian_blur:5"]
    monkeypatch.setattr(sys, "argv", ["shiftproof", *typed, "--studies", "ood", "--json", "--quiet"])
    with pytest.raises(SystemExit, match="0"):
        main()
    results = json.loads(capsys.readouterr().out)
    aurocs = {
        (one["about"]["goal"], one["about"]["ood_detector"]): one["value"]
        for one in results["findings"]
        if one.get("metric") == "auroc" and one["about"]["id"] == "id"
    }
    # hats are not among the 1000 classes: any detector worth its name sees it, and mistakes are less sure than the rest
    assert aurocs["new-class", "msp"] > 0.6
    assert aurocs["failure", "msp"] > 0.7
    assert {"energy", "max_cosine", "gradnorm", "ash_s"} <= {detector for _, detector in aurocs}
    assert sum("none were given (--training)" in reason for reason in results["skipped"]) >= 9
    assert (tmp_path / "report.html").stat().st_size > 100_000
