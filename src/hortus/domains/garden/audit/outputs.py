"""The outputs of buffers that retry for long: a controller that asks pods for their counters.

Owns: nothing on the server; the controller of the extension writes the condition EventsDelivered from what is known
here. Watches: Extensions of the type, and the pods of their buffers. Never: calls a backend, or a pod of another kind.

No object shows retries, so each pod is asked once in a period, as in metal-stack/gardener-extension-audit. An output
counts as retrying once its failures have grown from look to look several times; one retry is no news. An interval
without a failure in which events were confirmed ends it. The counters are kept in memory: after a restart the condition
stays as it is until there were enough looks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import aiohttp
import msgspec
import structlog
from yarl import URL

from hortus.domains.garden.audit.names import AUDIT, BACKEND_LABELS, PODS
from hortus.domains.garden.extension.composition import CONTROLLER_PREFIX, SeedView
from hortus.domains.garden.extension.topic import EXTENSIONS_READY, TopicCondition
from hortus.engine import Change, Result, Trigger, Watch, without_managed_fields
from hortus.kube.numbers import decimal
from hortus.kube.objects import Object, ObjectKey, key_of
from hortus.kube.selectors import LabelSelector

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

DELIVERED: Final = "EventsDelivered"
"""The condition that reports whether the outputs of a buffer get rid of their events."""
PERIOD: Final = 120.0
"""Seconds between two looks: twice the longest pause between two attempts of an output, in both buffers."""
LOOKS: Final = 3
"""Looks in a row with new failures after which an output is reported."""
_PATIENCE: Final = 5.0
"""Seconds for one pod to answer; it answers from memory."""
_LARGEST: Final = 1024 * 1024
"""Bytes of an answer. The counters of a buffer with each of its outputs take some 20 kB."""
_BY_NAMESPACE: Final = "audit-pods-namespace"
_PORT, _PATH = "prometheus.io/port", "prometheus.io/path"
_COUNTERS: Final = {
    "fluentbit_output_retries": ("name", "failures"),
    "fluentbit_output_errors": ("name", "failures"),
    "fluentbit_output_proc_records": ("name", "confirmed"),
    "hortus_audit_delivery_failures": ("sink", "failures"),
    "hortus_audit_delivered_events": ("sink", "confirmed"),
}
"""Families of counters of fluent-bit and of our receiver: the label that names the output, and the count."""


class OutputCounts(msgspec.Struct):
    """The counters of one output since the start of its pod."""

    failures: float = 0.0
    confirmed: float = 0.0


def read_counts(text: str) -> dict[str, OutputCounts]:
    """The counters by output, of an answer in Prometheus' text format. Raises ValueError."""
    from prometheus_client.parser import text_string_to_metric_families

    found: dict[str, OutputCounts] = {}
    for family in text_string_to_metric_families(text):
        label, field = _COUNTERS.get(family.name.removesuffix("_total"), ("", ""))
        for sample in family.samples if label else ():
            if sample.name.endswith("_created"):
                continue
            counts = found.setdefault(sample.labels.get(label, ""), OutputCounts())
            setattr(counts, field, getattr(counts, field) + sample.value)
    return found


class OutputHistory:
    """The counters that looks at the pods of one buffer have shown."""

    def __init__(self) -> None:
        self.looks = 0
        self.pods: tuple[str, ...] = ()
        """Names of the pods at the last look."""
        self._last: dict[tuple[str, str], OutputCounts] = {}
        self._rows: dict[tuple[str, str], int] = {}
        """Looks in a row with new failures, by pod and output; the output is empty for a pod that did not answer."""

    def see(self, answers: dict[str, dict[str, OutputCounts] | None]) -> None:
        """Note the counters of each pod by its name, None for one that did not answer."""
        self.looks += 1
        self.pods = tuple(sorted(answers))
        rows, last = self._rows, self._last
        self._rows, self._last = {}, {}
        for pod, counts in answers.items():
            if counts is None:
                self._rows[pod, ""] = rows.get((pod, ""), 0) + 1
                kept = [place for place in last if place[0] == pod]
                self._last |= {place: last[place] for place in kept}
                self._rows |= {place: rows[place] for place in kept if place in rows}
                continue
            for output, now in counts.items():
                place = (pod, output)
                self._last[place] = now
                if place in last:
                    self._rows[place] = _row(rows.get(place, 0), last[place], now)

    @property
    def verdict(self) -> TopicCondition:
        """The condition for what was seen. Its text stays the same as long as the outputs and pods do."""
        if not self.pods:
            return TopicCondition(DELIVERED, "Unknown", "NoPods", "No pod of the buffer runs.")
        long = sorted(place for place, row in self._rows.items() if row >= LOOKS)
        retrying = [place for place in long if place[1]]
        if retrying:
            text = ", ".join(f"{output} ({pod})" for pod, output in retrying)
            message = f"Outputs retry for long, and events wait: {text}. The logs of these pods say why."
            return TopicCondition(DELIVERED, "False", "OutputsRetrying", message)
        if long:
            text = ", ".join(pod for pod, _ in long)
            message = f"Pods do not answer when they are asked for their outputs: {text}."
            return TopicCondition(DELIVERED, "Unknown", "PodsUnreachable", message)
        return TopicCondition(DELIVERED, "True", "OutputsDeliver", "No output of the buffer retries for long.")

    def conditions(self, former: Sequence[TopicCondition]) -> list[TopicCondition]:
        """The condition, and the health with it where it is False; `former` are those that the Extension has."""
        verdict = self.verdict
        if verdict.status != "False" and self.pods and self.looks <= LOOKS:
            # After a restart there is nothing yet to say that it has ended.
            verdict = next((one for one in former if one.type == DELIVERED and one.status == "False"), verdict)
        return _with_health([verdict])


def _with_health(found: list[TopicCondition]) -> list[TopicCondition]:
    """The conditions, and for each that is False the health."""
    return found + [
        TopicCondition(EXTENSIONS_READY, "False", one.reason, one.message) for one in found if one.status == "False"
    ]


def _row(row: int, before: OutputCounts, now: OutputCounts) -> int:
    """The looks in a row with new failures; counters that fell began again with their container."""
    began_again = now.failures < before.failures or now.confirmed < before.confirmed
    base = OutputCounts() if began_again else before
    if now.failures > base.failures:
        return row + 1
    return 0 if now.confirmed > base.confirmed else row


class _PodMetadata(msgspec.Struct):
    name: str
    annotations: dict[str, str] = {}


class _PodStatus(msgspec.Struct):
    phase: str = ""
    pod_ip: str = msgspec.field(default="", name="podIP")


class _Pod(msgspec.Struct):
    metadata: _PodMetadata
    status: _PodStatus = msgspec.field(default_factory=_PodStatus)

    @property
    def place(self) -> URL | None:
        """The address of its counters, from the annotations for scrapes; None where it has none."""
        port, path = self.metadata.annotations.get(_PORT, ""), self.metadata.annotations.get(_PATH, "")
        if self.status.phase != "Running" or not self.status.pod_ip or not path.startswith("/"):
            return None
        number = decimal(port) or 0
        if not 0 < number < 65_536:
            return None
        return URL.build(scheme="http", host=self.status.pod_ip, port=number, path=path)


class OutputLooks:
    """Looks at the pods of the buffers of one seed; `trigger` fires for an Extension whose condition may change."""

    def __init__(self, view: SeedView) -> None:
        labels = str(LabelSelector.of(BACKEND_LABELS))
        self.pods = view.caches.get(PODS, labels=labels, transform=without_managed_fields)
        self.pods.add_index(_BY_NAMESPACE, lambda pod: [key_of(pod).namespace])
        self.trigger = Trigger()
        self._view = view
        self._histories: dict[ObjectKey, OutputHistory] = {}

    def conditions(self, key: ObjectKey, former: Sequence[TopicCondition]) -> list[TopicCondition]:
        """The conditions of an Extension beyond the health of its objects; the former before the first look."""
        history = self._histories.get(key)
        if history is None:
            return _with_health([one for one in former if one.type == DELIVERED])
        return history.conditions(former)

    def shed(self, holds: Callable[[ObjectKey], bool]) -> None:
        """Forget the Extensions of other replicas."""
        self._histories = {key: one for key, one in self._histories.items() if holds(key)}

    async def reconcile(self, key: ObjectKey) -> Result | None:
        """Ask the pods of one buffer."""
        if key not in self._view.extensions.raw:
            self._histories.pop(key, None)
            return None
        asked = self._places(key.namespace)
        history = self._histories.get(key) or OutputHistory()
        if not asked and not history.pods and history.looks:
            return None
        before = (history.verdict, history.looks > LOOKS) if history.looks else None
        history.see(await _ask_all(asked))
        self._histories[key] = history
        if before != (history.verdict, history.looks > LOOKS):
            self.trigger.fire(key)
        return Result(requeue_after=PERIOD) if asked else None

    def _places(self, namespace: str) -> dict[str, URL]:
        """The addresses of the pods of one buffer, by name."""
        keys = self.pods.keys_by(_BY_NAMESPACE, namespace)
        pods = [msgspec.convert(one, _Pod) for key in keys if (one := self.pods.get(key)) is not None]
        return {one.metadata.name: place for one in pods if (place := one.place) is not None}


async def _ask_all(places: dict[str, URL]) -> dict[str, dict[str, OutputCounts] | None]:
    timeout = aiohttp.ClientTimeout(total=_PATIENCE)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        answers = await asyncio.gather(*(_ask(session, place) for place in places.values()))
    return dict(zip(places, answers, strict=True))


async def _ask(session: aiohttp.ClientSession, place: URL) -> dict[str, OutputCounts] | None:
    """The counters of one pod; None where it does not give them, which is logged."""
    try:
        async with session.get(place, allow_redirects=False) as answer:
            body = await _body(answer)
            if answer.status != 200:
                raise ValueError(f"status {answer.status}")
        return read_counts(body.decode())
    except (TimeoutError, aiohttp.ClientError, OSError, ValueError) as error:
        _log.warning("a pod does not give its counters", address=str(place), error=str(error) or type(error).__name__)
        return None


async def _body(answer: aiohttp.ClientResponse) -> bytes:
    found = bytearray()
    async for part in answer.content.iter_any():
        found += part
        if len(found) > _LARGEST:
            raise ValueError(f"the answer is larger than {_LARGEST} bytes")
    return bytes(found)


def add_output_looks(view: SeedView, *, workers: int = 8) -> OutputLooks:
    """Add the controller that asks the pods of the buffers of a seed."""
    looks = OutputLooks(view)

    def of_namespace(obj: Object) -> Iterable[ObjectKey]:
        return view.extensions_in(key_of(obj).namespace, AUDIT)

    view.manager.on_handover(looks.shed)
    view.manager.controller(
        f"{CONTROLLER_PREFIX}{AUDIT}-outputs",
        looks,
        sources=[
            Watch(looks.pods, to=of_namespace, when=_moved),
            Watch(view.extensions.raw, to=of_namespace, when=_came_or_went),
        ],
        workers=workers,
    )
    return looks


def _came_or_went(change: Change) -> bool:
    return change.old is None or change.new is None


def _moved(change: Change) -> bool:
    """Reports whether a pod came, went, or has another address."""
    if change.old is None or change.new is None:
        return True
    return msgspec.convert(change.old, _Pod).place != msgspec.convert(change.new, _Pod).place
