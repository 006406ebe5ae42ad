"""Published numbers of detectors, by the names that the detectors have here."""

from __future__ import annotations

from collections.abc import Mapping

from shiftproof.reference import load_table
from shiftproof.reports.detector_names import WRITTEN

IMAGENET_OOD = {
    "in_1k__ood": "ImageNet, ImageNet-OOD",
    "in_1k__openimage_o": "ImageNet, OpenImage-O",
    "in_c__ood": "ImageNet-C, ImageNet-OOD",
    "in_r__ood": "ImageNet-R, ImageNet-OOD",
    "in_sketch__ood": "ImageNet-Sketch, ImageNet-OOD",
}
RESNET_50 = {"imagenet_ood": "ImageNet, ImageNet-OOD", "openimage_o": "ImageNet, OpenImage-O"}
"""Columns of the tables, and what they are of."""
DISCARDED = {"imagenet": "ImageNet", "imagenet_c": "ImageNet-C", "imagenet_r": "ImageNet-R"}
SOURCE = "Yang et al. 2024"


def published_aurocs(goal: str) -> dict[str, dict[str, float]]:
    """AUROC by detector, then by what it is of; with a ResNet-50 where nothing wider was published."""
    rows = [row for row in load_table("imagenet_ood_auroc") if row["goal"] == goal]
    more = [row for row in load_table("imagenet_ood_resnet50_auroc") if row["goal"] == goal]
    alone = {method: _shares(row, RESNET_50) for row in more if (method := row["method"])}
    return _by_detector({**alone, **{row["method"]: _shares(row, IMAGENET_OOD) for row in rows}})


def published_discarded() -> dict[str, dict[str, float]]:
    """Share of right answers thrown away at 75 % rejected, by detector, then by set."""
    return _by_detector({row["method"]: _shares(row, DISCARDED) for row in load_table("imagenet_ood_discarded_at_75")})


def published_parts() -> dict[str, tuple[float, float]]:
    """AUROC of right and of wrong answers against new classes, by detector."""
    rows = load_table("imagenet_ood_decomposition")
    found = {row["method"]: (float(row["correct_id_vs_ood"]) / 100, float(row["incorrect_id_vs_ood"]) / 100) for row in rows}
    return {name: found[method] for name, method in WRITTEN.items() if method in found}


def _shares(row: Mapping[str, str], columns: Mapping[str, str]) -> dict[str, float]:
    return {title: float(row[column]) / 100 for column, title in columns.items() if row[column]}


def _by_detector(found: Mapping[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    return {name: found[method] for name, method in WRITTEN.items() if method in found}
