"""Engines by name."""

from rareswitch.engine.cluster import Dask
from rareswitch.engine.engine import MOST_WORKERS, Engine
from rareswitch.engine.processes import Processes
from rareswitch.engine.serial import Serial
from rareswitch.errors import InputError, ParameterError

NAMES = {
    "serial": "in this process; serial:N in N threads",
    "processes": "in as many processes as there are processors; processes:N in N",
    "dask": "in a Dask cluster started here; dask:N with N workers; dask:HOST:PORT in the one of that scheduler",
}


def make_engine(text: str) -> Engine:
    """The engine of that name: ``serial``, ``processes`` or ``dask``, with a number of workers or an address.

    >>> make_engine("serial"), make_engine("processes:2")
    (<engine serial>, <engine processes:2>)

    Parameters
    ----------
    text
        ``serial``, ``serial:THREADS``, ``processes``, ``processes:N``, ``dask``, ``dask:N`` for a local cluster
        of N workers, or ``dask:ADDRESS``, such as ``dask:tcp://127.0.0.1:8786``, which is connected to at once.
    """
    if not isinstance(text, str):
        raise InputError(f"an engine is named by a text, such as 'processes:4'; got {text!r}.")
    name, colon, rest = text.partition(":")
    if name not in NAMES:
        known = "; ".join(f"{known}, {what}" for known, what in NAMES.items())
        raise InputError(f"no engine is called '{name}'; there are: {known}.")
    if name == "dask" and ":" in rest:
        return Dask(rest)
    other = ", or the address of a scheduler, such as 127.0.0.1:8786" if name == "dask" else ""
    workers = _workers(text, rest, other) if colon else None
    if name == "serial":
        return Serial(1 if workers is None else workers)
    return Processes(workers) if name == "processes" else Dask(workers=workers)


def _workers(text: str, given: str, other: str) -> int:
    # not int(given) alone, which takes ' 4', '1_0' and other alphabets' digits
    if not (given.isascii() and given.isdigit()) or len(given) > 9 or not 1 <= int(given) <= MOST_WORKERS:
        raise ParameterError(
            f"after the colon comes a whole number between 1 and {MOST_WORKERS}{other}; got '{text:.60}'."
        )
    return int(given)
