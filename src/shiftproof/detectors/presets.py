"""Parameters that public implementations set differently, by whose choice they are.

What stands in a detector's signature is the original authors' choice, so the preset ``authors`` is empty.
"""

from __future__ import annotations

from collections.abc import Mapping

from shiftproof.types import Fact

PRESETS: Mapping[str, Mapping[str, Mapping[str, Fact]]] = {
    "authors": {},
    "openood": {
        "ash_b": {"percentile": 90.0},
        "ash_p": {"percentile": 90.0},
        "dice": {"percentile": 90.0},
        "knn": {"neighbours": 50},
        "openmax": {"alpha": 3, "distance": "euclidean"},
        "residual": {"dimension": 512, "tolerance": 1e-15},
        "vim": {"dimension": 256, "tolerance": 1e-15},
    },
    "pytorch-ood": {
        "ash_s": {"percentile": 65.0},
        "gen": {"largest": None},
        "knn": {"neighbours": 50},
        "openmax": {"tail": 25, "distance": "euclidean", "mean_of": "all"},
        "scale": {"percentile": 65.0},
    },
}
"""Preset, then detector, then parameter."""
