"""Other photos' style: by style transfer with the user's weights, or their amplitude spectra, which need no network."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from shiftproof.errors import BadInput
from shiftproof.files import readable_file
from shiftproof.training.recipe import Pictures, Recipe, Setting, torch_part
from shiftproof.types import Image

LETTERS = 16
"""Of a digest that follows the path of weights."""


def stylized(
    image: Image,
    rng: np.random.Generator,
    others: Pictures,
    *,
    strength: float = 1.0,
    share: float = 0.5,
    encoder: str = "",
    decoder: str = "",
) -> Image:
    """The picture with a part of its amplitude spectrum taken from another photo, its phases kept (Xu et al., 2021).

    The part is random, up to `strength`: phases carry most of the shapes, amplitudes much of texture and colours. With the
    weights of an encoder and a decoder it is a transfer of style instead, `strength` of the way (Huang & Belongie, 2017).
    """
    if len(others) == 0 or rng.random() >= share:
        return image.copy()
    other, part = others[int(rng.integers(len(others)))], rng.uniform(0, strength)
    if encoder:
        files = [one.rpartition("@")[0] for one in (encoder, decoder)]
        styled: Image = torch_part("shiftproof.training.networks.adain:transferred")(image, other, strength, *files)
        return styled
    return with_amplitudes(image, other, float(part))


def with_amplitudes(image: Image, other: Image, part: float) -> Image:
    """The picture with a share of its amplitude spectrum taken from another, which is resized to it."""
    from scipy.fft import irfft2, rfft2

    height, width = image.shape[:2]
    if other.shape != image.shape:
        import cv2

        other = np.asarray(cv2.resize(other, (width, height), interpolation=cv2.INTER_AREA), np.uint8)
    own, theirs = (rfft2(np.ascontiguousarray(picture.transpose(2, 0, 1), np.float32)) for picture in (image, other))
    # where the picture has no wave there is no phase to keep, and none is added
    own *= (1 - part) + part * np.abs(theirs) / np.maximum(np.abs(own), 1e-6)
    changed = irfft2(own, (height, width)).transpose(1, 2, 0)
    return np.ascontiguousarray(changed.round().clip(0, 255), np.uint8)


def _settled(*, encoder: str, decoder: str, **others: Setting) -> Mapping[str, Setting]:
    """The settings with a digest after each file of weights, so that other weights are another recipe."""
    if bool(encoder) != bool(decoder):
        raise BadInput(
            "stylized: style transfer needs the weights of both, as in stylized?encoder=vgg.pth,decoder=decoder.pth"
        )
    return {**others, "encoder": _with_digest(encoder), "decoder": _with_digest(decoder)}


def _with_digest(text: str) -> str:
    if not text:
        return text
    path, at, told = text.rpartition("@")
    path = path if at and len(told) == LETTERS else text
    with readable_file(Path(path)).open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()[:LETTERS]
    if path != text and told != digest:
        raise BadInput(f"{path} holds other weights than when it was named; leave out @{told} to take them")
    return f"{path}@{digest}"


def _shown(*, encoder: str, **_: Setting) -> tuple[str, ...]:
    return ("style transfer",) if encoder else ("amplitude mix",)


def _check_stylized(*, strength: float, share: float, **_: Setting) -> None:
    if not 0 < strength <= 1 or not 0 < share <= 1:
        raise BadInput(f"stylized: strength and share should lie above 0 and at most at 1, got {strength:g} and {share:g}")


STYLIZED = Recipe(
    title="Amplitude spectra of other photos (a stand-in for Stylized-ImageNet)",
    description="Fourier phases are kept, and amplitudes taken from other photos: a stand-in for style transfer.",
    cites=("geirhos2019imagenet", "xu2021fourier", "huang2017arbitrary"),
    settings={"strength": 1.0, "share": 0.5, "encoder": "", "decoder": ""},
    augmentations=_shown,
    check=_check_stylized,
    settled=_settled,
    augment=stylized,
    keeps_places=True,
    mixes=True,
)
