"""The claims of the paper in their order, and the run of them, which can be stopped and resumed."""

import os
import platform
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from pathlib import Path

import msgspec

from rareswitch.core import Result, plain_number, read_whole, whole, write_whole
from rareswitch.errors import FileFormatError, InputError, ParameterError
from rareswitch.lab.reproduction import algorithms, designs, regret, theory
from rareswitch.lab.reproduction.claims import Claim, Effort, Outcome, Size, judge_claim
from rareswitch.version import __version__

#: In the order of their numbers.
CLAIMS: tuple[Claim, ...] = (*algorithms.CLAIMS, *designs.CLAIMS, *theory.CLAIMS, *regret.CLAIMS, *theory.REMARKS)
#: The folder of the package, and the file with what is known of the processor.
PACKAGE, PROCESSOR = Path(__file__).parents[2], Path("/proc/cpuinfo")


class Reproduction(Result, frozen=True, kw_only=True):
    """What was measured of the paper's claims, and with what."""

    version: str
    #: Of the checkout, with a plus where files were changed; None where there is none.
    commit: str | None
    size: Size
    #: The first seed.
    seed: int
    processor: str
    outcomes: tuple[Outcome, ...]
    #: Whether Ctrl-C ended it; what was finished until then is here.
    interrupted: bool = False

    @property
    def failed(self) -> tuple[Outcome, ...]:
        """Failures that are not known."""
        return tuple(outcome for outcome in self.outcomes if outcome.verdict == "FAIL")


def reproduce(
    *,
    quick: bool = False,
    seed: int = 0,
    items: Sequence[int] | None = None,
    executor: Executor | None = None,
    keep: str | Path | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> Reproduction:
    """Measure the claims of the paper one after the other.

    Parameters
    ----------
    quick
        Fewer and smaller runs.
    seed
        The first seed, from 0 on. Those from 1000 on were used to develop.
    items
        Numbers of claims; all by default.
    executor
        Where the runs are made, here by default; the same comes back from all.
    keep
        A JSON file. What it holds is not measured again, and each claim that is finished is written to it.
    progress
        Called with the claims that are finished, their number, and how far the next one is.

    Examples
    --------
    >>> result = reproduce(quick=True, items=[1])
    >>> [(outcome.number, outcome.verdict) for outcome in result.outcomes]
    [(1, 'PASS')]
    """
    claims = _chosen(items)
    first = whole("seed", seed, low=0)
    size: Size = "quick" if quick else "whole"
    start = Reproduction(
        version=__version__, commit=_commit(), size=size, seed=first, processor=_processor(), outcomes=()
    )
    finished = {} if keep is None else {outcome.number: outcome for outcome in _resumed(Path(keep), start)}
    interrupted = False
    for place, claim in enumerate(claims):

        def tell(done: int, total: int, place: int = place, claim: Claim = claim) -> None:
            if progress is not None:
                progress(place, len(claims), f"{claim.number}: {done} of {total}")

        if claim.number in finished:
            continue
        try:
            finished[claim.number] = judge_claim(claim, Effort(size=size, seed=first, executor=executor, progress=tell))
            if keep is not None:
                outcomes = tuple(finished[number] for number in sorted(finished))
                _write(msgspec.structs.replace(start, outcomes=outcomes), Path(keep))
        except KeyboardInterrupt:
            interrupted = True
            break
    outcomes = tuple(finished[claim.number] for claim in claims if claim.number in finished)
    return msgspec.structs.replace(start, outcomes=outcomes, interrupted=interrupted)


def _chosen(items: Sequence[int] | None) -> tuple[Claim, ...]:
    """The claims of these numbers, in their order."""
    numbers = {claim.number for claim in CLAIMS}
    for number in items or ():
        if number not in numbers:
            rule = f"items must be numbers of claims, {min(numbers)} to {max(numbers)}; got {number}."
            raise ParameterError(rule, parameter="items", given=number)
    if items is not None and not items:
        raise InputError("items must name at least one claim; got none. Leave it out for all claims.")
    return tuple(claim for claim in CLAIMS if items is None or claim.number in items)


def _resumed(path: Path, start: Reproduction) -> tuple[Outcome, ...]:
    """What the file holds, if that is of the same code, size and seed."""
    if not path.exists():
        if not path.absolute().parent.is_dir():
            raise FileFormatError(f"{path}: cannot be written; there is no folder {path.absolute().parent}.")
        return ()
    try:
        held = msgspec.json.decode(read_whole(path), type=Reproduction)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        remedy = "Name a file that --keep wrote, or one that is not there yet"
        raise FileFormatError(f"{path}: not a file of finished claims ({error}). {remedy}.") from error
    for name in ("version", "commit", "size", "seed"):
        theirs, ours = getattr(held, name), getattr(start, name)
        if theirs != ours:
            problem = f"{path}: holds claims of {name} {theirs}, and this is {name} {ours}"
            raise FileFormatError(f"{problem}. Name another file, or go on with that {name}.")
    return held.outcomes


def _write(reproduction: Reproduction, path: Path) -> None:
    write_whole(msgspec.json.encode(reproduction, enc_hook=plain_number), path)


def _commit() -> str | None:
    """The commit of the checkout that the package is in, with a plus where files were changed."""
    root = PACKAGE.parents[1]
    if not (root / ".git").exists():
        return None
    command = ["git", "describe", "--always", "--dirty=+", "--abbrev=7", "--exclude=*"]
    with suppress(OSError, subprocess.CalledProcessError):
        return subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout.strip()
    return None


def _processor() -> str:
    """Its name and how many cores there are."""
    name = platform.processor() or platform.machine()
    with suppress(OSError, StopIteration):
        lines = PROCESSOR.read_text().splitlines()
        name = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return f"{name}, {os.cpu_count() or 1} cores"
