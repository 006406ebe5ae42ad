"""Kills commands at random moments, restarts them, and compares the result with an uninterrupted run, byte for byte.

    SHIFTPROOF_TEST_DATA=... python tools/kill_rounds.py --kills 100

Each command (predict, run, corrupt, two of curate, review) gets its share of the kills. One that is killed is started
again on what it left, until it ends by itself; then predictions, written images, tables and candidates must be those of a
run that nobody killed, nothing half-written may be left, and of votes every acknowledged one must be there once. Exits
with 1 otherwise.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parent.parent / "tests"))  # the simulated reviewers are those of the tests

PEOPLE = [f"person {number}" for number in range(5)]
PATIENCE = 600.0
"""Seconds that a run may take on a busy machine."""


@dataclass
class Count:
    """What became of one command."""

    command: str
    kills: int = 0
    runs_to_the_end: int = 0  # each compared with the undisturbed one
    compared: int = 0  # rows, files or votes, in all comparisons
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Killed:
    """A command that makes files in the folder it is started in."""

    name: str
    arguments: tuple[str, ...]
    made: Callable[[Path], Mapping[str, str]]  # digests of what it made, by what that is


def main() -> None:
    options = _options()
    chance = random.Random(options.seed)  # noqa: S311 moments, and no secrets
    chosen = options.commands.split(",")
    data = Path(os.environ["SHIFTPROOF_TEST_DATA"]) / "ilsvrc-sample-1000"
    with tempfile.TemporaryDirectory() as folder:
        photos = Path(folder) / "photos"
        photos.mkdir()
        for photo in sorted(data.glob("*.jpg"))[: options.photos]:
            (photos / photo.name).symlink_to(photo)
        counts = []
        for number, name in enumerate(chosen):
            kills = len(range(number, options.kills, len(chosen)))
            if name == "review":
                counts.append(kill_review(Path(folder) / name, kills, chance))
            else:
                counts.append(kill_command(_commands(photos)[name], Path(folder) / name, kills, chance))
            print(f"{name}: {counts[-1].kills} kills, {len(counts[-1].problems)} problems", file=sys.stderr, flush=True)
    if options.json:
        print(json.dumps([asdict(count) for count in counts], indent=1))
    else:
        for count in counts:
            done = f"{count.kills:4} kills  {count.runs_to_the_end:4} runs to the end  {count.compared:7,} compared"
            print(f"{count.command:10} {done}")
            for problem in count.problems:
                print(f"    {problem}")
    sys.exit(any(count.problems for count in counts))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100, help="In all, shared out to the commands.")
    parser.add_argument("--seed", type=int, default=0, help="Random seed of the moments.")
    parser.add_argument("--photos", type=int, default=48)
    parser.add_argument("--commands", default="predict,run,corrupt,curate,boxes,review")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def _commands(photos: Path) -> Mapping[str, Killed]:
    asked = ("lite:0", str(photos), "--quiet", "--batch-size", "4")
    studies = (
        "--studies",
        "accuracy,corruption",
        "--corruptions",
        "fog,contrast",
        "--severities",
        "1,3",
        "--csv",
        "numbers.csv",
    )
    corrupted = ("--corruptions", "fog,gaussian_noise", "--severities", "1,3,5", "--edition", "imagenet-224", "--quiet")
    return {
        command.name: command
        for command in (
            Killed("predict", ("predict", *asked, "--keep", "features"), rows_made),
            Killed(
                "run", ("run", *asked, *studies), lambda folder: {**rows_made(folder), **files_made(folder, "numbers.csv")}
            ),
            Killed("corrupt", ("corrupt", str(photos), "out", *corrupted), lambda folder: files_made(folder, "out/**/*")),
            Killed(
                "curate",
                ("curate", "adversarial", str(photos), "hard", "--filter", "lite:0", "--max-probability", "1", "--quiet"),
                lambda folder: files_made(folder, "hard/**/*"),
            ),
            Killed(
                "boxes",
                ("curate", "boxes", str(photos), "drawn", "--quiet"),
                lambda folder: files_made(folder, "drawn/**/*"),
            ),
        )
    }


def kill_command(command: Killed, root: Path, kills: int, chance: random.Random) -> Count:
    """Kills a command so often, beginning in a new folder whenever it came to its end."""
    count = Count(command.name)
    whole = root / "undisturbed"
    whole.mkdir(parents=True)
    typed = [sys.executable, "-m", "shiftproof", *command.arguments]
    started = time.monotonic()
    subprocess.run(typed, cwd=whole, check=True, capture_output=True)  # noqa: S603 our own command
    seconds = time.monotonic() - started
    wanted = command.made(whole)
    turn = 0
    while count.kills < kills:
        folder = root / f"turn{turn}"
        folder.mkdir()
        turn += 1
        ended = False
        while not ended:
            with (root / "said").open("w+") as said:
                process = subprocess.Popen(typed, cwd=folder, stdout=subprocess.DEVNULL, stderr=said)  # noqa: S603
                try:
                    # the last of the kills is followed by a run to the end
                    moment = chance.uniform(0.1, 1.1) * seconds if count.kills < kills else PATIENCE
                    code = process.wait(timeout=moment)
                    ended = True
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
                    count.kills += 1
                    continue
                said.seek(0)
                if code:
                    count.problems.append(f"ended with {code} in {folder.name}: {said.read()[-300:]}")
        count.runs_to_the_end += 1
        found = command.made(folder)
        count.compared += len(wanted)
        differing = [what for what in {**wanted, **found} if wanted.get(what) != found.get(what)]
        count.problems += [f"{what} is another in {folder.name}" for what in differing[:5]]
        left = [str(path.relative_to(root)) for path in folder.rglob(".*") if path.name.endswith(".unfinished")]
        count.problems += [f"left behind: {path}" for path in left[:5]]
    return count


def rows_made(folder: Path) -> dict[str, str]:
    """A digest of everything stored of each image in each run, however it lies in files."""
    from shiftproof.runs.rows import StoredRun
    from shiftproof.types import KEEPS

    found = {}
    for path in sorted(folder.glob("runs/rows/*")):
        run = StoredRun(path, {})
        for keep in KEEPS:
            pairs = sorted(run.contents(keep, verified=True).rows)
            arrays = run.load(pairs, keep) if pairs else {}
            for row, pair in enumerate(pairs):
                held = b"".join(np.ascontiguousarray(arrays[name][row]).tobytes() for name in sorted(arrays))
                found[f"{path.name} {keep} {pair[0]}"] = hashlib.sha256(held).hexdigest()
    return found


def files_made(folder: Path, pattern: str) -> dict[str, str]:
    """A digest of every file that a reader sees."""
    paths = [path for path in folder.glob(pattern) if path.is_file() and not path.name.startswith(".")]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(paths)}


def kill_review(root: Path, kills: int, chance: random.Random) -> Count:
    """Kills a review server while people vote, who send again what was not acknowledged."""
    from review.served import drawn_project, served
    from review.simulated import check_votes, reviewers_at_work
    from shiftproof.review.database import Database
    from shiftproof.review.jobs import DATABASE

    count = Count("review")
    drawn_project(root, 5000)
    with served(root, invite=PEOPLE) as server:
        with reviewers_at_work(server, PEOPLE, pace=20, seed=chance.randrange(2**32)) as crew:
            for _ in range(kills):
                time.sleep(chance.uniform(0.05, 1.5))
                server.kill()
                count.kills += 1
                server.start()
        count.runs_to_the_end += 1
        database = Database(root / DATABASE)
        count.compared = sum(len(reviewer.acknowledged) for reviewer in crew)
        try:
            check_votes(crew, database)
        except AssertionError as lost:
            count.problems.append(f"votes: {str(lost)[:500]}")
        database.close()
    return count


if __name__ == "__main__":
    main()
