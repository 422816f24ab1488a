"""Algorithm 6 and its companions as printed: one step after the other, fresh inverses, nothing cached."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from rareswitch.core import BoolArray, FloatArray, normals
from rareswitch.lab.worlds import World

NEARLY = 1.0 - 1e-9
"""A determinant or an eigenvalue that reaches this share of its bar has reached it."""


@dataclass(kw_only=True)
class SlowSteps:
    """Chosen arms, and after how many decisions the policy changed."""

    arms: list[int] = field(default_factory=list)
    switches: list[int] = field(default_factory=list)


@dataclass(kw_only=True)
class WorldTable:
    """A world laid out in full: every context, and what every arm would pay."""

    contexts: FloatArray
    available: BoolArray
    rewards: FloatArray

    @classmethod
    def of(cls, world: World, horizon: int, seed: int) -> "WorldTable":
        """The first rounds."""
        drawn = world.draw(horizon, seed=seed)
        available = np.ones(drawn.means.shape, dtype=np.bool_) if drawn.available is None else drawn.available
        rewards = [world.rewards(drawn.means[:, arm], seed=seed) for arm in range(world.arms)]
        return cls(contexts=drawn.contexts, available=available, rewards=np.column_stack(rewards))

    @property
    def horizon(self) -> int:
        return len(self.contexts)

    @property
    def dim(self) -> int:
        return int(self.contexts.shape[2])


class LayerSums:
    """Λ and ξ of one layer, as they run, and as they were when last frozen."""

    def __init__(self, dim: int, ridge: float) -> None:
        self.running = ridge * np.eye(dim)
        self.moment = np.zeros(dim)
        self.freeze()

    def freeze(self) -> None:
        self.frozen, self.frozen_moment = self.running.copy(), self.moment.copy()

    def add(self, x: FloatArray, reward: float) -> None:
        self.running = self.running + np.outer(x, x)
        self.moment = self.moment + reward * x

    def grown(self, factor: float) -> bool:
        now, then = np.linalg.slogdet(self.running)[1], np.linalg.slogdet(self.frozen)[1]
        return bool(np.exp(now - then) >= factor * NEARLY)

    def estimates(self, sets: FloatArray) -> FloatArray:
        return np.asarray(sets @ np.linalg.solve(self.frozen, self.frozen_moment))

    def widths(self, sets: FloatArray) -> FloatArray:
        return np.asarray(np.sqrt(np.einsum("ki,ij,kj->k", sets, np.linalg.inv(self.frozen), sets)))


def first_of_largest(arms: list[int], values: FloatArray) -> int:
    """The first of the arms whose value is the largest, up to a relative 1e-9."""
    top = max(values[i] for i in arms)
    return next(i for i in arms if values[i] >= top - 1e-9 * abs(top))


def algorithm_6(
    problem: WorldTable, *, growth: float, first: Callable[[FloatArray], float], multiplier: float
) -> SlowSteps:
    """RarelySwitch-SupLinUCB with ridge 1; ``first`` is α_0 as a function of the frozen Λ of layer 0."""
    dim, horizon = problem.dim, problem.horizon
    kappa = math.ceil(math.log2(dim))
    accuracy = [dim**1.5 / math.sqrt(horizon) / 2**k for k in range(kappa + 1)]
    layers = [LayerSums(dim, 1.0) for _ in range(kappa + 1)]
    played = SlowSteps()
    for t in range(horizon):
        x = problem.contexts[t]
        alphas = [first(layers[0].frozen)] + [multiplier] * kappa
        estimate = [layer.estimates(x) for layer in layers]
        width = [a * layer.widths(x) for a, layer in zip(alphas, layers, strict=True)]
        arms = [int(i) for i in np.flatnonzero(problem.available[t])]
        bar = max(estimate[0][j] - width[0][j] for j in arms)
        arms = [i for i in arms if estimate[0][i] + width[0][i] >= bar]
        for k in range(kappa + 1):
            if k == kappa:
                chosen = first_of_largest(arms, estimate[k])
                break
            if all(width[k][i] <= accuracy[k] for i in arms):
                bar = max(estimate[k][j] for j in arms) - 2 * accuracy[k]
                arms = [i for i in arms if estimate[k][i] >= bar]
            else:
                chosen = first_of_largest(arms, width[k])
                break
        played.arms.append(chosen)
        layers[k].add(x[chosen], problem.rewards[t, chosen])
        grown = [layer for layer in layers if layer.grown(growth)]
        for layer in grown:
            layer.freeze()
        if grown:
            played.switches.append(t + 1)
    return played


def optimist(
    problem: WorldTable, *, ridge: float, growth: float, multiplier: Callable[[FloatArray], float]
) -> SlowSteps:
    """LinUCB, whose policy changes when the determinant has grown by ``growth``; at 1 that is every step."""
    model = LayerSums(problem.dim, ridge)
    played = SlowSteps()
    for t in range(problem.horizon):
        x = problem.contexts[t]
        upper = model.estimates(x) + multiplier(model.frozen) * model.widths(x)
        chosen = first_of_largest(np.flatnonzero(problem.available[t]).tolist(), upper)
        played.arms.append(chosen)
        model.add(x[chosen], problem.rewards[t, chosen])
        if growth == 1.0 or model.grown(growth):
            model.freeze()
            played.switches.append(t + 1)
    return played


def thompson(problem: WorldTable, *, ridge: float, scale: float, seed: int) -> SlowSteps:
    """Thompson sampling at every step: θ̂ + scale·L⁻ᵀz."""
    model = LayerSums(problem.dim, ridge)
    played = SlowSteps()
    for t in range(problem.horizon):
        x = problem.contexts[t]
        z = normals(seed, "posterior", t, 1, problem.dim)[0]
        theta = np.linalg.solve(model.frozen, model.frozen_moment)
        theta = theta + scale * np.linalg.solve(np.linalg.cholesky(model.frozen).T, z)
        chosen = first_of_largest(np.flatnonzero(problem.available[t]).tolist(), x @ theta)
        played.arms.append(chosen)
        model.add(x[chosen], problem.rewards[t, chosen])
        model.freeze()
        played.switches.append(t + 1)
    return played


IntervalsOf = Callable[[FloatArray, FloatArray, FloatArray], tuple[FloatArray, FloatArray]]
"""(Σ xxᵀ, ξ, contexts) to estimates and widths."""


def ridge_intervals(ridge: float, multiplier: float) -> IntervalsOf:
    """Those of SupLinUCB."""

    def intervals(gram: FloatArray, moment: FloatArray, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        precision = gram + ridge * np.eye(len(gram))
        width = np.sqrt(np.einsum("ki,ij,kj->k", x, np.linalg.inv(precision), x))
        return x @ np.linalg.solve(precision, moment), multiplier * width

    return intervals


def truncated_intervals(multiplier: float, norm: float) -> IntervalsOf:
    """Those of SupLinRel."""

    def intervals(gram: FloatArray, moment: FloatArray, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        values, vectors = np.linalg.eigh(gram)
        z = x @ vectors
        known = values >= NEARLY
        estimate = (z[:, known] / values[known]) @ (vectors.T @ moment)[known]
        width = multiplier * np.sqrt((z[:, known] ** 2 / values[known]).sum(axis=1))
        return estimate, width + norm * np.sqrt((z[:, ~known] ** 2).sum(axis=1))

    return intervals


def sup_linear(problem: WorldTable, intervals: IntervalsOf) -> SlowSteps:
    """SupLinUCB and SupLinRel, which differ in their intervals alone."""
    horizon, dim = problem.horizon, problem.dim
    count = math.ceil(math.log(horizon))
    grams, moments = np.zeros((count, dim, dim)), np.zeros((count, dim))
    played = SlowSteps()
    for t in range(horizon):
        x = problem.contexts[t]
        arms = [int(i) for i in np.flatnonzero(problem.available[t])]
        for s in range(count):
            estimate, width = intervals(grams[s], moments[s], x)
            if all(width[i] <= 1.0 / math.sqrt(horizon) for i in arms):
                chosen = first_of_largest(arms, estimate + width)
                break
            if all(width[i] <= 2.0 ** -(s + 1) for i in arms):
                bar = max(estimate[i] + width[i] for i in arms) - 2.0**-s
                arms = [i for i in arms if estimate[i] + width[i] >= bar]
                continue
            chosen = first_of_largest(arms, width)
            grams[s] += np.outer(x[chosen], x[chosen])
            moments[s] += problem.rewards[t, chosen] * x[chosen]
            played.switches.append(t + 1)
            break
        played.arms.append(chosen)
    return played
