"""KL-matching: how far an image's class probabilities are from what is typical of any class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shiftproof.detectors.class_means import class_means, rows_by_predicted_class, width_of
from shiftproof.detectors.inputs import by_probabilities, probabilities_of
from shiftproof.types import AnomalyScores, Fact, Predictions, Training


@dataclass(frozen=True)
class KLMatching:
    """Typical probabilities, one row for each class that some training image was predicted as."""

    log_templates: NDArray[np.floating]  # (templates, classes)

    def __call__(self, predictions: Predictions) -> AnomalyScores:
        """Divergence KL(p || template) from the template nearest in that sense, in nats."""

        def scored(probabilities: NDArray[np.floating]) -> AnomalyScores:
            logarithms = np.log(probabilities, out=np.zeros_like(probabilities), where=probabilities > 0)
            negative_entropy = (probabilities * logarithms).sum(axis=1)
            return np.asarray(negative_entropy - (probabilities @ self.log_templates.T).max(axis=1))

        return by_probabilities(predictions, scored)

    def found(self) -> dict[str, Fact]:
        return {"templates": len(self.log_templates)}


def fit_kl_matching(training: Training) -> KLMatching:
    """The mean class probabilities of the training images predicted as each class (Hendrycks et al., 2022).

    Labels are not asked for. A class that nothing was predicted as has no template.
    """
    learnt = class_means(rows_by_predicted_class(training, probabilities_of), width_of(training, Predictions.need_logits))
    templates = learnt.means[learnt.images > 0]
    # no template quite excludes a class: 0 times minus infinity is not a number
    return KLMatching(np.log(np.maximum(templates, np.finfo(np.float64).tiny)))
