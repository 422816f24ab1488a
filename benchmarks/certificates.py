"""Check certificates of degenerate context sets in extended precision, family by family."""

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rareswitch.design import g_optimal
from rareswitch.errors import CertificateError

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from reference.certificate import exact_certificate, regularized_max_leverage
from reference.degenerate import FAMILIES, degenerate_set

TOL = 0.05


@dataclass
class Tally:
    """How the designs of a family fared."""

    sets: int = 0
    refused: int = 0
    wrong: int = 0
    worst_error: float = 0.0


def count_wrong(sets: int, seed: int) -> dict[str, Tally]:
    """Design ``sets`` degenerate sets, in equal parts of each family, and compare every claim with 70 digits."""
    rng = np.random.default_rng(seed)
    tallies = {family: Tally() for family in FAMILIES}
    for s in range(sets):
        family = FAMILIES[s % len(FAMILIES)]
        tally = tallies[family]
        tally.sets += 1
        arms, alive = degenerate_set(rng, family)
        try:
            design = g_optimal(arms, alive, tol=TOL)
        except CertificateError:
            tally.refused += 1
            continue
        living = arms * alive[:, None]
        leverage, rank, residual = exact_certificate(living, design.weights)
        error = abs(float(design.max_leverage) - leverage) / max(1.0, leverage)
        tally.worst_error = max(tally.worst_error, error)
        right = (
            error <= 1e-9
            and int(design.rank) == rank
            and leverage <= (1 + TOL) * rank * (1 + 1e-9)
            and abs(float(design.residual) - residual) <= 1e-14
            and regularized_max_leverage(living, design.weights, 1e-20) <= (1 + TOL) * arms.shape[1] + 1e-6
            and abs(design.weights.sum() - 1.0) <= 1e-12
            and bool((design.weights >= 0).all())
            and not design.weights[~alive].any()
        )
        tally.wrong += not right
    return tallies


def main() -> int:
    """Print a line for each family; status 1 if a certificate is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=6000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    tallies = count_wrong(options.sets, options.seed)
    for family, tally in tallies.items():
        print(
            f"{family:32} {tally.sets:5} sets  {tally.refused} refused  {tally.wrong} wrong  "
            f"error ≤ {tally.worst_error:.0e}"
        )
    return 1 if any(tally.wrong for tally in tallies.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
