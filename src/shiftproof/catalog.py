"""The table of contents: every built-in by name. Reading it imports nothing.

A new entry is one line here; from then on it is listed, documented and under the contract tests.
"""

from __future__ import annotations

from shiftproof.errors import ShiftproofError, UnknownName
from shiftproof.registry import Registry

MODELS = Registry(
    "model",
    {
        "lite": "shiftproof.models.classifiers.lite:load_lite",
        "onnx": "shiftproof.models.classifiers.onnx:load_onnx",
        "torch": "shiftproof.models.classifiers.torch:load_torch",
        "timm": "shiftproof.models.classifiers.libraries:load_timm",
        "torchvision": "shiftproof.models.classifiers.libraries:load_torchvision",
        "hf": "shiftproof.models.classifiers.libraries:load_transformers",
        "clip": "shiftproof.models.classifiers.zero_shot:load_clip",
        "tflite": "shiftproof.models.classifiers.tflite:load_tflite",
        "boxes": "shiftproof.models.classifiers.boxes_as_classes:load_boxes_as_classes",
        "proposals": "shiftproof.models.classifiers.proposals:load_proposals",
        "trained": "shiftproof.training.trained:load_trained",
        "adapted": "shiftproof.training.at_test_time:load_adapted",
    },
)

OBJECT_DETECTORS = Registry(
    "object detector",
    {
        "onnx": "shiftproof.models.object_detectors.onnx:load_onnx_detector",
        "torch": "shiftproof.models.object_detectors.torch:load_torch_detector",
        "trained": "shiftproof.training.detectors.trained:load_trained_detector",
        "rpn": "shiftproof.training.detectors.trained:load_region_proposals",
        "results": "shiftproof.models.object_detectors.recorded:load_recorded",
    },
)

BOX_LAYOUTS = Registry(
    "box layout",
    {
        "yolox": "shiftproof.models.object_detectors.box_layouts:YOLOX",
        "yolox-decoded": "shiftproof.models.object_detectors.box_layouts:YOLOX_DECODED",
        "yolov5": "shiftproof.models.object_detectors.box_layouts:YOLOV5",
        "yolov8": "shiftproof.models.object_detectors.box_layouts:YOLOV8",
        "fastestdet": "shiftproof.models.object_detectors.box_layouts:FASTESTDET",
        "end2end": "shiftproof.models.object_detectors.box_layouts:END2END",
        "ssd": "shiftproof.models.object_detectors.box_layouts:SSD",
        "detr": "shiftproof.models.object_detectors.box_layouts:DETR",
        "rtdetr": "shiftproof.models.object_detectors.box_layouts:RTDETR",
    },
)

DATASETS = Registry(
    "dataset",
    {  # in the order in which recognition asks them
        "folder": "shiftproof.datasets.folder:open_folder",
        "manifest": "shiftproof.datasets.manifest:open_manifest",
        "tiny-imagenet": "shiftproof.datasets.published.imagenet:open_tiny_imagenet",
        "objectnet": "shiftproof.datasets.published.objectnet:open_objectnet",
        "vid-robust": "shiftproof.datasets.video.released:open_vid_robust",
        "ytbb-robust": "shiftproof.datasets.video.released:open_ytbb_robust",
        "coco": "shiftproof.datasets.boxed.coco:open_coco",
        "voc": "shiftproof.datasets.boxed.voc:open_voc",
        "yolo": "shiftproof.datasets.boxed.yolo:open_yolo",
        "arrays": "shiftproof.datasets.arrays:open_arrays",
        "tar": "shiftproof.datasets.tar:open_tar",
        "hf-dataset": "shiftproof.datasets.hf_dataset:open_hf_dataset",
        "imagenet-v2": "shiftproof.datasets.published.imagenet:open_imagenet_v2",
        "imagenet-p": "shiftproof.datasets.published.imagenet:open_imagenet_p",
        "clips": "shiftproof.datasets.video.clips:open_clips",
        "imagenet-c": "shiftproof.datasets.published.imagenet:open_imagenet_c",
        "imagenet-ood": "shiftproof.datasets.published.imagenet:open_imagenet_ood",
        "openimage-o": "shiftproof.datasets.published.imagenet:open_openimage_o",
        "ilsvrc-loc": "shiftproof.datasets.boxed.voc:open_ilsvrc_loc",
        "imagenet-vid": "shiftproof.datasets.boxed.voc:open_imagenet_vid",
        "youtube-bb": "shiftproof.datasets.video.youtube_bb:open_youtube_bb",
        "frames": "shiftproof.datasets.video.clips:open_frames",
        "perturbed": "shiftproof.datasets.perturbed:open_perturbed",
        "crops": "shiftproof.datasets.boxed.crops:open_crops",
        "crop-sources": "shiftproof.datasets.boxed.crops:open_crop_sources",
        "boxed": "shiftproof.datasets.boxed.boxes:open_with_boxes",
        "stylized": "shiftproof.datasets.stylized:open_stylized",
    },
)

CORRUPTIONS = Registry(
    "corruption",
    {
        "gaussian_noise": "shiftproof.corruptions.noise:GAUSSIAN_NOISE",
        "shot_noise": "shiftproof.corruptions.noise:SHOT_NOISE",
        "impulse_noise": "shiftproof.corruptions.noise:IMPULSE_NOISE",
        "defocus_blur": "shiftproof.corruptions.blur:DEFOCUS_BLUR",
        "glass_blur": "shiftproof.corruptions.blur:GLASS_BLUR",
        "motion_blur": "shiftproof.corruptions.blur:MOTION_BLUR",
        "zoom_blur": "shiftproof.corruptions.blur:ZOOM_BLUR",
        "snow": "shiftproof.corruptions.weather:SNOW",
        "frost": "shiftproof.corruptions.weather:FROST",
        "fog": "shiftproof.corruptions.weather:FOG",
        "brightness": "shiftproof.corruptions.weather:BRIGHTNESS",
        "contrast": "shiftproof.corruptions.digital:CONTRAST",
        "elastic_transform": "shiftproof.corruptions.digital:ELASTIC_TRANSFORM",
        "pixelate": "shiftproof.corruptions.digital:PIXELATE",
        "jpeg_compression": "shiftproof.corruptions.digital:JPEG_COMPRESSION",
        "speckle_noise": "shiftproof.corruptions.noise:SPECKLE_NOISE",
        "gaussian_blur": "shiftproof.corruptions.blur:GAUSSIAN_BLUR",
        "spatter": "shiftproof.corruptions.weather:SPATTER",
        "saturate": "shiftproof.corruptions.digital:SATURATE",
        "caustic_refraction": "shiftproof.corruptions.c_bar:CAUSTIC_REFRACTION",
        "inverse_sparkles": "shiftproof.corruptions.c_bar:INVERSE_SPARKLES",
        "sparkles": "shiftproof.corruptions.c_bar:SPARKLES",
        "perlin_noise": "shiftproof.corruptions.c_bar:PERLIN_NOISE",
        "blue_noise_sample": "shiftproof.corruptions.c_bar:BLUE_NOISE_SAMPLE",
        "plasma_noise": "shiftproof.corruptions.c_bar:PLASMA_NOISE",
        "checkerboard_cutout": "shiftproof.corruptions.c_bar:CHECKERBOARD_CUTOUT",
        "cocentric_sine_waves": "shiftproof.corruptions.c_bar:COCENTRIC_SINE_WAVES",
        "single_frequency_greyscale": "shiftproof.corruptions.c_bar:SINGLE_FREQUENCY_GREYSCALE",
        "brownish_noise": "shiftproof.corruptions.c_bar:BROWNISH_NOISE",
        "circular_motion_blur": "shiftproof.corruptions.c_bar:CIRCULAR_MOTION_BLUR",
        "lines": "shiftproof.corruptions.c_bar:LINES",
        "pinch_and_twirl": "shiftproof.corruptions.c_bar:PINCH_AND_TWIRL",
        "ripple": "shiftproof.corruptions.c_bar:RIPPLE",
        "transverse_chromatic_abberation": "shiftproof.corruptions.c_bar:TRANSVERSE_CHROMATIC_ABBERATION",
    },
    entry="shiftproof.corruptions.entry:Corruption",
    says="description",
)

PERTURBATIONS = Registry(
    "perturbation",
    {
        "gaussian_noise": "shiftproof.corruptions.sequences:GAUSSIAN_NOISE",
        "shot_noise": "shiftproof.corruptions.sequences:SHOT_NOISE",
        "motion_blur": "shiftproof.corruptions.sequences:MOTION_BLUR",
        "zoom_blur": "shiftproof.corruptions.sequences:ZOOM_BLUR",
        "snow": "shiftproof.corruptions.sequences:SNOW",
        "brightness": "shiftproof.corruptions.sequences:BRIGHTNESS",
        "translate": "shiftproof.corruptions.sequences:TRANSLATE",
        "rotate": "shiftproof.corruptions.sequences:ROTATE",
        "tilt": "shiftproof.corruptions.sequences:TILT",
        "scale": "shiftproof.corruptions.sequences:SCALE",
        "speckle_noise": "shiftproof.corruptions.sequences:SPECKLE_NOISE",
        "gaussian_blur": "shiftproof.corruptions.sequences:GAUSSIAN_BLUR",
        "spatter": "shiftproof.corruptions.sequences:SPATTER",
        "shear": "shiftproof.corruptions.sequences:SHEAR",
    },
    entry="shiftproof.corruptions.entry:Perturbation",
    says="description",
)

EDITIONS = Registry(
    "edition",
    {
        "imagenet-224": "shiftproof.corruptions.editions:IMAGENET_224",
        "inception-299": "shiftproof.corruptions.editions:INCEPTION_299",
        "imagenet-64": "shiftproof.corruptions.editions:IMAGENET_64",
        "tiny-64": "shiftproof.corruptions.editions:TINY_64",
        "cifar-32": "shiftproof.corruptions.editions:CIFAR_32",
    },
    entry="shiftproof.corruptions.editions:Edition",
    says="about",
)

OOD_DETECTORS = Registry(
    "OOD detector",
    {
        "msp": "shiftproof.ood.scores:MSP",
        "max_logit": "shiftproof.ood.scores:MAX_LOGIT",
        "energy": "shiftproof.ood.scores:ENERGY",
        "entropy": "shiftproof.ood.scores:ENTROPY",
        "margin": "shiftproof.ood.scores:MARGIN",
        "odin": "shiftproof.ood.scores:ODIN",
        "gen": "shiftproof.ood.scores:GEN",
        "max_cosine": "shiftproof.ood.scores:MAX_COSINE",
        "gradnorm": "shiftproof.ood.scores:GRADNORM",
        "ash_b": "shiftproof.ood.activations:ASH_B",
        "ash_s": "shiftproof.ood.activations:ASH_S",
        "ash_p": "shiftproof.ood.activations:ASH_P",
        "scale": "shiftproof.ood.activations:SCALE",
        "react": "shiftproof.ood.activations:REACT",
        "dice": "shiftproof.ood.activations:DICE",
        "kl_matching": "shiftproof.ood.class_means:KL_MATCHING",
        "she": "shiftproof.ood.class_means:SHE",
        "openmax": "shiftproof.ood.openmax:OPENMAX",
        "mahalanobis": "shiftproof.ood.mahalanobis:MAHALANOBIS",
        "relative_mahalanobis": "shiftproof.ood.mahalanobis:RELATIVE_MAHALANOBIS",
        "vim": "shiftproof.ood.vim:VIM",
        "residual": "shiftproof.ood.vim:RESIDUAL",
        "knn": "shiftproof.ood.nearest_neighbours:KNN",
        "confidence": "shiftproof.ood.scores:CONFIDENCE",
        "rotation": "shiftproof.ood.scores:ROTATION",
        "rotation_upright": "shiftproof.ood.scores:ROTATION_UPRIGHT",
    },
    entry="shiftproof.ood.entry:OODDetector",
    says="description",
)

METRICS = Registry(
    "metric", "shiftproof.metrics.table:BUILT_IN", entry="shiftproof.metrics.table:MetricInfo", says="in_a_line"
)

STUDIES = Registry(
    "study",
    {
        "accuracy": "shiftproof.studies.accuracy:KIND",
        "calibration": "shiftproof.studies.calibration:KIND",
        "comparison": "shiftproof.studies.comparison:KIND",
        "corruption": "shiftproof.studies.corruption:KIND",
        "perturbation": "shiftproof.studies.perturbation:KIND",
        "temporal": "shiftproof.studies.temporal:KIND",
        "detection": "shiftproof.studies.detection:KIND",
        "detection-corruption": "shiftproof.studies.detection_corruption:KIND",
        "objects": "shiftproof.studies.objects:KIND",
        "input-sizes": "shiftproof.studies.input_sizes:KIND",
        "saliency": "shiftproof.studies.saliency:KIND",
        "natural-adversarial": "shiftproof.studies.natural_adversarial:KIND",
        "unlabelled-accuracy": "shiftproof.studies.estimate:KIND",
        "label-errors": "shiftproof.studies.labels:KIND",
        "error-slices": "shiftproof.studies.slices:KIND",
        "ood": "shiftproof.studies.ood:KIND",
    },
    entry="shiftproof.studies.kind:StudyKind",
    says="question",
)

RECIPES = Registry(
    "recipe",
    {
        "baseline": "shiftproof.training.augmentations.simple:BASELINE",
        "cutout": "shiftproof.training.augmentations.simple:CUTOUT",
        "augmix": "shiftproof.training.augmentations.policies:AUGMIX",
        "corrupted": "shiftproof.training.augmentations.simple:CORRUPTED",
        "clahe": "shiftproof.training.augmentations.preprocessing:CLAHE",
        "denoise": "shiftproof.training.augmentations.preprocessing:DENOISE",
        "noise": "shiftproof.training.augmentations.simple:NOISE",
        "randaugment": "shiftproof.training.augmentations.policies:RANDAUGMENT",
        "trivialaugment": "shiftproof.training.augmentations.policies:TRIVIALAUGMENT",
        "pixmix": "shiftproof.training.augmentations.pixmix:PIXMIX",
        "stylized": "shiftproof.training.augmentations.stylized:STYLIZED",
        "label-smoothing": "shiftproof.training.recipes:LABEL_SMOOTHING",
        "mixup": "shiftproof.training.recipes:MIXUP",
        "cutmix": "shiftproof.training.recipes:CUTMIX",
        "moex": "shiftproof.training.recipes:MOEX",
        "adversarial": "shiftproof.training.recipes:ADVERSARIAL",
        "confidence-branch": "shiftproof.training.recipes:CONFIDENCE_BRANCH",
        "rotation-head": "shiftproof.training.recipes:ROTATION_HEAD",
        "outlier-exposure": "shiftproof.training.recipes:OUTLIER_EXPOSURE",
        "reject-class": "shiftproof.training.recipes:REJECT_CLASS",
        "lora": "shiftproof.training.recipes:LORA",
        "lp-ft": "shiftproof.training.recipes:LP_FT",
        "ema": "shiftproof.training.recipes:EMA",
        "linear-probe": "shiftproof.training.averaging:LINEAR_PROBE",
        "wise-ft": "shiftproof.training.averaging:WISE_FT",
        "soup": "shiftproof.training.averaging:SOUP",
        "balanced": "shiftproof.training.averaging:BALANCED",
        "multi-label": "shiftproof.training.video:MULTI_LABEL",
        "video": "shiftproof.training.video:VIDEO",
        "subset": "shiftproof.training.choices:SUBSET",
        "split": "shiftproof.training.choices:SPLIT",
        "tta": "shiftproof.training.at_test_time:TTA",
        "bn-adapt": "shiftproof.training.at_test_time:BN_ADAPT",
        "tent": "shiftproof.training.at_test_time:TENT",
        "memo": "shiftproof.training.at_test_time:MEMO",
        "boxes": "shiftproof.training.detectors.recipe:BOXES",
    },
    entry="shiftproof.training.recipe:Recipe",
    says="description",
)

ENGINES = Registry(
    "engine",
    {
        "local": "shiftproof.runs.engines:do_here",
        "ray": "shiftproof.runs.engines.ray:open_ray",
        "slurm": "shiftproof.runs.engines.slurm:open_slurm",
    },
)

PUBLISHERS = Registry(
    "publisher",
    {
        "mlflow": "shiftproof.publishing.mlflow:publish_to_mlflow",
        "wandb": "shiftproof.publishing.wandb:publish_to_wandb",
        "huggingface": "shiftproof.publishing.huggingface:publish_to_huggingface",
    },
)
"""Where ``shiftproof publish`` takes results."""

SECTIONS = Registry(
    "section",
    {
        "human-test": "shiftproof.review.human_test_section:SECTION",
        "curation": "shiftproof.curation.section:SECTION",
        "noticed": "shiftproof.studies.ood.noticed:SECTION",
        "threshold": "shiftproof.studies.threshold.section:SECTION",
        "watch": "shiftproof.studies.guard.section:SECTION",
        "probe": "shiftproof.studies.probe.section:SECTION",
        "duplicates": "shiftproof.curation.duplicates_section:SECTION",
        "recipes": "shiftproof.training.comparison_section:SECTION",
    },
    entry="shiftproof.reports.sections:SectionMaker",
)
"""Sections of reports whose findings come from no study of the list above."""

KINDS = {
    "models": MODELS,
    "object-detectors": OBJECT_DETECTORS,
    "box-layouts": BOX_LAYOUTS,
    "datasets": DATASETS,
    "corruptions": CORRUPTIONS,
    "perturbations": PERTURBATIONS,
    "editions": EDITIONS,
    "ood": OOD_DETECTORS,
    "metrics": METRICS,
    "studies": STUDIES,
    "recipes": RECIPES,
}
"""What ``shiftproof list`` can list."""


def plugins() -> dict[str, str]:
    """Installed packages that add entries, with their versions."""
    added = (entry for registry in KINDS.values() for entry in registry.entry_points)
    return {entry.dist.name: entry.dist.version for entry in added if entry.dist}


def entries(kind: str) -> dict[str, str]:
    """Names of one kind, each with a sentence that says what it is."""
    if kind not in KINDS:
        raise UnknownName("kind of entry", kind, KINDS)
    return {name: _description(KINDS[kind], name) for name in KINDS[kind]}


def _description(registry: Registry, name: str) -> str:
    try:
        return registry.describe(name)
    except ShiftproofError as missing:
        return f"({missing})"
