"""What people may have to look at together, found by the database: reading every vote would take seconds."""

from __future__ import annotations

import dataclasses

from sqlalchemy import func, literal, select

from shiftproof.curation.project import Project
from shiftproof.review.database import Database
from shiftproof.review.schema import CHOICE, votes


def contested(project: Project, database: Database, reviewer: int) -> Project:
    """The project with only those items of a person that somebody would not keep as they are, and what may close them.

    Verdicts on these are the same as among all items: a vote speaks for others only where it closes their group.
    """
    mine, said = set(database.assigned_to(reviewer)), _said_against(project, database)
    closing = {
        project.by_id[item].group for item, choice in said if choice in project.screen.closing and item in project.by_id
    }
    kept = mine.intersection(item for item, _ in said)
    items = [item for item in project.items if item.id in kept or (item.group is not None and item.group in closing)]
    return dataclasses.replace(project, items=tuple(items))


def _said_against(project: Project, database: Database) -> list[tuple[str, str]]:
    """Items, each with a choice against it that somebody made, whether it stands or not."""
    against = [choice.name for choice in project.screen.choices if not choice.keeps]
    asked = [select(votes.c.item, CHOICE).where(CHOICE.in_(against)).distinct()]
    if project.screen.form == "box":  # who would keep an item may have drawn another box
        asked.append(select(votes.c.item, literal("")).group_by(votes.c.item).having(func.count() > 1))
    with database._engine.connect() as connection:
        return [(item, choice) for one in asked for item, choice in connection.execute(one)]
