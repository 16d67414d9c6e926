"""The error of a Runtime that cannot become a Shoot: FieldErrors, by the paths of the Runtime."""

from __future__ import annotations

from collections.abc import Sequence

from hortus.schema import FieldError


class ConversionError(ValueError):
    """A Runtime that cannot be converted. Only a change of the Runtime or of the configuration helps."""

    def __init__(self, problems: Sequence[FieldError]) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = tuple(problems)
