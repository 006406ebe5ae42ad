"""Preparations by name, and the text form in which the command line takes them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from shiftproof.errors import BadInput, UnknownName
from shiftproof.models.preparation import ImagePreparation, resized_to

IMAGENET = ImagePreparation()
YOLOX = ImagePreparation(
    size=(640, 640),
    rule="letterbox",
    pad="corner",
    engine="opencv",
    value_range="0..255",
    mean=(0.0,),
    std=(1.0,),
    channels="bgr",
)
YOLOV5 = ImagePreparation(size=(640, 640), rule="letterbox", engine="opencv", mean=(0.0,), std=(1.0,))

PRESETS: dict[str, ImagePreparation] = {
    # shorter side to 256, centre 224, ImageNet mean and std: what most published ImageNet numbers used
    "imagenet": IMAGENET,
    "imagenet-bicubic": dataclasses.replace(IMAGENET, interpolation="bicubic"),
    # the longer training recipes: shorter side to 232
    "imagenet-232": dataclasses.replace(IMAGENET, shorter=232),
    # the EfficientNet-Lite family: centre square of 224 / (224 + 32) of the shorter side
    "lite": ImagePreparation(
        rule="crop", share=0.875, interpolation="bicubic", value_range="0..255", mean=(127.0,), std=(128.0,)
    ),
    # networks that came through Caffe: bytes, blue first, minus the mean colour
    "caffe": ImagePreparation(value_range="0..255", mean=(104.0, 117.0, 123.0), std=(1.0,), channels="bgr"),
    # Inception, many vision transformers: bytes to -1..1
    "half": ImagePreparation(interpolation="bicubic", mean=(0.5,), std=(0.5,)),
    "clip": ImagePreparation(
        shorter=224,
        interpolation="bicubic",
        mean=(0.48145466, 0.4578275, 0.40821073),
        std=(0.26862954, 0.26130258, 0.27577711),
    ),
    "cifar": ImagePreparation(size=(32, 32), rule="squash", mean=(0.4914, 0.4822, 0.4465), std=(0.2470, 0.2435, 0.2616)),
    # the whole image, whatever its shape
    "squash": dataclasses.replace(IMAGENET, rule="squash"),
    # only scaled, for networks that normalise inside
    "unit": ImagePreparation(mean=(0.0,), std=(1.0,)),
    "bytes": ImagePreparation(value_range="0..255", mean=(0.0,), std=(1.0,)),
    # object detectors, resized by OpenCV because they were trained and published so; engine=pillow does without it
    "yolox": YOLOX,
    "yolov5": YOLOV5,
    "yolov8": YOLOV5,
    "fastestdet": ImagePreparation(size=(352, 352), rule="squash", engine="opencv", mean=(0.0,), std=(1.0,), channels="bgr"),
}
"""Every preset; ``shiftproof`` prints their figures with ``str(PRESETS[name])``."""


def parse_preparation(
    text: str, base: ImagePreparation = IMAGENET, *, size: tuple[int, int] | None = None
) -> ImagePreparation:
    """The preparation that a text like ``caffe,size=227`` names.

    A preset may come first; without one the changes apply to `base`. `size` is what the model itself demands: it holds
    where the text names none. A new size without a new ``resize`` keeps the part of the image that is seen.

    >>> parse_preparation("imagenet,size=240,channels=bgr").size
    (240, 240)
    >>> parse_preparation("resize=256,crop=224,range=255,mean=104/117/123,std=1,channels=bgr") == PRESETS["caffe"]
    True
    >>> parse_preparation("clahe", PRESETS["lite"]).clahe
    2.0
    """
    items = [SHORT.get(item.strip(), item.strip()) for item in text.split(",") if item.strip()]
    preparation = base
    if items and "=" not in items[0]:
        if items[0] not in PRESETS:
            raise UnknownName("preparation", items[0], PRESETS)
        preparation = PRESETS[items.pop(0)]
    changes = _changes(items)
    wanted = changes.pop("size", size)
    if "rule" not in changes and isinstance(wanted, tuple) and wanted != preparation.size:
        preparation = resized_to(preparation, wanted)
    elif wanted is not None:
        changes["size"] = None if wanted == "any" else wanted
    if changes.get("rule") == "none":
        changes["size"] = None
    return dataclasses.replace(preparation, **changes)


def _changes(items: list[str]) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for item in items:
        key, equals, value = item.partition("=")
        if not equals:
            raise BadInput(f"{item!r} should be key=value; a preset's name comes first")
        if key not in KEYS:
            raise UnknownName("preparation key", key, KEYS)
        try:
            changes |= KEYS[key](value.strip())
        except ValueError:
            raise BadInput(f"{key}={value} does not say what {key} is; {EXAMPLES.get(key, 'it is a word')}") from None
    return changes


def _size(value: str) -> dict[str, Any]:
    if value == "any":
        return {"size": "any", "rule": "none"}
    sides = [int(side) for side in value.split("x")]
    if len(sides) > 2:
        raise ValueError
    return {"size": (sides[0], sides[-1])}


def _resize(value: str) -> dict[str, Any]:
    return {"rule": "shorter", "shorter": int(value)} if value.isdigit() else {"rule": value}


def _range(value: str) -> dict[str, Any]:
    return {"value_range": {"1": "0..1", "255": "0..255"}.get(value, value)}


def _figures(key: str) -> Callable[[str], dict[str, Any]]:
    return lambda value: {key: tuple(float(figure) for figure in value.split("/"))}


def _word(key: str) -> Callable[[str], dict[str, Any]]:
    return lambda value: {key: value}


KEYS: dict[str, Callable[[str], dict[str, Any]]] = {
    "size": _size,
    "crop": _size,
    "resize": _resize,
    "share": lambda value: {"share": float(value)},
    "pad": _word("pad"),
    "pad_colour": lambda value: {"pad_colour": int(value)},
    "clahe": lambda value: {"clahe": float(value)},
    "interpolation": _word("interpolation"),
    "engine": _word("engine"),
    "decoder": _word("decoder"),
    "range": _range,
    "mean": _figures("mean"),
    "std": _figures("std"),
    "channels": _word("channels"),
    "layout": _word("layout"),
    "dtype": _word("dtype"),
}
"""What a text may set; `describe()` uses the same keys, so that what is printed can be typed again."""

SHORT = {"clahe": "clahe=2"}
"""Words that stand for a key with its usual value."""

EXAMPLES = {
    "size": "for example size=224, size=240x320 (height first) or size=any",
    "crop": "for example crop=224",
    "share": "for example share=0.875",
    "pad_colour": "it is a level of grey, for example pad_colour=114",
    "clahe": "it is a clip limit, for example clahe=2",
    "mean": "for example mean=0.485/0.456/0.406 or mean=0.5",
    "std": "for example std=0.229/0.224/0.225 or std=1",
}
