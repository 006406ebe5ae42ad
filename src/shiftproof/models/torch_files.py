"""Networks and weights out of torch's files, without unpickling what a stranger wrote.

TorchScript files and exported programs are programs all the same: load them from people you would take code from.
"""

from __future__ import annotations

import hashlib
import json
import pickle
import re
import warnings
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from shiftproof.errors import BadInput

FileKind = Literal["script", "program", "checkpoint"]

ADVICE = "save its state_dict and load it with weights=FILE into a torch:MODULE:FACTORY, or export it with torch.export"

TENSOR_PARTS = (".pt", "serialized_state_dict.json", "serialized_constants.json")
"""How the parts of an exported program end that torch reads as checkpoints, and would unpickle."""


def kind_of_file(path: Path) -> FileKind:
    """What a torch file holds, by what lies in its archive."""
    if not path.is_file():
        raise BadInput(f"there is no file {path}")
    if not zipfile.is_zipfile(path):
        return "checkpoint"
    with zipfile.ZipFile(path) as archive:
        names = {name.partition("/")[2] or name for name in archive.namelist()}
    if "constants.pkl" in names:
        return "script"
    is_program = any(name.startswith("models/") or name == "serialized_exported_program.json" for name in names)
    return "program" if is_program else "checkpoint"


def load_script(path: Path) -> nn.Module:
    """The module of a TorchScript file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        module: nn.Module = torch.jit.load(str(path), map_location="cpu")  # type: ignore[no-untyped-call]  # torch.jit has no types
    return module


def load_program(path: Path) -> torch.fx.GraphModule:
    """The module of an exported program (.pt2), once its archive is known to hold no pickled objects."""
    _refuse_pickled_parts(path)
    try:
        module = torch.export.load(path).module()
    except (RuntimeError, AssertionError, ValueError, KeyError) as problem:
        raise BadInput(f"{path} cannot be loaded as an exported program: {problem}") from problem
    if not isinstance(module, torch.fx.GraphModule):
        raise BadInput(f"{path} holds no graph")
    return module


def load_weights(path: Path) -> dict[str, torch.Tensor]:
    """The tensors of a .safetensors file or a checkpoint, by name; common wrappings are taken off."""
    if not path.is_file():
        raise BadInput(f"there is no file {path}")
    if path.suffix == ".safetensors":
        from safetensors.torch import load_file

        return load_file(path)
    state = _load_tensors(path, str(path))
    for key in ("state_dict", "model_state_dict", "model"):
        if isinstance(state, dict) and isinstance(state.get(key), dict):
            state = state[key]
    if not isinstance(state, dict) or not all(isinstance(value, torch.Tensor) for value in state.values()):
        raise BadInput(f"{path} should hold a state_dict, names with their tensors")
    return {name.removeprefix("module."): value for name, value in state.items()}


def digest_of_module(module: nn.Module) -> str:
    """A digest of every weight and of the layers' own description."""
    total = hashlib.sha256(re.sub(r"0x[0-9a-f]+", "", str(module)).encode())
    for name, tensor in sorted(module.state_dict().items()):
        total.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        total.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return total.hexdigest()


def _load_tensors(source: Any, where: str) -> Any:
    try:
        return torch.load(source, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError) as problem:
        refused = "Weights only load failed" in str(problem)
        what = "holds pickled Python objects, which could run any code when read" if refused else "is not a whole checkpoint"
        raise BadInput(f"{where} {what}; {ADVICE}") from problem


def _refuse_pickled_parts(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice or any(name.endswith(".so") for name in names):
            raise BadInput(f"{path} holds compiled code or a part twice; {ADVICE}")
        for name in names:
            if name.endswith("_config.json") and _names_pickles(json.loads(archive.read(name))):
                raise BadInput(f"{path} holds pickled Python objects in {name}; {ADVICE}")
            if name.endswith(TENSOR_PARTS):
                with archive.open(name) as part:
                    _load_tensors(part, f"{path} in {name}")


def _names_pickles(config: Any) -> bool:
    parts = config.get("config", {}).values() if isinstance(config, dict) else ()
    return any(part.get("use_pickle") or not str(part.get("path_name")).startswith(("weight_", "tensor_")) for part in parts)
