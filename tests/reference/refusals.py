"""Refusals, one line each."""

from collections.abc import Callable
from typing import Any

import pytest


def raises(
    error: type[BaseException], match: str | None, call: Callable[..., object], /, *args: Any, **options: Any
) -> None:
    """The call fails with this kind of error, whose text matches the regular expression."""
    with pytest.raises(error, match=match):
        call(*args, **options)
