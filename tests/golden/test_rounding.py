"""What is learned does not depend on rounding: as if another processor had learned it, with no other processor.

Whatever linear algebra a learner asks for is solved for matrices that differ in their last digits. Eigenvectors and
singular vectors get arbitrary signs besides, and turn freely where eigenvalues are close.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

from golden.record_runs import record
from golden.test_runs import GOLDEN, assert_same
from rareswitch.core import FloatArray
from rareswitch.experiment import create
from rareswitch.learner import LEARNERS
from reference.processors import KERNELS, other_kernels
from reference.trials import advance_batch

#: Relative to each entry, or to the largest where a decomposition is orthogonal: a few units in the last place.
ROUNDING = 1e-15


@pytest.fixture
def other_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Linear algebra that rounds otherwise, and differently in every call."""
    rng = np.random.default_rng(1)

    def shaken(matrix: FloatArray) -> FloatArray:
        return np.asarray(matrix * (1.0 + ROUNDING * rng.standard_normal(matrix.shape)))

    def symmetric(matrix: FloatArray) -> FloatArray:
        noise = rng.standard_normal(matrix.shape)
        return np.asarray(matrix + ROUNDING * np.abs(matrix).max(initial=0.0) * (noise + noise.swapaxes(-1, -2)))

    def of_shaken(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda matrix, *others, **options: function(shaken(matrix), *others, **options)

    def triangular(matrix: FloatArray) -> FloatArray:
        noise = ROUNDING * rng.standard_normal(matrix.shape)
        return np.asarray(cholesky(matrix * (1.0 + noise + noise.swapaxes(-1, -2))), dtype=np.float64)

    def eigh(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
        values, vectors = decompose(symmetric(matrix))
        return values, vectors * rng.choice([-1.0, 1.0], vectors.shape[-1])

    def solve_factored(factor: Any, moment: FloatArray) -> FloatArray:
        return np.asarray(cho_solve(factor, shaken(moment)))

    cholesky, decompose, cho_solve = np.linalg.cholesky, np.linalg.eigh, scipy.linalg.cho_solve
    for name in ("solve", "inv", "slogdet", "svd", "lstsq", "qr"):
        monkeypatch.setattr(np.linalg, name, of_shaken(getattr(np.linalg, name)))
    monkeypatch.setattr(np.linalg, "cholesky", triangular)
    monkeypatch.setattr(np.linalg, "eigh", eigh)
    monkeypatch.setattr(scipy.linalg, "cho_solve", solve_factored)


@pytest.mark.usefixtures("other_rounding")
@pytest.mark.parametrize("name", LEARNERS)
def test_learners_decide_alike_however_linear_algebra_rounds(name: str) -> None:
    for place in ("segments", "plain"):
        run, recorded = record(name, place, 11, "stepped"), GOLDEN[f"{name}/{place}/11/stepped"]
        assert_same(run, recorded, f"{name} in {place}")


@pytest.mark.usefixtures("other_rounding")
@pytest.mark.parametrize(("place", "seed"), [("segments", 11), ("drifting", 12), ("fixed", 11)])
def test_plans_are_alike_however_linear_algebra_rounds(place: str, seed: int) -> None:
    assert_same(record("foresight", place, seed, "simulated"), GOLDEN[f"foresight/{place}/{seed}/simulated"], place)


@pytest.mark.parametrize("env", ["gaussian", "plain", "fixed"])
def test_experiments_verify_however_linear_algebra_rounds(env: str, request: pytest.FixtureRequest) -> None:
    trial = create("memory:", "spring", dim=5, horizon=2000, policies=6, seed=3, now=0.0)
    for _ in range(5):
        advance_batch(trial, env=env)
    request.getfixturevalue("other_rounding")
    verification = trial.verify()
    assert verification.holds, str(verification)
    assert [entry.verdict for entry in verification.policies].count("rounding") >= 3


AVX512 = "pni sse4_2 avx avx2 fma avx512f avx512cd avx512bw avx512dq avx512vl"


@pytest.mark.parametrize(
    ("machine", "instructions", "default", "names", "skipped"),
    [
        ("x86_64", "pni sse4_2 avx avx2 fma", "Haswell", ["Prescott", "Sandybridge"], ["SkylakeX"]),
        ("x86_64", AVX512, "Zen", ["Prescott", "SkylakeX"], []),
        ("x86_64", AVX512, "Cooperlake", ["Prescott", "Haswell"], []),
        ("x86_64", "pni sse4_2", "Nehalem", ["Prescott"], ["Sandybridge", "Haswell", "SkylakeX"]),
        ("aarch64", "asimd atomics sve", "neoversev1", ["ARMV8", "NEOVERSEN1"], []),
        ("x86_64", "", "", [], ["Prescott", "Nehalem", "Sandybridge", "Haswell", "SkylakeX", "other kernels"]),
    ],
)
def test_kernels_that_a_processor_cannot_run_are_skipped_by_name(
    machine: str, instructions: str, default: str, names: list[str], skipped: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reference.processors.instructions", lambda: frozenset(instructions.split()))
    chosen, lines = other_kernels(KERNELS[machine], default)
    assert [kernel.name for kernel in chosen] == names
    assert len(lines) == len(skipped)
    assert all(name in line for name, line in zip(skipped, lines, strict=True))
