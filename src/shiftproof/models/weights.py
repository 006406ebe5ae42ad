"""Tensors out of torch's older checkpoint files, without torch and without running anything the file says.

Such a file is a row of pickles (magic number, protocol, system, the objects, the names of the storages) followed by the
bytes of each storage. The reader here knows tensors, dictionaries and plain values; a file that asks for anything else is
refused.
"""

from __future__ import annotations

import collections
import pickle
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput

MAGIC = 0x1950A86A20F9469CFC6C
DTYPES = {
    "DoubleStorage": "<f8",
    "FloatStorage": "<f4",
    "HalfStorage": "<f2",
    "LongStorage": "<i8",
    "IntStorage": "<i4",
    "ShortStorage": "<i2",
    "CharStorage": "i1",
    "ByteStorage": "u1",
    "BoolStorage": "?",
}


@dataclass
class Storage:
    """A flat row of numbers that tensors look into; its bytes come after all the pickles."""

    dtype: str
    length: int
    values: NDArray[Any] | None = None


@dataclass(frozen=True)
class StoredTensor:
    """A view of a storage, as the file describes it."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def to_array(self) -> NDArray[Any]:
        """The numbers, in memory order of their own."""
        values = self.storage.values
        last = self.offset + sum((size - 1) * step for size, step in zip(self.shape, self.strides, strict=True))
        if values is None or min((self.offset, *self.strides), default=0) < 0 or last >= max(len(values), 1):
            raise BadInput("a tensor reaches outside its storage")
        strides = tuple(step * values.itemsize for step in self.strides)
        return np.lib.stride_tricks.as_strided(values[self.offset :], self.shape, strides).copy("C")


def load_legacy_checkpoint(path: Path) -> dict[str, NDArray[Any]]:
    """The tensors of a checkpoint by name."""
    with path.open("rb") as file:
        try:
            return _read(file)
        except BadInput as problem:
            raise BadInput(f"{path}: {problem}") from problem
        except (
            pickle.UnpicklingError,
            EOFError,
            struct.error,
            ValueError,
            KeyError,
            TypeError,
            IndexError,
            AttributeError,
        ) as problem:
            raise BadInput(f"{path} is not a whole checkpoint in torch's older format: {problem}") from problem


def _read(file: IO[bytes]) -> dict[str, NDArray[Any]]:
    storages: dict[str, Storage] = {}
    if _TensorsOnly(file, storages).load() != MAGIC:
        raise BadInput("this is not a checkpoint in torch's older format")
    _TensorsOnly(file, storages).load()  # the protocol
    system = _TensorsOnly(file, storages).load()
    if not system["little_endian"]:
        raise BadInput("the checkpoint was written on a big-endian machine")
    objects = _TensorsOnly(file, storages).load()
    for key in _TensorsOnly(file, storages).load():
        _fill(file, storages[key])
    if not isinstance(objects, dict):
        raise BadInput("the checkpoint should hold a dictionary of tensors")
    return {name: value.to_array() for name, value in objects.items() if isinstance(value, StoredTensor)}


def _fill(file: IO[bytes], storage: Storage) -> None:
    (length,) = struct.unpack("<q", file.read(8))
    data = file.read(length * np.dtype(storage.dtype).itemsize) if length == storage.length else b""
    if len(data) != storage.length * np.dtype(storage.dtype).itemsize:
        raise BadInput("the checkpoint is cut short")
    storage.values = np.frombuffer(data, storage.dtype)


class _TensorsOnly(pickle.Unpickler):
    def __init__(self, file: IO[bytes], storages: dict[str, Storage]) -> None:
        super().__init__(file)
        self.storages = storages

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _rebuild_tensor
        if module == "torch" and name in DTYPES:
            return DTYPES[name]
        raise _refusal(f"{module}.{name}")

    def persistent_load(self, saved: Any) -> Storage:
        kind, dtype, key, _location, length, view = saved
        if kind != "storage" or view is not None:
            raise _refusal(f"a stored {kind!r}")
        return self.storages.setdefault(key, Storage(dtype, length))


def _rebuild_tensor(
    storage: Storage, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], *_: Any
) -> StoredTensor:
    return StoredTensor(storage, offset, shape, strides)


def _refusal(what: str) -> BadInput:
    return BadInput(f"the checkpoint asks for {what}; only tensors are read, because anything else could run code")
