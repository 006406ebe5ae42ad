"""How an image becomes a model's input: resize, crop, scale, normalise, in one picklable value."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from PIL import Image as Pillow

from shiftproof.errors import BadInput, MissingExtra
from shiftproof.types import CORNERS, Decoder, Fact, Image, InputForm, LazyInputs

Pad = Literal["corner", "centre"]
"""Where a letterbox puts the image: into the top left corner, or in the middle."""

Size = tuple[int, int]
"""Height, width."""

LONGEST = 64
"""How many times as long as wide an image may be and still be resized whole."""


class Frame(NamedTuple):
    """A part of an image, the size it is resized to, and where in that the input begins; before it, where padded."""

    start: Size  # top, left
    size: Size
    resized: Size
    corner: Size = (0, 0)  # top, left

    def taken_from(self, image: Image) -> Image:
        """The part of the image that is resized."""
        return part_of(image, self.start, self.size)

    def window(self, input_size: Size) -> tuple[float, float, float, float]:
        """The region of the image that an input of this size shows: left, top, right, bottom."""
        (top, bottom), (left, right) = (
            tuple(start + place * size / resized for place in (corner, corner + shown))
            for start, size, resized, corner, shown in zip(*self, input_size, strict=True)
        )
        return left, top, right, bottom


def whole(height: int, width: int, resized: Size) -> Frame:
    """All of the image, squashed to another size."""
    return Frame((0, 0), (height, width), resized)


def shorter_side(height: int, width: int, shorter: int, input_size: Size) -> Frame:
    """The centre of an image whose shorter side is resized to so many pixels.

    Of an image too long for its width only the middle is resized, far more than the centre: whole, a strip of
    1 x 60,000 pixels would fill the memory.
    """
    most = LONGEST * min(height, width)
    start = (max(0, height - most) // 2, max(0, width - most) // 2)
    height, width = min(height, most), min(width, most)
    # the longer side is cut to whole pixels, not rounded: the published way
    resized = (max(shorter, int(shorter * height / width)), max(shorter, int(shorter * width / height)))
    corner = (round((resized[0] - input_size[0]) / 2), round((resized[1] - input_size[1]) / 2))
    return Frame(start, (height, width), resized, corner)


def centre_square(height: int, width: int, share: float, input_size: Size) -> Frame:
    """The square in the centre that is `share` times as long as the image's shorter side."""
    side = max(1, int(share * min(height, width)))
    return Frame(((height - side + 1) // 2, (width - side + 1) // 2), (side, side), input_size)


def letterbox(height: int, width: int, input_size: Size, pad: Pad) -> Frame:
    """All of the image, as large as it fits, its shape kept.

    In a corner the other side is cut to whole pixels, in the middle it is rounded: what YOLOX and YOLOv5 do.
    """
    scale = min(input_size[0] / height, input_size[1] / width)
    whole_pixels = int if pad == "corner" else round
    resized = (max(1, whole_pixels(height * scale)), max(1, whole_pixels(width * scale)))
    spare = (input_size[0] - resized[0], input_size[1] - resized[1])
    corner = (0, 0) if pad == "corner" else (-(spare[0] // 2), -(spare[1] // 2))
    return Frame((0, 0), (height, width), resized, corner)


def corners_within(size: Size, part: Size) -> dict[str, Size]:
    """Where a part of an image begins that lies in each of its corners: top, left.

    >>> corners_within((256, 341), (224, 224))
    {'top left': (0, 0), 'top right': (0, 117), 'bottom left': (32, 0), 'bottom right': (32, 117)}
    """
    lowest, rightmost = size[0] - part[0], size[1] - part[1]
    return dict(zip(CORNERS, [(0, 0), (0, rightmost), (lowest, 0), (lowest, rightmost)], strict=True))


def part_of(image: Image, start: Size, size: Size) -> Image:
    """So much of an image, from its top and left on."""
    (top, left), (height, width) = start, size
    return image[top : top + height, left : left + width]


Rule = Literal["shorter", "crop", "squash", "letterbox", "none"]
Interpolation = Literal["nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"]
Engine = Literal["pillow", "opencv"]
ValueRange = Literal["0..1", "0..255", "-1..1"]
Channels = Literal["rgb", "bgr", "grey"]
Layout = Literal["nchw", "nhwc"]
InputType = Literal["float32", "float16", "uint8"]

OPENCV_FILTERS = {"nearest": "INTER_NEAREST", "box": "INTER_AREA", "bilinear": "INTER_LINEAR", "bicubic": "INTER_CUBIC"}
"""OpenCV's filters of the same name; all but the box skip pixels when they shrink, so they are not Pillow's."""

WINDOW = 7 / 8
"""Share of each side that a crop in a corner keeps where the model itself sees the whole image: 224 of 256."""


@dataclass(frozen=True)
class ImagePreprocessing:
    """Every choice between a decoded image and a model's input.

    `rule` says which part of the image is seen: ``shorter`` resizes the shorter side to `shorter` pixels and cuts the
    centre; ``crop`` cuts a square of `share` times the shorter side out of the centre and resizes it; ``squash`` resizes
    the whole image; ``letterbox`` resizes it so that all of it fits, and fills the rest with `pad_colour`, to the right and
    below (`pad` ``corner``) or on both sides (``centre``); ``none`` leaves the size alone. Mean and std are in the units of
    `value_range` and in the model's own order of channels.

    >>> ImagePreprocessing().from_image(np.zeros((300, 400, 3), np.uint8)).shape
    (3, 224, 224)
    """

    size: tuple[int, int] | None = (224, 224)  # height, width; None takes any
    rule: Rule = "shorter"
    shorter: int = 256
    share: float = 1.0
    interpolation: Interpolation = "bilinear"
    engine: Engine = "pillow"
    decoder: Decoder = "pillow"
    value_range: ValueRange = "0..1"
    mean: tuple[float, ...] = (0.485, 0.456, 0.406)
    std: tuple[float, ...] = (0.229, 0.224, 0.225)
    channels: Channels = "rgb"
    layout: Layout = "nchw"
    dtype: InputType = "float32"
    clahe: float = 0.0  # clip limit of the local histogram equalisation; 0 leaves it out
    denoise: float = 0.0  # strength of non-local means, in levels; 0 leaves it out
    pad: Pad = "centre"
    pad_colour: int = 114

    def __post_init__(self) -> None:
        _check_words(self)
        _check_figures(self)

    def from_image(self, image: Image, out: NDArray[np.generic] | None = None) -> NDArray[np.generic]:
        """The model's own resize and crop, then normalisation; one image, without the batch axis."""
        return self._normalised(self.filtered(self.cut(image)), out)

    def from_picture(self, picture: Image, out: NDArray[np.generic] | None = None) -> NDArray[np.generic]:
        """The whole picture resized to the model's size, no crop, then normalisation; a letterbox keeps its shape."""
        if self.rule == "letterbox":
            return self.from_image(picture, out)
        return self._normalised(self.filtered(picture if self.size is None else self._resized(picture, self.size)), out)

    @property
    def form(self) -> InputForm | None:
        """The shape and dtype of every input; None where they follow from the image."""
        if self.size is None:
            return None
        shape = (self._depth, *self.size) if self.layout == "nchw" else (*self.size, self._depth)
        return InputForm(shape, np.dtype(self.dtype))

    def from_crops(self, image: Image) -> Mapping[str, NDArray[np.generic]]:
        """Ten inputs: what the model sees, as large a part in each corner, and all five mirrored.

        Corners are those of the resized image for ``shorter`` and of the image for ``crop``. Where the model sees the whole
        image, windows of 7/8 of its sides are preprocessed by the model's own rule.
        """
        if self.rule != "shorter" or self.clahe or self.denoise:
            five = {name: self.filtered(view) for name, view in self._five(image).items()}
            mirror_images = {f"mirrored {name}": view[:, ::-1] for name, view in five.items()}
            return LazyInputs(five | mirror_images, self._normalised)
        mirrored = (..., slice(None, None, -1)) if self.layout == "nchw" else (slice(None), slice(None, None, -1))
        # the views overlap and each pixel is normalised alone, so all are normalised and mirrored before they are cut out
        frame = self._frame(*image.shape[:2])
        values = self._normalised(self._resized(frame.taken_from(image), frame.resized))
        starts = {"centre": frame.corner, **corners_within(frame.resized, self._size)}
        room = frame.resized[1] - self._size[1]
        others = {f"mirrored {name}": (top, room - left) for name, (top, left) in starts.items()}
        return self._cut_out(values, starts) | self._cut_out(np.ascontiguousarray(values[mirrored]), others)

    def cut(self, image: Image) -> Image:
        """The model's own resize and crop alone: what it sees of the image, as bytes."""
        frame = self._frame(*image.shape[:2])
        image = frame.taken_from(image)
        match self.rule:
            case "shorter":
                return self._resized_and_cropped(image, frame)
            case "letterbox":
                return self._resized_and_padded(image, frame)
            case _:
                return self._resized(image, frame.resized)

    def window(self, height: int, width: int) -> tuple[float, float, float, float]:
        """The region of an image of this size that its input shows, in its pixels: left, top, right, bottom.

        The padding of a letterbox lies outside the image.

        >>> ImagePreprocessing().window(512, 1024)
        (288.0, 32.0, 736.0, 480.0)
        """
        return self._frame(height, width).window(self.size or (height, width))

    def describe(self) -> Mapping[str, Fact]:
        """Every choice in plain values, under the keys that `parse_preprocessing` reads."""
        facts: dict[str, Fact] = {
            "size": "any" if self.size is None else "x".join(map(str, self.size)),
            "resize": self.shorter if self.rule == "shorter" else self.rule,
        }
        if self.rule == "crop":
            facts["share"] = self.share
        if self.rule == "letterbox":
            facts |= {"pad": self.pad, "pad_colour": self.pad_colour}
        facts |= {key: figure for key, figure in (("clahe", self.clahe), ("denoise", self.denoise)) if figure}
        return facts | {
            "interpolation": self.interpolation,
            "engine": self.engine,
            "decoder": self.decoder,
            "range": self.value_range,
            "mean": _typed(self.mean),
            "std": _typed(self.std),
            "channels": self.channels,
            "layout": self.layout,
            "dtype": self.dtype,
        }

    def __str__(self) -> str:
        return ",".join(f"{key}={value}" for key, value in self.describe().items())

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the greatest value an input can hold."""
        scale, shift = self._scale_and_shift
        ends = np.concatenate([shift, 255 * scale + shift])
        return float(ends.min()), float(ends.max())

    @property
    def contrast(self) -> NDArray[np.float32]:
        """How far apart black and white are in the input, a number a channel, shaped to be multiplied with a batch."""
        scale, _ = self._scale_and_shift
        return np.float32(255) * (scale[:, None, None] if self.layout == "nchw" else scale)

    @property
    def _size(self) -> tuple[int, int]:
        assert self.size is not None  # noqa: S101 - only the rule `none` has no size, and it never resizes
        return self.size

    def _frame(self, height: int, width: int) -> Frame:
        """What this preprocessing's rule shows of an image of this size."""
        match self.rule:
            case "shorter":
                return shorter_side(height, width, self.shorter, self._size)
            case "crop":
                return centre_square(height, width, self.share, self._size)
            case "squash":
                return whole(height, width, self._size)
            case "letterbox":
                return letterbox(height, width, self._size, self.pad)
            case "none":
                return whole(height, width, (height, width))

    def _five(self, image: Image) -> dict[str, Image]:
        """What the model sees of the image, and as large a part in each corner."""
        height, width = image.shape[:2]
        frame = self._frame(height, width)
        match self.rule:
            case "shorter":
                resized = self._resized(frame.taken_from(image), frame.resized)
                starts = {"centre": frame.corner, **corners_within(frame.resized, self._size)}
                return {name: part_of(resized, start, self._size) for name, start in starts.items()}
            case "crop":
                starts = {"centre": frame.start, **corners_within((height, width), frame.size)}
                squares = {name: part_of(image, start, frame.size) for name, start in starts.items()}
                return {name: self._resized(square, self._size) for name, square in squares.items()}
            case _:
                window = max(1, round(WINDOW * height)), max(1, round(WINDOW * width))
                starts = corners_within((height, width), window)
                corners = {name: self.cut(part_of(image, start, window)) for name, start in starts.items()}
                return {"centre": self.cut(image), **corners}

    def _cut_out(self, values: NDArray[np.generic], starts: Mapping[str, tuple[int, int]]) -> dict[str, NDArray[np.generic]]:
        """Parts of the model's size out of normalised values, which begin at these rows and columns."""
        height, width = self._size
        places = {name: (slice(top, top + height), slice(left, left + width)) for name, (top, left) in starts.items()}
        channels = (slice(None),) if self.layout == "nchw" else ()
        return {name: values[(*channels, *place)] for name, place in places.items()}

    def _resized_and_cropped(self, image: Image, frame: Frame) -> Image:
        height, width = image.shape[:2]
        resized_height, resized_width = frame.resized
        top, left = frame.corner
        bottom, right = top + self._size[0], left + self._size[1]
        if self.engine == "opencv" or width <= height or width == resized_width:
            return self._resized(image, frame.resized)[top:bottom, left:right]
        # Pillow resamples wide images along rows first, then along columns; between the two the columns that
        # the crop drops can be dropped already, and the pixels that stay are the same to the bit
        pixels = Pillow.fromarray(image).resize((resized_width, height), self._filter)
        pixels = pixels.crop((left, 0, right, height))
        if height != resized_height:
            pixels = pixels.resize((self._size[1], resized_height), self._filter)
        return np.asarray(pixels)[top:bottom]

    def _resized_and_padded(self, image: Image, frame: Frame) -> Image:
        height, width = frame.resized
        top, left = (-start for start in frame.corner)
        padded = np.full((*self._size, 3), self.pad_colour, np.uint8)
        padded[top : top + height, left : left + width] = self._resized(image, frame.resized)
        return padded

    def _resized(self, image: Image, size: tuple[int, int]) -> Image:
        height, width = size
        if image.shape[:2] == size:
            return image
        if self.engine == "opencv":
            return _resized_by_opencv(image, size, self.interpolation)
        return np.asarray(Pillow.fromarray(image).resize((width, height), self._filter))

    @property
    def _filter(self) -> Pillow.Resampling:
        return Pillow.Resampling[self.interpolation.upper()]

    @cached_property
    def _scale_and_shift(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Per channel, what a byte is multiplied by and what is then added."""
        unit = {"0..1": 1 / 255, "0..255": 1.0, "-1..1": 2 / 255}[self.value_range]
        start = -1.0 if self.value_range == "-1..1" else 0.0
        mean, std = np.broadcast_to(self.mean, self._depth), np.broadcast_to(self.std, self._depth)
        return (unit / std).astype(np.float32), ((start - mean) / std).astype(np.float32)

    @property
    def _depth(self) -> int:
        return 1 if self.channels == "grey" else 3

    def filtered(self, picture: Image) -> Image:
        """A picture after what is done to its pixels before they are normalised: denoising, local histogram equalisation."""
        if self.denoise:
            picture = _denoised(picture, self.denoise)
        return _equalised(picture, self.clahe) if self.clahe else picture

    def _normalised(self, image: Image, out: NDArray[np.generic] | None = None) -> NDArray[np.generic]:
        if self.channels == "grey":
            image = np.asarray(Pillow.fromarray(image).convert("L"))[:, :, None]
        elif self.channels == "bgr":
            image = image[:, :, ::-1]
        if self.layout == "nchw":
            image = _planes(image)
        values: NDArray[Any] = np.empty(image.shape, np.dtype(self.dtype)) if out is None else out
        if self.dtype == "float16":
            self._fill_with_halves(values, np.ascontiguousarray(image))
            return values
        values[...] = image  # from planes that are views, the axes change places on the way
        if self.dtype == "uint8":
            return values
        # two long axes with the channels' figures along one of them: an axis of three would be walked slowly
        rows = values.reshape(image.shape[0], -1)
        if self.layout == "nchw":
            scale, shift = (figures[:, None] for figures in self._scale_and_shift)
        else:
            scale, shift = (np.tile(figures, image.shape[1]) for figures in self._scale_and_shift)
        rows *= scale
        rows += shift
        return values

    def _fill_with_halves(self, values: NDArray[np.generic], image: Image) -> None:
        """Bytes to float16 by table: rounding each pixel to half precision would cost more than all the rest."""
        scale, shift = self._scale_and_shift
        for place in range(self._depth):
            plane = (place,) if self.layout == "nchw" else (..., place)
            table = (np.arange(256, dtype=np.float32) * scale[place] + shift[place]).astype(np.float16)
            values[plane] = table.take(image[plane], mode="clip")  # every byte has its entry, so none is checked


def _planes(image: Image) -> Image:
    """The channels of an image one behind the other, (channels, height, width)."""
    split = getattr(sys.modules.get("cv2"), "split", None)  # loading it would cost more than it saves
    if split is None or image.dtype != np.uint8 or image.shape[2] == 1 or min(image.strides) < 0:
        return image.transpose(2, 0, 1)
    planes = np.empty((image.shape[2], *image.shape[:2]), np.uint8)
    split(image, [*planes])
    return planes


def _typed(figures: tuple[float, ...]) -> str:
    """Figures as one would type them, without losing any digit that counts."""
    return "/".join(f"{figure:g}" if float(f"{figure:g}") == figure else repr(figure) for figure in figures)


def _equalised(image: Image, clip_limit: float) -> Image:
    """Contrast-limited adaptive histogram equalisation (Zuiderveld, 1994) of the lightness, in 8 x 8 tiles."""
    cv2 = _opencv("clahe")
    colours = cv2.cvtColor(image, cv2.COLOR_RGB2LAB)
    colours[:, :, 0] = cv2.createCLAHE(clip_limit, (8, 8)).apply(np.ascontiguousarray(colours[:, :, 0]))
    return np.asarray(cv2.cvtColor(colours, cv2.COLOR_LAB2RGB), dtype=np.uint8)


def _denoised(image: Image, strength: float) -> Image:
    """Non-local means (Buades et al., 2005) of lightness and colours: patches of 7 x 7 within 21 x 21, OpenCV's defaults."""
    cv2 = _opencv("denoise")
    return np.asarray(cv2.fastNlMeansDenoisingColored(np.ascontiguousarray(image), None, strength, strength), dtype=np.uint8)


def _opencv(what: str) -> ModuleType:
    try:
        import cv2
    except ModuleNotFoundError as missing:
        raise MissingExtra(what, "opencv") from missing
    return cv2


def _resized_by_opencv(image: Image, size: tuple[int, int], interpolation: Interpolation) -> Image:
    cv2 = _opencv("engine=opencv")
    height, width = size
    resized = cv2.resize(image, (width, height), interpolation=getattr(cv2, OPENCV_FILTERS[interpolation]))
    return np.asarray(resized, dtype=np.uint8)


def _check_words(preprocessing: ImagePreprocessing) -> None:
    for key, words in [
        ("rule", get_args(Rule)),
        ("interpolation", get_args(Interpolation)),
        ("engine", get_args(Engine)),
        ("decoder", get_args(Decoder)),
        ("value_range", get_args(ValueRange)),
        ("channels", get_args(Channels)),
        ("layout", get_args(Layout)),
        ("dtype", get_args(InputType)),
        ("pad", get_args(Pad)),
    ]:
        if getattr(preprocessing, key) not in words:
            raise BadInput(f"{key} should be one of {', '.join(words)}, got {getattr(preprocessing, key)!r}")


def _check_figures(preprocessing: ImagePreprocessing) -> None:
    size, rule = preprocessing.size, preprocessing.rule
    if (size is None) != (rule == "none"):
        raise BadInput("a size needs a resize rule and a rule needs a size; size=any goes with resize=none")
    if size is not None and min(size) < 1:
        raise BadInput(f"size should be at least 1x1, got {size[0]}x{size[1]}")
    if size is not None and rule == "shorter" and preprocessing.shorter < max(size):
        raise BadInput(
            f"the shorter side is resized to {preprocessing.shorter}, too small to cut {size[0]}x{size[1]} out of it"
        )
    if not 0 < preprocessing.share <= 1:
        raise BadInput(f"share should be above 0 and at most 1, got {preprocessing.share}")
    for key, values in [("mean", preprocessing.mean), ("std", preprocessing.std)]:
        if len(values) not in {1, 1 if preprocessing.channels == "grey" else 3}:
            raise BadInput(f"{key} should be one figure or one a channel, got {len(values)}")
    if not 0 <= preprocessing.pad_colour <= 255:
        raise BadInput(f"pad_colour is a level of grey from 0 to 255, got {preprocessing.pad_colour}")
    if preprocessing.clahe < 0:
        raise BadInput(f"clahe is a clip limit above 0, for example clahe=2, got {preprocessing.clahe}")
    if preprocessing.denoise < 0:
        raise BadInput(f"denoise is a strength above 0, for example denoise=10, got {preprocessing.denoise}")
    if 0 in preprocessing.std:
        raise BadInput("std should not be 0: inputs are divided by it")
    if preprocessing.dtype == "uint8" and (preprocessing.value_range, set(preprocessing.mean), set(preprocessing.std)) != (
        "0..255",
        {0},
        {1},
    ):
        raise BadInput("uint8 inputs are bytes as they are: they go with range=255, mean=0 and std=1")
    if preprocessing.engine == "opencv" and preprocessing.interpolation not in OPENCV_FILTERS:
        raise BadInput(f"engine=opencv knows {', '.join(OPENCV_FILTERS)}, not {preprocessing.interpolation}")


def resized_to(preprocessing: ImagePreprocessing, size: tuple[int, int]) -> ImagePreprocessing:
    """The same preprocessing for another input size; the part of the image that is seen stays the same.

    >>> resized_to(ImagePreprocessing(), (244, 244)).shorter
    278
    """
    if preprocessing.size is None:
        return dataclasses.replace(preprocessing, size=size, rule="squash")
    if preprocessing.rule != "shorter":
        return dataclasses.replace(preprocessing, size=size)
    grown = preprocessing.shorter * min(size) // min(preprocessing.size)
    return dataclasses.replace(preprocessing, size=size, shorter=max(grown, *size))
