"""Networks with freshly drawn weights: the same architecture, Kaiming normal, alike in torch and in ONNX."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

import onnx

from shiftproof.errors import BadInput
from shiftproof.models import load_model, random_network, wrap_model
from shiftproof.models.classifiers.onnx import recipes_of
from shiftproof.models.classifiers.onnx_graph import OnnxGraph
from shiftproof.models.companions import Fans, RandomWeights
from shiftproof.models.loaded import LoadedClassifier

RESIDUAL = """
import torch
from torch import nn

class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.stem = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(16)
        self.inner = nn.Conv2d(16, 16, 3, padding=1, groups=4)
        self.inner_norm = nn.BatchNorm2d(16)
        self.head = nn.Linear(16, 5)
        for norm in (self.norm, self.inner_norm):
            nn.init.uniform_(norm.weight), nn.init.uniform_(norm.bias)
            norm.running_mean.uniform_(), norm.running_var.uniform_(0.5, 2)

    def forward(self, images):
        values = self.norm(self.stem(images)).relu()
        values = (values + self.inner_norm(self.inner(values))).relu()
        return self.head(values.mean((2, 3)))
"""
TOKENS = """
import torch
from torch import nn

class Tokens(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.patches = nn.Conv2d(3, 16, 4, stride=4)
        self.token = nn.Parameter(torch.ones(1, 1, 16))
        self.norm, self.slope = nn.LayerNorm(16), nn.PReLU()
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)
        self.head = nn.Linear(16, 5)
        self.register_buffer("mean", torch.full((1, 3, 1, 1), 0.5))

    def forward(self, images):
        values = self.patches(images - self.mean).flatten(2).transpose(1, 2)
        values = self.norm(torch.cat([self.token.expand(len(values), -1, -1), values], 1))
        return self.head(self.slope(self.attention(values, values, values)[0])[:, 0])
"""


def batch(images: int = 4, size: int = 16) -> NDArray[np.float32]:
    return np.random.default_rng(1).normal(size=(images, 3, size, size)).astype(np.float32)


def load(spec: str, **options: Any) -> LoadedClassifier:
    model = load_model(spec, **{"classes": list("abcde"), "preprocess": "imagenet,size=16", **options})
    assert isinstance(model, LoadedClassifier)
    return model


@pytest.fixture
def residual(tmp_path: Path) -> Any:
    """A small network with a shortcut and batch norms, as a torch module and where its factory is."""
    pytest.importorskip("torch", reason="torch is not installed")
    (tmp_path / "residual.py").write_text(RESIDUAL)
    names: dict[str, Any] = {}
    exec(RESIDUAL, names)
    return names["Residual"]().eval(), f"torch:{tmp_path / 'residual.py'}:Residual"


def twin(module: Any, folder: Path) -> str:
    """The same network as an ONNX file, its tensors under the names that torch has for them."""
    helper = onnx.helper
    state = {name: tensor.numpy() for name, tensor in module.state_dict().items() if not name.endswith("tracked")}

    def norm(name: str) -> list[str]:
        return [f"{name}.{part}" for part in ("weight", "bias", "running_mean", "running_var")]

    nodes = [
        helper.make_node("Conv", ["images", "stem.weight"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["a", *norm("norm")], ["b"]),
        helper.make_node("Relu", ["b"], ["c"]),
        helper.make_node("Conv", ["c", "inner.weight", "inner.bias"], ["d"], pads=[1, 1, 1, 1], group=4),
        helper.make_node("BatchNormalization", ["d", *norm("inner_norm")], ["e"]),
        helper.make_node("Add", ["c", "e"], ["f"]),
        helper.make_node("Relu", ["f"], ["g"]),
        helper.make_node("GlobalAveragePool", ["g"], ["h"]),
        helper.make_node("Flatten", ["h"], ["flat"]),
        helper.make_node("Gemm", ["flat", "head.weight", "head.bias"], ["logits"], transB=1),
    ]
    graph = helper.make_graph(
        nodes,
        "residual",
        [helper.make_tensor_value_info("images", onnx.TensorProto.FLOAT, ["batch", 3, 16, 16])],
        [helper.make_tensor_value_info("logits", onnx.TensorProto.FLOAT, ["batch", 5])],
        [onnx.numpy_helper.from_array(values, name) for name, values in state.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, folder / "residual.onnx")
    return f"onnx:{folder / 'residual.onnx'}"


def drawn_tensors(model: LoadedClassifier) -> dict[str, NDArray[Any]]:
    """The stored tensors of a redrawn model's graph."""
    graph = onnx.load_model_from_string(model.forward.graph()).graph  # type: ignore[attr-defined]
    return {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer}


def examples(residual: Any, tmp_path: Path) -> Iterator[LoadedClassifier]:
    """The same network in every kind of file that shows its weights."""
    import torch

    module, factory = residual
    shapes = ({0: torch.export.Dim("images")},)
    torch.export.save(torch.export.export(module, (torch.zeros(2, 3, 16, 16),), dynamic_shapes=shapes), tmp_path / "a.pt2")
    yield load(factory)
    yield load(f"torch:{tmp_path / 'a.pt2'}", preprocess="imagenet", trust=True)
    yield load(twin(module, tmp_path))


def test_one_seed_draws_one_network_in_whatever_file_it_lies(residual: Any, tmp_path: Path) -> None:
    models = list(examples(residual, tmp_path))
    before = [model(batch()).scores for model in models]
    answers = [random_network(model, 1)(batch(), features=True) for model in models]
    for answer in answers[1:]:
        assert np.allclose(answer.scores, answers[0].scores, rtol=1e-4, atol=1e-5)
        assert np.allclose(answer.features, answers[0].features, rtol=1e-4, atol=1e-5)  # type: ignore[arg-type]
    assert np.abs(answers[0].scores - before[0]).max() > 0.1
    for model, scores in zip(models, before, strict=True):
        assert np.array_equal(model(batch()).scores, scores)  # the model itself stays as it is


def test_the_same_seed_gives_the_same_answers_and_another_seed_others(residual: Any, tmp_path: Path) -> None:
    for model in examples(residual, tmp_path):
        first, again, other = (random_network(model, seed) for seed in (1, 1, 2))
        assert np.array_equal(first(batch()).scores, again(batch()).scores)
        assert np.abs(first(batch()).scores - other(batch()).scores).max() > 0.1
        assert first.ref == again.ref
        assert len({model.ref.fingerprint, first.ref.fingerprint, other.ref.fingerprint}) == 3


def test_the_head_is_drawn_too_and_turns_the_features_into_the_logits(residual: Any, tmp_path: Path) -> None:
    for model in examples(residual, tmp_path):
        drawn = random_network(model, 1)
        scores, features, _ = drawn(batch(), features=True)
        assert drawn.head is not None
        assert model.head is not None
        assert np.abs(drawn.head.weights - model.head.weights).max() > 0.1
        assert not drawn.head.bias.any()
        assert np.allclose(features @ drawn.head.weights.T + drawn.head.bias, scores, atol=1e-5)  # type: ignore[operator]


def test_skip_broken_weights_and_past_stays(residual: Any) -> None:
    model = load(residual[1])
    drawn = random_network(model, 4)
    assert drawn.ref.name == "Residual redrawn 4"
    assert (drawn.preprocessing, drawn.classes, drawn.gives) == (model.preprocessing, model.classes, model.gives)
    assert "drawn anew (Kaiming normal, fan in, seed 4)" in drawn.seen.training_data
    assert random_network(model, 4, fan="out").ref.fingerprint != drawn.ref.fingerprint


@pytest.mark.parametrize("fan", ["in", "out"])
def test_drawn_weights_spread_as_the_rule_says(fan: Any) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    tensors = drawn_tensors(random_network(load_model("lite:0"), 1, fan=fan))
    weights = {name: values for name, values in tensors.items() if name.endswith(".weight")}
    assert len(weights) == 50  # stem, a block of two layers, fifteen of three, the last convolution, the head
    for name, values in weights.items():
        fans = torch.nn.init._calculate_fan_in_and_fan_out(torch.empty(values.shape))
        fan_out = fans[1] / (len(values) if "depthwise" in name else 1)  # torch leaves the groups out of it
        spread = np.sqrt(2 / (fans[0] if fan == "in" else fan_out))
        error = 5 / np.sqrt(2 * values.size)  # five times the relative sampling error of a standard deviation
        assert abs(values.std() / spread - 1) < error
        assert abs(values.mean() / spread) < 5 / np.sqrt(values.size)
    biases = {name: values for name, values in tensors.items() if name not in weights}
    assert {"zero", "six", "_fc.bias", "_bn0.shift"} < biases.keys()
    assert tensors["six"] == 6
    assert not any(values.any() for name, values in biases.items() if name != "six")


def test_tensors_of_a_layer_are_drawn_apart_from_each_other() -> None:
    first, second = (RandomWeights(1).normal(name, (1000,), 1.0) for name in ("a", "b"))
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.15
    assert np.array_equal(first, RandomWeights(1).normal("a", (1000,), 1.0))


@pytest.mark.real
def test_lite_drawn_anew_is_alive_and_knows_nothing(real_data: Path) -> None:
    photos = sorted((real_data / "ilsvrc-sample-1000").glob("*.jpg"))[::20]
    model = load_model("lite:0")
    inputs = np.stack([model.preprocessing.from_image(np.asarray(Image.open(photo).convert("RGB"))) for photo in photos])
    assert model.classes is not None
    labels = [model.classes.keys.index(photo.name[:9]) for photo in photos]
    drawn = random_network(model, 1)
    scores, features, _ = drawn(inputs, features=True)
    assert features is not None
    assert features.shape == (50, 1280)
    assert scores.shape == (50, 1000)
    assert np.isfinite(scores).all()
    assert (features.std(axis=0) > 0.01).mean() > 0.9  # most features tell photos apart
    assert np.median(np.ptp(scores, axis=0)) > 0.1
    # guessing is right once in a thousand, and about three of fifty once in fifty thousand
    assert (scores.argmax(axis=1) == labels).sum() < 3


def test_a_module_of_attention_tokens_and_slopes_is_drawn_whole(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    (tmp_path / "tokens.py").write_text(TOKENS)
    model = load(f"torch:{tmp_path / 'tokens.py'}:Tokens")
    torch.manual_seed(9)
    state = torch.get_rng_state()
    drawn = random_network(model, 1)
    assert torch.equal(torch.get_rng_state(), state)
    tensors = dict(drawn.forward.module.state_dict())  # type: ignore[attr-defined]
    for name, fan_in in [("patches.weight", 48), ("attention.in_proj_weight", 16), ("attention.out_proj.weight", 16)]:
        error = 5 / np.sqrt(2 * tensors[name].numel())
        assert abs(tensors[name].std().item() / np.sqrt(2 / fan_in) - 1) < error
    assert abs(tensors["token"].std().item() / 0.02 - 1) < 5 / np.sqrt(2 * 16)
    assert tensors["slope.weight"].item() == 0.25
    assert (tensors["norm.weight"] == 1).all()
    assert (tensors["mean"] == 0.5).all()  # how images are normalised is no weight
    for name in ("patches.bias", "attention.in_proj_bias", "attention.out_proj.bias", "norm.bias"):
        assert not tensors[name].any()
    assert any("spread of 0.02" in note and "token" in note for note in drawn.notes)
    assert np.isfinite(drawn(batch()).scores).all()


def test_drawing_by_the_fan_out_is_torchs_own_of_that_name() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    theirs = torch.nn.init.kaiming_normal_(torch.empty(64, 32, 3, 3), mode="fan_out", nonlinearity="relu").numpy()
    ours = RandomWeights(0, "out").weights("w", (64, 32, 3, 3), Fans(into=32 * 9, out=64 * 9))
    assert abs(ours.std() / theirs.std() - 1) < 5 / np.sqrt(ours.size)


def node(kind: str, inputs: str, output: str, **attributes: Any) -> Any:
    return onnx.helper.make_node(kind, inputs.split(), [output], **attributes)


WIDE = np.ones((20, 30), np.float32)
LONG = np.ones(30, np.float32)


@pytest.mark.parametrize(
    ("nodes", "stored", "recipes"),
    [
        ([node("Gemm", "x w b", "y")], {"w": WIDE, "b": LONG}, {"w": Fans(20, 30), "b": 0.0}),
        ([node("Gemm", "x w", "y", transB=1)], {"w": WIDE}, {"w": Fans(30, 20)}),
        ([node("MatMul", "x w", "m"), node("Add", "b m", "y")], {"w": WIDE, "b": LONG}, {"w": Fans(20, 30), "b": 0.0}),
        ([node("MatMul", "w x", "y")], {"w": WIDE}, {"w": Fans(30, 20)}),
        ([node("Transpose", "w", "v"), node("MatMul", "x v", "y")], {"w": WIDE}, {"w": Fans(30, 20)}),
        ([node("MatMul", "x w", "m"), node("Add", "m p", "y")], {"w": WIDE, "p": WIDE}, {"w": Fans(20, 30)}),
        (
            [node("MatMul", "x w", "m"), node("LayerNormalization", "m g b", "y")],
            {"w": WIDE, "g": LONG, "b": LONG},
            {"w": Fans(20, 30), "g": 1.0, "b": 0.0},
        ),
        ([node("MatMul", "x w", "m"), node("PRelu", "m s", "y")], {"w": WIDE, "s": LONG}, {"w": Fans(20, 30), "s": 0.25}),
        (
            [node("MatMul", "x w", "m"), node("Clip", "m l h", "y")],
            {"w": WIDE, "l": LONG[0], "h": LONG[0]},
            {"w": Fans(20, 30)},
        ),
        ([node("ConvTranspose", "x w", "y")], {"w": np.ones((8, 4, 3, 3), np.float32)}, {"w": Fans(72, 36)}),
    ],
)
def test_what_is_drawn_of_a_graph_are_the_weights_of_its_layers(
    nodes: Any, stored: dict[str, NDArray[Any]], recipes: dict[str, Any]
) -> None:
    tensors = [onnx.numpy_helper.from_array(np.asarray(values), name) for name, values in stored.items()]
    graph = onnx.helper.make_graph(nodes, "layer", [], [], tensors)
    assert recipes_of(OnnxGraph(onnx.helper.make_model(graph), Path())) == recipes


@pytest.mark.parametrize("head", ["gemm", "gemm-and-add", "matmul", "pooled-conv"])
def test_the_head_is_found_again_however_it_is_written(make_onnx: Callable[..., Path], head: str) -> None:
    drawn = random_network(load(f"onnx:{make_onnx(head=head)}", preprocess="imagenet"), 1)
    scores, features, _ = drawn(batch(size=8), features=True)
    assert drawn.head is not None
    assert np.allclose(features @ drawn.head.weights.T + drawn.head.bias, scores, atol=1e-4)  # type: ignore[operator]


def test_half_precision_and_weights_in_a_file_of_their_own_are_drawn(make_onnx: Callable[..., Path]) -> None:
    plain = random_network(load(f"onnx:{make_onnx()}", preprocess="imagenet"), 1)(batch(size=8)).scores
    external = random_network(load(f"onnx:{make_onnx('far.onnx', external=True)}", preprocess="imagenet"), 1)
    half = random_network(load(f"onnx:{make_onnx('half.onnx', dtype='float16')}", preprocess="imagenet"), 1)
    assert np.array_equal(external(batch(size=8)).scores, plain)
    assert drawn_tensors(half)["kernel"].dtype == np.float16
    assert np.allclose(half(batch(size=8).astype(np.float16)).scores, plain, atol=0.05)


def test_weights_in_constant_nodes_are_drawn(make_onnx: Callable[..., Path], tmp_path: Path) -> None:
    model = onnx.load(make_onnx())
    constants = [onnx.helper.make_node("Constant", [], [tensor.name], value=tensor) for tensor in model.graph.initializer]
    nodes = [*constants, *model.graph.node]
    del model.graph.initializer[:], model.graph.node[:]
    model.graph.node.extend(nodes)
    onnx.save(model, tmp_path / "constants.onnx")
    plain = random_network(load(f"onnx:{make_onnx()}", preprocess="imagenet"), 1)
    constant = random_network(load(f"onnx:{tmp_path / 'constants.onnx'}", preprocess="imagenet"), 1)
    assert np.array_equal(constant(batch(size=8)).scores, plain(batch(size=8)).scores)


def test_stored_tensors_of_no_known_layer_are_left_and_named(make_onnx: Callable[..., Path], tmp_path: Path) -> None:
    model = onnx.load(make_onnx(normalises=True))
    places = np.random.default_rng(0).normal(size=(1, 6, 8, 8)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(places, "places"))
    relu = next(place for place, node in enumerate(model.graph.node) if node.op_type == "Relu")
    model.graph.node[relu].input[0] = "placed"
    model.graph.node.insert(relu, onnx.helper.make_node("Add", ["maps", "places"], ["placed"]))
    onnx.save(model, tmp_path / "places.onnx")
    drawn = random_network(load(f"onnx:{tmp_path / 'places.onnx'}", preprocess="unit"), 1)
    assert any("not re-initialised" in note and "places" in note and "mean" not in note for note in drawn.notes)
    assert np.array_equal(drawn_tensors(drawn)["places"], places)
    assert (drawn_tensors(drawn)["mean"] == 0.5).all()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_cannot_be_drawn_anew_says_why(make_onnx: Callable[..., Path], residual: Any, tmp_path: Path) -> None:
    import torch

    traced = torch.jit.trace(residual[0], torch.zeros(1, 3, 16, 16))  # type: ignore[no-untyped-call]
    torch.jit.save(traced, tmp_path / "a.pt")
    function = wrap_model(lambda inputs: inputs.mean(axis=(2, 3)), name="mean", version="1")
    (tmp_path / "bare.py").write_text("from torch import nn\ndef bare(): return nn.AdaptiveAvgPool2d(1)\n")
    for model, why in [
        (function, "mean has no weights"),
        (load(f"torch:{tmp_path / 'a.pt'}", trust=True), "TorchScript hides its layers"),
        (load(f"onnx:{make_onnx(head='quantised')}", preprocess="imagenet"), "quantised"),
        (load(f"torch:{tmp_path / 'bare.py'}:bare", classes=list("rgb")), "no convolution or linear layer"),
    ]:
        with pytest.raises(BadInput, match=why):
            random_network(model, 1)
    with pytest.raises(BadInput, match="fan in or out"):
        random_network(function, 1, fan="both")  # type: ignore[arg-type]
