"""Claims about tools/logs.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from .loading import tool

logs = tool("logs")

SERVER = "src/hortus/apiserver/x.py"


def problems(source: str, path: str = "src/hortus/engine/x.py") -> list[str]:
    return [one.problem for one in logs.findings_of(source, path)]


@pytest.mark.parametrize(
    "call",
    [
        '_log.info("took the new kubeconfig", path=str(path), again_in=3)',
        '_log.error("it failed", exc_info=error)',
        '_log.warning("gone", secret=str(secret.key))',
        '_log.warning("gone", secret=ROOT_SECRET, count=len(found))',
        "_log.bind(object=name)",
        "other.info(f'{x}')",
    ],
)
def test_calls_of_the_houses_form_are_in_order(call: str) -> None:
    assert problems(call) == []


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ('_log.info(f"took {path}")', "not a constant text"),
        ('_log.info("took " + path)', "not a constant text"),
        ('_log.info("took %s" % path)', "not a constant text"),
        ('_log.info("took {}".format(path))', "not a constant text"),
        ("_log.info(text)", "not a constant text"),
        ('_log.info("took %s")', "has a place for data"),
        ('_log.info("took {path}")', "has a place for data"),
        ('_log.info("took it.")', "without a full stop"),
        ('_log.info("")', "without a full stop"),
        ('_log.info("Took it")', "begins in upper case"),
        ("_log.info()", "has no event"),
        ('_log.info("took", path)', "give data by its key"),
        ('_log.info("took", **data)', "write keys out"),
        ('_log.info("took", againIn=3)', "not in snake_case"),
        ('_log.info("took", a=1, a=2)', "key a is given twice"),
        ('_log.info("took", level=3)', "written by the logger itself"),
        ('_log.info("took", token=value)', "names a credential"),
        ('_log.info("took", client_secret_key=value)', "names a credential"),
        ('_log.info("took", new_password=value)', "names a credential"),
        ('_log.info("took", secret=value)', "holds the name of an object"),
        ('_log.warn("took")', "level warn"),
        ('_log.critical("took")', "level critical"),
        ('_log.log(30, "took")', "level log"),
        ('_log.exception("took")', "stands in an except block"),
        ('_log.error("took", exc_info=True)', "the exception itself"),
        ("log = structlog.get_logger(__name__)", "the logger of a module is _log"),
        ('_log = structlog.get_logger("x")', "made by structlog.get_logger"),
        ("_log = logging.getLogger(__name__)", "made by structlog.get_logger"),
    ],
)
def test_every_other_form_is_one_finding(call: str, words: str) -> None:
    # The parser takes a key that is given twice; the compiler refuses it.
    found = problems(call)
    assert [words in one for one in found if words in one] == [True], found


@pytest.mark.parametrize("value", ["error", "repr(error)", "traceback.format_exc()"])
def test_an_exception_is_no_plain_value(value: str) -> None:
    source = f'try:\n    x()\nexcept ValueError as error:\n    _log.error("it failed", error={value})'
    assert len(problems(source)) == 1
    assert problems(source.replace(f"error={value})", "error=str(error))")) == []


def test_a_function_inside_of_an_except_block_is_outside_of_it() -> None:
    source = 'try:\n    x()\nexcept ValueError:\n    def later():\n        _log.exception("it failed")'
    assert problems(source) == ["exception stands in an except block; give exc_info=error to error"]


def test_the_api_server_gives_its_data_by_extra() -> None:
    assert problems('_log.error("it failed", extra={"object": name}, exc_info=error)', SERVER) == []
    assert problems('_log.error("it failed: %s", name)', SERVER) == [
        "name: give data by its key",
        "the event has a place for data: 'it failed: %s'; give data by keys",
    ]
    assert "names a credential" in problems('_log.error("it failed", extra={"token": name})', SERVER)[0]
    assert "written out" in problems('_log.error("it failed", extra=data)', SERVER)[0]
    assert problems('_log.error("it failed", extra={"a": 1, "a": 2})', SERVER) == ["key a is given twice"]


@pytest.mark.parametrize(
    "use",
    ["report = _log.warning if late else _log.debug", "call(_log.error)", "log = _log.warn", "x = [_log.exception]"],
)
def test_a_method_of_the_logger_is_called_by_its_own_name(use: str) -> None:
    found = problems(use)
    assert found
    assert all("a call by another name is not checked" in one for one in found)


def test_a_finding_is_reported_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "src/hortus/x.py"
    file.parent.mkdir(parents=True)
    file.write_text('import structlog\n\n_log.info("Took it")\n')
    assert logs.problems(tmp_path) == ["src/hortus/x.py:3: the event begins in upper case: 'Took it'"]
