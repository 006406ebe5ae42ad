"""Object detectors trained for real: torchvision's losses, partly labelled images, killed trainings, folders that open."""

from __future__ import annotations

import dataclasses
import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning_fabric", reason="lightning-fabric is not installed")
pytest.importorskip("torchvision", reason="torchvision is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

import shiftproof as sp  # noqa: E402
from boxed_toys import draw_scenes  # noqa: E402
from shiftproof.datasets import open_dataset  # noqa: E402
from shiftproof.errors import BadInput  # noqa: E402
from shiftproof.training.detectors import networks  # noqa: E402
from shiftproof.training.detectors.engine import train_detector  # noqa: E402
from shiftproof.training.detectors.networks import background_or, open_detector  # noqa: E402
from shiftproof.training.detectors.targets import Objects  # noqa: E402
from shiftproof.training.networks import course  # noqa: E402
from shiftproof.training.networks.checkpoints import EpochRow  # noqa: E402
from shiftproof.training.networks.course import Reached, Tell, TrainedNetwork  # noqa: E402
from training.small_detectors import FASTER, RETINA, SmallDetectors, small_network  # noqa: E402

NONE = np.zeros(0, int)
TARGETS = [
    Objects(np.array([[2.0, 3, 14, 17], [16, 8, 30, 30]]), np.array([0, 2]), NONE),
    Objects(np.array([[5.0, 5, 25, 15]]), np.array([1]), NONE),
]


def pictures() -> Any:
    return torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("name", ["fasterrcnn", "retinanet"])
def test_losses_and_detections_are_those_of_torchvisions_own_forward(name: str) -> None:
    from torchvision.models import detection
    from torchvision.models.detection.transform import GeneralizedRCNNTransform

    ours = small_network(name, 3, 16)
    bare = GeneralizedRCNNTransform(32, 32, [0, 0, 0], [1, 1, 1], _skip_resize=True)
    first = 1 if name == "fasterrcnn" else 0
    told = [{"boxes": torch.tensor(one.boxes).float(), "labels": torch.tensor(one.classes) + first} for one in TARGETS]
    if name == "fasterrcnn":
        theirs: Any = detection.generalized_rcnn.GeneralizedRCNN(ours.backbone, ours.rpn, ours.roi_heads, bare)
    else:
        theirs = detection.RetinaNet(
            ours.backbone, 3, anchor_generator=ours.anchor_generator, head=ours.head, score_thresh=0.001
        )
        theirs.transform = bare
    ours.eval(), theirs.eval()
    with torch.no_grad():
        expected = theirs(list(pictures()))
        found = ours(pictures()).detected
    for one, other in zip(found, expected, strict=True):
        assert len(one.boxes)
        assert torch.equal(one.boxes, other["boxes"])
        assert torch.equal(one.scores, other["scores"])
        assert torch.equal(one.classes + first, other["labels"])
    ours.train(), theirs.train()
    torch.manual_seed(3)
    losses = ours(pictures(), TARGETS).losses
    torch.manual_seed(3)
    for key, value in theirs(list(pictures()), told).items():
        assert losses[key].item() == pytest.approx(value.item(), rel=1e-5)


def test_background_stands_for_classes_that_were_not_annotated() -> None:
    logits = torch.log(torch.tensor([[0.5, 0.2, 0.1, 0.2], [0.5, 0.2, 0.1, 0.2]]))
    joined = background_or(logits, torch.tensor([0, 1]), torch.tensor([2, 3]))
    losses = torch.nn.functional.cross_entropy(joined, torch.tensor([0, 1]), reduction="none")
    assert losses.tolist() == pytest.approx([-np.log(0.5 + 0.1 + 0.2), -np.log(0.2)])
    assert background_or(logits, torch.tensor([0, 1]), torch.zeros(0, dtype=torch.int64)) is logits


@pytest.mark.parametrize("name", ["fasterrcnn", "retinanet"])
def test_an_unlabelled_class_is_not_pushed_down_where_no_box_is(name: str) -> None:
    def gradient(unlabelled: Any) -> Any:
        network = small_network(name, 3, 16).train()
        targets = [one._replace(classes=np.zeros_like(one.classes), unlabelled=unlabelled) for one in TARGETS]
        torch.manual_seed(3)
        sum(network(pictures(), targets).losses.values()).backward()
        layer = (
            network.roi_heads.box_predictor.cls_score
            if name == "fasterrcnn"
            else network.head.classification_head.cls_logits
        )
        by_class = layer.bias.grad.reshape(-1, 4 if name == "fasterrcnn" else 3).sum(dim=0)
        objectness = network.rpn.head.cls_logits.bias.grad.sum() if name == "fasterrcnn" else None
        return (by_class[1:] if name == "fasterrcnn" else by_class), objectness

    (all_labelled, objectness), (partly, objectness_partly) = gradient(NONE), gradient(np.array([2]))
    assert all_labelled[2] > 0  # a step lowers the logit of the class that has no box
    if name == "retinanet":
        # only near boxes of the other classes is it known not to be there
        assert 0 < partly[2] < all_labelled[2]
        assert partly[:2].tolist() == pytest.approx(all_labelled[:2].tolist(), rel=1e-4)
    else:
        assert partly[2] < all_labelled[2]
        # anchors without a box are left out, so that nothing but boxes moves the objectness, which rises
        assert objectness > objectness_partly
        assert objectness_partly < 0


def alike(one: TrainedNetwork, other: TrainedNetwork) -> bool:
    curves = [[dataclasses.replace(row, seconds=0.0) for row in training.curves] for training in (one, other)]
    return curves[0] == curves[1] and all(np.array_equal(array, other.end[name]) for name, array in one.end.items())


class Killed(Exception):
    """Stands for the end of a process."""


def killed_at(step: int) -> Tell:
    def progress(now: Reached | EpochRow) -> None:
        if isinstance(now, Reached) and (now.epoch - 1) * now.steps + now.step == step:
            raise Killed

    return progress


@pytest.mark.parametrize(("model", "recipe"), [(FASTER, "boxes?flip=0.5+ema"), (RETINA, "boxes+noise")])
def test_a_killed_training_goes_on_and_ends_with_the_same_weights(
    small_detectors: SmallDetectors,
    model: str,
    recipe: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(course, "TOLD_SECONDS", 0.0)
    undisturbed = train_detector(small_detectors(recipe, model=model))
    assert len(undisturbed.curves) == 2
    monkeypatch.setattr(course, "CHECKPOINT_SECONDS", 0.0)
    job = small_detectors(recipe, model=model)
    for step in (1, 3):
        with pytest.raises(Killed):
            train_detector(job, progress=killed_at(step))
    assert alike(train_detector(job), undisturbed)
    other = train_detector(small_detectors(recipe, model=model, seed=1))
    assert not alike(other, undisturbed)


def test_a_detector_learns_and_is_judged_by_our_own_map(small_detectors: SmallDetectors) -> None:
    job = small_detectors("boxes?flip=0", epochs=30, optimizer="adamw", learning_rate=0.01)
    trained = train_detector(job)
    assert trained.curves[-1].loss < 0.8 * trained.curves[0].loss
    assert trained.curves[-1].accuracy is None
    assert trained.score(trained.end) == trained.curves[-1].validation_accuracy > 0.1
    assert trained.score(trained.end) > trained.score(trained.start)


def test_a_frozen_first_block_stays(small_detectors: SmallDetectors) -> None:
    trained = train_detector(small_detectors(freeze=("first-block",), epochs=1))
    moved = {name for name, array in trained.end.items() if not np.array_equal(array, trained.start[name])}
    assert moved
    assert not any(name.startswith(("backbone.body.0", "backbone.body.1")) for name in moved)
    assert any(name.startswith("backbone.body.3") for name in moved)


def test_boxes_outside_of_every_image_are_told(small_detectors: SmallDetectors, tmp_path: Path) -> None:
    path = draw_scenes(tmp_path / "outside", {f"{number}.png": {"red": (2, 3, 12, 9)} for number in range(4)})
    told = json.loads(path.read_text())
    for image in told["images"]:
        del image["width"], image["height"]
    for box in told["annotations"]:
        box["bbox"][0] += 500
    path.write_text(json.dumps(told))
    with pytest.raises(BadInput, match="no box of boxes, training split lies in its image"):
        train_detector(small_detectors(dataset=open_dataset(path)))


def test_images_that_all_are_partly_labelled_leave_no_background(
    small_detectors: SmallDetectors,
) -> None:
    told = json.loads(small_detectors.boxes.read_text())
    for image in told["images"]:
        own = {box["category_id"] for box in told["annotations"] if box["image_id"] == image["id"]}
        image["annotated"] = "|".join(one["name"] for one in told["categories"] if one["id"] in own)
    for image in told["images"][2::3]:
        image["annotated"] = "red|green"  # these have all three
    small_detectors.boxes.write_text(json.dumps(told))
    with pytest.raises(BadInput, match="which are not among the classes that were annotated in it"):
        train_detector(small_detectors())
    told["annotations"] = [box for box in told["annotations"] if box["category_id"] == 1 or box["image_id"] % 3 != 2]
    for image in told["images"][2::3]:
        image["annotated"] = told["categories"][0]["name"]
    small_detectors.boxes.write_text(json.dumps(told))
    with pytest.raises(BadInput, match=r"nothing in it is known to be background; add images .*unlabelled=background"):
        train_detector(small_detectors())
    assert train_detector(small_detectors("boxes?unlabelled=background", epochs=1)).curves[0].loss > 0


@pytest.mark.parametrize(
    "spec", ["torchvision:resnet18", "torchvision:ssd300_vgg16", "lite:0", "torchvision:fasterrcnn_x_fpn"]
)
def test_a_network_that_is_not_trained_here_is_told(spec: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is no object detector that is trained here; name Faster R-CNN or RetinaNet"):
        networks.fingerprint_of_detector(spec, sp.ModelSettings())


def test_a_trained_folder_opens_wherever_a_detector_does(small_detectors: SmallDetectors, tmp_path: Path) -> None:
    options = sp.TrainOptions(level="network", recipe="boxes", epochs=3, batch_size=4, image_size=32, learning_rate=0.02)
    folder, store = tmp_path / "better", tmp_path / "runs"
    told: list[str] = []
    trained = sp.train(FASTER, small_detectors.boxes, folder, options=options, store=store, tell=told.append)
    assert any("epoch 3 of 3: loss" in text and "mAP" in text for text in told)
    assert sorted(one.name for one in folder.iterdir()) == ["model.onnx", "training.json", "weights.safetensors"]
    assert list(trained.accuracy) == ["mAP at an IoU of 0.5"]
    assert [row["epoch"] for row in trained.record.curves] == [1, 2, 3]
    assert "validation_mAP" in trained.record.curves[0]
    again = sp.train(FASTER, small_detectors.boxes, folder, options=options, store=store, tell=told.append)
    assert told[-1].endswith("holds this training already")
    assert again.record.key == trained.record.key

    results = sp.run(str(folder), small_detectors.boxes, studies=["detection"], store=store)
    assert any(one.metric == "mean_average_precision" for one in results.measurements)
    assert any("was trained on a dataset called boxes" in str(one) for one in results.findings)
    by_best_box = sp.run(f"boxes:{folder}", small_detectors.boxes, studies=["accuracy"], store=store)
    assert any(one.metric == "top1_accuracy" for one in by_best_box.measurements)
    with pytest.raises(BadInput, match="holds an object detector; boxes:"):
        sp.load_model(str(folder))

    detector, regions = sp.load_detector(str(folder)), sp.load_detector(f"rpn:{folder}")
    assert detector.seen.trained_on == ("boxes",)
    assert regions.classes is not None
    assert regions.classes.names == ("object",)
    image = np.random.default_rng(0).integers(0, 255, (24, 32, 3), np.uint8)
    inputs = detector.preprocessing.from_image(image)[None]
    (found,), (proposed,) = (one.detect(inputs, [(24, 32)]) for one in (detector, regions))
    network = small_network("fasterrcnn", 3, 16).eval()
    from safetensors.torch import load_file

    network.load_state_dict(load_file(folder / "weights.safetensors"))
    with torch.no_grad():
        (expected,) = network(torch.from_numpy(inputs)).detected
        batch, features = network.pyramid(torch.from_numpy(inputs))
        _, (scores,), _ = network.propose(batch, features)
    assert found.scores == pytest.approx(expected.scores.numpy(), abs=1e-5)
    assert found.classes.tolist() == expected.classes.tolist()
    assert found.boxes == pytest.approx(np.clip(expected.boxes.numpy(), 0, [32, 24, 32, 24]), abs=1e-3)
    assert len(proposed.scores)
    assert proposed.scores == pytest.approx(scores.numpy()[: len(proposed.scores)], abs=1e-5)
    colours = sp.wrap_model(lambda inputs: inputs.mean(axis=(2, 3)), name="mean", version="1", class_names=["r", "g", "b"])
    on_crops = sp.proposals(regions, colours, min_side=2)
    assert "on crops by better, region proposals" in on_crops.ref.name
    assert on_crops(on_crops.preprocessing.from_image(image)[None]).scores.shape == (1, 3)


def test_weights_come_from_a_detector_or_from_a_classifier_of_the_same_backbone(tmp_path: Path) -> None:
    from safetensors.torch import save_file
    from torchvision import models

    classes, opened = sp.types.Classes(("a", "b")), partial(open_detector, size=(64, 64), seed=1)
    torch.manual_seed(5)
    classifier = models.resnet18(weights=None)
    save_file(classifier.state_dict(), tmp_path / "resnet18.safetensors")
    start = opened(RETINA, classes, sp.ModelSettings(weights=str(tmp_path / "resnet18.safetensors")))
    ours, theirs = start.network.state_dict(), classifier.state_dict()
    assert torch.equal(ours["backbone.body.layer3.0.conv1.weight"], theirs["layer3.0.conv1.weight"])
    assert start.pretrained
    assert any("new, drawn at random: backbone.fpn, head" in note for note in start.notes)
    save_file(start.network.state_dict(), tmp_path / "whole.safetensors")
    more = sp.types.Classes(("a", "b", "c"))
    again = opened(RETINA, more, sp.ModelSettings(weights=str(tmp_path / "whole.safetensors")))
    ours, theirs = again.network.state_dict(), start.network.state_dict()
    same = {
        name for name, tensor in ours.items() if tensor.shape == theirs[name].shape and torch.equal(tensor, theirs[name])
    }
    assert {name.split(".cls_logits.")[0] for name in ours.keys() - same} == {"head.classification_head"}
    save_file(models.resnet34(weights=None).state_dict(), tmp_path / "other.safetensors")
    with pytest.raises(BadInput, match="neither those of this network nor of its backbone"):
        opened(FASTER.replace("18", "50"), more, sp.ModelSettings(weights=str(tmp_path / "other.safetensors")))


@pytest.mark.parametrize("name", ["fasterrcnn_mobilenet_v3_small_fpn", "fasterrcnn_resnet34_fpn", "retinanet_resnet18_fpn"])
def test_backbones_that_torchvision_has_no_detector_of_can_be_named(name: str) -> None:
    start = open_detector(f"torchvision:{name}", sp.types.Classes(("a", "b")), sp.ModelSettings(), size=(50, 70))
    network = start.network.eval()
    assert start.preprocessing.size == (50, 70)
    with torch.no_grad():
        (found,) = network(torch.rand(1, 3, 50, 70)).detected
    assert found.boxes.shape[1] == 4
    assert network.first_block == (("0", "1") if "mobilenet" in name else ("conv1", "bn1", "layer1"))
