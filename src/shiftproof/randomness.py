"""Random numbers as a function of (seed, condition, image id): any order, batch or worker draws the same."""

from __future__ import annotations

import hashlib
from typing import NoReturn, cast

import numpy as np
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import DTypeLike, NDArray

from shiftproof.errors import BadInput
from shiftproof.types import Condition


def rng_for(key: str, condition: Condition | str, seed: int = 0) -> np.random.Generator:
    """A generator of this image under this condition, and of nothing else.

    Counter-based (Philox; Salmon et al., 2011): the key is a digest, so no two streams share a start.

    >>> [int(rng_for("a.png", "fog").integers(1000)) for _ in range(2)]
    [472, 472]
    """
    if isinstance(condition, Condition):
        # not the output or the picture: the same draws serve raw and jpeg85, so the two can be compared
        text = f"{condition.name}\0{condition.severity}\0{condition.edition or ''}\0{condition.seed}"
    else:
        text = condition
    digest = hashlib.blake2b(f"{seed}\0{text}\0{key}".encode("utf-8", "surrogateescape"), digest_size=16).digest()
    return np.random.Generator(np.random.Philox(_Digest(digest)))  # type: ignore[arg-type]  # not in numpy's stubs


class _Digest(ISeedSequence):
    """The 128 bits of a digest as the key of Philox; given as `key`, numpy would ask the system for random bits too."""

    def __init__(self, digest: bytes) -> None:
        self.digest = digest

    def generate_state(self, n_words: int, dtype: DTypeLike = np.uint32) -> NDArray[np.unsignedinteger]:
        return np.frombuffer(self.digest, np.dtype(dtype).newbyteorder("<"), n_words).astype(dtype)


class _NoDraws:
    """Stands for a generator where nothing is to be drawn: to make one takes as long as a small picture."""

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):  # Python's own questions, as those of inspect and copy
            raise AttributeError(name)
        raise BadInput(f"rng.{name}: a corruption that draws random numbers should be declared without random=False")


NO_DRAWS = cast(np.random.Generator, _NoDraws())
"""For corruptions that are not random; BadInput where one draws all the same."""
