"""What fails because a database is locked or gone for a while is tried again, for some seconds."""

import random
import time
from collections.abc import Callable
from typing import TypeVar

from rareswitch.errors import StoreError, UnreachableError

T = TypeVar("T")
#: Seconds for which a database may be gone, or locked by others.
PATIENCE = 10.0


def attempt(call: Callable[[], T], judged: Callable[[Exception], tuple[bool, str]]) -> T:
    """Carry something out, again and again while it is worth it.

    Parameters
    ----------
    call
        May be carried out again although it failed, or although its end was not seen.
    judged
        Says of an error whether trying again may help; and what to tell, '' where it is raised as it is.

    Examples
    --------
    >>> results = iter([OSError("gone"), 7])
    >>> def call():
    ...     if isinstance(result := next(results), OSError):
    ...         raise result
    ...     return result
    >>> attempt(call, lambda error: (True, "the server is gone."))
    7
    """
    end, pause = time.monotonic() + PATIENCE, 0.001
    while True:
        try:
            return call()
        except StoreError:
            raise
        except Exception as error:
            again, told = judged(error)
            if not told:
                raise
            if not again or time.monotonic() > end:
                if again:
                    raise UnreachableError(f"{told} It was tried for {PATIENCE:.0f} s.") from error
                raise StoreError(told) from error
        time.sleep(random.uniform(0.5, 1.5) * pause)
        pause = min(1.5 * pause, 0.02)
