"""Networks and weights out of torch's files.

Weights are read without torch's loaders, and nothing in their file runs. TorchScript files and exported programs are
programs: torch runs what they say, so they are opened only where the user trusts them.
"""

from __future__ import annotations

import hashlib
import re
import warnings
import zipfile
from pathlib import Path
from typing import Literal

import torch
from torch import nn

from shiftproof.errors import BadInput
from shiftproof.files import readable_file, repeated
from shiftproof.models.weights import SAFER, load_checkpoint

FileKind = Literal["TorchScript file", "exported program", "checkpoint"]

SAFETENSORS = ".safetensors"


def load_file(path: Path, *, trust: bool) -> nn.Module:
    """The network in a file; BadInput where it holds weights alone, or a program that nobody said to trust."""
    kind = kind_of_file(path)
    if kind == "checkpoint":
        load_weights(path)
        raise BadInput(
            f"{path} holds weights without the network they belong to; name that, as torch:MODULE:FACTORY with --weights"
        )
    if not trust:
        raise BadInput(
            f"{path} is a program ({kind}): opening it can run any code on this machine, as you. If you trust whoever made "
            f"it, say --trust (in Python trust=True); {SAFER}"
        )
    try:
        return _load_script(path) if kind == "TorchScript file" else _load_program(path)
    # torch has no error of its own for a damaged file
    except (RuntimeError, AssertionError, ValueError, KeyError, TypeError, AttributeError, OSError) as problem:
        raise BadInput(f"{path} cannot be loaded as {kind}: {str(problem).partition(chr(10))[0][:300]}") from problem


def kind_of_file(path: Path) -> FileKind:
    """What a torch file seems to hold, by the names in its archive; nothing that could run is chosen by it alone."""
    readable_file(path)
    if path.suffix.lower() == SAFETENSORS or not zipfile.is_zipfile(path):
        return "checkpoint"
    try:
        with zipfile.ZipFile(path) as archive:
            names = {(name.partition("/")[2] or name).lower() for name in archive.namelist()}
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as problem:
        raise BadInput(f"{path} is no whole zip archive, as torch's files are: {problem}") from problem
    if "constants.pkl" in names:
        return "TorchScript file"
    is_program = any(name.startswith("models/") or name == "serialized_exported_program.json" for name in names)
    return "exported program" if is_program else "checkpoint"


def load_weights(path: Path) -> dict[str, torch.Tensor]:
    """The tensors of a .safetensors file or a checkpoint, by name; common wrappings are taken off."""
    readable_file(path)
    if path.suffix.lower() == SAFETENSORS:
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        try:
            return load_file(path)
        except (SafetensorError, OSError) as problem:
            raise BadInput(f"{path} is not a whole safetensors file: {str(problem)[:200]}") from problem
    arrays = load_checkpoint(path)
    if twice := repeated(name.removeprefix("module.") for name in arrays):
        raise BadInput(f"{path} holds {twice} twice, once as module.{twice}; remove one of them")
    return {name.removeprefix("module."): torch.from_numpy(array) for name, array in arrays.items()}


def digest_of_module(module: nn.Module) -> str:
    """A digest of every weight and of the layers' own description."""
    total = hashlib.sha256(re.sub(r"0x[0-9a-f]+", "", str(module)).encode())
    for name, tensor in sorted(module.state_dict().items()):
        total.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        total.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return total.hexdigest()


def _load_script(path: Path) -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        module: nn.Module = torch.jit.load(str(path), map_location="cpu")  # type: ignore[no-untyped-call]  # torch.jit has no types
    return module


def _load_program(path: Path) -> torch.fx.GraphModule:
    module = torch.export.load(path).module()
    if not isinstance(module, torch.fx.GraphModule):
        raise BadInput(f"{path} holds no graph")
    return module
