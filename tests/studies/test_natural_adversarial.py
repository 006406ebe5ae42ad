from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
import pytest
from sklearn.covariance import EmpiricalCovariance
from sklearn.metrics import average_precision_score
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize

from shiftproof.errors import UnknownName
from shiftproof.metrics.accuracy import to_top5
from shiftproof.reference import ilsvrc_classes, wnids_of
from shiftproof.studies.natural_adversarial.study import NaturalAdversarialStudy
from shiftproof.types import Classes, Curve, DatasetRef, Head, Measurement, ModelRef, Predictions, Run
from studies.contracts import findings_of, skipped_by

MODEL = ModelRef("net", "m")
HARD, ORDINARY, NOVEL = (DatasetRef(name, name) for name in ("hard", "ordinary", "novel"))
A_CLASSES = [ilsvrc_classes().keys.index(wnid) for wnid in wnids_of("imagenet_a_classes")]
O_CLASSES = [ilsvrc_classes().keys.index(wnid) for wnid in wnids_of("imagenet_o_classes")]


def predictions(logits: np.ndarray, labels: np.ndarray, classes: Classes | None = None, **more: object) -> Predictions:
    ids = tuple(f"{place}.png" for place in range(len(logits)))
    top5 = to_top5(logits, "logits")
    return Predictions(ids, labels[:, None], "logits", top5, classes or ilsvrc_classes(), logits)


@pytest.fixture
def answers() -> dict[str, Predictions]:
    generator = np.random.default_rng(3)
    labels = {
        "hard": generator.choice(A_CLASSES, 400),
        "ordinary": generator.integers(0, 1000, 1500),
        "novel": np.full(300, -1),
    }
    made = {}
    for name, truth in labels.items():
        logits = generator.normal(size=(len(truth), 1000)) * 2
        known = truth >= 0
        logits[np.flatnonzero(known), truth[known]] += 4 if name == "ordinary" else 3
        made[name] = predictions(logits, truth)
    return made


def found(study: NaturalAdversarialStudy, answers: dict[str, Predictions], metric: str) -> list[Measurement]:
    def measured() -> Iterator[Measurement]:
        for one in findings_of(study, lambda run: answers[run.dataset.name]):
            if isinstance(one, Measurement) and one.metric == metric:
                yield one

    return list(measured())


def test_accuracy_is_told_among_200_and_among_all_classes(answers: dict[str, Predictions]) -> None:
    among, everywhere = found(NaturalAdversarialStudy([MODEL], HARD), answers, "imagenet_a_accuracy")
    logits, labels = answers["hard"].logits, answers["hard"].labels[:, 0]
    assert logits is not None
    masked = np.full_like(logits, -np.inf)
    masked[:, A_CLASSES] = logits[:, A_CLASSES]
    assert among.about["scored"] == "200 of 1000"
    assert among.value == (masked.argmax(axis=1) == labels).mean()
    assert everywhere.about["scored"] == "all 1000"
    assert everywhere.value == (logits.argmax(axis=1) == labels).mean()
    assert among.value > everywhere.value


def test_aupr_is_that_of_the_published_script(answers: dict[str, Predictions]) -> None:
    study = NaturalAdversarialStudy([MODEL], HARD, ordinary=ORDINARY, novel=NOVEL)
    msp, max_logit = found(study, answers, "imagenet_o_aupr")
    id_set, ood_set = answers["ordinary"], answers["novel"]
    assert id_set.logits is not None
    assert ood_set.logits is not None
    kept = id_set.logits[np.isin(id_set.labels[:, 0], O_CLASSES)][:, O_CLASSES]
    new = ood_set.logits[:, O_CLASSES]
    positive = np.repeat([0, 1], [len(kept), len(new)])
    both = np.concatenate([kept, new])
    powers = np.exp(both - both.max(axis=1, keepdims=True))
    softmax = powers / powers.sum(axis=1, keepdims=True)
    assert msp.about["ood_detector"] == "msp"
    assert msp.value == pytest.approx(average_precision_score(positive, -softmax.max(axis=1)), abs=1e-9)
    assert max_logit.value == pytest.approx(average_precision_score(positive, -both.max(axis=1)), abs=1e-12)
    assert msp.images == len(both)
    assert msp.ends is not None
    assert msp.ends[0] < msp.value < msp.ends[1]


def test_a_model_of_probabilities_is_scored_as_one_of_logits(answers: dict[str, Predictions]) -> None:
    def in_probabilities(given: Predictions) -> Predictions:
        assert given.logits is not None
        powers = np.exp(given.logits)
        shares = powers / powers.sum(axis=1, keepdims=True)
        return dataclasses.replace(given, gives="probabilities", logits=shares, top5=to_top5(shares, "probabilities"))

    study = NaturalAdversarialStudy([MODEL], HARD, ordinary=ORDINARY, novel=NOVEL)
    probabilities = {name: in_probabilities(given) for name, given in answers.items()}
    for metric in ("imagenet_a_accuracy", "imagenet_a_calibration_error", "imagenet_a_aurra"):
        expected = [one.value for one in found(study, answers, metric)]
        assert [one.value for one in found(study, probabilities, metric)] == pytest.approx(expected, abs=1e-9)
    msp, _ = found(study, answers, "imagenet_o_aupr")
    (alone,) = found(study, probabilities, "imagenet_o_aupr")  # there is no highest logit
    assert alone.value == pytest.approx(msp.value, abs=1e-9)


def test_a_blind_model_has_the_published_chance_of_one_sixth() -> None:
    answers = {
        "hard": predictions(np.zeros((5, 1000)), np.array(A_CLASSES[:5])),
        "ordinary": predictions(np.zeros((10_000, 1000)), np.resize(O_CLASSES, 10_000)),
        "novel": predictions(np.zeros((2_000, 1000)), np.full(2_000, -1)),
    }
    study = NaturalAdversarialStudy([MODEL], HARD, ordinary=ORDINARY, novel=NOVEL)
    for one in found(study, answers, "imagenet_o_aupr"):
        assert one.value == pytest.approx(2_000 / 12_000)
        assert one.convention["blind"] == "16.67 %"


def test_too_few_photos_for_a_bin_are_told_where_the_calibration_error_would_stand(answers: dict[str, Predictions]) -> None:
    few = {"hard": answers["hard"].take(np.arange(99))}
    study = NaturalAdversarialStudy([MODEL], HARD)
    assert not found(study, few, "imagenet_a_calibration_error")
    assert "hard: the RMS calibration error needs a bin of 100 images, and has 99" in list(
        skipped_by(study, lambda run: few[run.dataset.name])
    )


def test_aurra_says_what_equally_sure_answers_could_make_of_it() -> None:
    """Two hard photos, answered alike and as surely; one is right, so either may come first."""
    logits = np.zeros((2, 1000))
    logits[:, A_CLASSES[0]] = 5
    answers = {"hard": predictions(logits, np.array(A_CLASSES[:2]))}
    for one in found(NaturalAdversarialStudy([MODEL], HARD), answers, "imagenet_a_aurra"):
        # right first, the mean of 1 and 1/2; wrong first, of 0 and 1/2
        assert one.convention["ties"] == "mean over their orders; between 25.00 % and 75.00 %"
        assert one.value == pytest.approx(0.5)


def test_images_of_other_classes_do_not_count(answers: dict[str, Predictions]) -> None:
    study = NaturalAdversarialStudy([MODEL], HARD, ordinary=ORDINARY)
    ordinary = found(study, answers, "ordinary_accuracy")[0]
    assert ordinary.images == int(np.isin(answers["ordinary"].labels[:, 0], A_CLASSES).sum()) < 1500


def test_the_surest_hard_photos_come_first_in_the_response_curve(answers: dict[str, Predictions]) -> None:
    study = NaturalAdversarialStudy([MODEL], HARD)
    curves = [one for one in findings_of(study, lambda run: answers["hard"]) if isinstance(one, Curve)]
    area, *_ = found(study, answers, "imagenet_a_aurra")
    accuracy, *_ = found(study, answers, "imagenet_a_accuracy")
    assert curves[0].y[-1] == pytest.approx(accuracy.value)
    assert area.value > accuracy.value


def test_what_is_missing_is_told(answers: dict[str, Predictions]) -> None:
    def told(study: NaturalAdversarialStudy) -> str:
        return " ".join(skipped_by(study, lambda run: answers[run.dataset.name]))

    assert "--ood" in told(NaturalAdversarialStudy([MODEL], HARD))
    assert "--clean-images" in told(NaturalAdversarialStudy([MODEL], HARD, novel=NOVEL))
    assert told(NaturalAdversarialStudy([MODEL], HARD, ordinary=ORDINARY, novel=NOVEL)) == ""


def test_a_model_of_other_classes_is_left_out_with_the_reason() -> None:
    few = predictions(np.zeros((3, 2)), np.array([0, 1, 0]), Classes(("a", "b"), ("n00000001", "n00000002")))
    study, load = NaturalAdversarialStudy([MODEL], HARD, ordinary=ORDINARY, novel=NOVEL), lambda run: few
    assert findings_of(study, load) == []
    reasons = skipped_by(study, load)
    assert [reason.partition(":")[0] for reason in reasons] == ["net on hard", "net on ordinary", "net on novel"]
    assert all("200 of 200 classes are not scored" in reason for reason in reasons)


def test_one_set_may_be_hard_and_ordinary_at_once(answers: dict[str, Predictions]) -> None:
    study = NaturalAdversarialStudy([MODEL], HARD, ordinary=HARD)
    assert study.runs() == [Run(MODEL, HARD)]
    hard, ordinary = (found(study, answers, metric)[0] for metric in ("imagenet_a_accuracy", "ordinary_accuracy"))
    assert hard.value == ordinary.value


def test_novel_images_are_read_without_labels() -> None:
    study = NaturalAdversarialStudy([MODEL], HARD, ordinary=ORDINARY, novel=NOVEL)
    reading = study.reading(Run(MODEL, NOVEL))
    assert reading is not None
    assert not reading.labelled
    assert study.reading(Run(MODEL, ORDINARY)) is None


def test_top_five_is_told_beside_the_first_answer(answers: dict[str, Predictions]) -> None:
    study = NaturalAdversarialStudy([MODEL], HARD, ordinary=ORDINARY)
    for name, metric in (("hard", "imagenet_a_top5_accuracy"), ("ordinary", "ordinary_top5_accuracy")):
        logits, labels = answers[name].need_logits(), answers[name].labels[:, 0]
        kept = np.isin(labels, A_CLASSES)
        logits, labels = logits[kept], labels[kept]
        among, everywhere = found(study, answers, metric)
        for one, columns in ((among, np.array(A_CLASSES)), (everywhere, np.arange(1000))):
            five = columns[np.argsort(-logits[:, columns], axis=1)[:, :5]]
            assert one.value == (five == labels[:, None]).any(axis=1).mean()
            assert one.images == kept.sum()
    first = found(study, answers, "imagenet_a_accuracy")[0]
    assert first.value < found(study, answers, "imagenet_a_top5_accuracy")[0].value


def with_features(given: Predictions, head: Head, seed: int) -> Predictions:
    """The same images as a linear network sees them: noise, and something of the direction of their class."""
    generator = np.random.default_rng(seed)
    labels = given.labels[:, 0]
    features = generator.normal(size=(len(given), 24)) + np.where(labels[:, None] >= 0, head.weights[labels], 0)
    logits = features @ head.weights.T + head.bias
    return dataclasses.replace(given, features=features, head=head, logits=logits, top5=to_top5(logits, "logits"))


def test_any_detector_looks_for_novel_photos_among_the_classes_that_are_scored(answers: dict[str, Predictions]) -> None:
    """KNN and Mahalanobis by scikit-learn from the training images of the 200 classes; energy and cosine of 200 outputs."""
    generator = np.random.default_rng(8)
    head = Head(generator.normal(size=(1000, 24)), generator.normal(size=1000) / 10)
    training = predictions(np.zeros((2500, 1000)), generator.integers(0, 1000, 2500))
    seen = {
        name: with_features(given, head, seed)
        for seed, (name, given) in enumerate({**answers, "training": training}.items())
    }
    study = NaturalAdversarialStudy(
        [MODEL],
        HARD,
        ordinary=ORDINARY,
        novel=NOVEL,
        detectors=["energy", "max_cosine", "knn", "mahalanobis"],
        training=DatasetRef("training", "training"),
        parameters={"knn": {"neighbours": 3}},
        keep="features",
    )
    assert DatasetRef("training", "training") in [run.dataset for run in study.runs()]
    aupr = {one.about["ood_detector"]: one for one in found(study, seen, "imagenet_o_aupr")}
    assert list(aupr) == ["energy", "max_cosine", "knn", "mahalanobis"]
    learned, known = (seen[name].take(np.isin(seen[name].labels[:, 0], O_CLASSES)) for name in ("training", "ordinary"))
    points = np.concatenate([known.need_features(), seen["novel"].need_features()])
    positive = np.repeat([0, 1], [len(known), len(seen["novel"])])
    logits = points @ head.weights[O_CLASSES].T + head.bias[O_CLASSES]
    lengths = np.linalg.norm(points, axis=1)[:, None] * np.linalg.norm(head.weights[O_CLASSES], axis=1)
    neighbours = NearestNeighbors(n_neighbors=3).fit(normalize(learned.need_features()))
    labels = learned.labels[:, 0]
    centres = {label: learned.need_features()[labels == label].mean(axis=0) for label in np.unique(labels)}
    apart = learned.need_features() - np.array([centres[label] for label in labels])
    spread = EmpiricalCovariance(assume_centered=True).fit(apart)
    expected = {
        "energy": -np.logaddexp.reduce(logits, axis=1),
        "max_cosine": -(points @ head.weights[O_CLASSES].T / lengths).max(axis=1),
        "knn": neighbours.kneighbors(normalize(points))[0][:, -1],
        "mahalanobis": np.min([spread.mahalanobis(points - centre) for centre in centres.values()], axis=0),
    }
    for name, scores in expected.items():
        assert aupr[name].value == pytest.approx(average_precision_score(positive, scores), abs=1e-6)
    assert f"references {len(learned)}" in aupr["knn"].convention["parameters"]


def test_a_detector_that_cannot_be_had_is_told(answers: dict[str, Predictions]) -> None:
    study = NaturalAdversarialStudy([MODEL], HARD, ordinary=ORDINARY, novel=NOVEL, detectors=["msp", "knn"])
    load = lambda run: answers[run.dataset.name]  # noqa: E731 - studies remember what they said by it
    assert [one.about["ood_detector"] for one in findings_of(study, load) if one.about.get("ood_detector")] == ["msp"]
    assert skipped_by(study, load) == ["knn on net: it learns from training images, and none were given (--training)"]
    with pytest.raises(UnknownName, match="did you mean energy"):
        NaturalAdversarialStudy([MODEL], HARD, detectors=["enrgy"])
