"""Corruptions of pictures: the 19 of ImageNet-C, each a pure function of a picture, a generator and named strengths; and the
14 perturbation sequences of ImageNet-P.

This module has their names alone, so that whoever asks for them loads nothing heavy; `applying` has `corrupt`, `sequences`
has `perturb`.
"""

from __future__ import annotations

IMAGENET_C = (
    "gaussian_noise", "shot_noise", "impulse_noise", "defocus_blur", "glass_blur", "motion_blur", "zoom_blur", "snow",
    "frost", "fog", "brightness", "contrast", "elastic_transform", "pixelate", "jpeg_compression",
)  # fmt: skip
"""The 15 corruptions that mCE is the mean over; the other four are for validation."""

GROUPS = {
    "noise": IMAGENET_C[:3],
    "blur": IMAGENET_C[3:7],
    "weather": IMAGENET_C[7:11],
    "digital": IMAGENET_C[11:],
    "extra": ("speckle_noise", "gaussian_blur", "spatter", "saturate"),
}
"""The groups under which the published archives and the paper sort them."""

IMAGENET_P = (
    "gaussian_noise", "shot_noise", "motion_blur", "zoom_blur", "snow", "brightness", "translate", "rotate", "tilt", "scale",
)  # fmt: skip
"""The 10 perturbation sequences that mFR and mT5D are means over."""

IMAGENET_P_VALIDATION = ("speckle_noise", "gaussian_blur", "spatter", "shear")
"""The other four, for validation."""

DEFAULT_EDITION = "imagenet-224"

PIXELS = {"brightness": 2, "saturate": 2}
"""By corruption, 1 for others; raised when one gives other pixels, lest stored answers to old ones be taken for new."""
