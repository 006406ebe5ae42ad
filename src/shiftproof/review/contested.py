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
    items, closing = _doubted(project, database)
    if project.screen.form == "box":  # who would keep an item may have drawn another box
        items |= database.items_with_votes(2)
    return _some(project, items.intersection(database.assigned_to(reviewer)), closing)


def doubted(project: Project, database: Database) -> Project:
    """The project with only those items that somebody would not keep, or once said so of, and what may close them."""
    return _some(project, *_doubted(project, database))


def _doubted(project: Project, database: Database) -> tuple[set[str], set[str]]:
    """Items that somebody would not keep, and groups that somebody closed, whether the votes stand or not."""
    said = database.items_chosen(choice.name for choice in project.screen.choices if not choice.keeps)
    closing = [project.by_id[item] for item, choice in said if choice in project.screen.closing and item in project.by_id]
    return {item for item, _ in said}, {item.group for item in closing if item.group is not None}


def _some(project: Project, items: Collection[str], groups: Collection[str]) -> Project:
    return dataclasses.replace(project, items=tuple(one for one in project.items if one.id in items or one.group in groups))


def with_kin(project: Project, items: Collection[str]) -> Project:
    """The project with only some items, and those of their groups, which may speak for them."""
    return _some(project, items, {group for item in items if (group := project.by_id[item].group) is not None})
