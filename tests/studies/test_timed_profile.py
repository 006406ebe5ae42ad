"""A profile in the minutes there are: where the next passes go, how far it gets, and how it goes on."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import shiftproof as sp
from command import Shiftproof
from shiftproof.datasets.image_list import FileImage, ImageList
from shiftproof.datasets.subsets import drawn
from shiftproof.errors import BadInput, StoreWarning
from shiftproof.reports.build import subtitle
from shiftproof.reports.page import Page
from shiftproof.runs import write
from shiftproof.runs.predict import Progress
from shiftproof.runs.records import Reached
from shiftproof.runs.store import Store
from shiftproof.studies.base import CleanStudy
from shiftproof.studies.choice import StudyChoice, StudyEntry
from shiftproof.studies.kind import StudyKind
from shiftproof.studies.options import Assembled, Context, Parts, StudyOptions
from shiftproof.studies.timed_profile import Offer, OutOfTime, TimedProfile, best_offer, width_of
from shiftproof.types import (
    Classes,
    Classifier,
    DatasetCard,
    Finding,
    Interval,
    Keep,
    LoadPredictions,
    Measurement,
    ModelRef,
    Note,
    Origin,
    Results,
    Sample,
)
from toys import COLOURS, save_colour_network


def test_the_next_passes_go_where_a_second_narrows_an_interval_most() -> None:
    # twice as many units: 0.4 becomes 0.283, 0.117 in 30 s; 0.2 becomes 0.141, 0.059 in 10 s
    flips, errors = Offer("flips", 10, 20, 30.0, 0.4), Offer("errors", 500, 1000, 10.0, 0.2)
    assert flips.gain == pytest.approx(0.00391, abs=1e-5)
    assert errors.gain == pytest.approx(0.00586, abs=1e-5)
    assert best_offer([flips, errors], 60) == errors
    # of 0.2 more passes leave 0.19: what they can narrow, 0.062, becomes 0.044
    settled = errors._replace(settled=0.19)
    assert settled.gain == pytest.approx((0.2 - (0.19**2 + 0.0039 / 2) ** 0.5) / 10)
    assert best_offer([flips, settled], 60) == flips


def test_a_study_never_begun_comes_first_the_cheapest_of_several() -> None:
    begun, cheap, dear = Offer("a", 10, 20, 1.0, 9.0), Offer("b", 0, 5, 8.0), Offer("c", 0, 5, 20.0)
    assert best_offer([begun, dear, cheap], 60) == cheap
    assert best_offer([begun, dear], 60) == dear
    assert best_offer([begun, dear], 10) == begun, "its least part does not fit any more"


def test_a_step_is_cut_to_the_time_left_and_not_taken_where_little_is_left_of_it() -> None:
    offer = Offer("a", 100, 160, 30.0, 0.5)
    assert best_offer([offer], 15) == Offer("a", 100, 130, 15, 0.5)
    assert best_offer([offer], 10) is None, "120 of 100 is no step"
    assert best_offer([offer], -1) is None


def number(value: float, low: float, high: float, metric: str = "mean_corrupted_error") -> Measurement:
    return Measurement(metric, value, {"model": "toy"}, 10, {}, Interval(low, high))


def test_a_width_is_in_standard_deviations_and_knows_what_more_passes_do_not_narrow() -> None:
    assert width_of("mean_corrupted_error", Results((number(0.5, 0.4, 0.6),))).now == pytest.approx(0.4)
    assert width_of("mean_corrupted_error", Results((number(0.1, 0.05, 0.2),))).now == pytest.approx(0.5)
    assert width_of("mean_corrupted_error", Results(())).now is None
    sampled = Measurement("sampling_error", 0.08, {"number": "mean_corrupted_error"}, 10, {})
    width = width_of("mean_corrupted_error", Results((number(0.5, 0.4, 0.6), sampled)))
    assert width.settled == pytest.approx((0.4**2 - 0.32**2) ** 0.5)
    alone = Measurement("mean_corrupted_error", 0.5, {}, 10, {})
    assert width_of("mean_corrupted_error", Results((alone,))).now == 0, "no interval that more could narrow"
    assert width_of("mean_corrupted_error", Results((alone, sampled))).now == pytest.approx(0.32)


def photos(count: int, **facts: Any) -> ImageList:
    samples = [
        Sample(f"{place:04}.png", (place % 2,), {name: of(place) for name, of in facts.items()}) for place in range(count)
    ]
    return ImageList("photos", samples, Classes(("cat", "dog")), lambda _: FileImage("none"))


def ids(images: Any) -> set[str]:
    return {sample.id for sample in images.samples}


def test_a_larger_draw_holds_the_smaller_and_says_how_many_of_how_many() -> None:
    images = photos(500)
    few, more = drawn(images, 20), drawn(images, 80)
    assert len(few.samples) == 20
    assert ids(few) < ids(more) < ids(images)
    assert ids(drawn(more, 20)) == ids(few), "from whichever draw it is taken"
    assert few.ref.name == "photos, 20 of 500"
    assert "20 of 500 images, drawn at random with seed 0" in few.notes
    assert ids(drawn(images, 20, seed=1)) != ids(few)
    assert drawn(images, 500) is images
    relabelled = ImageList("photos", [Sample(sample.id, ()) for sample in images.samples], None, images.find)
    assert ids(drawn(relabelled, 20)) == ids(few), "labels may be corrected without another draw"
    # 250 of each class: 100 drawn at random have 50 +- 4.5 of the first, four standard errors either way
    assert 32 <= sum(sample.labels == (0,) for sample in drawn(images, 100).samples) <= 68


def test_frames_of_an_anchor_and_versions_of_a_photo_are_drawn_together() -> None:
    frames = photos(210, anchor=lambda place: f"clip/{place // 21}", offset=lambda place: place % 21 - 10)
    some = drawn(frames, 50)
    assert len(some.samples) == 63
    assert len({sample.facts["anchor"] for sample in some.samples}) == 3
    sequences = photos(100, sequence=lambda place: place // 10, perturbation=lambda _: "tilt")
    assert len({sample.facts["sequence"] for sample in drawn(sequences, 20).samples}) == 2


class ToyStudy(CleanStudy):
    def measure(self, load: LoadPredictions) -> Iterator[Finding | Note]:
        yield from ()


class ToyOptions(StudyOptions):
    """A study that can be done in parts."""

    told: Parts | None = None

    def parts(self, dataset: Any) -> Parts | None:
        return self.told

    def assemble(self, study: Callable[..., Any], models: Any, dataset: Any, context: Context) -> Assembled:
        return Assembled([ToyStudy(models=models, dataset=dataset)], [dataset])


def entry(name: str, parts: Parts | None = None) -> StudyEntry:
    return StudyEntry(name, StudyKind(name.title(), "?", "none:none"), ToyOptions(told=parts))


@dataclass
class ToyDesk:
    """Forward passes that take seconds of a clock of its own, and a store that remembers how many there were."""

    images: ImageList
    seconds_each: float = 0.1
    now: float = 0.0
    stored: dict[str, int] = field(default_factory=dict)
    kept: Reached | None = None
    lines: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    widths: dict[str, float] = field(default_factory=dict)
    stop_after: float = float("inf")
    assembled: list[tuple[str, int, int | None]] = field(default_factory=list)

    def clock(self) -> float:
        return self.now

    def assemble(self, entry: StudyEntry, images: Any, units: int | None = None) -> Assembled:
        self.assembled.append((entry.name, len(images.samples), units))
        # how many passes this is, in place of a study
        asked = len(images.samples) if units is None else units
        study = ToyStudy([ModelRef(f"{'whole' if units is None else entry.name} {asked}", "f")], images)
        return Assembled([study], [images])

    def fill(self, works: Sequence[Assembled], progress: Progress, *, keep: Keep | None = None) -> None:
        for work in works:
            name, _, units = work.studies[0].runs()[0].model.name.rpartition(" ")
            while self.stored.get(name, 0) < int(units):
                self.now += self.seconds_each
                if self.now > self.stop_after:
                    raise KeyboardInterrupt
                self.stored[name] = self.stored.get(name, 0) + 1
                progress.advance(1)

    def measure(self, work: Assembled) -> Results:
        name, _, units = work.studies[0].runs()[0].model.name.rpartition(" ")
        self.now += 0.1
        half = self.widths.get(name, 1.0) / int(units) ** 0.5 / 4
        return Results((number(0.5, 0.5 - half, 0.5 + half),))

    def save(self, reached: Reached) -> None:
        self.kept = reached

    def tell(self, text: str) -> None:
        self.lines.append(text)

    def leave_out(self, entry: StudyEntry, why: str) -> None:
        self.left_out[entry.name] = why

    def spend(self, entries: Sequence[StudyEntry], minutes: float) -> Reached:
        return TimedProfile(entries, self.images, self, minutes=minutes, reached=self.kept, clock=self.clock).spend()


METRIC = "mean_corrupted_error"
AXES = [
    entry("accuracy"),
    entry("flips", Parts(50, 5000, METRIC, passes=1)),
    entry("errors", Parts(20, 5000, METRIC, passes=1)),
]


def test_a_profile_ends_in_time_and_more_goes_where_more_is_open() -> None:
    desk = ToyDesk(photos(100), widths={"flips": 3.0, "errors": 1.0})
    reached = desk.spend(AXES, minutes=2)
    # 120 s, of which a tenth is for the report
    assert 85 < desk.now < 110
    flips, errors = reached.units[AXES[1].key] or 0, reached.units[AXES[2].key] or 0
    assert flips > errors >= 20
    assert (reached.images, reached.minutes) == (100, 2)
    assert any("the full profile (--full) is 10,100 forward passes" in line for line in desk.lines)
    assert any("2 minutes buy about 1,200" in line for line in desk.lines)


def test_a_profile_that_was_stopped_goes_on_and_makes_no_pass_twice() -> None:
    whole, stopped = ToyDesk(photos(100)), ToyDesk(photos(100), stop_after=40)
    whole.spend(AXES, minutes=2)
    with pytest.raises(KeyboardInterrupt):
        stopped.spend(AXES, minutes=2)
    assert stopped.kept is not None
    assert stopped.kept.seconds == pytest.approx(40, abs=1)
    stopped.stop_after = float("inf")
    reached = stopped.spend(AXES, minutes=2)
    assert stopped.now < 110, "what was spent before counts"
    passes = sum(stopped.stored.values())
    assert passes * stopped.seconds_each > 80, "and was not lost"
    assert sum(reached.units[one.key] or 0 for one in AXES[1:]) + 100 <= passes


def test_a_complete_profile_is_not_continued_unless_it_is_given_more() -> None:
    desk = ToyDesk(photos(100))
    first = desk.spend(AXES, minutes=1)
    passes, spent = dict(desk.stored), desk.now
    assert desk.spend(AXES, minutes=1) == first
    assert (desk.stored, desk.now) == (passes, spent), "no pass, and nothing measured"
    more = desk.spend(AXES, minutes=2)
    assert all((more.units[one.key] or 0) > (first.units[one.key] or 0) for one in AXES[1:2])
    other = [*AXES, entry("colours", Parts(5, 50, METRIC, passes=1))]
    assert desk.spend(other, minutes=1).units[other[-1].key] == 50, "another study has minutes of its own"


def test_of_many_images_as_many_are_drawn_as_there_is_time_for() -> None:
    desk = ToyDesk(photos(10_000))
    reached = desk.spend(AXES, minutes=1)
    assert 100 < reached.images < 300, "a third of a minute, at ten images a second"
    assert any(f"on {reached.images:,} of 10,000 images" in line for line in desk.lines)
    assert desk.now < 60


def test_images_take_the_time_that_no_other_study_could_begin_in() -> None:
    desk = ToyDesk(photos(10_000))
    reached = desk.spend([AXES[0], entry("slow", Parts(5, 100, METRIC, passes=300))], minutes=1)
    assert 400 < reached.images < 560, "nine tenths of a minute, at ten images a second"
    assert desk.now < 60
    assert "slow" in desk.left_out
    assert ToyDesk(photos(480)).spend([AXES[0]], minutes=1).images == 480


def test_a_study_whose_least_part_does_not_fit_is_left_out_and_said_to_be() -> None:
    desk = ToyDesk(photos(100))
    entries = [AXES[0], entry("slow", Parts(5, 100, METRIC, passes=300))]
    reached = desk.spend(entries, minutes=1)
    assert entries[1].key not in reached.units
    told = (
        "its smallest part (5 photos, 300 forward passes each) takes about 2:30 min; --studies slow --minutes 4 measures it"
    )
    assert desk.left_out == {"slow": told}
    enough = ToyDesk(photos(100)).spend(entries, minutes=4)
    assert (enough.units[entries[1].key] or 0) >= 5, "what it says is true"


def test_a_step_that_takes_far_longer_than_foreseen_is_broken_off_and_does_not_count() -> None:
    class Slowing(ToyDesk):
        def fill(self, works: Sequence[Assembled], progress: Progress, *, keep: Keep | None = None) -> None:
            self.seconds_each = 0.1 if works[0].studies[0].runs()[0].model.name.startswith("whole") else 10.0
            super().fill(works, progress, keep=keep)

    desk = Slowing(photos(50))
    reached = desk.spend(AXES[:2], minutes=1)
    assert reached.units == {AXES[0].key: None}
    assert desk.now < 75
    assert issubclass(OutOfTime, Exception)


def test_a_study_of_exactly_its_images_keeps_them_and_begins_anew_only_with_many_more() -> None:
    entries = [AXES[0], entry("errors", Parts(60, 5000, METRIC, passes=1, nested=False))]
    desk = ToyDesk(photos(10_000))
    first = desk.spend(entries, minutes=1)
    kept = first.drawn[entries[1].key]
    assert 50 <= kept < first.images
    assert desk.spend(entries, minutes=2).drawn == first.drawn
    assert desk.spend(entries, minutes=30).drawn[entries[1].key] > 4 * kept


def test_how_far_a_profile_came_is_stored_and_a_damaged_record_is_not_believed(tmp_path: Path) -> None:
    store, model, images = Store(tmp_path / "runs"), ModelRef("toy", "f" * 32), photos(3).ref
    assert store.reached(model, images) is None
    reached = Reached(3, {"corruption 1": 700, "accuracy 2": None}, {"corruption 1": 2}, 12.5, 1.0, "a")
    store.save_reached(model, images, reached)
    assert store.reached(model, images) == reached
    (path,) = (tmp_path / "runs" / "models").glob("*/profile-*.json")
    path.write_text(path.read_text().replace("700", "900"))
    with pytest.warns(StoreWarning, match="goes through the profile again"):
        assert store.reached(model, images) is None


QUICK: dict[str, Any] = {
    "calibration": None,
    "corruption": sp.CorruptionOptions(corruptions=("contrast", "brightness"), edition="cifar-32"),
    "perturbation": sp.PerturbationOptions(perturbations=("brightness",), edition="cifar-32"),
}
"""Studies without compiled kernels."""


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many images each call gave to a model."""
    made: list[int] = []
    classify = write.classify_batch

    def counted(model: Any, keep: Any, precision: Any, batch: Any, sizes: Any) -> Any:
        made.append(len(batch))
        return classify(model, keep, precision, batch, sizes)

    monkeypatch.setattr(write, "classify_batch", counted)
    return made


class Stop:
    """Progress that presses Ctrl-C after some images."""

    def __init__(self, after: int) -> None:
        self.left = after

    def begin(self, what: str, total: int, done: int) -> None: ...

    def advance(self, images: int) -> None:
        self.left -= images
        if self.left < 0:
            raise KeyboardInterrupt

    def end(self) -> None: ...


def numbers(results: Results) -> list[Any]:
    return [(one.metric, one.about, one.value, one.ends, one.images) for one in results.measurements]


def test_a_profile_is_stopped_continued_and_reported_from_the_store(
    colour_model: Classifier, draw_photos: Callable[..., Path], passes: list[int], tmp_path: Path
) -> None:
    images = draw_photos(4)  # 12 photos: 12 unchanged, 12 x 11 for corruption, 12 x 31 frames
    at_once = sp.run(colour_model, images, studies=QUICK, minutes=10, store=tmp_path / "at once")
    assert sum(passes) == 12 + 12 * 11 + 12 * 31
    found = {one.metric for one in at_once.measurements}
    assert {"top1_accuracy", "expected_calibration_error", "mean_corrupted_error", "mean_flip_probability"} <= found
    passes.clear()
    store = tmp_path / "stopped"
    for after in (100, 150):
        with pytest.raises(KeyboardInterrupt):
            sp.run(colour_model, images, studies=QUICK, minutes=10, store=store, progress=Stop(after))
    continued = sp.run(colour_model, images, studies=QUICK, minutes=10, store=store)
    assert sum(passes) < 12 + 12 * 11 + 12 * 31 + 100, "nothing twice but the batches that were not committed"
    assert numbers(continued) == numbers(at_once)
    stored = sp.measure_stored(colour_model, images, studies=QUICK, store=store)
    assert numbers(stored) == numbers(at_once)


def test_a_part_is_reported_as_far_as_it_came(
    colour_model: Classifier, draw_photos: Callable[..., Path], tmp_path: Path
) -> None:
    images, store = sp.open_dataset(draw_photos(4)), Store(tmp_path / "runs")
    sp.run(colour_model, images, studies=QUICK, minutes=10, store=store)
    reached = store.reached(colour_model.ref, images.ref)
    assert reached is not None
    (key,) = (key for key in reached.units if key.startswith("perturbation"))
    store.save_reached(colour_model.ref, images.ref, Reached(12, {**reached.units, key: 6}, reached.drawn))
    results = sp.measure_stored(colour_model, images, studies=QUICK, store=store)
    flips = [one for one in results.measurements if one.metric == "mean_flip_probability"]
    assert {(one.images, one.about["dataset"]) for one in flips} == {(6, "photos, 6 of 12")}
    assert [card.name for card in results.datasets if card.origin is None] == ["photos"]
    page = Page(results)
    assert (page.title, subtitle(page).partition(" · ")[0]) == ("colours on photos", "12 images")


def test_parts_of_a_dataset_are_counted_as_parts_and_other_datasets_apart() -> None:
    found = Measurement("top1_accuracy", 0.5, {"model": "net", "dataset": "photos, 6 of 12"}, 6, {})
    some = drawn(photos(12), 6)
    assert some.origin == drawn(some, 3).origin == Origin("photos", 12)
    cards = (DatasetCard(some.ref.name, "p", 6, 6, origin=some.origin), DatasetCard("hats", "h", 4, 0))
    page = Page(Results((found,), datasets=cards))
    assert page.title == "net on photos"
    assert subtitle(page) == "6 of 12 images · beside 4 images of another dataset"
    assert Results.from_json(page.results.to_json()) == page.results


def test_minutes_and_full_exclude_each_other() -> None:
    with pytest.raises(BadInput, match="leave out --minutes, or --full"):
        sp.run("lite:0", "photos", minutes=1, full=True)


def test_full_does_all_units_and_is_found_again_without_a_name(
    colour_model: Classifier, draw_photos: Callable[..., Path], passes: list[int], tmp_path: Path
) -> None:
    images, store = draw_photos(4), tmp_path / "runs"
    told = {name: options for name, options in QUICK.items() if options is not None}
    everything = StudyChoice(None, told)
    full = sp.run(colour_model, images, studies=everything, full=True, store=store)
    assert sum(passes) == 12 + 12 * 11 + 12 * 31
    assert {"mean_corrupted_error", "mean_flip_probability"} <= {one.metric for one in full.measurements}
    assert not [one for one in full.measurements if one.metric == "sampling_error"], "every cell was run"
    assert numbers(sp.measure_stored(colour_model, images, studies=everything, store=store)) == numbers(full)
    assert numbers(sp.run(colour_model, images, studies=everything, store=store, minutes=1)) == numbers(full)
    assert sum(passes) == 12 + 12 * 11 + 12 * 31
    planned = sp.plan(colour_model, images, studies=everything, store=store)
    assert sum(int(row["images"]) for row in planned) == 12 + 12 * 11 + 12 * 31
    assert not any(row["to do"] for row in planned)


def test_only_what_is_stored_is_measured_where_no_study_is_named(
    colour_model: Classifier, draw_photos: Callable[..., Path], tmp_path: Path
) -> None:
    images, store = draw_photos(2), tmp_path / "runs"
    sp.store_predictions(colour_model, images, store=store)
    found = {one.metric for one in sp.measure_stored(colour_model, images, store=store).measurements}
    assert {"top1_accuracy", "mean_confidence"} <= found
    assert not {"mean_corrupted_error", "mean_flip_probability", "auroc"} & found


def test_models_are_compared_as_far_as_both_came(
    colour_model: Classifier, draw_photos: Callable[..., Path], tmp_path: Path
) -> None:
    images, store = sp.open_dataset(draw_photos(4)), Store(tmp_path / "runs")
    other = dataclasses.replace(colour_model, ref=ModelRef("other", "e" * 32))  # type: ignore[type-var]
    for model, units in ((colour_model, 9), (other, 6)):
        sp.run(model, images, studies=QUICK, minutes=10, store=store)
        reached = store.reached(model.ref, images.ref)
        assert reached is not None
        (key,) = (key for key in reached.units if key.startswith("perturbation"))
        store.save_reached(model.ref, images.ref, dataclasses.replace(reached, units={**reached.units, key: units}))
    results = sp.compare([], images, studies=QUICK, store=store)
    flips = [one for one in results.measurements if one.metric == "mean_flip_probability"]
    assert {(one.about["model"], one.images) for one in flips} == {("colours", 6), ("other", 6)}


def test_the_command_gives_a_profile_and_reports_it_again(
    shiftproof: Shiftproof, draw_photos: Callable[..., Path], tmp_path: Path
) -> None:
    save_colour_network(tmp_path / "colours.onnx")
    (tmp_path / "classes.txt").write_text("\n".join(sorted(COLOURS)))
    model = ["colours.onnx", draw_photos(4), "--preprocess", "unit,resize=squash", "--classes", "classes.txt"]
    cells = ["--corruptions", "contrast,brightness", "--perturbations", "brightness", "--edition", "cifar-32"]
    ran = shiftproof("run", *model, *cells, "--json")
    assert ran.code == 0, ran.err
    assert "profile of colours on photos within 3 minutes: accuracy, calibration, corruption, perturbation" in ran.err
    assert "the full profile (--full) is 516 forward passes" in ran.err
    again = shiftproof("report", "colours", tmp_path / "photos", *cells, "--json")
    assert (again.code, again.err) == (0, "report.html\n")
    findings = json.loads(ran.out)["findings"]
    assert json.loads(again.out)["findings"] == findings
    assert {"top1_accuracy", "mean_corrupted_error", "mean_flip_probability"} <= {one.get("metric") for one in findings}
    assert shiftproof("run", *model, "--full", "--minutes", 1).code == 2
