"""Whether a model notices what it does not know, and whether it notices new classes or only a new style."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, combinations, product
from typing import ClassVar

from shiftproof.catalog import DETECTORS
from shiftproof.errors import BadInput, UnknownName, listed
from shiftproof.metrics.separation import Area
from shiftproof.studies import evidence
from shiftproof.studies.clean_study import image_set_ref, model_ref, model_refs
from shiftproof.studies.distance_analysis import LEAST_GROUPS, Surroundings, distance_findings, too_few_for
from shiftproof.studies.model_averages import AVERAGED, averages_over_models
from shiftproof.studies.novelty_analyses import analysis_findings
from shiftproof.studies.novelty_choices import AurocInterval, Choices
from shiftproof.studies.novelty_galleries import disagreements, nearest_pairs, scored_examples
from shiftproof.studies.novelty_goals import goal_findings, why_no_failure
from shiftproof.studies.novelty_scores import ODIN_EPS, DetectorPanel, Judged, Scored, check_detectors
from shiftproof.studies.novelty_variants import Variant, check_variants
from shiftproof.studies.random_networks import means_over_networks, random_network_aurocs, random_network_failures
from shiftproof.studies.telling import Load, TellingStudy, Told
from shiftproof.types import (
    CLEAN,
    Classifier,
    Condition,
    Fact,
    Finding,
    ImageSet,
    ImageSetRef,
    Keep,
    Measurement,
    ModelRef,
    Reading,
    Run,
    Training,
)


@dataclass(frozen=True)
class OutOfDistributionStudy(TellingStudy):
    """Every detector at two goals, new-class and failure detection, with the analyses of the ImageNet-OOD paper.

    `image_set` is inside: its classes are those the model knows, as in the sets of `more_inside`. Its images under
    `conditions`, and the sets in `shifted`, show the same classes otherwise; those in `out_sets` show others. Detectors that
    learn do so from `training`.
    """

    models: Sequence[ModelRef | Classifier]
    image_set: ImageSetRef | ImageSet
    more_inside: Mapping[str, ImageSetRef | ImageSet] = field(default_factory=dict, hash=False)  # in the usual style too
    shifted: Mapping[str, ImageSetRef | ImageSet] = field(default_factory=dict, hash=False)
    conditions: Sequence[Condition] = ()  # corruptions of the inside set, which count as shifted
    out_sets: Mapping[str, ImageSetRef | ImageSet] = field(default_factory=dict, hash=False)
    training: ImageSetRef | ImageSet | None = None
    detectors: Sequence[str] | None = None  # None: all that can be had
    preset: str = "authors"
    parameters: Mapping[str, Mapping[str, Fact]] = field(default_factory=dict, hash=False)  # by detector
    random_networks: Mapping[str, Sequence[ModelRef | Classifier]] = field(default_factory=dict, hash=False)  # by model name
    odin: Mapping[str, ModelRef | Classifier] = field(default_factory=dict, hash=False)  # the same with perturbed inputs
    rejected: float = 0.75  # share of the outside images that may not pass
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

    by_default: ClassVar[bool] = False

    def __post_init__(self) -> None:
        settled = {
            "models": model_refs(self.models),
            "image_set": image_set_ref(self.image_set),
            **{
                role: {name: image_set_ref(images) for name, images in getattr(self, role).items()}
                for role in ("more_inside", "shifted", "out_sets")
            },
            "conditions": tuple(self.conditions),
            "training": None if self.training is None else image_set_ref(self.training),
            "detectors": None if self.detectors is None else tuple(dict.fromkeys([*self._compared, *self.detectors])),
            "random_networks": {name: tuple(map(model_ref, some)) for name, some in self.random_networks.items()},
            "odin": {name: model_ref(model) for name, model in self.odin.items()},
            "distance_model": None if self.distance_model is None else model_ref(self.distance_model),
            "pairs_at": tuple(self.pairs_at),
            "scores_at": tuple(self.scores_at),
            "_choices": Choices(self.tpr, self.risk, self.rejected, self.area, self.auroc_interval),
        }
        for name, value in settled.items():
            object.__setattr__(self, name, value)
        self._check_names()
        check_variants(self.variants, self._training)
        self._check_numbers()

    @cached_property
    def variants(self) -> tuple[Variant, ...]:
        """All images that are scored, the inside set first."""
        inside = image_set_ref(self.image_set)
        return (
            Variant(inside.name, "inside", inside),
            *(Variant(name, "inside", image_set_ref(images)) for name, images in self.more_inside.items()),
            *(Variant(name, "shifted", image_set_ref(images)) for name, images in self.shifted.items()),
            *(Variant(str(condition), "shifted", inside, condition) for condition in self.conditions),
            *(Variant(name, "outside", image_set_ref(images)) for name, images in self.out_sets.items()),
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
        """Every set is scored among the classes of the inside set, and images of other classes have no label there."""
        inside = image_set_ref(self.image_set)
        if run.model == self._distance_model and run.model not in self.models:
            return Reading(None, labelled=False)  # its features alone are asked for, so its classes may be any
        if run.image_set in self.out_sets.values():
            return Reading(inside, labelled=False)
        return None if run.image_set == inside else Reading(inside, labelled=True)

    def findings(self, load: Load, told: Told) -> Iterator[Finding]:
        told.warnings.extend(self.seen_twice(load))
        averaged: list[Measurement] = []
        for model in model_refs(self.models):
            surroundings = Surroundings((self._distance_model or model).name)
            judged = self._judged(model, load, surroundings, told)
            if judged is None:
                continue
            told.left_out.extend(why_no_failure(judged))
            for found in chain(goal_findings(judged, self._choices), analysis_findings(judged, self._choices)):
                averaged += [found] if isinstance(found, Measurement) and found.metric in AVERAGED else []
                yield found
            yield from distance_findings(judged, surroundings, groups=self.groups)
            variants = {variant.name: variant for variant in self.variants}
            yield from disagreements(judged, variants, shown=self.shown, each=self.examples, between=self.disagree)
            yield from scored_examples(judged, variants, percentiles=self.scores_at, of=self.disagree)
            yield from nearest_pairs(judged, surroundings, variants, percentiles=self.pairs_at)
            yield from self._random_network_findings(model, judged, load, told)
        yield from averages_over_models(averaged)

    def _judged(self, model: ModelRef, load: Load, surroundings: Surroundings, told: Told) -> Judged | None:
        """One model's images as the detectors see them, each run read once; what cannot be had is told."""
        perturbed = self._odin(model)
        panel = self._panel(model, load, perturbed=perturbed.name if perturbed else None)
        scored: list[tuple[Variant, Scored]] = []
        for variant in self.variants:
            predictions = load(variant.run(model))
            nothing = evidence.nothing_read(variant.run(model), predictions)
            if nothing:
                told.left_out.append(nothing)
                if variant == self.variants[0]:
                    return None
                continue
            scores = panel.scores(predictions, load(variant.run(perturbed)) if perturbed else None)
            scored.append((variant, Scored.of(variant, model, predictions, scores)))
            if variant in self._apart:
                other = self._distance_model
                surroundings.add(variant, predictions, load(variant.run(other)) if other else predictions)
        surroundings.free()
        ungrouped = too_few_for(self.groups, surroundings) if self.groups else {}
        told.leave_out({**panel.left_out, **surroundings.left_out, **ungrouped}, of=model.name)
        told.pass_on(panel.ready, of=model.name)
        about = {"model": model.name, "image_set": image_set_ref(self.image_set).name}
        return Judged.of(about, scored, panel.ready, baseline=self.baseline)

    def _random_network_findings(self, model: ModelRef, judged: Judged, load: Load, told: Told) -> Iterator[Measurement]:
        """What networks of the same architecture say that never learned anything, and their means."""
        aurocs: list[Measurement] = []
        failures: list[Measurement] = []
        lacking: dict[tuple[str, str], list[str]] = {}
        read = {scored.name for scored in (*judged.insides, *judged.outside)}
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
            told.leave_out({name: why}, of=listed(some))
        for found in (aurocs, failures):
            yield from found
            yield from means_over_networks(found)

    def _panel(self, network: ModelRef, load: Load, perturbed: str | None = None) -> DetectorPanel:
        """The detectors of one network, fitted on what that network says of the training images."""
        training: Training | None = None
        for images in self._training:
            training = getattr(load, "training", load)(Run(network, images))
        names = tuple(DETECTORS) if self.detectors is None else self.detectors
        return DetectorPanel(names, training, preset=self.preset, parameters=self.parameters, perturbed=perturbed)

    def seen_twice(self, load: Load) -> Iterator[str]:
        """Images that should not be in two sets and are, byte for byte."""
        count = getattr(load, "images_in_both", None)
        if count is None:
            return
        tested = [variant.image_set for variant in self.variants if variant.condition == CLEAN]
        apart = [variant.image_set for variant in self.variants if variant.role in ("inside", "outside")]
        for first, second in [*product(tested, self._training), *combinations(apart, 2)]:
            both = count(first, second)
            if both:
                yield f"{both:,} images of {first.name} are in {second.name} too, which flatters or spoils the numbers"

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
        """The inside set and whatever is held against it; further inside sets are not."""
        first, *others = self.variants
        return first, *(variant for variant in others if variant.role != "inside")

    @property
    def _training(self) -> list[ImageSetRef]:
        """The training images, where there are some."""
        return [] if self.training is None else [image_set_ref(self.training)]

    def _random_networks(self, model: ModelRef) -> tuple[ModelRef, ...]:
        return tuple(map(model_ref, self.random_networks.get(model.name, ())))

    def _odin(self, model: ModelRef) -> ModelRef | None:
        return model_ref(self.odin[model.name]) if model.name in self.odin else None

    @property
    def _distance_model(self) -> ModelRef | None:
        return None if self.distance_model is None else model_ref(self.distance_model)
