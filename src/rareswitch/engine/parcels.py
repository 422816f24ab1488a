"""How functions, shards and results travel between processes: as bytes, pickled and unpickled on our terms.

Both ends are processes of the same user and program; nothing that comes from elsewhere is unpickled.
"""

import pickle
import reprlib
import traceback
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from rareswitch.errors import EngineError

PROTOCOL = 5
Dumps = Callable[[Any], bytes]
REMEDY = (
    "Use a function from the top level of a module, or a functools.partial of one, with plain data; or the engine "
    "'serial', which sends nothing."
)


def dumps(value: Any) -> bytes:
    """Pickle a value.

    >>> len(dumps(1))
    5
    """
    return pickle.dumps(value, protocol=PROTOCOL)


def packed(what: str, value: Any, dumps: Dumps = dumps) -> bytes:
    """The bytes of a function or shard, or an error that says what to use in its place.

    >>> packed("shard 3", lambda: 0)
    Traceback (most recent call last):
    rareswitch.errors.EngineError: shard 3 cannot be sent to a worker: ... Use a function from the top level ...
    """
    try:
        return dumps(value)
    except Exception as error:
        shown = reprlib.repr(value)
        raise EngineError(f"{what} cannot be sent to a worker: {shown} ({_told(error)}). {REMEDY}") from error


def attempt(function: bytes, shard: bytes) -> bytes:
    """Run a function in the worker and pack what comes of it; never raises an :class:`Exception`.

    >>> unpacked("shard 0", attempt(dumps(abs), dumps(-2)))
    2
    """
    try:
        loaded, argument = _loaded(function), pickle.loads(shard)
    except Exception as error:
        return _failed(
            EngineError(
                f"the function or its shard cannot be loaded in a worker ({_told(error)}). They must come from "
                f"modules that the worker can import. {REMEDY}"
            ),
            error,
        )
    try:
        result = loaded(argument)
    except Exception as error:
        return _failed(error, error)
    try:
        return dumps((True, result))
    except Exception as error:
        return _failed(
            EngineError(
                f"the result, of type {type(result).__name__}, cannot be sent back from a worker ({_told(error)}). "
                "Return plain data, or use the engine 'serial'."
            ),
            error,
        )


def unpacked(where: str, outcome: bytes) -> Any:
    """The result that :func:`attempt` packed; or raise the exception that it did, with its traceback as a note."""
    try:
        good, value = pickle.loads(outcome)
    except Exception as error:
        raise EngineError(
            f"the result of {where} arrived and cannot be loaded ({_told(error)}). Return plain data, or use the "
            "engine 'serial'."
        ) from error
    if good:
        return value
    raised, text = value
    raised.add_note(f"raised by {where}, in a worker:\n{text}")
    raise raised


@lru_cache(maxsize=1)  # a worker gets the same function with every shard of a map
def _loaded(function: bytes) -> Any:
    return pickle.loads(function)


def _failed(error: Exception, cause: Exception) -> bytes:
    text = "".join(traceback.format_exception(cause)).rstrip()
    try:
        data = dumps((False, (error, text)))
        if type(pickle.loads(data)[1][0]) is type(error):
            return data
    except Exception:  # an exception whose __init__ does not take what it hands to pickle, most often
        pass
    return dumps((False, (EngineError(f"{_told(error)} (an exception that cannot be pickled)"), text)))


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
