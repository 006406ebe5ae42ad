"""Options as typed fields, each said once: the library takes the dataclasses, the command line is made from their fields.

Nothing here imports more than the standard library, so that help is instant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from functools import cache
from inspect import Parameter, Signature, get_annotations
from pathlib import PurePath
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar, dataclass_transform, get_args, get_origin

from shiftproof.errors import BadInput

T = TypeVar("T")
KindT = TypeVar("KindT")


class Bounds(NamedTuple):
    """The range of a number; an open end is not in it."""

    least: float | None = None
    most: float | None = None
    open_below: bool = False
    open_above: bool = False

    def check(self, what: str, value: float | tuple[float, ...]) -> None:
        """BadInput where a number, or one of several, is out of range."""
        numbers = value if isinstance(value, tuple) else (value,)
        # what is no number lies in no range
        low = any(
            self.least is not None and (not one >= self.least or (self.open_below and one == self.least)) for one in numbers
        )
        high = any(
            self.most is not None and (not one <= self.most or (self.open_above and one == self.most)) for one in numbers
        )
        if low or high:
            some = "some of " if isinstance(value, tuple) else ""
            raise BadInput(f"{what} should be {some}{self.told}, got {value}")

    @property
    def told(self) -> str:
        """The range in words.

        >>> Bounds(1, 5).told, Bounds(0, 1, open_above=True).told, Bounds(0, open_below=True).told
        ('1 to 5', 'at least 0 and below 1', 'above 0')
        """
        if None not in (self.least, self.most) and not self.open_below and not self.open_above:
            return f"{self.least:g} to {self.most:g}"
        low = None if self.least is None else f"{'above' if self.open_below else 'at least'} {self.least:g}"
        high = None if self.most is None else f"{'below' if self.open_above else 'at most'} {self.most:g}"
        return " and ".join(end for end in (low, high) if end)


SHARE = Bounds(0, 1, open_below=True, open_above=True)
POSITIVE = Bounds(0, open_below=True)
DEFAULT_MINUTES = 3.0
OTHER_TABLES = frozenset(
    {".arrow", ".feather", ".gz", ".json", ".jsonl", ".npy", ".npz", ".ods", ".tsv", ".xls", ".xlsx", ".zip"}
)
"""Endings of files that programs would read as something else than CSV."""
STORE = "Folder of stored predictions."
CORRUPTIONS = "imagenet-c (the 15), c-bar, cifar-c-bar (10 each), all, a group such as noise, or names, comma-separated."
SEVERITIES = "Some of 1 to 5, comma-separated."
FILTERS = "A filter model, e.g. lite:0, with options of its own as onnx:FILE?preprocess=imagenet,size=244; repeatable."
DATABASE = "A database of votes, such as postgresql://user@host/name.  [default: a file in the project]"


class Told(NamedTuple):
    """What is known of an option besides its name, type and default."""

    help: str  # what comes before a colon is the same in every command that has the option
    choices: tuple[str, ...] = ()  # where the type does not list them
    bounds: Bounds | None = None
    metavar: str | None = None
    flags: tuple[str, ...] = ()  # as typed, where that is not the field's name
    repeatable: bool = False  # given several times, each a value; otherwise lists are comma-separated
    common: bool = False  # shown by --help; the others by --help-all
    is_path: bool = False


def option(default: Any, help: str, **told: Any) -> Any:  # noqa: A002 the word of every library of options
    """A dataclass field that is an option."""
    return field(default=default, metadata={"told": Told(help, **told)})


def required(help: str, **told: Any) -> Any:  # noqa: A002
    """A dataclass field that is an option which must be given."""
    return field(metadata={"told": Told(help, common=True, **told)})


def of_class(function: Callable[[type[KindT]], T]) -> Callable[[type[KindT]], T]:
    """A function of a class, called once for each; `cache` alone is typed as if classes were hashed as their instances."""
    return cache(function)  # type: ignore[return-value]


@of_class
def _signature(kind: type[Frozen]) -> Signature:
    return Signature(
        [
            Parameter(
                one.name,
                Parameter.KEYWORD_ONLY,
                default=Parameter.empty if one.default is MISSING else one.default,
                annotation=one.type,
            )
            for one in fields(kind)
        ]
    )


class _SignatureOfClass:
    """What ``help`` and ``inspect.signature`` show of a class."""

    def __get__(self, _: object, kind: type[Frozen]) -> Signature:
        return _signature(kind)


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Frozen:
    """Every subclass is a dataclass with keyword-only fields that cannot be set again.

    What ``@dataclass(frozen=True)`` would generate for each of seventy classes, in most of the time that help takes, is
    written here once for all.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    __signature__ = _SignatureOfClass()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        dataclass(kw_only=True, init=False, eq=False, repr=False)(cls)

    def __init__(self, **values: Any) -> None:
        bound = _signature(type(self)).bind(**values)
        bound.apply_defaults()
        vars(self).update(bound.arguments)
        self.__post_init__()

    def __post_init__(self) -> None:
        """Checks of the values together."""

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def _compared(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self) if one.compare}

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, Frozen) and self._compared() == other._compared()

    def __hash__(self) -> int:
        return hash((type(self), *self._compared().values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._compared().items())})"


class Options(Frozen):
    """Options that belong together; `given` are the names of those that somebody chose."""

    TITLE: ClassVar[str] = ""
    KEYWORD: ClassVar[str | None] = None
    """By which jobs take these whole; an empty one: each field by its own name; None: each job in a way of its own."""

    given: frozenset[str] = field(default=frozenset(), compare=False)

    def __post_init__(self) -> None:
        changed = (one.name for one in fields(self) if "told" in one.metadata and getattr(self, one.name) != one.default)
        object.__setattr__(self, "given", self.given.union(changed))
        for one in fields(self):
            told: Told | None = one.metadata.get("told")
            value = getattr(self, one.name)
            if told is not None and told.bounds is not None and value is not None:
                told.bounds.check(one.name.replace("_", " "), value)
            choices = choices_of(type(self)).get(one.name)
            if choices and value is not None and value not in choices:
                raise BadInput(f"{as_typed(one.name)} should be {' or '.join(choices)}, got {value!r}")

    def refuse(self, names: Iterable[str], reason: str, advice: str) -> None:
        """BadInput where one of these was given, which would otherwise be passed over in silence."""
        given = [as_typed(name) for name in names if name in self.given]
        if given:
            raise BadInput(f"{reason}, so {' and '.join(given)} cannot be asked for; {advice}")


@of_class
def hints_of(kind: type[object]) -> Mapping[str, Any]:
    """The types of fields by name, those of each base class evaluated once."""
    inherited = {name: hint for base in reversed(kind.__mro__[1:-1]) for name, hint in hints_of(base).items()}
    return {**inherited, **get_annotations(kind, eval_str=True)}


@of_class
def choices_of(kind: type[Options]) -> Mapping[str, tuple[str, ...]]:
    """The values that options can take, by name, where they are listed: by their types or beside them."""
    hints, found = hints_of(kind), {}
    for one in fields(kind):
        told: Told | None = one.metadata.get("told")
        hint = hints[one.name]
        parts = (hint,) if get_origin(hint) in (Literal, tuple) else get_args(hint)
        values = tuple(value for part in parts if get_origin(part) is Literal for value in get_args(part))
        if told is not None and (told.choices or values):
            found[one.name] = told.choices or values
    return found


def written_in(kind: type[Options], name: str) -> type[Options]:
    """The class that an option of these is written in, which may be a base."""
    bases = (base for base in kind.__mro__ if issubclass(base, Options))
    return next(base for base in bases if name in get_annotations(base))


def every_class(root: type[Options]) -> Iterator[type[Options]]:
    """All classes of options that are loaded."""
    yield root
    for kind in root.__subclasses__():
        yield from every_class(kind)


def as_typed(name: str) -> str:
    """The name of a field as it is typed.

    >>> as_typed("clean_images")
    '--clean-images'
    """
    return f"--{name.replace('_', '-')}"


def spelled(options: Options) -> list[str]:
    """The options that were given, as they are typed.

    >>> spelled(ModelSettings(name="mine", augmented=("fog", "snow"), rotated=True))
    ['--name', 'mine', '--rotated', '--augmented', 'fog', '--augmented', 'snow']
    """
    return [word for words in each_spelled(options).values() for word in words]


def each_spelled(options: Options) -> dict[str, tuple[str, ...]]:
    """The words of every option that was given, by the name it is typed with."""
    given: dict[str, tuple[str, ...]] = {}
    for one in fields(options):
        value, told = getattr(options, one.name), one.metadata.get("told")
        if told is None or one.name not in options.given or value is False:
            continue
        typed = told.flags[0] if told.flags else as_typed(one.name)
        values = value if isinstance(value, tuple) else (value,)
        if value is True:
            given[typed] = (typed,)
        elif told.repeatable:
            given[typed] = tuple(word for each in values for word in (typed, str(each)))
        else:
            given[typed] = (typed, ",".join(map(str, values)))
    return given


class ModelSettings(Options):
    """What a model spec such as ``onnx:model.onnx`` leaves open."""

    TITLE: ClassVar[str] = "Model"
    KEYWORD: ClassVar[str | None] = "model_options"
    OF_CLASSIFIERS: ClassVar[tuple[str, ...]] = (
        *("gives", "features", "extra_output", "rotated", "scores", "channels_last", "fill"),
        *("proposals", "max_proposals", "min_side", "proposal_output", "adapt"),
    )
    """Those that do not apply to object detectors."""
    NO_IDENTITY: ClassVar[frozenset[str]] = frozenset(
        {
            *("trust", "device", "scores", "channels_last", "threads"),
            *("score_threshold", "nms_iou", "max_detections", "fill_seed"),
        }
    )
    """Those that do not say which model it is."""

    name: str | None = option(None, "Name of the model in results.", common=True)
    preprocess: str | None = option(
        None, "Preprocessing: a preset or key=value pairs, e.g. imagenet,size=244 (see docs/models.md).", common=True
    )
    classes: str | None = option(
        None, "File with the names or wnids of the model's outputs, one a line, or JSON.", common=True
    )
    gives: Literal["logits", "probabilities", "scores"] | None = option(None, "What the outputs are.")
    features: str | None = option(None, "Tensor or layer to take features from.  [default: found where possible]")
    extra_output: str | None = option(None, "Further output to keep, e.g. a confidence branch or a rotation head.")
    rotated: bool = option(
        False, "--extra-output is a rotation head: run it on every image rotated by 0, 90, 180 and 270 degrees."
    )
    weights: str | None = option(None, "Checkpoint of the named architecture; .safetensors is safest.")
    trust: bool = option(
        False, "Run a model file that is a program (TorchScript, exported): it can do all that you can on this machine."
    )
    device: str | None = option(None, "cpu, cuda, or an execution provider of onnxruntime.", common=True)
    precision: str = option(
        "float32", "Floating-point precision of torch models: float32, bfloat16 or float16 (autocast), tf32 (CUDA)."
    )
    scores: str | None = option(None, "Output that holds the class scores, where a model has several.")
    boxes: str | None = option(
        None, "MODEL is an object detector; the layout of its outputs, as yolox, or auto: see docs/models.md.", common=True
    )
    score_threshold: float | None = option(None, "Minimum box score.  [default: 0.01]", bounds=Bounds(0, 1))
    nms_iou: float | None = option(None, "IoU threshold for non-maximum suppression.", bounds=Bounds(0, 1))
    max_detections: int | None = option(None, "Maximum number of boxes per image.  [default: 100]", bounds=Bounds(1))
    fill: Literal["random", "empty"] | None = option(
        None,
        "boxes: and proposals: only: how classes without a detection are ranked, at random or not at all.  "
        "[default: random]",
    )
    fill_seed: int = option(0, "Random seed of --fill.")
    proposals: str | None = option(None, "proposals:CLASSIFIER only: source of its crops, an object detector or grid.")
    max_proposals: int | None = option(None, "Maximum number of crops per image.  [default: 20]", bounds=Bounds(1))
    min_side: int | None = option(None, "Minimum side of a crop, in pixels.  [default: 10]", bounds=Bounds(1))
    proposal_output: Literal["classes", "most-confident"] | None = option(
        None,
        "How crops are pooled: the class of each by confidence, or all scores of the most confident crop.  "
        "[default: classes]",
    )
    adapt: str | None = option(
        None,
        "Test-time adaptation recipe, e.g. tta or bn-adapt: the model adapts to test images without their labels; "
        "see docs/training.md.",
    )
    channels_last: bool = option(
        False, "Channels-last memory layout of torch models; without it, convolutional ones on CUDA below float32 have it."
    )
    threads: int | None = option(
        None, "Threads of the model, all batches together.  [default: all cores]", bounds=Bounds(1, 4096)
    )
    trained_on: tuple[str, ...] = option(
        (), "A dataset that this model was trained on, e.g. imagenet-train; printed in reports; repeatable.", repeatable=True
    )
    augmented: tuple[str, ...] = option((), "An augmentation used in training; repeatable.", repeatable=True)
    filtered: tuple[str, ...] = option(
        (), "A published dataset that this model was a filter model of, e.g. imagenet-a; repeatable.", repeatable=True
    )


class DatasetSettings(Options):
    """How a dataset is read where its layout does not say."""

    TITLE: ClassVar[str] = "Dataset"
    KEYWORD: ClassVar[str | None] = "dataset_options"

    kind: str | None = option(
        None, "How to read DATASET, where its layout does not say: see shiftproof list datasets.", common=True
    )
    labels: str | None = option(
        None, "Labels instead of those of the layout: a ReaL JSON, a text or an .npy file, or none.", common=True
    )
    label: str | None = option(None, "One class, by wnid or name, for all images.")
    allow_outside: bool = option(False, "Let a manifest name files outside its folder.")
    max_pixels: int | None = option(None, "Skip larger images unread.  [default: 120000000]", bounds=Bounds(1))


class MatchingSettings(Options):
    """How labels and outputs are matched."""

    TITLE: ClassVar[str] = "Scoring"
    KEYWORD: ClassVar[str | None] = "matching"

    scored: Literal["full", "subset"] = option(
        "full",
        "Label space: all classes of the model, or only those of the dataset (e.g. 200 of 1000).",
        common=True,
    )
    unmatched: Literal["error", "unlabelled", "wrong"] = option("error", "How to treat images whose class the model lacks.")
    class_map: str | None = option(
        None,
        'Classes of the dataset by their names in the model: JSON as {"kitty": "tabby"}, or near for similar names.',
    )
    class_groups: str | None = option(
        None,
        'Class groups that are scored as one class: JSON as {"dog": ["n02085620", ...]}, or coco, imagenet-vid or ytbb.',
    )


class ImageChoice(Options):
    """Which images, and what is one cluster."""

    TITLE: ClassVar[str] = "Scoring"
    KEYWORD: ClassVar[str | None] = "images"

    only_classes: str | None = option(None, "Only images of these classes: imagenet-a, imagenet-o, imagenet-r, or a file.")
    coarse_classes: str | None = option(
        None, "Only hyponyms of these classes in WordNet, relabelled with them: coco, or a file of wnids."
    )
    cluster: str | None = option(
        None,
        "Cluster variable for confidence intervals and tests: a metadata field such as patient, a CSV of id and cluster, "
        "or image.  [default: clips, versions of one photo and duplicates that curate duplicates found]",
        common=True,
    )


class ScoringSettings(ImageChoice, MatchingSettings):
    """How labels and outputs are matched, of which images, and what is one cluster."""

    KEYWORD: ClassVar[str | None] = "scoring"


class Quiet(Options):
    """Whether progress is shown."""

    TITLE: ClassVar[str] = "Output"

    quiet: bool = option(False, "No progress.", common=True)


class WorkerSettings(Quiet):
    """How much is done at once."""

    TITLE: ClassVar[str] = "Work"

    workers: int | None = option(
        None, "Processes that read, preprocess and write images.  [default: as needed]", bounds=Bounds(0)
    )


class EngineSettings(Options):
    """Where the work is done."""

    TITLE: ClassVar[str] = "Engine"
    KEYWORD: ClassVar[str | None] = "engine"

    engine: str = option(
        "local", "Where models run: local, ray, ray://HOST:PORT as ray start prints it, or slurm; see docs/scale.md."
    )
    worker_cpus: int = option(1, "CPUs of each worker of the engine.", bounds=Bounds(1))
    worker_gpus: float = option(0.0, "GPUs of each worker of the engine; 0.5 is half of one.", bounds=Bounds(0))
    max_workers: int | None = option(
        None,
        "Maximum number of workers of the engine.  [default: all that a Ray cluster has room for, 8 jobs of Slurm]",
        bounds=Bounds(1),
    )
    slurm: tuple[str, ...] = option(
        (), "A parameter of the Slurm jobs, e.g. partition=gpu or time=120; repeatable.", repeatable=True
    )
    dashboard: bool = option(False, "Print the address of Ray's dashboard.")


class PredictionSettings(WorkerSettings):
    """How predictions are made and what of them is stored."""

    TITLE: ClassVar[str] = "Predicting"
    KEYWORD: ClassVar[str | None] = "prediction"

    keep: Literal["top5", "logits", "features"] | None = option(
        None, "What to store of each prediction; at least what the studies need.", common=True
    )
    half: bool = option(False, "Store logits and features as float16: half the space, see docs/store.md.")
    batch_size: int | None = option(None, "Images per batch.  [default: chosen by the model]", bounds=Bounds(1))
    strict: bool = option(False, "Stop at the first image that cannot be read instead of skipping it.")

    @property
    def precision(self) -> Literal["float32", "float16"]:
        """Of stored logits and features."""
        return "float16" if self.half else "float32"


class ShardSettings(Options):
    """This machine's part of the work."""

    TITLE: ClassVar[str] = "Predicting"

    shard: str = option(
        "1/1", "This machine's part of the work, as 2/8; join the stores later with shiftproof merge.", common=True
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        part, _, parts = self.shard.partition("/")
        if not (part.isdigit() and parts.isdigit() and 1 <= int(part) <= int(parts)):
            raise BadInput(f"--shard should be i/n with 1 <= i <= n, as 2/8; got {self.shard!r}")

    @property
    def part(self) -> tuple[int, int]:
        """Which of how many."""
        part, _, parts = self.shard.partition("/")
        return int(part), int(parts)


class EditionSettings(Options):
    """Which edition of severity parameters, and the seed."""

    TITLE: ClassVar[str] = "Pictures"

    edition: str | None = option(
        None,
        "Severity parameters and crop of a published dataset, see shiftproof list editions.  "
        "[default: by the size of images and model]",
    )
    seed: int = option(0, "Random seed.")


class PictureSettings(EditionSettings):
    """How pictures are cropped, corrupted and encoded."""

    at: Literal["picture", "model-size", "image"] = option(
        "picture",
        "Where the corruption is applied: after the edition's resize and crop (picture), after the model's own "
        "(model-size), or to the original image.",
    )
    encoding: Literal["raw", "jpeg85"] | None = option(
        None, "Pixels as they are (PNG files), or after the JPEG encoding of the published files (quality 85)."
    )
    scale_severity: bool = option(False, "Scale severity parameters given in pixels with the image size.")
    frost_folder: str | None = option(
        None, "Folder of frost overlays, e.g. the original ones, instead of ours.", is_path=True
    )


class CorruptionChoice(Options):
    """Which corruptions, how severe."""

    TITLE: ClassVar[str] = "Corruptions"

    corruptions: tuple[str, ...] = option(("imagenet-c",), CORRUPTIONS)
    severities: tuple[int, ...] = option((1, 2, 3, 4, 5), SEVERITIES, bounds=Bounds(1, 5))


class PerturbationChoice(Options):
    """Which perturbation sequences."""

    TITLE: ClassVar[str] = "Perturbations"

    perturbations: tuple[str, ...] = option(("imagenet-p",), "imagenet-p (the 10), all, or names, comma-separated.")
    levels: tuple[int, ...] = option((1,), "Levels of the noise sequences, some of 1 to 3.", bounds=Bounds(1, 3))


class OODParameters(Options):
    """What OOD detectors are fitted to, and with which hyperparameters."""

    TITLE: ClassVar[str] = "OOD detectors"

    training: str | None = option(None, "Training images of the model, for OOD detectors that are fitted.", common=True)
    preset: str = option("authors", "Hyperparameters of the OOD detectors, as chosen by: authors, openood, pytorch-ood.")
    set: tuple[str, ...] = option(
        (), "A hyperparameter of an OOD detector, e.g. knn.neighbours=50; repeatable.", repeatable=True
    )


class OODDetectorChoice(Options):
    """Which OOD detectors."""

    TITLE: ClassVar[str] = "OOD detectors"

    ood_detectors: tuple[str, ...] | None = option(
        None, "Comma-separated, msp+vim for an ensemble of two.  [default: all that can be computed]"
    )


class OODDatasetSettings(Options):
    """The datasets besides the in-distribution one."""

    TITLE: ClassVar[str] = "Out-of-distribution data"

    id: tuple[str, ...] = option((), "More in-distribution images, as DIR or NAME=DIR; repeatable.", repeatable=True)
    shifted: tuple[str, ...] = option(
        (),
        "Covariate-shifted images of the same classes: NAME=DIR, or a corruption of DATASET as fog:3; repeatable.",
        repeatable=True,
        common=True,
    )
    ood: tuple[str, ...] = option(
        (), "Out-of-distribution images: DIR or NAME=DIR; repeatable.", repeatable=True, common=True
    )


class OODInputs(OODDatasetSettings, OODParameters, PictureSettings):
    """All that OOD detectors are fitted and tested on."""


class LabelledImages(Options):
    """Where labelled images are, beside others that are not."""

    TITLE: ClassVar[str] = "Labelled images"

    labelled: str | None = option(
        None, "Source of labels: labelled images of the same classes, such as a validation set.", common=True
    )

    def place(self) -> str:
        """Their location; BadInput where none was named."""
        if self.labelled is None:
            raise BadInput("name labelled images of the same classes, on which the estimate is calibrated: --labelled DIR")
        return self.labelled


class StudyNames(Options):
    """Which studies."""

    TITLE: ClassVar[str] = "Studies"
    KEYWORD: ClassVar[str | None] = ""

    studies: tuple[str, ...] | None = option(
        None,
        "Comma-separated, beside accuracy; all for every study, see shiftproof list studies.  [default: those of a profile]",
        common=True,
    )
    unreviewed: str | None = option(None, "DATASET before review: every study is measured on it too.")


class TimeLimit(Options):
    """How much of a profile is run."""

    TITLE: ClassVar[str] = "Studies"
    KEYWORD: ClassVar[str | None] = ""

    minutes: float | None = option(
        None,
        "Time for a robustness profile, spread over its studies; one that was stopped goes on.  [default: 3; no limit "
        "with --studies]",
        bounds=POSITIVE,
        common=True,
    )
    full: bool = option(False, "Everything, however long it takes: all cells, all sequences.", common=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.full and self.minutes is not None:
            raise BadInput("--full takes the time it takes; leave out --minutes, or --full")

    def minutes_for(self, *, named: bool) -> float | None:
        """The minutes of a profile, or of studies that were `named`; None: no limit.

        >>> [TimeLimit().minutes_for(named=named) for named in (False, True)], TimeLimit(minutes=1).minutes_for(named=True)
        ([3.0, None], 1)
        """
        if self.full or (named and self.minutes is None):
            return None
        return DEFAULT_MINUTES if self.minutes is None else self.minutes


class ProbedModel(Options):
    """Which model is probed."""

    TITLE: ClassVar[str] = "Model"

    model: str = option("lite:0", "The model to run.", common=True)


class ForecastOptions(Options):
    """What a plan would take on so many machines."""

    TITLE: ClassVar[str] = "Forecast"

    nodes: tuple[int, ...] = option(
        (),
        "Numbers of machines to forecast hours, gigabytes and price for, as 1,10,100; also for ImageNet-C, -P, 22K.",
        bounds=Bounds(1),
    )
    rate: float | None = option(
        None,
        "Images per second of one machine.  [default: that of this machine, with --probe]",
        bounds=POSITIVE,
    )
    price: float | None = option(None, "Price of a machine for an hour.", bounds=Bounds(0))
    probe: bool = option(False, "Run the model on some images under some conditions, to measure this machine's throughput.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rate is not None and self.probe:
            raise BadInput("--rate says how fast a machine is and --probe finds it out; name one of them")
        if (self.nodes or self.price is not None) and self.rate is None and not self.probe:
            raise BadInput("say how many images a second a machine does with --rate, or let --probe measure this one")

    @property
    def wanted(self) -> bool:
        return self.rate is not None or self.probe


class StorePlace(Options):
    """Where predictions are."""

    TITLE: ClassVar[str] = "Output"
    KEYWORD: ClassVar[str | None] = ""

    store: str = option("runs", STORE, common=True)


class PredictionTable(Options):
    """Predictions as a file."""

    TITLE: ClassVar[str] = "Output"
    KEYWORD: ClassVar[str | None] = ""

    predictions: str | None = option(
        None,
        "Also write the prediction of each image as CSV, or as Parquet where the name ends in .parquet.",
        is_path=True,
        common=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        ending = PurePath(self.predictions or "").suffix.lower()
        if ending in OTHER_TABLES:
            raise BadInput(f"predictions are written as .csv or .parquet, and {self.predictions} would be neither")


class TextTables(Options):
    """Printed tables as files, for a paper or a page."""

    TITLE: ClassVar[str] = "Output"

    latex: str | None = option(None, "Also write the printed tables as LaTeX, with booktabs.", is_path=True)
    markdown: str | None = option(None, "Also write as Markdown: the printed tables.", is_path=True)


class Tables(TextTables):
    """Measurements as files; the headline numbers as texts."""

    csv: str | None = option(None, "Also write the measurements as CSV.", is_path=True)
    parquet: str | None = option(None, "Also write the measurements as Parquet.", is_path=True)


class Verbosity(Options):
    """How much is printed."""

    TITLE: ClassVar[str] = "Output"

    verbose: bool = option(False, "Print the headline numbers as tables too, and everything that was left out.", common=True)


class SubsetSettings(Options):
    """How many images."""

    TITLE: ClassVar[str] = "Dataset"
    KEYWORD: ClassVar[str | None] = ""

    limit: int | None = option(
        None, "Maximum number of images, spread evenly over the dataset.", bounds=Bounds(1), common=True
    )


class ProjectPlace(Options):
    """A review project besides the result."""

    TITLE: ClassVar[str] = "Review"
    KEYWORD: ClassVar[str | None] = ""

    project: str | None = option(None, "Also make a review project in this folder.", is_path=True, common=True)


class ManifestPlace(Options):
    """A manifest besides the result."""

    TITLE: ClassVar[str] = "Output"
    KEYWORD: ClassVar[str | None] = ""

    manifest: str | None = option(
        None,
        "Also write a manifest (.jsonl) of the images with each slice as a fact, for rules of the gate.",
        is_path=True,
        common=True,
    )


class DatabasePlace(Options):
    """Where votes are kept."""

    TITLE: ClassVar[str] = "Review"
    KEYWORD: ClassVar[str | None] = ""

    database: str | None = option(None, DATABASE, metavar="URL", common=True)


class FilterModelNames(Options):
    """The filter models."""

    TITLE: ClassVar[str] = "Filter models"

    filter: tuple[str, ...] = required(
        FILTERS,
        repeatable=True,
        metavar="MODEL",
    )


class MaybeFilterModels(Options):
    """The same where none may be named."""

    TITLE: ClassVar[str] = "Filter models"

    filter: tuple[str, ...] = option((), FILTERS, repeatable=True, metavar="MODEL", common=True)


class FeatureModel(Options):
    """A model whose features are compared."""

    TITLE: ClassVar[str] = "Model"

    feature_model: str = required(
        "Model whose stored features measure similarity: predict them with --keep features.", metavar="MODEL"
    )


class MaybeFeatureModel(Options):
    """The same where hashes alone may do."""

    TITLE: ClassVar[str] = "Model"

    feature_model: str | None = option(
        None,
        "Model whose stored features measure similarity: finds mirrored and strongly cropped copies that hashes miss.",
        metavar="MODEL",
        common=True,
    )


class DuplicateReport(Options):
    """Where duplicates are shown."""

    TITLE: ClassVar[str] = "Output"

    report: str | None = option(
        None, "Also write an HTML file that shows the pairs side by side.", is_path=True, common=True
    )


class EarlierReview(Options):
    """The review that is continued."""

    TITLE: ClassVar[str] = "Review"

    continue_from: str = required("The earlier review project.", metavar="PROJECT")
    earlier_database: str | None = option(None, DATABASE, metavar="URL", common=True)


class ComparedModels(Options):
    """Models to compare with people."""

    TITLE: ClassVar[str] = "Models"

    compared_model: tuple[str, ...] = option(
        (),
        "Of a human test: a stored model to compare with; repeatable.",
        repeatable=True,
        metavar="MODEL",
        common=True,
    )


class CorruptedLayout(Options):
    """How corrupted pictures are written."""

    TITLE: ClassVar[str] = "Output"

    layout: Literal["imagenet-c", "cifar-c"] = option(
        "imagenet-c",
        "Layout of the files: imagenet-c, a file per image (JPEG, or PNG with --encoding raw); cifar-c, an .npy array per "
        "corruption.",
        common=True,
    )


class PerturbedLayout(Options):
    """How perturbation sequences are written."""

    TITLE: ClassVar[str] = "Output"

    layout: Literal["imagenet-p", "cifar-p"] = option(
        "imagenet-p",
        "Layout of the files: imagenet-p, an .mp4 per sequence, lossy as published; cifar-p, an .npy array per "
        "perturbation, lossless.",
        common=True,
    )


class PublishedName(Options):
    """What a dataset should be."""

    TITLE: ClassVar[str] = "Check"

    published: str | None = option(
        None, "The published dataset it should be, e.g. imagenet-a.  [default: the one it matches]", common=True
    )


class CheckedStore(Options):
    """The store that is checked instead of a dataset."""

    TITLE: ClassVar[str] = "Check"

    store: str | None = option(None, STORE, common=True)


class VersionChoice(Options):
    """Which versions of a stored model."""

    TITLE: ClassVar[str] = "Model"

    all_versions: bool = option(False, "Every version of NAME, where it has several.", common=True)
