"""Corruptions of pictures: the 19 of ImageNet-C, each a pure function of a picture, a generator and named strengths.

This module has their names alone, so that whoever asks for them loads nothing heavy; `applying` has `corrupt`.
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

DEFAULT_EDITION = "imagenet-224"
