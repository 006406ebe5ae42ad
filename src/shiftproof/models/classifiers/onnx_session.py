"""An onnxruntime session that is made when the first batch comes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from threading import Lock

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from shiftproof.cores import batches_in_memory, usable_cores
from shiftproof.errors import BadInput
from shiftproof.types import Inputs, Outputs

PROVIDERS = {
    "cpu": "CPUExecutionProvider",
    "cuda": "CUDAExecutionProvider",
    "tensorrt": "TensorrtExecutionProvider",
    "rocm": "ROCMExecutionProvider",
    "coreml": "CoreMLExecutionProvider",
    "directml": "DmlExecutionProvider",
    "openvino": "OpenVINOExecutionProvider",
}
HOSTED = {PROVIDERS["cpu"], PROVIDERS["openvino"]}
"""Providers that compute on the cores of this machine."""

ERRORS_ONLY = 3
MOST_AT_ONCE = 64
"""Most batches in the model at a time on a CPU."""


class OnnxSession:
    """Gives the scores of batches, the extra output where it has one and, where asked, features."""

    def __init__(
        self,
        graph: Callable[[], Path | bytes],
        *,
        input_name: str,
        scores: str,
        features: str | None = None,
        extra: str | None = None,
        input_type: str = "float32",
        device: str | None = None,
        threads: int | None = None,
        data_folder: Path | None = None,
    ) -> None:
        self.graph = graph
        self.input_name = input_name
        self.scores = scores
        self.features = features
        self.extra = extra
        self.input_type = np.dtype(input_type)
        self.provider = provider_of(device)
        self.data_folder = data_folder
        on_cpu = self.provider in HOSTED
        in_all = threads or usable_cores()
        # batches side by side with one thread each beat one batch on all threads: none waits for the slowest at every layer
        self.concurrent_batches = max(1, min(in_all, MOST_AT_ONCE, batches_in_memory())) if on_cpu else 1
        # the session has one pool of threads for all batches, and the thread that brings a batch works on it too
        self.threads = in_all - self.concurrent_batches + 1
        self.default_batch_size = 8 if on_cpu else 64
        self._making = Lock()

    def one_at_a_time(self) -> OnnxSession:
        """Itself, for batches that come one after the other: each is worked on by all threads."""
        self.threads += self.concurrent_batches - 1
        self.concurrent_batches = 1
        return self

    def __call__(self, inputs: Inputs, features: bool) -> Outputs:
        wanted = (self.scores, self.features if features else None, self.extra)
        names = list(dict.fromkeys(name for name in wanted if name is not None))
        tensors = self.tensors(names, inputs)
        rows = {name: flat(tensor, len(inputs)) for name, tensor in zip(names, tensors, strict=True)}
        return Outputs(rows[self.scores], *(None if name is None else rows[name] for name in wanted[1:]))

    def tensors(self, names: Sequence[str], inputs: Inputs) -> list[NDArray[np.generic]]:
        """What the graph gives under these names, in its own shapes."""
        with self._making:
            session = self.session
        try:
            return list(session.run(names, {self.input_name: np.ascontiguousarray(inputs, self.input_type)}))
        except Exception as problem:  # onnxruntime's errors share no narrower root
            raise BadInput(
                f"onnxruntime cannot run the model on inputs of shape {inputs.shape}: {first_line(problem)}"
            ) from problem

    def release(self) -> None:
        """Frees the session and what it holds between batches; the next batch makes it again."""
        with self._making:
            self.__dict__.pop("session", None)

    @cached_property
    def session(self) -> onnxruntime.InferenceSession:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = ERRORS_ONLY
        # threads that wait in a busy loop would take the cores from the workers that prepare the next images
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.intra_op_num_threads = self.threads
        if self.data_folder is not None:
            folder = str(self.data_folder)
            options.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
        graph = self.graph()
        model = str(graph) if isinstance(graph, Path) else graph
        providers = {self.provider: self._provider_options(), PROVIDERS["cpu"]: {}}
        try:
            session = onnxruntime.InferenceSession(model, options, providers=list(providers.items()))
        except Exception as problem:  # onnxruntime's errors share no narrower root
            raise BadInput(f"onnxruntime cannot open the model: {first_line(problem)}") from problem
        if self.provider not in session.get_providers():  # it warns, and takes the CPU instead
            raise BadInput(
                f"onnxruntime has {self.provider} but cannot start it here: mostly a library that it needs, or its driver, "
                "is missing or of another version; --device cpu does without it"
            )
        return session

    def _provider_options(self) -> dict[str, str]:
        """Single precision whatever the provider's own default is, and no more threads than were asked for."""
        if self.provider == PROVIDERS["openvino"]:
            # it would round to bfloat16 by itself on processors that have it
            precise = {"device_type": "CPU", "precision": "FP32"}
            in_all = self.threads + self.concurrent_batches - 1
            return {**precise, "num_of_threads": str(in_all), "num_streams": str(self.concurrent_batches)}
        return {"use_tf32": "0"} if self.provider == PROVIDERS["cuda"] else {}


def provider_of(device: str | None) -> str:
    """The execution provider of a device, or of its own name; BadInput where this onnxruntime lacks it."""
    wanted = PROVIDERS.get((device or "cpu").lower(), device or "")
    there = onnxruntime.get_available_providers()
    if wanted not in there:
        known = sorted({short for short, name in PROVIDERS.items() if name in there} | set(there))
        more = "; pip install onnxruntime-openvino, in place of onnxruntime" if wanted == PROVIDERS["openvino"] else ""
        raise BadInput(f"this onnxruntime has no device {device!r}; it has {', '.join(known)}{more}")
    return wanted


def flat(tensor: NDArray[np.generic], images: int) -> NDArray[np.floating]:
    """Rows of numbers, (images, numbers), out of shapes like (images, 1000, 1, 1); float16 and integers become float32."""
    if tensor.ndim == 0 or (tensor.shape[0] != images and images != 1):
        raise BadInput(f"for {images} images the model gave shape {tensor.shape}; the first axis should be the images")
    return tensor.reshape(images, -1).astype(np.float32, copy=False)


def first_line(problem: Exception) -> str:
    return str(problem).strip().partition("\n")[0]
