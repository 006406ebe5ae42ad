"""The OOD detectors of pytorch-ood, for comparison."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import Any


@cache
def peer_detectors() -> Any:
    """The detectors of pytorch-ood, or None where it is not installed or does not load."""
    with suppress(ImportError):
        import torchvision_on_cpu  # noqa: F401 where it is on the path: torchvision of PyPI beside a torch without CUDA
    try:
        from pytorch_ood import detector
    except (ImportError, OSError, RuntimeError):  # torchvision beside a torch that was built otherwise
        return None
    return detector


def tell_who_races() -> None:
    print("beside pytorch-ood" if peer_detectors() else "pytorch-ood is not installed or does not load: our own times alone")
