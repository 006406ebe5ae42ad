"""Small object detectors and scenes for them: rectangles of three colours, a network of a few layers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from boxed_toys import SCENES, draw_scenes
from shiftproof.datasets import open_dataset
from shiftproof.datasets.clusters import Clustering
from shiftproof.options import ModelSettings
from shiftproof.runs.store import Store
from shiftproof.training.job import Job
from shiftproof.training.options import TrainOptions
from shiftproof.training.trainings import Request, jobs_of

FASTER, RETINA = "torchvision:fasterrcnn_resnet18_fpn", "torchvision:retinanet_resnet18_fpn"


def small_network(name: str, classes: int, regions: int) -> Any:
    """In place of the networks of torchvision: one level of features, a head of eight numbers, anchors of small objects."""
    import torch
    from torch import nn
    from torchvision.models import detection
    from torchvision.models.detection.anchor_utils import AnchorGenerator
    from torchvision.models.detection.faster_rcnn import TwoMLPHead
    from torchvision.ops import MultiScaleRoIAlign

    from shiftproof.training.detectors.networks import FasterRCNN, RetinaNet

    class Backbone(nn.Module):
        out_channels = 8

        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Sequential(
                *(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, 2, 1), nn.ReLU())
            )

        def forward(self, images: Any) -> Any:
            return {"0": self.body(images)}

    anchors = AnchorGenerator(((8, 16),), ((0.5, 1.0, 2.0),))
    torch.manual_seed(0)
    if name.startswith("retinanet"):
        return RetinaNet(detection.RetinaNet(Backbone(), classes, anchor_generator=anchors, score_thresh=0.001))
    return FasterRCNN(
        detection.FasterRCNN(
            Backbone(),
            rpn_anchor_generator=anchors,
            box_roi_pool=MultiScaleRoIAlign(["0"], 3, 2),
            box_head=TwoMLPHead(8 * 9, 8),
            box_predictor=detection.faster_rcnn.FastRCNNPredictor(8, classes + 1),
            box_batch_size_per_image=min(regions, 16),
            rpn_batch_size_per_image=32,
            rpn_pre_nms_top_n_train=50,
            rpn_pre_nms_top_n_test=50,
            box_score_thresh=0.01,
        )
    )


def scenes(folder: Path, count: int = 10) -> Path:
    """Pictures with one to three rectangles each, as a COCO file."""
    kinds = [SCENES[name] for name in ("a.png", "b.png", "d.png")]
    return draw_scenes(folder, {f"{number}.png": kinds[number % 3] for number in range(count)})


class SmallDetectors:
    """Makes jobs on the same scenes, each with an output folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.boxes, self.jobs = folder, scenes(folder / "scenes"), 0

    def __call__(self, recipe: str = "boxes", *, model: str = FASTER, dataset: Any = None, **options: Any) -> Job:
        self.jobs += 1
        said: dict[str, Any] = {"epochs": 2, "batch_size": 4, "image_size": 32, "learning_rate": 0.01} | options
        images = dataset or open_dataset(self.boxes)
        request = Request(
            model=model,
            source="small",
            model_options=ModelSettings(),
            images=images,
            outliers=None,
            clustering=Clustering(),
            options=TrainOptions(level="network", recipe=recipe, **said),
            folder=self.folder / f"out-{self.jobs}",
        )
        (job,) = jobs_of(request, Store(self.folder / "runs"))
        return job
