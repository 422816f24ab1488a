"""An experiment in another store, or under another key."""

from collections.abc import Callable

from rareswitch.errors import ParameterError
from rareswitch.experiment.experiment import Experiment
from rareswitch.experiment.opening import open_experiment, signed_description
from rareswitch.experiment.versions import Version, version_row
from rareswitch.policy import Key, check_signs
from rareswitch.store import VersionRow, open_store


def copy_experiment(
    trial: Experiment,
    url: str,
    *,
    key: Key | None = None,
    unchecked: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Experiment:
    """Copy an experiment to another store: to move it, to begin to sign it, to change its key, or to give up signing.

    Policies, decisions and rewards stay what they are. Rewards whose decision has not come are not copied, nor are
    values that others took the place of. Let nobody add to the experiment meanwhile; a copy that did not end well is
    not complete, and should be removed.

    Parameters
    ----------
    url
        Of the other store, which must not have an experiment of this name.
    key
        Signs the copy; none gives up signing.
    unchecked
        Whether an experiment that is signed, and was opened without its key, is trusted.
    progress
        Called with the number of decisions that were copied, and how many there are.

    Examples
    --------
    >>> from rareswitch.experiment import create
    >>> from rareswitch.policy import new_key
    >>> trial = create("memory:", "spring", dim=2, seed=1)
    >>> signed = copy_experiment(trial, "memory:", key=new_key("hmac"))
    >>> (trial.signature, signed.signature, signed.policy.id == trial.policy.id)
    ('none', 'checked', True)
    """
    if trial.signature == "unchecked" and not unchecked:
        raise ParameterError(
            "key must be given where a signed experiment is opened: what was not checked is not copied. Open it with "
            "its key; or give unchecked=True, if you trust its store."
        )
    if key is not None:
        check_signs(key)
    store = open_store(url, trial.name)
    rows = [_signed(version, key) for version in trial.versions]
    try:
        store.create(signed_description(trial.description.to_text(), key), rows[0])
        for row in rows:
            if row.number > 1:
                store.publish(row)
            for number, report in enumerate(trial.store.refusals(row.number), 1):
                store.refuse_update(row.number, number, report)
        marks, done = trial.store.marks(), 0
        total = sum(one.decisions for one in trial.store.counts(marks))
        for _, some in trial.store.rows(0, marks):
            store.add_decisions([row for row, _ in some])
            store.add_rewards([reward for _, rewards in some for reward in rewards])
            done += len(some)
            if progress is not None:
                progress(done, total)
        if url == "memory:":  # which no other can open
            return Experiment(store, trial.description, key)
    finally:
        store.close()
    return open_experiment(url, trial.name, key=key)


def _signed(version: Version, key: Key | None) -> VersionRow:
    """A version as it is kept under another key; its state is not read before its signature was checked."""
    return version_row(
        version.number,
        version.state,
        experiment=version.experiment,
        summaries=version.row.summaries,
        report=version.report,
        time=version.row.time,
        key=key,
    )
