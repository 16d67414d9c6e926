from __future__ import annotations

import errno
import io
import logging
from collections.abc import Callable, Iterator

import orjson
import pytest
import structlog

from hortus.engine.backoff import Backoff
from hortus.engine.controller import Controller
from hortus.engine.logging import LogSettings, configure_logging
from hortus.engine.outcomes import Result, StepError
from hortus.engine.sources import Trigger
from hortus.kube import Secret
from hortus.kube.objects import Object, ObjectKey
from hortus.testing import FakeClock

CANARY = "c4n4ryc4n4ryc4n4ry"
Configured = Callable[..., io.StringIO]


@pytest.fixture
def configured() -> Iterator[Configured]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level

    def apply(**flags: object) -> io.StringIO:
        out = io.StringIO()
        configure_logging(LogSettings.from_flags(**flags), stream=out, clock=FakeClock())  # type: ignore[arg-type]
        return out

    yield apply
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)


def lines(out: io.StringIO) -> list[Object]:
    return [orjson.loads(line) for line in out.getvalue().splitlines()]


def test_data_of_the_api_servers_lines_is_kept_and_that_of_libraries_is_not(configured: Configured) -> None:
    out = configured()
    logging.getLogger("hortus.apiserver.health").warning("a check failed", extra={"check": "etcd", "event": "x"})
    logging.getLogger("aiohttp.server").warning("an error", extra={"check": "etcd"})
    assert [(line["msg"], line.get("check")) for line in lines(out)] == [("a check failed", "etcd"), ("an error", None)]
    assert set(lines(out)[0]) == {"level", "ts", "logger", "msg", "check"}


def test_a_line_is_json_as_zap_writes_it(configured: Configured) -> None:
    out = configured()
    structlog.get_logger("hortus.engine.queue").info("started", workers=25, controllers=["a"])
    structlog.get_logger("x").debug("not shown")
    expected = {"level": "info", "ts": "2023-01-01T12:00:00Z", "logger": "engine.queue", "msg": "started"}
    assert lines(out) == [{**expected, "workers": 25, "controllers": ["a"]}]
    assert list(lines(out)[0]) == ["level", "ts", "logger", "msg", "workers", "controllers"]


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [
        ("epoch", 1672574400.0),
        ("millis", 1672574400000.0),
        ("nano", 1672574400000000000.0),
        ("iso8601", "2023-01-01T12:00:00.000Z"),
        ("rfc3339", "2023-01-01T12:00:00Z"),
        ("rfc3339nano", "2023-01-01T12:00:00.000000Z"),
        ("RFC3339", "2023-01-01T12:00:00Z"),
    ],
)
def test_time_is_written_as_the_flag_says(configured: Configured, encoding: str, shown: object) -> None:
    out = configured(zap_time_encoding=encoding)
    structlog.get_logger("x").info("now")
    assert lines(out)[0]["ts"] == shown


def test_flags_mean_what_they_mean_to_zap() -> None:
    assert LogSettings.from_flags() == LogSettings(level=20, encoder="json", stacktrace_level=40)
    assert LogSettings.from_flags(zap_devel=True) == LogSettings(level=10, encoder="console", stacktrace_level=30)
    assert LogSettings.from_flags(zap_devel=True, zap_encoder="json", zap_log_level="info").level == 20
    assert LogSettings.from_flags(zap_log_level="3").level == 10
    assert LogSettings.from_flags(zap_log_level="ERROR").level == 40
    assert LogSettings.from_flags(zap_stacktrace_level="panic").stacktrace_level == 50


@pytest.mark.parametrize(
    "flags",
    [
        {"zap_log_level": "loud"},
        {"zap_log_level": "0"},
        {"zap_encoder": "xml"},
        {"zap_time_encoding": "julian"},
        {"zap_stacktrace_level": "warn"},
    ],
)
def test_a_flag_that_means_nothing_says_what_it_may_be(flags: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"--zap-.* must be"):
        LogSettings.from_flags(**flags)  # type: ignore[arg-type]


def test_what_watches_files_does_not_tell_of_each_change(configured: Configured) -> None:
    out = configured()
    logging.getLogger("watchfiles.main").info("1 change detected")
    logging.getLogger("watchfiles.main").warning("no more watches")
    assert [line["msg"] for line in lines(out)] == ["no more watches"]


def test_errors_have_their_stack_from_the_asked_level_on(configured: Configured) -> None:
    for level, expected in (("error", [False, True]), ("info", [True, True]), ("panic", [False, False])):
        out = configured(zap_stacktrace_level=level)
        log = structlog.get_logger("x")
        try:
            raise ValueError("broken")
        except ValueError as error:
            log.warning("careful", exc_info=error)
            log.exception("failed")
        assert ["stacktrace" in line for line in lines(out)] == expected
        assert {line["error"] for line in lines(out)} == {"ValueError: broken"}


def test_no_credential_leaves_in_a_line_of_any_kind(configured: Configured) -> None:
    for encoder in ("json", "console"):
        out = configured(zap_encoder=encoder, zap_log_level="debug", zap_stacktrace_level="info")
        log = structlog.get_logger("x")
        log.info("a", token=CANARY, password=CANARY, kubeconfig={"users": [CANARY]}, data={"config": CANARY})
        log.info("b", secret=Secret(CANARY), raw=CANARY.encode(), headers={"Authorization": f"Bearer {CANARY}"})
        log.info("c", error=f"GET https://u:{CANARY}@host: 401", nested=[{"client-key-data": CANARY}])
        log.info(f"token={CANARY}")
        try:
            raise RuntimeError(f"the server said: Bearer {CANARY}")
        except RuntimeError:
            log.exception("d")
        logging.getLogger("aiohttp.server").error("request with Authorization: Bearer %s", CANARY)
        assert out.getvalue().count("\n") >= 6
        assert CANARY not in out.getvalue()


def test_lines_of_the_standard_library_take_the_same_way(configured: Configured) -> None:
    out = configured()
    logging.getLogger("aiohttp.access").warning("slow request of %d s", 3)
    logging.getLogger("asyncio").debug("not shown")
    (line,) = lines(out)
    assert (line["level"], line["logger"], line["msg"]) == ("warn", "aiohttp.access", "slow request of 3 s")


async def test_a_line_of_a_reconcile_says_which(configured: Configured) -> None:
    out = configured()
    clock, trigger = FakeClock(), Trigger()

    class Chatty:
        async def reconcile(self, key: ObjectKey) -> Result | None:
            structlog.get_logger("hortus.domain").info("looking")
            raise StepError("not yet", reason="Waiting", after=60)

    controller = Controller("widgets", Chatty(), sources=[trigger], clock=clock, backoff=Backoff(jitter=0))
    await controller.start()
    trigger.fire(ObjectKey("kcp-system", "a"))
    await clock.settle()
    await controller.stop()
    said, failed = lines(out)
    scope = {"controller": "widgets", "namespace": "kcp-system", "name": "a"}
    assert scope.items() <= said.items()
    assert scope.items() <= failed.items()
    assert said["reconcileID"] == failed["reconcileID"]
    assert (failed["msg"], failed["reason"], failed["again_in"]) == ("reconcile failed", "Waiting", 60)


def test_odd_values_do_not_break_a_line(configured: Configured) -> None:
    out = configured()
    structlog.get_logger("x").info(
        "odd", number=2**70, key=ObjectKey("a", "b"), what=object, nan=float("nan"), lone="\ud800"
    )
    assert len(lines(out)) == 1


def test_a_terminal_receives_no_control_characters(configured: Configured) -> None:
    out = configured(zap_encoder="console")
    structlog.get_logger("x").info(
        "hostile", name="a\x1b]0;owned\x07b", other="x\u202eexe", fine="zwölf", lone="\ud800"
    )
    shown = out.getvalue()
    assert "zwölf" in shown
    assert not set("\x1b\x07\u202e\ud800") & set(shown)


def test_a_log_that_cannot_be_written_stops_nobody(configured: Configured, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_space(_: str) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    out = configured()
    with monkeypatch.context() as full:
        full.setattr(out, "write", no_space)
        structlog.get_logger("x").info("into the void")
    structlog.get_logger("x").info("there is room again")
    assert len(lines(out)) == 1
    out.close()
    structlog.get_logger("x").info("into the void")
