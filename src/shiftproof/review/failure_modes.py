"""What people kept, put before them once more, to say why models take it for something else."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from shiftproof.curation.project import Project, save_project
from shiftproof.curation.screens import CLARITY, FAILURE_MODES
from shiftproof.curation.sifting import Step
from shiftproof.errors import BadInput
from shiftproof.files import write_whole
from shiftproof.review.kept import kept_items
from shiftproof.review.verdicts import Verdict


def failure_mode_project(
    project: Project,
    verdicts: Mapping[str, Verdict],
    folder: str | Path,
    *,
    reviewers_each: int = 2,
    instructions: str = "",
) -> Project:
    """A review project of what people found clear in another one, with its pictures, classes and predictions."""
    if project.screen_name != CLARITY.name:
        raise BadInput(f"{project.title} asks {project.screen_name} and not whether images that models get wrong are clear")
    kept = kept_items(project, verdicts)
    if not kept:
        raise BadInput(f"nothing of {project.title} was kept so far")
    asked = dataclasses.replace(
        project,
        folder=Path(folder),
        title=f"Mistakes in {project.title}",
        screen_name=FAILURE_MODES.name,
        items=tuple(kept),
        keys={},  # those were keys to other answers
        choices=(),
        target=None,
        instructions=instructions,
        reviewers_each=reviewers_each,
        verify=None,
        making=dataclasses.replace(project.making, steps=(*project.making.steps, Step("kept by people", len(kept)))),
    )
    for picture in sorted(asked.pictures):
        write_whole(asked.folder / "images" / picture, project.image(picture).read_bytes())
    save_project(asked)
    return asked
