"""Drawn clips: a folder of numbered frames for each, in a folder of its class."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from PIL import Image as Pillow

from blotches import blotches


def draw_film(root: Path, clips: Mapping[str, int]) -> Path:
    """So many frames of each clip, no two alike; a clip is named by its path, as in ``dog/walk``."""
    for place, (clip, frames) in enumerate(clips.items()):
        (root / clip).mkdir(parents=True)
        for frame in range(frames):
            Pillow.fromarray(blotches(100 * place + frame, width=48, height=36)).save(root / clip / f"{frame:03}.png")
    return root
