"""Object detectors of torchvision as networks to train: Faster R-CNN and RetinaNet on feature pyramids.

Their parts are torchvision's, names of weights too. What is done with them is written here: pictures come ready from our
own preprocessing, and on partly labelled images nothing that may be an object of an unlabelled class counts as background.
"""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from shiftproof.errors import BadInput
from shiftproof.models.by_settings import declared_seen
from shiftproof.models.classifiers.libraries import whole_library
from shiftproof.models.classifiers.torch import load_weights
from shiftproof.models.object_detectors.loaded import BoxRules
from shiftproof.models.options import parse_preprocessing
from shiftproof.models.preprocessing import ImagePreprocessing, resized_to
from shiftproof.options import ModelSettings
from shiftproof.training.detectors.targets import Objects
from shiftproof.types import Classes, Seen, fingerprint_of

with whole_library("torchvision"):
    from torchvision import models
    from torchvision.models import detection
    from torchvision.models.detection.anchor_utils import AnchorGenerator
    from torchvision.models.detection.backbone_utils import mobilenet_backbone, resnet_fpn_backbone
    from torchvision.models.detection.image_list import ImageList
    from torchvision.models.detection.roi_heads import fastrcnn_loss
    from torchvision.models.detection.rpn import concat_box_prediction_layers
    from torchvision.ops import box_iou, sigmoid_focal_loss
    from torchvision.ops.feature_pyramid_network import LastLevelP6P7

STRIDE = 32
"""Sides of inputs are padded to a multiple of the coarsest grid, as torchvision pads them."""

CHANNELS = 256
"""Of every level of a feature pyramid."""

RESNETS = ("resnet18", "resnet34", "resnet50", "resnet101", "resnet152")
MOBILENETS = ("mobilenet_v2", "mobilenet_v3_small", "mobilenet_v3_large")
NAMED = re.compile(rf"(fasterrcnn|retinanet)_({'|'.join((*RESNETS, *MOBILENETS))})_fpn")

EXAMPLES = "torchvision:fasterrcnn_resnet50_fpn or torchvision:retinanet_resnet50_fpn"


class Detected(NamedTuple):
    """What a network finds in one input."""

    boxes: Tensor  # (boxes, 4), in pixels of the input
    scores: Tensor  # (boxes,)
    classes: Tensor  # (boxes,)


class Answer(NamedTuple):
    """What a network gives for a batch: losses where there are targets, detections in evaluation mode."""

    losses: dict[str, Tensor]
    detected: list[Detected]


class Detector(nn.Module, ABC):
    """An object detector."""

    backbone: nn.Module

    @abstractmethod
    def forward(self, images: Tensor, targets: Sequence[Objects] | None = None) -> Answer: ...

    def pyramid(self, images: Tensor) -> tuple[Any, dict[str, Tensor]]:
        """The batch as torchvision has it, with the size of each image, and the features of all levels."""
        height, width = (int(side) for side in images.shape[2:])
        padded = functional.pad(images, (0, -width % STRIDE, 0, -height % STRIDE))
        features: dict[str, Tensor] = self.backbone(padded)
        return ImageList(padded, [(height, width)] * int(images.shape[0])), features

    @property
    def first_block(self) -> tuple[str, ...]:
        """The layers of the backbone up to its first block."""
        names = {name for name, _ in self.backbone.body.named_children()}  # type: ignore[union-attr]  # torch's types
        return ("conv1", "bn1", "layer1") if "layer1" in names else ("0", "1")


class FasterRCNN(Detector):
    """A region proposal network, and a classifier of its proposals (Ren et al., 2015), on a pyramid (Lin et al., 2017)."""

    def __init__(self, parts: Any) -> None:
        super().__init__()
        self.backbone, self.rpn, self.roi_heads = parts.backbone, parts.rpn, parts.roi_heads

    def forward(self, images: Tensor, targets: Sequence[Objects] | None = None) -> Answer:
        batch, features = self.pyramid(images)
        # 0 is the background
        told = None if targets is None else [_as_torchvision(one, images.device, first=1) for one in targets]
        proposals, _, losses = self.propose(batch, features, told)
        if told is not None:
            losses |= self._head_losses(features, proposals, batch.image_sizes, told)
        return Answer(losses, [] if self.training else self.detected(features, proposals, batch.image_sizes))

    def propose(
        self, batch: Any, features: dict[str, Tensor], targets: list[dict[str, Tensor]] | None = None
    ) -> tuple[list[Tensor], list[Tensor], dict[str, Tensor]]:
        """Region proposals of each image, by descending objectness, and that; and losses where there are targets."""
        rpn: Any = self.rpn
        maps = list(features.values())
        by_level, deltas = rpn.head(maps)
        anchors = rpn.anchor_generator(batch, maps)
        anchors_of_level = [int(one.shape[1]) * int(one.shape[2]) * int(one.shape[3]) for one in by_level]
        objectness, deltas = concat_box_prediction_layers(by_level, deltas)
        boxes = rpn.box_coder.decode(deltas.detach(), anchors).view(len(anchors), -1, 4)
        proposals, scores = rpn.filter_proposals(boxes, objectness, batch.image_sizes, anchors_of_level)
        if targets is None:
            return proposals, scores, {}
        labels, matched = rpn.assign_targets_to_anchors(anchors, targets)
        # an anchor without a box may show an object of a class that was not annotated: it is left out
        labels = [
            own.where(own != 0, -1.0) if len(target["unlabelled"]) else own
            for own, target in zip(labels, targets, strict=True)
        ]
        objectness_loss, box_loss = rpn.compute_loss(objectness, deltas, labels, rpn.box_coder.encode(matched, anchors))
        return proposals, scores, {"loss_objectness": objectness_loss, "loss_rpn_box_reg": box_loss}

    def _head_losses(
        self, features: dict[str, Tensor], proposals: list[Tensor], sizes: Any, targets: list[dict[str, Tensor]]
    ) -> dict[str, Tensor]:
        heads: Any = self.roi_heads
        chosen, _, labels, regression = heads.select_training_samples(list(proposals), targets)
        logits, deltas = heads.box_predictor(heads.box_head(heads.box_roi_pool(features, chosen, sizes)))
        parts = logits.split([len(one) for one in labels])
        logits = torch.cat(
            [
                background_or(part, own, target["unlabelled"])
                for part, own, target in zip(parts, labels, targets, strict=True)
            ]
        )
        class_loss, box_loss = fastrcnn_loss(logits, deltas, labels, regression)
        return {"loss_classifier": class_loss, "loss_box_reg": box_loss}

    def detected(self, features: dict[str, Tensor], proposals: list[Tensor], sizes: Any) -> list[Detected]:
        """What is found among the proposals of each image."""
        heads: Any = self.roi_heads
        logits, deltas = heads.box_predictor(heads.box_head(heads.box_roi_pool(features, proposals, sizes)))
        found = heads.postprocess_detections(logits, deltas, proposals, sizes)
        return [Detected(boxes, scores, labels - 1) for boxes, scores, labels in zip(*found, strict=True)]


def background_or(logits: Tensor, labels: Tensor, unlabelled: Tensor) -> Tensor:
    """Logits in whose cross-entropy the background, class 0, stands for the unlabelled classes too.

    Its probability is then that of being background or of one of these; a proposal with a label keeps its own logits.
    """
    if not len(unlabelled):
        return logits
    either = torch.cat([logits[:, :1], logits[:, unlabelled]], dim=1).logsumexp(dim=1)
    joined = logits.clone()
    joined[:, unlabelled] = -torch.inf
    joined[:, 0] = either
    return torch.where((labels == 0)[:, None], joined, logits)


class RetinaNet(Detector):
    """Classes and boxes of every anchor at once, by the focal loss (Lin et al., 2017)."""

    proposal_matcher: Any

    def __init__(self, parts: Any) -> None:
        super().__init__()
        self.backbone, self.head, self.anchor_generator = parts.backbone, parts.head, parts.anchor_generator
        for name in ("proposal_matcher", "box_coder", "score_thresh", "topk_candidates", "nms_thresh", "detections_per_img"):
            setattr(self, name, getattr(parts, name))  # what torchvision's function reads

    def forward(self, images: Tensor, targets: Sequence[Objects] | None = None) -> Answer:
        batch, features = self.pyramid(images)
        maps = list(features.values())
        outputs = self.head(maps)
        anchors = self.anchor_generator(batch, maps)
        losses: dict[str, Tensor] = {}
        if targets is not None:
            told = [_as_torchvision(one, images.device, first=0) for one in targets]
            losses = self._losses(told, outputs, anchors)
        return Answer(losses, [] if self.training else self._detected(outputs, anchors, maps, batch.image_sizes))

    def _losses(
        self, targets: list[dict[str, Tensor]], outputs: dict[str, Tensor], anchors: list[Tensor]
    ) -> dict[str, Tensor]:
        matched = [
            self.proposal_matcher(box_iou(target["boxes"], own))
            if len(target["boxes"])
            else torch.full((len(own),), -1, dtype=torch.int64, device=own.device)
            for target, own in zip(targets, anchors, strict=True)
        ]
        classes = [
            _focal_loss(logits, target, rows)
            for logits, target, rows in zip(outputs["cls_logits"], targets, matched, strict=True)
        ]
        boxes = self.head.regression_head.compute_loss(targets, outputs, anchors, matched)
        return {"classification": torch.stack(classes).mean(), "bbox_regression": boxes}

    def _detected(self, outputs: dict[str, Tensor], anchors: list[Tensor], maps: list[Tensor], sizes: Any) -> list[Detected]:
        cells = [int(one.shape[2]) * int(one.shape[3]) for one in maps]
        each = int(outputs["cls_logits"].shape[1]) // sum(cells)
        counts = [each * one for one in cells]
        levels = {name: list(torch.split(part, counts, dim=1)) for name, part in outputs.items()}
        found = detection.RetinaNet.postprocess_detections(
            self, levels, [list(torch.split(own, counts)) for own in anchors], sizes
        )
        return [Detected(one["boxes"], one["scores"], one["labels"]) for one in found]


def _focal_loss(logits: Tensor, target: dict[str, Tensor], matched: Tensor) -> Tensor:
    """The focal loss of all anchors of an image for all classes, but for unlabelled classes where no box is."""
    objects = matched >= 0
    wanted = torch.zeros_like(logits)
    wanted[objects, target["labels"][matched[objects]]] = 1.0
    counted = (matched != BETWEEN)[:, None].expand_as(logits).clone()
    if len(target["unlabelled"]):
        counted[:, target["unlabelled"]] &= objects[:, None]
    losses: Tensor = sigmoid_focal_loss(logits[counted], wanted[counted], reduction="sum")
    return losses / max(1, int(objects.sum()))


BETWEEN = -2
"""What torchvision's matcher says of an anchor that is neither near a box nor far from all."""


def _as_torchvision(objects: Objects, device: torch.device, *, first: int) -> dict[str, Tensor]:
    """Objects as torchvision takes them, with classes from `first` on."""
    return {
        "boxes": torch.from_numpy(objects.boxes).float().reshape(-1, 4).to(device),
        "labels": torch.from_numpy(objects.classes).long().to(device) + first,
        "unlabelled": torch.from_numpy(objects.unlabelled).long().to(device) + first,
    }


@dataclass(frozen=True)
class Start:
    """An object detector before training, and what is known about it."""

    network: Detector
    preprocessing: ImagePreprocessing
    seen: Seen
    pretrained: bool  # whether its backbone's weights came from a file
    notes: tuple[str, ...]


def fingerprint_of_detector(spec: str, settings: ModelSettings) -> str:
    """What tells the network that a training begins with from others: its name and the bytes of its weights."""
    _kind_of(spec)
    path = _weights_path(settings)
    return fingerprint_of(spec, None if path is None else hashlib.sha256(path.read_bytes()).hexdigest())


def open_detector(
    spec: str,
    classes: Classes,
    settings: ModelSettings,
    *,
    size: tuple[int, int],
    regions: int = 512,
    seed: int = 0,
    image_size: int | None = None,
) -> Start:
    """The object detector that a spec names, over these classes, with weights drawn from the seed or from a file.

    Pictures are of this size (height, width) where nothing else is said; `regions` of each are classified in training.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = _network(_kind_of(spec), len(classes), regions)
    path = _weights_path(settings)
    notes: tuple[str, ...] = (
        "weights before training were drawn at random; --weights FILE begins with those of a backbone or a detector",
    )
    if path is not None:
        notes = (*load_weights(path)[1], _filled(network, path))
    usual = ImagePreprocessing(size=size, rule="letterbox", pad="corner")
    preprocessing = parse_preprocessing(settings.preprocess or "", usual)
    if image_size is not None:
        preprocessing = resized_to(preprocessing, (image_size, image_size))
    if preprocessing.size is None or preprocessing.layout != "nchw" or preprocessing.channels == "grey":
        raise BadInput(f"an object detector is trained on colour pictures of one size, got {preprocessing}")
    return Start(network, preprocessing, declared_seen(settings) or Seen(), path is not None, notes)


def _kind_of(spec: str) -> str:
    """The name of a network that torchvision has, or whose backbone it has."""
    kind, _, name = spec.partition(":")
    own = [one for one in models.list_models(module=models.detection) if one.startswith(("fasterrcnn_", "retinanet_"))]
    if kind != "torchvision" or (name not in own and not NAMED.fullmatch(name)):
        raise BadInput(
            f"{spec} is no object detector that is trained here; name Faster R-CNN or RetinaNet with a backbone, as "
            f"{EXAMPLES}; backbones are {', '.join((*RESNETS, *MOBILENETS))}"
        )
    if name.startswith("retinanet_mobilenet"):
        raise BadInput(f"{spec}: RetinaNet is built on {', '.join(RESNETS)}")
    return name


def _network(name: str, classes: int, regions: int) -> Detector:
    """A network with random weights."""
    threshold = BoxRules.score_threshold
    two_stage = name.startswith("fasterrcnn")
    given: dict[str, Any] = {"score_thresh": threshold}
    if two_stage:
        given = {"box_score_thresh": threshold, "box_batch_size_per_image": regions}
    outputs = classes + 1 if two_stage else classes
    if name in models.list_models(module=detection):
        parts = models.get_model(name, weights=None, weights_backbone=None, num_classes=outputs, **given)
    elif two_stage:
        parts = detection.FasterRCNN(num_classes=outputs, **_two_stage_parts(name), **given)
    else:
        parts = detection.RetinaNet(num_classes=outputs, backbone=_one_stage_backbone(name), **given)
    return FasterRCNN(parts) if two_stage else RetinaNet(parts)


def _two_stage_parts(name: str) -> dict[str, Any]:
    """A backbone with its pyramid, and anchors where these are not torchvision's usual ones."""
    backbone = name.removeprefix("fasterrcnn_").removesuffix("_fpn")
    if backbone in RESNETS:
        every = {"weights": None, "norm_layer": nn.BatchNorm2d, "trainable_layers": 5}
        return {"backbone": resnet_fpn_backbone(backbone_name=backbone, **every)}
    made = mobilenet_backbone(backbone_name=backbone, weights=None, fpn=True, norm_layer=nn.BatchNorm2d, trainable_layers=6)
    levels = len(made.body.return_layers) + 1  # and one of the coarsest, pooled
    anchors = AnchorGenerator(((32, 64, 128, 256, 512),) * levels, ((0.5, 1.0, 2.0),) * levels)
    return {"backbone": made, "rpn_anchor_generator": anchors}


def _one_stage_backbone(name: str) -> Any:

    return resnet_fpn_backbone(
        backbone_name=name.removeprefix("retinanet_").removesuffix("_fpn"),
        weights=None,
        norm_layer=nn.BatchNorm2d,
        trainable_layers=5,
        returned_layers=[2, 3, 4],
        extra_blocks=LastLevelP6P7(CHANNELS, CHANNELS),
    )


def _weights_path(settings: ModelSettings) -> Path | None:
    return None if settings.weights in {None, "random"} else Path(str(settings.weights))


def _filled(network: Detector, path: Path) -> str:
    """Loads a file of a backbone's weights, as of a classifier, or of a detector's; a note on what of it was used."""
    tensors, _ = load_weights(path)
    own = network.state_dict()
    body = "backbone.body."
    whole = any(name.startswith("backbone.") for name in tensors)
    if not whole:
        tensors = {f"{body}{name.removeprefix('features.')}": tensor for name, tensor in tensors.items()}
    fitting = {
        name: tensor
        for name, tensor in tensors.items()
        if (name in own and own[name].shape == tensor.shape) or (whole and name not in own)
    }
    told = network.load_state_dict(fitting, strict=False)
    missing = [name for name in told.missing_keys if not name.endswith("num_batches_tracked")]
    if any(name.startswith(body) for name in missing):
        raise BadInput(
            f"the weights in {path} are neither those of this network nor of its backbone: {missing[0]} is missing, or of "
            "another shape"
        )
    new = sorted({".".join(name.split(".")[:2]) for name in missing})
    return f"weights of {path.name}; new, drawn at random: {', '.join(new) or 'none'}"
