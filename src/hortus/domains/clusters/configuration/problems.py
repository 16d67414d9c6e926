"""The error of a configuration file that is refused: every problem at once, so that it is mended in one go."""

from __future__ import annotations

from collections.abc import Sequence

from hortus.schema import FieldError


class ConfigurationError(ValueError):
    """A configuration file that cannot be used. `problems` have paths within the document."""

    def __init__(self, source: str, problems: Sequence[FieldError]) -> None:
        super().__init__("\n".join([f"{source} cannot be used:", *(f"  {problem}" for problem in problems)]))
        self.source = source
        self.problems = tuple(problems)
