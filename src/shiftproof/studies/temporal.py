"""Whether a model holds for every frame around a frame: pm-k robustness over video (Shankar et al., 2021)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, get_args

import numpy as np
from numpy.typing import NDArray

from shiftproof.metrics.effective_robustness import LEAST_CASES, Axes, measured_effective_robustness
from shiftproof.metrics.frame_sets import frame_sets
from shiftproof.metrics.intervals import LEAST_CLUSTERS
from shiftproof.metrics.temporal import AnchorAnswers, pm_k_correct
from shiftproof.planning import Known
from shiftproof.reference import load_table
from shiftproof.studies import evidence
from shiftproof.studies.class_names import ClassNames
from shiftproof.studies.clean_study import CleanStudy
from shiftproof.studies.filmstrips import filmstrips
from shiftproof.studies.frames import FramePlaces, Frames, rate_told, subsets_of
from shiftproof.studies.hardest_frames import accuracy_on_hardest_frames, shared_frames
from shiftproof.studies.pixel_distances import distances_of_mistakes, distances_of_pairs
from shiftproof.types import About, Clusters, Curve, Finding, Keep, Measurement, Predictions, Run

AS_PUBLISHED = {"clips": "each anchor counts as a clip of its own, as in the published tables"}

ONE_CASE = f"anchors of one clip are one case, and fewer than {LEAST_CLUSTERS} clips tell too little of others"

PUBLISHED_TABLES = {
    "imagenet_vid_robust_models": "45 models on ImageNet-Vid-Robust, k = 10",
    "ytbb_robust_models": "60 models on YTBB-Robust, k = 10",
}

NO_ANCHOR = "pm-k needs frames around anchor frames, and no anchor with a label was read"


@dataclass(frozen=True)
class TemporalStudy(CleanStudy):
    """Accuracy on anchor frames and on the worst of the frames around them, by distance, class and kind of frame.

    The set's images are frames with the facts `anchor`, the id of the anchor they belong to, and `offset`, 0 for the anchor
    itself; `clip` names the clip. By default the anchor counts among its frames, as in the authors' code; their Eq. 1 asks
    the neighbours alone. Intervals are by clip; the published tables take every anchor for a case (`published_intervals`).
    """

    largest_k: int = 10
    include_anchor: bool = True
    shown: int = 4  # sets of frames in filmstrips
    published: str = "imagenet_vid_robust_models"  # whose line a model's robustness is measured from
    published_intervals: bool = False

    keep: ClassVar[Keep] = "top5"
    by_default: ClassVar[bool] = False

    def measure(self, load: Callable[[Run], Predictions]) -> Iterator[Finding]:
        answered: dict[Run, Frames] = {}
        before_review: dict[Run, Frames] = {}
        for run in self.runs():
            predictions = load(run)
            frames = self._frames(predictions)
            if frames is not None:
                convention = self._convention(run, frames)
                if not answered:  # pixels are the same for every model
                    yield from distances_of_pairs(predictions, {"image_set": run.image_set.name}, convention)
                yield from self._of_model(frames, run.about(), convention)
                whole = (self._frames(predictions, keep_rejected=True) if frames.rejected else None) or frames
                yield from self._by_review(whole, frames, run.about(), convention)
                yield from filmstrips(run, frames, shown=self.shown)
                answered[run], before_review[run] = frames, whole
        stated = {run: self._convention(run, frames) for run, frames in answered.items()}
        yield from accuracy_on_hardest_frames(answered, stated, k=self.largest_k, include_anchor=self.include_anchor)
        yield from self._over_models(answered, before_review, stated)

    def skipped(self, load: Callable[[Run], Predictions]) -> Iterator[str]:
        for run in self.runs():
            predictions = load(run)
            reasons = [evidence.nothing_read(run, predictions), evidence.nothing_labelled(run, predictions, "pm-k accuracy")]
            if not any(reasons) and Frames.of(predictions) is None:
                reasons = [f"{run.image_set.name}: {NO_ANCHOR}"]
            elif not any(reasons):
                reasons = [self._too_few_for_a_line(run, predictions)]
            yield from (reason for reason in reasons if reason)

    def _too_few_for_a_line(self, run: Run, predictions: Predictions) -> str | None:
        frames = self._frames(predictions)
        if frames is None or (cases := frames.places.clusters).count >= LEAST_CASES:
            return None
        told = evidence.counted(cases.count, cases.case)
        return f"{run.image_set.name}: effective robustness: too few images: {told}, at least {LEAST_CASES} are needed"

    def why_nothing(self, known: Known) -> str | None:
        """Frames need anchors, and these need labels."""
        ref = self.runs()[0].image_set
        no_frames = None if known.has_facts(ref, ("anchor", "offset")) else f"{ref.name}: {NO_ANCHOR}"
        return known.unlabelled(ref, "pm-k accuracy") or no_frames

    def warnings(self, load: Callable[[Run], Predictions]) -> Iterator[str]:
        told: dict[str, None] = {}
        for run in self.runs():
            frames = self._frames(load(run))
            if frames is not None and frames.places.clusters.count < LEAST_CLUSTERS:
                told[f"{run.image_set.name}: {frames.clips_told['clips']}, so no interval: {ONE_CASE}"] = None
        yield from told

    def _frames(self, predictions: Predictions, *, keep_rejected: bool = False) -> Frames | None:
        frames = Frames.of(predictions, keep_rejected=keep_rejected)
        if frames is None or not self.published_intervals:
            return frames
        each = Clusters("anchor", tuple(map(str, frames.places.anchors.tolist())))
        return frames._replace(places=frames.places._replace(clusters=each))

    def _convention(self, run: Run, frames: Frames) -> dict[str, str]:
        anchor = "counts among its frames" if self.include_anchor else "does not count: Eq. 1"
        clips = AS_PUBLISHED if self.published_intervals else frames.clips_told
        told = {**clips, **rate_told(frames.predictions.facts), **frames.left_out}
        reach = frames.places.reach_told(self.largest_k)
        return {**evidence.convention_of(run, frames.predictions), "anchor": anchor, **told, **reach}

    def _of_model(self, frames: Frames, about: About, convention: Mapping[str, str]) -> Iterator[Finding]:
        yield from self._over_k(frames, about, convention)
        yield from self._by_offset(frames, about, convention)
        yield from self._by_class(frames, about, convention)
        yield from self._by_subset(frames, about, convention)
        yield from distances_of_mistakes(frames, about, convention)

    def _over_k(self, frames: Frames, about: About, convention: Mapping[str, str]) -> Iterator[Finding]:
        clusters = frames.places.clusters
        answers = [self._answers(frames.correct, frames.places, k) for k in range(self.largest_k + 1)]
        for k, (anchors, right) in enumerate(answers):
            if len(right):
                metric, more = ("pm_k_accuracy", {"k": k}) if k else ("anchor_accuracy", {})
                yield evidence.share(metric, right, {**about, **more}, convention, clusters.take(anchors))
        points = [
            evidence.Point(k, right, clusters.take(anchors)) for k, (anchors, right) in enumerate(answers) if len(right)
        ]
        yield evidence.share_curve("pm_k_curve", about, ("k, frames before and after", "accuracy"), points, convention)
        anchors, right = answers[-1]
        if len(right):
            key = {**about, "k": self.largest_k}
            cases = clusters.take(anchors)
            yield evidence.difference("pm_k_drop", frames.correct[anchors], right, key, convention, cases)
            yield from self._beside_published(frames.correct[anchors], right, cases, about, convention)

    def _answers(self, correct: NDArray[np.bool_], places: FramePlaces, k: int) -> AnchorAnswers:
        return pm_k_correct(correct, places.offsets, places.anchors, k=k, include_anchor=self.include_anchor)

    def _beside_published(
        self,
        anchor_right: NDArray[np.bool_],
        right: NDArray[np.bool_],
        clusters: Clusters,
        about: About,
        convention: Mapping[str, str],
    ) -> Iterator[Measurement]:
        """How far above the line through published models the model lies, at its accuracy on the anchors."""
        rows = load_table(self.published)
        others = [np.array([float(row[name]) / 100 for row in rows]) for name in ("original", "perturbed")]
        stated = {
            **convention,
            "published": f"{PUBLISHED_TABLES.get(self.published, self.published)}, which are other images",
        }
        method = "of the model's own images and of one more such model about the line"
        for axes in get_args(Axes):
            found = measured_effective_robustness(anchor_right, right, *others, clusters=clusters.numbers, axes=axes)
            if found is None:
                continue
            told = {**stated, **evidence.interval_told(method, clusters, found.interval)}
            key, within, cases = {**about, "axes": axes}, found.interval, clusters.count
            yield Measurement("effective_robustness", found.difference, key, len(right), told, within, cases)

    def _by_offset(self, frames: Frames, about: About, convention: Mapping[str, str]) -> Iterator[Curve]:
        offsets, clusters = frames.places.offsets, frames.places.clusters
        anchor_right = frames.correct[_anchor_of_each(frames.places)]
        away = [np.flatnonzero(anchor_right & (np.abs(offsets) == k)) for k in range(1, self.largest_k + 1)]
        points = [
            evidence.Point(k, frames.correct[rows], clusters.take(rows)) for k, rows in enumerate(away, 1) if len(rows)
        ]
        if points:
            axes = ("frames away", "share right")
            yield evidence.share_curve("conditional_robustness", about, axes, points, convention, apart=True)
        yield self._errors(frames.correct, frames.places, about, convention)

    def _errors(self, correct: NDArray[np.bool_], places: FramePlaces, about: About, convention: Mapping[str, str]) -> Curve:
        """Share wrong at each offset, of one model or, (models, frames), of all together."""
        near = np.unique(places.offsets[np.abs(places.offsets) <= self.largest_k]).tolist()
        rows = {offset: np.flatnonzero(places.offsets == offset) for offset in near}
        points = [evidence.Point(offset, ~correct[..., at], places.clusters.take(at)) for offset, at in rows.items()]
        axes = ("offset from the anchor, frames", "share wrong")
        return evidence.share_curve("offset_errors", about, axes, points, convention, apart=True)

    def _over_models(
        self, answered: Mapping[Run, Frames], before_review: Mapping[Run, Frames], stated: Mapping[Run, Mapping[str, str]]
    ) -> Iterator[Curve]:
        """Errors by offset of all models together, and before review too, where people rejected frames."""
        rejected = max((frames.rejected for frames in answered.values()), default=0)
        if len(answered) < 2 and not rejected:
            return
        first, *others = stated.values()
        shared = {key: value for key, value in first.items() if all(one.get(key) == value for one in others)}
        about: dict[str, str | int] = {"image_set": next(iter(answered)).image_set.name, "models": len(answered)}
        readings = {"left out": answered, **({"kept": before_review} if rejected else {})}
        for reading, frames in readings.items():
            correct, places = shared_frames(list(frames.values()))
            told = {"frames rejected in review": f"{rejected}, {reading}"} if rejected else {}
            yield self._errors(correct, places, {**about, "rejected": reading}, {**shared, **told})

    def _by_class(self, frames: Frames, about: About, convention: Mapping[str, str]) -> Iterator[Measurement]:
        """Each class by the labels of its anchors: an anchor of two classes counts in both."""
        labels = frames.predictions.labels[_anchor_of_each(frames.places)]
        classes = np.unique(labels[labels >= 0]).tolist()
        if len(classes) < 2:
            return
        names, drops = ClassNames(frames.predictions.classes), []
        for place in classes:
            chosen, key = (labels == place).any(axis=1), {**about, "class": names[place]}
            for found in self._near_and_far("pm_k_class", frames.correct, frames.places, chosen, key, convention):
                yield found
                drops += [found.value] if found.metric == "pm_k_class_drop" else []
        if drops:
            each = {"interval": f"none: the median of {len(drops)} classes, each with an interval of its own"}
            key, anchors = {**about, "k": self.largest_k}, int((frames.places.offsets == 0).sum())
            yield Measurement("pm_k_median_class_drop", float(np.median(drops)), key, anchors, {**convention, **each})

    def _by_subset(self, frames: Frames, about: About, convention: Mapping[str, str]) -> Iterator[Measurement]:
        """What is left without one type of frame, and clips of one frame rate."""
        for name, chosen in subsets_of(frames.predictions.facts, frames.places):
            key = {**about, "subset": name}
            yield from self._near_and_far("pm_k_subset", frames.correct, frames.places, chosen, key, convention)

    def _by_review(
        self, before: Frames, after: Frames, about: About, convention: Mapping[str, str]
    ) -> Iterator[Measurement]:
        """The same without frames that people rejected and with them, where they rejected any."""
        for rejected, frames in (("left out", after), ("kept", before)) if after.rejected else ():
            stated = {**convention, "frames rejected in review": f"{after.rejected}, {rejected}"}
            key, every = {**about, "rejected": rejected}, np.ones(len(frames.correct), bool)
            yield from self._near_and_far("pm_k_review", frames.correct, frames.places, every, key, stated)

    def _near_and_far(
        self,
        name: str,
        correct: NDArray[np.bool_],
        places: FramePlaces,
        chosen: NDArray[np.bool_],
        about: About,
        convention: Mapping[str, str],
    ) -> Iterator[Measurement]:
        """Of the chosen frames the accuracy on the anchors, on all frames around them, and what is lost between the two."""
        correct, places = correct[chosen], places.take(chosen)
        for k in (0, self.largest_k):
            anchors, right = self._answers(correct, places, k)
            if not len(right):
                return
            clusters = places.clusters.take(anchors)
            yield evidence.share(f"{name}_accuracy", right, {**about, "k": k}, convention, clusters)
        key = {**about, "k": self.largest_k}
        yield evidence.difference(f"{name}_drop", correct[anchors], right, key, convention, clusters)


def _anchor_of_each(places: FramePlaces) -> NDArray[np.intp]:
    """The row of the anchor that each frame belongs to, (frames,)."""
    return frame_sets(places.offsets, places.anchors).anchor_of_each_row()
