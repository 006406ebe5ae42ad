"""Recipes for frames of clips and for images with several labels."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from shiftproof.datasets.clusters import Clustering
from shiftproof.datasets.video.frame_sets import frame_itself
from shiftproof.errors import BadInput
from shiftproof.training.recipe import Recipe
from shiftproof.types import Sample

LOSS = "shiftproof.training.networks.losses:multi_label"

LEARNING_RATES = {"resnet": 1e-4, "alexnet": 1e-5, "vgg": 1e-5}
"""Of fine-tuning on frames, by what architectures are called: ResNet-50 and -152, AlexNet, VGG-16 (Shankar et al., 2021)."""


def published(architecture: str) -> Mapping[str, Any]:
    """The hyperparameters of fine-tuning on frames; without a learning rate for architectures that have none published.

    Those of the optimizer are not printed there.

    >>> published("timm:resnet50.a1_in1k")
    {'epochs': 10, 'batch_size': 32, 'schedule': 'plateau', 'learning_rate': 0.0001}
    >>> published("lite:0")
    {'epochs': 10, 'batch_size': 32, 'schedule': 'plateau'}
    """
    name = re.split("[/:]", architecture.lower())[-1]
    rates = [rate for family, rate in LEARNING_RATES.items() if family in name]
    return {"epochs": 10, "batch_size": 32, "schedule": "plateau", **({"learning_rate": rates[0]} if rates else {})}


def evenly_spread(samples: Sequence[Sample], *, frames: int, loss: str) -> list[Sample]:  # noqa: ARG001
    """At most `frames` frames of each clip, evenly spread over it, each once though it may be near two anchors; 0: all.

    >>> clip = [Sample(f"a/{number}.png", (0,), {"clip": "a", "frame": number}) for number in range(9)]
    >>> [sample.id for sample in evenly_spread(clip, frames=3, loss="sigmoid")]
    ['a/1.png', 'a/4.png', 'a/7.png']
    """
    clusters = Clustering().of(samples)
    if clusters is None or "clip" not in clusters.unit:
        raise BadInput(
            "the recipe video trains on frames of clips, and these images do not say which clip they are of; a folder of "
            "video files or of numbered frames (--kind frames) does, or a column clip of a manifest"
        )
    clips: dict[str, dict[str, Sample]] = {}
    for sample, clip in zip(samples, clusters.keys, strict=True):
        clips.setdefault(clip, {}).setdefault(frame_itself(sample.id), sample)
    kept = {sample.id for clip in clips.values() for sample in _spread(sorted(clip.values(), key=_number), frames)}
    return [sample for sample in samples if sample.id in kept]


def _spread(in_time: Sequence[Sample], frames: int) -> list[Sample]:
    if not frames or frames >= len(in_time):
        return list(in_time)
    return [in_time[int((place + 0.5) * len(in_time) / frames)] for place in range(frames)]


def _number(sample: Sample) -> tuple[float, str]:
    frame = sample.facts.get("frame")
    return (float(frame) if isinstance(frame, (int, float)) else 0.0, sample.id)


def _has_sigmoids(*, loss: str, **_: object) -> bool:
    return loss == "sigmoid"


def _check(*, loss: str, frames: int = 0) -> None:
    if loss not in ("sigmoid", "softmax"):
        raise BadInput(f"loss should be sigmoid (a yes or no for each class) or softmax (labels share 1), got {loss!r}")
    if frames < 0:
        raise BadInput(f"video: frames of each clip should be 1 or more, or 0 for all of them, got {frames}")


VIDEO = Recipe(
    title="Frames of clips",
    description="Fine-tuning on frames spread over each clip, with a sigmoid for every class and published hyperparameters.",
    cites=("shankar2021do",),
    settings={"frames": 15, "loss": "sigmoid"},
    check=_check,
    thin=evenly_spread,
    hyperparameters=lambda begun, **_: published(begun.architecture),
    loss=LOSS,
    multi_label=_has_sigmoids,
)

MULTI_LABEL = Recipe(
    title="Several labels an image",
    description="A sigmoid for every class (binary cross-entropy), for images with several labels.",
    loss=LOSS,
    multi_label=True,
)
