"""Peak memory of every study at two numbers of images: what it grows by, beside the bytes that its rows take in the store.

    python benchmarks/peak_memory.py [figures.json] [--only STUDY ...]

Each run is a process of its own: prediction, study and report, with the images prepared in a thread of it, so that all
memory is counted (VmHWM). The network is small, since what a study keeps does not depend on it; pictures are drawn, of
224 x 224 pixels, which are 150 kB each once they are decoded, so that keeping them would show. Up to a thousand images
allocators still fill what they have asked for, so both numbers are beyond that. Pictures that wait for their
next condition are kept in a cache of 64 MB; here it has 8, so that it is full in either run. The smaller run of the first
study is done twice (A/A), to show how much a peak differs by itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

import shiftproof as sp
from harness import figure, save
from shiftproof import catalog
from shiftproof.runs import prepare
from shiftproof.types import Classes, Inputs, ModelRef

FEW, MANY = 1500, 4500
DRAWN = 300
"""Pictures of a kind that are drawn; the others are links to them."""

SIDE, INPUT = 224, 64
CLASSES = ("n01498041", "n01531178", "n01534433", "n01558993", "n01580077")
"""Of ImageNet-A, since one study chooses among its classes."""

OUTPUTS = 1000
"""Of the network: the classes of ImageNet."""

COLOURS = np.array([(220, 40, 40), (40, 200, 60), (40, 60, 220), (220, 210, 50), (128, 128, 128)], np.uint8)
FRAMES = 10
"""Frames of a clip."""

COPIES = 8
"""Of an image's rows that are explained: four arrays in float64 at a time, of what is stored as float32."""

OBJECTS = 3.0
"""Kilobytes of an image that are explained besides: its id, digest, facts and label, as Python objects and in JSON."""

SEQUENCE = 31
"""Frames of a perturbation, each an image with an id of its own; a quarter of the photos is perturbed."""

CACHED_BYTES = 8_000_000

ONE_ARENA = {"MALLOC_ARENA_MAX": "1", "OMP_NUM_THREADS": "1"}
"""So that a peak is that of what is kept, and not of which thread asked for it."""


class Peak(NamedTuple):
    """Of one run, in bytes."""

    memory: int
    rows: int  # files of predictions in its store


def draw(folder: Path) -> None:
    """Pictures with a coloured box each, and for either number of them manifests of photos, others and clips, and boxes."""
    generator = np.random.default_rng(0)
    boxes: list[list[int]] = []
    labels = [number // FRAMES % len(CLASSES) for number in range(MANY)]
    for number, label in enumerate(labels):
        for name in ("other", "training", "photo"):
            if number >= DRAWN:
                os.link(folder / f"{name}{number % DRAWN}.jpg", folder / f"{name}{number}.jpg")
                continue
            pixels = generator.integers(0, 256, (SIDE // 8, SIDE // 8, 3), np.uint8).repeat(8, axis=0).repeat(8, axis=1)
            left, top = generator.integers(0, SIDE // 2, 2).tolist()
            if name != "other":
                pixels[top : top + SIDE // 2, left : left + SIDE // 2] = COLOURS[label]
            Image.fromarray(pixels).save(folder / f"{name}{number}.jpg", quality=80)
        boxes.append([left, top, SIDE // 2, SIDE // 2] if number < DRAWN else boxes[number % DRAWN])
    for images in (FEW, MANY):
        _write(folder, f"others{images}", "path", [f"other{number}.jpg" for number in range(images)])
        for name in ("photo", "training"):
            rows = [f"{name}{number}.jpg,{CLASSES[labels[number]]},site {number % 7}" for number in range(images)]
            _write(folder, f"{name}s{images}", "path,label,site", rows)
        frames = [
            f"photo{number}.jpg,{CLASSES[labels[number]]},clip {number // FRAMES},{number % FRAMES},"
            f"photo{number - number % FRAMES + FRAMES // 2}.jpg,{number % FRAMES - FRAMES // 2}"
            for number in range(images)
        ]
        _write(folder, f"clips{images}", "path,label,clip,frame,anchor,offset", frames)
        coco = {
            "images": [
                {"id": number, "file_name": f"photo{number}.jpg", "width": SIDE, "height": SIDE} for number in range(images)
            ],
            "annotations": [
                {"id": number, "image_id": number, "category_id": labels[number] + 1, "bbox": box, "area": box[2] * box[3]}
                for number, box in enumerate(boxes[:images])
            ],
            "categories": [{"id": place, "name": name} for place, name in enumerate(CLASSES, 1)],
        }
        (folder / f"boxes{images}.json").write_text(json.dumps(coco))


def _write(folder: Path, name: str, head: str, rows: Sequence[str]) -> None:
    (folder / f"{name}.csv").write_text("\n".join([head, *rows]) + "\n")


def network(path: Path, seed: int) -> Path:
    """A small classifier that takes inputs of any size, as ONNX."""
    import onnx
    from onnx import helper, numpy_helper

    generator, features = np.random.default_rng(seed), 32
    stored = {
        "kernel": generator.normal(size=(features, 3, 5, 5)) / 8,
        "weights": generator.normal(size=(OUTPUTS, features)),
        "bias": np.zeros(OUTPUTS),
    }
    nodes = [
        helper.make_node("Conv", ["images", "kernel"], ["maps"], strides=[4, 4]),
        helper.make_node("Relu", ["maps"], ["positive"]),
        helper.make_node("GlobalAveragePool", ["positive"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["features"]),
        helper.make_node("Gemm", ["features", "weights", "bias"], ["logits"], transB=1),
    ]
    kind = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("images", kind, ["batch", 3, "height", "width"])],
        [helper.make_tensor_value_info("logits", kind, ["batch", OUTPUTS])],
        [numpy_helper.from_array(values.astype(np.float32), name) for name, values in stored.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, path)
    return path


def classifier(folder: Path, seed: int = 0) -> Any:
    made = network(folder / f"network{seed}.onnx", seed)
    return sp.load_model(f"onnx:{made}", preprocess=f"squash,size={INPUT}", threads=1)


def detector() -> Any:
    """An object detector that finds a box of every class in each image, none of them well."""
    from shiftproof.models import ImagePreprocessing
    from shiftproof.models.object_detectors.loaded import Candidates, LoadedDetector

    boxes = np.array([[4.0 * place, 4.0 * place, INPUT / 2, INPUT / 2] for place in range(len(CLASSES))])

    def propose(inputs: Inputs) -> list[Candidates]:
        shares = 0.2 + 0.6 * np.asarray(inputs).reshape(len(inputs), -1).mean(axis=1)
        return [Candidates(boxes, np.full(len(boxes), share), np.arange(len(boxes))) for share in shares.clip(0, 1)]

    inputs = ImagePreprocessing(size=(INPUT, INPUT), rule="squash", mean=(0.0,), std=(1.0,))
    return LoadedDetector(ModelRef("boxes", "boxes-1"), inputs, propose, classes=Classes(CLASSES))


def options_of(name: str, folder: Path, images: int) -> Any:
    """Options that give the study all it can use, and few of the cells that would only take time."""
    others, training = (str(folder / f"{name}{images}.csv") for name in ("others", "trainings"))
    few: dict[str, Any] = {"corruptions": ("contrast", "gaussian_noise"), "severities": (1, 4)}
    of: Mapping[str, Callable[[], Any]] = {
        "corruption": lambda: sp.CorruptionOptions(**few),
        "detection-corruption": lambda: sp.DetectionCorruptionOptions(**few),
        "perturbation": lambda: sp.PerturbationOptions(perturbations=("brightness",), sequences=images // 4),
        "input-sizes": lambda: sp.InputSizeOptions(input_sizes=("32", "96")),
        "saliency": lambda: sp.SaliencyOptions(saliency_images=20, saliency_method="class-activation"),
        "natural-adversarial": lambda: sp.NaturalAdversarialOptions(ood=(others,), clean_images=training),
        "unlabelled-accuracy": lambda: sp.EstimateOptions(**few, unlabelled=(others,)),
        "ood": lambda: sp.OODOptions(ood=(others,), training=training, random_networks=2),
    }
    return of[name]() if name in of else None


def run(name: str, folder: Path, images: int, store: str) -> None:
    """Everything that the study needs, the study, and its report."""
    places = {"temporal": "clips{}.csv", "detection": "boxes{}.json", "detection-corruption": "boxes{}.json"}
    places |= {"objects": "boxes{}.json", "saliency": "boxes{}.json"}
    data = str(folder / places.get(name, "photos{}.csv").format(images))
    prediction = sp.options.PredictionSettings(workers=0, quiet=True)
    models = [detector()] if name.startswith("detection") else [classifier(folder)]
    models += [classifier(folder, 1)] if name == "comparison" else []
    studies, report = {name: options_of(name, folder, images)}, f"{store}/report.html"
    if name == "comparison":
        for model in models:
            sp.run(model, data, studies=["accuracy"], store=store, prediction=prediction)
        results = sp.compare(models, data, studies=studies, store=store, report=report)
    else:
        results = sp.run(models[0], data, studies=studies, store=store, report=report, prediction=prediction)
    reasons = "; ".join(str(one) for one in results.skipped)
    print(f"{len(results.measurements)} measurements; {reasons}", file=sys.stderr)


def peak(name: str, folder: Path, images: int) -> Peak:
    """A run in a process of its own."""
    with tempfile.TemporaryDirectory() as store:
        command = [sys.executable, __file__, "--child", name, str(folder), str(images), store]
        ran = subprocess.run(command, env=os.environ | ONE_ARENA, check=True, capture_output=True, text=True)
        rows = sum(file.stat().st_size for file in Path(store).rglob("*.safetensors"))
        return Peak(int(ran.stdout.split()[-1]), rows)


def high_water() -> int:
    """The largest resident memory that this process has had, in bytes."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024


def main() -> None:
    names = sys.argv[sys.argv.index("--only") + 1 :] if "--only" in sys.argv else list(catalog.STUDIES)
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        draw(folder)
        noise = None
        for name in names:
            few, many = (peak(name, folder, images) for images in (FEW, MANY))
            noise = noise or peak(name, folder, FEW).memory / few.memory
            growth, rows = ((more - less) / (MANY - FEW) / 1000 for more, less in zip(many, few, strict=True))
            figures[name] = {"MB": few.memory / 1e6, "MB, many": many.memory / 1e6, "kB": growth, "kB of rows": rows}
            sizes = f"{few.memory / 1e6:.0f} MB with {FEW} images, {many.memory / 1e6:.0f} MB with {MANY}"
            told = f"{rows:.2g} kB of rows; {sizes}"
            slack = abs(noise - 1) * few.memory / (MANY - FEW) / 1000
            objects = OBJECTS * (1 + SEQUENCE / 4 if name == "perturbation" else 1)
            aim = f"at most {COPIES * rows + objects + slack:.2g} kB"
            figure(f"memory of the study {name}, growth per image", growth, beside=told, aim=aim, unit="kB", noise=noise)
    save("peak_memory", figures)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        prepare.CACHED_BYTES = CACHED_BYTES
        run(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
        print(high_water())
    else:
        main()
