"""Bandits of other libraries as players of our worlds.

A player decides, is told the reward, and learns when the loop says so: after every step or at the end of a batch. In
between its model is frozen. Each docstring says what the library is told. The libraries are imported when a player is
made, so that this file can be read without them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from measure import FloatArray
from rareswitch.lab.worlds import Rounds, World
from rareswitch.validation import BoolArray, IntArray


class CannotExpressError(Exception):
    """The library has no way to say what the world is; the text says why."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Chunk:
    """Consecutive rounds with all that players need of them, worked out once for all players."""

    first: int
    rounds: Rounds
    rewards: FloatArray
    """(n, K) what each arm would pay: the same numbers as our own learners are paid."""
    uniforms: FloatArray
    """(n,) for players that name probabilities and leave the drawing to us."""

    def __len__(self) -> int:
        return len(self.rewards)

    @cached_property
    def alive(self) -> BoolArray:
        """(n, K) which arms are there."""
        shape = self.rewards.shape
        return np.ones(shape, dtype=np.bool_) if self.rounds.alive is None else self.rounds.alive

    @cached_property
    def texts(self) -> list[str]:
        """The rounds in the format of Vowpal Wabbit: a line for each arm that is there, dense features."""
        line = "|x " + " ".join(f"{j}:%.6g" for j in range(self.rounds.contexts.shape[2]))
        templates = ["\n".join([line] * count) for count in range(self.alive.shape[1] + 1)]
        sets = (x[there] for x, there in zip(self.rounds.contexts, self.alive, strict=True))
        return [templates[len(x)] % tuple(x.ravel().tolist()) for x in sets]


class Player(ABC):
    """A learner of another library."""

    @abstractmethod
    def decide(self, chunk: Chunk, i: int) -> int:
        """The arm for round i of the chunk; this changes nothing that later decisions depend on but random state."""

    @abstractmethod
    def tell(self, chunk: Chunk, i: int, arm: int, reward: float) -> None:
        """Keep the reward of the decision just made until the next :meth:`learn`."""

    @abstractmethod
    def learn(self) -> None:
        """Learn from everything that was told since the last call."""


@dataclass(frozen=True, kw_only=True)
class Maker(ABC):
    """A library's learner with its settings."""

    family: ClassVar[str]
    """Within which the best setting is named."""
    package: ClassVar[str]
    """What the library is installed as."""

    @property
    @abstractmethod
    def label(self) -> str:
        """The entry's name."""

    @abstractmethod
    def make(self, world: World, seed: int) -> Player:
        """A fresh player; CannotExpressError where the library cannot say the task."""


@dataclass(frozen=True, kw_only=True)
class VowpalWabbit(Maker):
    """``--cb_explore_adf``: one linear model for all arms, learned by Vowpal Wabbit's adaptive gradient steps.

    Told: the features of every arm, costs = -reward without a constant, and that mean costs lie in [-1, 1]. Not told:
    the noise, the horizon, when updates come. A batch is learned in one pass, in the order of its decisions, with the
    probabilities under which they were made.
    """

    algorithm: str
    """``squarecb``, ``regcb`` or ``regcbopt``."""
    setting: float
    """γ-scale of squarecb, mellowness of the others."""
    rate: float = 0.5
    """``--learning_rate``; 0.5 is the default of Vowpal Wabbit."""
    extra: str = ""

    family: ClassVar[str] = "Vowpal Wabbit"
    package: ClassVar[str] = "vowpalwabbit"

    @property
    def label(self) -> str:
        """The entry's name."""
        rate = "" if self.rate == 0.5 else f", rate {self.rate:g}"
        return f"VW {self.algorithm} {self.setting:g}{rate}{' ' * bool(self.extra)}{self.extra}"

    def make(self, world: World, seed: int) -> Player:
        """A player for any world."""
        tuned = "gamma_scale" if self.algorithm == "squarecb" else "mellowness"
        return _VowpalPlayer(
            f"--cb_explore_adf --{self.algorithm} --{tuned} {self.setting!r} --cb_min_cost -1 --cb_max_cost 1 "
            f"--noconstant --learning_rate {self.rate!r} --random_seed {seed + 1} -b 14 --quiet {self.extra}"
        )


class _VowpalPlayer(Player):
    def __init__(self, arguments: str) -> None:
        import vowpalwabbit

        self.workspace: Any = vowpalwabbit.Workspace(arguments)
        self.examples: Any = None  # of the last decision
        self.line, self.probability = 0, 1.0
        self.kept: list[tuple[str, int, str]] = []

    def decide(self, chunk: Chunk, i: int) -> int:
        self._drop()
        self.examples = self.workspace.parse(chunk.texts[i])
        chances = np.cumsum(self.workspace.predict(self.examples))
        line = min(int(np.searchsorted(chances, chunk.uniforms[i] * chances[-1], side="right")), len(chances) - 1)
        self.line = line
        self.probability = float(chances[line] - (chances[line - 1] if line else 0.0))
        return int(np.flatnonzero(chunk.alive[i])[line])

    def tell(self, chunk: Chunk, i: int, arm: int, reward: float) -> None:
        self.kept.append((chunk.texts[i], self.line, f"0:{-reward:.6g}:{self.probability:.6g}"))

    def learn(self) -> None:
        if len(self.kept) > 1:
            self._drop()
        for text, line, label in self.kept:
            examples = self.workspace.parse(text) if self.examples is None else self.examples
            examples[line].set_label_string(label)
            self.workspace.learn(examples)
            self.workspace.finish_example(examples)
            self.examples = None
        self.kept.clear()

    def _drop(self) -> None:
        if self.examples is not None:
            self.workspace.finish_example(self.examples)
            self.examples = None


@dataclass(frozen=True, kw_only=True)
class BayesianBandits(Maker):
    """``LipschitzContextualAgent``: one Bayesian regression for all arms; its featurizer picks an arm's own features.

    ``thompson`` and ``ucb`` use NormalRegressor and are told the noise σ and the prior N(0, I), as our own learners
    are; ``thompson`` at scale s is the sampler of our ``thompson s`` but for its random numbers. ``empirical`` is
    Thompson sampling with EmpiricalBayesNormalRegressor, which is told neither and works both out. Decisions are asked
    for one at a time: the library shares one posterior draw among all contexts of a call.
    """

    policy: str
    """``thompson``, ``ucb`` or ``empirical``."""
    setting: float = 1.0
    """Spread of the draws in posterior deviations, or the quantile of ucb."""
    samples: int = 100
    """Draws behind a quantile; the library's default of 1000 takes three times as long."""

    family: ClassVar[str] = "bayesianbandits"
    package: ClassVar[str] = "bayesianbandits"

    @property
    def label(self) -> str:
        """The entry's name."""
        return f"bayesianbandits {self.policy}" + ("" if self.policy == "empirical" else f" {self.setting:g}")

    def make(self, world: World, seed: int) -> Player:
        """A player for any world."""
        import bayesianbandits as bb

        arms, dim = world.arms, world.dim
        scale = self.setting if self.policy == "thompson" else 1.0
        sigma = float(getattr(world, "noise_scale", 0.5))
        if self.policy == "empirical":
            regressor = bb.EmpiricalBayesNormalRegressor()
        else:
            regressor = bb.NormalRegressor(alpha=scale**-2, beta=(scale * sigma) ** -2)
        ucb = self.policy == "ucb"
        policy = bb.UpperConfidenceBound(alpha=self.setting, samples=self.samples) if ucb else bb.ThompsonSampling()

        def own_features(x: Any, tokens: Any) -> FloatArray:
            return np.asarray(np.asarray(x).reshape(len(x), arms, dim)[:, list(tokens)].transpose(0, 2, 1))

        agent = bb.LipschitzContextualAgent(
            arms=[bb.Arm(k, learner=None) for k in range(arms)],
            policy=policy,
            arm_featurizer=bb.FunctionArmFeaturizer(own_features),
            learner=regressor,
            random_seed=seed,
        )
        return _BayesianPlayer(agent)


class _BayesianPlayer(Player):
    """All features of a round are its one shared context, (1, K·d). A missing arm is a copy of the first that is there.

    A batch goes into the shared regression in one call: ``agent.update`` would take it arm by arm, to the same sums.
    """

    def __init__(self, agent: Any) -> None:
        self.agent = agent
        self.chosen: list[FloatArray] = []
        self.rewards: list[float] = []

    def decide(self, chunk: Chunk, i: int) -> int:
        x, there = chunk.rounds.contexts[i], chunk.alive[i]
        first = int(there.argmax())
        if not there.all():
            x = np.where(there[:, None], x, x[first])
        arm = int(self.agent.pull(x.reshape(1, -1))[0])
        return arm if there[arm] else first

    def tell(self, chunk: Chunk, i: int, arm: int, reward: float) -> None:
        self.chosen.append(chunk.rounds.contexts[i, arm].copy())
        self.rewards.append(reward)

    def learn(self) -> None:
        self.agent.learner.partial_fit(np.array(self.chosen), np.array(self.rewards))
        self.chosen.clear()
        self.rewards.clear()


Shared = Callable[[FloatArray], FloatArray]
"""The context (f,) that all arms of a set (K, d) share."""


def shared_context(world: World, seed: int, library: str) -> Shared:
    """What a library whose arms are labels can be shown: 1 for a set that never changes, or the one block of features.

    The latter is a world such as digits, where arm k has the round's features in block k and zeros elsewhere.
    """
    drawn = world.draw(64, seed=seed)
    x = drawn.contexts
    if drawn.alive is not None and not drawn.alive.all():
        raise CannotExpressError(f"{library}: arms are missing from some rounds")
    if np.array_equal(x, np.broadcast_to(x[0], x.shape)):
        return lambda _: np.ones(1)
    size, rest = divmod(world.dim, world.arms)
    if size and not rest:
        blocks = x.reshape(len(x), world.arms, world.arms, size)
        if np.array_equal(blocks, np.eye(world.arms)[None, :, :, None] * blocks[:, :1, :1]):
            return lambda one: one[0, :size].copy()
    raise CannotExpressError(f"{library}: arms are labels that share a context; it has no features of arms")


class _LabelPlayer(Player):
    """Arms as labels. Until every arm was played and something learned, the arms take turns."""

    def __init__(self, arms: int, shared: Shared) -> None:
        self.arms = arms
        self.shared = shared
        self.made = 0
        self.started = False
        self.contexts: list[FloatArray] = []
        self.chosen: list[int] = []
        self.rewards: list[float] = []

    def decide(self, chunk: Chunk, i: int) -> int:
        return self.choose(self.shared(chunk.rounds.contexts[i])[None]) if self.started else self.made % self.arms

    def tell(self, chunk: Chunk, i: int, arm: int, reward: float) -> None:
        self.made += 1
        self.contexts.append(self.shared(chunk.rounds.contexts[i]))
        self.chosen.append(arm)
        self.rewards.append(reward)

    def learn(self) -> None:
        if not self.started and self.made < self.arms:
            return
        self.fit(np.array(self.contexts), np.array(self.chosen), np.array(self.rewards))
        self.started = True
        self.contexts.clear()
        self.chosen.clear()
        self.rewards.clear()

    @abstractmethod
    def choose(self, context: FloatArray) -> int:
        """The arm for a context (1, f)."""

    @abstractmethod
    def fit(self, contexts: FloatArray, arms: IntArray, rewards: FloatArray) -> None:
        """Learn from a batch."""


@dataclass(frozen=True, kw_only=True)
class MABWiser(Maker):
    """Arms are labels and a context is shared by all, so it plays only where that says the task.

    In a set that never changes it knows nothing of the arms' features, each arm is learned alone, and LinUCB gets the
    constant context 1. Told: nothing of noise or horizon.
    """

    policy: str
    """A learning policy of the library."""
    setting: float
    """Its α."""

    family: ClassVar[str] = "MABWiser"
    package: ClassVar[str] = "mabwiser"

    @property
    def label(self) -> str:
        """The entry's name."""
        return f"MABWiser {self.policy} {self.setting:g}"

    def make(self, world: World, seed: int) -> Player:
        """A player for worlds that a shared context can say."""
        shared = shared_context(world, seed, "MABWiser")
        contextual = self.policy.startswith("Lin")
        if not contextual and len(shared(world.draw(1, seed=seed).contexts[0])) > 1:
            raise CannotExpressError(f"MABWiser: {self.policy} ignores contexts")
        from mabwiser.mab import MAB, LearningPolicy

        policy = getattr(LearningPolicy, self.policy)(self.setting)
        return _MABWiserPlayer(MAB(list(range(world.arms)), policy, seed=seed), world.arms, shared, contextual)


class _MABWiserPlayer(_LabelPlayer):
    def __init__(self, bandit: Any, arms: int, shared: Shared, contextual: bool) -> None:
        super().__init__(arms, shared)
        self.bandit = bandit
        self.contextual = contextual

    def choose(self, context: FloatArray) -> int:
        return int(self.bandit.predict(context) if self.contextual else self.bandit.predict())

    def fit(self, contexts: FloatArray, arms: IntArray, rewards: FloatArray) -> None:
        shared = {"contexts": contexts} if self.contextual else {}
        (self.bandit.partial_fit if self.started else self.bandit.fit)(arms, rewards, **shared)


@dataclass(frozen=True, kw_only=True)
class ContextualBandits(Maker):
    """A model for each arm on a context shared by all, so it plays only where that says the task.

    In a set that never changes LinUCB gets the constant context 1 and each arm is learned alone. The library is written
    for rewards 0 and 1; LinUCB takes real ones without complaint. Told: nothing of noise or horizon.
    """

    setting: float
    """α of LinUCB."""

    family: ClassVar[str] = "contextualbandits"
    package: ClassVar[str] = "contextualbandits"

    @property
    def label(self) -> str:
        """The entry's name."""
        return f"contextualbandits LinUCB {self.setting:g}"

    def make(self, world: World, seed: int) -> Player:
        """A player for worlds that a shared context can say."""
        shared = shared_context(world, seed, "contextualbandits")
        from contextualbandits.online import LinUCB

        made = LinUCB(
            world.arms, alpha=self.setting, fit_intercept=False, beta_prior=None, method="sm", random_state=seed + 1
        )
        return _ContextualBanditsPlayer(made, world.arms, shared)


class _ContextualBanditsPlayer(_LabelPlayer):
    def __init__(self, bandit: Any, arms: int, shared: Shared) -> None:
        super().__init__(arms, shared)
        self.bandit = bandit

    def choose(self, context: FloatArray) -> int:
        return int(self.bandit.predict(context)[0])

    def fit(self, contexts: FloatArray, arms: IntArray, rewards: FloatArray) -> None:
        self.bandit.partial_fit(contexts, arms, rewards)
