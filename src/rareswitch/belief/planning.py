"""Planned exploration: at an update, look ahead to what each amount of exploration costs now and saves later."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rareswitch.belief.posterior import Link, Posterior, ignorance, stretch
from rareswitch.core import (
    BoolArray,
    ContextSets,
    FloatArray,
    IntArray,
    first_highest,
    inverse_root,
    normals,
    read_only,
)
from rareswitch.lanes import compiled

__all__ = ["best_arms", "best_prospect", "spread", "unseen_directions", "within_memory"]

#: Multiples of the posterior's spread at which parameters may be drawn. Not 0: of arms that are yet to come, and of
#: contexts so rare that the sampled sets do not show them, a plan knows nothing; the least of these costs little.
SCALES = (0.15, 0.3, 0.5, 0.7, 1.0, 1.4)
#: Parameters that the look-ahead tries out. With 64, a mistake of one chance in a hundred goes unseen, and may last.
TRUTHS = 512
#: The most entries of their precision matrices: with many features there are fewer truths, at least 64.
TRUTH_NUMBERS = 1 << 19
#: Parameters by which the next batch is played in it; a policy holds twice this number.
PLAYED = 64
#: Batches of the look-ahead. Where more are to come, it plays some of them as one.
STAGES = 5
#: The next batch is taken to teach this share of what is known, and of what it teaches of each feature, in every
#: direction besides. What it really teaches may have no full rank, and the root of such a matrix depends on rounding.
KNOWN_SHARE, TAUGHT_SHARE = 1e-10, 1e-12
#: The most numbers that a plan may work with at a time.
SAMPLE_NUMBERS = 1 << 23
#: Of the weight of an arm: a direction in which all arms that a plan sees have no more together is half unseen.
HARDLY_SEEN = 0.01


@compiled
def best_columns(scores, available, best, arms):  # type: ignore[no-untyped-def]
    """The first available arm with the highest of ``scores`` (n, K, J), for each set and each of J: ``arms`` (n, J).

    ``best`` (J,) is scratch.
    """
    for s in range(scores.shape[0]):
        for j in range(scores.shape[2]):
            best[j] = -np.inf
        for k in range(scores.shape[1]):
            if available[s, k]:
                for j in range(scores.shape[2]):
                    higher = scores[s, k, j] > best[j]
                    best[j] = scores[s, k, j] if higher else best[j]
                    arms[s, j] = k if higher else arms[s, j]


@dataclass(frozen=True, kw_only=True)
class Prospect:
    """One amount of exploration and what it is expected to cost."""

    #: Multiple of the belief's spread in the next batch.
    scale: float
    #: Expected regret of all decisions to come, if every batch after the next is greedy; of more than five by groups.
    cost: float
    #: That of the next batch alone.
    next_cost: float


def best_prospect(
    belief: Posterior,
    sets: ContextSets,
    *,
    known: int,
    lengths: Sequence[int],
    seed: int,
    update: int,
    least_scale: float = 0.0,
) -> Prospect:
    """The first prospect with the least cost.

    Parameters
    ----------
    belief
        What is known.
    sets
        A sample of context sets, like those to come.
    known
        Decisions that the belief rests on.
    lengths
        Decisions of each batch to come: the next one, then those after it.
    seed, update
        Key the draws.
    least_scale
        The least scale that may be chosen.
    """
    candidates = prospects(belief, sets, known=known, lengths=lengths, seed=seed, update=update)
    candidates = [candidate for candidate in candidates if candidate.scale >= least_scale]
    return candidates[int(first_highest(-np.array([candidate.cost for candidate in candidates])))]


def prospects(
    belief: Posterior, sets: ContextSets, *, known: int, lengths: Sequence[int], seed: int, update: int
) -> list[Prospect]:
    """What each scale in the next batch is expected to cost by the end.

    The rest of the run is played through for truths θ_j from the belief N(θ̂, σ²Λ⁻¹). The next batch, posterior draws at
    a scale, gathers the information nI and ends with the estimate (Λ + nI)⁻¹(Λθ̂ + nIθ_j + σ(nI)^½ξ_j). Each batch after
    it, or group of them (:func:`stages`), is greedy on its estimate, pays for that what θ_j says, and teaches what the
    arms it chose teach: where contexts explore by themselves little is planned, where they do not a mistake would last.
    All scales see the same truths and the same noise.

    Batches take turns on two halves of the sets, because what was learned on some sets is best known on those.
    """
    lengths, charged = stages(known, lengths)
    dim = len(belief.estimate)
    truth_count = max(64, min(TRUTHS, TRUTH_NUMBERS // dim**2))
    z = normals(seed, "plan", update, 1, (2 * truth_count + PLAYED) * dim).reshape(-1, dim)
    root = inverse_root(belief.precision)
    truths = belief.estimate + belief.noise * z[:truth_count] @ root
    parts = [ContextSets(sets.contexts[i::2], sets.available[i::2]) for i in range(min(2, len(sets)))]
    halves = [Stage.of(part, truths, belief.link) for part in parts]
    count = max(len(half.best) for half in halves)
    shocks = normals(seed, "plan later", update, len(lengths) - 1, truth_count * count)
    plans = []
    for scale in SCALES:
        draws = belief.estimate + scale * belief.noise * z[-PLAYED:] @ root
        now, information = halves[0].explore(draws)
        information = lengths[0] * information
        information = information + KNOWN_SHARE * belief.precision + TAUGHT_SHARE * np.diag(np.diag(information))
        noise = z[truth_count : 2 * truth_count] @ np.linalg.cholesky(information).T
        moments = belief.precision @ belief.estimate + truths @ information + belief.noise * noise
        precisions = np.broadcast_to(belief.precision + information, (truth_count, dim, dim))
        cost = lengths[0] * now
        for later, length in enumerate(lengths[1:], start=1):
            half = halves[later % len(halves)]
            estimates = np.asarray(np.linalg.solve(precisions, moments[:, :, None])[:, :, 0], dtype=np.float64)
            regret, chosen = half.exploit(estimates)
            cost += charged[later] * regret
            if later < len(lengths) - 1:
                share = length / chosen.shape[1]
                columns = chosen.transpose(0, 2, 1)
                gained = share * columns @ chosen
                shock = shocks[later - 1].reshape(truth_count, count)[:, : chosen.shape[1], None]
                noise = np.sqrt(share) * belief.noise * (columns @ shock)
                moments = moments + (gained @ truths[:, :, None] + noise)[:, :, 0]
                precisions = precisions + gained
        plans.append(Prospect(scale=scale, cost=cost, next_cost=lengths[0] * now))
    return plans


def unseen_directions(belief: Posterior, sets: ContextSets, *, known: int) -> FloatArray:
    """(d, d) the :func:`~rareswitch.belief.posterior.ignorance` of a plan that sees these sets.

    A direction is seen where an arm of the sets has it, chosen or not, or where one of the ``known`` decisions told of
    it. Parameters of an arm that is yet to come, or of users of a kind that is, are not.

    >>> belief = Posterior(estimate=np.zeros(3), precision=np.diag([9.0, 1.0, 1.0]), noise=1.0, ridge=1.0)
    >>> sets = ContextSets(np.array([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]] * 9), np.ones((9, 2), dtype=np.bool_))
    >>> np.diag(unseen_directions(belief, sets, known=8)).round(2).tolist()
    [0.0, 0.0, 1.0]
    """
    vectors = sets.contexts[sets.available]
    offered = vectors.T @ vectors
    weight = float(np.trace(offered)) / max(1, len(vectors)) or 1.0
    taught = belief.precision - belief.ridge * np.eye(len(offered))
    taught *= weight * known / max(float(np.trace(taught)), np.finfo(np.float64).tiny)
    return ignorance(offered + taught, HARDLY_SEEN * weight)


def spread(scale: float, unseen: FloatArray) -> FloatArray:
    """(d, d) multiples of the belief's spread at which parameters are drawn: the scale, and the largest where unseen.

    A scale was planned for what the sets show. Of what they do not show, nothing is known but the prior, and that was
    found from other arms and users.
    """
    return stretch(scale, SCALES[-1], unseen)


def stages(known: int, lengths: Sequence[int]) -> tuple[list[int], list[float]]:
    """At most five batches that stand for those to come: their lengths, and for how many decisions each is charged.

    The first is the next batch; those after it are played in groups, with fewer batches in the last ones, where a
    mistake that lasts costs most. A group is played on what is known when it begins, after n decisions, but its batches
    will learn on the way: where a decision that rests on t others costs as 1/t, one of l decisions that begins after
    n' costs as much as l·n/n' decisions at the beginning. A mistake that lasts is charged too little in this way.

    >>> stages(10, [10, 20, 40, 80, 160])
    ([10, 20, 40, 80, 160], [10.0, 20.0, 40.0, 80.0, 160.0])
    >>> stages(10, [10, 20, 40, 80, 160, 320])
    ([10, 60, 80, 160, 320], [10.0, 40.0, 80.0, 160.0, 320.0])
    """
    later = np.asarray(lengths[1:], dtype=np.int64)
    groups = np.array_split(later, min(STAGES - 1, len(later))) if len(later) else []
    played, charged = [lengths[0]], [float(lengths[0])]
    known += lengths[0]
    for group in groups:
        begins = known + np.cumsum(group) - group
        played.append(int(group.sum()))
        charged.append(float((group * (known / begins)).sum()))
        known += played[-1]
    return played, charged


@dataclass(frozen=True, eq=False, kw_only=True)
class Stage:
    """Context sets (n, K, d) on which all truths (J, d) play."""

    sets: ContextSets
    #: (n, K, J) what each arm pays if each of the truths holds; −∞ for an arm that is not there.
    values: FloatArray
    #: (n, J)
    best: FloatArray
    #: (n, K, J) what a decision for an arm teaches of xᵀθ, against one whose reward is xᵀθ + noise; None: as much.
    weights: FloatArray | None = None

    @classmethod
    def of(cls, sets: ContextSets, truths: FloatArray, link: Link | None = None) -> "Stage":
        """The sets, with what their arms pay."""
        paid = sets.contexts @ truths.T if link is None else link.rates(sets.contexts, truths)
        values = np.where(sets.available[:, :, None], paid, -np.inf)
        weights = None if link is None else paid * (1.0 - paid)
        return cls(sets=sets, values=values, best=values.max(axis=1), weights=weights)

    def explore(self, draws: FloatArray) -> tuple[float, FloatArray]:
        """Expected regret of a decision by one of the draws (m, d), and the information (d, d) it gathers."""
        contexts, available = self.sets.contexts, self.sets.available
        chosen = best_arms(contexts, available, draws)
        shares = (chosen[:, None, :] == np.arange(available.shape[1])[:, None]).mean(axis=2)
        played = np.einsum("sk,skj->sj", shares, np.where(available[:, :, None], self.values, 0.0))
        taught = shares if self.weights is None else shares * self.weights.mean(axis=2)
        weighted = (taught[:, :, None] * contexts).reshape(-1, contexts.shape[2])
        information = weighted.T @ contexts.reshape(-1, contexts.shape[2]) / len(contexts)
        return float((self.best - played).mean()), information

    def exploit(self, estimates: FloatArray) -> tuple[float, FloatArray]:
        """Expected regret of a greedy decision on the estimate of each truth, and the arms (J, n, d) it chooses.

        The arms are as long as they teach.
        """
        chosen = best_arms(self.sets.contexts, self.sets.available, estimates)
        count, truths = chosen.shape
        paid = self.values[np.arange(count)[:, None], chosen, np.arange(truths)]
        features = self.sets.contexts[np.arange(count), chosen.T]
        if self.weights is not None:
            taught = self.weights[np.arange(count)[:, None], chosen, np.arange(truths)]
            features = features * np.sqrt(taught).T[:, :, None]
        return float((self.best - paid).mean()), features


def best_arms(contexts: FloatArray, available: BoolArray, parameters: FloatArray) -> IntArray:
    """(n, m) the best available arm of each set for each of the parameters (m, d)."""
    count, arms, dim = contexts.shape
    scores = (contexts.reshape(-1, dim) @ parameters.T).reshape(count, arms, len(parameters))
    chosen = np.zeros((count, len(parameters)), dtype=np.int64)
    best_columns(read_only(scores), available, np.empty(len(parameters)), chosen)
    return chosen


def within_memory(sets: ContextSets, *, columns: int = TRUTHS, numbers: int = SAMPLE_NUMBERS) -> ContextSets:
    """Fewer of the sets where planning on all of them would take too much memory.

    Parameters
    ----------
    columns
        Numbers that a plan holds of each arm, beside its features.
    numbers
        The most that it may hold in all.
    """
    arms, dim = sets.contexts.shape[1:]
    step = -(-len(sets) // max(16, numbers // (arms * max(dim, columns))))
    return ContextSets(sets.contexts[::step], sets.available[::step])
