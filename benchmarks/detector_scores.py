"""GradNorm and OpenMax beside pytorch-ood's, at the size of ImageNet: 2048 features, 1000 classes.

    python benchmarks/detector_scores.py

Aims: GradNorm at least 200 times as fast per image, OpenMax's fit 30 times as fast per class. CPU time, interleaved, with
an A/A control; pytorch-ood gets fewer images or classes, so ratios are of the time per image or class. Where it is not
installed, only our own times are printed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness import Contestant, cpu_race, save
from peers import peer_detectors, tell_who_races
from shiftproof.metrics.accuracy import to_top5
from shiftproof.ood.openmax import OpenMax, fit_openmax
from shiftproof.ood.scores import gradnorm
from shiftproof.types import Head, Logits, Predictions

IMAGES, FEATURES, CLASSES = 10_000, 2048, 1000
TRAINING_IMAGES = 30 * CLASSES
PEER_IMAGES, PEER_CLASSES = 96, 40  # theirs take some hundred times as long


def predictions_of(logits: Logits, labels: NDArray[np.integer] | None = None, **more: Any) -> Predictions:
    ids = tuple(map(str, range(len(logits))))
    given = np.full((len(ids), 1), -1) if labels is None else labels[:, None]
    return Predictions(ids, given, "logits", to_top5(logits, "logits"), logits=logits, **more)


def gradnorm_race(generator: np.random.Generator) -> dict[str, float]:
    features = np.maximum(generator.normal(size=(IMAGES, FEATURES)), 0).astype(np.float32)
    head = Head(0.03 * generator.normal(size=(CLASSES, FEATURES)).astype(np.float32), np.zeros(CLASSES, np.float32))
    answers = predictions_of(features @ head.weights.T, features=features, head=head)

    def with_the_head_itself() -> NDArray[np.floating]:
        # theirs runs the last layer too
        np.matmul(features, head.weights.T, out=answers.logits)
        return gradnorm(answers)

    contestants = {
        "gradnorm, shiftproof": Contestant(with_the_head_itself, IMAGES),
        "gradnorm, from stored logits": Contestant(lambda: gradnorm(answers), IMAGES),
    }
    if peer := peer_detectors():
        import torch

        layer = torch.nn.Linear(FEATURES, CLASSES)
        layer.load_state_dict({"weight": torch.from_numpy(head.weights), "bias": torch.from_numpy(head.bias)})
        theirs = peer.GradNorm(layer, param_filter=lambda name: name == "weight").to("cpu")
        some = torch.from_numpy(features[:PEER_IMAGES])
        apart = np.abs(gradnorm(answers)[:PEER_IMAGES] / theirs.predict(some).numpy() - 1).max()
        print(f"gradnorm: ours and theirs differ by at most {apart:.1e} of the score")
        contestants["gradnorm, pytorch-ood"] = Contestant(lambda: theirs.predict(some), PEER_IMAGES)
    return cpu_race(contestants, "image")


def openmax_races(generator: np.random.Generator) -> dict[str, float]:
    labels = np.arange(TRAINING_IMAGES) % CLASSES
    logits = generator.normal(size=(TRAINING_IMAGES, CLASSES)).astype(np.float32)
    logits[np.arange(TRAINING_IMAGES), labels] += 10
    training = predictions_of(logits, labels)
    options: dict[str, Any] = {"tail": 25, "distance": "euclidean", "mean_of": "all"}
    fitted = fit_openmax(training, **options)
    asked = predictions_of(logits[:2000] / 2)
    fits = {"openmax fit, shiftproof": Contestant(lambda: fit_openmax(training, **options), CLASSES)}
    scores = {"openmax scores, shiftproof": Contestant(lambda: fitted(asked), len(asked))}
    if peer_detectors():
        from pytorch_ood.detector.openmax.numpy import OpenMax as TheirOpenMax

        of_few = labels < PEER_CLASSES
        few, few_labels = logits[of_few].astype(np.float64), labels[of_few]
        fits["openmax fit, pytorch-ood"] = Contestant(lambda: TheirOpenMax().fit(few, few_labels), PEER_CLASSES)
        theirs, some = _as_theirs(fitted), logits[:PEER_IMAGES].astype(np.float64) / 2
        scores["openmax scores, pytorch-ood"] = Contestant(lambda: theirs.predict(some), PEER_IMAGES)
    return {**cpu_race(fits, "class"), **cpu_race(scores, "image")}


def _as_theirs(fitted: OpenMax) -> Any:
    """Their detector with our means and tails: to fit a thousand classes would take it a minute."""
    from pytorch_ood.detector.openmax.libnotmr import LibNotMR
    from pytorch_ood.detector.openmax.numpy import OpenMax as TheirOpenMax

    theirs = TheirOpenMax(alpha=fitted.alpha)
    theirs.n_dims, theirs.is_fitted = CLASSES, True
    for of_class in range(CLASSES):
        tail = LibNotMR()
        tail.min_val, tail.c, tail.scale = (
            float(figures[of_class]) for figures in (fitted.nearest, fitted.tails.shape, fitted.tails.scale)
        )
        theirs.centers[of_class], theirs.distributions[of_class] = fitted.means[of_class], tail
    return theirs


def main() -> None:
    tell_who_races()
    generator = np.random.default_rng(0)
    save("detector_scores", {**gradnorm_race(generator), **openmax_races(generator)})


if __name__ == "__main__":
    main()
