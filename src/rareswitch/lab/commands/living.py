"""``rareswitch serve --demo``: the page over simulated experiments, whose weeks pass in seconds."""

import argparse
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from tempfile import TemporaryDirectory

from rareswitch.cli.laboratory import SEED
from rareswitch.experiment import Experiment, Rewards, create
from rareswitch.lab.commands.users import DELAY, MISSING, POLICIES, RATE, REPEATED, START, demo_world
from rareswitch.lab.traffic import Traffic, play
from rareswitch.lab.worlds import RecordWorld
from rareswitch.service import Hub, application, login_path, read_settings, serve, service_of

#: Days of the experiments; hours that pass at once, and seconds until the next ones do.
DAYS, STEP, PACE = 56, 3, 0.2
#: What was shown before: each visitor's usual campaign.
BASELINE = "usual"


class StoppedError(Exception):
    """The demo is over."""


class DemoHub(Hub):
    """Experiments with simulated visitors: one updates itself, in the other policies wait for approval."""

    def __init__(self, folder: str, *, pace: float = PACE) -> None:
        super().__init__(f"sqlite:///{folder}/demo.db")
        self._clock, self._pace, self._stop = START.timestamp(), pace, threading.Event()
        world = demo_world(baseline=BASELINE)
        end = f"{START + timedelta(days=DAYS):%Y-%m-%d}"
        self._visits = []
        for name, approval in (("homepage", True), ("campaign", False)):
            trial = create(
                self.url,
                name,
                features=world.features,
                policies=POLICIES,
                schedule=f"best: policies={POLICIES}, rate={RATE}, end={end}",
                rewards=Rewards(window="2d", default=0.0),
                baseline=BASELINE,
                approval=approval,
                seed=SEED,
                now=START,
            )
            self.add(trial)
            self._visits.append(threading.Thread(target=self._visit, args=(trial, world), daemon=True))
        for thread in self._visits:
            thread.start()

    def now(self) -> float:
        """The simulated time."""
        return self._clock

    def close(self) -> None:
        """Let the visitors go, too."""
        self._stop.set()
        for thread in self._visits:
            thread.join()
        super().close()

    def _visit(self, trial: Experiment, world: RecordWorld) -> None:
        approval = trial.description.approval
        traffic = Traffic(rate=RATE, delay=DELAY, missing=MISSING, repeated=REPEATED)
        with suppress(StoppedError):
            play(
                trial,
                world,
                traffic,
                days=DAYS,
                seed=SEED + approval,
                step=timedelta(hours=STEP),
                advance=not approval,
                progress=self._pacing(trial),
            )

    def _pacing(self, trial: Experiment) -> Callable[[int, int], None]:
        began, steps = time.monotonic(), 0

        def wait(done: int, total: int) -> None:
            nonlocal steps
            steps += 1
            now = START.timestamp() + steps * STEP * 3600.0
            self._clock = max(self._clock, now)
            if trial.description.approval and trial.proposal is None and trial.status(now=now).due:
                trial.advance(now=now)
            if self._stop.wait(max(0.0, began + steps * self._pace - time.monotonic())):
                raise StoppedError

        return wait


def run_serve_demo(options: argparse.Namespace) -> int:
    """Serve the demo until it is stopped."""
    with TemporaryDirectory(prefix="rareswitch-demo-") as folder:
        hub = DemoHub(folder)
        port = {} if options.port is None else {"port": options.port}
        settings = read_settings(None, {}, {"url": hub.url, **port})
        service = service_of(settings, hub)
        link = f"{settings.address}{login_path(service.security.tokens.link())}"
        weeks = DAYS // 7
        print(
            f"{weeks} weeks of two simulated experiments, a week in {7 * 24 / STEP * PACE:.0f} seconds. Ctrl-C stops."
        )
        print(f"Open {link}\n(once, within ten minutes)", flush=True)
        serve(settings, application(service), quiet=True)
    return 0
