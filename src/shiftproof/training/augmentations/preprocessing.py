"""Recipes that train a model with another preprocessing, which it keeps."""

from __future__ import annotations

from dataclasses import replace

from shiftproof.errors import BadInput
from shiftproof.models.preprocessing import ImagePreprocessing
from shiftproof.options import Bounds
from shiftproof.training.recipe import Recipe


def clahe(own: ImagePreprocessing, *, clip_limit: float) -> ImagePreprocessing:
    """The model's preprocessing with adaptive histogram equalisation of the lightness."""
    return replace(own, clahe=clip_limit)


def _check_clahe(*, clip_limit: float) -> None:
    if clip_limit <= 0:
        raise BadInput(f"clahe: the clip limit should lie above 0, for example clahe:2, got {clip_limit:g}")


CLAHE = Recipe(
    title="CLAHE",
    description="Contrast-limited adaptive histogram equalisation, which becomes part of the model's preprocessing.",
    cites=("hendrycks2019benchmarking",),
    settings={"clip_limit": 2.0},
    bounds={"clip_limit": Bounds(0, 1000, open_below=True)},
    check=_check_clahe,
    preprocess=clahe,
)


def denoise(own: ImagePreprocessing, *, strength: float) -> ImagePreprocessing:
    """The model's preprocessing with denoising by non-local means."""
    return replace(own, denoise=strength)


def _check_denoise(*, strength: float) -> None:
    if strength <= 0:
        raise BadInput(f"denoise: the strength should lie above 0, for example denoise:10, got {strength:g}")


DENOISE = Recipe(
    title="Denoising",
    description="Denoising by non-local means, which becomes part of the model's preprocessing.",
    cites=("hendrycks2019benchmarking", "buades2005non"),
    settings={"strength": 10.0},
    bounds={"strength": Bounds(0, 1000, open_below=True)},
    check=_check_denoise,
    preprocess=denoise,
)
