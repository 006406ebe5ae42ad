"""Detectors and the sets they are tried on, as people write them."""

from __future__ import annotations

from shiftproof import catalog
from shiftproof.reports.words import spoken

WRITTEN = {
    "msp": "MSP",
    "max_logit": "Max-Logit",
    "energy": "Energy",
    "entropy": "Entropy",
    "margin": "Margin",
    "odin": "ODIN",
    "odin_eps": "ODIN-eps",
    "gen": "GEN",
    "max_cosine": "Max-Cosine",
    "gradnorm": "GradNorm",
    "ash_b": "ASH-B",
    "ash_s": "ASH-S",
    "ash_p": "ASH-P",
    "scale": "SCALE",
    "react": "ReAct",
    "dice": "DICE",
    "kl_matching": "KL-matching",
    "she": "SHE",
    "openmax": "OpenMax",
    "mahalanobis": "Mahalanobis",
    "relative_mahalanobis": "Rel. Mahalanobis",
    "vim": "ViM",
    "residual": "Residual",
    "knn": "KNN",
    "confidence": "Confidence branch",
    "rotation": "Rotation",
    "rotation_upright": "Rotation, upright",
}
"""As the papers write them, so that they are found again in published tables."""


def written(detector: str) -> str:
    """A detector's name in print; one that we do not know stays as it is.

    >>> written("vim"), written("msp+knn"), written("our_own")
    ('ViM', 'MSP + KNN', 'our_own')
    """
    return " + ".join(WRITTEN.get(part, part) for part in detector.split("+"))


def set_title(name: str) -> str:
    """A set of images in print: conditions as they are said, folders as they are called.

    >>> set_title("zoom_blur 4"), set_title("my_photos")
    ('zoom blur 4', 'my_photos')
    """
    return spoken(name) if name.rpartition(" ")[0] in catalog.CORRUPTIONS else name
