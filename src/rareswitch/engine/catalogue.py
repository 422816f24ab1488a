"""Engines by name."""

from collections.abc import Callable
from functools import partial

from rareswitch.engine.cluster import Dask
from rareswitch.engine.engine import MOST_WORKERS, Engine
from rareswitch.engine.processes import Processes
from rareswitch.engine.serial import Serial
from rareswitch.errors import InputError, ParameterError, did_you_mean

ENGINES: dict[str, Callable[..., Engine]] = {"serial": Serial, "processes": Processes, "dask": partial(Dask, None)}


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
    name, colon, rest = str(text).partition(":")
    if name not in ENGINES:
        known = "serial, serial:THREADS, processes, processes:N, dask, dask:N and dask:HOST:PORT"
        raise InputError(f"no engine is called '{name}'; there are: {known}.{did_you_mean(name, ENGINES)}")
    if name == "dask" and ":" in rest:
        return Dask(rest)
    # not int(rest) alone, which takes ' 4', '1_0' and other alphabets' digits
    if colon and not (rest.isascii() and rest.isdigit() and len(rest) <= 9 and 1 <= int(rest) <= MOST_WORKERS):
        rule = f"a whole number between 1 and {MOST_WORKERS}" + ", or the address of a scheduler" * (name == "dask")
        raise ParameterError(f"after the colon comes {rule}; got '{text:.60}'.")
    return ENGINES[name](int(rest)) if colon else ENGINES[name]()
