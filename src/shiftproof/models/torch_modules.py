"""Torch modules by what names them, a factory or a file, and made ready to be asked."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

import torch
from torch import fx, nn

from shiftproof.errors import BadInput
from shiftproof.models.options import ModelOptions
from shiftproof.models.torch_files import SAFETENSORS, digest_of_module, load_file, load_weights
from shiftproof.models.torch_network import TorchNetwork

PRECISIONS = {"float32": None, "bfloat16": torch.bfloat16, "float16": torch.float16}
FILE_ENDINGS = {".pt", ".pth", ".pt2", ".ts", ".bin", ".ckpt", SAFETENSORS}


def load_module(rest: str, options: ModelOptions) -> tuple[nn.Module, str, str]:
    """The module that ``module:factory``, ``file.py:factory`` or a file names, what to call it, and its digest."""
    if Path(rest).suffix.lower() in FILE_ENDINGS:
        options.refuse("weights", what="a file that holds its own weights")
        path = Path(rest)
        module = load_file(path, trust=options.trust)
        return module, path.stem, _file_digest(path)
    module = _made_by_factory(rest)
    if options.weights is not None:
        fill(module, Path(options.weights))
    return module, rest.rpartition(":")[2], digest_of_module(module)


def fill(module: nn.Module, path: Path) -> None:
    """Load a file of weights into a module; every name must meet its tensor."""
    try:
        module.load_state_dict(load_weights(path))
    except RuntimeError as problem:
        lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
        raise BadInput(f"the weights in {path} do not fit the module: {' '.join(lines[1:3])[:300]}") from problem


def network_of(module: nn.Module, options: ModelOptions) -> TorchNetwork:
    """The module on its device, in the mode in which it is asked."""
    if options.precision not in PRECISIONS:
        raise BadInput(f"precision should be one of {', '.join(PRECISIONS)}, got {options.precision!r}")
    try:
        device = torch.device(options.device or "cpu")
        module = module.to(device)
    except (RuntimeError, AssertionError) as problem:
        raise BadInput(f"torch cannot use device {options.device!r}: {str(problem).partition(chr(10))[0]}") from problem
    if not isinstance(module, fx.GraphModule):  # an exported program is in the mode it was exported in, and refuses
        module = module.eval()
    for parameter in module.parameters():
        parameter.requires_grad = False  # it is asked, never trained
    if options.channels_last:
        module = module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # missing from torch's types
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    return TorchNetwork(module, device, PRECISIONS[options.precision], options.channels_last)


def fixed_sizes(module: nn.Module) -> tuple[int | None, tuple[int, int] | None]:
    """Batch size and (height, width) that an exported program insists on."""
    if not isinstance(module, fx.GraphModule):
        return None, None
    value = next((node.meta.get("val") for node in module.graph.nodes if node.op == "placeholder"), None)
    if value is None or value.dim() != 4:
        return None, None
    batch, _, height, width = value.shape
    size = (height, width) if isinstance(height, int) and isinstance(width, int) else None
    return (batch if isinstance(batch, int) else None), size


def _made_by_factory(rest: str) -> nn.Module:
    home, colon, factory = rest.rpartition(":")
    if not colon or not (home.endswith(".py") or all(part.isidentifier() for part in home.split("."))):
        raise BadInput(f"torch:{rest} should be torch:MODULE:FACTORY, torch:FILE.py:FACTORY or a .pt, .pt2 or .ts file")
    made: Any = getattr(_imported(home), factory, None)
    if made is None:
        raise BadInput(f"{home} has no {factory}")
    module = made if isinstance(made, nn.Module) else made()
    if not isinstance(module, nn.Module):
        raise BadInput(f"{rest} should give a torch module, got {type(module).__name__}")
    return module


def _imported(home: str) -> Any:
    if not home.endswith(".py"):
        sys.path.insert(0, str(Path.cwd()))  # the command does not look where it was started, python -m does
        try:
            return importlib.import_module(home)
        except ModuleNotFoundError as missing:
            if missing.name != home.partition(".")[0]:
                raise
            raise BadInput(f"there is no Python module {home}, neither installed nor in this folder") from missing
        finally:
            sys.path.pop(0)
    spec = importlib.util.spec_from_file_location(Path(home).stem, home)
    if spec is None or spec.loader is None or not Path(home).is_file():
        raise BadInput(f"there is no file {home}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
