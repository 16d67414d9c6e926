"""The error of publishing: one line for each problem, with the file, the field, the value and the fix."""

from __future__ import annotations

from collections.abc import Sequence


class BadStack(ValueError):
    """A stack, a release or an option that cannot be used; the message lists each problem on a line of its own."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems: Sequence[str] = problems
