"""OOD detection: new-class and failure detection by every OOD detector, and what its score responds to."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, combinations, product

import numpy as np

from shiftproof.catalog import OOD_DETECTORS
from shiftproof.corruptions import corruption_of
from shiftproof.errors import BadInput, UnknownName, listed
from shiftproof.metrics.roc import Area
from shiftproof.studies import evidence
from shiftproof.studies.base import CleanStudy, dataset_ref, load_training, model_ref, model_refs, refs_of, settle
from shiftproof.studies.ood.analyses import (
    analysis_findings,
    disagreements,
    means_over_networks,
    nearest_pairs,
    random_network_aurocs,
    random_network_failures,
    scored_examples,
)
from shiftproof.studies.ood.distance import LEAST_GROUPS, Surroundings, distance_findings, too_few_for
from shiftproof.studies.ood.goals import goal_findings, no_failure_detection
from shiftproof.studies.ood.scores import (
    ODIN_EPS,
    AurocInterval,
    Choices,
    DetectorPanel,
    Judged,
    Scored,
    Variant,
    check_detectors,
    check_variants,
    left_out,
)
from shiftproof.types import (
    CLEAN,
    About,
    Caution,
    Classifier,
    Condition,
    Dataset,
    DatasetRef,
    Fact,
    Finding,
    Keep,
    LoadPredictions,
    LoadsOverlap,
    Measurement,
    ModelRef,
    NoInterval,
    Note,
    Reading,
    Run,
    Skipped,
    Training,
)

AVERAGED = ("auroc", "aupr_out", "fpr_at_tpr", "aurc", "correct_discarded")


NO_INTERVAL = NoInterval("mean over exactly these models; see the standard deviation")


def averages_over_models(found: Sequence[Measurement]) -> Iterator[Measurement]:
    """Mean and standard deviation of every main number that two models or more have."""
    for metric in AVERAGED:
        of_metric = [one for one in found if one.metric == metric]
        for common, several in evidence.alike_but_for("model", of_metric):
            if len(several) > 1:
                yield from _mean_and_spread(metric, common, several)


def _mean_and_spread(metric: str, common: About, several: Sequence[Measurement]) -> Iterator[Measurement]:
    mean, spread = ("mean_auroc", "auroc_spread") if metric == "auroc" else ("model_mean", "model_spread")
    about: About = {**common, "models": len(several), **({} if metric == "auroc" else {"of": metric})}
    images = min(one.images for one in several)
    convention = _shared([one.convention for one in several])
    values = np.array([one.value for one in several])
    yield Measurement(mean, float(values.mean()), about, images, convention, no_interval=NO_INTERVAL)
    told = {**convention, "spread": "standard deviation of the models, as of a sample"}
    yield Measurement(spread, float(values.std(ddof=1)), about, images, told, no_interval=NO_INTERVAL)


def _shared(conventions: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """What is said alike of all of them; the parameters a detector found are each model's own."""
    first, *others = conventions
    return {key: text for key, text in first.items() if all(other.get(key) == text for other in others)}


@dataclass(frozen=True)
class OODStudy(CleanStudy):
    """Every detector at two goals, new-class and failure detection, with the analyses of the ImageNet-OOD paper.

    `dataset` is in-distribution (ID): its classes are those the model was trained on, as are those of `id_datasets`. Its
    images under `conditions` and the datasets in `shifted` are covariate-shifted: the same classes in another style. Those
    in `ood_datasets` show other classes. Detectors that need fitting are fitted on `training`.
    """

    id_datasets: Mapping[str, DatasetRef | Dataset] = field(default_factory=dict, hash=False)  # in the usual style too
    shifted: Mapping[str, DatasetRef | Dataset] = field(default_factory=dict, hash=False)
    conditions: Sequence[Condition] = ()  # corruptions of the ID set, which count as shifted
    ood_datasets: Mapping[str, DatasetRef | Dataset] = field(default_factory=dict, hash=False)
    training: DatasetRef | Dataset | None = None
    detectors: Sequence[str] | None = None  # None: all that can be had
    preset: str = "authors"
    parameters: Mapping[str, Mapping[str, Fact]] = field(default_factory=dict, hash=False)  # by detector
    random_networks: Mapping[str, Sequence[ModelRef | Classifier]] = field(default_factory=dict, hash=False)  # by model name
    odin: Mapping[str, ModelRef | Classifier] = field(default_factory=dict, hash=False)  # the same with perturbed inputs
    rejected: float = 0.75  # share of the OOD images that may not pass
    tpr: float = 0.95  # share to be found when false alarms are counted
    risk: float = 0.05  # share of answers that may be wrong
    area: Area = "average-precision"  # as which AUPR is taken
    auroc_interval: AurocInterval = "delong"
    baseline: str = "msp"  # the detector that others are compared with
    distance_model: ModelRef | Classifier | None = None  # whose features measure distance; None: the model's own
    groups: int | None = None  # of images alike in distance; None: up to 100 of at least 50 images, but no fewer than 5
    pairs_at: Sequence[float] = (0, 25, 50, 75, 100)  # percentiles of the distance at which nearest pairs are shown
    disagree: tuple[str, str] | None = None  # detectors whose disagreements are shown; None: the best and the baseline
    shown: int = 24  # images in the gallery of disagreements
    examples: int = 6  # images of each set and direction in the galleries of disagreements by set
    scores_at: Sequence[float] = (0, 25, 50, 75, 100)  # percentiles of a score at which examples of each set are shown
    keep: Keep = "features"
    _choices: Choices = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        settle(
            self,
            id_datasets=refs_of(self.id_datasets),
            shifted=refs_of(self.shifted),
            ood_datasets=refs_of(self.ood_datasets),
            conditions=tuple(self.conditions),
            training=self.training and dataset_ref(self.training),
            detectors=None if self.detectors is None else tuple(dict.fromkeys([*self._compared, *self.detectors])),
            random_networks={name: tuple(map(model_ref, some)) for name, some in self.random_networks.items()},
            odin={name: model_ref(model) for name, model in self.odin.items()},
            distance_model=self.distance_model and model_ref(self.distance_model),
            pairs_at=tuple(self.pairs_at),
            scores_at=tuple(self.scores_at),
            _choices=Choices(self.tpr, self.risk, self.rejected, self.area, self.auroc_interval),
        )
        self._check_names()
        check_variants(self.variants, self._training)
        self._check_numbers()

    @cached_property
    def variants(self) -> tuple[Variant, ...]:
        """All images that are scored, the ID set first."""
        id_set = dataset_ref(self.dataset)
        return (
            Variant(id_set.name, "id", id_set),
            *(Variant(name, "id", dataset_ref(images)) for name, images in self.id_datasets.items()),
            *(Variant(name, "shifted", dataset_ref(images)) for name, images in self.shifted.items()),
            *(Variant(_name_of(condition), "shifted", id_set, condition) for condition in self.conditions),
            *(Variant(name, "ood", dataset_ref(images)) for name, images in self.ood_datasets.items()),
        )

    def runs(self) -> list[Run]:
        """Every model on every variant and the training images; then whoever else is asked."""
        runs: list[Run] = []
        for model in model_refs(self.models):
            asked = [(model, self.variants), *((network, self._apart) for network in self._random_networks(model))]
            for network, variants in asked:
                runs += [variant.run(network) for variant in variants]
                runs += [Run(network, images) for images in self._training]
            for other, variants in ((self._odin(model), self.variants), (self._distance_model, self._apart)):
                runs += [variant.run(other) for variant in variants] if other else []
        return list(dict.fromkeys(runs))

    def reading(self, run: Run) -> Reading | None:
        """Every set is scored among the classes of the ID set, and images of other classes have no label there."""
        id_set = dataset_ref(self.dataset)
        if run.model == self._distance_model and run.model not in self.models:
            return Reading(None, labelled=False)  # its features alone are asked for, so its classes may be any
        if run.dataset in self.ood_datasets.values():
            return Reading(id_set, labelled=False)
        return None if run.dataset == id_set else Reading(id_set, labelled=True)

    def measure(self, load: LoadPredictions) -> Iterator[Finding | Note]:
        yield from self.seen_twice(load)
        averaged: list[Measurement] = []
        for model in model_refs(self.models):
            surroundings = Surroundings((self._distance_model or model).name)
            judged = yield from self.judged(model, load, surroundings)
            if judged is None:
                continue
            yield from no_failure_detection(judged)
            for found in chain(goal_findings(judged, self._choices), analysis_findings(judged, self._choices)):
                averaged += [found] if isinstance(found, Measurement) and found.metric in AVERAGED else []
                yield found
            yield from distance_findings(judged, surroundings, groups=self.groups)
            variants = {variant.name: variant for variant in self.variants}
            yield from disagreements(judged, variants, shown=self.shown, each=self.examples, between=self.disagree)
            yield from scored_examples(judged, variants, percentiles=self.scores_at, of=self.disagree)
            yield from nearest_pairs(judged, surroundings, variants, percentiles=self.pairs_at)
            yield from self._random_network_findings(model, judged, load)
        yield from averages_over_models(averaged)

    def judged(
        self, model: ModelRef, load: LoadPredictions, surroundings: Surroundings | None = None
    ) -> Generator[Note, None, Judged | None]:
        """One model's images as the detectors score them, each run read once; None where the ID set was not read."""
        perturbed = self._odin(model)
        panel = self._panel(model, load, perturbed=perturbed.name if perturbed else None)
        scored: list[tuple[Variant, Scored]] = []
        for variant in self.variants:
            predictions = load(variant.run(model))
            if unread := evidence.why_unread(predictions):
                yield Skipped(f"{variant.dataset.name}: {unread}")
                if variant == self.variants[0]:
                    return None
                continue
            scores = panel.scores(predictions, load(variant.run(perturbed)) if perturbed else None)
            scored.append((variant, Scored.of(variant, model, predictions, scores)))
            if surroundings and variant in self._apart:
                other = self._distance_model
                surroundings.add(variant, predictions, load(variant.run(other)) if other else predictions)
        yield from panel.notes(model.name)
        if surroundings:
            surroundings.free()
            ungrouped = too_few_for(self.groups, surroundings) if self.groups else {}
            yield from left_out({**surroundings.left_out, **ungrouped}, model.name)
        about = {"model": model.name, "dataset": dataset_ref(self.dataset).name}
        return Judged.of(about, scored, panel.ready, baseline=self.baseline)

    def _random_network_findings(
        self, model: ModelRef, judged: Judged, load: LoadPredictions
    ) -> Iterator[Measurement | Skipped]:
        """What networks of the same architecture say that never learned anything, and their means."""
        aurocs: list[Measurement] = []
        failures: list[Measurement] = []
        lacking: dict[tuple[str, str], list[str]] = {}
        read = {scored.name for scored in (*judged.id_sets, *judged.ood)}
        variants = [variant for variant in self._apart if variant.name in read]
        for number, network in enumerate(self._random_networks(model), start=1):
            panel = self._panel(network, load)
            scores = {variant.name: panel.scores(load(variant.run(network))) for variant in variants}
            for name, why in panel.left_out.items():
                if name in judged.detectors:
                    lacking.setdefault((name, why), []).append(network.name)
            aurocs += random_network_aurocs(judged, panel, scores, network=number)
            failures += random_network_failures(judged, panel, scores, network=number)
        for (name, why), some in lacking.items():
            yield from left_out({name: why}, listed(some))
        for found in (aurocs, failures):
            yield from found
            yield from means_over_networks(found)

    def _panel(self, network: ModelRef, load: LoadPredictions, perturbed: str | None = None) -> DetectorPanel:
        """The detectors of one network, fitted on what that network says of the training images."""
        training: Training | None = None
        for images in self._training:
            training = load_training(load, Run(network, images))
        names = OOD_DETECTORS.usable if self.detectors is None else self.detectors
        return DetectorPanel(names, training, preset=self.preset, parameters=self.parameters, perturbed=perturbed)

    def seen_twice(self, load: LoadPredictions) -> Iterator[Caution]:
        """Images that should not be in two sets and are, byte for byte."""
        if not isinstance(load, LoadsOverlap):
            return
        tested = [variant.dataset for variant in self.variants if variant.condition == CLEAN]
        apart = [variant.dataset for variant in self.variants if variant.role in ("id", "ood")]
        for first, second in [*product(tested, self._training), *combinations(apart, 2)]:
            both = load.images_in_both(first, second)
            if both:
                text = f"{both:,} images of {first.name} are in {second.name} too, which biases the numbers"
                yield Caution(text)

    def _check_names(self) -> None:
        check_detectors([*self._compared, *(self.detectors or ())], preset=self.preset, parameters=self.parameters)
        models = [model_ref(model).name for model in self.models]
        for name in (*self.random_networks, *self.odin):
            if name not in models:
                raise UnknownName("model in this study", name, models)

    def _check_numbers(self) -> None:
        if self.groups is not None and self.groups < LEAST_GROUPS:
            raise BadInput(f"distance is looked at in {LEAST_GROUPS} groups or more, got {self.groups}")
        for what, percentiles in (("pairs", self.pairs_at), ("examples", self.scores_at)):
            if not all(0 <= percentile <= 100 for percentile in percentiles):
                raise BadInput(f"{what} are shown at percentiles from 0 to 100, got {listed(map(str, percentiles))}")
        if self.disagree is not None and len(set(self.disagree)) != 2:
            raise BadInput(f"two detectors can disagree, as vim and knn; got {listed(self.disagree)}")

    @property
    def _compared(self) -> tuple[str, ...]:
        """Detectors that are named beside those that are asked for, and asked for thereby."""
        return self.baseline, *(name for name in self.disagree or () if not (self.odin and name == ODIN_EPS))

    @cached_property
    def _apart(self) -> tuple[Variant, ...]:
        """The ID set and whatever is held against it; further ID sets are not."""
        first, *others = self.variants
        return first, *(variant for variant in others if variant.role != "id")

    @property
    def _training(self) -> list[DatasetRef]:
        """The training images, where there are some."""
        return [] if self.training is None else [dataset_ref(self.training)]

    def _random_networks(self, model: ModelRef) -> tuple[ModelRef, ...]:
        return tuple(map(model_ref, self.random_networks.get(model.name, ())))

    def _odin(self, model: ModelRef) -> ModelRef | None:
        return model_ref(self.odin[model.name]) if model.name in self.odin else None

    @property
    def _distance_model(self) -> ModelRef | None:
        return None if self.distance_model is None else model_ref(self.distance_model)


def _name_of(condition: Condition) -> str:
    """What the ID images under a corruption are called.

    >>> _name_of(Condition("jpeg_compression", 3))
    'JPEG compression 3'
    """
    return f"{corruption_of(condition.name).title} {condition.severity}"
