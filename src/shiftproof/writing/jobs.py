"""The writing of corrupted and perturbed datasets as a call, as the commands do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from shiftproof.corruptions.selection import corruptions_named, perturbations_named
from shiftproof.datasets import open_with
from shiftproof.datasets.decoding import pixel_limit
from shiftproof.datasets.image_list import ImageList, some_of
from shiftproof.datasets.perturbed import edition_for
from shiftproof.errors import BadInput
from shiftproof.options import CorruptionChoice, DatasetSettings, EngineSettings, PerturbationChoice, PictureSettings

if TYPE_CHECKING:
    from shiftproof.writing.writer import Progress, Written


def corrupt_dataset(
    dataset: str | Path | ImageList,
    destination: str | Path,
    *,
    corruptions: CorruptionChoice | None = None,
    pictures: PictureSettings | None = None,
    layout: Literal["imagenet-c", "cifar-c"] = "imagenet-c",
    limit: int | None = None,
    dataset_options: DatasetSettings | None = None,
    workers: int | None = None,
    engine: str | EngineSettings | None = None,
    progress: Progress | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Written:
    """Writes the images under corruptions into a folder, in a published layout; what is there is not made again."""
    from shiftproof.corruptions.frost_pictures import frost_pictures
    from shiftproof.runs.engines import opened_engine
    from shiftproof.writing.published import write_corrupted

    chosen, pictures = corruptions or CorruptionChoice(), pictures or PictureSettings()
    names = corruptions_named(",".join(chosen.corruptions))
    if pictures.at == "model-size":
        raise BadInput("--at model-size needs a model, and none is run here; choose picture or image")
    picture = "image" if pictures.at == "image" else None
    frost = None if pictures.frost_folder is None else frost_pictures(pictures.frost_folder)
    options = dataset_options or DatasetSettings()
    with pixel_limit(options.max_pixels), opened_engine(engine, tell) as opened:
        images = some_of(dataset if isinstance(dataset, ImageList) else open_with(dataset, options), limit)
        fit = None if pictures.edition else edition_for(images, picture=picture)
        for line in fit.told(scaled=pictures.scale_severity) if fit else ():
            tell(line)
        return write_corrupted(
            images,
            destination,
            corruptions=names,
            severities=chosen.severities,
            edition=fit.edition if fit else str(pictures.edition),
            output=pictures.encoding,
            seed=pictures.seed,
            frost=frost,
            scale_severity=pictures.scale_severity,
            picture=picture,
            layout=layout,
            workers=workers,
            engine=opened,
            progress=progress,
        )


def perturb_dataset(
    dataset: str | Path | ImageList,
    destination: str | Path,
    *,
    perturbations: PerturbationChoice | None = None,
    edition: str | None = None,
    seed: int = 0,
    layout: Literal["imagenet-p", "cifar-p"] = "imagenet-p",
    limit: int | None = None,
    dataset_options: DatasetSettings | None = None,
    workers: int | None = None,
    engine: str | EngineSettings | None = None,
    progress: Progress | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Written:
    """Writes the images as perturbation sequences into a folder, in a published layout; what is there is not made again."""
    from shiftproof.runs.engines import opened_engine
    from shiftproof.writing.published import write_perturbed

    chosen = perturbations or PerturbationChoice()
    names = perturbations_named(",".join(chosen.perturbations))
    options = dataset_options or DatasetSettings()
    with pixel_limit(options.max_pixels), opened_engine(engine, tell) as opened:
        images = some_of(dataset if isinstance(dataset, ImageList) else open_with(dataset, options), limit)
        fit = None if edition else edition_for(images)
        for line in fit.told() if fit else ():
            tell(line)
        return write_perturbed(
            images,
            destination,
            perturbations=names,
            levels=chosen.levels,
            edition=fit.edition if fit else str(edition),
            seed=seed,
            layout=layout,
            workers=workers,
            engine=opened,
            progress=progress,
        )
