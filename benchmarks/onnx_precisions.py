"""EfficientNet-Lite0 as float32, float16 and int8 ONNX, and by OpenVINO where installed: accuracy, scores, CPU time.

    SHIFTPROOF_TEST_DATA=... python benchmarks/onnx_precisions.py [figures.json] [--images 200]

Static int8 (QDQ, weights by channel) is calibrated on photos that are not tested; dynamic int8 needs none. One thread,
batches of 8, CPU time interleaved; float32 runs twice a round (A/A).
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper
from onnxruntime import quantization

import shiftproof as sp
from harness import AGAIN, Contestant, cpu_race, figure, save
from shiftproof.models.classifiers.lite import build_graph, checkpoint_of
from shiftproof.types import Classifier, Image, Inputs

BATCH = 8
CALIBRATION = 50
OPENVINO = "OpenVINOExecutionProvider"


def as_half(model: onnx.ModelProto) -> onnx.ModelProto:
    """The graph with everything in half precision."""
    half = onnx.ModelProto()
    half.CopyFrom(model)
    for tensor in half.graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float16), tensor.name))
    for value in (*half.graph.input, *half.graph.output):
        value.type.tensor_type.elem_type = TensorProto.FLOAT16
    return half


class Calibration(quantization.CalibrationDataReader):  # type: ignore[misc]  # comes without types
    """Photos, one after the other."""

    def __init__(self, inputs: Inputs) -> None:
        self.rows: Iterator[Inputs] = iter(inputs)

    def get_next(self) -> dict[str, Any] | None:
        row = next(self.rows, None)
        return None if row is None else {"images": row[None]}


def written(folder: Path, calibration: Inputs) -> dict[str, Path]:
    """The network in each form."""
    plain = folder / "float32.onnx"
    plain.write_bytes(build_graph(0, checkpoint_of(0)))
    files = {name: folder / f"{name}.onnx" for name in ("float16", "int8", "dynamic int8")}
    onnx.save(as_half(onnx.load(plain)), files["float16"])
    kinds = {"weight_type": quantization.QuantType.QInt8, "activation_type": quantization.QuantType.QUInt8}
    quantization.quantize_static(plain, files["int8"], Calibration(calibration), per_channel=True, **kinds)
    quantization.quantize_dynamic(plain, files["dynamic int8"], weight_type=quantization.QuantType.QUInt8)
    return {"float32": plain, **files}


def logits(model: Classifier, inputs: Inputs) -> NDArray[np.floating]:
    return np.concatenate([model(inputs[start : start + BATCH]).scores for start in range(0, len(inputs), BATCH)])


def prepared(model: Classifier, photos: Sequence[Image]) -> Inputs:
    return np.stack([model.preprocessing.from_image(photo) for photo in photos])


def main() -> None:
    images = int(sys.argv[sys.argv.index("--images") + 1]) if "--images" in sys.argv else 200
    data = sp.open_dataset(Path(os.environ["SHIFTPROOF_TEST_DATA"]) / "ilsvrc-sample-1000")
    ours = list(data.samples)
    calibration, tested = ours[:: len(ours) // CALIBRATION][:CALIBRATION], ours[1 :: len(ours) // images][:images]
    truth = np.array([sample.labels[0] for sample in tested])
    photos, shown = ([(one := data.source(sample)).decode(one.read()) for sample in some] for some in (tested, calibration))
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        files = written(Path(folder), prepared(sp.load_model("lite:0"), shown))
        load = partial(sp.load_model, preprocess="lite", threads=1)
        models = {name: load(f"onnx:{file}") for name, file in files.items()}
        if OPENVINO in onnxruntime.get_available_providers():
            files.pop("dynamic int8")  # its onnxruntime 1.24 cannot open them
            models |= {f"{name}, OpenVINO": load(f"onnx:{file}", device="openvino") for name, file in files.items()}
        inputs = {name: prepared(model, photos) for name, model in models.items()}
        found = {name: logits(model, inputs[name]) for name, model in models.items()}
        for name, scores in found.items():
            off = np.abs(scores - found["float32"])
            same = float((scores.argmax(axis=1) == found["float32"].argmax(axis=1)).mean())
            right = float((scores.argmax(axis=1) == truth).mean())
            figures[name] = {"accuracy": right, "same class": same, "largest": float(off.max()), "mean": float(off.mean())}
            told = f"accuracy {right:.3f}, same class as float32 {same:.3f}, logits moved by up to {off.max():.2g}"
            print(f"{name:24} {told}, on average {off.mean():.2g}", flush=True)
        few = slice(6 * BATCH)
        race = {name: Contestant(partial(logits, model, inputs[name][few]), 6 * BATCH) for name, model in models.items()}
        times = cpu_race(race, "image", rounds=5)
    noise = times.pop(AGAIN.format("float32"))
    for name, multiple in times.items():
        figures[name]["cpu time"] = multiple
        if name != "float32":
            aim = "below 1" if name == "int8" else "none: what the library takes"
            figure(f"Lite0 as {name} ONNX, CPU time", multiple, beside="float32 by the CPU provider", aim=aim, noise=noise)
    save("onnx_precisions", figures)


if __name__ == "__main__":
    main()
