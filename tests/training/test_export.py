"""Trained networks as ONNX files: the numbers of the module, without torch, and outputs that OOD detectors read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

import shiftproof as sp  # noqa: E402
from shiftproof.models.preprocessing import resized_to  # noqa: E402
from shiftproof.training import recipes  # noqa: E402
from shiftproof.training.networks.engine import Exported, to_onnx  # noqa: E402
from shiftproof.training.networks.modules import Start, open_network  # noqa: E402
from shiftproof.training.recipe import Recipe, torch_part  # noqa: E402
from shiftproof.types import Classes  # noqa: E402

CLASSES = Classes(("cat", "dog", "eel"))


def opened(spec: str, folder: Path, size: int, recipe: Recipe | None = None, **options: Any) -> tuple[Start, Any]:
    """A network with the branch of a recipe, and its ONNX file as a classifier."""
    start = open_network(spec, CLASSES, image_size=size)
    if recipe is not None and recipe.extend is not None:
        torch_part(recipe.extend)(start.network, len(CLASSES))
    (folder / "model.onnx").write_bytes(to_onnx(start.network, start.preprocessing))
    preprocess = resized_to(start.preprocessing, (size, size))
    return start, sp.load_model(f"onnx:{folder / 'model.onnx'}", preprocess=preprocess, classes=CLASSES.names, **options)


@pytest.mark.parametrize(("spec", "size"), [("scratch:resnet-8", 32), ("lite:0", 64)])
def test_an_exported_network_gives_what_the_module_gives(spec: str, size: int, tmp_path: Path) -> None:
    start, model = opened(spec, tmp_path, size)
    inputs = np.random.default_rng(0).normal(size=(5, 3, size, size)).astype(np.float32)
    with torch.no_grad():
        expected = start.network.eval()(torch.from_numpy(inputs))
    for batch in (inputs, inputs[:1]):  # any number of images
        outputs = model(batch, features=True)
        assert outputs.scores == pytest.approx(expected["logits"][: len(batch)].numpy(), abs=2e-5)
        assert outputs.features == pytest.approx(expected["features"][: len(batch)].numpy(), abs=2e-5)
    assert model.head is not None
    assert model.head.weights == pytest.approx(start.network.head.weight.detach().numpy())
    assert model.gives == "logits"
    assert "class-activation" in model.saliency


def test_a_confidence_branch_feeds_its_detector(tmp_path: Path) -> None:
    start, model = opened("scratch:resnet-8", tmp_path, 16, recipes.CONFIDENCE_BRANCH, extra_output="confidence")
    inputs = np.random.default_rng(0).normal(size=(4, 3, 16, 16)).astype(np.float32)
    with torch.no_grad():
        expected = start.network.eval()(torch.from_numpy(inputs))["confidence"].numpy()
    assert model(inputs).extra == pytest.approx(expected, abs=1e-5)


def test_a_rotation_head_is_run_on_four_rotations(tmp_path: Path) -> None:
    start, model = opened("scratch:resnet-8", tmp_path, 16, recipes.ROTATION_HEAD, extra_output="rotation", rotated=True)
    inputs = np.random.default_rng(0).normal(size=(4, 3, 16, 16)).astype(np.float32)
    turned = [torch.from_numpy(np.rot90(inputs, turns, (2, 3)).copy()) for turns in range(4)]
    with torch.no_grad():
        expected = np.concatenate([start.network.eval()(one)["rotation"].numpy() for one in turned], axis=1)
    assert model(inputs).extra == pytest.approx(expected, abs=1e-5)


def test_a_reject_class_becomes_the_log_odds_of_any_class_against_none(tmp_path: Path) -> None:
    start, model = opened("scratch:resnet-8", tmp_path, 16, recipes.REJECT_CLASS, extra_output="confidence")
    assert Exported(start.network).names == ["logits", "features", "confidence"]
    inputs = np.random.default_rng(0).normal(size=(4, 3, 16, 16)).astype(np.float32)
    with torch.no_grad():
        outputs = start.network.eval()(torch.from_numpy(inputs))
    reject = torch.softmax(torch.cat([outputs["logits"], outputs["reject"]], dim=1), dim=1)[:, -1].numpy()
    assert model(inputs).extra[:, 0] == pytest.approx(np.log((1 - reject) / reject), abs=1e-4)
