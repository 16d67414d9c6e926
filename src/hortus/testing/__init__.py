"""Public test tools, for the tests of Hortus and for authors of modules, stacks and controllers.

- `FakeClock`: time that the test moves.
- `wait_for`, `wait_gone`: objects awaited by a watch, with a limit that fails the test.
- `TestCluster`, `install`: controllers on a cluster of their own, as an account with their permissions alone.
- Fixtures of pytest, wherever Hortus is installed: `hortus_cluster`, `hortus_apiserver`, `hortus_clock`.
- `hortus.testing.apiserver`: a server of one's own, with the options that a test needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hortus.facade import lazy

if TYPE_CHECKING:
    from hortus.testing.clock import FakeClock, SkewedClock
    from hortus.testing.clusters import RunningControllers, TestCluster, install
    from hortus.testing.waiting import condition_is, wait_for, wait_gone
else:
    # pytest loads `hortus.testing.plugin`, and this package with it, in every project where Hortus is installed.
    __getattr__ = lazy(
        __name__,
        {
            "clock": "FakeClock SkewedClock",
            "clusters": "RunningControllers TestCluster install",
            "waiting": "condition_is wait_for wait_gone",
        },
    )

__all__ = [
    "FakeClock",
    "RunningControllers",
    "SkewedClock",
    "TestCluster",
    "condition_is",
    "install",
    "wait_for",
    "wait_gone",
]
