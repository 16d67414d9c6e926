"""The errors of building a kustomization."""

from __future__ import annotations


class KustomizeError(Exception):
    """`place` is the file or folder, as seen from the root; the message says what is wrong there. Safe to show."""

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(f"{place}: {problem}" if place else problem)
        self.place = place
        self.problem = problem

    def __reduce__(self) -> tuple[object, ...]:
        """Errors cross from rendering processes to their parent."""
        return type(self), (self.place, self.problem)


class Unsupported(KustomizeError):
    """A feature that is left out on purpose, by its name."""


class RemoteBase(KustomizeError):
    """A base or resource that lies elsewhere: fetch `address` and hand it in as `BuildOptions.remotes`, if allowed."""

    def __init__(self, place: str, address: str) -> None:
        super().__init__(
            place, f"{address[:200]!a} lies outside, and remote bases are not allowed; put a copy below it"
        )
        self.address = address

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.place, self.address)
