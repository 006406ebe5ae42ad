"""Stored models by name: companions are no models, names have versions, and changes are whole or not at all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shiftproof as sp
from command import Shiftproof
from patience import PATIENCE, wait_until
from shiftproof.datasets.image_list import ImageList
from shiftproof.errors import BadInput, UnknownName
from shiftproof.models import perturbed_by_odin, random_network
from shiftproof.models.input_sizes import at_input_size
from shiftproof.models.loaded import LoadedClassifier
from shiftproof.runs.store import Store
from shiftproof.runs.stored_models import forget_model, rename_model, stored_models, version_named, versions
from shiftproof.types import Companion, ModelRef, Outputs
from toys import COLOURS, save_colour_network

Draw = Callable[..., Path]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "runs")


@pytest.fixture
def images(draw_photos: Draw) -> ImageList:
    return sp.open_dataset(draw_photos(2))


@pytest.fixture
def network(tmp_path: Path) -> Callable[..., LoadedClassifier]:
    save_colour_network(tmp_path / "colours.onnx")
    (tmp_path / "classes.txt").write_text("\n".join(sorted(COLOURS)))

    def load(name: str = "mine", preprocess: str = "unit,resize=squash") -> LoadedClassifier:
        model = sp.load_model(str(tmp_path / "colours.onnx"), name=name, preprocess=preprocess, classes=sorted(COLOURS))
        assert isinstance(model, LoadedClassifier)
        return model

    return load


class Slope:
    """Answers like a network and says how its answers change, so that ODIN can move its inputs."""

    def __init__(self, model: LoadedClassifier) -> None:
        self._answer = model.forward

    def __call__(self, inputs: Any, features: bool) -> Outputs:
        return self._answer(inputs, features)

    def gradient(self, inputs: Any, temperature: float) -> Any:
        return np.ones_like(inputs) / temperature


def companions_of(model: LoadedClassifier) -> list[LoadedClassifier]:
    sloping = replace(model, forward=Slope(model))
    moved = perturbed_by_odin(sloping, eps=0.002), perturbed_by_odin(sloping, eps=0.1, temperature=10.0, divide_by_std=False)
    return [random_network(model, 1), random_network(model, 2, fan="out"), *moved, at_input_size(model, 8, sizing="picture")]


def fill(store: Store, images: ImageList, *models: LoadedClassifier) -> None:
    for model in models:
        sp.predict(model, images, store=store, workers=0)


def as_before_marks(store: Store) -> None:
    """Takes from every model.json what older versions of the package did not write."""
    for path in store.root.glob("models/*/model.json"):
        plain = json.loads(path.read_text())
        del plain["companion"], plain["stored"], plain["checksum"]
        path.write_text(json.dumps(plain))


KINDS = ["redrawn", "redrawn", "odin", "odin", "input size"]


@pytest.mark.parametrize("older", [False, True])
def test_networks_made_of_a_model_are_marked_and_no_models(
    network: Callable[..., LoadedClassifier], images: ImageList, store: Store, older: bool
) -> None:
    model = network()
    fill(store, images, model, *companions_of(model))
    if older:
        as_before_marks(store)
    assert [one.ref for one in store.models()] == [model.ref]
    made = {one.ref: one.companion for one in store.models(companions=True) if one.companion}
    expected = {
        one.ref: Companion(kind, model.ref.fingerprint)  # type: ignore[arg-type]
        for one, kind in zip(companions_of(model), KINDS, strict=True)
    }
    assert made == expected
    (told,) = stored_models(store)
    assert (told["name"], told["runs"], told["rows"]) == ("mine", 1, 6)
    assert sorted(one["companion"] for one in told["companions"]) == sorted(KINDS)


def test_random_networks_whose_model_is_gone_are_still_no_models(
    network: Callable[..., LoadedClassifier], images: ImageList, store: Store
) -> None:
    random, moved = companions_of(network())[0], companions_of(network())[2]
    fill(store, images, random, moved)
    as_before_marks(store)
    assert store.models() == []
    assert [one.companion for one in store.models(companions=True)] == [Companion("odin", None), Companion("redrawn", None)]
    assert [(one["name"], one["companion"]) for one in stored_models(store)] == [
        ("mine odin 0.002", "odin"),
        ("mine redrawn 1", "redrawn"),
    ]


def test_a_model_that_is_only_called_like_a_companion_is_a_model(
    network: Callable[..., LoadedClassifier], images: ImageList, store: Store
) -> None:
    fill(store, images, network("mine"), network("mine redrawn 1", "unit"), network("mine at 8", "unit,channels=bgr"))
    as_before_marks(store)
    assert len(store.models()) == 3


@pytest.mark.parametrize("older", [False, True])
def test_compare_without_names_takes_models_alone(
    shiftproof: Shiftproof, network: Callable[..., LoadedClassifier], draw_photos: Draw, store: Store, older: bool
) -> None:
    photos = sp.open_dataset(draw_photos(3))
    sharp, swapped = network("sharp"), network("swapped", "unit,resize=squash,channels=bgr")
    fill(store, photos, sharp, swapped, *companions_of(sharp), *companions_of(swapped))
    if older:
        as_before_marks(store)
    said = shiftproof("compare", "photos", "--json")
    assert [card["name"] for card in json.loads(said.out)["models"]] == ["sharp", "swapped"]
    said = shiftproof("compare", "photos")
    assert "redrawn" not in said.out
    assert "odin" not in said.out
    # whoever asks for one by its name gets it
    named = json.loads(shiftproof("compare", "sharp", "sharp redrawn 1", "photos", "--json").out)
    assert [card["name"] for card in named["models"]] == ["sharp", "sharp redrawn 1"]
    assert [bool(card["companion"]) for card in named["models"]] == [False, True]


def test_a_corrected_preprocessing_is_a_new_version_and_the_newest_counts(
    shiftproof: Shiftproof, network: Callable[..., LoadedClassifier], draw_photos: Draw, store: Store
) -> None:
    photos = sp.open_dataset(draw_photos(3))
    wrong, right = network("mine", "unit,resize=squash,channels=bgr"), network("mine")
    fill(store, photos, network("other", "unit"), wrong, right)
    said = shiftproof("compare", "photos", "--json")
    assert said.code == 0, said.err
    found = json.loads(said.out)
    assert [(card["name"], card["fingerprint"]) for card in found["models"]] == [
        ("mine", right.ref.fingerprint),
        ("other", network("other", "unit").ref.fingerprint),
    ]
    older = f"mine@{wrong.ref.fingerprint[:8]}"
    assert f"{older} (stored 20" in said.err
    assert f"{older} (stored 20" in found["models"][0]["notes"][-1]
    assert "channels bgr" in said.err
    both = json.loads(shiftproof("compare", "mine", older, "photos", "--json").out)
    accuracies = {one["about"]["model"]: one["value"] for one in both["findings"] if one.get("metric") == "top1_accuracy"}
    assert accuracies == {"mine": 1.0, older: pytest.approx(1 / 3)}  # blue and red change places
    measured = json.loads(shiftproof("measure", older, "photos", "--studies", "accuracy", "--json").out)
    assert measured["models"][0]["fingerprint"] == wrong.ref.fingerprint
    # asked again, the older one is what the name means now, although there was nothing left to ask
    fill(store, photos, wrong)
    assert version_named("mine", store).model.ref == wrong.ref
    # a look at another version is no word on which counts
    assert shiftproof("measure", "colours.onnx", "photos", "--name", "mine", "--preprocess", "unit,resize=squash",
                      "--classes", "classes.txt", "--studies", "accuracy").code == 0  # fmt: skip
    assert version_named("mine", store).model.ref == wrong.ref


def test_versions_are_found_by_the_beginning_of_their_fingerprint(
    network: Callable[..., LoadedClassifier], images: ImageList, store: Store
) -> None:
    first, second = network("mine@home", "unit"), network("mine@home")
    fill(store, images, first, second)
    assert version_named("mine@home", store).ref == second.ref
    older = version_named(f"mine@home@{first.ref.fingerprint[:4]}", store)
    assert older.ref == ModelRef(f"mine@home@{first.ref.fingerprint[:8]}", first.ref.fingerprint)
    assert version_named(first.ref.fingerprint, store) == older
    with pytest.raises(UnknownName, match=r"did you mean mine@home\?"):
        version_named("mine@house", store)


def test_an_older_version_alone_with_answers_is_left_out_and_told(
    shiftproof: Shiftproof, network: Callable[..., LoadedClassifier], draw_photos: Draw, store: Store
) -> None:
    photos, others = sp.open_dataset(draw_photos(2)), sp.open_dataset(draw_photos(1, "others"))
    wrong, right = network("mine", "unit"), network("mine")
    fill(store, photos, wrong, network("a", "unit,channels=bgr"), network("b", "unit,resize=squash,channels=bgr"))
    fill(store, others, right)
    said = shiftproof("compare", "photos", "--json")
    assert [card["name"] for card in json.loads(said.out)["models"]] == ["a", "b"]
    assert f"mine@{wrong.ref.fingerprint[:8]} has predicted photos, but it is an older version" in said.err


def test_models_are_listed_renamed_and_forgotten(
    shiftproof: Shiftproof, network: Callable[..., LoadedClassifier], draw_photos: Draw, store: Store
) -> None:
    photos = sp.open_dataset(draw_photos(2))
    old, new, random = network("mine", "unit"), network("mine"), random_network(network("mine"), 1)
    fill(store, photos, old, new, random)
    sp.predict(new, photos, store=store, condition=sp.Condition("contrast", 1, edition="tiny-64"), workers=0)
    (listed, older) = json.loads(shiftproof("models", "--json").out)
    assert (listed["name"], listed["runs"], listed["rows"], listed["newest"]) == ("mine", 2, 12, True)
    assert (older["name"], older["rows"], older["newest"]) == (f"mine@{old.ref.fingerprint[:8]}", 6, False)
    assert [one["name"] for one in listed["companions"]] == ["mine redrawn 1"]
    table = shiftproof("models").out
    assert "resize squash" in table
    assert new.ref.fingerprint[:8] in table

    assert shiftproof("models", "rename", "mine", "yours", "--store", "runs").code == 0
    assert sorted(one.ref.name for one in store.models(companions=True)) == ["yours", "yours", "yours redrawn 1"]
    assert version_named("yours", store).model.ref.fingerprint == new.ref.fingerprint, "renaming is no asking"
    said = shiftproof("models", "--store", "nowhere", "rename", "yours", "mine")
    assert said.err == "shiftproof: no stored model called 'yours'; there are: none\n"

    said = shiftproof("models", "forget", "yours")
    assert (said.code, said.out) == (1, "")
    assert "yours has 2 versions; name one of" in said.err
    gone = json.loads(shiftproof("models", "forget", f"yours@{new.ref.fingerprint[:8]}", "--json").out)
    assert gone == {"forgotten": ["yours", "yours redrawn 1"]}
    assert [one.ref.fingerprint for one in store.models(companions=True)] == [old.ref.fingerprint]
    assert {of for _, of in store.folders_of_models()} == {old.ref.fingerprint}, (
        "their rows are gone, those of others are not"
    )
    assert not (store.root / ".forgotten").exists()
    assert not (store.root / "changes.json").exists()


def test_a_name_that_is_taken_is_refused(network: Callable[..., LoadedClassifier], images: ImageList, store: Store) -> None:
    fill(store, images, network("a"), network("b", "unit"))
    for taken, words in [
        ("b", "'b' is the name of another stored model"),
        (" ", "needs a name"),
        ("b@1c0ffee1", "looks like a version"),
    ]:
        with pytest.raises(BadInput, match=words):
            rename_model("a", taken, store)
    assert [one.name for one in versions(store)] == ["a", "b"]


SLOW = """
import sys, time
import numpy as np
import shiftproof as sp

def slow(inputs):
    time.sleep(0.2)
    return np.zeros((len(inputs), 3), np.float32)

model = sp.wrap_model(slow, name="mine", version="1", class_names=["blue", "green", "red"], size=(16, 16))
said = sp.predict(model, sp.open_dataset(sys.argv[1]), store=sys.argv[2], batch_size=1, workers=0)
print(len(said))
"""


def test_a_model_is_not_forgotten_while_another_process_stores_its_answers(
    draw_photos: Draw, store: Store, shiftproof: Shiftproof
) -> None:
    photos = draw_photos(10)
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, str(photos), str(store.root)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        wait_until(lambda: len(list(store.root.glob("rows/*/*.safetensors"))) > 2 or process.poll() is not None)
        said = shiftproof("models", "forget", "mine", "--store", store.root)
        assert process.poll() is None, "it is still predicting"
        assert (said.code, said.out) == (1, "")
        assert "another process is storing predictions of mine" in said.err
        told, problems = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, told.strip()) == (0, "30"), problems
    assert forget_model("mine", store) == ["mine"]
    assert list(store.folders_of_models()) == []
    assert store.models() == []


def test_a_process_that_was_killed_holds_no_model(draw_photos: Draw, store: Store) -> None:
    process = subprocess.Popen([sys.executable, "-c", SLOW, str(draw_photos(10)), str(store.root)])
    try:
        wait_until(lambda: len(store.models()) == 1 or process.poll() is not None)
    finally:
        process.kill()
        process.wait()
    assert forget_model("mine", store) == ["mine"]


KILLED = """
import os, shutil, signal, sys, traceback
from shiftproof.runs.store import Store
from shiftproof.runs.stored_models import forget_model, rename_model

def after(real, last):
    def step(*given, **named):
        global steps
        found = real(*given, **named)
        steps += 1
        if steps == last:
            os.kill(os.getpid(), signal.SIGKILL)
        return found
    return step

def change(folder, last):
    for name in ("rename", "replace", "unlink", "rmdir", "mkdir", "fsync"):
        setattr(os, name, after(getattr(os, name), last))
    store = Store(folder)
    forget_model("mine", store) if sys.argv[2] == "forget" else rename_model("mine", "yours", store)

steps, code = 0, -signal.SIGKILL
for last in range(1, 100):
    if code == -signal.SIGKILL:
        copy = shutil.copytree(sys.argv[1], f"{sys.argv[1]} {last}")
        if not (child := os.fork()):
            try:
                change(copy, last)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(code)
"""
"""Changes copies of a store in processes that are killed after one step, two, ... until one is not; prints how each ends."""


@pytest.mark.parametrize("what", ["forget", "rename"])
def test_a_change_that_is_killed_anywhere_is_whole_or_not_at_all(
    what: str, network: Callable[..., LoadedClassifier], images: ImageList, tmp_path: Path
) -> None:
    model = network("mine")
    fill(
        Store(tmp_path / "whole"),
        images,
        model,
        network("other", "unit"),
        random_network(model, 1),
        random_network(model, 2),
    )
    before = sorted(one.ref.name for one in Store(tmp_path / "whole").models(companions=True))
    names = {"yours", "yours redrawn 1", "yours redrawn 2"} if what == "rename" else set()
    after = sorted({"other", *names})
    ran = subprocess.run(
        [sys.executable, "-c", KILLED, tmp_path / "whole", what], capture_output=True, text=True, check=True
    )
    *killed, last = map(int, ran.stdout.split())
    assert last == 0, ran.stderr
    seen = set()
    for step in range(1, len(killed) + 2):
        copy = tmp_path / f"whole {step}"
        found = sorted(one.ref.name for one in Store(copy).models(companions=True))
        assert found in (before, after), f"half done after step {step}"
        rows = {of for _, of in Store(copy).folders_of_models()}
        assert len(rows) == (1 if found == after and what == "forget" else 4)
        assert not (copy / "changes.json").exists() or found == before
        seen.add(tuple(found))
    assert len(killed) >= 4
    assert seen == {tuple(after)}, "once it is written down it is done"


def test_a_change_that_was_not_written_whole_was_never_decided(
    network: Callable[..., LoadedClassifier], images: ImageList, store: Store
) -> None:
    fill(store, images, network("mine"))
    half = store.root / "changes.json"
    half.write_text('{"forget": ["')
    assert [one.ref.name for one in store.models()] == ["mine"]
    assert half.exists(), "another process may be writing it"
    os.utime(half, (0, 0))
    assert forget_model("mine", store) == ["mine"]
    assert not half.exists()
