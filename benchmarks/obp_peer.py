"""obp 0.4.1 in an environment of its own, to compare with: its pins do not install beside ours, so files go between.

As a module it makes the environment and sends work there; as a script, run in that environment, it does the work: every
``NAME.npz`` in a folder is a log with a candidate's probabilities, and gets a ``NAME.json`` of obp's estimates.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

ENVIRONMENT = Path(__file__).parent.parent / ".venv-obp"
#: Installed without what it asks for: its pins are for older Pythons, and torch is not needed here.
PINNED = ("obp==0.4.1", "pyieoe==0.1.1")
BESIDE = ("numpy", "scipy", "pandas", "scikit-learn", "pyyaml", "tqdm", "seaborn", "mypy-extensions")


def available() -> bool:
    """Whether the environment is there, or may be made."""
    return (ENVIRONMENT / "installed").exists() or os.environ.get("RARESWITCH_OBP") == "make"


def python() -> Path:
    """The interpreter of the environment, which is made once."""
    installed = ENVIRONMENT / "installed"
    if not installed.exists():
        print(f"making an environment for obp in {ENVIRONMENT} (once) ...", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], check=True)
        pip = [str(ENVIRONMENT / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *BESIDE], check=True)
        subprocess.run([*pip, "--no-deps", *PINNED], check=True)
        installed.touch()
    return ENVIRONMENT / "bin" / "python"


def estimates(folder: Path, *arguments: str) -> dict[str, Any]:
    """What obp says of all logs in a folder, by name."""
    subprocess.run([str(python()), __file__, str(folder), *arguments], check=True)
    return {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}


def loaded(path: Path) -> tuple[dict[str, Any], Any, Any]:
    """A log of obp's, the candidate (n, arms, positions), and the model's predictions of the same shape."""
    with np.load(path) as held:
        arrays = dict(held)
    feedback = {name: arrays.get(name) for name in ("context", "action", "reward", "pscore", "position")}
    feedback |= {"n_rounds": len(arrays["action"]), "n_actions": int(arrays["n_actions"])}
    return feedback, arrays["action_dist"], np.load(path.with_suffix(".npy"))


def without_torch() -> None:
    """Names without content in place of torch, which obp imports for what is not used here."""

    class Absent(ModuleType):
        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            return type(name, (), {})

    names = ("torch", "torch.nn", "torch.optim", "torch.utils", "torch.utils.data")
    made = {name: Absent(name) for name in names}
    for name, module in made.items():
        parent, _, own = name.rpartition(".")
        if parent:
            setattr(made[parent], own, module)
    sys.modules.update(made)


def synthetic(folder: Path, count: int, rounds: int) -> None:
    """Logs that obp makes up, with candidates of three kinds: far from the log's policy, near it, and deterministic."""
    from obp.dataset import SyntheticBanditDataset, linear_behavior_policy, logistic_reward_function

    for seed in range(count):
        sizes: dict[str, Any] = {"n_actions": 10, "dim_context": 5, "reward_type": "binary", "random_state": seed}
        rules = {"reward_function": logistic_reward_function, "behavior_policy_function": linear_behavior_policy}
        dataset = SyntheticBanditDataset(**sizes, **rules)
        feedback = dataset.obtain_batch_bandit_feedback(n_rounds=rounds)
        logits = feedback["expected_reward"] * 5.0
        spread = np.exp(logits - logits.max(axis=1, keepdims=True))
        best = np.zeros_like(logits)
        best[np.arange(rounds), logits.argmax(axis=1)] = 1.0
        candidates = {
            "uniform": np.full_like(logits, 0.1),
            "softmax": spread / spread.sum(axis=1, keepdims=True),
            "best arm": best,
        }
        arrays = {name: feedback[name] for name in ("context", "action", "reward", "pscore")}
        for name, candidate in candidates.items():
            path = folder / f"synthetic-{seed}-{name.replace(' ', '-')}.npz"
            np.savez(path, **arrays, action_dist=candidate[:, :, None], n_actions=10)


def open_bandit(folder: Path, data: Path) -> None:
    """The Thompson log of the Open Bandit Dataset as obp itself reads it, with uniform play as the candidate."""
    import gzip

    import pandas as pd
    from obp.dataset import OpenBanditDataset

    class Dataset(OpenBanditDataset):  # type: ignore[misc]
        def pre_process(self) -> None:  # obp's own uses arguments that pandas no longer has
            users = self.data.columns.str.contains("user_feature")
            self.context = pd.get_dummies(self.data.loc[:, users], drop_first=True).values.astype(float)
            self.action_context = np.eye(self.n_actions)

    place = folder / "obd" / "bts" / "men"
    place.mkdir(parents=True)
    (place / "men.csv").write_bytes(gzip.decompress((data / "bts.csv.gz").read_bytes()))
    (place / "item_context.csv").write_bytes((data / "items.csv").read_bytes())
    dataset = Dataset(behavior_policy="bts", campaign="men", data_path=folder / "obd")
    feedback = dataset.obtain_batch_bandit_feedback()
    arrays = {name: feedback[name] for name in ("context", "action", "reward", "pscore", "position")}
    arms, positions = feedback["n_actions"], int(feedback["position"].max()) + 1
    uniform = np.full((feedback["n_rounds"], arms, positions), 1.0 / arms)
    rows = dataset.data.index.to_numpy()
    np.savez(folder / "obd.npz", **arrays, action_dist=uniform, n_actions=arms, rows=rows)


def estimate_all(folder: Path) -> None:
    """Fit obp's model to each log and write its estimates, of all positions and of each."""
    from obp import ope
    from sklearn.linear_model import LogisticRegression

    kinds = {
        "ips": ope.InverseProbabilityWeighting(),
        "snips": ope.SelfNormalizedInverseProbabilityWeighting(),
        "dr": ope.DoublyRobust(),
    }
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as held:
            log = dict(held)
        arms, positions = int(log["n_actions"]), log["action_dist"].shape[2]
        position = log.get("position", np.zeros(len(log["action"]), dtype=int))
        regression = ope.RegressionModel(
            n_actions=arms, len_list=positions, base_model=LogisticRegression(C=100.0, max_iter=1000)
        )
        columns = {name: log[name] for name in ("context", "action", "reward", "pscore", "action_dist")}
        model = regression.fit_predict(**columns, position=position, n_folds=2, random_state=0)
        np.save(path.with_suffix(".npy"), model)
        found = {}
        for which in (None, *range(positions if positions > 1 else 0)):
            rows = np.ones(len(position), dtype=bool) if which is None else position == which
            inputs = {name: log[name][rows] for name in ("reward", "action", "pscore", "action_dist")}
            inputs["position"] = position[rows]
            inputs["estimated_rewards_by_reg_model"] = model[rows]
            found["all" if which is None else str(which + 1)] = {
                name: float(kind.estimate_policy_value(**inputs)) for name, kind in kinds.items()
            }
        path.with_suffix(".json").write_text(json.dumps(found))


def main() -> None:
    import argparse

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--synthetic", type=int, default=0, help="how many logs to make up")
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--data", type=Path, help="folder of the Open Bandit Dataset's men's campaign")
    options = parser.parse_args()
    try:
        import torch  # noqa: F401
    except ImportError:
        without_torch()
    if options.synthetic:
        synthetic(options.folder, options.synthetic, options.rounds)
    if options.data:
        open_bandit(options.folder, options.data)
    estimate_all(options.folder)


if __name__ == "__main__":
    main()
