"""Options of the building of test sets, and of the review of their candidates.

Only what help needs is imported here.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from shiftproof.errors import BadInput
from shiftproof.options import POSITIVE, Bounds, DatabasePlace, Options, ProjectPlace, option, required

SHARE = Bounds(0, 1)
ID_CLASSES = "In-distribution (ID) classes: ilsvrc2012, or a file of wnids or names; none to exclude no class."
HYPONYMS = "Exclude all hyponyms of this: a noun or wnid, e.g. organism; repeatable, none for no exclusion."
PER_CLASS = "Maximum number of images per class."
ID_IMAGES = "ID images to show beside candidates for comparison: a dataset labelled with wnids."


class InstructionSettings(Options):
    """What reviewers are told."""

    TITLE: ClassVar[str] = "Review"
    KEYWORD: ClassVar[str | None] = "review"

    instructions: str | None = option(
        None,
        "Instructions for reviewers, instead of the default ones: a text file, with # for headings and - for lists.",
        metavar="FILE",
        common=True,
    )


class ReviewerSettings(InstructionSettings):
    """How many reviewers each item has."""

    reviewers_per_item: int | None = option(
        None,
        "Reviewers per item: how many review each of them.  [default: 2]",
        bounds=Bounds(1),
        common=True,
    )


class LabelReview(ReviewerSettings, ProjectPlace, DatabasePlace):
    """The review of labels that are likely wrong: its project, or the verdicts of one."""

    reviewed: str | None = option(
        None, "Apply the verdicts of this review of labels: the accuracy before and after.", metavar="PROJECT", common=True
    )
    corrected: str | None = option(
        None, "Write a manifest (.jsonl) with the corrected labels of --reviewed.", is_path=True, common=True
    )

    def check(self) -> None:
        """BadInput where options do not go together."""
        if self.corrected is not None and self.reviewed is None:
            raise BadInput("--corrected writes the labels that reviewers agreed on; name their project with --reviewed")
        if self.project is not None and self.reviewed is not None:
            raise BadInput("--project asks reviewers and --reviewed takes in what they said: choose one of them")
        if self.project is None:
            self.refuse(
                ("instructions", "reviewers_per_item"), "no review project is made", "name its folder with --project"
            )


class GoldSettings(ReviewerSettings):
    """The same, with gold and training items."""

    gold: str | None = option(
        None,
        "Gold and training items, to check and to train reviewers: a manifest with role and answer.",
        metavar="DATASET",
        common=True,
    )


class VerifySettings(GoldSettings):
    """The same, where reviewers keep or reject."""

    reviewers_per_item: int | None = option(
        None,
        "Reviewers per item: with --verify the minimum per flagged item.  [default: 2, or 3 with --verify]",
        bounds=Bounds(1),
        common=True,
    )
    verify: Literal["flagged"] | None = option(
        None,
        "One reviewer screens each item; everybody reviews the flagged ones (rejected or unsure).",
        common=True,
    )


class CandidateSettings(VerifySettings):
    """The same, of candidates that models chose."""

    title: str | None = option(None, "Title shown to reviewers.", common=True)
    target: int | None = option(None, "Number of images to keep per class.", bounds=Bounds(1), common=True)


class FilterOptions(Options):
    """Among which classes filter models predict, and how many candidates they leave."""

    TITLE: ClassVar[str] = "Filter models"

    trust: bool = option(
        False, "Run a model file that is a program (TorchScript, exported): it can do all that you can on this machine."
    )
    among_classes: str | None = option(
        None,
        "Classes that filter models predict among: imagenet-a, imagenet-o, imagenet-r, or a file.  [default: all]",
        common=True,
    )
    exclude_classes: str | None = option(
        None, "Exclude classes: a table with the columns wnid and reason, e.g. rare or dated.", common=True
    )
    per_class: int | None = option(None, PER_CLASS, bounds=Bounds(1), common=True)


class AdversarialOptions(FilterOptions):
    """Thresholds of adversarial filtration, as for ImageNet-A."""

    TITLE: ClassVar[str] = "Candidates"

    max_probability: float = option(
        0.15, "Remove images whose true class has a higher probability.", bounds=SHARE, common=True
    )
    per_confusion: int = option(
        15,
        "Maximum number of images of a class that are predicted as the same other class.",
        bounds=Bounds(1),
        common=True,
    )


class NovelOptions(FilterOptions):
    """Which OOD images become candidates, as for ImageNet-O."""

    TITLE: ClassVar[str] = "Candidates"

    id_classes: str = option("ilsvrc2012", ID_CLASSES, common=True)
    exclude_hyponyms: tuple[str, ...] = option((), HYPONYMS, repeatable=True, common=True)
    min_confidence: float = option(0.5, "Minimum confidence of every filter model.", bounds=SHARE, common=True)
    id_images: str | None = option(None, ID_IMAGES, common=True)


class NovelClassOptions(Options):
    """Which candidates become OOD classes, and which images of them are taken."""

    TITLE: ClassVar[str] = "Classes"

    id_classes: str = required(ID_CLASSES)
    candidates: str = required("Candidate classes: a file of wnids or names, e.g. a list of ImageNet-21K.")
    exclude_hyponyms: tuple[str, ...] = option(("organism",), HYPONYMS, repeatable=True, common=True)
    boundary: Literal["before", "after"] | None = option(
        None,
        "Exclude descendants of the most general decision boundary, before or after --sisters and --chosen.",
        common=True,
    )
    sisters: bool = option(False, "Keep only sister classes (co-hyponyms) of ID classes in WordNet.", common=True)
    chosen: str | None = option(None, "Keep only these hand-picked classes: a file of wnids or names.", common=True)
    images: str | None = option(
        None, "Folder with one folder of images per wnid, to draw images of the classes from.", common=True
    )
    per_class: int = option(50, PER_CLASS, bounds=Bounds(1), common=True)
    seed: int = option(0, "Random seed.", common=True)
    id_images: str | None = option(None, ID_IMAGES, common=True)


class PairOptions(Options):
    """Which pairs are listed."""

    TITLE: ClassVar[str] = "Pairs"

    first: int = option(1000, "Pairs to list, the nearest first.", bounds=Bounds(1), common=True)


class DuplicateOptions(Options):
    """How similar near-duplicates are."""

    TITLE: ClassVar[str] = "Duplicates"

    against: str | None = option(
        None,
        "What to compare with: another dataset too, e.g. a training set.",
        metavar="DATASET",
        common=True,
    )
    bits: int = option(8, "Maximum Hamming distance of 64-bit perceptual hashes.", bounds=Bounds(0, 31), common=True)
    max_distance: float = option(
        0.1,
        "Maximum cosine distance of near-duplicates in feature space.",
        bounds=Bounds(0, 1, open_above=True),
        common=True,
    )


class CropOptions(Options):
    """Which objects become crops, and how they are cropped."""

    TITLE: ClassVar[str] = "Crops"

    reference: str | None = option(
        None,
        "Reference dataset with boxes, for the usual object proportion of each class, e.g. ILSVRC localization.",
        common=True,
    )
    shares: str | None = option(
        None,
        "The same as a CSV: wnid or class, and share, its mean object proportion (box area / image area).",
        common=True,
    )
    times_smaller: float = option(
        8.0,
        "Exclude objects whose proportion is this many times smaller than the mean of their class.",
        bounds=POSITIVE,
        common=True,
    )
    filter_crop: Literal["tight", "final"] = option(
        "tight", "Crop that the filter models classify: the tight box, or the crop that is written.", common=True
    )
    encoding: Literal["raw", "jpeg85"] = option(
        "raw",
        "Pixels as they are (PNG files), or after the JPEG encoding of the published files (quality 85).",
        common=True,
    )
    annotated: str | None = option(None, "Use the boxes annotated in this review project.", metavar="PROJECT", common=True)


class FrameOptions(Options):
    """Which frames of clips are reviewed, and what reviewers are asked."""

    TITLE: ClassVar[str] = "Frames of video"

    k: int | None = option(None, "Frames before and after each anchor.  [default: 10]", bounds=Bounds(0), common=True)
    anchors: str | None = option(
        None,
        "random for one of each clip, or frame numbers or times as 2.5s, comma-separated; see docs/video.md.",
        common=True,
    )
    every: int | None = option(None, "An anchor every this many frames of each clip.", bounds=Bounds(1), common=True)
    count: int | None = option(None, "Number of anchors, evenly spread over each clip.", bounds=Bounds(1), common=True)
    seed: int = option(0, "Random seed.", common=True)
    label_anchors: bool = option(False, "First annotate the classes of the anchors, where labels are sparse.", common=True)
    anchor_classes: str | None = option(
        None, "Classes to choose among with --label-anchors: a file of names or wnids, or ilsvrc2012.", common=True
    )
    labelled: str | None = option(
        None, "Source of labels: a review project in which the anchors were labelled.", metavar="PROJECT", common=True
    )
    reasons: str = option(
        "paper",
        "Why frames may be dissimilar: paper, released (as in YTBB-Robust), or words with keys as rain:w,night:n.",
        common=True,
    )


class HumanTestOptions(Options):
    """The rounds of a human test."""

    TITLE: ClassVar[str] = "Test"

    training_images: str | None = option(
        None,
        "Images for training and qualification, instead of those of DATASET; of ordinary difficulty.",
        metavar="DATASET",
        common=True,
    )
    qualification_images: str | None = option(
        None, "Images for the qualification, instead of the training images.", metavar="DATASET", common=True
    )
    only_classes: str | None = option(
        None, "Only images of these classes: imagenet-a, imagenet-o, imagenet-r, or a file.", common=True
    )
    training_per_class: int = option(3, "Training images per class.", bounds=Bounds(0), common=True)
    qualify: int = option(200, "Images per qualification attempt.", bounds=Bounds(0), common=True)
    test: int = option(600, "Test images.", bounds=Bounds(1), common=True)
    balanced: bool = option(
        False,
        "Draw the same number of test images of every class.  [default: uniformly over all images]",
        common=True,
    )
    pass_mark: float = option(0.9, "Accuracy required in the qualification.", bounds=SHARE, common=True)
    attempts: int = option(1, "Qualification attempts, each with new images.", bounds=Bounds(1), common=True)
    consent: str | None = option(
        None, "Consent text for participants, instead of the default one.", metavar="FILE", common=True
    )
    seed: int = option(0, "Random seed.", common=True)


Layout = Literal["folder", "manifest", "webdataset", "coco", "imagenet-a", "imagenet-o", "imagenet-ood", "vid-robust"]
"""Those of `writing.layouts`, which help should not have to import."""


class ExportOptions(Options):
    """What of a review is written, and how."""

    TITLE: ClassVar[str] = "Output"

    layout: Layout = option(
        "folder",
        "Layout of the files: one folder per class (folder), a table with metadata (manifest), tar shards (webdataset), "
        "boxes (coco), or the layout of a published dataset.",
        common=True,
    )
    pixels: Literal["source", "project"] = option(
        "source",
        "Pixels to write: the source files, or the (possibly downscaled) pictures that reviewers saw.",
        common=True,
    )
    before_review: bool = option(
        False,
        "Export every item under review, kept or not: the unreviewed dataset, for --unreviewed of shiftproof run.",
        common=True,
    )
    rejected_too: bool = option(
        False,
        "Of frames: also write rejected ones, with the reason; run then measures accuracy with and without them.",
        common=True,
    )


class ServerOptions(InstructionSettings, DatabasePlace):
    """Where the review server listens, whom it invites, and what it asks."""

    TITLE: ClassVar[str] = "Server"

    host: str = option("127.0.0.1", "Address to listen on; 0.0.0.0 accepts other machines.", common=True)
    port: int = option(8000, "Port; 0 picks a free one.", bounds=Bounds(0, 65535), common=True)
    public_url: str | None = option(
        None, "Public URL of a reverse proxy, e.g. https://review.example.", metavar="URL", common=True
    )
    trusted_proxy: tuple[str, ...] = option(
        (),
        "Address of a trusted reverse proxy, e.g. 127.0.0.1, whose X-Forwarded-For is used for rate limits; repeatable.",
        repeatable=True,
        metavar="ADDRESS",
        common=True,
    )
    invite: tuple[str, ...] = option(
        (),
        "Create an invitation link for this reviewer, revoking an older one; repeatable.",
        repeatable=True,
        metavar="NAME",
        common=True,
    )
    owner: str | None = option(
        None,
        "Create a link for the owner, who sees all votes; the first one is created automatically.",
        metavar="NAME",
        common=True,
    )
    keys: str | None = option(
        None,
        "Keyboard shortcuts, as keep=j,reject=f,unsure=space, saved in the project; '' for the defaults.",
        metavar="KEYS",
        common=True,
    )
    reviewer_classes: tuple[str, ...] = option(
        (),
        "Assign a reviewer these classes only, as Ada=tabby,otter, saved in the project; Ada= for all; repeatable.",
        repeatable=True,
        metavar="NAME=CLASSES",
        common=True,
    )
