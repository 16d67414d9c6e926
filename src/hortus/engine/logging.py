"""Logs of a process of controllers: structured, in JSON or for people, with nothing secret in them.

Code logs through structlog with a constant message and key-values. Here that becomes lines as zap writes them for Go
controllers (`level`, `ts`, `logger`, `msg`, then the rest), so that existing log pipelines keep working, and the zap
flags of those controllers choose level, format and time. Which reconcile a line belongs to is added by itself.
Everything goes through `hortus.engine.redaction`. Lines of the standard library's logging take the same way.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import traceback
from collections.abc import MutableMapping, Sequence
from typing import IO, Any, Literal, TypeVar

import msgspec
import orjson
import structlog

from hortus.engine.redaction import redact
from hortus.engine.scope import current_scope
from hortus.kube.clock import Clock, SystemClock
from hortus.kube.objects import format_micro_time, format_time

Encoder = Literal["json", "console"]
TimeEncoding = Literal["epoch", "millis", "nano", "iso8601", "rfc3339", "rfc3339nano"]

_LEVELS = {"debug": 10, "info": 20, "warn": 30, "warning": 30, "error": 40, "panic": 50, "fatal": 50}
_SHOWN = {"warning": "warn", "critical": "fatal", "exception": "error"}
_STACK_LEVELS = ("info", "error", "panic")
_ENCODERS: Sequence[Encoder] = ("json", "console")
_TIMES: Sequence[TimeEncoding] = ("epoch", "millis", "nano", "iso8601", "rfc3339", "rfc3339nano")

_Name = TypeVar("_Name", bound=str)
_Event = MutableMapping[str, Any]


class LogSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of logs. `level` and `stacktrace_level` are numbers of the standard library's logging."""

    level: int = logging.INFO
    encoder: Encoder = "json"
    time_encoding: TimeEncoding = "rfc3339"
    stacktrace_level: int = logging.ERROR

    @classmethod
    def from_flags(
        cls,
        *,
        zap_devel: bool = False,
        zap_encoder: str = "",
        zap_log_level: str = "",
        zap_stacktrace_level: str = "",
        zap_time_encoding: str = "",
    ) -> LogSettings:
        """The settings that `--zap-devel`, `--zap-encoder`, ... mean; empty means not given. Raises ValueError.

        Development mode means console, debug and stack traces from warnings on; else it is JSON, info and errors.
        """
        stack = _named("--zap-stacktrace-level", zap_stacktrace_level.lower(), _STACK_LEVELS)
        encoder = _named("--zap-encoder", zap_encoder.lower(), _ENCODERS)
        return cls(
            level=_level(zap_log_level) if zap_log_level else logging.DEBUG if zap_devel else logging.INFO,
            encoder=encoder or ("console" if zap_devel else "json"),
            time_encoding=_named("--zap-time-encoding", zap_time_encoding.lower(), _TIMES) or "rfc3339",
            stacktrace_level=_LEVELS[stack] if stack else logging.WARNING if zap_devel else logging.ERROR,
        )


_threshold = logging.INFO
"""Lines below it are dropped; loggers are made once and for all, so it cannot lie in them."""


def set_level(level: int) -> None:
    """Log from `level` on, a number of the standard library's logging, from now on."""
    global _threshold
    _threshold = level
    logging.getLogger().setLevel(max(level, logging.INFO))
    # At info it logs that some file changed, without its name; the follower of the file logs that.
    logging.getLogger("watchfiles").setLevel(max(level, logging.WARNING))


def configure_logging(settings: LogSettings, *, stream: IO[str] | None = None, clock: Clock | None = None) -> None:
    """Configure the logs of this process, to `stream` (stderr when not given). Call once, before work begins."""
    global _by_default
    _by_default = False
    out = stream or sys.stderr
    processors: list[structlog.types.Processor] = [
        _enough,
        add_scope,
        _Stamp(settings.time_encoding, clock or SystemClock()),
        _Stack(settings.stacktrace_level),
        _redacted,
        _Line(settings.encoder, colors=out.isatty()),
    ]
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG),
        logger_factory=lambda *names: _Writer(out, str(names[0]) if names else ""),
        cache_logger_on_first_use=True,
    )
    root = logging.getLogger()
    root.handlers[:] = [_Bridge()]
    set_level(settings.level)


_by_default = False
"""True when logs are configured, and no program has chosen how."""


def configure_by_default(settings: LogSettings | None = None) -> None:
    """Configure logs, with the defaults of the flags or with `settings`, where the program has configured none.

    The defaults of structlog print every variable of a traceback's functions, the values of Secrets among them.
    """
    global _by_default
    if _by_default or not structlog.is_configured():
        configure_logging(settings or LogSettings())
        _by_default = True


class _Writer:
    """The end of a logger: one line, one write."""

    def __init__(self, out: IO[str], name: str) -> None:
        self._out = out
        self.name = name.removeprefix("hortus.")

    def _write(self, line: str) -> None:
        # A full disk or a closed pipe must not fail the work that wanted to tell of itself.
        with contextlib.suppress(OSError, ValueError):
            self._out.write(line + "\n")
            self._out.flush()

    debug = info = warning = warn = error = critical = fatal = exception = msg = log = _write


_RECORD = frozenset({*vars(logging.makeLogRecord({})), "message", "asctime", "event"})
"""Attributes that every record has; the others are data."""


class _Bridge(logging.Handler):
    """Lines of the standard library's logging (asyncio, aiohttp) as lines of ours."""

    def emit(self, record: logging.LogRecord) -> None:
        logger = structlog.get_logger(record.name)
        # The API server gives data by `extra`; other libraries put objects there that are not for a log.
        ours = record.name.partition(".")[0] == "hortus"
        data = {key: value for key, value in vars(record).items() if ours and key not in _RECORD}
        logger.log(max(10, record.levelno // 10 * 10), record.getMessage(), **{**data, "exc_info": record.exc_info})


def _enough(logger: object, method: str, event: _Event) -> _Event:
    if _LEVELS.get(_SHOWN.get(method, method), logging.ERROR) < _threshold:
        raise structlog.DropEvent
    return event


def add_scope(logger: object, method: str, event: _Event) -> _Event:
    """A processor of structlog: adds level, logger, and of a reconcile its controller and object."""
    scope = current_scope()
    if scope is not None:
        key = scope.key
        found = {"controller": scope.controller, "namespace": key.namespace, "name": key.name, "reconcileID": scope.id}
        for name, value in found.items():
            if value:
                event.setdefault(name, value)
    name = getattr(logger, "name", "")
    if name:
        event.setdefault("logger", name)
    event["level"] = _SHOWN.get(method, method)
    return event


class _Stamp:
    def __init__(self, encoding: TimeEncoding, clock: Clock) -> None:
        self._encoding = encoding
        self._clock = clock

    def __call__(self, logger: object, method: str, event: _Event) -> _Event:
        event["ts"] = _time(self._clock.now(), self._encoding)
        return event


class _Stack:
    """Turns `exc_info` into an error text, with the stack from its level on."""

    def __init__(self, level: int) -> None:
        self._level = level

    def __call__(self, logger: object, method: str, event: _Event) -> _Event:
        error = _exception(event.pop("exc_info", None))
        if error is not None:
            event.setdefault("error", f"{type(error).__name__}: {error}")
            if _LEVELS.get(_SHOWN.get(method, method), 40) >= self._level:
                event["stacktrace"] = "".join(traceback.format_exception(error))
        return event


def _exception(info: object) -> BaseException | None:
    if isinstance(info, BaseException):
        return info
    found = info[1] if isinstance(info, tuple) else sys.exc_info()[1] if info else None
    return found if isinstance(found, BaseException) else None


def _redacted(logger: object, method: str, event: _Event) -> _Event:
    clean = redact(event)
    assert isinstance(clean, dict), "a mapping stays one"
    return clean


class _Line:
    """The last step: the event as one line, in zap's order of fields."""

    def __init__(self, encoder: Encoder, *, colors: bool) -> None:
        self._console = _console(colors=colors) if encoder == "console" else None

    def __call__(self, logger: object, method: str, event: _Event) -> str:
        if self._console is not None:
            return str(self._console(logger, method, {key: _plain(value) for key, value in event.items()}))
        first = {"level": event.pop("level"), "ts": event.pop("ts")}
        if "logger" in event:
            first["logger"] = event.pop("logger")
        first["msg"] = event.pop("event", "")
        whole = {**first, **event}
        try:
            return orjson.dumps(whole, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
        except TypeError:
            return orjson.dumps(_tame(whole), default=str, option=orjson.OPT_NON_STR_KEYS).decode()


def _tame(value: object) -> object:
    """Text for values that JSON cannot hold: numbers beyond 64 bits, halves of surrogate pairs, odd keys."""
    if isinstance(value, dict):
        return {str(_tame(key)): _tame(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_tame(inner) for inner in value]
    if isinstance(value, int | float | None):
        return value if value is None or abs(value) < 2**53 else str(value)
    return str(value).encode("utf-8", "replace").decode()


def _plain(value: object) -> object:
    """Text without what a terminal would obey: escapes, other controls, marks that turn the direction of writing."""
    if not isinstance(value, str) or (value.isprintable() and value.isascii()):
        return value
    return "".join(sign if sign.isprintable() or sign in "\n\t" else "\N{REPLACEMENT CHARACTER}" for sign in value)


def _console(*, colors: bool) -> structlog.dev.ConsoleRenderer:
    return structlog.dev.ConsoleRenderer(colors=colors, timestamp_key="ts", pad_event_to=32)


def _time(now: float, encoding: TimeEncoding) -> str | float:
    match encoding:
        case "epoch":
            return now
        case "millis":
            return now * 1e3
        case "nano":
            return now * 1e9
        case "iso8601":
            return format_micro_time(now)[:-4] + "Z"
        case "rfc3339nano":
            return format_micro_time(now)
        case "rfc3339":
            return format_time(now)


def _named(flag: str, text: str, names: Sequence[_Name]) -> _Name | None:
    """The one of `names` that `text` says, None for the empty text."""
    for name in names:
        if name == text:
            return name
    if text:
        raise ValueError(f"{flag} {text!r} must be one of {', '.join(names)}")
    return None


def _level(text: str) -> int:
    """zap's names, or a verbosity above 0, which all mean debug here."""
    if text.isascii() and text.isdigit() and int(text) > 0:
        return logging.DEBUG
    if text.lower() not in ("debug", "info", "error", "panic"):
        raise ValueError(f"--zap-log-level {text!r} must be 'debug', 'info', 'error', 'panic' or a number above 0")
    return _LEVELS[text.lower()]
