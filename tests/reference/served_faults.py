"""Servers that are killed, have no room or get new policies while others ask them, and what must hold afterwards.

What was acknowledged is compared with what is stored before anything is asked again, as asking again would hide a loss.
"""

import json
import random
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self
from uuid import uuid4

import msgspec
import numpy as np

from rareswitch.core import replacing
from rareswitch.experiment import Choice, create, open_experiment
from rareswitch.policy import Policy, save_policy
from rareswitch.policy.samplers import PosteriorDraws
from rareswitch.service import Tokens
from reference.experiment_play import Findings
from reference.load import MARK, Load, Outcome, request
from reference.served import COMMAND, Server, serving

DIM = 3
#: What is decided and rewarded: the decision and its reward are a script, whose number is the id.
VECTORS = np.random.default_rng(1).normal(size=(20, 4, DIM))
PATH, CONNECTIONS = "/v1/experiments/trial", 16
#: A server whose store answers before it commits: the negative control.
EARLY = f"""
import sys
sys.path[:0] = [{str(Path(__file__).parents[1])!r}]
from rareswitch.cli import main
from rareswitch.service import hub
from reference.experiment_kills import answer_early
whole = hub.open_experiment
def opened(*given, **more):
    trial = whole(*given, **more)
    answer_early(trial.store)
    return trial
hub.open_experiment = opened
sys.exit(main(["serve", *sys.argv[1:]]))
"""


class Decided(NamedTuple):
    """What must never change of a decision."""

    arm: str
    propensity: float
    policy_id: str

    @classmethod
    def of(cls, answer: bytes) -> Self:
        choice = msgspec.json.decode(answer, type=Choice)
        return cls(str(choice.arm), choice.propensity, choice.policy_id)


def requests(port: int, verb: str, bodies: list[dict[str, Any]], token: str) -> list[bytes]:
    """Of an experiment, each under an id of its own."""
    texts = [json.dumps({"id": MARK.decode()} | body).encode() for body in bodies]
    return [request(port, f"{PATH}/{verb}", text, token=token) for text in texts]


class Asked:
    """An experiment in a store, servers of it, and what they have acknowledged."""

    def __init__(self, folder: Path, url: str | None = None, *, early: bool = False) -> None:
        self.url, self.tokens = url or f"{folder}/{uuid4().hex}.db", f"{folder}/{uuid4().hex}.tokens.json"
        self.store = self.url if "://" in self.url else f"sqlite:///{self.url}"
        self.token = Tokens(self.tokens).add("load", ["admin"])
        self._command = (sys.executable, "-c", EARLY) if early else COMMAND
        create(self.store, "trial", dim=DIM, policies=200, horizon=10**6, seed=7).close()
        #: What was answered or stored, and the numbers whose rewards were acknowledged.
        self.known: dict[int, Decided] = {}
        self.rewarded, self.asked, self.lost = set[int](), set[int](), set[tuple[str, int]]()
        self.found = Findings()

    @contextmanager
    def served(self) -> Iterator[Server]:
        """A server, whose first decision was made."""
        with serving(self.url, "--tokens", self.tokens, command=self._command) as server:
            with server.client(self.token) as client:
                client.post(f"{PATH}/decide", json={"id": "first", "vectors": VECTORS[0].tolist()}).raise_for_status()
            yield server

    def load(self, server: Server, first: int, seconds: float, **more: Any) -> Load:
        """Decisions, each with its reward."""
        decides = requests(server.port, "decide", [{"vectors": vectors.tolist()} for vectors in VECTORS], self.token)
        rewards = requests(server.port, "reward", [{"value": k % 2} for k in range(len(VECTORS))], self.token)
        chosen = {"connections": CONNECTIONS, "seconds": seconds, "first": first, "keeps": True, **more}
        return Load(port=server.port, scripts=[*map(list, zip(decides, rewards, strict=True))], **chosen)

    def note(self, first: int, outcome: Outcome) -> None:
        """Keep what was acknowledged; what was answered or stored before must be answered again."""
        self.asked |= {*range(first, first + outcome.begun)}
        for number, answers in outcome.answers.items():
            for step, answer in answers.items():
                if step == 1:
                    self.rewarded.add(number)
                elif self.known.setdefault(number, Decided.of(answer)) != Decided.of(answer):
                    self.found.faults.append(f"decision {number} was {self.known[number]}, and is {answer!r}")

    def look(self) -> None:
        """Compare what is stored with what was acknowledged, and with what was asked."""
        found, rows = self.found, dict[int, Decided]()
        paid: dict[int, list[float]] = {}
        with closing(open_experiment(self.store, "trial")) as trial:
            policies = [policy.id for policy in trial.policies]
            for page in trial.store.rows(0, trial.store.marks()):
                for row, rewards in page:
                    if row.id == '"first"':
                        continue
                    number = int(row.id.strip('"'))
                    found.doubled += number in rows
                    rows[number] = Decided(row.arm, row.propensity, policies[row.version - 1])
                    paid[number] = [reward.value for reward in rewards]
        self.lost |= {("decision", number) for number in self.known.keys() - rows.keys()}
        self.lost |= {("reward", number) for number in self.rewarded if not paid.get(number)}
        found.lost, found.acknowledged = len(self.lost), len(self.known) + len(self.rewarded)
        for number, row_ in rows.items():
            if self.known.setdefault(number, row_) != row_:
                found.faults.append(f"decision {number} was {self.known[number]}, and is stored as {row_}")
        if wrong := [number for number, values in paid.items() if values not in ([], [number % len(VECTORS) % 2])]:
            found.faults.append(f"decisions {wrong[:5]} have other rewards")
        if strange := rows.keys() - self.asked:
            found.faults.append(f"nobody asked for {sorted(strange)[:5]}")

    def again(self, server: Server, first: int, count: int) -> None:
        """Ask again for all that was asked: each is answered, as it was before."""
        outcome = self.load(server, first, 60.0, most=count).run()
        self.note(first, outcome)
        if outcome.errors or outcome.begun != count:
            text = f"asked again, {outcome.errors} of {outcome.begun} have no answer: {outcome.statuses}"
            self.found.faults.append(text)


def kill(asked: Asked, times: int, *, seed: int = 0, longest: float = 1.0) -> Findings:
    """Kill servers while they are asked; after each kill look first, then ask again for all, then go on."""
    rng, first, begun = random.Random(seed), 0, 0
    for number in range(times + 1):
        with asked.served() as server:
            if begun:
                asked.again(server, first, begun)
            if number == times:
                break
            first += 1_000_000
            with asked.load(server, first, 60.0).begin() as running, server.client(asked.token) as client:
                time.sleep(rng.uniform(0.2, 0.2 + longest))
                if number % 3 == 1:  # what is asked again was decided by an earlier policy
                    client.post(f"{PATH}/advance", json={"force": True})
                server.process.kill()
                outcome = running.end()
        begun = outcome.begun
        asked.note(first, outcome)
        if outcome.statuses.keys() != {200}:
            asked.found.faults.append(f"before a kill there were answers {outcome.statuses}")
        asked.look()
    asked.look()
    return asked.found


def no_room(
    asked: Asked, full: Callable[[Server], None], back: Callable[[Server], None], *, seconds: float
) -> Findings:
    """A server whose disk is full for a while: it refuses, says so, and recovers by itself; nothing is lost."""
    found, first = asked.found, 1_000_000
    with asked.served() as server, server.client(asked.token) as client:
        with asked.load(server, first, 3 * seconds, rate=200.0).begin() as running:
            time.sleep(seconds)
            full(server)
            time.sleep(seconds)
            refused = client.post(f"{PATH}/decide", json={"id": "first one", "vectors": VECTORS[1].tolist()})
            ready = client.get("/readyz")
            back(server)
            outcome = running.end()
        asked.note(first, outcome)
        asked.look()
        if (refused.status_code, refused.headers.get("retry-after")) != (503, "1"):
            found.faults.append(f"without room: {refused.status_code}, {refused.text}")
        if (ready.status_code, ready.json()["error"]["type"]) != (503, "StoreError"):
            found.faults.append(f"without room it says: {ready.status_code}, {ready.text}")
        if outcome.unanswered or outcome.statuses.keys() != {200, 503}:
            found.faults.append(f"answers {outcome.statuses}, {outcome.unanswered} unanswered")
        if (ready := client.get("/readyz")).status_code != 200:
            found.faults.append(f"it does not recover: {ready.text}")
        asked.again(server, first, outcome.begun)
        asked.look()
    return found


def limit_files(server: Server) -> None:
    """From now on its files cannot grow, as if the disk were full."""
    log = server.log.parent
    sizes = [path.stat().st_size for path in log.iterdir()]
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (min(sizes, default=0), resource.RLIM_INFINITY))


def free_files(server: Server) -> None:
    """They can again."""
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def rolled(folder: Path, policies: int, *, pause: float = 1.3) -> Findings:
    """New policies, and a file that is none, in the place of the one by which a server at the edge decides."""
    found, file, token = Findings(), folder / "current.policy", Tokens(folder / "tokens.json").add("load", ["decide"])
    rng = np.random.default_rng(2)
    made = [Policy(dim=DIM, sampler=PosteriorDraws(draws=rng.normal(size=(16, DIM)))) for _ in range(policies)]
    by_id = {policy.id: policy for policy in made}
    save_policy(made[0], file)
    options = ("--policy", str(file), "--name", "trial", "--tokens", str(folder / "tokens.json"))
    with serving(*options, RARESWITCH_SEED="7") as server:
        sent = requests(server.port, "decide", [{"vectors": vectors.tolist()} for vectors in VECTORS], token)
        scripts, chosen = [[each] for each in sent], {"connections": CONNECTIONS, "keeps": True}
        with Load(port=server.port, scripts=scripts, seconds=pause * (policies + 1), **chosen).begin() as running:  # type: ignore[arg-type]
            for policy in made[1:]:
                time.sleep(pause)
                with replacing(file) as temporary:
                    temporary.write_bytes(b"no policy")
                with replacing(file) as temporary:
                    save_policy(policy, temporary)
            outcome = running.end()
    if outcome.errors:
        found.faults.append(f"answers {outcome.statuses}, {outcome.unanswered} unanswered")
    seen = set[str]()
    for number, answers in outcome.answers.items():
        answer, vectors = Decided.of(answers[0]), VECTORS[number % len(VECTORS)]
        seen.add(answer.policy_id)
        own = by_id[answer.policy_id].decide(vectors, ids=f"{number:012}", seed=7)
        if (answer.arm, answer.propensity) != (str(int(own.arms)), float(own.propensities)):
            found.faults.append(f"decision {number} is not its policy's: {answer}")
    found.acknowledged = len(outcome.answers)
    if len(seen) != policies:
        found.faults.append(f"{len(seen)} of {policies} policies decided")
    return found
