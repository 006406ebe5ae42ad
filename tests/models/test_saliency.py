"""Where models look: three ways of finding out, held against each other and against networks worked out by hand."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from shiftproof.datasets.boxed.coco import open_coco
from shiftproof.errors import BadInput, UnknownName
from shiftproof.models import load_model, perturbed_by_odin, random_network, wrap_model
from shiftproof.models.saliency import method_for, saliency_maps

RNG = np.random.default_rng(5)
INPUTS = RNG.normal(size=(3, 3, 8, 8)).astype(np.float32)
CLASSES = np.array([[0, 4], [1, 1], [3, 2]])

TWINS = """
import torch
from torch import nn

def twin():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 5))

def certain():
    return nn.Sequential(twin(), nn.Softmax(1))

def flat():
    return nn.Sequential(nn.Flatten(), nn.Linear(192, 5))

class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.first, self.second, self.head = nn.Conv2d(3, 6, 3, padding=1), nn.Conv2d(6, 6, 3, padding=1), nn.Linear(6, 5)

    def forward(self, images):
        shown = self.first(images)
        return self.head((shown + self.second(shown)).mean((2, 3)))
"""


@pytest.fixture
def torch_model(tmp_path: Path) -> Any:
    pytest.importorskip("torch", reason="torch is not installed")
    (tmp_path / "twins.py").write_text(TWINS)

    def load(factory: str, **options: Any) -> Any:
        return load_model(f"torch:{tmp_path / 'twins.py'}:{factory}", preprocess="unit,size=8", **options)

    return load


@pytest.mark.parametrize(
    "variation",
    [
        {"head": "gemm"},
        {"head": "gemm-and-add"},
        {"head": "gemm-plain"},
        {"head": "matmul"},
        {"head": "quantised"},
        {"head": "pooled-conv"},
        {"head": "gemm", "ending": "LogSoftmax"},
        {"head": "conv"},
    ],
    ids=str,
)
def test_the_mean_of_a_class_activation_map_and_the_bias_are_the_logit(make_onnx: Any, variation: dict[str, Any]) -> None:
    onnx = pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    from shiftproof.models.classifiers.onnx import pooled_tensor
    from shiftproof.models.classifiers.onnx_graph import OnnxGraph, with_outputs

    path = make_onnx(**variation)
    graph = OnnxGraph(onnx.load(path), path.parent)
    scores = graph.model.graph.output[0].name
    pooled = pooled_tensor(graph, scores)
    assert pooled is not None
    shown = with_outputs(path, ["raw", pooled.name])
    session = runtime.InferenceSession(shown if isinstance(shown, bytes) else str(shown))
    logits, activations = session.run(["raw", pooled.name], {"images": INPUTS})
    every = np.tile(np.arange(5), (3, 1))
    maps = pooled.of_classes(activations, every)
    head = load_model(f"onnx:{path}", preprocess="unit").head
    bias = 0 if head is None else head.bias
    assert maps.shape == (3, 5, 8, 8)
    np.testing.assert_allclose(maps.mean(axis=(2, 3)) + bias, logits.reshape(3, 5), rtol=1e-4, atol=1e-5)


def test_maps_of_an_onnx_file_are_the_activations_of_its_class_cut_off_at_zero(make_onnx: Any) -> None:
    model: Any = load_model(f"onnx:{make_onnx()}", preprocess="unit")
    assert method_for(model) == "class-activation"
    onnx = pytest.importorskip("onnx")
    stored = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in onnx.load(make_onnx()).graph.initializer}
    padded = np.pad(INPUTS, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    positive = np.maximum(np.einsum("icyxab,kcab->ikyx", windows, stored["kernel"]), 0)
    by_hand = np.einsum("inc,icyx->inyx", stored["weights"][CLASSES], positive)
    np.testing.assert_allclose(saliency_maps(model, INPUTS, CLASSES), np.maximum(by_hand, 0), rtol=1e-4, atol=1e-5)


def test_a_file_with_a_fixed_batch_size_is_looked_through_batch_by_batch(make_onnx: Any) -> None:
    free, fixed = (load_model(f"onnx:{make_onnx(f'{size}.onnx', batch=size)}", preprocess="unit") for size in ("batch", 2))
    np.testing.assert_allclose(saliency_maps(fixed, INPUTS, CLASSES), saliency_maps(free, INPUTS, CLASSES), rtol=1e-6)


def test_channels_last_and_means_over_axes_are_pooling_too(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    helper, weights = onnx.helper, RNG.normal(size=(3, 5)).astype(np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("Relu", ["images"], ["positive"]),
            helper.make_node("ReduceMean", ["positive", "axes"], ["pooled"], keepdims=0),
            helper.make_node("MatMul", ["pooled", "weights"], ["logits"]),
        ],
        "tokens",
        [helper.make_tensor_value_info("images", onnx.TensorProto.FLOAT, ["batch", 8, 8, 3])],
        [helper.make_tensor_value_info("logits", onnx.TensorProto.FLOAT, ["batch", 5])],
        [onnx.numpy_helper.from_array(np.array([-3, -2]), "axes"), onnx.numpy_helper.from_array(weights, "weights")],
    )
    path = tmp_path / "last.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    inputs = np.ascontiguousarray(INPUTS.transpose(0, 2, 3, 1))
    by_hand = np.maximum(np.einsum("icn,iyxc->inyx", weights[:, CLASSES].transpose(1, 0, 2), np.maximum(inputs, 0)), 0)
    np.testing.assert_allclose(saliency_maps(load_model(str(path), preprocess="unit"), inputs, CLASSES), by_hand, rtol=1e-4)


def test_grad_cam_of_a_network_that_pools_is_its_class_activation_over_the_number_of_places(torch_model: Any) -> None:
    model = torch_model("twin")
    assert method_for(model) == "grad-cam"
    layers = model.forward.module
    import torch

    with torch.inference_mode():
        shown = layers[:2](torch.from_numpy(INPUTS)).numpy()
    by_hand = np.einsum("inc,icyx->inyx", model.head.weights[CLASSES], shown) / 64
    np.testing.assert_allclose(saliency_maps(model, INPUTS, CLASSES), np.maximum(by_hand, 0), rtol=1e-4, atol=1e-6)


def test_the_same_network_in_torch_and_in_onnx_looks_at_the_same_places(torch_model: Any, tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    model = torch_model("twin")
    layers, helper = model.forward.module, onnx.helper
    stored = {"kernel": layers[0].weight, "shift": layers[0].bias, "weights": layers[4].weight, "bias": layers[4].bias}
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["images", "kernel", "shift"], ["maps"], pads=[1, 1, 1, 1]),
            helper.make_node("Relu", ["maps"], ["positive"]),
            helper.make_node("GlobalAveragePool", ["positive"], ["pooled"]),
            helper.make_node("Flatten", ["pooled"], ["flat"]),
            helper.make_node("Gemm", ["flat", "weights", "bias"], ["logits"], transB=1),
        ],
        "twin",
        [helper.make_tensor_value_info("images", onnx.TensorProto.FLOAT, ["batch", 3, 8, 8])],
        [helper.make_tensor_value_info("logits", onnx.TensorProto.FLOAT, ["batch", 5])],
        [onnx.numpy_helper.from_array(value.detach().numpy(), name) for name, value in stored.items()],
    )
    path = tmp_path / "twin.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    twin = load_model(str(path), preprocess="unit")
    np.testing.assert_allclose(twin(INPUTS).scores, model(INPUTS).scores, rtol=1e-4, atol=1e-5)
    there, here = saliency_maps(twin, INPUTS, CLASSES), saliency_maps(model, INPUTS, CLASSES)
    np.testing.assert_allclose(there, 64 * here, rtol=1e-4, atol=1e-5)


def test_grad_cam_does_not_depend_on_the_other_images_of_a_batch(torch_model: Any) -> None:
    model = torch_model("twin")
    alone = np.concatenate([saliency_maps(model, INPUTS[row : row + 1], CLASSES[row : row + 1]) for row in range(3)])
    np.testing.assert_allclose(saliency_maps(model, INPUTS, CLASSES), alone, rtol=1e-4, atol=1e-6)


def test_a_sum_outside_any_layer_leaves_the_last_layer_before_it(torch_model: Any) -> None:
    model = torch_model("Residual")
    layers = model.forward.module
    import torch

    with torch.inference_mode():
        shown = layers.second(layers.first(torch.from_numpy(INPUTS))).numpy()
    by_hand = np.einsum("inc,icyx->inyx", model.head.weights[CLASSES], shown) / 64
    np.testing.assert_allclose(saliency_maps(model, INPUTS, CLASSES), np.maximum(by_hand, 0), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("factory", "options"), [("flat", {}), ("certain", {"gives": "probabilities"})])
def test_without_rows_and_columns_or_without_logits_a_torch_network_is_looked_at_by_occlusion(
    torch_model: Any, factory: str, options: dict[str, Any]
) -> None:
    assert method_for(torch_model(factory, **options)) == "occlusion"


def test_networks_with_other_inputs_or_weights_are_not_looked_at_through_the_old_ones(torch_model: Any) -> None:
    model = torch_model("twin")
    assert method_for(perturbed_by_odin(model)) == "occlusion"
    assert method_for(random_network(model, 0)) == "occlusion"


def corner_scores(inputs: Any) -> NDArray[np.floating]:
    """Sees nothing but the upper left quarter."""
    bright = np.asarray(inputs)[:, :, :14, :14].mean(axis=(1, 2, 3))
    return np.stack([bright, 1 - bright], axis=1)


def test_occlusion_is_hot_where_a_classifier_looks_and_nowhere_else() -> None:
    model = wrap_model(
        corner_scores, name="corner", version="1", size=(28, 28), preprocess="squash,mean=0,std=1", gives="probabilities"
    )
    heat = saliency_maps(model, np.ones((2, 3, 28, 28), np.float32), np.array([[0, 1], [1, 0]]))
    assert heat.shape == (2, 2, 7, 7)
    hot = np.zeros((7, 7), bool)
    hot[:4, :4] = True  # a square reaches half a cell beyond its own
    assert np.array_equal(heat[0, 0] > 0, hot)
    assert np.array_equal(heat[1, 1], heat[0, 0])
    assert not heat[0, 1].any(), "what speaks against a class is not where it is seen"
    # a whole square of 8 x 8 of the 14 x 14 pixels goes from white to grey
    assert heat[0, 0, 1, 1] == pytest.approx(64 / 196 * (1 - 128 / 255))


def test_occlusion_hides_the_same_places_of_inputs_with_channels_last() -> None:
    options: dict[str, Any] = {"version": "1", "size": (28, 28), "gives": "probabilities"}
    first = wrap_model(corner_scores, name="first", preprocess="squash,mean=0,std=1", **options)
    last = wrap_model(
        lambda inputs: corner_scores(inputs.transpose(0, 3, 1, 2)),
        name="last",
        preprocess="squash,mean=0,std=1,layout=nhwc",
        **options,
    )
    inputs = np.random.default_rng(2).random((2, 3, 28, 28), dtype=np.float32)
    asked = np.array([[0], [1]])
    expected = saliency_maps(first, inputs, asked)
    np.testing.assert_allclose(saliency_maps(last, inputs.transpose(0, 2, 3, 1), asked), expected, rtol=1e-5, atol=1e-7)


def test_an_unknown_way_and_one_that_the_model_does_not_allow_are_refused(make_onnx: Any) -> None:
    model = load_model(f"onnx:{make_onnx()}", preprocess="unit")
    with pytest.raises(UnknownName, match="did you mean grad-cam"):
        method_for(model, "gradcam")
    with pytest.raises(BadInput, match="does not allow grad-cam; it allows class-activation and occlusion"):
        method_for(model, "grad-cam")
    with pytest.raises(BadInput, match="expected \\(images, classes\\) for 3 images"):
        saliency_maps(model, INPUTS, np.array([1, 2, 3]))


BOXES = Path(__file__).parents[1] / "boxes" / "ilsvrc_objects.json"
REAL = {
    "lite:0": None,
    "SqueezeNet_fp16.onnx": "caffe",
    "mobilenetv2_int8_torchvision.onnx": "imagenet,size=244",
}


@pytest.mark.real
@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("method", ["class-activation", "occlusion"])
def test_real_networks_look_at_objects_that_were_boxed_by_eye(real_data: Path, name: str, method: str) -> None:
    """Heat lies on them well beyond chance, which is the share of the input that the boxes fill."""
    pytest.importorskip("onnxruntime")
    spec = name if name == "lite:0" else f"onnx:{real_data / 'models' / name}"
    model: Any = load_model(spec, preprocess=REAL[name])
    photos = open_coco(str(BOXES), images=real_data / "ilsvrc-sample-1000")
    shares, hot = [], []
    for sample in photos.samples[:: 4 if method == "class-activation" else 12]:
        assert sample.boxes is not None
        source = photos.source(sample)
        photo = source.decode(source.read())
        inputs = model.preprocessing.from_image(photo)[None]
        truth = model.classes.wnids.index(sample.id[:9])
        (heat,) = saliency_maps(model, inputs, np.array([[truth]]), method=method)[:, 0]
        inside = covered(sample.boxes[0], model.preprocessing.window(*photo.shape[:2]), heat.shape)
        shares.append(inside.mean())
        hot.append((heat * inside).sum() / heat.sum())
    assert np.mean(hot) > np.mean(shares) + 0.1


def covered(
    box: NDArray[np.floating], window: tuple[float, float, float, float], shape: tuple[int, ...]
) -> NDArray[np.floating]:
    """The part of each cell that lies in the box."""
    parts = []
    for low, high, start, end, cells in ((*box[1::2], *window[1::2], shape[0]), (*box[::2], *window[::2], shape[1])):
        edges = np.linspace(start, end, cells + 1)
        parts.append((np.clip(edges[1:], low, high) - np.clip(edges[:-1], low, high)) / np.diff(edges))
    return np.outer(*parts)
