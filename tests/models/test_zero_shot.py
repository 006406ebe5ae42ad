"""Zero-shot classifiers against open_clip itself, with seeded random weights: none can be fetched here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from safetensors.numpy import save

import shiftproof as sp
from shiftproof.errors import BadInput, UnknownName
from shiftproof.models import load_model
from shiftproof.models.classifiers.zero_shot import TEXT, TextMatrix, load_text_matrix, spelled
from shiftproof.types import Classes
from toys import save_encoder

NAMES = ["a_tench", "great white shark", "n't [odd] {braces}"]


def unit(rows: Any) -> Any:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    save_encoder(tmp_path / "encoder.onnx")
    return tmp_path / "encoder.onnx"


def text_matrix(**more: Any) -> TextMatrix:
    rows = unit(np.random.default_rng(1).normal(size=(3, 4))).astype(np.float32)
    return TextMatrix(rows, 50.0, -2.0, Classes(("blue", "green", "red")), ("a {}",), "imagenet,size=16", **more)


def test_an_encoder_and_text_embeddings_are_a_classifier_with_a_head(encoder: Path, tmp_path: Path) -> None:
    matrix = text_matrix()
    matrix.save(tmp_path / TEXT)
    model = load_model(f"clip:{encoder}")
    assert model.classes == matrix.classes
    inputs = np.random.default_rng(2).normal(size=(5, 3, 16, 16)).astype(np.float32)
    scores, features, _ = model(inputs, features=True)
    weights = numpy_helper.to_array(onnx.load(encoder).graph.initializer[0])
    embeddings = unit(inputs.astype(np.float64).mean(axis=(2, 3)) @ weights)
    assert features is not None
    assert np.abs(features - embeddings).max() < 1e-6
    assert np.abs(scores - (50 * embeddings @ matrix.embeddings.T - 2)).max() < 1e-4
    assert model.head is not None
    assert np.abs(features @ model.head.weights.T + model.head.bias - scores).max() < 1e-4


def test_other_text_embeddings_are_another_model(encoder: Path, tmp_path: Path) -> None:
    text_matrix().save(tmp_path / TEXT)
    text_matrix(gives="scores").save(tmp_path / "other.safetensors")
    first, other = load_model(f"clip:{encoder}"), load_model(f"clip:{encoder}?text={tmp_path / 'other.safetensors'}")
    assert first.ref.fingerprint != other.ref.fingerprint
    assert (first.gives, other.gives) == ("logits", "scores")
    assert load_model(f"clip:{encoder}").ref == first.ref


def test_studies_and_training_take_a_zero_shot_model(encoder: Path, tmp_path: Path, draw_photos: Any) -> None:
    text_matrix().save(tmp_path / TEXT)
    photos = draw_photos(8)
    others, learned = (str(draw_photos(8, name)) for name in ("others", "learned"))
    asked = sp.OODOptions(ood=(others,), ood_detectors=("energy", "react"), training=learned)
    options = sp.StudyChoice(["ood"], {"ood": asked})
    results = sp.run(f"clip:{encoder}", photos, studies=options, store=tmp_path / "runs")
    assert {one.about.get("ood_detector") for one in results.measurements if one.metric == "auroc"} >= {"energy", "react"}
    recipe = sp.TrainOptions(recipe="baseline", l2=0.1)
    trained = sp.train(f"clip:{encoder}", photos, tmp_path / "better", options=recipe, store=tmp_path / "runs")
    assert load_model(str(trained.folder)).head is not None


def test_it_runs_without_torch(encoder: Path, tmp_path: Path) -> None:
    text_matrix().save(tmp_path / TEXT)
    code = (
        "import sys, numpy, shiftproof as sp\n"
        f"model = sp.load_model('clip:{encoder}')\n"
        "print(model(numpy.zeros((2, 3, 16, 16), 'float32') + 1).scores.shape, 'torch' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "(2, 3) False"


def test_damaged_and_strange_text_embeddings_are_told(encoder: Path, tmp_path: Path) -> None:
    path = tmp_path / TEXT
    with pytest.raises(BadInput):
        load_model(f"clip:{encoder}")
    path.write_bytes(b"no safetensors")
    with pytest.raises(BadInput, match="safetensors file with text"):
        load_text_matrix(path)
    TextMatrix(2 * text_matrix().embeddings, 1.0).save(path)
    with pytest.raises(BadInput, match="normalised"):
        load_text_matrix(path)
    TextMatrix(unit(np.ones((3, 7), np.float32)), 1.0).save(path)
    with pytest.raises(BadInput, match="4 numbers an image, and text embeddings have 7"):
        load_model(f"clip:{encoder}")
    with pytest.raises(UnknownName, match="template"):
        spelled("ViT-B-32?template=simple")
    with pytest.raises(BadInput, match="is for architectures"):
        load_model(f"clip:{encoder}?templates=simple")


torch = pytest.importorskip("torch")


@pytest.mark.parametrize(
    "told",
    [
        {"names": "[" * 100_000},
        {"names": '"abc"'},
        {"names": '{"a": 1, "b": 2, "c": 3}'},
        {"names": '["a", null, "c"]'},
        {"templates": "5"},
    ],
    ids=lambda told: str(told)[:24],
)
def test_metadata_of_a_stranger_is_refused(tmp_path: Path, told: dict[str, str]) -> None:
    tensors = {"text": text_matrix().embeddings, "logit_scale": np.ones(1, np.float32)}
    (tmp_path / TEXT).write_bytes(save(tensors, metadata=told))
    with pytest.raises(BadInput, match="should be a safetensors file"):
        load_text_matrix(tmp_path / TEXT)


@pytest.mark.parametrize("scale", [0.0, -5.0])
def test_a_scale_that_turns_the_order_of_classes_around_is_refused(tmp_path: Path, scale: float) -> None:
    TextMatrix(text_matrix().embeddings, scale).save(tmp_path / TEXT)
    with pytest.raises(BadInput, match="above 0"):
        load_text_matrix(tmp_path / TEXT)


def test_eight_bit_embeddings_are_told(tmp_path: Path) -> None:
    shapes = {"text": ("F8_E4M3", [3, 4], [0, 12]), "logit_scale": ("F32", [1], [12, 16])}
    keys = ("dtype", "shape", "data_offsets")
    head = json.dumps({name: dict(zip(keys, one, strict=True)) for name, one in shapes.items()})
    (tmp_path / TEXT).write_bytes(len(head).to_bytes(8, "little") + head.encode() + bytes(16))
    with pytest.raises(BadInput, match="should be a safetensors file"):
        load_text_matrix(tmp_path / TEXT)


@pytest.mark.parametrize("name", ["logits", "shiftproof.features"])
def test_the_embeddings_may_have_any_name(encoder: Path, tmp_path: Path, name: str) -> None:
    text_matrix().save(tmp_path / TEXT)
    inputs = np.random.default_rng(2).normal(size=(5, 3, 16, 16)).astype(np.float32)
    before = load_model(f"clip:{encoder}")(inputs, features=True)
    graph = onnx.load(encoder)
    graph.graph.node[-1].output[0] = graph.graph.output[0].name = name
    onnx.save(graph, encoder)
    after = load_model(f"clip:{encoder}")(inputs, features=True)
    assert np.array_equal(before.scores, after.scores)
    assert before.features is not None
    assert after.features is not None
    assert np.array_equal(before.features, after.features)


@pytest.fixture(scope="module")
def open_clip() -> Any:
    return pytest.importorskip("open_clip", reason="open_clip_torch is not installed")


@pytest.fixture(scope="module")
def network(open_clip: Any) -> Any:
    """The same random weights as ours."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return open_clip.create_model("ViT-S-32-alt", pretrained=None).eval()


SMALL = "clip:ViT-S-32-alt?pretrained={weights}"


@pytest.fixture(scope="module")
def weights(network: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from safetensors.torch import save_file

    path: Path = tmp_path_factory.mktemp("weights") / "small.safetensors"
    save_file({name: tensor.contiguous().clone() for name, tensor in network.state_dict().items()}, path)
    return path


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("templates", ["one", "simple", "openai"])
def test_our_logits_are_those_of_open_clip(open_clip: Any, network: Any, weights: Path, templates: str) -> None:
    model = load_model(f"{SMALL.format(weights=weights)}&templates={templates}", classes=NAMES)
    theirs = {
        "one": [lambda name: f"a photo of a {name}."],
        "simple": open_clip.SIMPLE_IMAGENET_TEMPLATES,
        "openai": open_clip.OPENAI_IMAGENET_TEMPLATES,
    }[templates]
    prompts = [name.replace("_", " ") for name in NAMES]
    tokenizer = open_clip.get_tokenizer("ViT-S-32-alt")
    matrix = open_clip.build_zero_shot_classifier(network, tokenizer, prompts, theirs)
    photo = np.random.default_rng(3).integers(0, 256, (300, 280, 3), dtype=np.uint8)
    inputs = model.preprocessing.from_image(photo)[None]
    with torch.no_grad():
        expected = network.logit_scale.exp() * network.encode_image(torch.from_numpy(inputs), normalize=True) @ matrix
    scores, features, _ = model(inputs, features=True)
    assert np.abs(scores - expected.numpy()).max() < 1e-4
    assert features is not None
    assert model.head is not None
    assert np.abs(model.head.weights - (network.logit_scale.exp() * matrix.T).detach().numpy()).max() < 1e-5
    assert np.abs(features @ model.head.weights.T - scores).max() < 1e-4


@pytest.mark.filterwarnings("ignore")
def test_our_inputs_are_those_of_open_clip(open_clip: Any, network: Any, weights: Path) -> None:
    from PIL import Image

    transform = open_clip.transform.image_transform_v2(
        open_clip.transform.PreprocessCfg(**open_clip.get_model_preprocess_cfg(network)), is_train=False
    )
    model = load_model(SMALL.format(weights=weights), classes=NAMES)
    for shape in [(375, 500), (500, 375), (224, 224), (256, 997)]:
        image = np.random.default_rng(0).integers(0, 256, (*shape, 3), dtype=np.uint8)
        theirs = transform(Image.fromarray(image)).numpy()
        assert np.abs(theirs - model.preprocessing.from_image(image)).max() < 1e-6


@pytest.mark.filterwarnings("ignore")
def test_without_classes_they_are_those_of_imagenet_in_its_order(
    open_clip: Any, weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from shiftproof.models.classifiers import zero_shot_torch

    def embedded(_network: Any, _tokenizer: Any, prompts: Any, templates: Any) -> Any:
        assert list(prompts) == list(open_clip.IMAGENET_CLASSNAMES)
        assert templates[:2] == ("a bad photo of a {}.", "a photo of many {}.")
        assert len(templates) == 80
        return unit(np.random.default_rng(0).normal(size=(1000, 256))).astype(np.float32)

    monkeypatch.setenv("SHIFTPROOF_CACHE", str(tmp_path))
    monkeypatch.setattr(zero_shot_torch, "embedded", embedded)  # 80,000 prompts take long
    model = load_model(SMALL.format(weights=weights))
    assert model.classes is not None
    assert model.classes.wnids is not None
    assert len(model.classes) == 1000
    # both lists are in the order of ILSVRC-2012: most names are alike, and none of these stands elsewhere
    alike = [
        place
        for place, (ours, theirs) in enumerate(zip(model.classes.names, open_clip.IMAGENET_CLASSNAMES, strict=True))
        if ours.lower() == theirs.lower()
    ]
    assert len(alike) > 500
    assert np.ptp(np.diff(alike)) < 15


@pytest.mark.filterwarnings("ignore")
def test_prompts_are_embedded_once(weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from shiftproof.models.classifiers import zero_shot_torch

    monkeypatch.setenv("SHIFTPROOF_CACHE", str(tmp_path / "cache"))
    asked: list[Any] = []
    embed = zero_shot_torch.embedded

    def counted(*given: Any) -> Any:
        asked.append(given[2])
        return embed(*given)

    monkeypatch.setattr(zero_shot_torch, "embedded", counted)
    first, again = (load_model(SMALL.format(weights=weights), classes=NAMES) for _ in range(2))
    other = load_model(SMALL.format(weights=weights), classes=NAMES[:2])
    assert [len(prompts) for prompts in asked] == [3, 2]
    assert first.ref == again.ref != other.ref
    (kept, _) = sorted((tmp_path / "cache").rglob("*.safetensors"))
    kept.write_bytes(b"damaged")
    assert load_model(SMALL.format(weights=weights), classes=NAMES).ref == first.ref
    assert load_model(SMALL.format(weights=weights), classes=NAMES[:2]).ref == other.ref
    assert len(asked) == 3


@pytest.mark.filterwarnings("ignore")
def test_the_same_network_as_onnx_and_safetensors(weights: Path, tmp_path: Path) -> None:
    model = load_model(SMALL.format(weights=weights), classes=NAMES)
    place = sp.save_zero_shot(model, tmp_path / "saved")
    again = load_model(f"clip:{place}")
    assert again.classes == model.classes
    assert again.preprocessing == model.preprocessing
    photos = np.random.default_rng(4).integers(0, 256, (3, 224, 224, 3), dtype=np.uint8)
    inputs = np.stack([model.preprocessing.from_image(photo) for photo in photos])
    first, second = model(inputs, features=True), again(inputs, features=True)
    assert first.features is not None
    assert second.features is not None
    assert np.abs(first.features - second.features).max() < 1e-4
    assert np.abs(first.scores - second.scores).max() < 1e-3 * np.abs(first.scores).max()


@pytest.mark.filterwarnings("ignore")
def test_what_is_wrong_with_an_architecture_is_told(open_clip: Any, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="needs weights"):
        load_model("clip:ViT-B-32")
    with pytest.raises(UnknownName, match="ViT-B-33"):
        load_model("clip:ViT-B-33?pretrained=random")
    with pytest.raises(UnknownName, match="laion7b"):
        load_model("clip:ViT-B-32?pretrained=laion7b")
    (tmp_path / "templates.txt").write_text("a photo\n")
    with pytest.raises(BadInput, match="a template a line"):
        load_model(f"clip:ViT-S-32-alt?pretrained=random&templates={tmp_path / 'templates.txt'}", classes=NAMES)
