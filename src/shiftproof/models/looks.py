"""Where a network looks: the values that every way of finding it out takes and gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.types import Inputs

HeatMaps: TypeAlias = NDArray[np.floating]
"""How much each part of an image speaks for a class, (images, classes, rows, columns), nothing below 0.

Rows and columns share out the model's input evenly; the scale differs from one way of looking to another.
"""

AskedClasses: TypeAlias = NDArray[np.integer]
"""Classes to look for in each image, (images, classes): columns of the model's scores."""

Look: TypeAlias = Callable[[Inputs, AskedClasses], HeatMaps]


@dataclass
class LateLook:
    """A way of looking that is made when it is first used."""

    make: Callable[[], Look]

    def __call__(self, inputs: Inputs, classes: AskedClasses) -> HeatMaps:
        return self._made(inputs, classes)

    @cached_property
    def _made(self) -> Look:
        return self.make()
