"""A torch module with its scores, features, head, gradients, Grad-CAM, random networks, and as ONNX."""

from __future__ import annotations

import copy
import dataclasses
import io
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from threading import Lock
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, fx, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.conv import _ConvNd

from shiftproof.errors import BadInput, listed
from shiftproof.models.classifiers.torch_device import AT_ONCE, Transfers, tensor_float
from shiftproof.models.companions import Fans, RandomWeights, Recipe, Reinitialised, fans_of_convolution
from shiftproof.models.saliency import AskedClasses, Saliency
from shiftproof.types import Head, Inputs, Outputs


@dataclass(frozen=True)
class TorchNetwork:
    """A module on its device; its layers are watched only while features or an extra output are wanted."""

    module: nn.Module
    device: torch.device
    autocast: torch.dtype | None = None
    tensor_float: bool = False  # whether products on CUDA may be rounded to TensorFloat-32
    channels_last: bool = False
    features: str | None = None  # the layer to take them from: what a linear one sees, what any other gives
    extra: str | None = None  # a key or place of the module's output, or a layer
    transfers: Transfers | None = None  # how batches reach a GPU
    # what watches a layer sees the batches of every thread, so one at a time is launched; a GPU computes it later
    launching: Lock = field(default_factory=Lock, repr=False, compare=False)

    @property
    def concurrent_batches(self) -> int:
        """Batches that may be in work at a time."""
        return 1 if self.transfers is None else AT_ONCE

    @property
    def default_batch_size(self) -> int:
        return 32 if self.transfers is None else 64

    def __call__(self, inputs: Inputs, features: bool) -> Outputs:
        arrived = self._send(inputs)
        with self.launching, self._watching(features) as seen:
            output = self._computed(arrived)
            shown = {what: first_tensor(value) for what, value in seen.items()} | {"scores": first_tensor(output)}
            if self.extra is not None and (part := part_of(output, self.extra)) is not None:
                shown["extra"] = part
            if self.extra is not None and "extra" not in shown:
                raise BadInput(f"neither the module's output has a part {self.extra!r}, nor did a layer of that name run")
            fetched = self._fetch([value.detach().reshape(len(inputs), -1).float() for value in shown.values()])
        rows = dict(zip(shown, (tensor.numpy() for tensor in fetched()), strict=True))
        return Outputs(rows["scores"], rows.get("features"), rows.get("extra"))

    def given(self, inputs: Inputs) -> Any:
        """Whatever the module gives to a batch; of lists and dictionaries all tensors are fetched together."""
        arrived = self._send(inputs)
        with self.launching:
            output = self._computed(arrived)
            fetched = self._fetch(list(_tensors_in(output)))
        return output if self.transfers is None else _with_tensors(output, iter(fetched()))

    def to_device(self, inputs: Inputs) -> Tensor:
        """The inputs where the module is, in the memory layout it likes."""
        return self._send(inputs)()

    def _send(self, inputs: Inputs) -> Callable[[], Tensor]:
        """Begins to copy a batch to the device; what it gives is the batch there."""
        batch, transfers = torch.from_numpy(np.array(inputs, copy=None)), self.transfers
        uploaded = None if transfers is None else transfers.upload(batch)

        def arrived() -> Tensor:
            there = batch.to(self.device) if transfers is None or uploaded is None else transfers.arrived(uploaded)
            return there.contiguous(memory_format=torch.channels_last) if self.channels_last else there

        return arrived

    def _computed(self, arrived: Callable[[], Tensor]) -> Any:
        mixed = torch.autocast(self.device.type, dtype=self.autocast, enabled=self.autocast is not None)
        with torch.inference_mode(), mixed, tensor_float(self.device, self.tensor_float):
            return self.module(arrived())

    def _fetch(self, tensors: Sequence[Tensor]) -> Callable[[], Sequence[Tensor]]:
        """Begins to copy results to the host; what it gives are the copies."""
        if self.transfers is None:
            return lambda: [tensor.cpu() for tensor in tensors]
        return self.transfers.begin_download(tensors).tensors

    def gradient(self, inputs: Inputs, temperature: float) -> NDArray[np.float32]:
        """The gradient that makes the predicted class of each input less likely, in full precision.

        It is the gradient of the cross-entropy between the logits over the temperature and their own best class.
        """
        if inputs.dtype.kind != "f":
            raise BadInput(f"the module takes {inputs.dtype}, and integers have no gradient")
        points = self.to_device(inputs).requires_grad_()
        try:
            with self.launching, torch.enable_grad(), tensor_float(self.device, allowed=False):
                logits = first_tensor(self.module(points)).reshape(len(inputs), -1).float()
                # the sum, not the mean: an image's gradient then knows nothing of its batch
                loss = nn.functional.cross_entropy(logits / temperature, logits.argmax(dim=1), reduction="sum")
                (found,) = torch.autograd.grad(loss, points)
        except RuntimeError as problem:  # torch has no narrower error
            raise BadInput(f"the module gives no gradient by its input: {str(problem).partition(chr(10))[0]}") from problem
        return np.asarray(found.float().cpu().numpy(), np.float32)

    @contextmanager
    def _watching(self, features: bool) -> Iterator[dict[str, Any]]:
        """What the watched layers show while the module runs, by what it is for."""
        seen: dict[str, Any] = {}
        hooks = []
        if features and self.features is not None:
            layer = self.module.get_submodule(self.features)
            if isinstance(layer, nn.Linear):
                hooks.append(layer.register_forward_pre_hook(lambda _, given: seen.update(features=given[0])))
            else:
                hooks.append(layer.register_forward_hook(lambda _, __, given: seen.update(features=given)))
        if self.extra in dict(self.module.named_modules()):
            layer = self.module.get_submodule(str(self.extra))
            hooks.append(layer.register_forward_hook(lambda _, __, given: seen.update(extra=given)))
        try:
            yield seen
        finally:
            for hook in hooks:
                hook.remove()


def first_tensor(output: Any) -> Tensor:
    """The class scores in what a module gave: a tensor, the ``logits`` of an output with names, or the first of several."""
    if isinstance(output, Tensor):
        return output
    logits = part_of(output, "logits")
    if logits is not None:
        return logits
    if isinstance(output, (tuple, list)) and output:
        return first_tensor(output[0])
    raise BadInput(f"the module should give a tensor of class scores, got {type(output).__name__}")


def part_of(output: Any, name: str) -> Tensor | None:
    """The part of an output under a key, a name or a place counted from 0; None where it has none."""
    if isinstance(output, dict):
        part = output.get(name)
    elif isinstance(output, (tuple, list)) and name.isdecimal():
        part = output[int(name)] if int(name) < len(output) else None
    else:
        part = None if isinstance(output, Tensor) else getattr(output, name, None)
    return part if isinstance(part, Tensor) else None


def _tensors_in(output: Any) -> Iterator[Tensor]:
    """Every tensor of nested lists and dictionaries, in order."""
    if isinstance(output, Tensor):
        yield output
    elif isinstance(output, (list, tuple, Mapping)):
        for part in output.values() if isinstance(output, Mapping) else output:
            yield from _tensors_in(part)


def _with_tensors(output: Any, tensors: Iterator[Tensor]) -> Any:
    """The same lists and dictionaries with these in place of their tensors."""
    if isinstance(output, Tensor):
        return next(tensors)
    if isinstance(output, Mapping):
        return {name: _with_tensors(part, tensors) for name, part in output.items()}
    return [_with_tensors(part, tensors) for part in output] if isinstance(output, (list, tuple)) else output


@dataclass(frozen=True)
class HeadLayer:
    """A layer to watch for features, and the weights that follow them, all by their names in the module."""

    layer: str
    weights: str
    bias: str | None

    def head_in(self, module: nn.Module) -> Head:
        """The head of the module in which it was found, or of one like it."""
        weights = _array(tensor_in(module, self.weights))
        bias = np.zeros(len(weights), np.float32) if self.bias is None else _array(tensor_in(module, self.bias))
        return Head(weights, bias)


def head_layer_of(module: nn.Module, run_example: Callable[[], Outputs]) -> HeadLayer | None:
    """The linear layer that ran last on an example, of those as wide as the scores: a rotation head may run after it."""
    if isinstance(module, fx.GraphModule):
        return _head_in_graph(module)
    ran: list[nn.Linear] = []
    layers = {layer: name for name, layer in module.named_modules() if isinstance(layer, nn.Linear)}
    hooks = [layer.register_forward_hook(lambda layer, _, __: ran.append(layer)) for layer in layers]
    classes = run_example().scores.shape[1]
    for hook in hooks:
        hook.remove()
    if not ran:
        return None
    last = next((layer for layer in reversed(ran) if layer.out_features == classes), ran[-1])
    name = layers[last]
    return HeadLayer(name, f"{name}.weight", None if last.bias is None else f"{name}.bias")


def _head_in_graph(module: fx.GraphModule) -> HeadLayer | None:
    """The last linear step of an exported graph; a layer that does nothing is put before it, to be watched."""
    linear = torch.ops.aten.linear.default
    steps = [node for node in module.graph.nodes if node.op == "call_function" and node.target == linear]
    if not steps:
        return None
    features, *stored = steps[-1].args
    names = [str(node.target) if isinstance(node, fx.Node) and node.op == "get_attr" else None for node in stored]
    if not isinstance(features, fx.Node) or names[0] is None:
        return None
    module.add_module("shown_features", nn.Identity())
    with module.graph.inserting_before(steps[-1]):
        steps[-1].replace_input_with(features, module.graph.call_module("shown_features", (features,)))
    module.recompile()
    return HeadLayer("shown_features", names[0], names[1] if len(names) > 1 else None)


def tensor_in(module: nn.Module, name: str) -> Tensor:
    """A parameter or buffer by its full name."""
    layer, _, own_name = name.rpartition(".")
    tensor = getattr(module.get_submodule(layer), own_name)
    assert isinstance(tensor, Tensor)  # noqa: S101 - the name was found in the module
    return tensor


def _array(tensor: Tensor) -> NDArray[np.float32]:
    array: NDArray[np.float32] = tensor.detach().float().cpu().numpy()
    return array


def grad_cam(network: TorchNetwork, inputs: Inputs, classes: AskedClasses) -> Saliency:
    """Grad-CAM of the last layer with rows and columns (Selvaraju et al., 2017).

    Its channels, each weighted by the mean of its gradient over all places, summed and cut off below 0.
    """
    if inputs.dtype.kind != "f":
        raise BadInput(f"the module takes {inputs.dtype}, and integers have no gradient; use occlusion instead")
    points = network.to_device(inputs).requires_grad_()  # weights have no gradient here: it begins at the input
    exact = tensor_float(network.device, allowed=network.tensor_float)
    with network.launching, torch.enable_grad(), exact, last_places(network.module, inputs.shape) as places:
        scores = first_tensor(network.module(points)).reshape(len(inputs), -1)
        (shown,) = places
        chosen = scores.gather(1, torch.from_numpy(np.array(classes, np.int64)).to(scores.device))
        # the sum over images: an image's gradient then knows nothing of its batch
        gradients = [torch.autograd.grad(column.sum(), shown, retain_graph=True)[0] for column in chosen.T]
    maps = [(gradient.mean(dim=(2, 3), keepdim=True) * shown).sum(dim=1) for gradient in gradients]
    return np.asarray(torch.stack(maps, dim=1).detach().relu().float().cpu().numpy())


@contextmanager
def last_places(module: nn.Module, inputs: Sequence[int]) -> Iterator[list[Tensor]]:
    """What the last layer with rows and columns gives while the module runs on inputs of this shape; empty without one."""
    found: list[Tensor] = []

    def watch(_layer: nn.Module, _given: object, output: object) -> None:
        if isinstance(output, Tensor) and output.dim() == 4 and _is_smaller_picture(output.shape, inputs):
            found[:] = [output]

    layers = [
        layer for layer in module.modules() if not isinstance(layer, torch.jit.ScriptModule)
    ]  # those refuse to be watched
    hooks = [layer.register_forward_hook(watch) for layer in layers]
    try:
        yield found
    finally:
        for hook in hooks:
            hook.remove()


def _is_smaller_picture(shape: Sequence[int], inputs: Sequence[int]) -> bool:
    """Whether rows and columns are in proportion to those of the input; with channels last they would not be."""
    (rows, columns), (height, width) = shape[2:], inputs[2:]
    return min(rows, columns) > 1 and abs(rows * width - columns * height) <= max(height, width)


FRESH_NORM: Mapping[str, Recipe] = {"weight": 1.0, "bias": 0.0, "running_mean": 0.0, "running_var": 1.0}
OTHER_SPREAD = 0.02
"""Of tokens, positions and whatever else belongs to no known layer, as vision transformers start them."""


def reinitialise_torch(network: TorchNetwork, head: HeadLayer | None, draw: RandomWeights) -> Reinitialised:
    """The network with re-initialised weights in a copy of its module; the module itself stays as it is."""
    if isinstance(network.module, torch.jit.ScriptModule):
        raise BadInput("TorchScript hides its layers, so they cannot be re-initialised; load torch:MODULE:FACTORY")
    module = _copy(network.module)
    others = reinitialise(module, draw)
    note = f"drawn with a spread of {OTHER_SPREAD}, being of no layer that is known here: {listed(others, 3)}"
    return Reinitialised(
        forward=dataclasses.replace(network, module=module),
        read_head=lambda: None if head is None else head.head_in(module),
        notes=(note,) if others else (),
    )


def _copy(module: nn.Module) -> nn.Module:
    try:
        with warnings.catch_warnings():
            # torch copies its exported graphs in a way that it advises others against
            warnings.simplefilter("ignore", FutureWarning)
            return copy.deepcopy(module)
    except (RuntimeError, TypeError) as problem:
        raise BadInput(f"the module cannot be copied to re-initialise its weights: {problem}") from problem


@torch.no_grad()
def reinitialise(module: nn.Module, draw: RandomWeights) -> list[str]:
    """Re-initialises the parameters of a module in place; the names of those that belong to no known layer."""
    recipes = dict(_recipes_in_graph(module) if isinstance(module, fx.GraphModule) else _recipes_in_layers(module))
    if not any(isinstance(recipe, Fans) for recipe in recipes.values()):
        raise BadInput("the module has no convolution or linear layer whose weights could be re-initialised")
    others = []
    for name, tensor in chain(module.named_parameters(), module.named_buffers()):
        if name in recipes:
            values = draw.made(name, tensor.shape, recipes[name])
        elif isinstance(tensor, nn.Parameter) and tensor.is_floating_point():
            values = draw.normal(name, tensor.shape, OTHER_SPREAD)
            others.append(name)
        else:
            continue
        tensor.copy_(torch.from_numpy(values))
    return others


def _recipes_in_layers(module: nn.Module) -> Iterator[tuple[str, Recipe]]:
    for layer_name, layer in module.named_modules():
        for name, recipe in _recipes_of_layer(layer).items():
            yield f"{layer_name}.{name}" if layer_name else name, recipe


def _recipes_of_layer(layer: nn.Module) -> Mapping[str, Recipe]:
    """How the tensors of one layer are re-initialised, by the names it has for them."""
    match layer:
        case _ConvNd():
            fans = fans_of_convolution(layer.weight.shape, layer.groups, transposed=layer.transposed)
            return {"weight": fans, "bias": 0.0}
        case nn.Linear():
            return {"weight": Fans(layer.in_features, layer.out_features), "bias": 0.0}
        case nn.MultiheadAttention():
            sizes = {"in": layer.embed_dim, "q": layer.embed_dim, "k": layer.kdim or 1, "v": layer.vdim or 1}
            return {f"{part}_proj_weight": Fans(size, layer.embed_dim) for part, size in sizes.items()} | {
                "in_proj_bias": 0.0
            }
        case nn.PReLU():
            return {"weight": 0.25}
    return FRESH_NORM if _is_norm(layer) else {}


def _is_norm(layer: nn.Module) -> bool:
    if isinstance(layer, (_NormBase, nn.GroupNorm, nn.LayerNorm, nn.RMSNorm)):
        return True
    # libraries write norms of their own; one with a matrix in it is a layer that is only called after them
    gain = getattr(layer, "weight", None)
    return "Norm" in type(layer).__name__ and isinstance(gain, torch.Tensor) and gain.dim() == 1


def _recipes_in_graph(module: fx.GraphModule) -> Iterator[tuple[str, Recipe]]:
    for node in module.graph.nodes:
        if not isinstance(node.target, torch._ops.OpOverload):
            continue
        schema = node.target._schema
        given = {argument.name: value for argument, value in zip(schema.arguments, node.args, strict=False)} | node.kwargs
        stored = {what: str(value.target) for what, value in given.items() if getattr(value, "op", None) == "get_attr"}
        if "weight" not in stored:
            continue
        shape = tensor_in(module, stored["weight"]).shape
        recipes: Mapping[str, Recipe]
        if "conv" in schema.name:
            transposed = "transpose" in schema.name or bool(given.get("transposed"))
            recipes = {"weight": fans_of_convolution(shape, given.get("groups", 1), transposed=transposed), "bias": 0.0}
        elif "linear" in schema.name:
            recipes = {"weight": Fans(shape[1], shape[0]), "bias": 0.0}
        else:
            recipes = FRESH_NORM if "norm" in schema.name else {}
        yield from ((stored[what], recipe) for what, recipe in recipes.items() if what in stored)


INPUT = "images"
"""The input of networks that are written as ONNX."""


def traced(module: nn.Module, example: Tensor, outputs: list[str], dynamic_axes: dict[str, dict[int, str]]) -> bytes:
    """A module as ONNX, by the operations that it does on an example."""
    data = io.BytesIO()
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # ONNX has no such operation
    try:
        with warnings.catch_warnings():
            # the exporter by tracing needs nothing but torch; its successor wants another library
            warnings.simplefilter("ignore")
            torch.onnx.export(
                module,
                (example,),
                data,  # type: ignore[arg-type]  # torch takes files, and says paths
                dynamo=False,
                opset_version=17,
                input_names=[INPUT],
                output_names=outputs,
                dynamic_axes=dynamic_axes,
            )
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
    return data.getvalue()
