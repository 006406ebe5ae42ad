"""Pictures of a project as browsers get them: nothing else can be had under their addresses, whatever a project says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from shiftproof.curation.project import Project
from shiftproof.errors import BadInput, listed

KINDS: Mapping[str, str] = {".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".png": "image/png", ".webp": "image/webp"}
"""Endings of files, and what browsers are told that these are: never a page or a script."""


def kind_of(file: str) -> str:
    """What browsers are told that a picture is."""
    return KINDS[PurePosixPath(file).suffix]


def check_pictures(project: Project) -> None:
    """BadInput where a project names files that are no pictures of its own, as one from a stranger might."""
    strange = [
        file for file in sorted(project.pictures) if "/" in file or "\\" in file or PurePosixPath(file).suffix not in KINDS
    ]
    if strange:
        raise BadInput(
            f"pictures of {project.title} should be {listed(KINDS)} files beside each other, got {listed(strange)}"
        )


def check_all_there(project: Project) -> None:
    """BadInput where pictures of a project are missing."""
    missing = [file for file in sorted(project.pictures) if not project.image(file).is_file()]
    if missing:
        raise BadInput(f"{project.folder} lacks {len(missing):,} of its pictures, such as {listed(missing, most=1)}")
