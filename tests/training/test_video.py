"""Training on frames of clips, and on images with several labels: losses, frames, hyperparameters, what comes out."""

from __future__ import annotations

import csv
import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pillow

import shiftproof as sp
from shiftproof.errors import BadInput
from shiftproof.options import ModelSettings
from shiftproof.training.heads import Design, Linear, binary_cross_entropies, fit_logistic
from shiftproof.training.options import TrainOptions
from shiftproof.training.recipe import chosen_recipes
from shiftproof.training.trained import architecture_of, read_trained, read_weights
from shiftproof.training.trainings import with_published
from shiftproof.training.video import evenly_spread
from shiftproof.types import Classes, Sample
from toys import COLOURS, save_colour_network

pytestmark = pytest.mark.usefixtures("one_worker")

SETTINGS = ModelSettings(preprocess="squash,size=16,mean=0,std=1")


def colour_clips(folder: Path, clips: int = 3, frames: int = 5) -> Path:
    """Clips of each colour: a folder of numbered frames each, which differ by noise."""
    rng = np.random.default_rng(0)
    for name, colour in COLOURS.items():
        for clip in range(clips):
            (folder / name / f"clip{clip}").mkdir(parents=True)
            for frame in range(frames):
                pixels = np.clip(np.array(colour) + rng.normal(0, 12, (16, 16, 3)), 0, 255).astype(np.uint8)
                Pillow.fromarray(pixels).save(folder / name / f"clip{clip}" / f"{frame:03}.png")
    return folder


@pytest.fixture
def network(tmp_path: Path) -> str:
    save_colour_network(tmp_path / "colours.onnx")
    return f"onnx:{tmp_path / 'colours.onnx'}"


def options(recipe: str, **said: Any) -> sp.TrainOptions:
    return sp.TrainOptions(recipe=recipe, **said)


# the loss


def test_every_class_is_a_yes_or_no_of_its_own() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from shiftproof.training.networks import losses

    # probabilities 1/2 and 3/4 of classes that are there and not: -log 1/2 - log 1/4; then 1/5 and 1/2, both there
    logits = torch.tensor([[0.0, np.log(3)], [-np.log(4), 0.0]])
    targets = torch.tensor([[1.0, 0.0], [1.0, 1.0]])
    step = losses.Step(lambda images: {"logits": logits}, torch.zeros(2, 3, 4, 4), targets, np.random.default_rng(0))
    by_hand = [np.log(2) + np.log(4), np.log(5) + np.log(2)]
    assert float(losses.multi_label(step)) == pytest.approx(sum(by_hand) / 4, rel=1e-6)
    total = losses.label_loss(logits, targets, multi_label=True, reduction="sum")
    assert float(total) == pytest.approx(sum(by_hand) / 2, rel=1e-6), "images are added up, classes are a mean"
    found = binary_cross_entropies(logits.numpy(), targets.numpy())
    assert found.losses == pytest.approx(by_hand, rel=1e-6), "of a head it is the sum over classes"
    assert found.slopes == pytest.approx(np.array([[-0.5, 0.75], [-0.8, -0.5]]), abs=1e-6)


def test_labels_may_share_a_softmax_instead() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from shiftproof.training.networks import losses

    logits, targets = torch.tensor([[np.log(2.0), 0.0, 0.0]]), torch.tensor([[0.5, 0.5, 0.0]])  # 1/2, 1/4, 1/4
    step = losses.Step(lambda images: {"logits": logits}, torch.zeros(1, 3, 4, 4), targets, np.random.default_rng(0))
    assert float(losses.multi_label(step, loss="softmax")) == pytest.approx(0.5 * np.log(2) + 0.5 * np.log(4), rel=1e-6)
    (softmax,), (sigmoid,) = chosen_recipes("video?loss=softmax"), chosen_recipes("video")
    assert (softmax.multi_label, sigmoid.multi_label) == (False, True)


def test_heads_of_exclusive_labels_are_logistic_regressions_of_each_class() -> None:
    """With two classes a softmax is a sigmoid of the difference, and each of its halves bears half of the penalty."""
    rng = np.random.default_rng(3)
    features = rng.normal(size=(60, 4))
    labels = (features @ [1.0, -1, 0.5, 0] + rng.normal(size=60) > 0).astype(int)
    weights = np.full(60, 1 / 60)
    design = Design(features, np.eye(2)[labels], weights)
    shared = fit_logistic(design, 0.02)
    alone = fit_logistic(dataclasses.replace(design, multi_label=True), 0.01)
    assert alone.weight[1] == pytest.approx(shared.weight[1] - shared.weight[0], abs=1e-4)
    assert alone.bias[1] == pytest.approx(shared.bias[1] - shared.bias[0], abs=1e-4)
    assert alone.weight[0] == pytest.approx(-alone.weight[1], abs=1e-4)


def test_any_label_of_a_row_is_correct() -> None:
    head = Linear(np.eye(3), np.zeros(3))
    rows = np.array([[3.0, 2, 0], [3, 2, 0], [0, 1, 2]])
    targets = np.array([[1.0, 1, 0], [0, 1, 0], [0, 1, 1]])
    assert Design(rows, targets, np.full(3, 1 / 3), multi_label=True).accuracy(head) == pytest.approx(2 / 3)


# frames


def test_frames_are_spread_over_each_clip_and_each_is_there_once() -> None:
    long = [Sample(f"a/{number:02}.png", (0,), {"clip": "a", "frame": number}) for number in range(20)]
    again = [Sample("a/10.png@000012", (0,), {"clip": "a", "frame": 10})]
    short = [Sample(f"b/{number}.png", (1,), {"clip": "b", "frame": number}) for number in (7, 3)]
    kept = [sample.id for sample in evenly_spread([*long, *again, *short], frames=4, loss="sigmoid")]
    assert kept == ["a/02.png", "a/07.png", "a/12.png", "a/17.png", "b/7.png", "b/3.png"]
    assert len(evenly_spread([*long, *again], frames=0, loss="sigmoid")) == 20
    with pytest.raises(BadInput, match="these images do not say which clip they are of"):
        evenly_spread([Sample("a.png", (0,))], frames=4, loss="sigmoid")
    with pytest.raises(BadInput, match="frames of each clip should be 1 or more, or 0 for all"):
        chosen_recipes("video:-1")
    with pytest.raises(BadInput, match=r"loss should be sigmoid .* or softmax"):
        chosen_recipes("video?loss=hinge")


# hyperparameters


def test_published_hyperparameters_count_where_nobody_chose_others() -> None:
    recipes = chosen_recipes("video")
    plain = TrainOptions(level="network")
    found = with_published(plain, recipes, "torchvision:resnet152")
    assert (found.epochs, found.batch_size, found.schedule, found.learning_rate) == (10, 32, "plateau", 1e-4)
    assert with_published(plain, recipes, "timm:vgg16").learning_rate == 1e-5
    assert with_published(plain, recipes, "torch:models/alexnet/nets.py:small").learning_rate is None
    said = TrainOptions(level="network", epochs=3, schedule="cosine", given=frozenset({"schedule"}))
    own = with_published(said, recipes, "timm:resnet50")
    assert (own.epochs, own.schedule, own.batch_size, own.learning_rate) == (3, "cosine", 32, 1e-4)
    assert with_published(TrainOptions(), recipes, "timm:resnet50") == TrainOptions(), "a head has none"
    assert with_published(plain, chosen_recipes("baseline"), "timm:resnet50") == plain


def test_a_network_that_was_never_trained_has_no_architecture_to_fine_tune() -> None:
    assert architecture_of("scratch:resnet-20", ModelSettings()) == ""
    assert architecture_of("timm:resnet50", ModelSettings(weights="random")) == ""
    assert architecture_of("timm:resnet50", ModelSettings()) == "timm:resnet50"


# heads, from end to end


def test_a_head_on_frames_of_clips_gives_scores_and_parts_no_clip(tmp_path: Path, network: str) -> None:
    clips, out = colour_clips(tmp_path / "clips"), tmp_path / "better"
    trained = sp.train(
        network,
        f"frames:{clips}?k=0&every=1",
        out,
        options=options("video:2"),
        store=tmp_path / "runs",
        model_options=SETTINGS,
    )
    held_out = {Path(one).parent for one in trained.record.split["validation"]}
    assert (trained.record.split["training"], len(trained.record.split["validation"]), len(held_out)) == (12, 6, 3)
    assert trained.accuracy == {"clean": 1.0}
    model = sp.load_model(str(out))
    assert model.gives == "scores", "a softmax over answers to nine questions is no probability"
    inputs = np.random.default_rng(0).random((4, 3, 16, 16), np.float32)
    weights = read_weights(out)
    assert model(inputs).scores == pytest.approx(inputs.mean((2, 3)) @ weights["weight"].T + weights["bias"], abs=1e-5)
    results = sp.run(str(out), f"frames:{clips}?k=1&every=3", studies=["temporal"], store=tmp_path / "runs")
    (accuracy,) = (one for one in results.measurements if one.metric == "pm_k_accuracy" and one.about["k"] == 10)
    assert accuracy.value == 1.0
    with pytest.raises(BadInput, match="ridge regression has no sigmoid for each class"):
        sp.train(network, f"frames:{clips}", tmp_path / "c", options=options("video", fit="ridge"), model_options=SETTINGS)


def test_images_with_several_labels_are_trained_and_any_of_them_is_correct(tmp_path: Path, network: str) -> None:
    """Purple pictures are red and blue at once: log-odds of both are above 0, where a softmax would share."""
    rng, rows = np.random.default_rng(0), [["path", "labels"]]
    for name, colour in (("red", (220, 10, 10)), ("blue", (10, 10, 220)), ("red|blue", (220, 10, 220))):
        for number in range(10):
            path = f"{name.replace('|', '-')}{number}.png"
            pixels = np.clip(np.array(colour) + rng.normal(0, 10, (16, 16, 3)), 0, 255).astype(np.uint8)
            Pillow.fromarray(pixels).save(tmp_path / path)
            rows.append([path, name])
    with (tmp_path / "photos.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    found: dict[str, Any] = {}
    for recipe in ("multi-label", "linear-probe"):
        out = tmp_path / recipe
        trained = sp.train(
            network,
            tmp_path / "photos.csv",
            out,
            options=options(recipe),
            store=tmp_path / "runs",
            model_options=SETTINGS,
        )
        assert trained.accuracy == {"clean": 1.0}
        model = sp.load_model(str(out))
        purple, red = (
            np.broadcast_to(np.array(colour, np.float32)[:, None, None] / 255, (1, 3, 16, 16))
            for colour in ((220, 10, 220), (220, 10, 10))
        )
        found[model.gives] = model(purple).scores[0]
        found[f"red to {model.gives}"] = model(red).scores[0]
    assert (found["scores"] > 0).all(), "both are there"
    assert np.sign(found["red to scores"]).tolist() == [-1, 1], "blue is not, red is"


# networks, from end to end


@pytest.mark.usefixtures("small_jobs")  # one thread
def test_a_network_from_scratch_on_merged_classes_is_fine_tuned_on_clips(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from shiftproof.training.networks.modules import open_network

    clips = colour_clips(tmp_path / "clips", clips=3, frames=4)
    (tmp_path / "groups.json").write_text(json.dumps({"cold": ["blue", "green"], "warm": ["red"]}))
    small = ModelSettings(preprocess="squash,size=16,mean=0.5,std=0.5")
    merged, data = f"subset?groups={tmp_path / 'groups.json'}", f"frames:{clips}?k=0&every=1"
    first, second = tmp_path / "first", tmp_path / "second"
    said: list[str] = []
    started = options(f"{merged}+baseline", level="network", epochs=2, batch_size=8, learning_rate=0.05)
    sp.train("scratch:resnet-8", data, first, options=started, store=tmp_path / "runs", model_options=small)
    tuned = options(f"video:3+{merged}", level="network", epochs=1, batch_size=6)
    trained = sp.train(str(first), data, second, options=tuned, store=tmp_path / "runs", tell=said.append)
    assert said[0] == "video: 1 epoch, batches of 6, schedule plateau, learning rate 0.0001"
    assert trained.record.classes.names == ("cold", "warm")
    assert trained.record.source.spec == str(first)
    assert trained.record.options["schedule"] == "plateau"
    assert (sp.load_model(str(second)).gives, sp.load_model(str(first)).gives) == ("scores", "logits")
    # it began with the weights of the first training, and moved
    start = open_network(str(first), Classes(("warm", "cold")))
    assert not start.new_classes
    inputs = np.random.default_rng(0).normal(size=(2, 3, 16, 16)).astype(np.float32)
    with torch.no_grad():
        ours = start.network.eval()(torch.from_numpy(inputs))["logits"].numpy()
    assert ours[:, ::-1] == pytest.approx(sp.load_model(str(first))(inputs).scores, abs=1e-4)
    weights = [read_weights(one)["body.0.weight"] for one in (first, second)]
    assert 0 < np.abs(weights[0] - weights[1]).max() < 0.05
    assert architecture_of(str(second), ModelSettings()) == "scratch:resnet-8"


def test_a_folder_that_names_itself_or_strange_code_is_not_trained_on(tmp_path: Path, network: str) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    from shiftproof.training.networks.modules import open_network

    clips, out = colour_clips(tmp_path / "clips", frames=2), tmp_path / "better"
    sp.train(network, clips, out, options=options("linear-probe"), store=tmp_path / "runs", model_options=SETTINGS)
    classes = Classes(tuple(COLOURS))
    with pytest.raises(BadInput, match="is no network of torch, so only its head can be trained"):
        open_network(str(out), classes)
    found = read_trained(out)
    assert found is not None
    for spec, told in (
        (str(out), "which says the same"),
        ("scratch:resnet-8", "does not hold the weights of scratch"),
        ("torch:nets.py:make", "which may run any code: say --trust"),
    ):
        record = dataclasses.replace(found.record, source=dataclasses.replace(found.record.source, spec=spec))
        (out / "training.json").write_bytes(record.to_json())
        with pytest.raises(BadInput, match=told):
            open_network(str(out), classes)
