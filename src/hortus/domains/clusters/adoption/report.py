"""The result of an adoption: one entry a cluster, as a table for people and as JSON for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from hortus.domains.clusters.adoption.comparison import Difference
from hortus.terminal import Table


class Outcome:
    """Values of `Entry.outcome`; docs/clusters/adoption.md says what each means."""

    ADOPTED: Final = "adopted"
    DIFFERS: Final = "differs"
    REFUSED: Final = "refused"
    LOCKED: Final = "locked"
    MADE: Final = "made"
    PRESENT: Final = "present"
    EQUAL: Final = "equal"
    RELEASED: Final = "released"
    FAILED: Final = "failed"


class Entry(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """One cluster."""

    shoot: str
    outcome: str
    why: str
    """Summary of the entry in one line."""
    runtime_id: str = ""
    runtime: str = ""
    """Namespace and name of its Runtime; empty where there is none."""
    problems: tuple[str, ...] = ()
    """All problems that prevent the adoption."""
    differences: tuple[Difference, ...] = ()
    """The fields that a patch would change in the shoot."""
    notes: tuple[str, ...] = ()
    made: tuple[str, ...] = ()
    """Objects that were written now."""
    manifests: tuple[dict[str, Any], ...] = ()
    """The objects that were or would be made."""
    diff: str = ""
    """A unified diff of the shoot as a patch would leave it."""


class Report(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """All clusters of one command."""

    command: str
    project: str
    taken: str
    """Time of the report, in RFC 3339."""
    dry_run: bool
    summary: dict[str, int]
    """The number of clusters of each outcome."""
    clusters: tuple[Entry, ...]
    kind: str = "AdoptionReport"
    version: int = 1

    @property
    def failed(self) -> bool:
        return bool(self.summary.get(Outcome.FAILED))

    @property
    def differs(self) -> bool:
        """Returns true if a cluster differs or is refused."""
        return bool(self.summary.get(Outcome.DIFFERS) or self.summary.get(Outcome.REFUSED))

    def table(self) -> Table:
        rows = [(entry.shoot, entry.runtime_id, entry.outcome, entry.why) for entry in self.clusters]
        return Table(("Shoot", "Runtime", "Outcome", "Why"), rows)


def report_of(command: str, project: str, taken: str, entries: Iterable[Entry], *, dry_run: bool) -> Report:
    """The entries by the names of their shoots."""
    found = tuple(sorted(entries, key=lambda entry: (entry.shoot, entry.runtime)))
    counted = Counter(entry.outcome for entry in found)
    return Report(command, project, taken, dry_run, dict(sorted(counted.items())), found)
