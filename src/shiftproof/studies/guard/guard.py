"""A guard: an OOD detector with its thresholds, a temperature and prediction sets, as a folder that needs numpy alone.

::

    guard/guard.json         what it is, what to expect of it, and the digests of the files beside it
          guard.safetensors  what the detector learned, the model's last layer where it needs that, reference scores
          guarded.onnx       the model with further outputs; not there where the model cannot be had as ONNX
          README.md          the same as guard.json, for people

Nothing in it is a program: files are read as JSON and as arrays, and what is computed is code of this package.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors import numpy as tensors

from shiftproof.errors import BadInput, NotKept
from shiftproof.files import parse_json, read_regular, write_whole
from shiftproof.metrics.calibration import to_probabilities
from shiftproof.metrics.conformal import prediction_sets
from shiftproof.ood import ReadyDetector
from shiftproof.ood.graph import TINY, Graph, Tensor
from shiftproof.ood.kept import detector_from, keep_detector
from shiftproof.studies.threshold.expected import Expected, Share, UsedImages, check_fields, expected_from
from shiftproof.types import Features, Gives, Head, Logits, OODScores, Predictions, Top5, encodable

FORMAT = 1
RECORD, ARRAYS, GRAPH, CARD = "guard.json", "guard.safetensors", "guarded.onnx", "README.md"
SEAL = "digest"
HEAD, REFERENCE = ("head.weights", "head.bias"), "reference"
MOST_RECORD, MOST_ARRAYS = 64 * 2**20, 8 * 2**30

Reason: TypeAlias = Literal["accepted", "ood_score", "not_finite"]
REASONS: Mapping[Reason, str] = {
    "accepted": "the OOD score is below the threshold",
    "ood_score": "the OOD score reaches the threshold: the image is unlike those that the guard was made with",
    "not_finite": "what the model gave is not a number, or infinite",
}


class Checked(NamedTuple):
    """What the guard says of a batch, row by row."""

    accept: NDArray[np.bool_]
    reason: NDArray[np.str_]  # a key of `REASONS`
    ood_score: OODScores  # higher is more out-of-distribution; not a number where the model's output is not finite
    calibrated_probability: NDArray[np.floating]  # of the predicted class
    predicted: NDArray[np.intp]


@dataclass(frozen=True)
class GuardedModel:
    """The model that a guard is for, by what its outputs must be like."""

    name: str
    fingerprint: str
    gives: Gives
    classes: int
    features: int  # of an image; 0 where the guard needs none
    training_data: str  # as declared
    preprocessing: str | None = None  # as --preprocess takes it; None where it cannot be said so
    scores: str | None = None  # output of guarded.onnx that holds the class scores; None: there is no such file
    features_tensor: str | None = None  # tensor of guarded.onnx that holds the features, where the guard needs them


@dataclass(frozen=True)
class Point:
    """A threshold of the OOD score, how it was chosen, and what to expect of it."""

    chosen: str
    threshold: float  # images that reach it are abstained on; infinity: none
    expected: Expected


@dataclass(frozen=True)
class Calibration:
    """Temperature scaling: the temperature, and RMS calibration errors on images that it was not fitted to."""

    temperature: float
    images: int
    error_before: float
    error_after: float


@dataclass(frozen=True)
class Coverage:
    """How often prediction sets hold the true class, on images that they were not made with."""

    images_of: str  # a dataset or a shift
    covered: Share
    size: float  # classes in a set, on average
    accuracy: float


@dataclass(frozen=True)
class GuardRecord:
    """What ``guard.json`` says."""

    model: GuardedModel
    detector: Mapping[str, Any]  # as `ood.kept` writes it
    goal: str
    false_alarm_cost: float
    miss_cost: float
    ood_share: float
    points: Sequence[Point]  # the one in use first
    calibration: Calibration
    promised: float  # coverage of the prediction sets, on images like those it was made with
    least_probability: float  # that classes in a set have
    coverage: Sequence[Coverage]
    datasets: Sequence[UsedImages]
    notes: Sequence[str]
    made: str
    versions: Mapping[str, str]
    onnx_difference: float | None = None  # largest between guarded.onnx and Python on some images; None: no such file
    files: Mapping[str, str] = dataclasses.field(default_factory=dict)  # SHA-256 by name

    def to_json(self) -> str:
        told = {"format": FORMAT, **dataclasses.asdict(self)}
        for point in told["points"]:
            point["threshold"] = point["threshold"] if math.isfinite(point["threshold"]) else None
        return encodable(json.dumps(sealed(told), ensure_ascii=False, indent=1))

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> GuardRecord:
        """KeyError, TypeError or ValueError where something is missing or is not what it should be."""
        known = {one.name: told[one.name] for one in dataclasses.fields(cls)}
        record = cls(
            **known
            | {
                "model": GuardedModel(**told["model"]),
                "points": tuple(
                    Point(
                        str(one["chosen"]),
                        math.inf if one["threshold"] is None else _finite(one["threshold"]),
                        expected_from(one["expected"]),
                    )
                    for one in told["points"]
                ),
                "calibration": Calibration(**told["calibration"]),
                "coverage": tuple(Coverage(**{**one, "covered": Share(**one["covered"])}) for one in told["coverage"]),
                "datasets": tuple(UsedImages(**one) for one in told["datasets"]),
                "notes": tuple(map(str, told["notes"])),
            }
        )
        check_fields(record)
        model, temperature = record.model, record.calibration.temperature
        if model.gives not in ("logits", "probabilities") or not record.points:
            raise ValueError("it has no threshold, or is for a model that gives neither logits nor probabilities")
        if (
            not all(isinstance(one, int) and 0 <= one < 10**7 for one in (model.classes, model.features))
            or not model.classes
        ):
            raise ValueError("its model has a strange number of classes or features")
        if not _finite(temperature) > 0 or not 0 <= _finite(record.least_probability) <= 1:
            raise ValueError("its temperature or least probability is out of range")
        if not isinstance(record.files, dict):
            raise TypeError("its files have no name")
        return record


def sealed(told: Mapping[str, Any]) -> dict[str, Any]:
    """The same with a digest of itself, so that damage is noticed."""
    rest = {name: value for name, value in told.items() if name != SEAL}
    return {**rest, SEAL: digest_of(json.dumps(rest, sort_keys=True).encode())}


def _finite(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"a finite number was expected, got {value!r}")
    return float(value)


@dataclass(frozen=True)
class Guard:
    """Accepts or abstains, from what the model gives."""

    record: GuardRecord
    detector: ReadyDetector
    reference: NDArray[np.float64]  # OOD scores of the in-distribution images it was made with, ascending
    head: Head | None = None  # where the detector needs it
    folder: Path | None = None

    @cached_property
    def threshold(self) -> float:
        """The OOD score from which on the guard abstains."""
        return self.record.points[0].threshold

    def at(self, chosen: str) -> Guard:
        """The same guard with another of its thresholds, by how it was chosen, such as ``FPR at most 1 %``."""
        points = {point.chosen: point for point in self.record.points}
        if chosen not in points:
            raise BadInput(f"this guard has no threshold {chosen!r}; it has {', '.join(points)}")
        others = (point for point in self.record.points if point.chosen != chosen)
        return dataclasses.replace(self, record=dataclasses.replace(self.record, points=(points[chosen], *others)))

    def check(self, logits: Logits, features: Features | None = None) -> Checked:
        """Accept or abstain, with the reason: of a batch, (images, classes) and (images, features), or of one image.

        `logits` are what the model gives: probabilities of one that gives these. Features are what its last layer sees,
        where the guard needs them.
        """
        logits, features = self._rows(logits, features)
        finite = np.isfinite(logits).all(axis=1)
        if features is not None:
            finite &= np.isfinite(features).all(axis=1)
        if finite.all():
            scores, probability = self._scored(logits, features)
        else:
            scores, probability = np.full((2, len(logits)), np.nan)
            some = None if features is None else features[finite]
            scores[finite], probability[finite] = self._scored(logits[finite], some)
        accept = scores < self.threshold
        reason = np.where(accept, "accepted", np.where(finite, "ood_score", "not_finite"))
        return Checked(accept, reason, scores, probability, np.where(finite, logits.argmax(axis=1), -1))

    def prediction_sets(self, logits: Logits) -> NDArray[np.bool_]:
        """Which classes are in the prediction set of each image, (images, classes); the record says how far to trust it."""
        logits, _ = self._rows(logits, np.zeros((len(np.atleast_2d(logits)), self.record.model.features)))
        return prediction_sets(
            calibrated(logits, self.record.model.gives, self.record.calibration.temperature), self.record.least_probability
        )

    def rows(self) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
        """For people: thresholds with their rates and costs, and the promise of prediction sets beside what was measured."""
        from shiftproof.studies.guard.card import coverage_rows, point_rows

        return point_rows(self.record), coverage_rows(self.record)

    def sentences(self) -> list[str]:
        """What it abstains on, and its calibration."""
        from shiftproof.metrics.wording import figure

        found = self.record.calibration
        before, after = (figure(error, "share") for error in (found.error_before, found.error_after))
        return [
            f"abstains where {self.detector.name} scores at least {self.threshold:.6g} ({self.record.points[0].chosen})",
            f"temperature {found.temperature:.3g}: RMS calibration error {before} before, {after} after",
        ]

    def graph(self) -> tuple[Graph, dict[str, Tensor]]:
        """What `check` computes as nodes of an ONNX graph, with its outputs; NotKept where the detector has no such form."""
        model = self.record.model
        graph = Graph(model.gives, model.classes, model.features, self.head)
        finite = (graph.scores - graph.scores).double().sum().equals(0)
        if model.features:
            finite = finite.also((graph.features - graph.features).double().sum().equals(0))
        score = self.detector.graph(graph)
        score = score.double().where(finite, math.nan)
        probability = graph.probabilities(self.record.calibration.temperature).max().where(finite, math.nan)
        accept = score.below(self.threshold).also(finite)
        outputs = {"ood_score": score.single(), "accept": accept, "calibrated_probability": probability.single()}
        return graph, outputs

    def predictions(self, logits: Logits, features: Features | None) -> Predictions:
        """Rows as detectors take them."""
        images = len(logits)
        nothing = np.zeros((images, 1))
        return Predictions(
            ids=("",) * images,
            labels=np.full((images, 1), -1),
            gives=self.record.model.gives,
            top5=Top5(nothing.astype(int), nothing, nothing[:, 0]),
            logits=logits,
            features=features,
            head=self.head,
        )

    def _scored(self, logits: Logits, features: Features | None) -> tuple[OODScores, NDArray[np.floating]]:
        probability = calibrated(logits, self.record.model.gives, self.record.calibration.temperature).max(axis=1, initial=0)
        with np.errstate(all="ignore"):  # what is not a number is abstained on
            return self.detector(self.predictions(logits, features)), probability

    def _rows(self, logits: Logits, features: Features | None) -> tuple[NDArray[np.float32], NDArray[np.float32] | None]:
        """Rows of single-precision numbers, as models give them; BadInput in a sentence where they are not so many."""
        model = self.record.model
        logits = _single(logits, "logits", model.classes, f"{model.name} has {model.classes} classes")
        if not model.features:
            return logits, None
        if features is None:
            raise BadInput(
                f"{self.detector.name} reads features: give what the last layer of {model.name} sees of each image, "
                f"(images, {model.features})"
            )
        features = _single(features, "features", model.features, f"the last layer of {model.name} sees {model.features}")
        if len(features) != len(logits):
            raise BadInput(f"logits are of {len(logits)} images and features of {len(features)}")
        return logits, features


def _single(values: Any, what: str, width: int, why: str) -> NDArray[np.float32]:
    try:
        with np.errstate(over="ignore"):  # too large for single precision is infinite, and abstained on
            rows = np.atleast_2d(np.asarray(values, np.float32))
    except (TypeError, ValueError) as problem:
        raise BadInput(f"{what} should be an array of numbers, (images, {width}): {problem}") from problem
    if rows.ndim != 2 or rows.shape[1] != width:
        raise BadInput(f"{what} should be (images, {width}), since {why}; got shape {np.shape(values)}")
    return rows


def calibrated(logits: Logits, gives: Gives, temperature: float) -> NDArray[np.floating]:
    """Probabilities of all classes at a temperature, (images, classes), in double precision.

    Of probabilities the logarithm is taken first, which is the logits less a number an image.

    >>> calibrated(np.log([[1.0, 9.0]]), "logits", 2.0).round(3)
    array([[0.25, 0.75]])
    >>> calibrated(np.array([[0.1, 0.9]]), "probabilities", 2.0).round(3)
    array([[0.25, 0.75]])
    """
    rows = np.asarray(logits, np.float64)
    if gives == "probabilities":
        if temperature == 1:
            return rows
        rows = np.log(np.maximum(rows, TINY))
    return to_probabilities(rows / temperature, "logits")


def save_guard(guard: Guard, folder: Path, graph: bytes | None = None, card: str = "") -> Guard:
    """Writes the folder; ``guard.json`` comes last, so a folder that has it is whole."""
    arrays: dict[str, NDArray[Any]] = {**keep_detector(guard.detector).arrays, REFERENCE: guard.reference}
    if guard.head is not None:
        arrays |= dict(zip(HEAD, (guard.head.weights, guard.head.bias), strict=True))
    whole = {name: np.ascontiguousarray(values) for name, values in arrays.items()}
    files = {ARRAYS: tensors.save(whole), **({GRAPH: graph} if graph is not None else {})}
    record = dataclasses.replace(guard.record, files={name: digest_of(data) for name, data in files.items()})
    folder.mkdir(parents=True, exist_ok=True)
    for old in (RECORD, GRAPH):  # what is half-written must not look whole, nor an old network belong to a new guard
        (folder / old).unlink(missing_ok=True)
    for name, data in {**files, CARD: card.encode()}.items():
        write_whole(folder / name, data)
    write_whole(folder / RECORD, record.to_json().encode())
    return dataclasses.replace(guard, record=record, folder=folder)


def load_guard(folder: str | Path) -> Guard:
    """The guard in a folder, with numpy alone; BadInput where it is not whole. Nothing that the folder holds is run."""
    folder = Path(folder)
    path = folder / RECORD
    again = "write it again: shiftproof guard MODEL DATASET -o FOLDER"
    if not path.exists():
        raise BadInput(f"{folder} holds no finished guard: it has no {RECORD}; {again}")
    try:
        told = parse_json(read_regular(path, most=MOST_RECORD), path)
    except OSError as problem:
        raise BadInput(f"{path} cannot be read: {problem.strerror or problem}") from problem
    if not isinstance(told, dict) or not isinstance(told.get("format"), int):
        raise BadInput(f"{path} was not written by shiftproof guard: it has no format number")
    if told["format"] > FORMAT:
        raise BadInput(f"{path} was written by a newer shiftproof (format {told['format']}, known here is {FORMAT})")
    if sealed(told) != told:
        raise BadInput(f"{path} is damaged, or was changed after it was written; {again}")
    try:
        record = GuardRecord.from_json(told)
        arrays = tensors.load(checked_file(folder, ARRAYS, record, again))
        detector = detector_from(record.detector, arrays)
        head = Head(*(arrays[name] for name in HEAD)) if HEAD[0] in arrays else None
        reference = np.sort(np.asarray(arrays[REFERENCE], np.float64))
        if reference.ndim != 1 or not len(reference) or not np.isfinite(reference).all():
            raise ValueError("its reference scores are not finite numbers")
        guard = Guard(record, detector, reference, head, folder)
        # arrays that do not fit together are told now, not when the first image comes
        with np.errstate(all="ignore"):
            empty = np.full((1, record.model.classes), 1 / record.model.classes)
            found = guard.check(empty, np.zeros((1, record.model.features)))
        if found.ood_score.shape != (1,):
            raise ValueError("its detector does not give a score an image")
    except (BadInput, NotKept, KeyError, TypeError, ValueError, IndexError, AttributeError, SafetensorError) as problem:
        if isinstance(problem, BadInput) and str(folder) in str(problem):
            raise
        told_why = str(problem) if isinstance(problem, BadInput | NotKept) else repr(problem)
        raise BadInput(f"{path} is damaged: {told_why}; {again}") from problem
    return guard


def checked_file(folder: Path, name: str, record: GuardRecord, again: str = "") -> bytes:
    """A file of the folder as it was written; BadInput where it is another, or gone."""
    path = folder / name
    try:
        data = read_regular(path, most=MOST_ARRAYS)
    except OSError as problem:
        raise BadInput(f"{path} cannot be read: {problem.strerror or problem}; {again}") from problem
    if digest_of(data) != record.files.get(name):
        raise BadInput(f"{path} is not the file that {RECORD} was written with: it is damaged, or of another guard; {again}")
    return data


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
