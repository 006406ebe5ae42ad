"""The new classes that people kept, as a list from which a choice of classes goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shiftproof.curation.project import Project, ReviewClass
from shiftproof.curation.screens import CLASS_PAIR
from shiftproof.curation.tables import table_bytes
from shiftproof.errors import BadInput
from shiftproof.review.verdicts import Verdict
from shiftproof.writing.whole_folders import File

LIST = "classes.csv"


def kept_classes(project: Project, verdicts: Mapping[str, Verdict]) -> tuple[ReviewClass, ...]:
    """The new classes of which people kept every pair with a known class; BadInput where that is none.

    One pair that is open, or was rejected because somebody was unsure, is enough for a class to stay out.
    """
    if project.screen_name != CLASS_PAIR.name:
        raise BadInput(f"{project.title} asks {project.screen_name} and not which classes are new")
    kept = {key for key, pairs in project.by_group.items() if all(verdicts[pair.id].outcome == "kept" for pair in pairs)}
    if not kept:
        raise BadInput(f"no class of {project.title} was kept so far")
    return tuple(one for one in project.classes if one.key in kept)


def class_list(classes: Sequence[ReviewClass]) -> File:
    """A table of classes, as ``curate novel-classes --chosen`` reads it."""
    rows = table_bytes([("wnid", "name"), *((one.key, one.name) for one in classes)])
    return File(LIST, lambda stream: stream.write(rows))
