"""Networks in torch: a factory in a Python module, a TorchScript file, an exported program."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import re
import sys
import warnings
import zipfile
from collections.abc import Iterable
from functools import partial
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import fx, nn

from shiftproof.errors import BadInput, listed
from shiftproof.files import readable_file
from shiftproof.models.classifiers.torch_device import transfers_of
from shiftproof.models.classifiers.torch_network import (
    HeadLayer,
    TorchNetwork,
    grad_cam,
    head_layer_of,
    last_places,
    reinitialise_torch,
)
from shiftproof.models.loaded import LoadedClassifier, check_size, model_ref
from shiftproof.models.options import ModelOptions
from shiftproof.models.preprocessing import ImagePreprocessing
from shiftproof.models.sanity import check_probabilities, scores_hint
from shiftproof.models.weights import SAFER, load_checkpoint
from shiftproof.registry import missing_extra
from shiftproof.types import Classes, Head, Inputs, Outputs, Seen

FileKind = Literal["TorchScript file", "exported program", "checkpoint"]

SAFETENSORS = ".safetensors"


def load_file(path: Path, *, trust: bool) -> nn.Module:
    """The network in a file; BadInput where it holds weights alone, or a program that nobody said to trust."""
    kind = kind_of_file(path)
    if kind == "checkpoint":
        names = list(load_weights(path)[0])
        raise BadInput(
            f"{path} holds weights ({len(names)} tensors, {names[0]} to {names[-1]}) without the network they belong to; "
            f"name that too: torch:FILE.py:FACTORY or torch:MODULE:FACTORY, where FACTORY is a function that returns it, "
            f"or timm:NAME or torchvision:NAME, with --weights {path}"
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


def load_weights(path: Path) -> tuple[dict[str, torch.Tensor], tuple[str, ...]]:
    """The tensors of a .safetensors file or a checkpoint, by name, and notes on the file; common wrappings are taken off."""
    readable_file(path)
    if path.suffix.lower() == SAFETENSORS:
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        try:
            return load_file(path), ()
        except (SafetensorError, OSError) as problem:
            raise BadInput(f"{path} is not a whole safetensors file: {str(problem)[:200]}") from problem
    arrays, notes = load_checkpoint(path)
    return {name: torch.from_numpy(array) for name, array in arrays.items()}, notes


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


PRECISIONS = {"float32": None, "tf32": None, "bfloat16": torch.bfloat16, "float16": torch.float16}
"""What each autocasts to; tf32 rounds the factors of float32 products on CUDA."""

FILE_ENDINGS = {".pt", ".pth", ".pt2", ".ts", ".bin", ".ckpt", SAFETENSORS}


class LoadedModule(NamedTuple):
    """A module, what to call it, its digest, and what there is to say about it."""

    module: nn.Module
    name: str
    digest: str
    notes: tuple[str, ...] = ()


def load_module(rest: str, options: ModelOptions) -> LoadedModule:
    """The module that ``module:factory``, ``file.py:factory`` or a file names."""
    if Path(rest).suffix.lower() in FILE_ENDINGS:
        options.refuse("weights", what="a file that holds its own weights")
        path = Path(rest)
        return LoadedModule(load_file(path, trust=options.trust), path.stem, _file_digest(path))
    module = _made_by_factory(rest)
    notes = () if options.weights is None else fill(module, Path(options.weights))
    return LoadedModule(module, rest.rpartition(":")[2], digest_of_module(module), notes)


def fill(module: nn.Module, path: Path) -> tuple[str, ...]:
    """Load a file of weights into a module, and say what of the file was used; every tensor of the module must be there."""
    weights, notes = load_weights(path)
    prefix = _prefix(weights, module.state_dict(), path)
    own = {name.removeprefix(prefix): tensor for name, tensor in weights.items() if name.startswith(prefix)}
    try:
        module.load_state_dict(own)
    except RuntimeError as problem:
        lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
        raise BadInput(f"the weights in {path} do not fit the module: {' '.join(lines[1:3])[:300]}") from problem
    left = [name for name in weights if not name.startswith(prefix)]
    aside = f"; {len(left)} others are not used: {listed(left, most=3)}" if left else ""
    return (*notes, f"weights are those under {prefix!r} in {path.name}{aside}") if prefix else notes


def _prefix(weights: Iterable[str], wanted: Iterable[str], path: Path) -> str:
    """What stands before each of the module's names in the file, as a wrapper of the module left it there (``model.``).

    Nothing where the names are its own, or where no prefix makes them so; BadInput where several do.
    """
    there, wanted = set(weights), list(wanted)
    if not wanted or there.issuperset(wanted):
        return ""
    ends = (name.removesuffix(wanted[0]) for name in sorted(there) if name.endswith(f".{wanted[0]}"))
    found = [prefix for prefix in ends if there.issuperset(prefix + name for name in wanted)]
    if len(found) > 1:
        raise BadInput(f"{path} holds the network {len(found)} times, under {listed(found)}; save the one you mean alone")
    return found[0] if found else ""


def network_of(module: nn.Module, options: ModelOptions) -> TorchNetwork:
    """The module on its device, in evaluation mode."""
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
        parameter.requires_grad = False  # it is never trained here
    channels_last = options.channels_last
    if channels_last is None:
        channels_last = device.type == "cuda" and options.precision != "float32" and _is_convolutional(module)
    if channels_last:
        module = module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # missing from torch's types
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    return TorchNetwork(
        module,
        device,
        PRECISIONS[options.precision],
        tensor_float=options.precision == "tf32",
        channels_last=channels_last,
        transfers=transfers_of(device),
    )


def _is_convolutional(module: nn.Module) -> bool:
    """Whether most weights are those of convolutions that see neighbours; the one that cuts patches is no such network."""
    if isinstance(module, (fx.GraphModule, torch.jit.ScriptModule)):  # strides may be fixed in them
        return False
    kernels = sum(layer.weight.numel() for layer in module.modules() if isinstance(layer, nn.Conv2d))
    return 2 * kernels > sum(parameter.numel() for parameter in module.parameters() if parameter.dim() > 1)


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
            if missing.name == home.partition(".")[0]:
                raise BadInput(f"there is no Python module {home}, neither installed nor in this folder") from missing
            raise _lacking(home, missing) from missing
        finally:
            sys.path.pop(0)
    if not Path(home).is_file():
        raise BadInput(f"there is no file {home}")
    # a name that hides no other module; dataclasses look for their module among the imported ones
    loader = _SourceLoader(f"shiftproof_model_{Path(home).stem}", home)
    module = ModuleType(loader.name)
    module.__file__ = home
    sys.modules[loader.name] = module
    try:
        loader.exec_module(module)
    except ModuleNotFoundError as missing:
        raise _lacking(home, missing) from missing
    return module


class _SourceLoader(SourceFileLoader):
    """A Python file as it is now: cached bytecode stays in use after an edit of the same size within one second."""

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002 - there is one module to a file
        return self.source_to_code(self.get_data(self.path), self.path)


def _lacking(home: str, missing: ModuleNotFoundError) -> Exception:
    """What a Python file imports that is not installed; by its extra where one of ours brings it."""
    known = missing_extra(home, missing)
    return BadInput(f"{home} imports {missing.name}, which is not installed here") if known is missing else known


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def load_torch(rest: str, options: ModelOptions) -> LoadedClassifier:
    """The classifier a factory makes (``module:factory``, ``file.py:factory``) or a file holds."""
    options.refuse("output", what="a torch model")
    module, name, digest, notes = load_module(rest, options)
    return torch_classifier(module, options, name=name, digest=digest, notes=notes)


def torch_classifier(
    module: nn.Module,
    options: ModelOptions,
    *,
    name: str,
    digest: str | None = None,
    own: ImagePreprocessing | None = None,
    classes: Classes | None = None,
    seen: Seen | None = None,
    notes: tuple[str, ...] = (),
) -> LoadedClassifier:
    """A module as a classifier; one made-up image is put through it to see where its last linear layer is."""
    digest = digest or digest_of_module(module)
    batch_size, size = fixed_sizes(module)
    preprocessing, preprocessing_notes = options.preprocessing(own, size=size)
    check_size(preprocessing, size, name)
    network = network_of(module, options)
    example = example_inputs(preprocessing, batch_size or 1)
    layer = head_layer_of(network.module, lambda: network(example, False))
    watched, layer, head_notes = _watched(network.module, layer, options)
    network = dataclasses.replace(network, features=watched, extra=options.extra_output)
    with last_places(network.module, example.shape) as places:
        outputs = network(example, watched is not None)
    head = None if layer is None else layer.head_in(network.module)
    if head is not None and (why := _unlike(outputs, head, options.precision)):
        layer, head, head_notes = None, None, (f"no head: {why}",)
    found, class_notes = options.classes_of(outputs.scores.shape[1], classes)
    gives = options.gives or "logits"
    if gives == "probabilities":
        check_probabilities(outputs.scores, options.name or name)
    hint = scores_hint(outputs.scores, gives)
    choices = {
        "precision": options.precision,
        "features": options.features,
        "extra": options.extra_output,
        "version": options.version,
    }
    return LoadedClassifier(
        ref=model_ref(options.name or name, digest, preprocessing, gives=gives, **choices),
        preprocessing=preprocessing,
        gives=gives,
        forward=network,
        classes=found,
        seen=options.seen_or(seen),
        notes=(*notes, *preprocessing_notes, *class_notes, *head_notes, *([hint] if hint else [])),
        fixed_batch_size=batch_size,
        default_batch_size=network.default_batch_size,
        concurrent_batches=network.concurrent_batches,
        has_features=outputs.features is not None,
        read_head=lambda: head,
        reinitialise=partial(reinitialise_torch, network, layer),
        saliency={"grad-cam": partial(grad_cam, network)} if places and gives == "logits" else {},
        for_size=None if size else lambda _: network,
    )


def example_inputs(preprocessing: ImagePreprocessing, images: int) -> Inputs:
    """Noise in the shape of model inputs, the same each time."""
    size = preprocessing.size or (224, 224)
    noise = np.random.default_rng(0).integers(0, 256, (*size, 3), dtype=np.uint8)
    return np.repeat(preprocessing.from_picture(noise)[None], images, axis=0)


def _watched(
    module: nn.Module, found: HeadLayer | None, options: ModelOptions
) -> tuple[str | None, HeadLayer | None, tuple[str, ...]]:
    """The layer to take features from, the one that its head is in, and what there is to say about them."""
    if options.features is not None:
        if options.features not in dict(module.named_modules()):
            raise BadInput(f"the module has no layer {options.features!r} to take features from")
        if found is None or options.features != found.layer:
            note = f"no head: features are taken from {options.features}, as asked"
            return options.features, None, (note,)
    if found is None:
        hidden = isinstance(module, torch.jit.ScriptModule)
        why = "TorchScript hides its layers" if hidden else "no linear layer ran"
        return None, None, (f"no head and no features: {why}",)
    return found.layer, found, ()


def _unlike(outputs: Outputs, head: Head, precision: str) -> str | None:
    """Why the layer that was found cannot be the head, or None where its product is the scores or their softmax."""
    if outputs.features is None or outputs.features.shape[1] != head.weights.shape[1]:
        return "the last linear layer does not see one row an image"
    logits = outputs.features @ head.weights.T + head.bias
    if logits.shape != outputs.scores.shape:
        return "the last linear layer does not give the class scores"
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    slack = 1e-3 if precision == "float32" else 0.03
    for candidate in (logits, powers / powers.sum(axis=1, keepdims=True)):
        if np.abs(candidate - outputs.scores).max() <= slack * np.abs(outputs.scores).max():
            return None
    return "the scores are more than the last linear layer's product"
