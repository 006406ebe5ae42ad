"""Recipes of test time: what they compute, by hand and beside torch, and that no prediction depends on its neighbours."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray
from PIL import Image as Pillow

import shiftproof as sp
from shiftproof.cli.main import cli
from shiftproof.datasets.image_list import ImageList
from shiftproof.errors import BadInput, UnknownName
from shiftproof.models.loaded import LoadedClassifier
from shiftproof.runs.adapting import adapted_to, under
from shiftproof.runs.store import Store
from shiftproof.training.at_test_time import View, views_named
from shiftproof.types import Predictions
from training.small_jobs import noisy_colours

NETWORKS = """
import torch
from torch import nn

def network(norm=True):
    torch.manual_seed(2)
    parts = [nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6) if norm else nn.Identity(), nn.ReLU()]
    parts += [nn.Conv2d(6, 5, 3, padding=1), nn.BatchNorm2d(5) if norm else nn.Identity(), nn.ReLU()]
    module = nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(5, 3))
    with torch.no_grad():
        for layer in module:
            if isinstance(layer, nn.BatchNorm2d):
                layer.running_mean.normal_()
                layer.running_var.uniform_(0.5, 2)
                layer.weight.uniform_(0.5, 2)
                layer.bias.normal_()
        module[-1].weight.mul_(2)
    return module

def plain():
    return network(norm=False)
"""
COLOURS = ["red", "green", "blue"]


def batch(images: int = 6, side: int = 12, seed: int = 1) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(size=(images, 3, side, side)).astype(np.float32)


def chances(scores: NDArray[np.floating]) -> NDArray[np.floating]:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., LoadedClassifier]:
    pytest.importorskip("torch", reason="torch is not installed")
    (tmp_path / "networks.py").write_text(NETWORKS)

    def load(adapt: str | None = None, factory: str = "network", **options: Any) -> LoadedClassifier:
        said: dict[str, Any] = {"classes": COLOURS, "preprocess": "squash,size=12", **options}
        model = sp.load_model(f"torch:{tmp_path / 'networks.py'}:{factory}", adapt=adapt, **said)
        assert isinstance(model, LoadedClassifier)
        return model

    return load


def module_of(model: LoadedClassifier) -> Any:
    return model.forward.module  # type: ignore[attr-defined]


# tta


def test_views_are_windows_of_the_input() -> None:
    ramp = np.tile(np.arange(8, dtype=np.float32), (1, 1, 8, 1))
    (zoom_out,) = [view for view in views_named("scales", 0.5) if view.side == 2]
    assert View(0, 0, 1).of(ramp, "nchw")[0, 0, 0].tolist() == [0, 1, 2, 3, 4, 5, 6, 7]
    assert View(0, 0, 1, mirrored=True).of(ramp, "nchw")[0, 0, 0].tolist() == [7, 6, 5, 4, 3, 2, 1, 0]
    # the left half at twice its size: pixel centres at -0.25, 0.25, ... of the row, beyond the border mirrored
    assert View(0, 0, 0.5).of(ramp, "nchw")[0, 0, 0].tolist() == [0, 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3.25]
    # the whole at half its size, with half of it mirrored on each side: centres at -3.5, -1.5, 0.5, 2.5, ...
    assert zoom_out.of(ramp, "nchw")[0, 0, 0].tolist() == [2.5, 0.5, 0.5, 2.5, 4.5, 6.5, 6.5, 4.5]
    last = np.ascontiguousarray(ramp.transpose(0, 2, 3, 1))
    for view in views_named("flips/crops/scales", 0.75):
        assert np.array_equal(view.of(last, "nhwc").transpose(0, 3, 1, 2), view.of(ramp, "nchw"))


def test_views_of_bytes_are_bytes() -> None:
    inputs = np.random.default_rng(0).integers(0, 256, (2, 3, 10, 10), np.uint8)
    assert all(view.of(inputs, "nchw").dtype == np.uint8 for view in views_named("flips/crops/scales", 0.8))


def test_the_plain_view_alone_is_the_model(load: Callable[..., LoadedClassifier]) -> None:
    inputs = batch()
    plain, same = load(), load("tta:plain")
    assert np.array_equal(plain(inputs).scores, same(inputs).scores)
    assert plain.ref.fingerprint != same.ref.fingerprint
    assert same.ref.name == "network tta:plain"


def test_a_mean_over_views_is_that_of_probabilities(load: Callable[..., LoadedClassifier]) -> None:
    inputs = batch()
    plain, averaged = load(), load("tta:flips")
    both = [plain(inputs, features=True), plain(np.ascontiguousarray(inputs[..., ::-1]), features=True)]
    found = averaged(inputs, features=True)
    assert np.allclose(chances(found.scores), np.mean([chances(one.scores) for one in both], axis=0), atol=1e-6)
    energies = [np.log(np.exp(one.scores).sum(axis=1)) for one in (*both, found)]
    assert np.allclose(energies[2], np.mean(energies[:2], axis=0), atol=1e-5)
    assert found.features is not None
    assert np.allclose(found.features, (both[0].features + both[1].features) / 2, atol=1e-6)  # type: ignore[operator]
    assert averaged.head is None, "the mean of probabilities is no linear function of features"


def test_tta_says_which_sequences_it_evens_out(load: Callable[..., LoadedClassifier]) -> None:
    assert load("tta:flips/crops").seen.augmentations == ("translate",)
    assert load("tta").seen.augmentations == ()
    assert load("tta").notes[-1] == "tta: the mean probability over 2 views of each input (flips)"


@pytest.mark.parametrize(
    ("adapt", "said"),
    [
        ("tta:flop", "no kind of views called 'flop'; did you mean flips?"),
        ("tta?share=1", "tta: share should lie between 0 and 1, got 1"),
        ("augmix", "augmix is no recipe of test time"),
        ("tta+memo", "tta and memo both adapt a model at test time: choose one"),
        ("bn-adapt:1", "images should be 2 at least and source 0 or more, got 1 and 16"),
        ("tent?rate=-1", "rate -1 should be 0 or more"),
        ("memo:0", "memo: views should be 1 at least"),
    ],
)
def test_a_recipe_that_cannot_be_is_told(adapt: str, said: str, load: Callable[..., LoadedClassifier]) -> None:
    with pytest.raises((BadInput, UnknownName)) as told:
        load(adapt)
    assert said in str(told.value)


def test_what_a_recipe_cannot_change_is_told(load: Callable[..., LoadedClassifier]) -> None:
    with pytest.raises(BadInput, match="no batch norms with statistics"):
        load("bn-adapt", factory="plain")
    with pytest.raises(BadInput, match="gives scores"):
        load("bn-adapt", gives="scores")
    with pytest.raises(BadInput, match="say by which recipe, as in --adapt tta"):
        sp.load_model("adapted:lite:0")
    with pytest.raises(BadInput, match="adapts a model at test time, and trains nothing beforehand"):
        sp.train("lite:0", "nowhere", "better", options=sp.TrainOptions(recipe="tta"))


# batch norms


def test_statistics_are_those_worked_by_hand(load: Callable[..., LoadedClassifier]) -> None:
    torch = pytest.importorskip("torch")
    inputs, plain, model = batch(), load(), load("bn-adapt?source=2")
    assert model.adaptation is not None
    adapted = module_of(dataclasses.replace(model, forward=model.adaptation.to([inputs])))
    before = module_of(plain)
    first = before[0](torch.from_numpy(inputs)).double().numpy()
    mean, variance = first.mean(axis=(0, 2, 3)), first.var(axis=(0, 2, 3))
    # six images beside two of training
    expected = [0.75 * mean + 0.25 * before[1].running_mean.numpy(), 0.75 * variance + 0.25 * before[1].running_var.numpy()]
    assert np.allclose(adapted[1].running_mean.numpy(), expected[0], atol=1e-6)
    assert np.allclose(adapted[1].running_var.numpy(), expected[1], atol=1e-6)


def test_statistics_of_several_batches_are_pooled(load: Callable[..., LoadedClassifier]) -> None:
    inputs, model = batch(10), load("bn-adapt?source=0")
    assert model.adaptation is not None
    whole, parts = model.adaptation.to([inputs]), model.adaptation.to([inputs[:7], inputs[7:]])
    one, other = (module_of(dataclasses.replace(model, forward=forward))[1] for forward in (whole, parts))
    assert np.allclose(one.running_mean, other.running_mean, atol=1e-6)
    assert np.allclose(one.running_var, other.running_var, atol=1e-6)


def test_all_batches_are_mixed_with_the_source_by_one_share(load: Callable[..., LoadedClassifier]) -> None:
    inputs, model = batch(), load("bn-adapt?source=3")
    assert model.adaptation is not None
    once, twice = model.adaptation.to([np.concatenate([inputs, inputs])]), model.adaptation.to([inputs, inputs])
    # the same images in each batch: layers after the first see the same too
    assert np.allclose(once(inputs, False).scores, twice(inputs, False).scores, atol=1e-5)


def test_without_the_source_it_is_torch_in_training_mode(load: Callable[..., LoadedClassifier]) -> None:
    torch = pytest.importorskip("torch")
    inputs = batch()
    module = module_of(load()).train()
    with torch.no_grad():
        expected = module(torch.from_numpy(inputs)).numpy()
    assert np.allclose(load("bn-adapt?source=0")(inputs).scores, expected, atol=1e-5)


def test_with_the_source_alone_it_is_the_model(load: Callable[..., LoadedClassifier]) -> None:
    inputs = batch()
    assert np.array_equal(load("bn-adapt?source=inf")(inputs).scores, load()(inputs).scores)
    assert not np.allclose(load("bn-adapt")(inputs).scores, load()(inputs).scores, atol=1e-3)


def test_a_model_that_adapted_keeps_its_head(load: Callable[..., LoadedClassifier]) -> None:
    inputs, model = batch(), load("bn-adapt")
    found = model(inputs, features=True)
    assert model.head is not None
    assert found.features is not None
    assert np.allclose(found.features @ model.head.weights.T + model.head.bias, found.scores, atol=1e-4)


# tent


def test_tent_lowers_entropy_and_moves_scales_and_shifts_alone(load: Callable[..., LoadedClassifier]) -> None:
    torch = pytest.importorskip("torch")
    from shiftproof.training.networks.at_test_time import entropy

    inputs = batch(24)
    model = load("tent?rate=0.02,epochs=5")
    assert model.adaptation is not None
    still = load("tent?rate=0")(inputs).scores
    network = model.adaptation.to([inputs[:12], inputs[12:]])
    own, adapted = module_of(load()).state_dict(), network.module.state_dict()  # type: ignore[attr-defined]
    moved = {name for name in own if not torch.equal(own[name], adapted[name])}
    counted = {"1.num_batches_tracked", "4.num_batches_tracked"}
    assert moved - counted == {
        f"{layer}.{part}" for layer in (1, 4) for part in ("weight", "bias", "running_mean", "running_var")
    }
    now = network(inputs, False).scores
    assert float(entropy(torch.from_numpy(now)).mean()) < float(entropy(torch.from_numpy(still)).mean()) - 0.01
    assert not any(parameter.requires_grad for parameter in network.module.parameters())  # type: ignore[attr-defined]


def test_tent_without_a_step_is_bn_adapt(load: Callable[..., LoadedClassifier]) -> None:
    inputs = batch()
    for still in ("tent?rate=0", "tent?epochs=0"):
        assert np.array_equal(load(still)(inputs).scores, load("bn-adapt?source=0")(inputs).scores)


def test_adapting_leaves_the_model_as_it_was(load: Callable[..., LoadedClassifier]) -> None:
    inputs, other = batch(), batch(8, seed=5)
    for adapt in ("bn-adapt", "tent?rate=0.1,epochs=3"):
        model = load(adapt)
        first = model(inputs).scores
        model(other)
        assert np.array_equal(model(inputs).scores, first)


# memo


def test_memo_without_a_step_is_the_model(load: Callable[..., LoadedClassifier]) -> None:
    inputs = pictures_as_inputs(load(), 3)
    plain = load()(inputs, features=True)
    for still in ("memo:4?rate=0,source=inf", "memo:4?steps=0,source=inf"):
        found = load(still)(inputs, features=True)
        assert np.allclose(found.scores, plain.scores, atol=1e-5)
        assert np.allclose(found.features, plain.features, atol=1e-5)  # type: ignore[arg-type]


def test_memo_knows_no_other_image_and_is_itself_again(load: Callable[..., LoadedClassifier]) -> None:
    model = load("memo:4?rate=0.05")
    inputs = pictures_as_inputs(model, 3)
    together = model(inputs).scores
    assert np.array_equal(model(np.ascontiguousarray(inputs[::-1])).scores[::-1], together)
    assert np.array_equal(model(inputs[1:2]).scores[0], together[1])
    assert not np.allclose(together, load("memo:4?rate=0")(inputs).scores, atol=1e-3)
    assert load("memo:4", factory="plain")(inputs).scores.shape == (3, 3), "no batch norms are needed"


def test_a_step_of_memo_lowers_the_entropy_of_the_mean(load: Callable[..., LoadedClassifier]) -> None:
    torch = pytest.importorskip("torch")
    from shiftproof.training.networks.at_test_time import entropy, marginal_entropy

    logits = torch.tensor([[2.0, 0.0, -1.0], [0.0, 1.0, 0.5]], requires_grad=True)
    mean = logits.softmax(dim=1).mean(dim=0)
    assert torch.allclose(marginal_entropy(logits), -(mean * mean.log()).sum())
    assert torch.allclose(marginal_entropy(logits[:1]), entropy(logits[0]))
    (gradient,) = torch.autograd.grad(marginal_entropy(logits), logits)
    assert marginal_entropy(logits - 0.1 * gradient) < marginal_entropy(logits)


def pictures_as_inputs(model: LoadedClassifier, images: int) -> NDArray[np.float32]:
    pixels = np.random.default_rng(3).integers(0, 256, (images, 12, 12, 3), np.uint8)
    return np.stack([model.preprocessing.from_picture(one) for one in pixels]).astype(np.float32)


@pytest.mark.parametrize("preprocess", ["imagenet", "caffe", "half", "lite", "imagenet,channels=grey,mean=0.4,std=0.2"])
def test_pictures_are_had_back_from_inputs(preprocess: str) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from shiftproof.models import parse_preprocessing
    from shiftproof.training.networks.inputs import Inputs

    pixels = np.random.default_rng(3).integers(0, 256, (2, 9, 9, 3), np.uint8)
    if "grey" in preprocess:
        pixels = np.repeat(pixels[..., :1], 3, axis=3)
    own = parse_preprocessing(f"{preprocess},size=9,resize=squash")
    inputs = np.stack([own.from_picture(one) for one in pixels])
    assert np.array_equal(Inputs(own, torch.device("cpu")).pictures(inputs), pixels)


# in the store


@pytest.fixture
def images(tmp_path: Path) -> ImageList:
    return noisy_colours(tmp_path / "photos", 8)


def predicted(model: Any, images: Any, store: Path, **said: Any) -> Predictions:
    found = sp.predict(model, images, store=store, keep="logits", workers=0, **said)
    assert isinstance(found, Predictions)
    return found


def logits_by_id(predictions: Predictions) -> dict[str, list[float]]:
    assert predictions.logits is not None
    return dict(zip(predictions.ids, predictions.logits.tolist(), strict=True))


@pytest.mark.parametrize("adapt", ["bn-adapt:10", "tent?images=10,rate=0.05"])
def test_predictions_know_neither_order_nor_batch_nor_shard(
    adapt: str, images: ImageList, load: Callable[..., LoadedClassifier], tmp_path: Path
) -> None:
    model, fog = load(adapt), sp.Condition("contrast", 3, edition="cifar-32")
    whole = logits_by_id(predicted(model, images, tmp_path / "a", condition=fog))
    backwards = dataclasses.replace(images, samples=images.samples[::-1])
    other = logits_by_id(predicted(model, backwards, tmp_path / "b", condition=fog, batch_size=5))
    assert other.keys() == whole.keys()
    assert all(np.allclose(other[key], whole[key], atol=1e-5) for key in whole)
    for part in (2, 1):
        sp.store_predictions(
            model, images, store=tmp_path / "c", shard=(part, 2), prediction=sp.PredictionSettings(keep="logits")
        )
    parts = logits_by_id(predicted(model, images, tmp_path / "c"))
    clean = logits_by_id(predicted(model, images, tmp_path / "a"))
    assert all(np.allclose(parts[key], clean[key], atol=1e-5) for key in clean)
    assert any(not np.allclose(whole[key], clean[key], atol=1e-2) for key in clean), (
        "each condition has statistics of its own"
    )


def test_what_was_stopped_goes_on_to_the_same(
    images: ImageList, load: Callable[..., LoadedClassifier], tmp_path: Path
) -> None:
    whole = logits_by_id(predicted(load("bn-adapt:10"), images, tmp_path / "a"))
    bound = adapted_to(load("bn-adapt:10"), images, Store(tmp_path / "b"))
    some = dataclasses.replace(images, samples=images.samples[3:9])
    first = logits_by_id(predicted(bound, some, tmp_path / "b"))
    rest = logits_by_id(predicted(bound, images, tmp_path / "b"))
    assert all(first[key] == rest[key] for key in first)
    assert all(np.allclose(rest[key], whole[key], atol=1e-5) for key in whole)


def test_the_images_adapted_to_are_part_of_the_model(
    images: ImageList, load: Callable[..., LoadedClassifier], tmp_path: Path
) -> None:
    store, model = Store(tmp_path / "runs"), load("bn-adapt:10")
    bound = adapted_to(model, images, store)
    assert bound.ref.name == "network bn-adapt:10 on photos"
    assert "it adapts to 10 images of photos, without their labels" in bound.notes[-1]
    unlabelled = dataclasses.replace(images, samples=[dataclasses.replace(one, labels=()) for one in images.samples[::-1]])
    assert adapted_to(model, unlabelled, store).ref == bound.ref, "labels and order take no part"
    assert adapted_to(bound, unlabelled, store) is bound
    fewer = dataclasses.replace(images, samples=images.samples[1:])
    chosen = {sample.id for sample in bound.adaptation.images.samples}  # type: ignore[union-attr]
    assert (adapted_to(model, fewer, store).ref == bound.ref) is (images.samples[0].id not in chosen)
    changed = tmp_path / "photos" / sorted(chosen)[0]
    Pillow.fromarray(np.zeros((12, 12, 3), np.uint8)).save(changed)
    assert adapted_to(model, images, store).ref.fingerprint != bound.ref.fingerprint
    assert adapted_to(load("bn-adapt:10", name="mine"), images, store).ref.name == "mine"
    assert adapted_to(load("tta"), images, store).ref == load("tta").ref


def test_without_images_nothing_is_stored(load: Callable[..., LoadedClassifier], images: ImageList, tmp_path: Path) -> None:
    from shiftproof.runs.predict import fill

    with pytest.raises(BadInput, match="adapts to images of a dataset, and there is none here"):
        fill(load("bn-adapt"), images, store=Store(tmp_path / "runs"))
    model = adapted_to(load("bn-adapt"), images, Store(tmp_path / "runs"))
    for path in (tmp_path / "photos").rglob("*.png"):
        path.write_bytes(b"none")
    with pytest.raises(BadInput, match="none of these can be read"):
        under(model, sp.Condition("clean", 0))(batch())


def test_the_command_runs_and_compares_a_model_that_adapts(
    images: ImageList, load: Callable[..., LoadedClassifier], tmp_path: Path
) -> None:
    assert load() is not None
    said = ["--preprocess", "squash,size=12", "--classes", str(tmp_path / "names.txt"), "--store", str(tmp_path / "runs")]
    (tmp_path / "names.txt").write_text("\n".join(images.classes.names if images.classes else []))
    model, photos = f"torch:{tmp_path / 'networks.py'}:network", str(tmp_path / "photos")
    for adapt in ([], ["--adapt", "bn-adapt"], ["--adapt", "tta"]):
        ran = CliRunner().invoke(
            cli, ["run", model, photos, "--studies", "accuracy", "-o", str(tmp_path / "r.html"), *said, *adapt]
        )
        assert ran.exit_code == 0, ran.output
    measured = CliRunner().invoke(cli, ["measure", model, photos, *said, "--adapt", "bn-adapt", "--studies", "accuracy"])
    assert measured.exit_code == 0, measured.output
    compared = sp.compare([], photos, store=tmp_path / "runs", studies=["accuracy"])
    names = {one.about["model"] for one in compared.measurements if one.metric == "top1_accuracy"}
    assert names == {"network", "network bn-adapt on photos", "network tta"}
    assert "it adapts to all" in (tmp_path / "r.html").read_text() or "tta" in (tmp_path / "r.html").read_text()


def test_a_grid_trains_once_for_recipes_that_differ_at_test_time(
    images: ImageList, load: Callable[..., LoadedClassifier], tmp_path: Path
) -> None:
    pytest.importorskip("onnx", reason="onnx is not installed")
    assert load() is not None
    options = sp.GridOptions(
        recipes="linear-probe,linear-probe+tta,linear-probe+bn-adapt:6",
        corruptions=("contrast",),
        seeds=2,
        l2=0.1,
        models=str(tmp_path / "recipes"),
    )
    settings = sp.ModelSettings(preprocess="squash,size=12", classes=str(tmp_path / "names.txt"), trust=True)
    (tmp_path / "names.txt").write_text("\n".join(images.classes.names if images.classes else []))
    results = sp.recipes(
        f"torch:{tmp_path / 'networks.py'}:network",
        images,
        options=options,
        store=tmp_path / "runs",
        model_options=settings,
    )
    assert [path.name for path in (tmp_path / "recipes").iterdir()] == ["linear-probe"]
    judged = {one.about["recipe"] for one in results.measurements if one.metric == "recipe_gain"}
    assert judged == {"linear-probe+tta", "linear-probe+bn-adapt:6"}
