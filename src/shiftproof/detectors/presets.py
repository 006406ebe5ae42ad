"""Parameters that public implementations set differently, by whose choice they are.

What stands in a detector's signature is the original authors' choice, so the preset ``authors`` is empty.
"""

from __future__ import annotations

from collections.abc import Mapping

from shiftproof.types import Fact

PRESETS: Mapping[str, Mapping[str, Mapping[str, Fact]]] = {
    "authors": {},
    "openood": {},
    "pytorch-ood": {},
}
"""Preset, then detector, then parameter."""
