"""What decides in production and is sent on: guards, baselines and rules of a gate, results, text embeddings.

Most of these carry a checksum, so a changed byte is refused before anything is read; here it is put right again too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.bench import Wrong
from fuzz.cases import Seed
from fuzz.documents import jsons, texts
from fuzz.own_files import colour_network, store_files
from fuzz.small_files import files_made, safetensors_seeds
from shiftproof.errors import BadInput

DETECTORS = ("msp", "mahalanobis", "knn", "vim")

RULES = b"""[gate]
model = "m.onnx"
dataset = "photos/"
against = "baseline.json"
undecided = "fail"
[[gate.rules]]
metric = "top1_accuracy"
margin = 1.5
[[gate.rules]]
condition = "fog:3"
least = 60
"""


def _object(document: bytes) -> dict[str, Any]:
    """What the document says, where it is an object that can have a checksum."""
    try:
        told = json.loads(document)
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


# ---- guards


def guard_seeds() -> list[Seed]:
    from shiftproof.studies.guard.guard import save_guard
    from studies.test_guard import a_guard

    seeds = []
    for name in DETECTORS:
        files = files_made(partial(save_guard, a_guard(name)))
        seeds += [
            Seed(name, files, "guard.json", jsons, wrap=_sealed),
            *(
                Seed(f"{seed.name}-arrays", {}, "all", seed.documents, seed.content, partial(_folder, files, seed))
                for seed in safetensors_seeds(name, files, "guard.safetensors")
            ),
        ]
    return seeds


def _sealed(document: bytes) -> bytes:
    from shiftproof.studies.guard.guard import sealed

    told = _object(document)
    try:
        return json.dumps(sealed(told)).encode() if told else document
    except (ValueError, RecursionError):
        return document


def _folder(files: Mapping[str, bytes], seed: Seed, content: bytes) -> bytes:
    """A guard whose record has the digest of these arrays: one file that the reader lays out as a folder."""
    from shiftproof.studies.guard.guard import digest_of, sealed

    arrays = seed.wrap(content)
    record = json.loads(files["guard.json"])
    record["files"]["guard.safetensors"] = digest_of(arrays)
    return json.dumps(sealed(record)).encode() + b"\0" + arrays


def read_guard(folder: Path) -> object:
    from shiftproof.studies.guard.guard import load_guard

    if (folder / "all").exists():
        record, _, arrays = (folder / "all").read_bytes().partition(b"\0")
        (folder / "guard.json").write_bytes(record)
        (folder / "guard.safetensors").write_bytes(arrays)
    guard = load_guard(folder)
    model = guard.record.model
    if model.classes > 10**5 or model.features > 10**5:
        return model.classes
    rng = np.random.default_rng(0)
    found = guard.check(rng.normal(size=(3, model.classes)), rng.normal(size=(3, model.features)))
    if found.accept.shape != (3,) or (found.accept & ~(found.ood_score < guard.threshold)).any():
        raise Wrong(f"accepts at or above its threshold: {found}")
    return guard.sentences(), guard.rows()


# ---- gates


def baseline_seeds() -> list[Seed]:
    from shiftproof.studies.gate.baseline import Baseline

    columns = {"correct": np.array([True, False, True]), "confidence": np.array([900, -70, 3], "<i2")}
    runs = {"clean": columns, "fog:3": columns}
    tags = np.array([7, 8, 9], np.uint32)
    ids = ("a.png", "b.png", "c.png")
    written = Baseline("m", "f00", "photos", "3 classes, ab", {"clean": "ids"}, ids, tags, runs, "2026-01-01", "0")
    files = {"baseline.json": written.to_json().encode(), "rules.toml": RULES}
    return [
        Seed("baseline", files, "baseline.json", jsons),
        Seed("baseline-checksum", files, "baseline.json", jsons, wrap=_summed),
        Seed("rules", files, "rules.toml", texts),
    ]


def _summed(document: bytes) -> bytes:
    from shiftproof.types import fingerprint_of

    told = {name: value for name, value in _object(document).items() if name != "checksum"}
    try:
        return json.dumps({**told, "checksum": fingerprint_of(told)}).encode() if told else document
    except (TypeError, ValueError, RecursionError):
        return document


def read_baseline(folder: Path) -> object:
    from shiftproof.studies.gate.baseline import Baseline
    from shiftproof.studies.gate.rules import read_rules

    rules = read_rules(folder / "rules.toml")
    baseline = Baseline.load(folder / "baseline.json")
    images = len(baseline.ids)
    if len(baseline.tags) != images or any(len(one) != images for run in baseline.runs.values() for one in run.values()):
        raise Wrong(f"columns of other lengths than {images}")
    return rules.rules, baseline.ids, baseline.tags.tolist()


# ---- results, and text embeddings


def document_seeds() -> list[Seed]:
    from shiftproof import measure_stored
    from shiftproof.runs.store import Store

    def make(folder: Path) -> None:
        for name, data in store_files().items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
        results = measure_stored("colours", folder / "photos", studies=["accuracy"], store=Store(folder / "runs"))
        (folder / "results.json").write_text(results.to_json())

    results = files_made(make)["results.json"]
    return [Seed("document", {"results.json": results}, "results.json", jsons)]


def read_document(folder: Path) -> object:
    """Results as trackers take them: a table, and the headline numbers of every model."""
    from shiftproof.files import read_text
    from shiftproof.publishing import numbers_of, published_models
    from shiftproof.types import Results

    results = Results.from_json(read_text(folder / "results.json"))
    numbers = [numbers_of(results, card.name) for card in published_models(results)]
    return len(results.rows()), len(numbers), len(Results.from_json(results.to_json()).findings)


def text_seeds() -> list[Seed]:
    from shiftproof.models.classifiers.zero_shot import ENCODER, TEXT, TextMatrix
    from shiftproof.types import Classes

    def make(folder: Path) -> None:
        matrix = TextMatrix(np.eye(3, dtype=np.float32), 100.0, 0.0, Classes(("blue", "green", "red")), ("a {}",))
        matrix.save(folder / TEXT)
        (folder / ENCODER).write_bytes(colour_network())

    files = files_made(make)
    return safetensors_seeds("text", files, TEXT)


def read_text_embeddings(folder: Path) -> object:
    from shiftproof.models import load_model
    from shiftproof.models.classifiers.zero_shot import ENCODER

    model: Any = load_model(f"clip:{folder / ENCODER}", preprocess="unit,size=16")
    scores = model(np.zeros((2, 3, 16, 16), np.float32)).scores
    if model.classes is not None and len(model.classes) != scores.shape[1]:
        raise BadInput("other classes than scores")
    return scores.shape
