import os
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from shiftproof.errors import BadInput, ClassMismatch
from shiftproof.models import load_model
from shiftproof.models.classifiers.onnx_session import OnnxSession
from shiftproof.models.loaded import LoadedClassifier

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
ort = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")


def load(path: Path, **options: Any) -> LoadedClassifier:
    model = load_model(str(path), **{"classes": list("abcde"), **options})
    assert isinstance(model, LoadedClassifier)
    return model


def batch(images: int = 3, dtype: str = "float32", layout: str = "nchw") -> Any:
    shape = (images, 8, 8, 3) if layout == "nhwc" else (images, 3, 8, 8)
    return np.random.default_rng(1).uniform(0, 3, shape).astype(dtype)


def plain_run(path: Path, inputs: Any) -> Any:
    """What onnxruntime says of the file as it is."""
    session = ort.InferenceSession(str(path))
    return session.run(None, {session.get_inputs()[0].name: inputs})[0]


@pytest.mark.parametrize("head", ["gemm", "gemm-plain", "matmul", "quantised", "pooled-conv", "gemm-and-add"])
@pytest.mark.parametrize("ending", [None, "LogSoftmax"])
def test_features_are_found_and_the_head_turns_them_into_logits(make_onnx: Any, head: str, ending: str | None) -> None:
    path = make_onnx(head=head, ending=ending)
    model = load(path)
    scores, features, _ = model(batch(), features=True)
    assert np.allclose(scores, plain_run(path, batch()).reshape(3, 5), atol=1e-5)
    assert features is not None
    assert features.shape == (3, 6)
    assert model.head is not None
    logits = features @ model.head.weights.T + model.head.bias
    if ending:
        logits = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    assert np.abs(logits - scores).max() < 1e-4


def test_a_classifier_of_convolutions_has_no_head_and_says_so(make_onnx: Any) -> None:
    model = load(make_onnx(head="conv", ending="Softmax"))
    assert model.head is None
    assert any("global pooling" in note for note in model.notes)
    assert model(batch()).scores.shape == (3, 5)
    with pytest.raises(BadInput, match="name a tensor"):
        model(batch(), features=True)


def test_features_can_be_taken_from_a_named_tensor(make_onnx: Any) -> None:
    model = load(make_onnx(), features="pooled")
    features = model(batch(), features=True).features
    assert features is not None
    assert features.shape == (3, 6)
    assert model.head is None
    with pytest.raises(BadInput, match="no tensor 'nowhere'"):
        load(make_onnx(), features="nowhere")


@pytest.mark.parametrize(
    ("ending", "gives"), [(None, "logits"), ("Softmax", "probabilities"), ("LogSoftmax", "logits"), ("Sigmoid", "scores")]
)
def test_what_the_scores_are_is_read_from_the_graph(make_onnx: Any, ending: str | None, gives: str) -> None:
    path = make_onnx(ending=ending)
    assert load(path).gives == gives
    assert load(path, gives="scores").gives == "scores"
    assert (load(path).head is not None) == (load(path).has_features)


@pytest.mark.parametrize("images", [1, 3, 4, 7])
def test_a_fixed_batch_size_takes_any_number_of_images(make_onnx: Any, images: int) -> None:
    fixed, free = load(make_onnx("fixed.onnx", batch=4)), load(make_onnx("free.onnx"))
    assert (fixed.fixed_batch_size, free.fixed_batch_size) == (4, None)
    ours, theirs = (model(batch(images), features=True) for model in (fixed, free))
    assert np.allclose(ours.scores, theirs.scores, atol=1e-5)
    assert np.allclose(ours.features, theirs.features, atol=1e-5)  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", ["float16", "uint8"])
def test_inputs_are_made_in_the_type_the_graph_takes(make_onnx: Any, dtype: str) -> None:
    path = make_onnx(dtype=dtype)
    model = load(path)
    inputs = model.preprocessing.from_image(np.full((20, 30, 3), 7, np.uint8))[None]
    assert inputs.dtype == dtype
    scores, features, _ = model(inputs, features=True)
    assert features is not None
    assert scores.dtype == features.dtype == np.float32
    assert np.allclose(scores, plain_run(path, inputs), rtol=1e-3, atol=5e-3)  # half precision rounds where it is shown


def quantised(path: Path, form: str) -> Path:
    """The model with weights and activations in eight bits, by onnxruntime's own quantiser."""
    from onnxruntime import quantization

    made = path.with_name(f"{form}.onnx")
    if form == "dynamic":
        quantization.quantize_dynamic(path, made)
        return made

    class Calibration(quantization.CalibrationDataReader):  # type: ignore[misc]
        examples = iter([{"images": batch(16)}])

        def get_next(self) -> dict[str, Any] | None:
            return next(self.examples, None)

    how = {"quant_format": quantization.QuantFormat[form], "per_channel": form == "QDQ"}
    quantization.quantize_static(path, made, Calibration(), weight_type=quantization.QuantType.QInt8, **how)
    return made


@pytest.mark.parametrize(("form", "notes"), [("QDQ", "up to a step"), ("QOperator", "no head"), ("dynamic", "one by one")])
def test_eight_bit_graphs_give_float32_scores_near_those_of_the_float_file(make_onnx: Any, form: str, notes: str) -> None:
    path = make_onnx(head="matmul" if form == "dynamic" else "gemm")
    plain, small = load(path), load(quantised(path, form))
    assert small.ref.fingerprint != plain.ref.fingerprint
    assert any(notes in note for note in small.notes)
    exact, found = plain(batch(16), features=True), small(batch(16), features=small.has_features)
    assert found.scores.dtype == np.float32
    reach = np.ptp(exact.scores)
    assert 0 < np.abs(found.scores - exact.scores).max() < 0.1 * reach  # it is quantised, and not into something else
    assert np.allclose(found.scores, np.concatenate([small(image[None]).scores for image in batch(16)]), atol=1e-5)
    if small.head is not None:
        assert found.features is not None
        assert exact.features is not None
        assert np.abs(found.features - exact.features).max() < 0.1 * np.ptp(exact.features)
        assert np.abs(found.features @ small.head.weights.T + small.head.bias - found.scores).max() < 0.1 * reach


def test_scores_of_images_run_one_by_one_are_stored_apart(make_onnx: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from shiftproof.models.classifiers import onnx_graph

    path = quantised(make_onnx(head="matmul"), "dynamic")
    alone = load(path).ref.fingerprint
    monkeypatch.setattr(onnx_graph.OnnxGraph, "quantises_by_batch", lambda _: False)  # as earlier versions took it
    assert load(path).ref.fingerprint != alone


def test_half_precision_files_give_float32_scores_that_are_stored_apart(make_onnx: Any) -> None:
    plain, half = load(make_onnx()), load(make_onnx("half.onnx", dtype="float16"))
    assert half.ref.fingerprint != plain.ref.fingerprint
    assert half.preprocessing.from_image(np.zeros((20, 30, 3), np.uint8)).dtype == np.float16
    exact, found = (model(batch(16), features=True) for model in (plain, half))
    assert found.features is not None
    assert exact.features is not None
    assert found.scores.dtype == found.features.dtype == np.float32
    assert 0 < np.abs(found.scores - exact.scores).max() < 0.01 * np.ptp(exact.scores)
    assert np.abs(found.features - exact.features).max() < 0.01 * np.ptp(exact.features)


def test_channels_last_is_read_from_the_graph(make_onnx: Any) -> None:
    model = load(make_onnx(layout="nhwc"))
    assert model.preprocessing.from_image(np.zeros((20, 30, 3), np.uint8)).shape == (8, 8, 3)
    assert model(batch(layout="nhwc")).scores.shape == (3, 5)


def test_weights_beside_the_file_are_read_and_part_of_the_fingerprint(make_onnx: Any) -> None:
    inside, beside = make_onnx("inside.onnx"), make_onnx("beside.onnx", external=True)
    data = beside.parent / "beside.onnx.data"
    assert data.exists()
    model = load(beside)
    ours, theirs = model(batch(), features=True), load(inside)(batch(), features=True)
    assert np.allclose(ours.scores, theirs.scores, atol=1e-5)
    assert model.head is not None
    before = model.ref.fingerprint
    data.write_bytes(bytes([data.read_bytes()[0] ^ 1]) + data.read_bytes()[1:])
    assert load(beside).ref.fingerprint != before
    data.unlink()
    with pytest.raises(BadInput, match="not beside it"):
        load(beside)


def test_a_file_that_reaches_outside_its_folder_is_refused(make_onnx: Any, tmp_path: Path) -> None:
    path = make_onnx(external=True)
    model = onnx.load(path, load_external_data=False)
    for tensor in model.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = "../secret"
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "secret").write_bytes(b"0" * 4096)
    (inner / "model.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(BadInput, match="outside its own folder"):
        load(inner / "model.onnx")


@pytest.mark.parametrize("place", ["initializer", "constant", "branch", "function"])
@pytest.mark.parametrize(
    ("location", "answer"),
    [
        ("../secret", "outside its own folder"),
        ("/etc/passwd", "outside its own folder"),
        ("link", "outside its own folder"),
        ("pipe", "not beside it: .*a pipe or a device"),
        (".", "not beside it: .*a folder"),
        ("*/_ORT_MEM_ADDR_/*", "not beside it"),
        ("a\0b", "names no file|embedded"),
        ("x" * 5000, "names no file|File name too long"),
        ("pointer", "git lfs pull"),
    ],
)
def test_weights_are_kept_in_files_beside_the_model_wherever_the_graph_names_them(
    make_onnx: Any, tmp_path: Path, place: str, location: str, answer: str
) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "secret").write_bytes(b"0" * 4096)
    (inner / "link").symlink_to(tmp_path / "secret")
    (inner / "pointer").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n")
    os.mkfifo(inner / "pipe")
    kept = onnx.TensorProto(name="kept", data_type=onnx.TensorProto.FLOAT, dims=[4])
    kept.data_location = onnx.TensorProto.EXTERNAL
    kept.external_data.add(key="location", value=location)
    model = onnx.load(make_onnx())
    constant = onnx.helper.make_node("Constant", [], ["unused"], value=kept)
    if place == "initializer":
        model.graph.initializer.append(kept)
    elif place == "constant":
        model.graph.node.append(constant)
    elif place == "branch":
        branch = onnx.helper.make_graph([constant], "branch", [], [onnx.ValueInfoProto(name="unused")])
        model.graph.node.append(onnx.helper.make_node("If", ["yes"], ["out"], then_branch=branch, else_branch=branch))
    else:
        model.functions.append(onnx.helper.make_function("mine", "F", [], ["unused"], [constant], model.opset_import))
    (inner / "model.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(BadInput, match=answer):
        load(inner / "model.onnx")


def test_nodes_may_be_listed_in_any_order(make_onnx: Any, tmp_path: Path) -> None:
    path = make_onnx()
    model = onnx.load(path)
    nodes = list(model.graph.node)[::-1]
    assert len(nodes) > 1
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    (tmp_path / "reversed.onnx").write_bytes(model.SerializeToString())
    ordered, other = load(path), load(tmp_path / "reversed.onnx")
    assert (other.gives, other.has_features, other.notes) == (ordered.gives, ordered.has_features, ordered.notes)


def test_names_that_are_not_text_are_refused(make_onnx: Any, tmp_path: Path) -> None:
    data = make_onnx().read_bytes()
    scores = onnx.load_model_from_string(data).graph.output[0].name.encode()
    (tmp_path / "bytes.onnx").write_bytes(data.replace(scores, b"\xff" * len(scores)))
    with pytest.raises(BadInput, match="names in its graph are not text"):
        load(tmp_path / "bytes.onnx")


def test_a_graph_that_goes_in_a_circle_is_refused(make_onnx: Any, tmp_path: Path) -> None:
    model = onnx.load(make_onnx())
    scores = model.graph.output[0].name
    for node in model.graph.node:
        if scores in node.output:
            node.output[0] = "before"
    model.graph.node.append(onnx.helper.make_node("Identity", ["round"], [scores]))
    model.graph.node.append(onnx.helper.make_node("Identity", [scores], ["round"]))
    (tmp_path / "circle.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(BadInput, match="goes in a circle"):
        load(tmp_path / "circle.onnx")


def test_a_chain_of_a_thousand_layers_is_walked(make_onnx: Any, tmp_path: Path) -> None:
    """The head's weights go through so many nodes that following each by a call of its own would fail."""
    model = onnx.load(make_onnx())
    (gemm,) = [node for node in model.graph.node if node.op_type == "Gemm"]
    nodes, name = [], gemm.input[1]
    for place in range(3000):
        nodes.append(onnx.helper.make_node("Identity", [name], [f"copy{place}"]))
        name = f"copy{place}"
    gemm.input[1] = name
    later = list(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend([*nodes, *later])
    (tmp_path / "long.onnx").write_bytes(model.SerializeToString())
    assert load(tmp_path / "long.onnx")(batch()).scores.shape == (3, 5)


def test_operators_that_onnxruntime_lacks_are_refused_when_the_model_is_asked(make_onnx: Any, tmp_path: Path) -> None:
    model = onnx.load(make_onnx())
    scores = model.graph.output[0].name
    for node in model.graph.node:
        if scores in node.output:
            node.output[0] = "before"
    model.graph.node.append(onnx.helper.make_node("PyOp", ["before"], [scores], domain="pyopmulti"))
    model.opset_import.add(domain="pyopmulti", version=1)
    (tmp_path / "own.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(BadInput, match="onnxruntime cannot open the model"):
        load(tmp_path / "own.onnx")(batch())


@pytest.mark.parametrize("name", ["model.json", "model.textproto", "model.onnxtxt", "model.onnx"])
@pytest.mark.parametrize(
    ("content", "answer"),
    [
        (b'{"nodes": []}', "not a whole ONNX file; it begins with|holds no graph"),
        (b"", "is empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n", "git lfs pull"),
        (b"<!DOCTYPE html>\n<html></html>", "not a whole ONNX file; it begins with|holds no graph"),
    ],
    ids=["json", "empty", "pointer", "text"],
)
def test_what_is_no_onnx_file_gets_a_sentence(tmp_path: Path, name: str, content: bytes, answer: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BadInput, match=answer):
        load_model(f"onnx:{tmp_path / name}")


def test_a_file_with_any_byte_changed_is_read_or_refused(make_onnx: Any, tmp_path: Path) -> None:
    whole, random, refused = make_onnx(ending="Softmax").read_bytes(), Random(0), 0
    for _ in range(1500):
        changed = bytearray(whole)
        for _ in range(random.randrange(1, 4)):
            changed[random.randrange(len(whole))] = random.randrange(256)
        (tmp_path / "odd.onnx").write_bytes(changed)
        try:
            load(tmp_path / "odd.onnx")
        except (BadInput, ClassMismatch):
            refused += 1
    assert refused > 300


def test_a_model_under_another_name_is_read_all_the_same(make_onnx: Any, tmp_path: Path) -> None:
    (tmp_path / "model.json").write_bytes(make_onnx().read_bytes())
    model = load_model(f"onnx:{tmp_path / 'model.json'}", classes=list("abcde"), preprocess="imagenet,size=8")
    assert model(batch()).scores.shape == (3, 5)


def test_what_is_no_file_gets_a_sentence(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.onnx")
    for place, answer in [
        (tmp_path, "is a folder"),
        (tmp_path / "pipe.onnx", "is a pipe or a device"),
        (tmp_path / "a\0b.onnx", "names no file"),
        (tmp_path / ("x" * 5000 + ".onnx"), "File name too long"),
    ]:
        with pytest.raises(BadInput, match=answer):
            load_model(f"onnx:{place}")


@pytest.mark.parametrize(
    ("names", "answer"),
    [
        (
            "{0: 'ant', 5: 'bee', 9: 'cat', 10: 'dog', 11: 'eel'}",
            "without 1, 2, 3, 4, with 5.*--classes names them",
        ),
        ('["ant", "bee", "cat", "dog", "\\ud800"]', "half a character.*--classes names them"),
    ],
)
def test_class_names_in_the_file_that_cannot_be_meant_are_refused_unless_the_user_names_others(
    make_onnx: Any, names: str, answer: str
) -> None:
    path = make_onnx(metadata={"names": names})
    with pytest.raises(BadInput, match=answer):
        load_model(str(path))
    assert load(path, classes=list("abcde")).classes is not None


@pytest.mark.parametrize("names", ["[" * 100_000, "9" * 5000, "(" * 3000 + ")" * 3000, "not names"])
def test_metadata_that_is_no_list_of_names_is_passed_over(make_onnx: Any, names: str) -> None:
    assert load_model(str(make_onnx(metadata={"names": names}))).classes is None


@pytest.mark.parametrize(("ending", "right"), [(None, False), ("Sigmoid", False), ("Softmax", True)])
def test_probabilities_that_do_not_sum_to_one_are_refused_at_the_first_batch(
    make_onnx: Any, ending: str | None, right: bool
) -> None:
    model = load(make_onnx(ending=ending), gives="probabilities")
    if right:
        assert np.allclose(model(batch()).scores.sum(axis=1), 1)
        return
    with pytest.raises(BadInput, match=r"gives no probabilities: an image got .* in all .*; say --gives logits or scores"):
        model(batch())


def test_classes_come_from_the_file_where_the_exporter_left_them(make_onnx: Any) -> None:
    path = make_onnx(metadata={"names": "{0: 'ant', 1: 'bee', 2: 'cat', 3: 'dog', 4: 'eel'}"})
    model = load_model(str(path))
    assert model.classes is not None
    assert model.classes.names == ("ant", "bee", "cat", "dog", "eel")


def test_classes_come_from_a_file_of_the_users_and_must_fit(make_onnx: Any, tmp_path: Path) -> None:
    names = tmp_path / "names.txt"
    names.write_text("ant\nbee\ncat\ndog\neel\n")
    classes = load(make_onnx(), classes=str(names)).classes
    assert classes is not None
    assert classes.names[4] == "eel"
    names.write_text("ant\nbee\n")
    with pytest.raises(ClassMismatch, match="5 scores an image but 2 classes"):
        load(make_onnx(), classes=names)
    unnamed = load_model(str(make_onnx()))
    assert unnamed.classes is None


def test_of_several_outputs_one_must_be_chosen_unless_only_one_fits(make_onnx: Any) -> None:
    path = make_onnx(more_outputs=("flat",))
    assert load(path).ref.name == "small"
    assert load(path, output="raw")(batch()).scores.shape == (3, 5)
    assert load(path, output="flat", classes=list("abcdef"))(batch()).scores.shape == (3, 6)
    with pytest.raises(BadInput, match="no output 'probs'; it has raw, flat"):
        load(path, output="probs")


def test_the_preprocessing_must_make_the_size_the_graph_takes(make_onnx: Any) -> None:
    assert load(make_onnx(), preprocess="caffe").preprocessing.describe()["size"] == "8x8"
    with pytest.raises(BadInput, match="takes 8x8 only, but the preprocessing makes 16x16"):
        load(make_onnx(), preprocess="caffe,size=16")


def test_a_preprocessing_nobody_gave_is_said_to_be_assumed(make_onnx: Any) -> None:
    assert any("imagenet is assumed" in note for note in load(make_onnx()).notes)
    assert not any("imagenet is assumed" in note for note in load(make_onnx(), preprocess="imagenet").notes)


def test_a_graph_that_seems_to_normalise_its_input_is_noted(make_onnx: Any) -> None:
    assert any("begins with Sub" in note for note in load(make_onnx("own.onnx", normalises=True)).notes)
    assert not any("begins with" in note for note in load(make_onnx()).notes)


def test_nothing_heavy_happens_before_the_first_batch(make_onnx: Any) -> None:
    model = load(make_onnx())
    assert model.ref.fingerprint
    assert model.head is not None
    assert "session" not in vars(model.forward)
    model(batch())
    assert "session" in vars(model.forward)


def test_missing_broken_and_foreign_files_are_named(tmp_path: Path, make_onnx: Any) -> None:
    with pytest.raises(BadInput, match="there is no file"):
        load(tmp_path / "none.onnx")
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(make_onnx().read_bytes()[:-40])
    with pytest.raises(BadInput, match=r"broken\.onnx"):
        load(broken)
    broken.write_bytes(b"")
    with pytest.raises(BadInput, match="is empty"):
        load(broken)


@pytest.fixture
def providers(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Sessions that are made from now on: each provider with its options, while the CPU does the work of all."""
    asked: dict[str, Any] = {}
    real = ort.InferenceSession

    class Session:
        def __init__(self, model: Any, options: Any, providers: Any) -> None:
            asked.update(providers)
            self.session = real(model, options, providers=["CPUExecutionProvider"])
            self.run = self.session.run
            self.started = asked.pop("started", [name for name, _ in providers])

        def get_providers(self) -> list[str]:
            return list(self.started)

    there = ["CUDAExecutionProvider", "OpenVINOExecutionProvider", "CPUExecutionProvider"]
    monkeypatch.setattr(ort, "get_available_providers", lambda: there)
    monkeypatch.setattr(ort, "InferenceSession", Session)
    return asked


def test_providers_compute_in_single_precision_with_the_threads_asked_for(make_onnx: Any, providers: Any) -> None:
    model = load(make_onnx(), device="openvino", threads=6)
    model(batch())
    told = {"device_type": "CPU", "precision": "FP32", "num_of_threads": "6"}
    told["num_streams"] = str(model.concurrent_batches)
    assert providers == {"OpenVINOExecutionProvider": told, "CPUExecutionProvider": {}}
    providers.clear()
    load(make_onnx(), device="cuda")(batch())
    assert providers == {"CUDAExecutionProvider": {"use_tf32": "0"}, "CPUExecutionProvider": {}}


def test_a_provider_that_onnxruntime_cannot_start_is_told(make_onnx: Any, providers: Any) -> None:
    providers["started"] = ["CPUExecutionProvider"]
    with pytest.raises(BadInput, match="has CUDAExecutionProvider but cannot start it here"):
        load(make_onnx(), device="cuda")(batch())


@pytest.mark.usefixtures("providers")
def test_only_rounded_graphs_are_other_models_on_another_provider(make_onnx: Any) -> None:
    rounded = [make_onnx("half.onnx", dtype="float16"), make_onnx("eight.onnx", head="quantised")]
    for path in [make_onnx(), *rounded]:
        here, there = load(path), load(path, device="openvino")
        assert (here.ref == there.ref) is (path not in rounded)
        assert any("stored apart" in note for note in there.notes) is (path in rounded)


@pytest.mark.skipif("OpenVINOExecutionProvider" in ort.get_available_providers(), reason="this onnxruntime has OpenVINO")
def test_openvino_where_it_is_not_installed_names_its_package(make_onnx: Any) -> None:
    with pytest.raises(BadInput, match=r"no device 'openvino'; it has .*cpu.*; pip install onnxruntime-openvino"):
        load(make_onnx(), device="openvino")


@pytest.mark.skipif("OpenVINOExecutionProvider" not in ort.get_available_providers(), reason="OpenVINO is not installed")
def test_openvino_gives_the_scores_of_the_cpu_but_for_rounding(make_onnx: Any) -> None:
    path = make_onnx()
    here, there = load(path), load(path, device="openvino")
    assert np.abs(here(batch(16)).scores - there(batch(16)).scores).max() < 1e-4
    assert here.ref == there.ref


def test_a_device_that_is_not_there_is_named(make_onnx: Any) -> None:
    with pytest.raises(BadInput, match="no device 'warp'"):
        load(make_onnx(), device="warp")
    assert load(make_onnx(), device="CPUExecutionProvider", threads=1)(batch()).scores.shape == (3, 5)


def test_weights_with_a_second_name_on_the_disk_are_one_sentence(make_onnx: Any, tmp_path: Path) -> None:
    path = make_onnx(external=True)
    for file in list(path.parent.iterdir()):
        if file != path:
            os.link(file, tmp_path / f"{file.name}.other")
    with pytest.raises(BadInput, match=r"of the model cannot be read: .*hard links"):
        load(path)


def test_a_batch_that_fills_the_memory_is_refused(make_onnx: Any) -> None:
    with pytest.raises(BadInput, match="wants 1,099,511,627,776 images at a time"):
        load(make_onnx(batch=2**40))(batch())


def test_scales_along_an_axis_that_is_not_there_are_one_sentence(make_onnx: Any) -> None:
    path = make_onnx(head="quantised")
    model = onnx.load(path)
    (node,) = (node for node in model.graph.node if node.op_type == "DequantizeLinear")
    node.attribute[0].i = 7
    onnx.save(model, path)
    with pytest.raises(BadInput, match="scales along axis 7 of 2"):
        load(path)


@pytest.mark.parametrize(
    ("cores", "threads", "gigabytes", "batches", "pool"),
    [
        *((cores, None, 256, cores, 1) for cores in (1, 2, 8, 64)),
        *((64, threads, 256, threads, 1) for threads in (1, 2, 16)),
        (2, 16, 256, 16, 1),  # as asked for
        (200, None, 256, 64, 137),
        (64, None, 16, 16, 49),  # too little memory for more batches: the other threads help with these
        (8, None, 0.5, 1, 8),
    ],
)
def test_every_core_has_a_batch_to_work_on_and_none_has_two(
    monkeypatch: pytest.MonkeyPatch,
    make_onnx: Any,
    cores: int,
    threads: int | None,
    gigabytes: float,
    batches: int,
    pool: int,
) -> None:
    monkeypatch.setenv("SHIFTPROOF_CORES", str(cores))
    monkeypatch.setattr("shiftproof.cores.usable_memory", lambda: int(gigabytes * 2**30))
    model = load(make_onnx(), threads=threads)
    session = model.forward
    assert isinstance(session, OnnxSession)
    assert (model.concurrent_batches, session.threads) == (batches, pool)
    assert batches + pool - 1 == (threads or cores), "the pool of a session is shared by all batches and has one thread less"
    alone = session.one_at_a_time()
    assert (alone.concurrent_batches, alone.threads) == (1, threads or cores)
