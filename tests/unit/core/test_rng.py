import hashlib
import math
from typing import Any

import numpy as np
import pytest

from rareswitch.core import id_keys, normals, one_key, uniforms, uniforms_at
from rareswitch.errors import ParameterError
from reference.refusals import raises


def test_numbers_depend_on_seed_stream_and_decision_alone() -> None:
    together = uniforms(5, "decide", 0, 100, width=3)
    for first in (0, 1, 2, 3, 4, 7, 63):
        np.testing.assert_array_equal(uniforms(5, "decide", first, 10, width=3), together[first : first + 10])
    assert not np.array_equal(together, uniforms(6, "decide", 0, 100, width=3))
    assert not np.array_equal(together, uniforms(5, "noise", 0, 100, width=3))


def test_the_numbers_never_change() -> None:
    """Decisions that were logged must replay in years to come."""
    expected = [0.4457512232790489, 0.8690491332808711, 0.5949955290101053]
    assert uniforms(7, "golden", 1, 3)[:, 0].tolist() == expected


@pytest.mark.parametrize("strings", [False, True])
def test_uniforms_are_uniform_and_open(strings: bool) -> None:
    names = [f"request-{k}" for k in range(50_000)]
    u = uniforms_at(1, "u", id_keys(names)) if strings else uniforms(1, "u", 0, 50_000)[:, 0]
    assert u.min() > 0.0
    assert u.max() < 1.0
    # Dvoretzky-Kiefer-Wolfowitz, false alarm at most 1e-6
    empirical = np.arange(1, len(u) + 1) / len(u)
    assert np.abs(np.sort(u) - empirical).max() <= math.sqrt(math.log(2 / 1e-6) / (2 * len(u))) + 1 / len(u)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        *(({"seed": wrong}, "seed") for wrong in (-1, 1.5, True, None)),
        *(({name: wrong}, name) for name, wrong in (("first", -1), ("count", -1), ("width", 0))),
        ({"first": 2**63}, "first must be between"),
        ({"first": 2**62, "width": 4}, "first must be between"),
        ({"first": 10**30}, "first must be between"),
    ],
)
def test_bad_keys_are_refused(bad: dict[str, Any], words: str) -> None:
    usual: dict[str, Any] = {"seed": 1, "stream": "s", "first": 0, "count": 3}
    raises(ParameterError, words, uniforms, **usual | bad)
    uniforms_at(1, "s", id_keys([1]))  # 1 == True, and its key is remembered
    if "seed" in bad:
        raises(ParameterError, "seed", uniforms_at, bad["seed"], "s", id_keys([1]))


def test_the_bits_are_those_of_the_published_generator() -> None:
    """NumPy's Philox4x64-10 passes the known-answer tests of its authors."""
    key = hashlib.blake2b(b"7/known", digest_size=16).digest()
    raw = np.random.Philox(key=int.from_bytes(key, "little")).random_raw(50)
    expected = ((raw >> np.uint64(12)) + 0.5) * 2.0**-52
    np.testing.assert_array_equal(uniforms(7, "known", 0, 50)[:, 0], expected)


def test_quantiles_are_exact_to_rounding() -> None:
    from scipy.special import ndtri

    u = uniforms(2, "quantiles", 0, 200_000)
    np.testing.assert_allclose(normals(2, "quantiles", 0, 200_000), ndtri(u), rtol=1e-13, atol=1e-15)


def test_scattered_numbers_are_those_of_the_row() -> None:
    together = uniforms(5, "decide", 0, 1000)[:, 0]
    ids = np.random.default_rng(1).permutation(1000)
    np.testing.assert_array_equal(uniforms_at(5, "decide", id_keys(ids)), together[ids])
    np.testing.assert_array_equal(uniforms_at(5, "decide", id_keys(ids[300:])), together[ids[300:]])
    for far in (10**15, 2**63 - 4):
        np.testing.assert_array_equal(uniforms_at(1, "s", id_keys(range(far, far + 4))), uniforms(1, "s", far, 4)[:, 0])


def test_strings_have_counters_of_their_own() -> None:
    """NumPy's generator adds one to its counter before the first block."""
    key = hashlib.blake2b(b"7/known", digest_size=16).digest()
    for text in ("a", "12", "request-1"):
        low, high = one_key(text)
        counter = (low | high << 64) - 1
        raw = np.random.Philox(key=int.from_bytes(key, "little"), counter=counter).random_raw(1)
        expected = ((raw >> np.uint64(12)) + 0.5) * 2.0**-52
        np.testing.assert_array_equal(uniforms_at(7, "known", id_keys([text])), expected)
    assert uniforms_at(7, "known", id_keys(["12"])) != uniforms_at(7, "known", id_keys([12]))
