"""Pictures of a project as browsers get them: nothing else can be had under their addresses, whatever a project says."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from shiftproof.curation.project import Project
from shiftproof.errors import BadInput, listed

KINDS: Mapping[str, str] = {".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".png": "image/png", ".webp": "image/webp"}
"""Endings of files, and what browsers are told that these are: never a page or a script."""


# the time of a file tells what was put there together, or last: frames of one clip, pictures of a known answer
NO_TIME = "Thu, 01 Jan 1970 00:00:00 GMT"


def picture_headers(name: str) -> dict[str, str]:
    """What goes with a picture that pages know by a name: it never changes, so browsers may keep it."""
    return {"cache-control": "private, max-age=604800, immutable", "etag": f'"{name}"', "last-modified": NO_TIME}


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
    missing = [file for file in sorted(project.pictures) if own_picture(project, file) is None]
    if missing:
        raise BadInput(f"{project.folder} lacks {len(missing):,} of its pictures, such as {listed(missing, most=1)}")


def own_picture(project: Project, file: str) -> Path | None:
    """Where a picture lies; None where it is missing, or a link that leads out of the project."""
    try:
        path = Path(os.path.realpath(project.image(file)))
    except BadInput:
        return None
    # of os.path, which takes a name that is too long or leads in a circle for one that is missing
    return path if os.path.isfile(path) else None
