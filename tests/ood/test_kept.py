"""Every detector of logits and features can be kept as data, and written into an ONNX graph, with the same scores."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from ood.made_up import CLASSES, FEATURES, a_head, inside, outside
from ood.test_detector_contract import FOR_FEW_IMAGES, NAMES, fitted
from shiftproof.errors import BadInput, NotKept
from shiftproof.models.classifiers.onnx_guarded import tensors_of, with_further_outputs
from shiftproof.models.loaded import NetworkGraph
from shiftproof.ood import ReadyDetector, ready
from shiftproof.ood.entry import Fitted
from shiftproof.ood.graph import Graph
from shiftproof.ood.kept import detector_from, keep_detector
from shiftproof.types import OODScores, Predictions

OF_EXTRA_OUTPUTS = {"confidence", "rotation", "rotation_upright"}
READING_BOTH = [name for name in NAMES if name not in OF_EXTRA_OUTPUTS]


def network(opset: int, ending: str | None = None) -> bytes:
    """A linear layer behind features that are the image itself."""
    head, last = a_head(), "scores" if ending is None else "logits"
    nodes = [
        helper.make_node("Flatten", ["image"], ["flat"]),
        helper.make_node("Gemm", ["flat", "weights", "bias"], [last], transB=1),
        *([helper.make_node(ending, [last], ["scores"], axis=1)] if ending else []),
    ]
    made = helper.make_graph(
        nodes,
        "layer",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", FEATURES, 1, 1])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", CLASSES])],
        [numpy_helper.from_array(head.weights, "weights"), numpy_helper.from_array(head.bias, "bias")],
    )
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    data: bytes = model.SerializeToString()
    return data


def by_graph(detector: ReadyDetector, predictions: Predictions, opset: int) -> tuple[OODScores, OODScores]:
    """Scores inside the graph, and those of the detector for what the graph gives."""
    graph = Graph("logits", CLASSES, FEATURES, predictions.head)
    outputs = {"ood_score": detector.graph(graph)}
    data = with_further_outputs(NetworkGraph(lambda: network(opset), "scores", "flat"), graph, outputs)
    onnx.checker.check_model(onnx.load_model_from_string(data))
    assert predictions.features is not None
    given = tensors_of(data, ["scores", "ood_score"], predictions.features.reshape(-1, FEATURES, 1, 1))
    return given["ood_score"], detector(dataclasses.replace(predictions, logits=given["scores"]))


@pytest.mark.parametrize("name", NAMES)
def test_a_detector_as_data_scores_as_before(name: str) -> None:
    detector = fitted(name)
    kept = keep_detector(detector)
    again = detector_from(json.loads(json.dumps(kept.plain)), kept.arrays)
    assert (again.name, again.parameters, again.notes) == (detector.name, detector.parameters, again.notes)
    if name not in OF_EXTRA_OUTPUTS:
        for images in (inside(30, seed=5), outside(20)):
            np.testing.assert_array_equal(again(images), detector(images))


@pytest.mark.parametrize("name", READING_BOTH)
def test_a_score_in_an_onnx_graph_is_that_of_python(name: str) -> None:
    for images in (inside(30, seed=5), outside(20)):
        inside_graph, ours = by_graph(fitted(name), images, 17)
        assert inside_graph.shape == ours.shape
        assert (np.abs(inside_graph - ours) / np.maximum(1, np.abs(ours))).max() < 1e-4


@pytest.mark.parametrize("opset", [9, 11, 13, 18, 21])
def test_graphs_of_other_versions_are_understood(opset: int) -> None:
    for name in ("ash_s", "openmax"):
        inside_graph, ours = by_graph(fitted(name), inside(10, seed=5), opset)
        np.testing.assert_allclose(inside_graph, ours, rtol=1e-4)


def test_features_of_zeros_and_ties_score_alike_too() -> None:
    images = inside(12, seed=3)
    assert images.features is not None
    features = np.concatenate([np.zeros((2, FEATURES)), np.ones((2, FEATURES)), images.features.round()]).astype(np.float32)
    head = a_head()
    some = dataclasses.replace(inside(16), features=features, logits=features @ head.weights.T + head.bias)
    for name in ("max_cosine", "ash_b", "ash_p", "ash_s", "scale", "knn", "vim", "openmax", "gen"):
        inside_graph, ours = by_graph(fitted(name), some, 17)
        np.testing.assert_allclose(inside_graph, ours, rtol=1e-4, atol=1e-4)


def test_a_bank_keeps_some_training_images_evenly_and_as_small_a_share_of_neighbours() -> None:
    training = inside(1200)
    whole, bank = (ready("knn", training, parameters={"neighbours": 60, "bank": size}) for size in (None, 100))
    assert (whole.parameters["references"], bank.parameters["references"]) == (1200, 100)
    assert bank.parameters["neighbours"] == 5
    every_twelfth = training.take(np.arange(11, 1200, 12))
    alone = ready("knn", every_twelfth, parameters={"neighbours": 5})
    np.testing.assert_allclose(bank(outside()), alone(outside()), rtol=1e-6)
    with pytest.raises(BadInput, match="at least one training image"):
        ready("knn", training, parameters={"bank": 0})


@dataclass(frozen=True)
class OfSomethingElse(Fitted):
    """A fitted detector that is not made of arrays."""

    table: dict[str, float]

    def __call__(self, predictions: Predictions) -> OODScores:
        return np.zeros(len(predictions))


def test_what_is_not_made_of_arrays_is_refused_in_a_sentence() -> None:
    odd = ReadyDetector("odd", "authors", {}, OfSomethingElse({}))
    with pytest.raises(NotKept, match="kept in a dict, not in arrays"):
        keep_detector(odd)
    with pytest.raises(NotKept, match="not written down for ONNX graphs"):
        odd.graph(Graph("logits", 2))


@pytest.mark.parametrize("name", ["mahalanobis", "knn", "msp+energy", "react"])
def test_damaged_data_are_refused(name: str) -> None:
    kept = keep_detector(ready(name, inside(240), parameters=FOR_FEW_IMAGES.get(name)))
    changed = [
        {**kept.plain, "name": "no such"},
        {key: value for key, value in kept.plain.items() if key not in ("fitted", "members")},
        {**kept.plain, "parameters": 3},
        {**kept.plain, "fitted": {one: [1] for one in kept.plain.get("fitted", {})}, "means": ["x"]},
    ]
    for plain in changed:
        with pytest.raises(BadInput, match="damaged"):
            detector_from(plain, kept.arrays)
    if kept.arrays:
        with pytest.raises(BadInput, match="damaged"):
            detector_from(kept.plain, {})


def test_a_network_whose_names_are_taken_is_refused(tmp_path: Path) -> None:
    graph = Graph("logits", CLASSES, FEATURES, a_head())
    outputs = {"ood_score": fitted("msp").graph(graph)}
    once = with_further_outputs(NetworkGraph(lambda: network(17), "scores", "flat"), graph, outputs)
    with pytest.raises(BadInput, match="is it guarded"):
        with_further_outputs(NetworkGraph(lambda: once, "scores", "flat"), graph, outputs)
    session = onnxruntime.InferenceSession(once, providers=["CPUExecutionProvider"])
    assert [one.name for one in session.get_outputs()] == ["scores", "ood_score"]
    assert not list(tmp_path.iterdir())
