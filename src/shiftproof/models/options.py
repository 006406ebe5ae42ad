"""What can be set when a model is loaded, the same for every kind of model, and the presets of preprocessing."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from shiftproof.datasets.classes import ClassList, classes_from, usual_classes
from shiftproof.errors import BadInput, ClassMismatch, UnknownName, listed
from shiftproof.models.preprocessing import ImagePreprocessing, resized_to
from shiftproof.models.sanity import figures_hint
from shiftproof.types import Classes, Gives, Seen

IMAGENET = ImagePreprocessing()
YOLOX = ImagePreprocessing(
    size=(640, 640),
    rule="letterbox",
    pad="corner",
    engine="opencv",
    value_range="0..255",
    mean=(0.0,),
    std=(1.0,),
    channels="bgr",
)
YOLOV5 = ImagePreprocessing(size=(640, 640), rule="letterbox", engine="opencv", mean=(0.0,), std=(1.0,))

PRESETS: dict[str, ImagePreprocessing] = {
    # shorter side to 256, centre 224, ImageNet mean and std: what most published ImageNet numbers used
    "imagenet": IMAGENET,
    "imagenet-bicubic": dataclasses.replace(IMAGENET, interpolation="bicubic"),
    # the longer training recipes: shorter side to 232
    "imagenet-232": dataclasses.replace(IMAGENET, shorter=232),
    # the EfficientNet-Lite family: centre square of 224 / (224 + 32) of the shorter side
    "lite": ImagePreprocessing(
        rule="crop", share=0.875, interpolation="bicubic", value_range="0..255", mean=(127.0,), std=(128.0,)
    ),
    # networks that came through Caffe: bytes, blue first, minus the mean colour
    "caffe": ImagePreprocessing(value_range="0..255", mean=(104.0, 117.0, 123.0), std=(1.0,), channels="bgr"),
    # Inception, many vision transformers: bytes to -1..1
    "half": ImagePreprocessing(interpolation="bicubic", mean=(0.5,), std=(0.5,)),
    "clip": ImagePreprocessing(
        shorter=224,
        interpolation="bicubic",
        mean=(0.48145466, 0.4578275, 0.40821073),
        std=(0.26862954, 0.26130258, 0.27577711),
    ),
    "cifar": ImagePreprocessing(size=(32, 32), rule="squash", mean=(0.4914, 0.4822, 0.4465), std=(0.2470, 0.2435, 0.2616)),
    # the whole image, whatever its shape
    "squash": dataclasses.replace(IMAGENET, rule="squash"),
    # only scaled, for networks that normalise inside
    "unit": ImagePreprocessing(mean=(0.0,), std=(1.0,)),
    "bytes": ImagePreprocessing(value_range="0..255", mean=(0.0,), std=(1.0,)),
    # object detectors, resized by OpenCV because they were trained and published so; engine=pillow does without it
    "yolox": YOLOX,
    "yolov5": YOLOV5,
    "yolov8": YOLOV5,
    "fastestdet": ImagePreprocessing(
        size=(352, 352), rule="squash", engine="opencv", mean=(0.0,), std=(1.0,), channels="bgr"
    ),
}
"""Every preset; ``shiftproof`` prints their figures with ``str(PRESETS[name])``."""


def parse_preprocessing(
    text: str, base: ImagePreprocessing = IMAGENET, *, size: tuple[int, int] | None = None
) -> ImagePreprocessing:
    """The preprocessing that a text like ``caffe,size=227`` names.

    A preset may come first; without one the changes apply to `base`. `size` is what the model itself demands: it holds
    where the text names none. A new size without a new ``resize`` keeps the part of the image that is seen.

    >>> parse_preprocessing("imagenet,size=240,channels=bgr").size
    (240, 240)
    >>> parse_preprocessing("resize=256,crop=224,range=255,mean=104/117/123,std=1,channels=bgr") == PRESETS["caffe"]
    True
    >>> parse_preprocessing("clahe", PRESETS["lite"]).clahe
    2.0
    """
    items = [SHORT.get(item.strip(), item.strip()) for item in text.split(",") if item.strip()]
    preprocessing = base
    if items and "=" not in items[0]:
        if items[0] not in PRESETS:
            raise UnknownName("preprocessing", items[0], PRESETS)
        preprocessing = PRESETS[items.pop(0)]
    changes = _changes(items)
    wanted = changes.pop("size", size)
    if "rule" not in changes and isinstance(wanted, tuple) and wanted != preprocessing.size:
        preprocessing = resized_to(preprocessing, wanted)
    elif wanted is not None:
        changes["size"] = None if wanted == "any" else wanted
    if changes.get("rule") == "none":
        changes["size"] = None
    return dataclasses.replace(preprocessing, **changes)


def _changes(items: list[str]) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for item in items:
        key, equals, value = item.partition("=")
        if not equals:
            raise BadInput(f"{item!r} should be key=value; a preset's name comes first")
        if key not in KEYS:
            raise UnknownName("preprocessing key", key, KEYS)
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
    "denoise": lambda value: {"denoise": float(value)},
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

SHORT = {"clahe": "clahe=2", "denoise": "denoise=10"}
"""Words that stand for a key with its usual value."""

EXAMPLES = {
    "size": "for example size=224, size=240x320 (height first) or size=any",
    "crop": "for example crop=224",
    "share": "for example share=0.875",
    "pad_colour": "it is a level of grey, for example pad_colour=114",
    "clahe": "it is a clip limit, for example clahe=2",
    "denoise": "it is a strength in levels, for example denoise=10",
    "mean": "for example mean=0.485/0.456/0.406 or mean=0.5",
    "std": "for example std=0.229/0.224/0.225 or std=1",
}


Fill = Literal["random", "empty"]
"""How classes without a detection are ranked: in random order, or not at all."""

ProposalOutput = Literal["classes", "most-confident"]
"""How crops are pooled: the class of each by confidence, or all scores of the most confident crop."""

BOX_OPTIONS = ("boxes", "score_threshold", "nms_iou", "max_detections", "several")
"""Options of an object detector whose boxes a classifier uses."""

PROPOSAL_OPTIONS = ("proposals", "max_proposals", "min_side", "proposal_output")
"""Options of the crops that a classifier is run on."""


@dataclass(frozen=True)
class ModelOptions:
    """The user's word on a model; None leaves each thing to what the model itself says."""

    name: str | None = None
    preprocess: str | ImagePreprocessing | None = None
    classes: ClassList | None = None
    gives: Gives | None = None
    features: str | None = None  # the tensor or layer to take them from
    output: str | None = None  # which output holds the class scores
    extra_output: str | None = None  # a further output to keep, such as a confidence branch
    rotated: bool = False  # whether the extra output is a rotation head, run in four rotations
    weights: str | None = None  # a file of weights for an architecture, or "random"
    trust: bool = False  # whether a file that is a program may be run: a TorchScript file, an exported program
    device: str | None = None
    precision: str = "float32"
    channels_last: bool | None = None  # None: where the device and precision gain by it
    threads: int | None = None
    version: str | None = None
    seen: Seen | str | None = None
    boxes: str | None = None  # the layout of a detector's outputs; None: found by their shapes
    score_threshold: float | None = None
    nms_iou: float | None = None
    max_detections: int | None = None
    several: bool | None = None  # whether a box counts for every class above the score threshold
    fill: Fill | None = None
    fill_seed: int = 0
    proposals: str | None = None  # the detector that proposes crops, or "grid"
    max_proposals: int | None = None
    min_side: int | None = None  # of a crop, in pixels
    proposal_output: ProposalOutput | None = None
    adapt: str | None = None  # a recipe of test time

    def __post_init__(self) -> None:
        if self.gives not in {None, "logits", "probabilities", "scores"}:
            raise BadInput(f"a model gives logits, probabilities or scores, not {self.gives!r}")
        if self.rotated and self.extra_output is None:
            raise BadInput("images are rotated for a rotation head; say which output it is: --extra-output")

    def refuse(self, *names: str, what: str) -> None:
        """BadInput where one of these was given, so that nothing the user says is passed over in silence."""
        given = [name for name in names if getattr(self, name) != getattr(ModelOptions(), name)]
        if given:
            raise BadInput(f"{what} takes no {listed(given)}")

    def preprocessing(
        self, own: ImagePreprocessing | None, *, size: tuple[int, int] | None = None
    ) -> tuple[ImagePreprocessing, tuple[str, ...]]:
        """The preprocessing to use, and a note where nobody named one or its figures look wrong."""
        if isinstance(self.preprocess, ImagePreprocessing):
            preprocessing = self.preprocess
        else:
            preprocessing = parse_preprocessing(self.preprocess or "", own or IMAGENET, size=size)
        if self.preprocess is None and own is None:
            return preprocessing, ("the model does not say its preprocessing: imagenet is assumed; --preprocess changes it",)
        hint = figures_hint(preprocessing)
        return preprocessing, (hint,) if hint else ()

    def classes_of(self, outputs: int | None, own: ClassList | None = None) -> tuple[Classes | None, tuple[str, ...]]:
        """What the model's outputs mean, by the user's word or its own, and a note where it was assumed rather than said."""
        named = own if self.classes is None else self.classes
        if named is not None:
            classes = classes_from(named)
            if outputs not in (None, len(classes)):
                raise ClassMismatch(f"the model gives {outputs} scores an image but {len(classes)} classes are named")
            return classes, ()
        usual = usual_classes(outputs)
        if usual is None:
            return None, ("the model does not name its classes; --classes gives them",)
        behind = "background, then " if outputs == 1001 else ""
        return usual, (f"{outputs} outputs taken as {behind}ILSVRC-2012 in its usual order; --classes names others",)

    def seen_or(self, own: Seen | None = None) -> Seen:
        """What the model was trained on, by the user's word or its own."""
        if isinstance(self.seen, str):
            return dataclasses.replace(own or Seen(), training_data=self.seen)
        return self.seen or own or Seen()
