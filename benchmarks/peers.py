"""The OOD detectors of pytorch-ood, for comparison."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any


def peer_detectors() -> Any:
    """The detectors of pytorch-ood, or None where it is not installed."""
    if find_spec("pytorch_ood") is None:
        return None
    from pytorch_ood import detector

    return detector


def tell_who_races() -> None:
    print("beside pytorch-ood" if peer_detectors() else "pytorch-ood is not installed: our own times alone")
