"""For tests of a metric of your own, as scikit-learn's check_estimator is for estimators.

    from waterjar.testing import check_metric

    def test_spread_keeps_the_contract():
        check_metric("spread")

`check_metric` says whether it keeps the contract; `small_study` records what it is tried on, for tests of its numbers.
"""

from waterjar.testing.contract import ContractError, check_metric
from waterjar.testing.recorded import small_study

__all__ = ["ContractError", "check_metric", "small_study"]
