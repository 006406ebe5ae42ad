"""A further output beside the class scores: named when the model is loaded, kept with every row."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray

import shiftproof as sp
from shiftproof.cli.main import cli
from shiftproof.errors import BadInput
from shiftproof.models import load_model, wrap_model
from shiftproof.options import PredictionSettings
from shiftproof.runs.load import load_predictions
from shiftproof.runs.predict import fill
from shiftproof.runs.store import Store
from shiftproof.types import CLEAN, Classifier, Inputs, Run
from toys import COLOURS, colour_scores

BRANCH = np.random.default_rng(5).normal(size=(6, 1)).astype(np.float32)
NETWORK = """
import torch
from torch import nn

class Confident(nn.Module):
    def __init__(self, kind):
        super().__init__()
        torch.manual_seed(0)
        self.kind = kind
        self.body = nn.Sequential(nn.Conv2d(3, 6, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.confidence, self.classes = nn.Linear(6, 1), nn.Linear(6, 5)

    def forward(self, images):
        points = self.body(images)
        confidence = self.confidence(points)
        logits = self.classes(points)
        return {"tuple": (logits, confidence), "names": {"logits": logits, "sure": confidence}, "hidden": logits}[self.kind]

def tuple(): return Confident("tuple")
def names(): return Confident("names")
def hidden(): return Confident("hidden")
"""


def batch(images: int = 5, size: int = 8) -> NDArray[np.float32]:
    return np.random.default_rng(1).normal(size=(images, 3, size, size)).astype(np.float32)


def sigmoid(values: NDArray[np.floating]) -> NDArray[np.floating]:
    return np.asarray(1 / (1 + np.exp(-values)))


@pytest.fixture
def with_branch(make_onnx: Callable[..., Path]) -> Callable[..., str]:
    """Writes a small classifier with a confidence branch, shown as an output or hidden in the graph."""
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")

    def make(*, shown: bool = True, batch: int | str = "batch") -> str:
        path = make_onnx(batch=batch)
        model = onnx.load(path)
        model.graph.initializer.append(onnx.numpy_helper.from_array(BRANCH, "branch"))
        model.graph.node.append(onnx.helper.make_node("MatMul", ["flat", "branch"], ["product"]))
        model.graph.node.append(onnx.helper.make_node("Sigmoid", ["product"], ["conf"]))
        if shown:
            model.graph.output.append(onnx.helper.make_tensor_value_info("conf", onnx.TensorProto.FLOAT, [batch, 1]))
        onnx.checker.check_model(model)
        onnx.save(model, path)
        return f"onnx:{path}"

    return make


def load(spec: str, **options: Any) -> Any:
    return load_model(spec, **{"classes": list("abcde"), "preprocess": "imagenet,size=8", **options})


@pytest.mark.parametrize("shown", [True, False])
def test_an_output_or_a_tensor_of_an_onnx_graph_is_read_beside_the_scores(
    with_branch: Callable[..., str], shown: bool
) -> None:
    model = load(with_branch(shown=shown), extra_output="conf")
    scores, features, extra = model(batch(), features=True)
    assert np.allclose(extra, sigmoid(features @ BRANCH), atol=1e-6)
    assert extra.dtype == np.float32
    assert np.allclose(features @ model.head.weights.T + model.head.bias, scores, atol=1e-5)
    assert np.array_equal(model(batch()).extra, extra)


def test_naming_the_extra_output_tells_which_of_two_holds_the_scores(with_branch: Callable[..., str]) -> None:
    spec = with_branch()
    with pytest.raises(BadInput, match="which output holds the class scores"):
        load(spec)
    assert load(spec, extra_output="conf")(batch()).scores.shape == (5, 5)


def test_the_extra_output_is_part_of_the_fingerprint(with_branch: Callable[..., str]) -> None:
    spec = with_branch(shown=False)
    assert load(spec).ref.fingerprint != load(spec, extra_output="conf").ref.fingerprint
    assert np.array_equal(load(spec)(batch()).scores, load(spec, extra_output="conf")(batch()).scores)


def test_scores_features_and_extra_may_be_the_same_tensor(with_branch: Callable[..., str]) -> None:
    outputs = load(with_branch(shown=False), extra_output="flat")(batch(), features=True)
    assert np.array_equal(outputs.extra, outputs.features)


def test_a_model_of_one_batch_size_gives_as_many_extra_rows_as_images(with_branch: Callable[..., str]) -> None:
    fixed = load(with_branch(shown=False, batch=2), extra_output="conf")(batch(), features=True)
    assert np.allclose(fixed.extra, sigmoid(fixed.features @ BRANCH), atol=1e-6)


@pytest.mark.parametrize(
    ("kind", "name"), [("tuple", "1"), ("tuple", "confidence"), ("names", "sure"), ("hidden", "confidence")]
)
def test_a_part_of_a_torch_answer_or_a_layer_is_read_beside_the_scores(tmp_path: Path, kind: str, name: str) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    (tmp_path / "networks.py").write_text(NETWORK)
    model = load(f"torch:{tmp_path / 'networks.py'}:{kind}", extra_output=name)
    defined: dict[str, Any] = {}
    exec(NETWORK, defined)
    with torch.inference_mode():
        logits, confidence = defined["tuple"]()(torch.from_numpy(batch()))
    scores, features, extra = model(batch(), features=True)
    assert np.allclose(scores, logits.numpy(), atol=1e-6)
    assert np.allclose(extra, confidence.numpy(), atol=1e-6)
    assert features.shape == (5, 6)
    assert model.head is not None
    assert model(batch()).features is None


def test_an_exported_program_shows_the_parts_of_its_answer(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    defined: dict[str, Any] = {}
    exec(NETWORK, defined)
    module = defined["tuple"]().eval()
    shapes = ({0: torch.export.Dim("images")},)
    torch.export.save(torch.export.export(module, (torch.zeros(2, 3, 8, 8),), dynamic_shapes=shapes), tmp_path / "two.pt2")
    with torch.inference_mode():
        confidence = module(torch.from_numpy(batch()))[1]
    extra = load(f"torch:{tmp_path / 'two.pt2'}", preprocess="imagenet", extra_output="1", trust=True)(batch()).extra
    assert np.allclose(extra, confidence.numpy(), atol=1e-6)


def test_a_name_that_nothing_has_is_refused_before_the_first_image(with_branch: Callable[..., str], tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no tensor 'cnof'"):
        load(with_branch(), extra_output="cnof")
    pytest.importorskip("torch", reason="torch is not installed")
    (tmp_path / "networks.py").write_text(NETWORK)
    for name in ("sure", "2"):
        with pytest.raises(BadInput, match=f"'{name}'"):
            load(f"torch:{tmp_path / 'networks.py'}:tuple", extra_output=name)


def test_lite_has_no_extra_output() -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    with pytest.raises(BadInput, match="lite:0 takes no extra_output"):
        load_model("lite:0", extra_output="conf")


def test_more_than_a_few_numbers_an_image_are_refused(with_branch: Callable[..., str]) -> None:
    with pytest.raises(BadInput, match=r"1 to 64 numbers an image, got shape \(5, 384\)"):
        load(with_branch(shown=False), extra_output="positive")(batch())


def confident(inputs: Inputs) -> tuple[Any, Any, Any]:
    """Scores of the colours, no features, and two numbers an image that half precision would round."""
    means = np.asarray(inputs, np.float64).mean(axis=(1, 2, 3))
    return colour_scores(inputs), None, np.stack([means + 1000, means], axis=1)


@pytest.fixture
def colours() -> Classifier:
    return wrap_model(
        confident,
        name="confident",
        version="1",
        class_names=sorted(COLOURS),
        size=(16, 16),
        preprocess="squash,mean=0,std=1",
    )


def test_a_functions_third_item_is_its_extra_output(colours: Classifier) -> None:
    inputs = batch(3, 16)
    assert np.array_equal(colours(inputs).extra, confident(inputs)[2].astype(np.float32))  # type: ignore[arg-type]
    flat = wrap_model(lambda inputs: (*confident(inputs)[:2], inputs.mean(axis=(1, 2, 3))), name="flat", version="1")
    extra = flat(inputs).extra
    assert extra is not None
    assert extra.shape == (3, 1)


@pytest.mark.parametrize("keep", ["top5", "logits"])
@pytest.mark.parametrize("half", [False, True])
def test_extra_numbers_are_stored_whole_whatever_else_is_kept(
    colours: Classifier,
    draw_photos: Callable[..., Path],
    tmp_path: Path,
    keep: Literal["top5", "logits", "features"],
    half: bool,
) -> None:
    images = sp.open_dataset(draw_photos(7))
    found = sp.predict(colours, images, store=tmp_path / "runs", keep=keep, half=half, batch_size=4)
    sources = [images.source(sample) for sample in images.samples]
    inputs = np.stack([colours.preprocessing.from_image(source.decode(source.read())) for source in sources])
    assert found.extra is not None
    assert np.array_equal(found.extra, colours(inputs).extra)  # type: ignore[arg-type]
    assert len(list((tmp_path / "runs").glob("rows/*/*.safetensors"))) == 1  # sealed, so joined from six files


def test_extra_numbers_survive_shards_and_merging(
    colours: Classifier, draw_photos: Callable[..., Path], tmp_path: Path
) -> None:
    images = sp.open_dataset(draw_photos(7))
    whole = sp.predict(colours, images, store=tmp_path / "whole")
    merged = Store(tmp_path / "merged")
    for part in (1, 2):
        store = Store(tmp_path / f"part{part}")
        fill(colours, images, store=store, settings=PredictionSettings(batch_size=4), shard=(part, 2))
        merged.absorb(store)
    found = load_predictions(Run(colours.ref, images.ref, CLEAN), images, store=merged)
    assert whole.extra is not None
    assert np.array_equal(found.extra, whole.extra)  # type: ignore[arg-type]


def test_rows_of_which_only_some_have_extra_numbers_come_without_them(
    colours: Classifier, draw_photos: Callable[..., Path], tmp_path: Path
) -> None:
    images, store = sp.open_dataset(draw_photos(4)), Store(tmp_path / "runs")
    silent = wrap_model(
        colour_scores,
        name="confident",
        version="1",
        class_names=sorted(COLOURS),
        size=(16, 16),
        preprocess="squash,mean=0,std=1",
    )
    fill(colours, images, store=store, settings=PredictionSettings(batch_size=4), shard=(1, 2))
    found = sp.predict(silent, images, store=store, batch_size=4)
    assert found.extra is None
    assert len(found) == len(images.samples)


def test_an_extra_number_that_is_none_skips_its_image(draw_photos: Callable[..., Path], tmp_path: Path) -> None:
    def unsure_of_blue(inputs: Inputs) -> tuple[Any, Any, Any]:
        scores = colour_scores(inputs)
        return scores, None, np.where(scores.argmax(axis=1) == 0, np.nan, 1.0)

    model = wrap_model(
        unsure_of_blue,
        name="unsure",
        version="1",
        class_names=sorted(COLOURS),
        size=(16, 16),
        preprocess="squash,mean=0,std=1",
    )
    found = sp.predict(model, sp.open_dataset(draw_photos(3)), store=tmp_path / "runs")
    assert (len(found), len(found.skipped_images)) == (6, 3)
    assert "NaN" in found.skipped_images[0].reason


def test_the_command_line_names_an_extra_output(
    with_branch: Callable[..., str], draw_photos: Callable[..., Path], tmp_path: Path
) -> None:
    (tmp_path / "classes.txt").write_text("\n".join([*sorted(COLOURS), "d", "e"]))
    spec, photos = with_branch(), draw_photos(2)
    options = ["--preprocess", "imagenet,size=8", "--classes", str(tmp_path / "classes.txt"), "--quiet"]
    done = CliRunner().invoke(
        cli, ["predict", spec, str(photos), "--store", str(tmp_path / "runs"), "--extra-output", "conf", *options]
    )
    assert done.exit_code == 0, done.output
    images, store = sp.open_dataset(photos), Store(tmp_path / "runs")
    found = load_predictions(Run(store.models()[0].ref, images.ref, CLEAN), images, store=store)
    assert found.extra is not None
    assert found.extra.shape == (6, 1)
