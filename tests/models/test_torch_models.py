import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shiftproof.errors import BadInput
from shiftproof.models import load_model
from shiftproof.models.loaded import LoadedClassifier

torch = pytest.importorskip("torch", reason="torch is not installed")

FACTORY = """
import torch
from torch import nn

def small():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Dropout(), nn.Linear(6, 5))

class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = small()
        self.other = nn.Linear(5, 5)

    def forward(self, images):
        logits = self.body(images)
        return logits + self.other(logits), "and more"

class Named(nn.Module):
    def __init__(self):
        super().__init__()
        self.head, self.pool = nn.Linear(3, 5), nn.AdaptiveAvgPool2d(1)

    def forward(self, images):
        return {"logits": self.head(self.pool(images).flatten(1)).softmax(1)}

def no_module():
    return 3
"""


@pytest.fixture
def factory(tmp_path: Path) -> str:
    (tmp_path / "networks.py").write_text(FACTORY)
    return f"torch:{tmp_path / 'networks.py'}"


@pytest.fixture
def module(factory: str) -> Any:
    names: dict[str, Any] = {}
    exec(FACTORY, names)
    return names["small"]().eval()


def load(spec: str, **options: Any) -> LoadedClassifier:
    model = load_model(spec, **{"classes": list("abcde"), "preprocess": "imagenet,size=16", **options})
    assert isinstance(model, LoadedClassifier)
    return model


def batch(images: int = 3) -> Any:
    return np.random.default_rng(1).normal(size=(images, 3, 16, 16)).astype(np.float32)


def check(model: LoadedClassifier, module: Any) -> None:
    """Scores are the module's own, features are what its last layer sees, the head joins them."""
    scores, features, _ = model(batch(), features=True)
    with torch.inference_mode():
        assert np.abs(scores - module(torch.from_numpy(batch())).numpy()).max() < 1e-5
    assert features is not None
    assert features.shape == (3, 6)
    assert model.head is not None
    assert np.abs(features @ model.head.weights.T + model.head.bias - scores).max() < 1e-5


def test_a_factory_in_a_file_becomes_a_classifier(factory: str, module: Any) -> None:
    check(load(f"{factory}:small"), module)


def test_a_factory_in_a_module_of_this_folder_is_found(
    factory: str, module: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    check(load("torch:networks:small"), module)


def test_weights_fill_the_factorys_network(factory: str, module: Any, tmp_path: Path) -> None:
    from safetensors.torch import save_file

    torch.nn.init.normal_(module[6].weight)
    state = module.state_dict()
    torch.save({"state_dict": {f"module.{name}": value for name, value in state.items()}}, tmp_path / "w.pth")
    save_file(state, tmp_path / "w.safetensors")
    for file in ("w.pth", "w.safetensors"):
        check(load(f"{factory}:small", weights=str(tmp_path / file)), module)
    plain = load(f"{factory}:small").ref
    assert load(f"{factory}:small", weights=str(tmp_path / "w.pth")).ref.fingerprint != plain.fingerprint
    assert load(f"{factory}:small").ref == plain


def test_weights_that_do_not_fit_are_named(factory: str, tmp_path: Path) -> None:
    torch.save({"other.weight": torch.zeros(3)}, tmp_path / "w.pth")
    with pytest.raises(BadInput, match="do not fit the module: Missing key"):
        load(f"{factory}:small", weights=str(tmp_path / "w.pth"))


@pytest.mark.parametrize("batch_axis", ["free", "fixed"])
def test_an_exported_program_shows_its_features(module: Any, tmp_path: Path, batch_axis: str) -> None:
    shapes = ({0: torch.export.Dim("images")},) if batch_axis == "free" else None
    program = torch.export.export(module, (torch.zeros(2, 3, 16, 16),), dynamic_shapes=shapes)
    torch.export.save(program, tmp_path / "small.pt2")
    model = load(f"torch:{tmp_path / 'small.pt2'}", preprocess="imagenet", trust=True)
    assert model.fixed_batch_size == (None if batch_axis == "free" else 2)
    check(model, module)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_torchscript_answers_but_hides_its_features(module: Any, tmp_path: Path) -> None:
    torch.jit.save(torch.jit.trace(module, torch.zeros(1, 3, 16, 16)), tmp_path / "small.pt")
    model = load(f"torch:{tmp_path / 'small.pt'}", trust=True)
    with torch.inference_mode():
        assert np.abs(model(batch()).scores - module(torch.from_numpy(batch())).numpy()).max() < 1e-5
    assert model.head is None
    assert any("TorchScript hides" in note for note in model.notes)


def test_more_than_a_linear_layer_at_the_end_leaves_no_head_and_says_so(factory: str) -> None:
    model = load(f"{factory}:Pair")
    assert model.head is None
    assert any("more than the last linear layer" in note for note in model.notes)
    assert model(batch()).scores.shape == (3, 5)


def test_answers_with_names_and_probabilities_are_read(factory: str) -> None:
    model = load(f"{factory}:Named", gives="probabilities")
    assert model.gives == "probabilities"
    assert not any("probabilities" in note for note in model.notes)
    assert any("say gives=probabilities" in note for note in load(f"{factory}:Named").notes)
    assert np.allclose(model(batch()).scores.sum(axis=1), 1, atol=1e-5)
    assert model.head is not None


def test_features_can_be_taken_from_a_named_layer(factory: str) -> None:
    model = load(f"{factory}:small", features="3")
    features = model(batch(), features=True).features
    assert features is not None
    assert features.shape == (3, 6)
    assert model.head is None
    with pytest.raises(BadInput, match="no layer 'neck'"):
        load(f"{factory}:small", features="neck")


def test_dropout_and_batch_norm_are_in_evaluation_mode(factory: str) -> None:
    model = load(f"{factory}:small")
    assert np.array_equal(model(batch()).scores, model(batch()).scores)
    assert np.allclose(model(batch()).scores[:1], model(batch()[:1]).scores, atol=1e-5)


def test_channels_last_and_mixed_precision_give_nearly_the_same(factory: str) -> None:
    plain = load(f"{factory}:small")
    assert np.allclose(load(f"{factory}:small", channels_last=True)(batch()).scores, plain(batch()).scores, atol=1e-5)
    mixed = load(f"{factory}:small", precision="bfloat16")
    assert np.allclose(mixed(batch()).scores, plain(batch()).scores, atol=0.05)
    assert mixed.ref.fingerprint != plain.ref.fingerprint
    with pytest.raises(BadInput, match="precision should be one of"):
        load(f"{factory}:small", precision="float8")


def test_an_exported_program_with_stored_constants_is_read(module: Any, tmp_path: Path) -> None:
    class Centred(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.body, self.mean = module, torch.full((1, 3, 1, 1), 0.25)

        def forward(self, images: Any) -> Any:
            return self.body(images - self.mean)

    network = Centred().eval()
    torch.export.save(torch.export.export(network, (torch.zeros(2, 3, 16, 16),)), tmp_path / "centred.pt2")
    check(load(f"torch:{tmp_path / 'centred.pt2'}", preprocess="imagenet", trust=True), network)


def test_weights_alone_and_missing_things_are_named(factory: str, module: Any, tmp_path: Path) -> None:
    torch.save(module.state_dict(), tmp_path / "state.pt")
    for spec, answer in [
        (f"torch:{tmp_path / 'state.pt'}", "without the network they belong to; name that too: .* with --weights"),
        (f"torch:{tmp_path / 'none.pt'}", "there is no file"),
        (f"{factory}:large", "has no large"),
        (f"{factory}:no_module", "should give a torch module, got int"),
        ("torch:not_a_module_anywhere:small", "no Python module"),
        ("torch:small", "should be torch:MODULE:FACTORY"),
        ("torch::small", "should be torch:MODULE:FACTORY"),
        ("torch:.networks:small", "should be torch:MODULE:FACTORY"),
    ]:
        with pytest.raises(BadInput, match=answer):
            load(spec)
    with pytest.raises(BadInput, match="cannot use device 'warp'"):
        load(f"{factory}:small", device="warp")


def test_an_edited_file_is_read_anew_though_its_size_and_time_are_the_old_ones(tmp_path: Path) -> None:
    """Python's own bytecode cache knows a file by size and seconds alone."""
    path = tmp_path / "networks.py"
    for classes in (5, 6):
        layers = f"nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, {classes})"
        path.write_text(f"from torch import nn\ndef small():\n    return nn.Sequential({layers})\n")
        os.utime(path, (1_000_000_000, 1_000_000_000))
        model = load(f"torch:{path}:small", classes=list("abcdef"[:classes]))
        assert model(batch()).scores.shape == (3, classes)
    assert not (tmp_path / "__pycache__").exists()


def test_a_file_with_dataclasses_and_late_annotations_loads(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text(
        "from __future__ import annotations\nfrom dataclasses import dataclass\nfrom torch import nn\n"
        "@dataclass\nclass Sizes:\n    classes: int = 5\n"
        "def small():\n    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, Sizes().classes))\n"
    )
    assert load(f"torch:{tmp_path / 'torch.py'}:small")(batch()).scores.shape == (3, 5)
