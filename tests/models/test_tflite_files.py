"""LiteRT files: small ones against numpy, real quantised ones against their weights run in floating point by torch."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")

from shiftproof.datasets.decoding import decode_image
from shiftproof.errors import BadInput
from shiftproof.models import load_model
from shiftproof.models.classifiers.tflite_graph import TfliteGraph, read_graph
from shiftproof.types import Classifier
from small_tflite import SCALE, SIDE, ZERO, SmallNetwork, tflite_bytes

Load = Callable[..., Classifier]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """A small network, made and loaded; what is not about its file goes to `load_model`."""

    def made(how: dict[str, Any] | None = None, **options: Any) -> Classifier:
        (tmp_path / "small.tflite").write_bytes(tflite_bytes(**(how or {})))
        return load_model(str(tmp_path / "small.tflite"), **{"classes": list("abcde"), **options})

    return made


def inputs(images: int = 3) -> Any:
    return np.random.default_rng(1).normal(size=(images, SIDE, SIDE, 3)).astype(np.float32)


def photos(images: int = 3) -> Any:
    return np.random.default_rng(1).integers(0, 256, (images, SIDE, SIDE, 3), dtype=np.uint8)


@pytest.mark.parametrize("batch", [1, 2, None])
def test_scores_features_and_head_are_those_of_numpy(batch: int | None, load: Load) -> None:
    model, network = load({"batch": batch}), SmallNetwork.drawn()
    scores, features, _ = model(inputs(), features=True)
    assert model.gives == "logits"
    assert np.allclose(scores, network.logits(inputs()), atol=1e-4)
    assert np.allclose(model(inputs()).scores, scores, atol=1e-6)
    assert features is not None
    assert np.allclose(features, network.features(inputs()), atol=1e-4)
    assert model.head is not None
    assert np.array_equal(model.head.weights, network.weights)
    assert np.array_equal(model.head.bias, network.bias)
    assert model.ref.name == "small"


def test_a_softmax_gives_probabilities_and_the_logits_before_it_can_be_had(load: Load) -> None:
    model, network = load({"softmax": True}), SmallNetwork.drawn()
    assert model.gives == "probabilities"
    assert np.allclose(model(inputs()).scores, network.probabilities(inputs()), atol=1e-5)
    logits = load({"softmax": True}, output="logits", extra_output="features")
    assert logits.gives == "logits"
    outputs = logits(inputs())
    assert np.allclose(outputs.scores, network.logits(inputs()), atol=1e-4)
    assert outputs.extra is not None
    assert np.allclose(outputs.extra, network.features(inputs()), atol=1e-4)
    assert logits.ref.fingerprint != model.ref.fingerprint
    maps = load(features="maps")
    assert maps.head is None
    assert "no head: features are taken from maps, as asked" in maps.notes


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_a_quantised_network_is_given_bytes_and_its_scores_are_real_numbers(dtype: str, load: Load) -> None:
    model, network = load({"softmax": True, "dtype": dtype}), SmallNetwork.drawn()
    assert model.preprocessing.describe()["dtype"] == "uint8"
    given = photos()
    real = SCALE * (given.astype(float) - (128 if dtype == "int8" else 0) - ZERO)
    expected = network.probabilities(real)
    assert np.abs(model(given).scores - expected).max() <= 1 / 256 / 2 + 1e-5
    assert any("bytes are given as they are" in note for note in model.notes)
    assert any("rounded to steps of 0.00390625" in note and "--scores 'logits'" in note for note in model.notes)
    finer = load({"softmax": True, "dtype": dtype}, output="logits")
    assert np.allclose(finer(given).scores, network.logits(real), atol=1e-3)


def test_other_preprocessing_of_a_quantised_input_is_in_real_numbers(load: Load) -> None:
    model, network = load({"dtype": "int8", "softmax": True}, preprocess="unit,resize=squash"), SmallNetwork.drawn()
    values = np.stack([model.preprocessing.from_picture(photo) for photo in photos()])
    steps = np.clip(np.rint(values / SCALE) + ZERO, -128, 127)
    assert np.abs(model(values).scores - network.probabilities(SCALE * (steps - ZERO))).max() <= 1 / 256 / 2 + 1e-5
    assert "the input is quantised, in steps of 0.02" in model.notes


def test_mean_and_std_in_the_metadata_are_used(load: Load) -> None:
    model = load({"normalisation": ([127.5], [127.5])})
    assert model.preprocessing.describe()["mean"] == "127.5"
    assert model.preprocessing.describe()["range"] == "0..255"
    assert not any("is assumed" in note for note in model.notes)
    three = load({"normalisation": ([1.0, 2.0, 3.0], [4.0, 5.0, 6.0])}).preprocessing.describe()
    assert (three["mean"], three["std"]) == ("1/2/3", "4/5/6")
    assert any("imagenet is assumed" in note for note in load().notes)
    assert load({"normalisation": ([127.5], [127.5])}, preprocess="unit").preprocessing.describe()["mean"] == "0"


def test_class_names_in_the_file_are_used_and_said(load: Load) -> None:
    names = "ant\nbee\ncat\ndog\neel\n"
    model = load({"labels": {"labels.txt": names, "other.txt": "one\ntwo"}}, classes=None)
    assert model.classes is not None
    assert model.classes.names == ("ant", "bee", "cat", "dog", "eel")
    assert "class names are those of labels.txt in the file" in model.notes
    two = load({"labels": {"labels.txt": names, "labels_de.txt": names}}, classes=None)
    assert two.classes is None
    assert any("several lists of its classes (labels.txt, labels_de.txt); --classes names one" in note for note in two.notes)
    said = load({"labels": {"labels.txt": names}})
    assert said.classes is not None
    assert said.classes.names == tuple("abcde")


def test_a_last_layer_that_is_not_linear_is_no_head(load: Load) -> None:
    model = load({"relu_at_end": True})
    assert not model.has_features
    assert any("no head and no features: the last layer applies an activation function" in note for note in model.notes)
    expected = np.maximum(SmallNetwork.drawn().logits(inputs()), 0)
    assert np.allclose(model(inputs()).scores, expected, atol=1e-4)


def test_what_cannot_be_is_one_sentence(load: Load, tmp_path: Path) -> None:
    for options, answer in [
        ({"output": "logit"}, r"has no tensors 'logit' to take scores from; its outputs: logits"),
        ({"output": "maps"}, r"output 'maps' has shape .* not one score a class"),
        ({"preprocess": "imagenet,size=32"}, r"takes 16x16 only"),
        ({"weights": "w.pth"}, r"a \.tflite file takes no weights"),
    ]:
        with pytest.raises(BadInput, match=answer):
            load(None, **options)
    data = tflite_bytes()
    for content, answer in [
        (b"PK\x03\x04" + bytes(20), "it is no LiteRT file"),
        (data[:40], "damaged or cut short"),
        (data[: len(data) // 2], "damaged or cut short"),
    ]:
        (tmp_path / "bad.tflite").write_bytes(content)
        with pytest.raises(BadInput, match=rf"bad\.tflite: .*{answer}"):
            load_model(f"tflite:{tmp_path / 'bad.tflite'}")


def dequantised_logits(graph: TfliteGraph, pictures: Any) -> Any:
    """What the file's own weights give in floating point, layer by layer, by torch; pixels as the input's real numbers."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    functional = torch.nn.functional
    values = {graph.inputs[0].place: torch.from_numpy(graph.inputs[0].real(pictures)).permute(0, 3, 1, 2)}
    steps = {id(operator): operator for operator in graph.makers.values()}  # in the order of the file
    for operator in steps.values():
        before, place = values.get(operator.inputs[0]), operator.outputs[0]
        made = graph.tensors[place]
        assert before is not None
        if operator.name in {"CONV_2D", "DEPTHWISE_CONV_2D"}:
            filters, bias = (torch.from_numpy(graph.tensors[one].weights()) for one in operator.inputs[1:])
            depthwise = operator.name == "DEPTHWISE_CONV_2D"
            kernel = filters.permute(3, 0, 1, 2) if depthwise else filters.permute(0, 3, 1, 2)
            stride = round(before.shape[2] / (made.shape[1] or 1))
            padding = max((((made.shape[1] or 1) - 1) * stride + kernel.shape[2] - before.shape[2]), 0)
            padded = functional.pad(
                before, (padding // 2, padding - padding // 2) * 2
            )  # TensorFlow's "same": more at the end
            after = functional.conv2d(padded, kernel, bias, stride, groups=before.shape[1] if depthwise else 1)
        elif operator.name == "AVERAGE_POOL_2D":
            after = before.mean(dim=(2, 3), keepdim=True)
        elif operator.name == "RESHAPE":
            after = before.reshape(len(before), -1)
        else:
            assert operator.name == "SOFTMAX"
            return before.numpy()
        if made.quantised:  # the range of a tensor's numbers is where its activation function cuts
            after = after.clamp(*(float(made.real(np.array([end]))[0]) for end in (0, 255)))
        values[place] = after
    raise AssertionError("the graph has no softmax")


@pytest.mark.real
@pytest.mark.parametrize("name", ["mobilenet_v1_0.25_128_quant", "mobilenet_v1_0.75_192_quant"])
def test_a_real_quantised_network_gives_what_its_weights_give_in_floating_point(name: str, real_data: Path) -> None:
    file = real_data / "models" / f"{name}.tflite"
    model = load_model(str(file))
    logits = load_model(str(file), output="MobilenetV1/Logits/SpatialSqueeze1")
    assert model.classes is not None
    assert model.classes.names[:2] == ("background", "tench, Tinca tinca")
    images = sorted((real_data / "ilsvrc-sample-1000").iterdir())[::50]
    given = np.stack([model.preprocessing.from_image(decode_image(image.read_bytes())) for image in images])
    expected = dequantised_logits(read_graph(file.read_bytes()), given)
    found = logits(given).scores
    assert np.corrcoef(found.ravel(), expected.ravel())[0, 1] > 0.98
    assert (found.argmax(axis=1) == expected.argmax(axis=1)).mean() >= 0.85
    probabilities = model(given).scores
    softmax = np.exp(found - found.max(axis=1, keepdims=True))
    softmax /= softmax.sum(axis=1, keepdims=True)
    assert np.abs(probabilities - softmax).max() < 2 / 256
    # one photo of a class each: the classes are in the places that the names say
    right = [image.name.partition("_")[2].removesuffix(".jpg").replace("_", " ").lower() for image in images]
    names = [model.classes.names[place].lower() for place in found.argmax(axis=1)]
    assert np.mean([wanted in name for wanted, name in zip(right, names, strict=True)]) > 0.5
