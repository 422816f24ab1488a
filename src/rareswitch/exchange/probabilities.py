"""The probabilities of all offered arms, where the policies that decided are at hand: no format holds policies."""

from dataclasses import replace

import numpy as np

from rareswitch.log import DecisionLog


def with_probabilities(logged: DecisionLog) -> DecisionLog:
    """The same log with ``behavior_probs`` of its frozen policies, where it lacks it and can be told."""
    present = np.unique(logged.batches).tolist()
    names = [logged.batch_names[batch] for batch in present]
    if (
        logged.behavior_probs is not None
        or logged.contexts is None
        or not all(name in logged.policies for name in names)
    ):
        return logged
    found = np.zeros(logged.available.shape)
    for batch, name in zip(present, names, strict=True):
        rows, policy = np.flatnonzero(logged.batches == batch), logged.policies[name]
        baseline = {}
        if policy.needs_baseline:
            if logged.baselines is None or (logged.baselines[rows] < 0).any():
                return logged
            baseline = {"baseline": logged.baselines[rows]}
        found[rows] = policy.probabilities(logged.contexts[rows], logged.available[rows], **baseline)
    if not np.allclose(found[np.arange(len(logged)), logged.arm_indices], logged.propensities, rtol=1e-6, atol=1e-12):
        return logged  # another policy decided, or propensities were changed: an evaluation says so
    return replace(logged, behavior_probs=found)
