"""Networks in torch: a factory in a Python module, a TorchScript file, an exported program."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import importlib.util
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import fx, nn

from shiftproof.errors import BadInput
from shiftproof.models.loaded import LoadedClassifier, check_size, model_ref
from shiftproof.models.options import ModelOptions
from shiftproof.models.preparation import ImagePreparation
from shiftproof.models.sanity import scores_hint
from shiftproof.models.torch_files import ADVICE, digest_of_module, kind_of_file, load_program, load_script, load_weights
from shiftproof.models.torch_heads import HeadLayer, head_layer_of
from shiftproof.models.torch_looks import grad_cam, last_places
from shiftproof.models.torch_network import TorchNetwork
from shiftproof.models.torch_redrawn import redraw_torch
from shiftproof.types import Classes, Head, Inputs, Outputs, Seen

PRECISIONS = {"float32": None, "bfloat16": torch.bfloat16, "float16": torch.float16}
FILE_ENDINGS = {".pt", ".pth", ".pt2", ".ts"}


def load_torch(rest: str, options: ModelOptions) -> LoadedClassifier:
    """The classifier a factory makes (``module:factory``, ``file.py:factory``) or a file holds."""
    options.refuse("output", what="a torch model")
    if Path(rest).suffix.lower() in FILE_ENDINGS:
        options.refuse("weights", what="a file that holds its own weights")
        path = Path(rest)
        digest = _file_digest(path)
        return torch_classifier(_module_in_file(path), options, name=path.stem, digest=digest)
    module = _made_by_factory(rest)
    if options.weights is not None:
        fill(module, Path(options.weights))
    return torch_classifier(module, options, name=rest.rpartition(":")[2])


def torch_classifier(
    module: nn.Module,
    options: ModelOptions,
    *,
    name: str,
    digest: str | None = None,
    own: ImagePreparation | None = None,
    classes: Classes | None = None,
    seen: Seen | None = None,
) -> LoadedClassifier:
    """A module as a classifier; one made-up image is put through it to see where its last linear layer is."""
    digest = digest or digest_of_module(module)
    batch_size, size = _fixed_sizes(module)
    preparation, preparation_notes = options.preparation(own, size=size)
    check_size(preparation, size, name)
    network = _network(module, options)
    example = example_inputs(preparation, batch_size or 1)
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
    hint = scores_hint(outputs.scores, gives)
    choices = {
        "precision": options.precision,
        "features": options.features,
        "extra": options.extra_output,
        "version": options.version,
    }
    return LoadedClassifier(
        ref=model_ref(options.name or name, digest, preparation, gives=gives, **choices),
        preparation=preparation,
        gives=gives,
        answer=network,
        classes=found,
        seen=options.seen_or(seen),
        notes=(*preparation_notes, *class_notes, *head_notes, *([hint] if hint else [])),
        batch_size=batch_size,
        has_features=outputs.features is not None,
        read_head=lambda: head,
        redraw=partial(redraw_torch, network, layer),
        looks={"grad-cam": partial(grad_cam, network)} if places and gives == "logits" else {},
        for_size=None if size else lambda _: network,
    )


def example_inputs(preparation: ImagePreparation, images: int) -> Inputs:
    """Noise in the shape of prepared images, the same each time."""
    size = preparation.size or (224, 224)
    noise = np.random.default_rng(0).integers(0, 256, (*size, 3), dtype=np.uint8)
    return np.repeat(preparation.from_picture(noise)[None], images, axis=0)


def fill(module: nn.Module, path: Path) -> None:
    """Load a file of weights into a module; every name must meet its tensor."""
    try:
        module.load_state_dict(load_weights(path))
    except RuntimeError as problem:
        lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
        raise BadInput(f"the weights in {path} do not fit the module: {' '.join(lines[1:3])[:300]}") from problem


def _network(module: nn.Module, options: ModelOptions) -> TorchNetwork:
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


def _fixed_sizes(module: nn.Module) -> tuple[int | None, tuple[int, int] | None]:
    """Batch size and (height, width) that an exported program insists on."""
    if not isinstance(module, fx.GraphModule):
        return None, None
    value = next((node.meta.get("val") for node in module.graph.nodes if node.op == "placeholder"), None)
    if value is None or value.dim() != 4:
        return None, None
    batch, _, height, width = value.shape
    size = (height, width) if isinstance(height, int) and isinstance(width, int) else None
    return (batch if isinstance(batch, int) else None), size


def _module_in_file(path: Path) -> nn.Module:
    match kind_of_file(path):
        case "script":
            return load_script(path)
        case "program":
            return load_program(path)
        case "checkpoint":
            load_weights(path)
            raise BadInput(f"{path} holds weights without the network they belong to; {ADVICE}")


def _made_by_factory(rest: str) -> nn.Module:
    home, colon, factory = rest.rpartition(":")
    if not colon:
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
    if not path.is_file():
        raise BadInput(f"there is no file {path}")
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
