"""``rareswitch plan``: how many policies, when, and what fewer lose."""

import argparse
from typing import TYPE_CHECKING

from rareswitch.cli.options import Arguments, add_options, count_option, duration_option
from rareswitch.cli.output import Output, save_picture
from rareswitch.cli.sources import add_columns, column_options, given_arms, named_log
from rareswitch.errors import FileFormatError, ParameterError

if TYPE_CHECKING:
    from rareswitch.features import Features

#: As in the library, which takes longer to load than these take to be refused.
CONTEXTS = ("fixed", "stochastic", "adversarial")
#: What goes to the library as it is typed.
NAMES = (
    *("decisions", "rate", "start", "end", "zone", "dim", "policies", "delay", "gap", "on", "mean", "spread"),
    *("click_rate", "lift", "holdout", "min_propensity", "contexts", "seed"),
)


def add_plan(parser: argparse.ArgumentParser) -> None:
    """How many policies an experiment needs, when, and what it loses with fewer, by simulation on its contexts."""
    time = parser.add_argument_group("how many decisions, and when")
    time.add_argument("--decisions", metavar="T", type=count_option, help="decisions in all")
    time.add_argument("--rate", metavar="N", type=float, help="decisions a day; then updates have dates")
    time.add_argument("--start", metavar="TIME", help="when it begins (default: now)")
    time.add_argument("--end", metavar="TIME", help="when it ends, such as 2027-06-01")
    time.add_argument("--zone", metavar="ZONE", default="UTC", help="time zone of these dates (default UTC)")
    time.add_argument("--delay", metavar="TIME", type=duration_option, default=0.0, help="until a reward is known")
    time.add_argument("--gap", metavar="TIME", type=duration_option, default=0.0, help="least time between updates")
    time.add_argument("--on", metavar="DAYS", help='when updates may be made, such as "monday 10:00"')
    time.add_argument("--policies", metavar="M", type=count_option, help="most policies, the first included")
    what = parser.add_argument_group("contexts: sizes, a sample, or a log")
    add_options(parser, dim={"help": "features of an arm"})
    what.add_argument("--arms", nargs="+", metavar="ID", help="arms in a set, a number; for a sample: ids, or a file")
    what.add_argument("--sample", metavar="FILE", help="records of requests (CSV, Parquet, JSON), or vectors (.npy)")
    what.add_argument("--features", metavar="FILE", help="features of these records (default: proposed from them)")
    what.add_argument("--log", nargs="+", metavar="SOURCE", help="decisions with rewards: files, or STORE NAME")
    add_columns(parser)
    metric = parser.add_argument_group("the metric")
    metric.add_argument("--mean", metavar="X", type=float, help="what uniform choice earns on average")
    metric.add_argument("--spread", metavar="X", type=float, help="standard deviation of a reward")
    metric.add_argument("--click-rate", metavar="P", type=float, help="in place of both, where rewards are clicks")
    metric.add_argument("--lift", metavar="X", type=float, help="gain of the best arms as a share of the mean")
    metric.add_argument("--holdout", metavar="SHARE", type=float, help="share that keeps a baseline (default 0.05)")
    metric.add_argument("--min-propensity", metavar="X", type=float, help="minimum propensity of every arm")
    kinds = "bounds are for fixed, stochastic or adversarial sets (default stochastic)"
    parser.add_argument("--contexts", choices=CONTEXTS, default="stochastic", help=kinds)
    parser.add_argument("--html", metavar="FILE", help="write a page with the picture (needs rareswitch[plot])")
    add_options(parser, seed={"help": "of the simulation (default 0)"}, plot={}, quiet={})


def run_plan(options: argparse.Namespace) -> Output:
    """A plan, with a picture and a page where they are asked for."""
    from rareswitch.core import write_whole
    from rareswitch.planning import plan
    from rareswitch.report import ProgressBar, as_html, as_text, check_page, check_target, draw

    check_target(options.plot)
    check_page(options.html)
    settings = {name: getattr(options, name) for name in NAMES}
    if options.log is None and options.columns is not None:
        raise ParameterError("columns are those of a log: give --log too.")
    with (
        named_log(options.log, **column_options(options)) as log,
        ProgressBar("simulating", quiet=options.quiet) as bar,
    ):
        result = plan(log=log, progress=bar, **_contexts(options), **settings)
    if options.plot is not None:
        save_picture(draw(result), options)
    if options.html is not None:
        write_whole(as_html(result).encode(), options.html)
    return Output(result, as_text(result, cli=True))


def _contexts(options: argparse.Namespace) -> Arguments:
    """The sample with its features, or the number of arms."""
    if options.sample is None:
        arms = options.arms
        if arms is not None and not (len(arms) == 1 and arms[0].isdecimal()):
            raise ParameterError(f"arms must be a number where there is no sample; got {' '.join(arms)!r:.60}.")
        features = {} if options.features is None else {"features": _features(options.features)}
        return features if arms is None else features | {"arms": int(arms[0])}
    if options.sample.endswith(".npy"):
        import numpy as np

        try:
            return {"sample": np.load(options.sample, allow_pickle=False)} | _named("arms", options)
        except (OSError, ValueError) as error:
            raise FileFormatError(f"{options.sample}: no array of context sets ({error!s:.200}).") from error
    from rareswitch.core import read_records
    from rareswitch.features import Features

    sample, arms = read_records(options.sample), given_arms(options.arms)
    if options.features is not None:
        return {"sample": sample, "features": _features(options.features), "arms": arms}
    if arms is None:
        raise ParameterError("arms must be given with a sample: ids, as in --arms A B, or a file with their records.")
    return {"sample": sample, "features": Features.fit(sample, arms), "arms": arms}


def _named(name: str, options: argparse.Namespace) -> Arguments:
    """An option that is refused by the library, where it was typed."""
    return {} if getattr(options, name) is None else {name: getattr(options, name)}


def _features(path: str) -> "Features":
    from rareswitch.features import Features

    return Features.load(path)
