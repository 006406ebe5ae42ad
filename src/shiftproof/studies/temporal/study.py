"""Temporal robustness: pm-k accuracy on the frames around anchor frames of a video (Shankar et al., 2021)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, get_args

import numpy as np
from numpy.typing import NDArray

from shiftproof.metrics.intervals import LEAST_CLUSTERS
from shiftproof.metrics.temporal import AnchorAnswers, empirical_cdf, hardest_frames, pm_k_correct_at, pm_k_correct_in
from shiftproof.metrics.trends import LEAST_CASES, Axes, measured_effective_robustness
from shiftproof.metrics.wording import counted
from shiftproof.reference import load_table
from shiftproof.studies import evidence
from shiftproof.studies.base import ClassNames, CleanStudy, sure_of
from shiftproof.studies.temporal.frames import FramePlaces, Frames, KnownPlaces, rate_told, subsets_of, verdicts_of
from shiftproof.types import (
    EXAMPLES,
    Caution,
    Clusters,
    Curve,
    Finding,
    Gallery,
    GalleryItem,
    Keep,
    Known,
    LoadPredictions,
    Measurement,
    NoInterval,
    Note,
    Predictions,
    Run,
    Skipped,
)

PUBLISHED_TABLES = {
    "imagenet_vid_robust_models": "45 models on ImageNet-Vid-Robust, k = 10",
    "ytbb_robust_models": "60 models on YTBB-Robust, k = 10",
}
"""Tables of published models: their titles."""
AS_PUBLISHED = {"clips": "each anchor is a cluster of its own, as in the published tables"}
ONE_CASE = f"anchors of one clip are one case (cluster), and at least {LEAST_CLUSTERS} clips are needed"
NO_ANCHOR = "pm-k needs frames around anchor frames, and no anchor with a label was read"


def _noted(run: Run, predictions: Predictions, frames: Frames | None) -> Iterator[Note]:
    """What cannot be measured of these frames, and that they are too few for intervals."""
    reasons = [evidence.why_unread(predictions), evidence.why_unlabelled(predictions, "pm-k accuracy")]
    if frames is None:
        yield from evidence.skipped(run.dataset.name, *(reasons if any(reasons) else [NO_ANCHOR]))
        return
    cases = frames.places.clusters
    if cases.count < LEAST_CASES:
        few = f"too few images: {counted(cases.count, cases.case)}, at least {LEAST_CASES} are needed"
        yield Skipped(f"{run.dataset.name}: effective robustness: {few}")
    if cases.count < LEAST_CLUSTERS:
        yield Caution(f"{run.dataset.name}: {frames.clips_told['clips']}, so no interval: {ONE_CASE}")


@dataclass(frozen=True)
class TemporalStudy(CleanStudy):
    """pm-k accuracy: anchors correct on every frame at most k away, by k, offset, class and type of frame.

    The images are frames with the facts `anchor`, the id of the anchor they belong to, and `offset`, 0 for the anchor
    itself; `clip` names the clip. By default the anchor counts among its frames, as in the authors' code; their Eq. 1 counts
    the neighbours alone. Confidence intervals are clustered by clip; the published tables treat every anchor as independent
    (`published_intervals`).
    """

    largest_k: int = 10
    include_anchor: bool = True
    shown: int = 4  # filmstrips
    published: str = "imagenet_vid_robust_models"  # table of models that effective robustness is measured against
    published_intervals: bool = False  # every anchor a cluster of its own

    keep: ClassVar[Keep] = "top5"

    def measure(self, load: LoadPredictions) -> Iterator[Finding | Note]:
        answered: dict[Run, Frames] = {}
        before_review: dict[Run, Frames] = {}
        known = KnownPlaces()
        for run in self.runs():
            predictions = load(run)
            frames = self._frames(predictions, known)
            yield from _noted(run, predictions, frames)
            if frames is not None:
                subject = evidence.Subject(run.about(), self._convention(run, frames), frames.places.clusters)
                if not answered:  # pixels are the same for every model
                    of_dataset = evidence.Subject({"dataset": run.dataset.name}, subject.convention, subject.clusters)
                    yield from distances_of_pairs(predictions, of_dataset)
                yield from self._of_model(frames, subject)
                whole = (self._frames(predictions, known, keep_rejected=True) if frames.rejected else None) or frames
                yield from self._by_review(whole, frames, subject)
                yield from filmstrips(run, frames, shown=self.shown)
                yield from lost_frames(run, frames)
                answered[run], before_review[run] = frames, whole
        stated = {run: self._convention(run, frames) for run, frames in answered.items()}
        yield from accuracy_on_hardest_frames(answered, stated, k=self.largest_k, include_anchor=self.include_anchor)
        yield from self._over_models(answered, before_review, stated)

    def why_nothing(self, known: Known) -> str | None:
        """Why nothing can be measured: no labels, or no frames around anchors."""
        ref = self.runs()[0].dataset
        no_frames = None if known.has_facts(ref, ("anchor", "offset")) else f"{ref.name}: {NO_ANCHOR}"
        return known.unlabelled(ref, "pm-k accuracy") or no_frames

    def _frames(self, predictions: Predictions, known: KnownPlaces, *, keep_rejected: bool = False) -> Frames | None:
        frames = Frames.of(predictions, keep_rejected=keep_rejected, known=known)
        if frames is None or not self.published_intervals:
            return frames
        each = Clusters("anchor", tuple(map(str, frames.places.anchors.tolist())))
        return frames._replace(places=replace(frames.places, clusters=each))

    def _convention(self, run: Run, frames: Frames) -> dict[str, str]:
        anchor = "counts among its frames" if self.include_anchor else "does not count: Eq. 1"
        clips = AS_PUBLISHED if self.published_intervals else frames.clips_told
        told = {**clips, **rate_told(frames.predictions.facts), **frames.left_out}
        reach = frames.places.reach_told(self.largest_k)
        return {**evidence.convention_of(run, frames.predictions), "anchor": anchor, **told, **reach}

    def _of_model(self, frames: Frames, subject: evidence.Subject) -> Iterator[Finding]:
        yield from self._over_k(frames, subject)
        yield from self._by_offset(frames, subject)
        yield from self._by_class(frames, subject)
        yield from self._by_subset(frames, subject)
        yield from distances_of_mistakes(frames, subject)

    def _over_k(self, frames: Frames, subject: evidence.Subject) -> Iterator[Finding]:
        by_k = self._pm_k(frames.correct, frames.places, *range(self.largest_k + 1))
        clusters = _clusters_of(by_k, subject.clusters)
        points = [evidence.Point(k, by_k[k].right, clusters[k]) for k in range(len(by_k)) if len(by_k[k].right)]
        for k, right, of_k in points:
            metric, more = ("pm_k_accuracy", {"k": int(k)}) if k else ("anchor_accuracy", {})
            yield evidence.Subject({**subject.about, **more}, subject.convention, of_k).share(metric, right)
        yield subject.share_curve("pm_k_curve", ("k, frames before and after", "accuracy"), points)
        anchors, right = by_k[-1]
        if len(right):
            of_anchors = evidence.Subject(subject.about, subject.convention, clusters[-1])
            before = frames.correct[anchors]
            yield of_anchors.also({"k": self.largest_k}).difference("pm_k_drop", before, right)
            yield from self._beside_published(before, right, of_anchors)

    def _pm_k(self, correct: NDArray[np.bool_], places: FramePlaces, *every_k: int) -> list[AnchorAnswers]:
        return pm_k_correct_in(places.sets, every_k, correct, places.offsets, include_anchor=self.include_anchor)

    def _beside_published(
        self, anchor_right: NDArray[np.bool_], right: NDArray[np.bool_], subject: evidence.Subject
    ) -> Iterator[Measurement]:
        """Effective robustness: how far the model lies above the line through published models at its anchor accuracy."""
        rows = load_table(self.published)
        others = [np.array([float(row[name]) / 100 for row in rows]) for name in ("original", "perturbed")]
        told = {"published": f"{PUBLISHED_TABLES.get(self.published, self.published)}, which are other images"}
        method, numbers = "of the model's own images and of one more such model about the line", subject.clusters.numbers
        for axes in get_args(Axes):
            found = measured_effective_robustness(anchor_right, right, *others, clusters=numbers, axes=axes)
            if found is not None:
                within = evidence.interval_by(method, subject.clusters, found.interval)
                beside = subject.also({"axes": axes, "published": self.published}, told)
                yield beside.number("effective_robustness", found.difference, within)

    def _by_offset(self, frames: Frames, subject: evidence.Subject) -> Iterator[Curve | Measurement]:
        offsets, clusters = frames.places.offsets, frames.places.clusters
        anchor_right = frames.correct[frames.places.anchor_rows]
        away = [np.flatnonzero(anchor_right & (np.abs(offsets) == k)) for k in range(1, self.largest_k + 1)]
        points = [
            evidence.Point(k, frames.correct[rows], clusters.take(rows)) for k, rows in enumerate(away, 1) if len(rows)
        ]
        if points:
            axes = ("frames from the anchor", "accuracy")
            yield subject.share_curve("conditional_robustness", axes, points, apart=True)
        yield self._errors(frames.correct, frames.places, subject)
        yield from self._losses(frames, subject)

    def _losses(self, frames: Frames, subject: evidence.Subject) -> Iterator[Measurement]:
        """What the frames at each offset lose against their own anchors."""
        before = frames.correct[frames.places.anchor_rows]
        for offset, (rows, clusters) in frames.places.at_offsets.items():
            if 0 < abs(offset) <= self.largest_k:
                at = evidence.Subject({**subject.about, "offset": offset}, subject.convention, clusters)
                yield at.difference("offset_loss", before[rows], frames.correct[rows])

    def _errors(self, correct: NDArray[np.bool_], places: FramePlaces, subject: evidence.Subject) -> Curve:
        """Error at each offset, of one model or, (models, frames), the mean over all."""
        near = {offset: at for offset, at in places.at_offsets.items() if abs(offset) <= self.largest_k}
        points = [evidence.Point(offset, ~correct[..., at.rows], at.clusters) for offset, at in near.items()]
        axes = ("offset from the anchor, frames", "error")
        return subject.share_curve("offset_errors", axes, points, apart=True)

    def _over_models(
        self, answered: Mapping[Run, Frames], before_review: Mapping[Run, Frames], stated: Mapping[Run, Mapping[str, str]]
    ) -> Iterator[Curve]:
        """Mean error by offset over all models, and before review too where reviewers rejected frames."""
        rejected = max((frames.rejected for frames in answered.values()), default=0)
        if len(answered) < 2 and not rejected:
            return
        first, *others = stated.values()
        shared = {key: value for key, value in first.items() if all(one.get(key) == value for one in others)}
        about: dict[str, str | int] = {"dataset": next(iter(answered)).dataset.name, "models": len(answered)}
        readings = {"left out": answered, **({"kept": before_review} if rejected else {})}
        for reading, frames in readings.items():
            correct, places = shared_frames(list(frames.values()))
            told = {"frames rejected in review": f"{rejected}, {reading}"} if rejected else {}
            subject = evidence.Subject({**about, "rejected": reading}, {**shared, **told}, places.clusters)
            yield self._errors(correct, places, subject)

    def _by_class(self, frames: Frames, subject: evidence.Subject) -> Iterator[Measurement]:
        """pm-k accuracy of each class by the labels of its anchors; an anchor with two labels counts in both."""
        labels = frames.predictions.labels[frames.places.anchor_rows]
        classes = np.unique(labels[labels >= 0]).tolist()
        if len(classes) < 2:
            return
        names, drops = ClassNames(frames.predictions.classes), []
        near_and_far = self._pm_k(frames.correct, frames.places, 0, self.largest_k)
        for place in classes:
            # frames have the label of their anchor, so anchors are in a class with all of their frames or not at all
            chosen, of_class = (labels == place).any(axis=1), subject.also({"class": names[place]})
            answers = [AnchorAnswers(one.anchors[own := chosen[one.anchors]], one.right[own]) for one in near_and_far]
            for found in self._drop("pm_k_class", frames.correct, answers, of_class):
                yield found
                drops += [found.value] if found.metric == "pm_k_class_drop" else []
        if drops:
            none = NoInterval(f"the median of {len(drops)} classes, each with its own")
            key, anchors = {**subject.about, "k": self.largest_k}, int((frames.places.offsets == 0).sum())
            median, convention = float(np.median(drops)), subject.convention
            yield Measurement("pm_k_median_class_drop", median, key, anchors, convention, no_interval=none)

    def _by_subset(self, frames: Frames, subject: evidence.Subject) -> Iterator[Measurement]:
        """pm-k accuracy without one type of frame, and on clips of one frame rate."""
        for name, chosen in subsets_of(frames.predictions.facts, frames.places):
            yield from self._near_and_far("pm_k_subset", frames, chosen, subject.also({"subset": name}))

    def _by_review(self, before: Frames, after: Frames, subject: evidence.Subject) -> Iterator[Measurement]:
        """pm-k accuracy with and without the frames that reviewers rejected, where they rejected any."""
        for rejected, frames in (("left out", after), ("kept", before)) if after.rejected else ():
            told = {"frames rejected in review": f"{after.rejected}, {rejected}"}
            every = np.ones(len(frames.correct), bool)
            yield from self._near_and_far("pm_k_review", frames, every, subject.also({"rejected": rejected}, told))

    def _near_and_far(
        self, name: str, frames: Frames, chosen: NDArray[np.bool_], subject: evidence.Subject
    ) -> Iterator[Measurement]:
        """Accuracy of the chosen frames at k = 0 and at the largest k, and the drop between the two."""
        rows, places = np.flatnonzero(chosen), frames.places
        answers = pm_k_correct_at(
            (0, self.largest_k),
            frames.correct[rows],
            places.offsets[rows],
            places.anchors[rows],
            include_anchor=self.include_anchor,
        )
        of_all = [AnchorAnswers(rows[one.anchors], one.right) for one in answers]
        of_frames = evidence.Subject(subject.about, subject.convention, places.clusters)
        yield from self._drop(name, frames.correct, of_all, of_frames)

    def _drop(
        self, name: str, correct: NDArray[np.bool_], near_and_far: Sequence[AnchorAnswers], subject: evidence.Subject
    ) -> Iterator[Measurement]:
        clusters = _clusters_of(near_and_far, subject.clusters)
        for k, of_k, (_, right) in zip((0, self.largest_k), clusters, near_and_far, strict=True):
            if not len(right):
                return
            at_k = evidence.Subject({**subject.about, "k": k}, subject.convention, of_k)
            yield at_k.share(f"{name}_accuracy", right)
        yield at_k.difference(f"{name}_drop", correct[near_and_far[-1].anchors], right)


def _clusters_of(answers: Sequence[AnchorAnswers], clusters: Clusters) -> list[Clusters]:
    """The clusters of the anchors that have a say at each k: mostly they are the same for every k."""
    found: list[Clusters] = []
    for number, (anchors, _) in enumerate(answers):
        same = number > 0 and np.array_equal(anchors, answers[number - 1].anchors)
        found.append(found[-1] if same else clusters.take(anchors))
    return found


def filmstrips(run: Run, frames: Frames, *, shown: int) -> Iterator[Gallery]:
    """Frames in order of time around the anchors whose predictions change most often, each with its prediction."""
    predictions, anchors, offsets = frames.predictions, frames.places.anchors, frames.places.offsets
    predicted, confidence = predictions.top5.classes[:, 0], evidence.confidence_or_nan(predictions)
    changing = _changes(predicted, anchors, offsets)
    names = ClassNames(predictions.classes)
    for anchor in sorted(changing, key=lambda one: (-changing[one], one))[:shown]:
        rows = np.flatnonzero(anchors == anchor)
        items = tuple(
            GalleryItem(
                predictions.ids[row],
                sure_of(names[int(predicted[row])], confidence[row]),
                offset=int(offsets[row]),
                predicted=names[int(predicted[row])],
                correct=bool(frames.correct[row]),
            )
            for row in rows[np.argsort(offsets[rows])].tolist()
        )
        clip = str(predictions.facts["anchor"][int(rows[0])])
        title = f"Around {clip}: the prediction changes {changing[anchor]} times"
        yield Gallery("filmstrip", {**run.about(), "clip": clip}, run.dataset, title, items)


def lost_frames(run: Run, frames: Frames) -> Iterator[Gallery]:
    """At each offset the first frame that is misclassified though its anchor is correct."""
    predictions, offsets = frames.predictions, frames.places.offsets
    lost = frames.correct[frames.places.anchor_rows] & ~frames.correct
    names = ClassNames(predictions.classes)
    for offset in np.unique(offsets[lost]).tolist():
        row = int(np.flatnonzero(lost & (offsets == offset))[0])
        told, truth = names[int(predictions.top5.classes[row, 0])], names.of_labels(predictions.labels[row].tolist())
        caption = f"predicted {told}, labelled {truth}"
        item = GalleryItem(predictions.ids[row], caption, offset=offset, predicted=told, correct=False)
        yield Gallery(EXAMPLES, {**run.about(), "offset": offset}, run.dataset, "Misclassified beside its anchor", (item,))


def _changes(predicted: NDArray[np.integer], anchors: NDArray[np.intp], offsets: NDArray[np.intp]) -> dict[int, int]:
    """How often the prediction changes from frame to frame around each anchor, where it does."""
    order = np.lexsort((offsets, anchors))
    changed = (np.diff(predicted[order]) != 0) & (np.diff(anchors[order]) == 0)
    changing, times = np.unique(anchors[order][1:][changed], return_counts=True)
    return dict(zip(changing.tolist(), times.tolist(), strict=True))


def accuracy_on_hardest_frames(
    answered: Mapping[Run, Frames], conventions: Mapping[Run, Mapping[str, str]], *, k: int, include_anchor: bool
) -> Iterator[Measurement]:
    """Accuracy of each model on one set of frames for all: of each anchor the frame within `k` that most models get wrong.

    pm-k takes each model's own worst frames. One model alone has no such set.
    """
    if len(answered) < 2:
        return
    correct, places = shared_frames(list(answered.values()))
    if not len(places.offsets):
        return
    hardest = hardest_frames(correct, places.offsets, places.anchors, k=k, include_anchor=include_anchor)
    frames = {"frames": f"of each anchor the one that most of {len(answered)} models misclassify"}
    for run, right in zip(answered, correct[:, hardest], strict=True):
        told, clusters = {**conventions[run], **frames}, places.clusters.take(hardest)
        yield evidence.Subject({**run.about(), "k": k}, told, clusters).share("hardest_frames_accuracy", right)


def shared_frames(answered: Sequence[Frames]) -> tuple[NDArray[np.bool_], FramePlaces]:
    """Whether each model is correct on the frames that all of them have, (models, frames), and the places of these."""
    # rows are in the order of the dataset, so those of one model and another line up
    if all(one.predictions.ids == answered[0].predictions.ids for one in answered):
        return np.stack([one.correct for one in answered]), answered[0].places
    shared = set.intersection(*(set(frames.predictions.ids) for frames in answered))
    rows = [np.array([image in shared for image in one.predictions.ids]) for one in answered]
    correct = np.stack([one.correct[chosen] for one, chosen in zip(answered, rows, strict=True)])
    places = answered[0].places.take(rows[0])
    whole = places.has_anchor
    return correct[:, whole], places.take(whole)


def distances_of_pairs(predictions: Predictions, subject: evidence.Subject) -> Iterator[Curve]:
    """Distribution of the pixel distances of all frames from their anchors, and of those reviewed as similar."""
    frames = Frames.of(predictions, keep_rejected=True)
    if frames is not None:
        verdicts = verdicts_of(frames.predictions.facts, len(frames.correct))
        yield from _distribution(frames, np.ones(len(frames.correct), bool), subject.also({"pairs": "all"}))
        yield from _distribution(frames, verdicts.similar, subject.also({"pairs": "reviewed"}))


def distances_of_mistakes(frames: Frames, subject: evidence.Subject) -> Iterator[Curve]:
    """Distribution over the frames that a model misclassifies though their anchor is correct."""
    anchor_right = frames.correct[frames.places.anchor_rows]
    mistakes = subject.also({"pairs": "mistakes"}, {"mistakes": "misclassified frames of correct anchors"})
    yield from _distribution(frames, anchor_right & ~frames.correct, mistakes)


def _distribution(frames: Frames, chosen: NDArray[np.bool_], subject: evidence.Subject) -> Iterator[Curve]:
    """Nothing where the frames have no fact `pixel_distance`, or none of the chosen frames has one."""
    known = frames.predictions.facts.get("pixel_distance")
    if known is None:
        return
    distances = np.array([np.nan if distance is None else float(distance) for distance in known])
    pairs = distances[chosen & (frames.places.offsets != 0) & np.isfinite(distances)]
    if not len(pairs):
        return
    cdf = empirical_cdf(pairs)
    told = {"distance": "L-infinity: the largest change of any pixel and colour channel, of the frames as stored"}
    axes, counts = ("largest change of a pixel", "share of pairs within it"), (cdf.shares * len(pairs)).round()
    yield subject.also(told=told).curve("pixel_distances", axes, cdf.values, cdf.shares, counts, images=len(pairs))
