"""The image set that the items of a project were taken from."""

from __future__ import annotations

from shiftproof.curation.origins import origin_of
from shiftproof.curation.project import Project
from shiftproof.errors import BadInput
from shiftproof.image_sets import open_images
from shiftproof.image_sets.image_list import ImageList


def source_images(project: Project) -> ImageList:
    """The one set that all items are of, opened where they say it lies; BadInput where they are of several or of none."""
    locations = {origin_of(item)[0] for item in project.items}
    location = locations.pop() if len(locations) == 1 else None
    if location is None:
        raise BadInput(f"the items of {project.title} are not all of one image set that can be opened; give the set")
    return open_images(location)
