"""How a phase of a run may end without having passed."""

from __future__ import annotations

PAUSE = 10.0
"""Seconds until something is tried again of which no watch tells."""


class Pending(Exception):
    """Not yet; the text says what is waited for. Looked at again after `after` seconds, or when a watch tells."""

    def __init__(self, text: str, *, after: float = PAUSE) -> None:
        super().__init__(text)
        self.after = after


class Broken(Exception):
    """Waiting does not help: the phase has failed."""
