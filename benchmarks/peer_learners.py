"""Bandits of other libraries as players of our worlds.

A player decides, is told the reward, and learns when the loop says so: after every step or at the end of a batch. In
between its model is frozen. Each docstring says what the library is told. The libraries are imported when a player is
made, so that this file can be read without them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness import FloatArray
from rareswitch.lab.worlds import World

BoolArray = NDArray[np.bool_]


class CannotExpressError(Exception):
    """The library has no way to say what the world is; the text says why."""


class Player(ABC):
    """A learner of another library."""

    @abstractmethod
    def decide(self, x: FloatArray, available: BoolArray, coin: float) -> int:
        """The arm for a set (K, d); the coin is for players that name probabilities and leave the drawing to us."""

    @abstractmethod
    def tell(self, x: FloatArray, arm: int, reward: float) -> None:
        """Keep the reward of the decision just made until the next :meth:`learn`."""

    @abstractmethod
    def learn(self) -> None:
        """Learn from everything that was told since the last call."""


class VowpalWabbit(Player):
    """``--cb_explore_adf``: one linear model for all arms, learned by Vowpal Wabbit's adaptive gradient steps.

    Told: the features of every arm, costs = -reward without a constant, and that mean costs lie in [-1, 1]. Not told:
    the noise, the horizon, when updates come. A batch is learned in one pass, in the order of its decisions, with the
    probabilities under which they were made. ``setting`` is squarecb's γ-scale, or the mellowness of the others.
    """

    def __init__(self, world: World, seed: int, algorithm: str, setting: float, rate: float = 0.5) -> None:
        import vowpalwabbit

        tuned = "gamma_scale" if algorithm == "squarecb" else "mellowness"
        self.workspace: Any = vowpalwabbit.Workspace(
            f"--cb_explore_adf --{algorithm} --{tuned} {setting!r} --cb_min_cost -1 --cb_max_cost 1 --noconstant "
            f"--learning_rate {rate!r} --random_seed {seed + 1} -b 14 --quiet"
        )
        self.line = "|x " + " ".join(f"{j}:%.6g" for j in range(world.dim))
        self.last: tuple[str, int, float] = ("", 0, 1.0)
        self.waiting: list[tuple[str, int, str]] = []

    def decide(self, x: FloatArray, available: BoolArray, coin: float) -> int:
        arms = np.flatnonzero(available)
        text = "\n".join([self.line] * len(arms)) % tuple(x[arms].ravel().tolist())
        examples = self.workspace.parse(text)
        chances = np.cumsum(self.workspace.predict(examples))
        self.workspace.finish_example(examples)
        line = min(int(np.searchsorted(chances, coin * chances[-1], side="right")), len(chances) - 1)
        self.last = text, line, float(chances[line] - (chances[line - 1] if line else 0.0))
        return int(arms[line])

    def tell(self, x: FloatArray, arm: int, reward: float) -> None:
        text, line, probability = self.last
        self.waiting.append((text, line, f"0:{-reward:.6g}:{probability:.6g}"))

    def learn(self) -> None:
        for text, line, label in self.waiting:
            examples = self.workspace.parse(text)
            examples[line].set_label_string(label)
            self.workspace.learn(examples)
            self.workspace.finish_example(examples)
        self.waiting.clear()


class BayesianBandits(Player):
    """``LipschitzContextualAgent``: one Bayesian regression for all arms; its featurizer picks an arm's own features.

    ``thompson`` and ``ucb`` use NormalRegressor and are told the noise σ and the prior N(0, I), as our own learners
    are; ``empirical`` is Thompson sampling with EmpiricalBayesNormalRegressor, which is told neither. ``setting`` is
    the spread of the draws, or the quantile of ucb, of 100 draws. Decisions are asked for one at a time: the library
    shares one posterior draw among all contexts of a call. A missing arm is a copy of the first that is there.
    """

    def __init__(self, world: World, seed: int, policy: str, setting: float = 1.0) -> None:
        import bayesianbandits as bb

        arms, dim = world.arms, world.dim
        scale, sigma = setting if policy == "thompson" else 1.0, float(getattr(world, "noise_scale", 0.5))
        regressor = (
            bb.EmpiricalBayesNormalRegressor()
            if policy == "empirical"
            else bb.NormalRegressor(alpha=scale**-2, beta=(scale * sigma) ** -2)
        )
        rule = bb.UpperConfidenceBound(alpha=setting, samples=100) if policy == "ucb" else bb.ThompsonSampling()

        def own_features(x: Any, tokens: Any) -> FloatArray:
            return np.asarray(np.asarray(x).reshape(len(x), arms, dim)[:, list(tokens)].transpose(0, 2, 1))

        self.agent: Any = bb.LipschitzContextualAgent(
            arms=[bb.Arm(k, learner=None) for k in range(arms)],
            policy=rule,
            arm_featurizer=bb.FunctionArmFeaturizer(own_features),
            learner=regressor,
            random_seed=seed,
        )
        self.waiting: list[tuple[FloatArray, float]] = []

    def decide(self, x: FloatArray, available: BoolArray, coin: float) -> int:
        first = int(available.argmax())
        arm = int(self.agent.pull(np.where(available[:, None], x, x[first]).reshape(1, -1))[0])
        return arm if available[arm] else first

    def tell(self, x: FloatArray, arm: int, reward: float) -> None:
        self.waiting.append((x[arm].copy(), reward))

    def learn(self) -> None:
        chosen, rewards = zip(*self.waiting, strict=True)
        self.agent.learner.partial_fit(np.array(chosen), np.array(rewards))
        self.waiting.clear()


class LabelPlayer(Player):
    """Libraries whose arms are labels and share one context, so that they play only where that says the task.

    A set that never changes has the context 1; otherwise arm k must have the round's features in block k and zeros
    elsewhere, as in digits. Until every arm was played and something learned, the arms take turns. Told: nothing of
    noise or horizon.
    """

    def __init__(self, world: World, seed: int) -> None:
        rounds = world.draw(64, seed=seed)
        x, (size, rest) = rounds.contexts, divmod(world.dim, world.arms)
        if rounds.available is not None and not rounds.available.all():
            raise CannotExpressError("arms are missing from some rounds")
        self.constant = np.array_equal(x, np.broadcast_to(x[0], x.shape))
        if not self.constant:
            blocks = x.reshape(len(x), world.arms, world.arms, size) if size and not rest else None
            if blocks is None or not np.array_equal(blocks, np.eye(world.arms)[None, :, :, None] * blocks[:, :1, :1]):
                raise CannotExpressError("arms are labels that share a context; it has no features of arms")
        self.arms, self.size, self.made, self.started = world.arms, size, 0, False
        self.waiting: list[tuple[FloatArray, int, float]] = []

    def shared(self, x: FloatArray) -> FloatArray:
        """The context (f,) of a set."""
        return np.ones(1) if self.constant else x[0, : self.size].copy()

    def decide(self, x: FloatArray, available: BoolArray, coin: float) -> int:
        return self.choose(self.shared(x)[None]) if self.started else self.made % self.arms

    def tell(self, x: FloatArray, arm: int, reward: float) -> None:
        self.made += 1
        self.waiting.append((self.shared(x), arm, reward))

    def learn(self) -> None:
        if self.started or self.made >= self.arms:
            self.fit(*(np.array(column) for column in zip(*self.waiting, strict=True)))
            self.started = True
            self.waiting.clear()

    @abstractmethod
    def choose(self, context: FloatArray) -> int:
        """The arm for a context (1, f)."""

    @abstractmethod
    def fit(self, contexts: Any, arms: Any, rewards: Any) -> None:
        """Learn from a batch."""


class MABWiser(LabelPlayer):
    """A learning policy of MABWiser with its α."""

    def __init__(self, world: World, seed: int, policy: str, setting: float) -> None:
        super().__init__(world, seed)
        self.contextual = policy.startswith("Lin")
        if not self.contextual and not self.constant:
            raise CannotExpressError(f"{policy} ignores contexts")
        from mabwiser.mab import MAB, LearningPolicy

        self.bandit: Any = MAB(list(range(world.arms)), getattr(LearningPolicy, policy)(setting), seed=seed)

    def choose(self, context: FloatArray) -> int:
        return int(self.bandit.predict(context) if self.contextual else self.bandit.predict())

    def fit(self, contexts: Any, arms: Any, rewards: Any) -> None:
        shared = {"contexts": contexts} if self.contextual else {}
        (self.bandit.partial_fit if self.started else self.bandit.fit)(arms, rewards, **shared)


class ContextualBandits(LabelPlayer):
    """LinUCB of contextualbandits with its α; written for rewards 0 and 1, it takes real ones without complaint."""

    def __init__(self, world: World, seed: int, setting: float) -> None:
        super().__init__(world, seed)
        from contextualbandits.online import LinUCB

        fixed = {"fit_intercept": False, "beta_prior": None, "method": "sm"}
        self.bandit: Any = LinUCB(world.arms, alpha=setting, random_state=seed + 1, **fixed)

    def choose(self, context: FloatArray) -> int:
        return int(self.bandit.predict(context)[0])

    def fit(self, contexts: Any, arms: Any, rewards: Any) -> None:
        self.bandit.partial_fit(contexts, arms, rewards)


class Peer(NamedTuple):
    """A library's learner with its settings."""

    package: str
    make: Callable[..., Player]
    settings: tuple[Any, ...]
    #: Too slow to learn after every step.
    slow: bool = False


#: Which settings of Vowpal Wabbit are tried was found on other seeds (100 and 101, T = 3000, four worlds).
PEERS = {
    **{f"VW squarecb {s:g}": Peer("vowpalwabbit", VowpalWabbit, ("squarecb", s)) for s in (10.0, 100.0, 1000.0)},
    "VW squarecb 1000, rate 2": Peer("vowpalwabbit", VowpalWabbit, ("squarecb", 1000.0, 2.0)),
    **{f"VW regcb {s:g}": Peer("vowpalwabbit", VowpalWabbit, ("regcb", s)) for s in (0.01, 0.001, 0.0001)},
    **{f"VW regcbopt {s:g}": Peer("vowpalwabbit", VowpalWabbit, ("regcbopt", s)) for s in (0.1, 0.01, 0.001)},
    "VW regcbopt 0.01, rate 2": Peer("vowpalwabbit", VowpalWabbit, ("regcbopt", 0.01, 2.0)),
    **{
        f"bayesianbandits thompson {s:g}": Peer("bayesianbandits", BayesianBandits, ("thompson", s)) for s in (0.5, 1.0)
    },
    "bayesianbandits ucb 0.84": Peer("bayesianbandits", BayesianBandits, ("ucb", 0.84)),
    "bayesianbandits empirical": Peer("bayesianbandits", BayesianBandits, ("empirical",), slow=True),
    **{f"MABWiser UCB1 {s:g}": Peer("mabwiser", MABWiser, ("UCB1", s)) for s in (0.25, 0.5, 1.0)},
    "MABWiser LinUCB 0.5": Peer("mabwiser", MABWiser, ("LinUCB", 0.5), slow=True),
    "contextualbandits LinUCB 0.5": Peer("contextualbandits", ContextualBandits, (0.5,)),
}
