"""The book: all that the canary knows of its runs, in one ConfigMap, so any replica can go on where another ended."""

from __future__ import annotations

import msgspec

from hortus.kube.objects import Object, Resource
from hortus.kube.shapes import decode_json
from hortus.schema import Kind, kind

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
NAME = "hortus-canary"
"""Name of the ConfigMap, and of the namespace inside the cluster."""
LABEL = "canary.hortus.dev/book"
"""On the ConfigMap, by which it is watched and no other is."""
SELECTOR = f"{LABEL}=true"
ASKED = "canary.hortus.dev/run-now"
"""Annotation of the ConfigMap: another value than the last one answered asks for a run at once."""
KEY = "book"
LONGEST_HISTORY = 24
"""Runs that are remembered: a day, at the default period."""
LONGEST_MESSAGE = 500


@kind(group="", version="v1")
class ConfigMap(Kind, frozen=True):
    """A ConfigMap with text."""

    data: dict[str, str] = msgspec.field(default_factory=dict)


class Run(msgspec.Struct, frozen=True):
    """The run under way. Times are Unix seconds."""

    name: str
    """Name of its Runtime and Shoot."""
    started: float
    phase: str
    since: float
    """When the phase began."""
    seconds: dict[str, float] = {}
    """Durations of the phases that are over."""
    failed: str = ""
    """The phase that failed; empty while all went well."""
    message: str = ""
    """Cause of the failure."""


class FinishedRun(msgspec.Struct, frozen=True):
    """A run that is over."""

    name: str
    started: float
    ended: float
    seconds: dict[str, float] = {}
    failed: str = ""
    message: str = ""

    @property
    def result(self) -> str:
        return "failed" if self.failed else "succeeded"


class Book(msgspec.Struct, frozen=True):
    """All of it."""

    opened: float
    """When the canary was switched on."""
    period: float = 0.0
    """Seconds between the starts of two runs, as the controller was configured last."""
    run: Run | None = None
    history: tuple[FinishedRun, ...] = ()
    """The newest first."""
    unclean: tuple[str, ...] = ()
    """Names of runs that are over and left something."""
    leftovers: tuple[str, ...] = ()
    """Objects that they left, as `kind/name`."""
    succeeded: int = 0
    failed: int = 0
    consecutive_failures: int = 0
    last_success: float = 0.0
    answered: str = ""
    """The last value of the annotation `ASKED` that led to a run."""


def read_book(config_map: ConfigMap) -> Book | None:
    """None when somebody wrote what is no book; what runs left is then found by its labels."""
    try:
        return decode_json(config_map.data.get(KEY, ""), Book)
    except msgspec.DecodeError as error:
        import structlog  # loads much, and `hortus canary` logs nothing else

        structlog.get_logger(__name__).warning(
            "the canary's book cannot be read and is replaced by an empty one", error=str(error)
        )
        return None


def asked(config_map: ConfigMap) -> str:
    """The value that was written to ask for a run; empty when nobody did."""
    return config_map.metadata.annotations.get(ASKED, "")


def text(book: Book) -> str:
    return msgspec.json.format(msgspec.json.encode(book)).decode()


def config_map(book: Book, namespace: str) -> Object:
    return {
        "apiVersion": CONFIG_MAPS.api_version,
        "kind": CONFIG_MAPS.kind,
        "metadata": {"name": NAME, "namespace": namespace, "labels": {LABEL: "true"}},
        "data": {KEY: text(book)},
    }
