"""A package that adds one of everything, built and installed: each is listed, used, measured and reported."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from PIL import Image as Pillow

import shiftproof as sp
from command import Said
from forked_command import Forking, forking
from shiftproof import catalog
from shiftproof.corruptions import Corruption, Perturbation, Severities
from shiftproof.errors import BadInput
from toys import save_colour_network

IMPORTED = ["shiftproof.runs.predict", "shiftproof.bench.job"]  # neither asks which plug-ins there are
PACKAGE = Path(__file__).with_name("dusk")
ROOT = Path(__file__).parents[2]
COLOURS = {"rose": (220, 40, 30), "leaf": (30, 210, 40), "sky": (30, 40, 220)}
ADDED = {
    "corruptions": "dusk",
    "perturbations": "nightfall",
    "ood": "flat_logits",
    "metrics": "hesitation_rate",
    "datasets": "index",
    "models": "colour",
    "studies": "hesitation",
    "recipes": "evening",
}


class Environment(NamedTuple):
    """A folder of installed packages beside those of the tests, and a folder to work in."""

    site: Path
    folder: Path
    forking: Forking

    def run(self, *arguments: object) -> Said:
        """A program of its own process."""
        path = os.pathsep.join([str(self.site), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {**os.environ, "PYTHONPATH": path}
        ran = subprocess.run(
            list(map(str, arguments)), cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )
        return Said(ran.returncode, ran.stdout, ran.stderr)

    def shiftproof(self, *arguments: object) -> Said:
        """The command, in a process that found these packages when it asked for the first time."""
        return self.forking.start(*arguments).wait()

    def python(self, code: str) -> Any:
        """What Python code prints, read as JSON."""
        said = self.run(sys.executable, "-W", "error", "-c", f"import json\nimport shiftproof as sp\n{code}")
        assert said.code == 0, said.err
        return json.loads(said.out)


def install(source: Path, site: Path) -> None:
    """The package as pip builds and installs it; nothing is downloaded where the build backend is installed."""
    offline = ["--no-build-isolation", "--no-index"] if importlib.util.find_spec("hatchling") else []
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", *offline]
    subprocess.run([*pip, "--target", str(site), str(source)], check=True)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    folder = tmp_path_factory.mktemp("plugin")
    install(Path(shutil.copytree(PACKAGE, folder / "source")), folder / "site")
    draw(folder / "photos")
    rng = np.random.default_rng(4)
    (folder / "noise").mkdir()
    for number in range(6):
        Pillow.fromarray(rng.integers(0, 256, (32, 32, 3), dtype=np.uint8)).save(folder / "noise" / f"{number}.png")
    with forking(tmp_path_factory.mktemp("said"), IMPORTED, sites=[folder / "site"], folder=folder) as started:
        yield Environment(folder / "site", folder, started)


def draw(folder: Path) -> None:
    """Photos of three colours in the layout of the plug-in; those of the sky are pale."""
    folder.mkdir()
    rng, lines = np.random.default_rng(3), []
    for name, rgb in COLOURS.items():
        for number in range(4):
            pale = 118 + (np.array(rgb) - 118) * (0.02 if name == "sky" else 1)
            pixels = np.clip(pale + rng.normal(0, 20, (32, 32, 3)), 0, 255).astype(np.uint8)
            Pillow.fromarray(pixels).save(folder / f"{name}{number}.png")
            lines.append(f"{name}{number}.png {name}\n")
    (folder / "photos.lst").write_text("".join(lines))


class Ran(NamedTuple):
    """What one run of the command left."""

    said: Said
    results: dict[str, Any]
    rows: list[dict[str, str]]
    page: str

    def value(self, metric: str, **about: object) -> float:
        found = [
            one
            for one in self.results["findings"]
            if one.get("metric") == metric and about.items() <= one["about"].items() and "value" in one
        ]
        assert len(found) == 1, (metric, about, len(found))
        return float(found[0]["value"])


@pytest.fixture(scope="module")
def ran(installed: Environment) -> Ran:
    said = installed.run(
        Path(sys.executable).with_name("shiftproof"),  # as it is installed
        *("run", "colour:rose,leaf,sky", "photos/photos.lst", "--studies", "hesitation,corruption,perturbation,ood"),
        *("--corruptions", "dusk", "--severities", "1,5", "--edition", "cifar-32", "--perturbations", "nightfall"),
        *("--sequences", 2, "--ood", "noise=noise", "--ood-detectors", "flat_logits", "--augmented", "dusk"),
        *("--workers", 0, "--quiet", "--json", "--csv", "run.csv", "-o", "run.html"),
    )
    assert said.code == 0, said.err
    with (installed.folder / "run.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return Ran(said, json.loads(said.out), rows, (installed.folder / "run.html").read_text(encoding="utf-8"))


def test_each_is_listed_with_a_sentence(installed: Environment) -> None:
    listed = installed.python(f"""
from click.testing import CliRunner
from shiftproof.cli.main import cli
said = {{kind: CliRunner().invoke(cli, ["list", kind, "--json"]) for kind in {list(ADDED)}}}
print(json.dumps({{kind: json.loads(one.stdout)[-1] for kind, one in said.items()}}))
""")
    assert {kind: row["name"] for kind, row in listed.items()} == ADDED
    assert all(row["what it is"].endswith((".", "?")) for row in listed.values())


def test_a_metric_is_listed_with_title_unit_and_direction(installed: Environment) -> None:
    said = installed.shiftproof("list", "metrics")
    assert said.err == ""
    assert "Hesitation (share, lower is better): Share of images with less than 50 % confidence." in said.out


def test_each_is_used_from_python(installed: Environment) -> None:
    used = installed.python("""
import numpy as np
grey = np.full((224, 224, 3), 100, np.uint8)
frames = sp.perturb(grey, "nightfall")
photos = [sp.open_dataset(one) for one in ("photos/photos.lst", "index:photos/photos.lst")]
photos.append(sp.open_dataset("photos/photos.lst", kind="index"))
model = sp.load_model("colour:rose,leaf,sky", name="mine")
results = sp.run(model, photos[0], studies=["hesitation"], store="python-runs")
(found,) = [one for one in results.findings if getattr(one, "metric", "") == "hesitation_rate"]
print(json.dumps({
    "dusk": sp.corrupt(grey, "dusk", 3)[0, 0].tolist(),
    "nightfall": [frames.shape[0], int(frames[0, 0, 0, 0]), int(frames[-1, 0, 0, 0])],
    "index": [[len(one.samples), list(one.classes.names)] for one in photos],
    "colour": [model.ref.name, list(model.classes.names)],
    "hesitation": [found.value, found.images, found.interval.method],
}))
""")
    assert used["dusk"] == [50, 50, 50]
    assert used["nightfall"] == [31, 100, 40]
    assert used["index"] == [[12, ["leaf", "rose", "sky"]]] * 3
    assert used["colour"] == ["mine", ["rose", "leaf", "sky"]]
    assert used["hesitation"] == [pytest.approx(4 / 12), 12, "Clopper-Pearson"]


def test_each_is_measured(ran: Ran) -> None:
    assert ran.value("hesitation_rate", model="colour", dataset="photos") == pytest.approx(4 / 12)
    assert 0 <= ran.value("corrupted_error", corruption="dusk", severity=5) <= 1
    assert 0 <= ran.value("flip_probability", perturbation="nightfall", difficulty=1) <= 1
    assert ran.value("auroc", ood_detector="flat_logits", goal="new-class", ood="noise") > 0.5
    assert ran.results["versions"]["shiftproof-dusk"] == "1.0"


def test_a_model_is_trained_by_a_recipe_and_declares_what_it_saw(installed: Environment) -> None:
    save_colour_network(installed.folder / "colours.onnx")
    said = installed.shiftproof(
        *("train", "colours.onnx", "photos/photos.lst", "--recipe", "evening:0.5", "--validation", 0.5, "--copies", 2),
        *("--preprocess", "squash,size=16,mean=0,std=1", "--workers", 0, "--quiet", "--json"),
    )
    assert said.code == 0, said.err
    told = json.loads(said.out)
    assert told["recipes"] == ["evening:0.5"]
    assert told["seen"]["augmentations"] == ["dusk"]


def test_the_numbers_of_a_plug_in_are_in_the_table_of_measurements(ran: Ran) -> None:
    (row,) = [row for row in ran.rows if row["metric"] == "hesitation_rate"]
    assert float(row["value"]) == pytest.approx(4 / 12)
    assert row["images"] == "12"
    assert {"dusk"} == {row["corruption"] for row in ran.rows if row["metric"] == "corrupted_error"}


def test_a_plug_in_has_its_section_in_the_report_and_its_entries_their_titles(ran: Ran) -> None:
    assert '<section id="hesitation"' in ran.page
    assert "How often the confidence is below 50 %." in ran.page
    assert "33.3\u202f%" in ran.page
    assert "Flat logits" in ran.page
    assert "nightfall" in ran.page
    assert "shiftproof-dusk" in ran.page


def test_an_augmentation_is_known_by_the_name_of_the_corruption_that_a_plug_in_brings(ran: Ran) -> None:
    assert any("declares dusk as augmentation" in json.dumps(one) for one in ran.results["warnings"])


def test_what_is_stored_is_measured_and_planned_again(ran: Ran, installed: Environment) -> None:
    again = installed.shiftproof("measure", "colour", "photos/photos.lst", "--studies", "hesitation", "--json")
    assert again.code == 0, again.err
    found = [one for one in json.loads(again.out)["findings"] if one.get("metric") == "hesitation_rate"]
    assert [one["value"] for one in found] == [pytest.approx(4 / 12)]
    helped = installed.shiftproof("help", "hesitation")
    assert helped.code == 0, helped.err
    assert "Hesitation: How often is the confidence below 50 %?" in helped.out


def test_a_dataset_written_with_a_corruption_of_a_plug_in_is_recognised(installed: Environment) -> None:
    written = installed.shiftproof(
        *("corrupt", "photos/photos.lst", "photos-c", "--corruptions", "dusk", "--severities", 4, "--workers", 0, "--quiet"),
        *("--edition", "cifar-32"),
    )
    assert written.code == 0, written.err
    opened = installed.python(
        'images = sp.open_dataset("photos-c")\n'
        'print(json.dumps(sorted({(one.facts["corruption"], one.facts["severity"]) for one in images.samples})))'
    )
    assert opened == [["dusk", 4]]


@pytest.mark.parametrize("file", ["pyproject.toml", "shiftproof_dusk/__init__.py", "shiftproof_dusk/hesitation.py"])
def test_the_page_of_the_docs_shows_the_package_as_it_is(file: str) -> None:
    fence = {".toml": "toml", ".py": "python"}[Path(file).suffix]
    page = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
    assert f"```{fence}\n{(PACKAGE / file).read_text(encoding='utf-8')}```\n" in page


CONTRACTS = (
    "corruptions/test_corruption_contracts.py",
    "corruptions/test_sequences.py",
    "ood/test_detector_contract.py",
    "metrics/test_metric_contracts.py",
    "datasets/test_layout_contracts.py",
    "models/test_model_contract.py",
    "studies/test_study_contracts.py",
    "training/test_recipe_contracts.py",
)


def test_the_contract_tests_take_the_entries_of_an_installed_package(installed: Environment) -> None:
    contracts = [ROOT / "tests" / name for name in CONTRACTS]
    options = ["-q", "-rA", "-c", ROOT / "pyproject.toml", "-p", "no:cacheprovider", "-k", " or ".join(ADDED.values())]
    said = installed.run(sys.executable, "-m", "pytest", *options, *contracts)
    assert said.code == 0, said.out
    passed = set(re.findall(r"PASSED \S*?(\w+\.py)::", said.out))
    assert passed == {Path(name).name for name in CONTRACTS}


BROKEN = {
    "needs_a_library.py": "import a_library_that_nobody_has\n",
    "no_corruption.py": "DIM = 'dim'\n",
    "kinds.py": (
        "from shiftproof.studies.kind import StudyKind\n"
        "BLANK = StudyKind('Blank', 'What is missing?', 'kinds:Nothing', section='kinds:NO_SECTION', by_default=False)\n"
        "NO_SECTION = 3\n"
        "ODD = StudyKind('Odd', 'What is odd?', 'kinds:ODD', options='kinds:NO_SECTION', by_default=False)\n"
    ),
}
ENTRY_POINTS = """
[shiftproof.corruption]
fog = no_corruption:DIM
dim = no_corruption:DIM
grey = needs_a_library:GREY
[shiftproof.dataset]
films = needs_a_library:open_films
[shiftproof.ood_detector]
vague = no_corruption:VAGUE
[shiftproof.study]
blank = kinds:BLANK
odd = kinds:ODD
"""


@pytest.fixture(scope="module")
def broken(installed: Environment, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    """The same beside a package of which nothing is right."""
    site = tmp_path_factory.mktemp("broken")
    for name, code in BROKEN.items():
        (site / name).write_text(code)
    info = site / "all_wrong-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: all-wrong\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    sites = [installed.site, site]
    with forking(tmp_path_factory.mktemp("said"), IMPORTED, sites=sites, folder=installed.folder) as started:
        yield installed._replace(forking=started)


def test_a_faulty_plug_in_is_listed_with_its_fault_and_hides_nothing(broken: Environment) -> None:
    said = broken.shiftproof("list", "corruptions", "--json")
    assert said.code == 0, said.err
    told = {row["name"]: row["what it is"] for row in json.loads(said.out)}
    assert told["dusk"].startswith("Evening light")
    assert told["fog"].startswith("Plasma-fractal (diamond-square) fog")
    assert told["dim"] == (
        "(corruption 'dim' of a plug-in (no_corruption:DIM) cannot be used: it should be a Corruption, got str)"
    )
    assert told["grey"] == (
        "(corruption 'grey' of a plug-in (needs_a_library:GREY) cannot be used: "
        "No module named 'a_library_that_nobody_has'; install what it needs)"
    )
    assert said.err == "warning: corruption 'fog' of the plug-in all-wrong is not used: shiftproof has one of that name\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--studies", "corruption", "--corruptions", "grey"), "corruption 'grey' of a plug-in .* cannot be used"),
        (("--studies", "corruption", "--corruptions", "dim"), "it should be a Corruption, got str"),
        (("--studies", "blank"), "study 'Blank' of a plug-in .* AttributeError: module 'kinds' has no attribute 'Nothing'"),
        (("--studies", "ood", "--ood", "noise", "--ood-detectors", "vague"), "OOD detector 'vague' of a plug-in"),
    ],
)
def test_a_faulty_entry_that_is_asked_for_is_refused_in_a_sentence(
    arguments: tuple[str, ...], sentence: str, broken: Environment
) -> None:
    said = broken.shiftproof("run", "colour:rose,leaf,sky", "photos/photos.lst", *arguments, "--quiet", "--workers", 0)
    assert said.code == 1
    assert "Traceback" not in said.err
    last = said.err.splitlines()[-1]
    assert last.startswith("shiftproof: ")
    assert re.search(sentence, last), last


def test_pixels_that_are_not_what_was_promised_are_refused_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(catalog.CORRUPTIONS.plugged_in, "halved", f"{__name__}:HALVED")
    monkeypatch.setitem(catalog.PERTURBATIONS.plugged_in, "short", f"{__name__}:SHORT")
    photo = np.zeros((224, 224, 3), np.uint8)
    with pytest.raises(BadInput, match="corruption 'halved' should return a uint8 image of the picture's size"):
        sp.corrupt(photo, "halved")
    with pytest.raises(BadInput, match="perturbation 'short' should yield 3 frames, got 1"):
        sp.perturb(photo, "short")


HALVED = Corruption(lambda image, rng, *, by: image[::2], "halved", Severities("by", (1, 2, 3, 4, 5)))
SHORT = Perturbation(lambda canvas, rng, *, frames: iter([canvas.picture]), "short", Severities("frames", (3,)))


def test_a_run_goes_on_without_what_is_faulty(broken: Environment) -> None:
    said = broken.shiftproof(
        *("run", "colour:rose,leaf,sky", "photos", "--kind", "folder", "--labels", "none", "--studies", "hesitation"),
        *("--workers", 0, "--quiet", "--store", "others", "-o", "others.html"),
    )
    assert said.code == 0, said.err
    assert "Traceback" not in said.err
    assert "warning: study 'Odd' of a plug-in (kinds:NO_SECTION) cannot be used" in said.err
    assert "warning: study 'Blank' of a plug-in (kinds:NO_SECTION) cannot be used: its section should be" in said.err
    assert '<section id="hesitation"' in (broken.folder / "others.html").read_text(encoding="utf-8")
