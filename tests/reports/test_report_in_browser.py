"""A report as a person meets it: opened offline from its file in Chromium, with mouse and keyboard."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from patience import wait_for
from shiftproof.reports.build import save_report
from shiftproof.reports.pictures import OpenImage
from shiftproof.types import Results

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.real

Show = Callable[..., "Page"]


@pytest.mark.parametrize("which", ["compared", "shifted", "novel"])
def test_every_chart_is_drawn_without_a_complaint(show: Show, which: str, request: pytest.FixtureRequest) -> None:
    page = show(request.getfixturevalue(which))
    assert 0 < page.locator(".drawing:visible").count() == page.locator(".drawing svg").count()
    open_all(page)
    drawings = page.locator(".drawing:visible")
    assert drawings.count() > 8
    assert page.locator(".drawing svg").count() == drawings.count()


def open_all(page: Page) -> None:
    """Every section and everything folded, with all charts drawn."""
    page.get_by_role("button", name="Open all details").click()
    wait_for(page, "[...document.querySelectorAll('.drawing')].every((one) => one.querySelector('svg'))")


def test_bars_and_tooltips_are_styled_by_the_page_alone(show: Show, compared: Results) -> None:
    page = show(compared)
    page.evaluate("document.querySelectorAll('details').forEach((fold) => (fold.open = true))")
    wait_for(page, "'filled' in document.documentElement.dataset")
    lefts = page.locator(".bar").evaluate_all("bars => bars.map((bar) => getComputedStyle(bar).getPropertyValue('--at'))")
    assert len({float(left) for left in lefts}) > 5
    assert all(0 <= float(left) <= 1 for left in lefts)
    page.locator(".drawing svg .mark-symbol path").first.hover(force=True)
    tooltip = page.locator("#vg-tooltip-element.visible")
    tooltip.wait_for()
    assert tooltip.evaluate("shown => getComputedStyle(shown).position") == "fixed"


def test_a_script_that_got_into_a_report_does_not_run(browser: Browser, compared: Results, tmp_path: Path) -> None:
    strange = """<script>window.ran = 1</script><p id="styled" style="color: rgb(1, 2, 3)" onclick="window.ran = 1">x</p>"""
    path = save_report(tmp_path / "report.html", compared)
    path.write_text(path.read_text().replace("<main>", f"<main>{strange}"))
    page = browser.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-drawn]")
    page.locator("#styled").click()
    colour = page.locator("#styled").evaluate("styled => getComputedStyle(styled).color")
    assert (page.evaluate("window.ran ?? 0"), colour == "rgb(1, 2, 3)") == (0, False)
    page.close()


@pytest.mark.parametrize(
    "name", ["constructor", "toString", "__proto__", "two\u2028lines", """\\u2028 '"] </script>"""], ids=ascii
)
def test_no_name_keeps_charts_from_being_drawn(show: Show, compared: Results, name: str) -> None:
    strange = Results.from_json(compared.to_json().replace('"toy"', json.dumps(name)))
    page = show(strange)
    open_all(page)
    drawings = page.locator(".drawing:visible")
    assert drawings.count() > 8
    assert page.locator(".drawing svg").count() == drawings.count()


def test_what_is_folded_is_drawn_when_it_is_opened(show: Show, novel: Results) -> None:
    page = show(novel, opened=True)
    folded = page.locator("details.folded", has=page.locator(".drawing")).first
    drawings = folded.locator(".drawing")
    assert drawings.count() >= 3
    assert folded.locator(".drawing svg").count() == 0
    folded.locator("summary").first.press("Enter")
    wait_for(page, "[...document.querySelectorAll('details.folded[open] .drawing')].every((one) => one.firstElementChild)")
    boxes = [drawing.bounding_box() for drawing in folded.locator(".drawing svg").all()]
    assert len(boxes) == drawings.count()
    assert all(box is not None and box["width"] > 80 for box in boxes)


def test_a_table_sorts_by_keyboard_and_says_so(show: Show, results: Results) -> None:
    page = show(results, opened=True)
    figures = page.locator("details.data", has=page.locator("th", has_text=re.compile("^Class")))
    figures.locator("summary").first.focus()
    page.keyboard.press("Enter")
    table = figures.locator("table")
    head = table.locator("th", has_text="Accuracy")
    column = "tbody tr td:nth-child(2)"
    head.locator("button").focus()
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    rising = [float(text.rstrip("\u202f%")) for text in table.locator(column).all_inner_texts()]
    assert rising == sorted(rising)
    page.keyboard.press("Space")
    assert head.get_attribute("aria-sort") == "descending"
    falling = [float(text.rstrip("\u202f%")) for text in table.locator(column).all_inner_texts()]
    assert falling == sorted(falling, reverse=True)
    assert falling != rising
    assert table.locator("th[aria-sort]").count() == 1


def test_a_long_table_is_filtered_as_one_types(show: Show, results: Results) -> None:
    page = show(results, opened=True)
    figures = page.locator("details.data", has=page.locator("th", has_text=re.compile("^Class")))
    figures.locator("summary").first.click()
    figures.get_by_role("searchbox").fill("CLASS 2")
    assert figures.locator("tbody tr:visible").count() == 11  # class 2 and class 20 to 29
    assert figures.locator("output").inner_text() == "11 of 30 rows"


def test_a_picture_is_enlarged_and_put_away_by_keyboard(show: Show, results: Results) -> None:
    page = show(results, opened=True)
    picture = page.locator(".gallery button").first
    dialog = page.locator("dialog")
    picture.focus()
    page.keyboard.press("Enter")
    assert dialog.is_visible()
    assert "a \"quoted\" 'id' & </script><b>.jpg" in dialog.inner_text()
    assert dialog.locator("img").evaluate("picture => picture.naturalWidth") == 320
    page.keyboard.press("Escape")
    assert not dialog.is_visible()
    assert picture.evaluate("button => button === document.activeElement")


@pytest.mark.parametrize(("scheme", "first", "then"), [("light", "light", "dark"), ("dark", "dark", "light")])
def test_the_theme_follows_the_system_until_one_chooses(
    show: Show, results: Results, scheme: str, first: str, then: str
) -> None:
    page = show(results, color_scheme=scheme)
    paper = {"light": "rgb(251, 250, 247)", "dark": "rgb(18, 22, 28)"}
    background = "getComputedStyle(document.body).backgroundColor"
    ink = "getComputedStyle(document.querySelector('.drawing .role-axis-label text')).fill"
    assert page.evaluate(background) == paper[first]
    ink_before = page.evaluate(ink)
    page.get_by_role("button", name=f"{then.capitalize()} theme").click()
    assert page.evaluate(background) == paper[then]
    assert page.evaluate(ink) != ink_before


def test_paper_is_white_also_after_a_dark_screen(show: Show, results: Results) -> None:
    page = show(results, color_scheme="dark")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(27, 36, 48)"


@pytest.mark.parametrize("which", ["compared", "shifted", "novel"])
@pytest.mark.parametrize("width", [390, 768, 1280])
def test_no_width_makes_the_page_scroll_sideways(show: Show, which: str, width: int, request: pytest.FixtureRequest) -> None:
    page = show(request.getfixturevalue(which), width=width)
    page.evaluate("document.querySelectorAll('details').forEach((fold) => (fold.open = true))")
    wait_for(page, "[...document.querySelectorAll('.drawing')].every((one) => one.querySelector('svg'))")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    too_wide = (
        "[...document.querySelectorAll('.drawing svg')].filter((svg) => svg.getBoundingClientRect().right > innerWidth)"
    )
    assert page.evaluate(f"{too_wide}.length") == 0


def test_charts_follow_the_width_of_the_window(show: Show, results: Results) -> None:
    page = show(results)
    page.set_viewport_size({"width": 390, "height": 800})
    wait_for(page, "document.querySelector('.drawing svg').getBoundingClientRect().width < 390")
    # drawn anew rather than only scaled down: letters keep their size
    wait_for(page, "Number(document.querySelector('.drawing svg').getAttribute('width')) < 390")


def test_a_table_with_headings_over_its_columns_sorts_by_the_column_itself(show: Show, novel: Results) -> None:
    page = show(novel, opened=True)
    table = page.locator("table", has=page.locator("th.over")).first
    assert table.locator("thead tr").count() == 2
    assert table.locator("th.over button").count() == 0
    head = table.locator("thead tr:last-child th").nth(2)
    head.locator("button").click()
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    orders = [float(cell.get_attribute("data-order") or "nan") for cell in table.locator("tbody td:nth-child(3)").all()]
    assert orders == sorted(orders, reverse=True)
    assert len(orders) == 8


def test_any_other_detector_is_drawn_on_request(show: Show, novel: Results) -> None:
    page = show(novel)
    open_all(page)
    roc = page.locator(".column .part", has_text="ROC curve").first
    lines = "all => all.filter((line) => line.getAttribute('d')?.length > 20).length"
    before = roc.locator(".mark-line path").evaluate_all(lines)
    roc.locator("select").select_option("KNN")
    wait_for(page, "document.querySelector('.vega-bindings select').value == 'KNN'")
    assert roc.locator(".mark-line path").evaluate_all(lines) == before + 1


def test_the_page_gives_its_measurements_as_csv(show: Show, compared: Results) -> None:
    page = show(compared)
    with page.expect_download() as download:
        page.get_by_role("button", name="Measurements as CSV").click()
    assert as_values(Path(download.value.path()).read_text(encoding="utf-8")) == as_values(compared.to_csv())


def as_values(text: str) -> list[dict[str, str | float]]:
    """Rows of a CSV with their numbers as numbers: Python and JavaScript write the same one in different ways."""
    numbers = ("value", "low", "high")
    return [{**row, **{key: float(row[key]) for key in numbers if row[key]}} for row in csv.DictReader(io.StringIO(text))]


def test_every_table_can_be_downloaded_with_formulas_defused(show: Show, results: Results) -> None:
    formula = '=HYPERLINK("http://example.org")'
    page = show(Results.from_json(results.to_json().replace('"class 7"', json.dumps(formula))), opened=True)
    assert page.locator("button.download").count() == 2 * page.locator("table.sortable").count() > 4
    classes = page.locator("details.data", has=page.locator("th", has_text=re.compile("^Class")))
    classes.locator("summary").click()
    with page.expect_download() as download:
        classes.get_by_role("button", name=re.compile("as CSV")).click()
    rows = list(csv.DictReader(io.StringIO(Path(download.value.path()).read_text(encoding="utf-8"))))
    assert list(rows[0]) == ["Class", "Accuracy", "Accuracy (exact)", "95 % CI", "Images", "Images (exact)"]
    found = {str(one.about["class"]): one for one in results.measurements if one.metric == "class_accuracy"}
    assert f"'{formula}" in {row["Class"] for row in rows}
    for row in rows:
        name = "class 7" if row["Class"] == f"'{formula}" else row["Class"]
        assert (float(row["Accuracy (exact)"]), int(row["Images (exact)"])) == (found[name].value, found[name].images)
    with page.expect_download() as download:
        classes.get_by_role("button", name=re.compile("as JSON")).click()
    listed = json.loads(Path(download.value.path()).read_text(encoding="utf-8"))
    assert {row["Class"] for row in listed} == {formula if name == "class 7" else name for name in found}


def test_a_link_into_what_is_folded_opens_it(show: Show, novel: Results) -> None:
    page = show(novel)
    target = page.locator("details.folded .part[id]").first
    assert not target.is_visible()
    page.evaluate("id => (location.hash = id)", target.get_attribute("id"))
    target.wait_for()
    assert page.locator("details.more[open]").count() == 1
    wait_for(page, "document.querySelector(location.hash).getBoundingClientRect().top < innerHeight")


def test_a_section_opens_by_keyboard(show: Show, results: Results) -> None:
    page = show(results)
    closed = page.locator("#accuracy details.more")
    closed.locator("summary").first.focus()
    page.keyboard.press("Enter")
    assert closed.locator(".part").first.is_visible()


def test_models_stand_side_by_side_and_one_can_be_hidden(show: Show, shifted: Results) -> None:
    page = show(shifted)
    first, second = page.locator("#corruption .column").all()[:2]
    boxes = [one.bounding_box() for one in (first, second)]
    assert boxes[0]
    assert boxes[1]
    assert boxes[0]["y"] == boxes[1]["y"]
    assert boxes[0]["x"] + boxes[0]["width"] < boxes[1]["x"]
    page.get_by_role("checkbox", name="toy").uncheck()
    assert not first.is_visible()
    assert second.is_visible()


def test_printed_every_section_is_whole(show: Show, shifted: Results) -> None:
    page = show(shifted)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details.more:not([open])").count() == 0
    wait_for(page, "[...document.querySelectorAll('.drawing')].every((one) => one.querySelector('svg'))")


def test_without_scripts_answers_short_tables_and_pictures_are_there(
    browser: Browser, compared: Results, open_photo: OpenImage, tmp_path: Path
) -> None:
    path = save_report(tmp_path / "report.html", compared, open_image=open_photo)
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(path.as_uri())
    assert "classified correctly" in page.locator("#accuracy .answer").inner_text()
    page.locator("#accuracy details.more > summary").click()
    assert page.locator("#accuracy .gallery img[src]").first.is_visible()
    assert page.locator("noscript").inner_text().startswith("Without JavaScript")
    context.close()


def test_text_stands_out_from_its_ground_in_both_themes(show: Show, results: Results) -> None:
    page = show(results)
    for _ in range(2):
        ratios = page.evaluate(CONTRAST)
        assert min(ratios.values()) >= 4.5, ratios
        page.locator("#theme").click()


@pytest.mark.parametrize("width", [390, 1280])
def test_figures_of_a_heat_map_stand_inside_their_cells(show: Show, shifted: Results, width: int) -> None:
    page = show(shifted, width=width)
    first = page.locator(".column .part", has_text="Error by severity").first
    cells = first.locator(".mark-rect path").evaluate_all(BOXES)
    figures = first.locator(".mark-text text").evaluate_all(BOXES)
    assert len(cells) == 3 * 7
    for left, top, right, bottom in cells:
        inside = [text for text in figures if left <= text[0] and text[2] <= right and top <= text[1] and text[3] <= bottom]
        assert len(inside) == 1


def test_colours_of_heat_follow_the_theme(show: Show, shifted: Results) -> None:
    page = show(shifted)
    fill = "getComputedStyle(document.querySelector('.mark-rect path')).fill"
    light = page.evaluate(fill)
    page.locator("#theme").click()
    assert page.evaluate(fill) != light


def test_a_contact_sheet_has_a_picture_in_every_place_on_a_phone_too(show: Show, shifted: Results) -> None:
    page = show(shifted, width=390, opened=True)
    pictures = page.locator(".sheet img")
    assert pictures.count() == 7 * 5  # three corruptions and the four extra ones
    boxes = pictures.evaluate_all(BOXES)
    assert all(right - left > 45 and right <= 390 for left, _, right, _ in boxes)
    assert len({top for _, top, _, _ in boxes[:5]}) == 1  # the five severities stand side by side
    assert pictures.nth(0).get_attribute("alt") == "fog 1"
    assert all(pictures.evaluate_all("all => all.map((one) => one.naturalWidth == 112)"))


BOXES = "all => all.map((one) => one.getBoundingClientRect()).map((box) => [box.left, box.top, box.right, box.bottom])"

CONTRAST = """() => {
  const probe = document.body.appendChild(document.createElement("span"));
  const channels = (name) => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color.match(/[0-9.]+/g).slice(0, 3).map((value) => {
      const share = Number(value) / 255;
      return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
  };
  const light = (name) => channels(name).reduce((sum, value, place) => sum + value * [0.2126, 0.7152, 0.0722][place], 0);
  const ratio = (ink, ground) => {
    const [low, high] = [light(ink), light(ground)].sort((first, second) => first - second);
    return (high + 0.05) / (low + 0.05);
  };
  const pairs = [["--warning-ink", "--warning-paper"]];
  for (const ground of ["--paper", "--card", "--sunken"])
    for (const ink of ["--ink", "--muted", "--accent"]) pairs.push([ink, ground]);
  for (const place of [1, 2, 3, 4, 5, 6]) pairs.push([`--series-${place}`, "--card"]);
  for (let level = 0; level < 10; level++) pairs.push([level < 5 ? "--ink" : "--ink-on-heat", `--heat-${level}`]);
  const found = Object.fromEntries(pairs.map(([ink, ground]) => [`${ink} on ${ground}`, ratio(ink, ground)]));
  probe.remove();
  return found;
}"""
