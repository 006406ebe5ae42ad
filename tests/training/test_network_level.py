"""Networks trained by `sp.train` and the command: folders that open without torch, and outputs that detectors read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning_fabric", reason="lightning-fabric is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from safetensors import numpy as tensors

import shiftproof as sp
from command import Shiftproof
from shiftproof.bench.grid import slug
from shiftproof.errors import BadInput
from shiftproof.models.loaded import LoadedClassifier
from shiftproof.models.options import ModelOptions
from shiftproof.ood.scores import confidence, rotation
from shiftproof.training.networks.at_test_time import in_torch
from shiftproof.training.networks.engine import ClassifierCourse
from training.small_jobs import SmallJobs


@pytest.fixture
def train(small_jobs: SmallJobs, tmp_path: Path) -> Any:
    """Trains a small network on the pictures of three colours."""

    def trained(output: str, recipe: str = "baseline", model: str = "scratch:resnet-8", **options: Any) -> Any:
        said = {"epochs": 1, "batch_size": 8, "learning_rate": 0.05, "image_size": 16} | options
        return sp.train(
            model,
            small_jobs.folder / "training",
            tmp_path / output,
            options=sp.TrainOptions(level="network", recipe=recipe, **said),
            store=tmp_path / "runs",
            model_options=sp.ModelSettings(preprocess="squash,size=12") if model.startswith("torch:") else None,
        )

    return trained


def weights(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = tensors.load_file(folder / "weights.safetensors")
    return found


def test_a_trained_network_opens_by_its_folder_without_torch(train: Any, tmp_path: Path) -> None:
    trained = train("better", epochs=3)
    assert sorted(one.name for one in trained.folder.iterdir()) == ["model.onnx", "training.json", "weights.safetensors"]
    told = json.loads((trained.folder / "training.json").read_text())
    assert [row["epoch"] for row in told["curves"]] == [1, 2, 3]
    assert told["source"]["spec"] == "scratch:resnet-8"
    assert set(told["classes"]["names"]) == {"blue", "green", "red"}
    code = (
        "import sys, numpy as np, shiftproof as sp\n"
        f"model = sp.load_model({str(trained.folder)!r})\n"
        "print(model(np.zeros((2, 3, 16, 16), np.float32), features=True).features.shape, 'torch' in sys.modules)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "(2, 64) False"
    results = sp.run(str(trained.folder), tmp_path / "validation", studies=["accuracy"], store=tmp_path / "runs")
    (accuracy,) = (one for one in results.measurements if one.metric == "top1_accuracy")
    assert 0 <= accuracy.value <= 1


def test_a_confidence_branch_and_a_rotation_head_feed_their_detectors_without_options(train: Any, tmp_path: Path) -> None:
    for recipe, score in (("confidence-branch", confidence), ("rotation-head", rotation)):
        trained = train(recipe, recipe)
        model = sp.load_model(str(trained.folder))
        predictions = sp.predict(model, tmp_path / "validation", store=tmp_path / "runs", keep="logits")
        scores = score(predictions)
        assert scores.shape == (18,)
        assert np.isfinite(scores).all()


def test_wise_ft_goes_from_the_weights_before_to_those_after(train: Any) -> None:
    plain, none, half, all_ = (
        train(f"at-{name}", name, epochs=2) for name in ("lp-ft", *(f"lp-ft+wise-ft:{a}" for a in (0, 0.5, 1.0)))
    )
    after, before, between, again = (weights(one.folder) for one in (plain, none, half, all_))
    assert all(np.array_equal(again[name], array) for name, array in after.items())
    assert not np.array_equal(before["head.weight"], after["head.weight"])
    for name, array in between.items():
        if array.dtype.kind == "f":
            assert array == pytest.approx((before[name] + after[name]) / 2, abs=1e-6)


def test_in_a_grid_what_differs_by_the_weights_at_the_end_is_trained_once(
    train: Any, small_jobs: SmallJobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[int] = []
    learn = ClassifierCourse.learn

    def counted(self: ClassifierCourse, *given: Any) -> None:
        steps.append(self.job.seed)
        learn(self, *given)

    monkeypatch.setattr(ClassifierCourse, "learn", counted)
    recipes = ("lp-ft", "lp-ft+wise-ft:0.5", "lp-ft+soup", "cutout")
    said: dict[str, Any] = {"epochs": 2, "batch_size": 8, "learning_rate": 0.05, "image_size": 16, "seeds": 2}
    sp.recipes(
        "scratch:resnet-8",
        small_jobs.folder / "training",
        options=sp.GridOptions(
            level="network", recipes=",".join(recipes), models=str(tmp_path / "grid"), corruptions=("fog",), **said
        ),
        store=tmp_path / "runs",
    )
    courses = 2  # of lp-ft, and of cutout
    one = len(steps) // (courses * 2)
    assert steps == [0] * one + [1] * one + [0] * one + [1] * one
    assert {path.name for path in (tmp_path / "grid").iterdir()} == {*(slug(name) for name in recipes), "courses"}
    assert [*(tmp_path / "grid" / "courses").iterdir()] == []
    ends, halves = (weights(tmp_path / "grid" / slug(name) / "seed-1") for name in recipes[:2])
    alone, without = (
        weights(tmp_path / "grid" / slug(recipes[2]) / "seed-1"),
        json.loads((tmp_path / "grid" / slug(recipes[1]) / "seed-1" / "training.json").read_text()),
    )
    assert all(np.array_equal(alone[name], array) for name, array in ends.items())
    assert not np.array_equal(ends["head.weight"], halves["head.weight"])
    assert len(without["curves"]) == 2


def test_a_soup_is_made_of_the_networks_of_several_seeds(train: Any) -> None:
    trained = train("soup", "soup", seeds=2, model="scratch:resnet-8")
    assert [part.folder.name for part in trained.parts] == ["seed-0", "seed-1", "joined"]
    joined, *parts = (weights(trained.folder / name) for name in ("joined", "seed-0", "seed-1"))
    candidates = [*(part["head.weight"] for part in parts), (parts[0]["head.weight"] + parts[1]["head.weight"]) / 2]
    assert any(np.allclose(joined["head.weight"], one, atol=1e-6) for one in candidates)
    assert not (trained.folder / "joined" / "checkpoints").exists()


def test_what_was_trained_is_told_as_seen(train: Any) -> None:
    trained = train("mixed", "mixup")
    assert sp.load_model(str(trained.folder)).seen.augmentations == ("mixup",)


def test_the_command_trains_a_network_and_tells_of_every_epoch(small_jobs: SmallJobs, shiftproof: Shiftproof) -> None:
    said = shiftproof(
        *("train", "scratch:resnet-8", "training", "--level", "network", "--epochs", "2", "--batch-size", "8"),
        *("--learning-rate", "0.05", "--image-size", "16", "--recipe", "ema", "-o", "better"),
        *("--schedule", "step", "--milestones", "1"),
    )
    assert said.code == 0, said.err
    first, second = [line for line in said.err.splitlines() if line.startswith("epoch ")]
    assert first.startswith("epoch 1 of 2: loss ")
    assert first.endswith("learning rate 0.05")
    assert second.endswith("learning rate 0.005")
    assert said.out.strip().splitlines()[-1].endswith("better")


def test_a_device_that_torch_lacks_is_told_whatever_is_trained(train: Any, tmp_path: Path) -> None:
    folder = train("first", "baseline").folder
    for model, device in (("scratch:resnet-8", "cuda:99"), (str(folder), "cuda:99"), (str(folder), "cuda:x")):
        with pytest.raises(BadInput, match=f"torch cannot train on device '{device}': --device is cpu"):
            sp.train(
                model,
                tmp_path / "training",
                tmp_path / "out",
                options=sp.TrainOptions(level="network", learning_rate=0.1),
                store=tmp_path / "runs",
                model_options=sp.ModelSettings(device=device),
            )
    with pytest.raises(BadInput, match="torch cannot use device 'cuda:99'"):
        sp.load_model(str(folder), adapt="bn-adapt", device="cuda:99")


def test_a_head_on_a_trained_network_adapts_without_trust(train: Any, tmp_path: Path) -> None:
    folder = train("first", "baseline").folder
    options = sp.TrainOptions(recipe="linear-probe")
    head = sp.train(str(folder), tmp_path / "training", tmp_path / "head", options=options, store=tmp_path / "runs").folder
    plain = sp.load_model(str(head))
    assert isinstance(plain, LoadedClassifier)
    assert "bn-adapt" in sp.load_model(str(head), adapt="bn-adapt:4").ref.name
    inputs = np.random.default_rng(0).normal(size=(4, 3, 16, 16)).astype(np.float32)
    rebuilt = in_torch(str(head), plain, ModelOptions())
    np.testing.assert_allclose(rebuilt(inputs).scores, plain(inputs).scores, atol=1e-4)


def test_a_network_is_trained_from_a_name(small_jobs: SmallJobs, tmp_path: Path) -> None:
    model = sp.wrap_model(lambda inputs: inputs.mean(axis=(2, 3)), name="mine", version="1", class_names=["a", "b", "c"])
    with pytest.raises(BadInput, match="a network is trained from the name of its model"):
        sp.train(
            model, tmp_path / "training", tmp_path / "out", options=sp.TrainOptions(level="network"), store=tmp_path / "runs"
        )
