"""Planned exploration: at an update, look ahead to what each amount of exploration costs now and saves later."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rareswitch.contexts import ContextSets
from rareswitch.learner.kernels import best_columns
from rareswitch.learner.link import Link
from rareswitch.learner.posterior import Posterior
from rareswitch.linalg import half_power, inverse_root
from rareswitch.rng import normals
from rareswitch.validation import BoolArray, FloatArray, IntArray, read_only

#: Multiples of the posterior's spread at which parameters may be drawn. Not 0: of contexts so rare that the sampled
#: sets do not show them, a plan knows nothing, and the least of these costs little where much is known.
SCALES = (0.15, 0.3, 0.5, 0.7, 1.0, 1.4)
#: Those of them that later batches may keep; less is hardly more than greedy play.
KEPT_SCALES = (0.3, 0.5, 0.7, 1.0)
#: Parameters that the look-ahead tries out. With 64, a mistake of one chance in a hundred goes unseen, and may last.
TRUTHS = 384
#: The most entries of their precision matrices: with many features there are fewer truths, at least 64.
TRUTH_NUMBERS = 1 << 19
DRAWS = 64
#: Parameters that a later batch explores with, for each truth.
TURNS = 8
#: Batches of the look-ahead, of which the last stands for all that remain: they are played as one.
STAGES = 5


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One amount of exploration and what it is expected to cost."""

    #: Multiple of the belief's spread in the next batch.
    scale: float
    #: Expected regret of all decisions to come.
    cost: float
    #: That of the next batch alone.
    next_cost: float


def plan(
    belief: Posterior,
    sets: ContextSets,
    *,
    lengths: Sequence[int],
    seed: int,
    update: int,
    least_scale: float = 0.0,
) -> Plan:
    """The prospect with the least cost.

    Parameters
    ----------
    belief
        What is known.
    sets
        A sample of context sets, like those to come.
    lengths
        Decisions of each batch to come: the next one, then those after it.
    seed, update
        Key the draws.
    least_scale
        The least scale that may be chosen.
    """
    found = prospects(belief, sets, lengths=lengths, seed=seed, update=update)
    return min((one for one in found if one.scale >= least_scale), key=lambda one: one.cost)


def prospects(belief: Posterior, sets: ContextSets, *, lengths: Sequence[int], seed: int, update: int) -> list[Plan]:
    """What each scale in the next batch is expected to cost by the end.

    The rest of the run is played through for truths θ_j from the belief N(θ̂, σ²Λ⁻¹). The next batch, posterior draws at
    a scale, gathers the information nI and ends with the estimate (Λ + nI)⁻¹(Λθ̂ + nIθ_j + σ(nI)^½ξ_j). Each batch after
    it pays what θ_j says, and teaches what the arms it chose teach. Two ways to go on are played, and the cheaper is
    taken: all later batches are greedy on their estimates, or all but the last explore at the same scale. Where
    contexts explore by themselves little is planned, and where they do not a mistake would last; with many batches to
    come not all must be explored at once. All scales see the same truths and the same noise.

    Batches take turns on two halves of the sets, because what was learned on some sets is best known on those.
    """
    if len(lengths) > STAGES:
        lengths = [*lengths[: STAGES - 1], sum(lengths[STAGES - 1 :])]
    dim = len(belief.estimate)
    truth_count = max(64, min(TRUTHS, TRUTH_NUMBERS // dim**2))
    z = normals(seed, "plan", update, 1, (2 * truth_count + DRAWS) * dim).reshape(-1, dim)
    root = inverse_root(belief.precision)
    truths = belief.estimate + belief.noise * z[:truth_count] @ root
    parts = [ContextSets(sets.contexts[i::2], sets.alive[i::2]) for i in range(min(2, len(sets)))]
    halves = [Stage.of(part, truths, belief.link) for part in parts]
    count, more = max(len(half.best) for half in halves), len(lengths) - 1
    shocks = normals(seed, "plan later", update, more, truth_count * count).reshape(more, truth_count, count)
    turns = normals(seed, "plan turns", update, more, truth_count * dim * TURNS).reshape(more, truth_count, dim, TURNS)
    later = Later(truths, belief.noise, halves, lengths[1:], shocks, turns)
    found = []
    for scale in SCALES:
        draws = belief.estimate + scale * belief.noise * z[-DRAWS:] @ root
        now, information = halves[0].explore(draws)
        information = lengths[0] * information
        noise = z[truth_count : 2 * truth_count] @ half_power(information).T
        moments = belief.precision @ belief.estimate + truths @ information + belief.noise * noise
        then = (0.0, scale) if scale in KEPT_SCALES else (0.0,)
        after = min(later.cost(belief.precision + information, moments, kept) for kept in then)
        found.append(Plan(scale=scale, cost=lengths[0] * now + after, next_cost=lengths[0] * now))
    return found


@dataclass(frozen=True, eq=False)
class Later:
    """The batches after the next, as they are played for J truths."""

    #: (J, d)
    truths: FloatArray
    noise: float
    halves: Sequence["Stage"]
    #: Decisions of each of the B batches.
    lengths: Sequence[int]
    #: (B, J, n) standard normals: the noise of the rewards.
    shocks: FloatArray
    #: (B, J, d, TURNS) standard normals: the draws that explore.
    turns: FloatArray

    def cost(self, precision: FloatArray, moments: FloatArray, scale: float) -> float:
        """What they cost from a common precision (d, d) and the moments (J, d) of each truth on; the last is greedy."""
        precisions, cost = np.broadcast_to(precision, (len(moments), *precision.shape)), 0.0
        for k, length in enumerate(self.lengths):
            half, last = self.halves[(k + 1) % len(self.halves)], k == len(self.lengths) - 1
            played = np.linalg.solve(precisions, moments[:, :, None])
            if scale and not last:
                upper = np.linalg.cholesky(precisions).transpose(0, 2, 1)
                played = played + scale * self.noise * np.linalg.solve(upper, self.turns[k])
            regret, chosen = half.play(np.asarray(played, dtype=np.float64))
            cost += length * regret
            if not last:
                share, columns = length / chosen.shape[1], chosen.transpose(0, 2, 1)
                gained = share * columns @ chosen
                noise = np.sqrt(share) * self.noise * (columns @ self.shocks[k][:, : chosen.shape[1], None])
                moments = moments + (gained @ self.truths[:, :, None] + noise)[:, :, 0]
                precisions = precisions + gained
        return cost


@dataclass(frozen=True, eq=False, kw_only=True)
class Stage:
    """Context sets (n, K, d) on which all truths (J, d) play."""

    sets: ContextSets
    #: (n, K, J) what each arm pays if each of the truths holds; −∞ for an arm that is not there.
    values: FloatArray
    #: (n, J)
    best: FloatArray
    #: (n, K, J) what a decision for each arm teaches, in units of one whose reward is xᵀθ + noise; None where all do 1.
    weights: FloatArray | None = None

    @classmethod
    def of(cls, sets: ContextSets, truths: FloatArray, link: Link | None = None) -> "Stage":
        """The sets, with what their arms pay."""
        paid = sets.contexts @ truths.T if link is None else link.rates(sets.contexts, truths)
        values = np.where(sets.alive[:, :, None], paid, -np.inf)
        weights = None if link is None else paid * (1.0 - paid)
        return cls(sets=sets, values=values, best=values.max(axis=1), weights=weights)

    def explore(self, draws: FloatArray) -> tuple[float, FloatArray]:
        """Expected regret of a decision by one of the draws (m, d), and the information (d, d) it gathers."""
        contexts, alive = self.sets.contexts, self.sets.alive
        chosen = _best_arms(contexts, alive, draws)
        shares = (chosen[:, None, :] == np.arange(alive.shape[1])[:, None]).mean(axis=2)
        played = np.einsum("sk,skj->sj", shares, np.where(alive[:, :, None], self.values, 0.0))
        taught = shares if self.weights is None else shares * self.weights.mean(axis=2)
        weighted = (taught[:, :, None] * contexts).reshape(-1, contexts.shape[2])
        information = weighted.T @ contexts.reshape(-1, contexts.shape[2]) / len(contexts)
        return float((self.best - played).mean()), information

    def play(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """Expected regret of a decision by the parameters (J, d, m) of each truth, and the arms (J, n, d) chosen.

        The sets are dealt to the m parameters in turn. The arms are as long as they teach.
        """
        contexts, alive, turns = self.sets.contexts, self.sets.alive, parameters.shape[2]
        chosen = np.empty((len(contexts), len(parameters)), dtype=np.int64)
        for k in range(min(turns, len(contexts))):
            chosen[k::turns] = _best_arms(contexts[k::turns], alive[k::turns], parameters[:, :, k])
        count, truths = chosen.shape
        paid = self.values[np.arange(count)[:, None], chosen, np.arange(truths)]
        features = contexts[np.arange(count), chosen.T]
        if self.weights is not None:
            taught = self.weights[np.arange(count)[:, None], chosen, np.arange(truths)]
            features = features * np.sqrt(taught).T[:, :, None]
        return float((self.best - paid).mean()), features


def _best_arms(contexts: FloatArray, alive: BoolArray, parameters: FloatArray) -> IntArray:
    """(n, m) the best living arm of each set for each of the parameters (m, d)."""
    count, arms, dim = contexts.shape
    scores = (contexts.reshape(-1, dim) @ parameters.T).reshape(count, arms, len(parameters))
    chosen = np.zeros((count, len(parameters)), dtype=np.int64)
    best_columns(read_only(scores), np.ascontiguousarray(alive), np.empty(len(parameters)), chosen)
    return chosen
