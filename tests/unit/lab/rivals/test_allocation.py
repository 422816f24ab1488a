from typing import Any

import numpy as np
import pytest

from rareswitch.errors import InputError
from rareswitch.lab.rivals import Allocation
from rareswitch.policy import Policy


def test_shares_of_missing_arms_go_to_the_others() -> None:
    shares = Allocation(weights=np.array([0.5, 0.3, 0.2, 0.0]))
    x = np.ones((4, 2))
    assert shares.probabilities(x).tolist() == [0.5, 0.3, 0.2, 0.0]
    np.testing.assert_allclose(shares.probabilities(x, [False, True, True, True]), [0.0, 0.6, 0.4, 0.0])
    assert shares.probabilities(x, [False, False, False, True]).tolist() == [0.0, 0.0, 0.0, 1.0]
    np.testing.assert_allclose(shares.probabilities(np.ones((2, 2))), [0.625, 0.375])
    assert shares.probabilities(np.ones((1, 6, 2))).tolist() == [[0.5, 0.3, 0.2, 0.0, 0.0, 0.0]]


def test_arms_that_have_no_share_are_alike() -> None:
    shares = Allocation(weights=np.array([1.0, 0.0, 0.0]))
    assert shares.probabilities(np.ones((3, 1)), [False, True, True]).tolist() == [0.0, 0.5, 0.5]


def test_the_id_of_a_policy_tells_shares_apart() -> None:
    made = [Policy(dim=2, sampler=Allocation(weights=np.array(w))) for w in ([0.5, 0.5], [0.25, 0.75], [0.5, 0.5])]
    assert made[0].id == made[2].id != made[1].id


@pytest.mark.parametrize("weights", [[0.5, 0.6], [-0.5, 1.5], [np.nan, 1.0], [], [[1.0]]])
def test_what_is_no_distribution_is_refused(weights: Any) -> None:
    with pytest.raises(InputError, match="weights"):
        Allocation(weights=np.array(weights))
