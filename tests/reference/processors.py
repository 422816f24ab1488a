"""Kinds of processors that this one can stand for; ``python tests/reference/processors.py`` runs golden tests on two.

OpenBLAS has kernels for many processors, NumPy and Numba use what instructions they find. Environment variables make
them take less, so that what is learned here can be compared with what is learned there. OpenBLAS does not check whether
the processor has the instructions: that is looked up first.
"""

import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np  # noqa: F401, loads the library whose kernels are asked for
from threadpoolctl import threadpool_info

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, kw_only=True)
class Processor:
    """A kind of processor, told to the libraries by environment variables."""

    name: str
    environment: Mapping[str, str]
    #: As ``/proc/cpuinfo`` calls the instructions that it needs.
    needs: frozenset[str]

    def missing(self) -> str:
        """The instructions that this processor lacks, in words; empty where it has all."""
        return ", ".join(sorted(self.needs - instructions()))


def instructions() -> frozenset[str]:
    """What this processor can do; empty where that is not told."""
    info = Path("/proc/cpuinfo")
    text = info.read_text(encoding="utf-8") if info.exists() else ""
    match = re.search(r"^(?:flags|Features)\s*:(.*)$", text, re.MULTILINE)
    return frozenset(match[1].split()) if match else frozenset()


def _kernels(name: str, needs: str) -> Processor:
    return Processor(name=name, environment={"OPENBLAS_CORETYPE": name}, needs=frozenset(needs.split()))


#: OpenBLAS's kernels in NumPy's wheels, the oldest first. Zen takes Haswell's, Cooperlake and later ones SkylakeX's.
KERNELS: dict[str, list[Processor]] = {
    "x86_64": [
        _kernels("Prescott", "pni"),
        _kernels("Nehalem", "sse4_2"),
        _kernels("Sandybridge", "avx"),
        _kernels("Haswell", "avx2 fma"),
        _kernels("SkylakeX", "avx512f avx512cd avx512bw avx512dq avx512vl"),
    ],
    "aarch64": [
        _kernels("ARMV8", "asimd"),
        _kernels("NEOVERSEN1", "asimd atomics"),
        _kernels("NEOVERSEV1", "asimd atomics sve"),
    ],
}
#: Whose kernels other processors take.
TAKEN_BY = {"Zen": "Haswell", "Cooperlake": "SkylakeX", "SapphireRapids": "SkylakeX"}
#: Other compiled code.
INSTRUCTIONS = [
    Processor(name="Numba generic", environment={"NUMBA_CPU_NAME": "generic"}, needs=frozenset()),
    Processor(
        name="NumPy without AVX2",
        environment={"NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL"},  # as NumPy 2.4 calls them
        needs=frozenset({"avx2"}),
    ),
]


def processors() -> list[Processor]:
    """All kinds that are known for machines like this one."""
    return [*KERNELS.get(platform.machine(), []), *INSTRUCTIONS]


def default_kernels() -> str:
    """The kernels that OpenBLAS takes here by itself, as it calls them; empty where NumPy has another library."""
    libraries = [library for library in threadpool_info() if library.get("internal_api") == "openblas"]
    return str(libraries[0]["architecture"]) if libraries else ""


def other_kernels(kernels: Sequence[Processor], default: str) -> tuple[list[Processor], list[str]]:
    """The oldest kernels, and the newest, but for those that are taken anyway; and why others are skipped."""
    skipped = [
        f"kernels of {kernel.name}: skipped, this processor lacks {kernel.missing()}"
        for kernel in kernels
        if kernel.missing()
    ]
    default = TAKEN_BY.get(default, default).lower()
    others = [kernel for kernel in kernels if not kernel.missing() and kernel.name.lower() != default]
    if not others:
        skipped.append(f"other kernels: skipped, {platform.machine()} is not known to run two types")
    return [*others[:1], *others[1:][-1:]], skipped


def main() -> int:
    """Repeat the golden tests under two other types of kernels."""
    kernels, skipped = other_kernels(KERNELS.get(platform.machine(), []), default_kernels())
    for line in skipped:
        print(line, flush=True)
    failed = False
    for kernel in kernels:
        print(f"golden tests, kernels of {kernel.name} ...", flush=True)
        options = ["-q", "-n", "auto", "--dist", "worksteal"]
        command = [sys.executable, "-m", "pytest", *options, "tests/golden/test_runs.py"]
        failed |= subprocess.run(command, cwd=ROOT, env=os.environ | kernel.environment, check=False).returncode != 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
