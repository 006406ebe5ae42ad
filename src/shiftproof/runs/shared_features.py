"""Predictions of models that differ by their head alone: from the features that are stored of one of them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from shiftproof.errors import BadInput
from shiftproof.runs.load import digests_of
from shiftproof.runs.records import StoredModel
from shiftproof.runs.rows import Rows
from shiftproof.runs.store import Store
from shiftproof.runs.write import ClassOutputs
from shiftproof.types import Classifier, Condition, Dataset, Keep, ModelRef, Outputs


def fill_from_features(
    model: Classifier,
    features_of: ModelRef,
    images: Dataset,
    conditions: Iterable[Condition],
    *,
    store: Store,
    keep: Keep = "top5",
) -> int:
    """Stores the rows of a model that are not there yet, by its head and the features stored of another; how many.

    Both have the same preprocessing and the same network before their heads. Images of which no features are stored are
    left to `fill`.
    """
    head = model.head
    if head is None:
        raise BadInput(f"{model.ref.name} shows no head, so its predictions do not follow from features")
    pairs = [(key, digest or "") for key, digest in digests_of(images, store).items()]
    written = 0
    with store.in_use(model.ref):
        store.save_model(StoredModel.of(model, len(head.weights)), head if keep == "features" else None)
        for condition in conditions:
            run, other = store.run(model.ref, condition), store.run(features_of, condition)
            run.tidy()
            there, known = run.contents(keep), other.contents("features")
            skipped = [(*pair, known.skipped[pair]) for pair in pairs if pair in known.skipped.keys() - there.skipped.keys()]
            if skipped:
                run.append(Rows([], [], {}, skipped), keep)
            wanted = [pair for pair in pairs if pair in known.rows and pair not in there.rows]
            for rows in other.walk(wanted, "features"):
                features = rows.arrays["features"].astype(np.float32, copy=False)
                outputs = Outputs(features @ head.weights.T + head.bias, features)
                arrays = ClassOutputs(outputs, model.gives, keep, "float32").arrays(range(len(rows.ids)))
                run.append(Rows(rows.ids, rows.digests, arrays), keep)
                written += len(rows.ids)
            if wanted:
                run.seal()
    return written
