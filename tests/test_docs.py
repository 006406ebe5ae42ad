"""Pages and pictures of the docs: links lead somewhere, pictures are small, and each is shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")])
PICTURES = sorted((ROOT / "docs" / "pictures").iterdir())
LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\"")


def linked_files(page: Path) -> list[Path]:
    """The files that a page links to or shows; not what lies on the web or on the page itself."""
    targets = [(one or other).partition("#")[0] for one, other in LINK.findall(page.read_text(encoding="utf-8"))]
    return [(page.parent / target).resolve() for target in targets if target and "://" not in target]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_files_that_are_there(page: Path) -> None:
    assert [file for file in linked_files(page) if not file.exists()] == []


def test_pictures_are_small_and_shown() -> None:
    sizes = {picture.name: picture.stat().st_size for picture in PICTURES}
    assert [name for name, size in sizes.items() if size > 100_000] == []
    assert sum(sizes.values()) < 2_000_000
    shown = {file for page in PAGES for file in linked_files(page)}
    assert [picture.name for picture in PICTURES if picture not in shown] == []


def test_the_readme_shows_a_picture_before_it_asks_for_anything() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert 0 < readme.index("docs/pictures/") < readme.index("```")
