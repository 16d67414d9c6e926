"""One reconcile of the canary: the book as drafted by the steps, which a checkpoint writes.

Every write names the version that was read. Of two processes that both believe to own the next step, one meets a
conflict, so there is never more than one run.
"""

from __future__ import annotations

from hortus.domains.canary import book as books
from hortus.domains.canary.book import Book, ConfigMap, Run
from hortus.engine import ReconcileContext, Wiring
from hortus.kube.objects import Object


class CanaryContext(ReconcileContext[ConfigMap]):
    """One reconcile. Steps draft the book, which takes the place of a status: a checkpoint writes it."""

    def __init__(self, wiring: Wiring[ConfigMap], raw: Object) -> None:
        super().__init__(wiring, raw)
        self.written = books.read_book(self.object)
        self.book = self.written or Book(opened=self.now)
        self.leftovers: tuple[str, ...] = ()
        """Objects that a failed phase left."""

    @property
    def run(self) -> Run:
        """The run under way. Raises ValueError between two runs."""
        if self.book.run is None:
            raise ValueError("no run of the canary is under way")
        return self.book.run

    async def checkpoint(self) -> bool:
        """Write the book where it differs. Raises Conflict when another writer was faster: it owns the next step."""
        if self.book == self.written:
            return False
        version = self.object.metadata.resource_version
        await self.patch({"metadata": {"resourceVersion": version}, "data": {books.KEY: books.text(self.book)}})
        self.written = self.book
        return True
