"""Out-of-sample answers: folds that part no cluster, and heads that never saw the label they judge."""

from __future__ import annotations

import numpy as np
import pytest

from shiftproof.errors import BadInput
from shiftproof.training.cross_validated import folds_of, out_of_sample_logits

pytestmark = pytest.mark.usefixtures("one_worker")


def test_no_cluster_is_parted_and_every_class_is_in_every_fold() -> None:
    generator = np.random.default_rng(0)
    clusters = generator.integers(60, size=300)
    classes = clusters % 4
    folds = folds_of(classes, [f"clip {one}" for one in clusters], 5)
    assert all(len(set(folds[clusters == one].tolist())) == 1 for one in np.unique(clusters))
    assert {(one, fold) for one, fold in zip(classes.tolist(), folds.tolist(), strict=True)} == {
        (one, fold) for one in range(4) for fold in range(5)
    }


def test_the_folds_do_not_hang_on_the_order_of_images() -> None:
    keys, classes = [f"{place}.png" for place in range(50)], np.arange(50) % 3
    folds, order = folds_of(classes, keys, 5), np.random.default_rng(1).permutation(50)
    assert folds_of(classes[order], [keys[place] for place in order], 5).tolist() == folds[order].tolist()


def test_more_folds_than_clusters_are_refused() -> None:
    with pytest.raises(BadInput, match="2 clusters cannot be dealt out to 3 folds"):
        folds_of(np.array([0, 0, 1]), ["a", "a", "b"], 3)


def test_labels_that_have_nothing_to_do_with_features_are_not_learned() -> None:
    generator = np.random.default_rng(2)
    features, classes = generator.normal(size=(200, 80)).astype(np.float32), np.arange(200) % 2
    logits = out_of_sample_logits(features, classes, folds_of(classes, [str(one) for one in range(200)], 4))
    # whoever saw its own label among 80 features would be right on nearly all
    assert 0.35 < (logits.argmax(axis=1) == classes).mean() < 0.65


def test_planted_errors_are_the_least_likely_labels() -> None:
    generator = np.random.default_rng(3)
    truth = np.arange(400) % 4
    features = (generator.normal(size=(4, 16))[truth] + 0.7 * generator.normal(size=(400, 16))).astype(np.float32)
    classes, rows = truth.copy(), generator.choice(400, 20, replace=False)
    classes[rows] = (classes[rows] + 1) % 4
    logits = out_of_sample_logits(features, classes, folds_of(classes, [str(one) for one in range(400)], 5))
    own = logits[np.arange(400), classes] - np.logaddexp.reduce(logits, axis=1)
    assert len(set(np.argsort(own)[:40].tolist()) & set(rows.tolist())) >= 18


def test_nothing_is_pruned_where_a_class_would_lose_its_last_images() -> None:
    generator = np.random.default_rng(4)
    classes = np.array([0] * 40 + [1] * 2)
    logits = out_of_sample_logits(generator.normal(size=(42, 3)), classes, np.arange(42) % 2, pruned=0.5)
    assert np.isfinite(logits).all()
