"""Evaluations made by hand, for what shows them."""

from collections.abc import Mapping

from rareswitch.evaluation import ArmCount, BatchValue, Calibration, Difference, Evaluation, Interval, Overlap, Value

REFUSAL = (
    "43 % of its play are arms that the log could not have shown, and at most 1 % may be. Keep every arm at a floor of "
    "0.02 for 3,200 decisions, and ask again."
)
#: How weights are spread, of a candidate that is like the log and of one that is not.
WEIGHTS = (1500, 0, 0, 0, 600, 2600, 4200, 2400, 480, 22, 0, 0, 0, 0, 0, 0, 0)
FAR = (10500, 400, 100, 100, 100, 100, 200, 100, 80, 60, 30, 15, 9, 6, 2, 0, 0)
#: Candidates, what they earn and its margin; None where the log cannot tell.
USUAL: dict[str, tuple[float, float] | None] = {
    "logged": (0.162, 0.0068),
    "uniform": (0.143, 0.0121),
    "baseline": (0.150, 0.0091),
    "policy 3": (0.171, 0.0083),
    "never": None,
}


def interval(value: float, margin: float) -> Interval:
    """From ``value`` less the margin to ``value`` and the margin."""
    return Interval(value=value, low=value - margin, high=value + margin, level=0.95, kind="by batch")


def value(name: str, found: tuple[float, float] | None, *, batches: int = 4, cautions: tuple[str, ...] = ()) -> Value:
    """A candidate that is answered, or refused."""
    answered = found is not None
    center, margin = found or (float("nan"), float("nan"))
    each = tuple(
        BatchValue(
            batch=k,
            name=f"{k}3fa9c0e77b1d2",
            decisions=1900 + k,
            value=center + 0.01 * (k - 1),
            error=margin,
            interval=interval(center + 0.01 * (k - 1), 2.0 * margin) if answered and k else None,
            spread=1.5 + k,
            unsupported=0.0 if answered else 0.43,
        )
        for k in range(batches)
    )
    overlap = Overlap(
        decisions=11802,
        mean_weight=1.003 if answered else 0.57,
        mean_weight_error=0.01,
        unsupported=0.0 if answered else 0.43,
        effective=5120.0 if answered else 12.0,
        largest=3.2 if answered else 412.2,
        largest_share=0.001,
        weights=WEIGHTS if answered else FAR,
    )
    return Value(
        candidate=name,
        interval=interval(center, margin) if answered else None,
        refusals=() if answered else (REFUSAL,),
        estimator="dr",
        overlap=overlap,
        batches=each,
        others={other: interval(center, margin) for other in ("ips", "snips", "dr")} if answered else {},
        cautions=cautions,
    )


def evaluation(
    candidates: Mapping[str, tuple[float, float] | None] | None = None,
    *,
    batches: int = 4,
    estimated: str = "",
    alarm: bool = False,
) -> Evaluation:
    """Candidates against a log that earned 0.162, with a baseline."""
    values = tuple(value(name, one, batches=batches) for name, one in (candidates or USUAL).items())
    gains = tuple(
        Difference(
            name=one.candidate,
            over="logged",
            decisions=11802,
            interval=None
            if one.interval is None
            else interval(one.interval.value - 0.162, one.interval.high - one.interval.value),
            refusals=one.refusals,
        )
        for one in values
    )
    lift = [
        Difference(
            name="so far",
            over="baseline",
            decisions=12345,
            interval=interval(0.0123, 0.0078),
            relative=interval(0.082, 0.052),
        )
    ]
    for day in (2, 9, 16):
        known = day < 16
        lift.append(
            Difference(
                name=f"week 2026-11-{day:02}",
                over="baseline",
                decisions=3000 + day,
                interval=interval(0.009 + day / 1000.0, 0.02) if known else None,
                refusals=() if known else ("only 12 decisions of that week have a reward.",),
            )
        )
    arms = (
        ArmCount(arm="blue", offered=5000, shown=1100, expected=1100.1, deviation=0.0),
        ArmCount(arm="red", offered=5000, shown=1234, expected=1100.1, deviation=4.6),
    )
    return Evaluation(
        values=values,
        earned=interval(0.1622, 0.0068),
        lift=tuple(lift),
        gains=gains,
        calibration=Calibration(arms=arms, p_value=4e-6 if alarm else 0.34, threshold=1e-3, exact=True),
        decisions=12345,
        known=12345,
        rewarded=11802,
        batch_names=tuple("abcdefghijklmnopqrstuvwxyz"[:batches]),
        estimated=estimated,
    )
