"""Parts of a project of which verdicts can be had without the rest: reading every vote would take seconds."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

from shiftproof.curation.project import Project
from shiftproof.review.database import Database


def contested(project: Project, database: Database, reviewer: int) -> Project:
    """The project with only those items of a person that somebody would not keep as they are, and what may close them.

    Verdicts on these are the same as among all items: a vote speaks for others only where it closes their group.
    """
    said = database.items_chosen(choice.name for choice in project.screen.choices if not choice.keeps)
    closing = {
        project.by_id[item].group for item, choice in said if choice in project.screen.closing and item in project.by_id
    }
    doubted = {item for item, _ in said}
    if project.screen.form == "box":  # who would keep an item may have drawn another box
        doubted |= database.items_with_votes(2)
    kept = doubted.intersection(database.assigned_to(reviewer))
    items = [item for item in project.items if item.id in kept or (item.group is not None and item.group in closing)]
    return dataclasses.replace(project, items=tuple(items))


def with_kin(project: Project, items: Collection[str]) -> Project:
    """The project with only some items, and those of their groups, which may speak for them."""
    groups = {project.by_id[item].group for item in items} - {None}
    return dataclasses.replace(project, items=tuple(one for one in project.items if one.id in items or one.group in groups))
