"""Times until a Runtime is reconciled again, in seconds: the Go system's constants.

A watch shows most changes at once. These are the bounds for when it cannot: a garden that does not permit a watch, an
event that was missed.
"""

from __future__ import annotations

from typing import Final

AT_ONCE: Final = 0.0
GARDEN: Final = 15.0
"""After a change in the garden, and after a failure there."""
CREATION: Final = 60.0
RECONCILIATION: Final = 30.0
DELETION: Final = 90.0
KUBECONFIG: Final = 10.0
REFUSAL: Final = 300.0
"""Ours: to the next try of what the garden refuses for good, while nothing changes; twice as long after each."""
LONGEST_REFUSAL: Final = 1800.0
VERIFICATION: Final = (0.2, 0.4, 0.6, 0.8)
"""Between two reads of pools that were just replaced."""
PERMIT: Final = 60.0
"""To the next question for a permission that the deputy of a namespace lacks."""
