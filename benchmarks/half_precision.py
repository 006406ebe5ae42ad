"""Effect of storing logits and features as float16 on the numbers of studies, compared with float32.

    SHIFTPROOF_TEST_DATA=... python benchmarks/half_precision.py

ID: the 1,000 photos; OOD: clothing photos. Energy is minus the log-sum-exp of the logits; the feature score is the
distance to the nearest of the first 500 ID photos, scored on the other 500.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import rankdata

import shiftproof as sp
from harness import save
from shiftproof.datasets.label_spaces import Scoring
from shiftproof.types import Precision, Predictions

Scores = NDArray[np.floating]


def auroc(inside: Scores, outside: Scores) -> float:
    ranks = rankdata(np.concatenate([inside, outside]))
    pairs = len(inside) * len(outside)
    return float((ranks[len(inside) :].sum() - len(outside) * (len(outside) + 1) / 2) / pairs)


def scores(inside: Predictions, outside: Predictions) -> Iterator[tuple[str, Scores, Scores]]:
    logits = [predictions.need_logits().astype(np.float64) for predictions in (inside, outside)]
    yield "energy", *(-logsumexp(each, axis=1) for each in logits)
    yield "max logit", *(-each.max(axis=1) for each in logits)
    yield "max softmax", *(-np.exp(each.max(axis=1) - logsumexp(each, axis=1)) for each in logits)
    features = [predictions.need_features().astype(np.float64) for predictions in (inside, outside)]
    known, asked = features[0][::2], [features[0][1::2], features[1]]
    yield "nearest neighbour", *(np.linalg.norm(each[:, None] - known[None], axis=2).min(axis=1) for each in asked)


def main() -> None:
    data = Path(os.environ["SHIFTPROOF_TEST_DATA"])
    model, outside = sp.load_model("lite:0"), Scoring(unmatched="unlabelled")
    sets = [sp.open_dataset(data / "ilsvrc-sample-1000"), sp.open_dataset(data / "ood-clothing" / "test")]
    found: dict[Precision, list[Predictions]] = {}
    precisions: tuple[Precision, ...] = ("float32", "float16")
    with tempfile.TemporaryDirectory() as folder:
        for precision in precisions:
            store = Path(folder) / precision
            found[precision] = [
                sp.predict(model, images, store=store, keep="features", half=precision == "float16", scoring=outside)
                for images in sets
            ]
            size = sum(file.stat().st_size for file in store.rglob("rows/*/*.safetensors"))
            print(f"{precision}: {size / sum(len(images.samples) for images in sets):,.0f} bytes an image")
    figures = {}
    for (name, *full), (_, *half) in zip(scores(*found["float32"]), scores(*found["float16"]), strict=True):
        off = max(float(abs(one - two).max()) for one, two in zip(full, half, strict=True))
        areas = auroc(*full), auroc(*half)
        figures[name] = {"largest change": off, "auroc float32": areas[0], "auroc change": areas[1] - areas[0]}
        print(f"{name:18} largest change {off:.2e}; AUROC {areas[0]:.6f}, by float16 {areas[1] - areas[0]:+.1e}")
    answers = [predictions[0].need_logits().argmax(axis=1) for predictions in found.values()]
    print(f"first classes changed by float16: {int((answers[0] != answers[1]).sum())} of {len(answers[0])}")
    save("half_precision", figures)


if __name__ == "__main__":
    main()
