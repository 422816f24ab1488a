"""What an update did, or why there was none."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from rareswitch.errors import several
from rareswitch.experiment.gate import GateReport
from rareswitch.experiment.lift import Lift
from rareswitch.learner import Learner, State

#: Differences of log-likelihoods that are worth a word.
HELD_OUT = 0.05


@dataclass(frozen=True, kw_only=True)
class Advance:
    """The outcome of :meth:`Experiment.advance`: what was seen, believed and concluded.

    Prints as text.
    """

    #: Whether the policy changed.
    made: bool
    #: Number of the policy that decides now.
    version: int
    policy_id: str
    #: What the update waits for, where none was made.
    waits: tuple[str, ...] = ()
    #: Whether it was only tried, by :meth:`Experiment.preview`: all else is then what an update would do.
    preview: bool = False
    #: Whether another process made the update meanwhile.
    elsewhere: bool = False
    #: Decisions of the batch that ended.
    decided: int = 0
    #: Those whose rewards were learned from.
    rewarded: int = 0
    #: Those whose attribution window was still open.
    waiting: int = 0
    #: Those whose reward came after the window.
    expired: int = 0
    #: Those whose reward was clipped; they are learned from.
    clipped: int = 0
    #: Those that were held out for a gate; the next update learns from them.
    held_out: int = 0
    #: Earlier batches of which more was known than before, by the number of their policy: rewards learned from.
    late: dict[int, int] = field(default_factory=dict)
    #: Context sets that the plan was made with.
    sets: int = 0
    #: What the learner believed and planned, by name.
    note: dict[str, Any] = field(default_factory=dict)
    #: Decisions that are planned for the new policy, and for those after it.
    batch_sizes: tuple[int, ...] = ()
    #: What is proved of the regret, or not.
    holds: str = ""
    seconds: float = 0.0
    #: What the gate says, where there was one.
    gate: GateReport | None = None
    #: What was earned more than the baseline would have, as of the last update.
    lift: Lift | None = None

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain data."""
        return asdict(self)

    def __str__(self) -> str:
        head = ["Nothing was changed. An update would say:"] if self.preview else []
        return "\n".join([*head, *([] if self.lift is None else [str(self.lift)]), *self._lines()])

    def _lines(self) -> list[str]:
        name = f"policy {self.version} ({self.policy_id[:12]}…)"
        if not self.made and not self.elsewhere:
            why = [f"  {self.gate}"] if self.gate is not None else []
            return [f"No update: {name} goes on.", *why, *(f"  waits for {what}" for what in self.waits)]
        lines = [
            f"saw       {several(self.decided, 'decision')} of policy {self.version - 1}, {self.rewarded:,} with a "
            "reward to learn from"
        ]
        for count, what in (
            (self.held_out, "held out for the gate, for the next update to learn from"),
            (self.waiting, "whose attribution window is still open"),
            (self.expired, "whose reward came after the window"),
            (self.decided - self.held_out - self.rewarded - self.waiting - self.expired, "without a reward"),
        ):
            if count:
                lines.append(f"          {count:,} {what}")
        if self.clipped:
            lines.append(f"          {self.clipped:,} of these rewards were clipped")
        lines += [
            f"          policy {number}: now {several(known, 'reward')} known" for number, known in self.late.items()
        ]
        for label, text in (("came    ", _came(self.note)), ("believed", _believed(self.note))):
            if text:
                lines.append(f"{label}  {text}")
        if self.gate is not None:
            lines.append(f"gate      {self.gate}")
        planned = f", planned for {several(self.batch_sizes[0], 'decision')}" if self.batch_sizes else ""
        more = (
            f", then {len(self.batch_sizes) - 1} more for {sum(self.batch_sizes[1:]):,}"
            if len(self.batch_sizes) > 1
            else ""
        )
        lines.append(f"{'next' if self.preview else 'now '}      {name}{planned}{more}")
        if self.holds:
            lines.append(f"          {self.holds}")
        done = f"{'Learned' if self.preview else 'Updated'} in {self.seconds:.1f} s."
        who = "Another process made the update." if self.elsewhere else done
        return [who, *lines]


def advance_of(
    learner: Learner, number: int, state: State, report: Mapping[str, Any], *, elsewhere: bool = False
) -> Advance:
    """What came of an update, of the report that is kept with its policy."""
    late, holds = report["learned"][1:], learner.holds(state)
    numbers = {batch.policy_id: position for position, batch in enumerate(state.past, 1)}
    return Advance(
        made=not elsewhere,
        elsewhere=elsewhere,
        version=number,
        policy_id=state.policy.id,
        **seen_in(report),
        late={numbers[one["policy"]]: one["rewarded"] for one in late},
        sets=report["sets"],
        note=report["note"],
        batch_sizes=state.batch_sizes,
        holds=holds if holds.startswith("The batches were not") else "",
        seconds=report.get("seconds", 0.0),
        gate=GateReport.from_plain(report["gate"]) if "gate" in report else None,
    )


def seen_in(report: Mapping[str, Any]) -> dict[str, Any]:
    """What the batch that ended came to, by the names of :class:`Advance`."""
    batch = report["learned"][0]
    names = ("decided", "rewarded", "waiting", "expired", "clipped", "held_out")
    return {name: batch.get(name, 0) for name in names}


def _came(note: dict[str, Any]) -> str:
    """Of a learner's note, what the batch was beside what was expected, and what was concluded."""
    texts = []
    if "lost" in note:
        expected = f" where {note['expected']:.3g} was expected" if "expected" in note else ""
        but = "" if "min_propensity" not in note else ", without a minimum propensity,"
        texts.append(f"the batch{but} lost about {note['lost']:.3g} to the best arms{expected}")
    if "concluded" in note:
        texts.append(note["concluded"])
    if "outlier" in note:
        texts.append(
            f"a reward lies {note['outlier']:.0f} standard deviations from the mean, and a few such decide what is "
            "learned (clip=… of Rewards)"
        )
    return "; ".join(texts)


def _believed(note: dict[str, Any]) -> str:
    """Of a learner's note, what the new policy rests on and is expected to cost."""
    texts = []
    if "link" in note:
        other, batch_sizes = ("linear" if note["link"] == "logistic" else "logistic"), abs(note["held_out"])
        better = f" (log-likelihood of held-out batches {batch_sizes:.1f} above the {other} one's)"
        texts.append(f"rewards are clicks, by a {note['link']} model{better if batch_sizes >= HELD_OUT else ''}")
    elif "noise" in note:
        texts.append(f"rewards vary by σ = {note['noise']:.3g}")
    if note.get("scale", 0.0):
        texts.append(f"explores at {note['scale']:g} times its uncertainty")
    elif "scale" in note and not note.get("between"):  # what was concluded says it then
        texts.append("plays the best arm it knows")
    if "cost" in note:
        texts.append(f"expects to lose {note['cost']:.3g} on the decisions to come")
    if "certificate" in note:
        but = "" if "min_propensity" not in note else " but for those of the floor"
        texts.append(
            f"a decision{but or ' of it'} costs at most {note['certificate']:.3g} on average, if its intervals hold"
        )
    if "level" in note:
        texts.append(f"rewards lie around {note['level']:.3g}, which the features do not explain")
    return "; ".join(texts)
