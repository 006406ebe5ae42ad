"""Loops that no library has, compiled on first use and kept on disk, so that the next process waits for none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., object])


def compiled(function: Kernel) -> Kernel:
    """The function as machine code; other threads run meanwhile, and where no folder can be written it is made anew."""
    try:
        kernel = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    except RuntimeError:  # neither the package's folder nor the user's cache can be written
        kernel = numba.njit(nogil=True, error_model="numpy")(function)
    return cast(Kernel, kernel)
