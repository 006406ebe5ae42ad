"""From one stored image to all that is made of it: the part of a run that worker processes do."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from shiftproof.image_sets.opener import decoded
from shiftproof.parallel import Arrays
from shiftproof.types import ImageSource
from shiftproof.writing.products import Product

Parts = tuple[int, ...]

WRITERS = 8
"""Threads that save: each waits for the disk alone, and a disk brings what several wait for there at once."""


class Storage(Protocol):
    """Where the parts of images go; what is there is whole."""

    def for_workers(self) -> Any:
        """The same, without what only the run itself needs."""

    def place(self, image: int) -> Any:
        """Where the parts of one image go."""

    def missing(self) -> list[Parts]:
        """The parts of each image that are not there."""

    def encoded(self, product: NDArray[np.uint8], part: int) -> bytes:
        """A part as it is stored."""

    def save(self, data: bytes, part: int, place: Any) -> None: ...

    def finish(self, unreadable: Sequence[int]) -> None:
        """What can only be done when all parts are there."""


class Todo(NamedTuple):
    """The missing parts of one image."""

    image: int
    key: str
    source: ImageSource
    place: Any
    parts: Parts


class Job(NamedTuple):
    """Some of the work."""

    product: Product
    storage: Storage
    todo: list[Todo]


def write(job: Job) -> tuple[Arrays, dict[int, str]]:
    """Saves what is missing; no arrays, and the reason for each image that cannot be read."""
    reasons: dict[int, str] = {}
    saved: list[Future[None]] = []
    with ThreadPoolExecutor(WRITERS) as writers:
        for todo in job.todo:
            image = decoded(todo.source)
            if isinstance(image, str):
                reasons[todo.image] = image
                continue
            base = job.product.base(image)
            for part in todo.parts:
                data = job.storage.encoded(job.product.make(base, part, key=todo.key), part)
                saved.append(writers.submit(job.storage.save, data, part, todo.place))
    for one in saved:
        one.result()
    return [], reasons
