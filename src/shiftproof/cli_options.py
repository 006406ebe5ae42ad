"""Options that several sub-commands share, in the groups in which help shows them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])
SHARE = click.FloatRange(0, 1, min_open=True, max_open=True)


def _options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Several options as one decorator, shown in help in this order."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


trust_option = click.option(
    "--trust",
    is_flag=True,
    help="Run a model file that is a program (TorchScript, exported): it can do all that you can on this machine.",
)


def _limit_pixels(context: click.Context, _option: click.Parameter, most: int | None) -> None:
    """Tells this process and its workers, until the command ends."""
    if most is None:
        return
    from shiftproof.image_sets.decoding import LIMIT_VARIABLE, limit_from_environment

    before = os.environ.get(LIMIT_VARIABLE)
    os.environ[LIMIT_VARIABLE] = str(most)
    limit_from_environment.cache_clear()

    def restore() -> None:
        os.environ.pop(LIMIT_VARIABLE)
        os.environ.update({} if before is None else {LIMIT_VARIABLE: before})
        limit_from_environment.cache_clear()

    context.call_on_close(restore)


about_model = _options(
    click.option("--name", help="What to call the model in results."),
    click.option("--prepare", help="Preparation: a preset or key=value pairs, e.g. imagenet,size=244 (see docs/models.md)."),
    click.option("--classes", help="File with the names or wnids of the model's outputs, one a line, or JSON."),
    click.option("--gives", type=click.Choice(["logits", "probabilities", "scores"]), help="What the outputs are."),
    click.option("--features", help="Tensor or layer to take features from; found by itself where the model allows."),
    click.option("--extra-output", help="A further output to keep, e.g. of a confidence branch or a rotation head."),
    click.option("--turned", is_flag=True, help="--extra-output is a rotation head: show it every image in four turns."),
    click.option("--weights", help="File of weights for an architecture named by the model; .safetensors is best."),
    trust_option,
    click.option("--device", help="cpu, cuda, or a provider of onnxruntime."),
    click.option("--autocast", default="float32", help="Arithmetic of torch models: float32, bfloat16 or float16."),
    click.option("--scores", help="Output that holds the class scores, where a model has several."),
    click.option("--boxes", help="MODEL finds boxes; the layout of its outputs, as yolox, or auto: see docs/models.md."),
    click.option("--least-score", type=click.FloatRange(0, 1), help="Boxes less sure than this are not kept; 0.01 else."),
    click.option("--overlap", type=click.FloatRange(0, 1), help="Overlap above which of two boxes of a class one goes."),
    click.option("--most-boxes", type=click.IntRange(1), help="Boxes to keep of an image, at most; 100 else."),
    click.option(
        "--fill",
        type=click.Choice(["random", "empty"]),
        help="Of boxes: and proposals:, what follows the classes found: the others at random, or nothing; random else.",
    ),
    click.option("--fill-seed", type=int, default=0, show_default=True, help="Where the random order of --fill starts."),
    click.option("--proposals", help="Of proposals:CLASSIFIER, whose boxes it is asked about: a detector, or grid."),
    click.option("--most-proposals", type=click.IntRange(1), help="Crops of an image that are asked about.  [default: 20]"),
    click.option("--least-side", type=click.IntRange(1), help="Shortest side of such a crop, in pixels.  [default: 10]"),
    click.option(
        "--proposal-answer",
        type=click.Choice(["classes", "surest"]),
        help="What crops come to: the class of each, surest first, or all scores of the surest crop.  [default: classes]",
    ),
    click.option("--channels-last", is_flag=True, help="Memory layout of torch models; often faster."),
    click.option("--threads", type=click.IntRange(1), help="Threads of the model; all cores where not given."),
    click.option("--trained-on", help="What the model was trained on, e.g. imagenet-train; printed in reports."),
    click.option("--augmented", multiple=True, help="An augmentation used in training."),
    click.option("--filtered", multiple=True, help="A published set this model helped to choose, e.g. imagenet-a."),
)
about_images = _options(
    click.option("--kind", help="How to read IMAGES, where its layout does not say: see shiftproof list image-sets."),
    click.option("--labels", help="Labels instead of those of the layout: a ReaL JSON or an .npy file."),
    click.option("--label", help="One class, by wnid or name, for all images."),
    click.option("--allow-outside", is_flag=True, help="A manifest may name files outside its folder."),
    click.option(
        "--max-pixels",
        type=click.IntRange(1),
        expose_value=False,
        callback=_limit_pixels,
        help="Larger images are set aside unread.  [default: 120000000]",
    ),
)
about_store = click.option("--store", default="runs", show_default=True, help="Folder of predictions.")
about_predicting = _options(
    click.option(
        "--keep", type=click.Choice(["top5", "logits", "features"]), help="What to store; at least what the studies need."
    ),
    click.option("--half", is_flag=True, help="Store logits and features as float16: half the space, see docs/store.md."),
    click.option("--batch-size", type=click.IntRange(1), help="Images given to the model at a time; its own choice else."),
    click.option("--workers", type=click.IntRange(0), help="Processes that prepare images; as many as it takes else."),
    click.option("--strict", is_flag=True, help="Stop at the first image that cannot be read instead of setting it aside."),
    click.option("--quiet", is_flag=True, help="No progress."),
)
about_matching = _options(
    click.option(
        "--scored",
        type=click.Choice(["full", "subset"]),
        default="full",
        show_default=True,
        help="Score all classes of the model, or only those of the images (200 of 1000).",
    ),
    click.option(
        "--unmatched",
        type=click.Choice(["error", "unlabelled", "wrong"]),
        default="error",
        show_default=True,
        help="What becomes of images whose class the model lacks.",
    ),
    click.option(
        "--merge",
        help='JSON of groups that count as one class, as {"dog": ["n02085620", ...]}; or coco, imagenet-vid or ytbb.',
    ),
)
"""Among which classes answers are scored."""

about_scoring = _options(
    about_matching,
    click.option("--only-classes", help="Only IMAGES of these classes: imagenet-a, imagenet-o, imagenet-r, or a file."),
    click.option("--above", help="Only IMAGES of kinds of these classes, labelled with them: coco, or a file of wnids."),
    click.option(
        "--cluster",
        help="What is one case for intervals and tests: a fact of the images such as patient, a CSV of id and cluster, "
        "or image; clips, versions of one photo and duplicates that curate duplicates found are known by themselves.",
    ),
)
"""Among which classes answers are scored, of which images, and which of these are one case."""

about_studies = _options(
    click.option("--studies", help="Comma-separated; all that fit where not given: see shiftproof list studies."),
    click.option("--unreviewed", help="IMAGES before people reviewed them: every study is asked of this set too."),
    about_scoring,
    click.option(
        "--thorough-calibration", is_flag=True, help="Likelihood and what a temperature would mend, from all logits."
    ),
    click.option(
        "--published-bins", is_flag=True, help="Leave the last bin out of RMS calibration errors, as ImageNet-A's code does."
    ),
)
about_pictures = _options(
    click.option("--edition", help="Whose strengths, see shiftproof list editions; by the size of pictures and model else."),
    click.option(
        "--at",
        type=click.Choice(["picture", "model-size", "image"]),
        default="picture",
        show_default=True,
        help="What is changed: the edition's cut of the image, the model's own, or the image as it is.",
    ),
    click.option("--output", type=click.Choice(["raw", "jpeg85"]), help="Pixels as they are, or after the published save."),
    click.option("--seed", type=int, default=0, show_default=True, help="Where the random numbers start."),
    click.option("--scale-strengths", is_flag=True, help="Lengths grow with the picture: for sizes that no edition has."),
    click.option("--frost-folder", type=click.Path(), help="Frost pictures to use instead of our own."),
)
"""How pictures are cut and changed, for studies and for written sets."""

about_corruptions = _options(
    click.option(
        "--corruptions",
        default="imagenet-c",
        show_default=True,
        help="imagenet-c (the 15), all (the 19), a group such as noise, or names, comma-separated.",
    ),
    click.option("--severities", default="1,2,3,4,5", show_default=True, help="Some of 1 to 5, comma-separated."),
)
about_perturbations = _options(
    click.option(
        "--perturbations",
        default="imagenet-p",
        show_default=True,
        help="imagenet-p (the 10), all (the 14), or names, comma-separated.",
    ),
    click.option("--levels", default="1", show_default=True, help="Levels of the noise sequences, some of 1 to 3."),
)
about_shifts = _options(
    about_corruptions,
    about_perturbations,
    about_pictures,
    click.option(
        "--baseline", help="Whose errors others are divided by: a stored model, or alexnet for the published ones."
    ),
    click.option(
        "--clean-images",
        help="Unchanged images, for a set that holds corrupted ones; ordinary photos, for natural-adversarial.",
    ),
    click.option(
        "--clean-output",
        type=click.Choice(["raw", "jpeg85"]),
        default="raw",
        show_default=True,
        help="Clean images as they are, as published, or after the same save as corrupted ones.",
    ),
    click.option("--sequences", type=click.IntRange(1), default=100, show_default=True, help="Images to perturb."),
    click.option("--budget", type=click.IntRange(1), help="Forward passes to spend on corruptions, spread over all cells."),
    click.option(
        "--precision",
        type=click.FloatRange(0, min_open=True),
        help="Sampling error in points to reach: half-width of the mean's 95 % interval for exactly these photos, without "
        "what a --baseline that was sampled too leaves open.",
    ),
)
"""What the studies of corruptions and perturbations can be told."""

about_training = click.option("--training", help="Images the model was trained on, for detectors that learn.")
about_parameters = _options(
    click.option("--preset", default="authors", show_default=True, help="Whose parameters: authors, openood, pytorch-ood."),
    click.option("--set", "chosen", multiple=True, help="A detector's parameter, as knn.neighbours=50; repeatable."),
)
about_detectors = _options(
    about_training,
    click.option("--detectors", help="Comma-separated, msp+vim for two as one; all that can be had where not given."),
    about_parameters,
)
"""Which detectors, and how they are made."""

about_other_images = _options(
    click.option(
        "--images", "more_images", multiple=True, help="More images of the known classes, as DIR or NAME=DIR; repeatable."
    ),
    click.option(
        "--shifted",
        multiple=True,
        help="The known classes otherwise: NAME=DIR, or a corruption of IMAGES as fog:3; repeatable.",
    ),
    click.option("--out-images", multiple=True, help="Images of other classes, as DIR or NAME=DIR; repeatable."),
)
about_novelty = _options(
    about_other_images,
    about_detectors,
    click.option("--against", default="msp", show_default=True, help="The detector that others are compared with."),
    click.option(
        "--rejected",
        type=SHARE,
        default=0.75,
        show_default=True,
        help="Share of the outside images to reject, when correct answers that go with them are counted.",
    ),
    click.option("--tpr", type=SHARE, default=0.95, show_default=True, help="Share to find when false alarms are counted."),
    click.option("--risk", type=SHARE, default=0.05, show_default=True, help="Share of answers that may be wrong."),
    click.option(
        "--aupr",
        "area",
        type=click.Choice(["average-precision", "trapezoid"]),
        default="average-precision",
        show_default=True,
        help="As which area AUPR is taken.",
    ),
    click.option(
        "--auroc-interval",
        type=click.Choice(["delong", "bootstrap"]),
        default="delong",
        show_default=True,
        help="How the interval of an AUROC is found.",
    ),
    click.option("--disagree", help="Two detectors, as vim,knn, to show disagreements of; the best and --against else."),
    click.option(
        "--random-networks",
        type=click.IntRange(0),
        default=0,
        show_default=True,
        help="Networks of the same architecture that never learned anything, to ask the same of.",
    ),
    click.option(
        "--random-fan",
        type=click.Choice(["in", "out"]),
        default="in",
        show_default=True,
        help="Which side of a layer sets the size of its random weights.",
    ),
    click.option("--odin-eps", type=click.FloatRange(0, min_open=True), help="Perturb inputs so far for ODIN, as 0.0014."),
    click.option(
        "--odin-normalised", is_flag=True, help="--odin-eps is on the scale of the normalised input, not of pixels 0 to 1."
    ),
    click.option("--distance-model", help="Model whose features measure the distance to the inside; MODEL itself else."),
    click.option("--groups", type=click.IntRange(5), help="Groups of images alike in distance; up to 100 where not given."),
    click.option(
        "--pairs-at", default="0,25,50,75,100", show_default=True, help="Percentiles of distance to show nearest pairs at."
    ),
    click.option(
        "--scores-at",
        default="0,25,50,75,100",
        show_default=True,
        help="Percentiles of scores to show images of each set at.",
    ),
    click.option(
        "--examples",
        type=click.IntRange(0, 48),
        default=6,
        show_default=True,
        help="Images of each set, either way, to show disagreements of.",
    ),
)
"""What the study of novelty can be told."""

about_frames = _options(
    click.option(
        "--largest-k", type=click.IntRange(1, 1000), default=10, show_default=True, help="Frames before and after an anchor."
    ),
    click.option("--without-anchor", is_flag=True, help="The neighbours alone, as Eq. 1 of the pm-k paper asks."),
    click.option(
        "--beside",
        type=click.Choice(["imagenet-vid", "ytbb"]),
        default="imagenet-vid",
        show_default=True,
        help="Published models whose line robustness over time is measured from.",
    ),
    click.option(
        "--published-intervals", is_flag=True, help="Every anchor counts as a clip of its own, as in the published tables."
    ),
)
"""What the study of frames can be told."""

about_detection = click.option(
    "--iou",
    default="0.5,0.75,coco",
    show_default=True,
    help="Overlaps that count as found: numbers, coco (the mean over ten), ilsvrc (less for tiny boxes); the first is used "
    "for classes, sizes, frames and corruptions.",
)
"""What the studies of object detection can be told."""

about_objects = _options(
    click.option(
        "--looks", default="crop,alone,enlarged", show_default=True, help="How objects are shown beside their whole image."
    ),
    click.option(
        "--padding",
        type=click.FloatRange(0),
        default=0.0,
        show_default=True,
        help="What is shown around the box of an object, as a share of its sides.",
    ),
    click.option("--each-object", is_flag=True, help="Every object apart, not one box over all of a class in an image."),
    click.option("--beside-boxes", help="Another boxed set, to compare how much of their images objects fill."),
    click.option(
        "--crop-sizes",
        default="224,448",
        show_default=True,
        help="Show crops at their scale factor times these sides, as ImageNet-A-Plus does; none leaves it out.",
    ),
    click.option(
        "--sizes",
        default="96,128,160,192,224,288,384,448",
        show_default=True,
        help="Input sizes to ask a model at, beside its own: sides of squares, or height and width as 600x800.",
    ),
    click.option(
        "--small-pictures",
        is_flag=True,
        help="Shrink pictures to --sizes and enlarge them to the model's input; done anyway where it takes one size only.",
    ),
)
"""What the studies of objects and of input sizes can be told."""

about_looking = _options(
    click.option(
        "--looked-at",
        type=click.IntRange(1),
        default=50,
        show_default=True,
        help="Mistakes, and as many right answers, to make heat maps of.",
    ),
    click.option(
        "--look-by",
        type=click.Choice(["grad-cam", "class-activation", "occlusion"]),
        help="How heat maps are made; the best that the model allows else.",
    ),
    click.option(
        "--hottest", type=SHARE, default=0.1, show_default=True, help="Share of what a model sees that is its hot region."
    ),
)
"""What the study of heat maps can be told."""

about_output = _options(
    click.option("--json", "as_json", is_flag=True, help="Print everything as JSON."),
    click.option("--csv", type=click.Path(dir_okay=False), help="Also write the measurements as CSV."),
    click.option("--parquet", type=click.Path(dir_okay=False), help="Also write the measurements as Parquet."),
)
about_writing = _options(
    click.option("--workers", type=click.IntRange(0), help="Processes that write; as many as it takes else."),
    click.option("--limit", type=click.IntRange(1), help="So many images, spread evenly over the set."),
    click.option("--quiet", is_flag=True, help="No progress."),
)
as_json_option = click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
model_and_images = _options(click.argument("model"), click.argument("images"), about_model, about_images)
"""What every command that may load a model begins with."""
reviewers_option = click.option(
    "--reviewers-each",
    type=click.IntRange(1),
    help="People who judge each item; 2 else. With --verify flagged the least number for each flagged item; 3 else.",
)
verify_option = click.option(
    "--verify",
    type=click.Choice(["flagged"]),
    help="One person reads each item, and all people judge what that one would not keep or was unsure about.",
)
instructions_option = click.option(
    "--instructions",
    metavar="FILE",
    help="What people read before they begin, instead of our own: a text file, with # for headings and - for lists.",
)
known_option = click.option(
    "--known",
    metavar="IMAGES",
    help="Images whose answer is known, to train and to check people: a manifest with role and answer.",
)

about_filters = _options(
    click.option(
        "--filter",
        "filters",
        multiple=True,
        required=True,
        metavar="MODEL",
        help="A model that decides, such as lite:0, with options of its own as onnx:FILE?prepare=imagenet,size=244; "
        "repeatable.",
    ),
    trust_option,
    click.option(
        "--only-classes", help="Take answers over these classes alone: imagenet-a, imagenet-o, imagenet-r, or a file."
    ),
    click.option(
        "--without-classes", help="Leave classes out: a table with the columns wnid and reason, such as rare or dated."
    ),
    click.option("--per-class", type=click.IntRange(1), help="Candidates of each class, at most; all where not given."),
)
"""Which models choose what people look at, and among which classes they answer."""

about_asking = _options(
    click.option("--title", help="What reviewers read above the images."),
    click.option("--target", type=click.IntRange(1), help="Images of each class that people should keep."),
    reviewers_option,
    verify_option,
    instructions_option,
    known_option,
)
"""What is asked of people about the images that are left."""
