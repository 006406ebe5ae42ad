"""The OOD detectors of pytorch-ood, for comparison."""

from __future__ import annotations

from typing import Any


def peer_detectors() -> Any:
    """The detectors of pytorch-ood, or None where it is not installed or does not load."""
    try:
        from pytorch_ood import detector
    except (ImportError, OSError, RuntimeError):  # torchvision beside a torch that was built otherwise
        return None
    return detector


def tell_who_races() -> None:
    print("beside pytorch-ood" if peer_detectors() else "pytorch-ood is not installed or does not load: our own times alone")
