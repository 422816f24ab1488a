"""How functions, shards and results pass between processes: as bytes, pickled and unpickled here.

Both ends are processes of the same user and program; nothing that comes from elsewhere is unpickled.
"""

import pickle
import reprlib
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any

from rareswitch.errors import EngineError

#: Whether a function returned, and its result, pickled; or its exception with the text of the traceback.
Outcome = tuple[bool, bytes]
REMEDY = "Use plain data and a function from the top level of a module, or a functools.partial; or the engine 'serial'."


def packed(what: str, value: Any, dumps: Callable[[Any], bytes] = pickle.dumps, way: str = "to") -> bytes:
    """The bytes of a function, shard or result, or an error that says what to use in its place.

    >>> packed("shard 3", lambda: 0)
    Traceback (most recent call last):
    rareswitch.errors.EngineError: shard 3 cannot be sent to a worker: <function ... Use plain data ...
    """
    try:
        return dumps(value)
    except Exception as error:
        told = f"{what} cannot be sent {way} a worker: {reprlib.repr(value)} ({summary(error)})"
        raise EngineError(f"{told}. {REMEDY}") from error


def attempt(function: bytes, shard: bytes) -> Outcome:
    """Run a function in the worker and pack what comes of it, be it an exception; never raises one.

    >>> good, data = attempt(pickle.dumps(abs), pickle.dumps(-2))
    >>> good, pickle.loads(data)
    (True, 2)
    """
    try:
        try:
            call = partial(_loaded(function), pickle.loads(shard))
        except Exception as error:
            told = f"the function or its shard cannot be loaded in a worker ({summary(error)})"
            raise EngineError(f"{told}. Take them from modules that the worker can import.") from error
        result = call()
        return True, packed(f"the result, of type {type(result).__name__},", result, way="back from")
    except BaseException as error:  # also that of sys.exit, which would end the worker, or the program here
        text = "".join(traceback.format_exception(error)).rstrip()
        with suppress(Exception):  # of an exception whose __init__ does not take what it hands to pickle, most often
            data = pickle.dumps((error, text))
            if isinstance(error, Exception) and type(pickle.loads(data)[0]) is type(error):
                return False, data
        return False, pickle.dumps((EngineError(f"{summary(error)} (an exception that cannot be sent back)"), text))


def unpacked(where: str, future: Future[Outcome]) -> Any:
    """The result that :func:`attempt` packed; or raise the exception that it did, with its traceback as a note."""
    good, data = future.result()
    try:
        value = pickle.loads(data)
    except Exception as error:
        told = f"the result of {where} arrived and cannot be loaded ({summary(error)})"
        raise EngineError(f"{told}. Return plain data, or use the engine 'serial'.") from error
    if good:
        return value
    raised, text = value
    raised.add_note(f"raised by {where}, in a worker:\n{text}")
    raise raised


def summary(error: BaseException) -> str:
    """An error in one line.

    >>> summary(ValueError("no")), summary(ValueError())
    ('ValueError: no', 'ValueError')
    """
    return ": ".join([type(error).__name__, *str(error).splitlines()[:1]])


#: Unpickles functions, of which a worker gets the same with every shard of a map.
_loaded = lru_cache(maxsize=1)(pickle.loads)
