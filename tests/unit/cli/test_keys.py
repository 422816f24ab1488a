"""Keys on the command line: never as text, checked before any work, carried over."""

import json
from pathlib import Path

import numpy as np
import pytest

from rareswitch.cli import main
from rareswitch.errors import FileFormatError
from rareswitch.experiment import open_experiment
from rareswitch.lab.distributions import OneBig
from rareswitch.policy import load_key, load_policy
from reference.commands import done, refused, said
from reference.refusals import raises

TEXT = "hmac-sha256:000102030405060708090a0b0c0d0e0f"
HERE = ("spring.db", "one")
CREATE = ("experiment", "create", *HERE, "--dim", "3", "--horizon", "1e3", "--policies", "4", "--now", "2026-03-02")
PLAY = ("experiment", "simulate", *HERE, "--days", "0.1", "--no-advance", "--quiet")
ADVANCE = ("experiment", "advance", *HERE)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TEAM_KEY", TEXT)
    return tmp_path


def test_a_signed_experiment_from_creation_to_audit(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = done(capsys, "key", "--scheme", "ed25519", "--out", "k")
    assert out == (
        "k: signs and verifies; keep it secret\nk.pub: verifies; give it to everyone who loads your policies\n"
    )
    done(capsys, *CREATE, "--key-file", "k")
    with open_experiment(*HERE, key=load_key("k.pub")) as trial:
        assert trial.signature == "checked"
    done(capsys, *PLAY, "--key-file", "k.pub")
    assert main(PLAY) == 0
    warning = "rareswitch: warning: one is signed, but its signatures were not verified. Give its key: --key-file FILE."
    assert said(capsys.readouterr().err) == [warning]
    assert main(ADVANCE) == 2
    assert "this experiment is signed, and its next policy must be" in capsys.readouterr().err
    assert "one can verify only" in refused(capsys, *ADVANCE, "--key-file", "k.pub")
    assert "it is signed with 'ed25519'" in refused(capsys, *ADVANCE, "--key", "TEAM_KEY")
    done(capsys, *ADVANCE, "--key-file", "k")
    out = done(capsys, "experiment", "audit", *HERE, "--key-file", "k.pub")
    assert out.endswith("All policies are reproduced from their summaries.\nAll signatures are of this key.\n")
    assert main(("experiment", "audit", *HERE, "--json")) == 0
    printed = capsys.readouterr()
    assert (json.loads(printed.out)["signature"], said(printed.err)) == ("unchecked", [warning])


def test_an_unsigned_experiment_does_not_begin_to_be_signed(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done(capsys, *CREATE)
    done(capsys, *PLAY)
    for command in (ADVANCE, PLAY, ("experiment", "audit", *HERE), ("experiment", "status", *HERE)):
        words = "it is not signed, and a key was given to check it with"
        assert words in refused(capsys, *command, "--key", "TEAM_KEY")
    with open_experiment(*HERE) as trial:
        assert (len(trial.policies), trial.status().decisions) == (1, 20)


def test_keys_are_not_taken_as_text(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for text in (TEXT, TEXT.partition(":")[2], "a" * 32, "c2VjcmV0+/=="):
        line = refused(capsys, *CREATE, "--key", text)
        assert "--key takes the name of an environment variable, never the key itself" in line
        assert len(text) < 12 or text not in line
    assert "there is no variable OTHER_KEY" in refused(capsys, *CREATE, "--key", "OTHER_KEY")
    assert list(here.iterdir()) == []
    done(capsys, *CREATE, "--key", "TEAM_KEY")
    raises(SystemExit, None, main, (*CREATE, "--key", "TEAM_KEY", "--key-file", "k"))
    assert "not allowed with argument" in capsys.readouterr().err


def test_what_is_wrong_with_a_key_is_said_and_not_shown(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEAM_KEY", TEXT[:-2])
    line = refused(capsys, *CREATE, "--key", "TEAM_KEY")
    assert "the environment variable TEAM_KEY: not a key (an HMAC secret must be at least 16 bytes" in line
    assert TEXT[12:30] not in line
    Path("open").write_text(TEXT)
    Path("open").chmod(0o644)
    assert "chmod 600 open" in refused(capsys, *CREATE, "--key-file", "open")
    assert "cannot be read" in refused(capsys, *CREATE, "--key-file", "nowhere")
    assert "exists already" in refused(capsys, "key", "--scheme", "hmac", "--out", "open")


def test_designs_are_kept_and_signed(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save("sets.npy", OneBig(dim=3, arms=5).draw(60, seed=1).contexts)
    design = ("design", "sets.npy", "--distributional")
    out = done(capsys, *design, "--out", "p", "--key", "TEAM_KEY")
    Path("k").touch(0o600)
    Path("k").write_text(TEXT)
    policy = load_policy("p", key=load_key("k"))
    assert f"policy {policy.id[:12]}… written to p and signed\n" in out
    out = done(capsys, *design, "--out", "q", "--json")
    weights = json.loads(out)["policy"]["weights"]
    kept = load_policy("q")
    assert kept.id == policy.id
    assert kept.sampler.weights.tolist() == weights  # type: ignore[attr-defined]
    raises(FileFormatError, "not signed", load_policy, "q", key=load_key("k"))
    done(capsys, "key", "--scheme", "ed25519", "--out", "pair")
    for options, words in (
        (("--distributional", "--out", "p"), "p: exists already, and a policy is never overwritten"),
        (("--distributional", "--key", "TEAM_KEY"), "give --out FILE too"),
        (("--out", "r"), "--out is for the policy that --distributional learns"),
        (("--distributional", "--out", "r", "--key-file", "pair.pub"), "one can verify only"),
    ):
        assert words in refused(capsys, "design", "sets.npy", *options)
    assert not Path("r").exists()
