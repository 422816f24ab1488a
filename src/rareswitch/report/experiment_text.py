"""Reports of experiments as text: status, updates, gates, lift, audits and verification."""

import math

from rareswitch.core import percent_text
from rareswitch.errors import several
from rareswitch.evaluation import Interval
from rareswitch.experiment import (
    Activated,
    Advance,
    Audit,
    Choice,
    ExperimentReport,
    GateReport,
    LearnerNote,
    Lift,
    Listed,
    PolicyChanges,
    Rewarded,
    Rewards,
    Status,
    Verification,
    WarmStart,
)
from rareswitch.learner import Novelty
from rareswitch.log import ImportReport
from rareswitch.planning import date_text, minute_text
from rareswitch.report.evaluation_text import relative_text
from rareswitch.report.numerals import bounds_text, decimals, number_text
from rareswitch.report.text import as_text, parameter, sentences, waits_text, window_text
from rareswitch.version import __version__

__all__ = ["caution_text"]

#: Arms whose shares a text names.
MOST_ARMS = 5
#: Fields with unexpected values that the text of a status names, at most.
MOST_FIELDS = 20
#: Planned dates that it names, at most.
MOST_DATES = 12
#: Differences of log-likelihoods that are worth a word.
HELD_OUT = 0.05


def caution_text(field: str, what: str) -> str:
    """What was not as described of a field of a request, in words.

    >>> caution_text("devce", "extra")
    "with the unknown field 'devce', which is not used"
    """
    texts = {
        "missing": f"without {field!r}",
        "extra": f"with the unknown field {field!r}, which is not used",
        "unknown": f"with an unknown value of {field!r}",
        "clipped": f"with {field!r} beyond its range, clipped",
        "spare": "with arms in spare blocks, which the features do not name",
        "shared": "with arms that share a spare block",
    }
    return texts.get(what, f"with {field!r} {what}")


@as_text.register
def choice_text(choice: Choice, *, cli: bool = False) -> str:
    """The chosen arm, and what was not as described of the request."""
    again = ", requested before" if choice.repeated else ""
    again += ", not activated yet" if choice.deferred else ""
    chosen = (
        f"{choice.arm} (propensity {choice.propensity:.6g}, policy {choice.version}, {choice.policy_id[:12]}…{again})"
    )
    return "\n".join([chosen, *(f"  {caution_text(*caution)}" for caution in choice.cautions)])


@as_text.register
def rewards_text(rewards: Rewards, *, cli: bool = False) -> str:
    """What counts as a reward."""
    texts = ["sum of all per decision" if rewards.sums else "one per decision"]
    texts += ["0 or 1"] if rewards.kind == "binary" else []
    if rewards.window is not None:
        texts.append(window_text(rewards.window))
    texts += [] if rewards.clip is None else [f"clipped at {rewards.clip[0]:g} and {rewards.clip[1]:g}"]
    texts.append("missing = not learned from" if rewards.default is None else f"missing = {rewards.default:g}")
    return f"Rewards: {', '.join(texts)}."


@as_text.register
def warm_start_text(start: WarmStart, *, cli: bool = False) -> str:
    """The log that the first policy was learned from."""
    estimated = f"; estimated propensities: {start.estimated}" if start.estimated else ""
    return f"Warm start: {several(start.decisions, 'decision')}, {start.rewarded:,} rewarded{estimated}."


@as_text.register
def novelty_text(novelty: Novelty, *, cli: bool = False) -> str:
    """Whether contexts are unlike the training contexts."""
    if novelty.unlike:
        return f"New kinds of requests: {novelty.value:.1f} × as uncertain as those learned from, until an update."
    return f"Requests resemble those learned from: {novelty.value:.1f} × as uncertain."


@as_text.register
def gate_text(gate: GateReport, *, cli: bool = False) -> str:
    """What a gate says about a policy."""
    verdict = "promoted" if gate.promoted else "not promoted"
    if gate.gain is None or gate.bound is None:
        return f"{verdict}, not identifiable: {' '.join(gate.reasons)}"
    least = f"; the bound must be above {'0' if gate.loss == 0.0 else f'-{gate.loss:.3g}'}"
    return (
        f"{verdict}: gain {gate.gain:.3g} per decision (at least {gate.bound:.3g}) on {gate.tested:,} held-out "
        f"decisions, look {gate.look} at level {gate.level:.3g}{'' if gate.promoted else least}."
    )


@as_text.register
def lift_text(lift: Lift, *, cli: bool = False) -> str:
    """What was earned more than the baseline would have."""
    over = lift.parts[0].over if lift.parts else "baseline"
    title = f"Lift over the {over}{'' if lift.at is None else f', as of {minute_text(lift.at)} UTC'}"
    if not lift.parts:
        return f"{title}: not identifiable: {lift.reason.rstrip('.')}."
    whole, *weeks = lift.parts
    if whole.interval is None:
        return f"{title}: not identifiable: {' '.join(whole.refusals)}"
    text = f"{relative_text(whole)}{_gain(whole.interval)}"
    text += f", on {several(whole.decisions, 'decision')}{'' if over == 'holdout' else ' with a baseline'}"
    text += f", {whole.assumes}" if whole.assumes else ""
    if weeks and weeks[-1].interval is not None and len(weeks) > 1:
        text += f"; {weeks[-1].name} {_gain(weeks[-1].interval)}"
    return f"{title}: {text}."


def _gain(gain: Interval) -> str:
    digits = decimals([gain])
    bounds = bounds_text(gain, digits, sign=True)
    return f"{number_text(gain.value, digits, sign=True)} per decision ({percent_text(gain.level)}: {bounds})"


@as_text.register
def listed_text(listed: Listed, *, cli: bool = False) -> str:
    """An experiment of a store."""
    until = "" if listed.ended is None else f", ended on {minute_text(listed.ended)}"
    counts = f"{several(listed.policies, 'policy')}, {several(listed.decisions, 'decision')}"
    return f"{listed.name}: {listed.learner}, {counts}, since {minute_text(listed.created)}{until}"


@as_text.register
def rewarded_text(rewarded: Rewarded, *, cli: bool = False) -> str:
    """What became of rewards."""
    text = f"{several(rewarded.rewards, 'reward')} stored"
    text += f", {rewarded.repeated:,} of them as before" if rewarded.repeated else ""
    if rewarded.unmatched:
        which = "" if rewarded.rewards == 1 else f", {rewarded.unmatched:,} of them"
        text += f"{which} for an id that has not been decided: kept until it is"
    text += f"; {rewarded.skipped:,} skipped, whose entity had no decision before" if rewarded.skipped else ""
    return f"{text}."


@as_text.register
def activated_text(activated: Activated, *, cli: bool = False) -> str:
    """What became of deferred decisions."""
    before = f", {activated.repeated:,} of them as before" if activated.repeated else ""
    return f"{several(activated.decisions, 'decision')} count{'s' if activated.decisions == 1 else ''}{before}."


@as_text.register
def status_text(status: Status, *, cli: bool = False) -> str:
    """Where an experiment stands."""
    about = (status.price, status.min_propensity, status.warm_start, status.rewards)
    lines = [
        *([] if status.lift is None else [as_text(status.lift, cli=cli), ""]),
        f"{status.name}: {status.learner}, updated {status.schedule}",
        *(as_text(part, cli=cli) for part in about if part is not None),
        *([] if status.holdout is None else [f"Holdout: {percent_text(status.holdout)} of ids keep the baseline."]),
        "",
        "policy  published (UTC)   decisions  rewarded",
    ]
    lines += [
        f"{batch.version:6}  {minute_text(batch.published):16}  {batch.decisions:9,}  {batch.rewarded:8,}"
        + ("  decides now" if batch is status.batches[-1] else "")
        for batch in status.batches
    ]
    lines.append("")
    for count, noun, what in (
        (status.waiting, "decision", "with an open attribution window"),
        (status.deferred, "decision", "deferred and not activated, counted nowhere else"),
        (status.unmatched, "reward", "without a decision"),
        (status.repeated_rewards, "reward", "sent again, counted once"),
        (status.overwritten, "reward", "overwritten"),
        (status.clipped, "reward", "clipped by updates"),
        (status.repeated_decisions, "decision", "requested again, answered as before"),
    ):
        if count:
            lines.append(f"{several(count, noun)} {what}")
    lines += _fields(status.fields)
    if status.novelty is not None:
        lines.append(as_text(status.novelty, cli=cli))
    if status.early is not None:
        hand = "" if status.due else f" (advance with {parameter('force', cli=cli)})"
        lines.append(
            f"Early update requested{hand}: new kinds of requests, {status.early.value:.1f} × as uncertain as those "
            "learned from."
        )
    lines += [f"Gate: {as_text(gate, cli=cli)}" for gate in status.rejected]
    if status.started:
        lines.append("An update is unfinished; the next one continues it.")
    if status.ended is not None:
        return "\n".join([*lines, f"Ended on {minute_text(status.ended)}: no more decisions."])
    lines.append(waits_text(() if status.due else status.waits, cli=cli))
    if status.planned is not None:
        # of the planned ends the first is that update, and the last the end of the last batch
        dates = [date_text(end.at, status.planned.zone) for end in status.planned.ends[1:-1] if end.at is not None]
        more = [f"and {len(dates) - MOST_DATES} more"] if len(dates) > MOST_DATES else []
        lines += [f"Updates after it: {'; '.join([*dates[:MOST_DATES], *more])}."] if dates else []
    return "\n".join(lines)


@as_text.register
def report_text(report: ExperimentReport, *, cli: bool = False) -> str:
    """All that is known of an experiment."""
    texts = [as_text(report.status, cli=cli)]
    texts += [] if report.proposal is None else [as_text(report.proposal, cli=cli)]
    texts += [] if report.values is None else [as_text(report.values)]
    return "\n\n".join(texts)


def _fields(fields: dict[str, dict[str, int]]) -> list[str]:
    """Fields that were not as described, those of most decisions first."""
    counts = [(count, name, what) for name, kinds in fields.items() for what, count in kinds.items()]
    lines = [
        f"{several(count, 'decision')} {caution_text(name, what)}"
        for count, name, what in sorted(counts, key=lambda entry: (-entry[0], entry[1:]))[:MOST_FIELDS]
    ]
    more = len(counts) - len(lines)
    return [*lines, *([f"{several(more, 'more field')} not as described"] if more else [])]


@as_text.register
def advance_text(report: Advance, *, cli: bool = False) -> str:
    """An update in four lines, to be read aloud: what was seen, what changes, what is expected and what to watch.

    Or why there was none.
    """
    lift = [] if report.lift is None else [as_text(report.lift, cli=cli)]
    gate = [] if report.gate is None else [f"Gate: {as_text(report.gate, cli=cli)}"]
    waits = [waits_text(report.waits, cli=cli)] if report.waits else []
    name = f"policy {report.version} ({report.policy_id[:12]}…)"
    if not report.made and not report.elsewhere and not report.proposed:
        head = ["Preview, nothing was changed."] if report.preview else []
        return "\n".join([*head, *lift, f"No update: {name} goes on.", *gate, *waits])
    changes = f"{name} decides now{', published by another process' if report.elsewhere else ''}."
    if report.preview:
        changes = f"none, this is a preview. Next would be {name}."
    elif report.proposed:
        approve = "rareswitch experiment approve" if cli else "approve()"
        changes = f"none until {name} is approved ({approve})."
    texts = {
        "Seen": [_batch_text(report), *lift],
        "Changes": [changes, "" if report.changes is None else _changes(report.changes)],
        "Expected": [_model_text(report.note), _plan_text(report.batch_sizes), *gate],
        "Watch": [_watch_text(report), *(f"Not due. {text}" for text in waits)],
    }
    if report.regret is not None and report.regret.rate != "none":
        texts["Watch"].append(as_text(report.regret, cli=cli))
    nothing = {"Expected": "no more policies.", "Watch": "nothing unusual."}
    return "\n".join(f"{line}: {' '.join(filter(None, parts)) or nothing[line]}" for line, parts in texts.items())


def _changes(changes: PolicyChanges) -> str:
    """What a policy would decide otherwise."""
    shares = [(arm, *map(percent_text, pair)) for arm, pair in changes.arms.items() if pair[0] != pair[1]]
    arms = [f"{arm} {old} → {new}" for arm, old, new in shares]
    more = f", {len(arms) - MOST_ARMS} more" if len(arms) > MOST_ARMS else ""
    listed = f": {', '.join(arms[:MOST_ARMS])}{more}" if arms else ""
    return f"Changes for {percent_text(changes.share)} of {changes.requests:,} requests{listed}."


def _batch_text(report: Advance) -> str:
    """The batch that ended, and what it cost."""
    note, missing = report.note, report.decided - report.held_out - report.learned - report.waiting - report.expired
    counts = [
        f"{count:,} {what}"
        for count, what in (
            (report.rewarded, "rewarded"),
            (0 if report.learned == report.rewarded else report.learned, "learned from"),
            (report.held_out, "held out for the gate"),
            (report.waiting, "with an open attribution window"),
            (report.expired, "rewarded after the window"),
            (missing, "without a reward"),
            (report.clipped, "clipped"),
        )
        if count
    ]
    texts = [f"batch {report.version - 1}, {several(report.decided, 'decision')}, {', '.join(counts)}"]
    if note.lost is not None:
        expected = "" if note.expected is None else f" (expected: {_rounded(note.expected)})"
        without = "" if note.min_propensity is None else " without the minimum propensity"
        texts.append(f"Regret of this batch{without}: about {_rounded(note.lost)}{expected}")
    texts += ["As believed before the batch"] if note.widening == 1.0 else []
    return sentences(texts)


def _plan_text(batch_sizes: tuple[int, ...]) -> str:
    """What the schedule foresees."""
    if not batch_sizes:
        return ""
    more = f", then {len(batch_sizes) - 1} more for {sum(batch_sizes[1:]):,}" if len(batch_sizes) > 1 else ""
    return f"Planned for {several(batch_sizes[0], 'decision')}{more}."


def _watch_text(report: Advance) -> str:
    """What was not as it should be."""
    note = report.note
    texts = [f"Batch {number}, late rewards: now {known:,} rewarded" for number, known in report.late.items()]
    if note.surprise is not None and note.widening not in (None, 1.0):
        texts.append(_surprise_text(note, note.surprise, note.widening or 1.0))
    if note.outlier is not None:
        texts.append(f"Outlier: a reward {note.outlier:.0f} standard deviations from the mean (see clip of Rewards)")
    if note.level is not None:
        texts.append(f"Mean reward, not explained by the features: {note.level:.3g}")
    return sentences(texts)


def _surprise_text(note: LearnerNote, surprise: float, widening: float) -> str:
    """Of a learner's note, how far the batch was from what was believed, and what was concluded."""
    exploring = "" if note.cost is None else " and exploration continued"
    between = "; the policy lies between the belief before and after" if note.between else ""
    return (
        f"Not as believed: {math.sqrt(surprise):.1f} × as far off as chance explains; the belief is widened "
        f"{math.sqrt(widening):.1f} ×{exploring}{between}"
    )


def _model_text(note: LearnerNote) -> str:
    """Of a learner's note, what the new policy rests on and is expected to cost."""
    texts = [] if note.cost is None else [f"remaining regret {_rounded(note.cost)}"]
    if note.link is not None:
        other, better = ("linear" if note.link == "logistic" else "logistic"), abs(note.held_out or 0.0)
        held_out = f" (held-out log-likelihood {better:.1f} above {other})" if better >= HELD_OUT else ""
        texts.append(f"Model: {note.link}{held_out}")
    elif note.noise is not None:
        texts.append(f"Model: linear, σ = {note.noise:.3g}")
    if note.scale:
        texts.append(f"Exploration scale: {note.scale:g}")
    elif note.scale is not None and not note.between:  # the conclusion says it then
        texts.append("Exploration scale: 0 (greedy)")
    return sentences(texts)


def _rounded(cost: float) -> str:
    return f"{cost:,.0f}" if cost >= 10.0 else f"{cost:.2g}"


@as_text.register
def audit_text(audit: Audit, *, cli: bool = False) -> str:
    """A decision, and what its policy says of it now."""
    rewards = ", ".join(f"{value:g}{f' ({event})' if event else ''}" for event, value in audit.rewards.items())
    again = (
        "its set differs" if audit.recomputed is None else "arm number {}, propensity {:.6g}".format(*audit.recomputed)
    )
    activation = ""
    if audit.deferred:
        moment = "not yet" if audit.activated is None else f"{minute_text(audit.activated)} UTC"
        activation = f" Deferred; activated: {moment}."
    verdicts = {
        "matches": "Matches: the frozen policy gives the same arm and propensity.",
        "contexts needed": "Its context set was not kept, or lacks the ids of arms. Give the request again; it is "
        "checked by its hash.",
        "other contexts": "This is not the request that was decided: its hash differs.",
        "differs": f"DIFFERS: the policy now gives {again}. The store was changed, or another machine decided with "
        "another seed.",
    }
    return "\n".join(
        [
            f"Decision {audit.id!r} of {minute_text(audit.time)} UTC: arm {audit.arm}, propensity "
            f"{audit.propensity:.6g}.",
            f"Policy {audit.version} ({audit.policy_id[:12]}…). Reward: {rewards or 'unknown'}.{activation}",
            verdicts[audit.verdict],
        ]
    )


@as_text.register
def verification_text(verification: Verification, *, cli: bool = False) -> str:
    """What learning again gives, policy by policy."""
    texts = {"same": "reproduced", "rounding": "reproduced up to rounding", "otherwise": "NOT reproduced"}
    lines = []
    for number, entry in enumerate(verification.policies, 1):
        reason = entry.reason or (f"the same arm for {entry.decisions:,} requests" if entry.decisions else "")
        if entry.differing:
            reason = f"other arms for {entry.differing:,} of {entry.decisions:,} stored requests"
        lines.append(f"Policy {number} ({entry.policy_id[:12]}…): {texts[entry.verdict]}{reason and f' ({reason})'}.")
    if verification.holds:
        return "\n".join([*lines, "All policies are reproduced from their summaries."])
    if verification.faults:
        lines += ["The store is damaged. Restore a backup.", *(f"  {fault}" for fault in verification.faults)]
    learned = verification.sums and all(entry.verdict != "otherwise" for entry in verification.policies)
    if not verification.sums:
        lines.append("The sums in the state are not those of the summaries.")
    if not learned:
        lines.append(
            f"The learner of rareswitch {verification.version}, with which the experiment was created, may differ from "
            f"that of {__version__}, or the store was changed. The policies stay as they are, and the experiment can "
            "go on."
        )
    return "\n".join(lines)


@as_text.register
def import_text(report: ImportReport, *, cli: bool = False) -> str:
    """The rows of a log, by what the import did with them."""
    counts = {
        "of decisions that are new": report.new,
        "with a reward that is new, of decisions known before": report.rewarded,
        "that say nothing new": report.copies,
        "that contradict what was there, left out": report.conflicting,
    }
    counts |= {
        f"of policy {f'{name[:12]}…' if name else '(all others)'}, which this experiment never had, left out": rows
        for name, rows in report.foreign.items()
    }
    lines = [f"  {count:>12,} {what}" for what, count in counts.items() if count]
    return "\n".join([f"{several(report.rows, 'row')} in {several(report.parts, 'part')}:", *lines])
