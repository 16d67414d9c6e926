"""Decisions about a run: its begin, the phase after each, and its Runtime."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hortus.domains.canary import DOMAIN, service
from hortus.domains.canary import book as books
from hortus.domains.canary.book import Book, ConfigMap
from hortus.domains.canary.settings import FLAGS, from_flags, read_template
from hortus.domains.clusters.types import RequiredLabels
from hortus.engine import read
from hortus.engine.flags import Flag, FlagError, FlagSet
from hortus.kube import yaml
from hortus.kube.objects import Object

ROOT = Path(__file__).parents[3]
TEMPLATE = ROOT / "examples" / "canary.yaml"
OTHERS = (Flag("watch-namespace", "string", "kcp-system", ""),)
HOUR = 3600.0


def settings(*words: str) -> object:
    return from_flags(FlagSet((*FLAGS, *OTHERS)).parse([f"--canary-template={TEMPLATE}", *words]))


def phases_of(book: Book) -> str:
    assert book.run is not None
    return book.run.phase


def begun(now: float = 1000.0, book: Book | None = None) -> Book:
    return service.begun(book or Book(opened=0.0), "", now)


def passed(book: Book, now: float) -> Book:
    assert book.run is not None
    return service.passed(book, book.run, now)


def failed(book: Book, now: float, *leftovers: str) -> Book:
    assert book.run is not None
    return service.failed(book, book.run, "it went wrong", now, leftovers=leftovers)


def at(phase: str, book: Book | None = None) -> Book:
    found = begun(book=book)
    while phases_of(found) != phase:
        found = passed(found, 1001.0)
    return found


def test_a_run_passes_all_phases_and_is_a_success() -> None:
    book, seen, now = begun(), [], 1000.0
    while book.run is not None:
        seen.append(book.run.phase)
        now += 2
        book = passed(book, now)
    assert tuple(seen) == service.PHASES
    [record] = book.history
    assert (record.result, record.started, record.ended) == ("succeeded", 1000.0, 1012.0)
    assert record.seconds == dict.fromkeys(service.PHASES, 2.0)
    assert (book.succeeded, book.failed, book.last_success) == (1, 0, 1012.0)


@pytest.mark.parametrize("phase", service.GROWN)
def test_whatever_fails_in_a_cluster_the_cluster_is_deleted(phase: str) -> None:
    book = failed(at(phase), 1010.0)
    assert phases_of(book) == service.DELETE
    book = passed(passed(book, 1020.0), 1030.0)
    [record] = book.history
    assert (record.failed, record.message, book.unclean) == (phase, "it went wrong", ())
    assert book.consecutive_failures == 1


def test_the_first_failure_of_a_run_is_the_one_that_is_reported() -> None:
    book = failed(failed(at(service.USE), 1010.0), 2000.0, "runtime/x")
    [record] = book.history
    assert record.failed == service.USE
    assert book.leftovers == ("runtime/x",)
    assert book.unclean == (record.name,)


def test_what_is_left_is_known_until_a_sweep_has_passed() -> None:
    book = failed(at(service.VERIFY), 1010.0, "shoot/x")
    left = book.unclean
    book = failed(begun(2000.0, book), 3000.0, "shoot/x")
    assert (book.unclean, book.leftovers, book.history[0].failed) == (left, ("shoot/x",), service.SWEEP)
    book = passed(begun(4000.0, book), 4001.0)
    assert (book.unclean, book.leftovers, phases_of(book)) == ((), (), service.GROW)


def test_a_success_ends_the_failures_in_a_row() -> None:
    book = failed(at(service.DELETE), 1010.0, "runtime/x")
    book = failed(begun(2000.0, book), 2001.0, "runtime/x")
    assert book.consecutive_failures == 2
    book = passed(at(service.VERIFY, book), 3000.0)
    assert (book.consecutive_failures, book.succeeded, book.failed) == (0, 1, 2)


def test_a_run_is_due_at_once_then_every_period_and_when_asked_for() -> None:
    book = Book(opened=0.0)
    assert service.due_in(book, "", 5.0, HOUR) == 0.0
    over = passed(at(service.VERIFY), 1500.0)
    assert service.due_in(over, "", 1600.0, HOUR) == 3000.0
    assert service.due_in(over, "", 9999.0, HOUR) == 0.0
    assert service.due_in(over, "now", 1600.0, HOUR) == 0.0
    answered = msgspec.structs.replace(over, answered="now")
    assert service.due_in(answered, "now", 1600.0, HOUR) == 3000.0


@given(st.floats(min_value=1e9, max_value=4e9), st.floats(min_value=1.0, max_value=1e9))
def test_runs_have_names_of_their_own_that_a_shoot_may_have(now: float, later: float) -> None:
    first, second = service.name_of_run(now), service.name_of_run(now + later)
    assert first != second
    assert len(first) <= 10
    assert first.removeprefix("cn-").isalnum()
    assert first == first.lower()


def test_history_is_bounded() -> None:
    book = Book(opened=0.0)
    for number in range(100):
        book = failed(begun(1000.0 + number, book), 1001.0 + number)
    assert len(book.history) == books.LONGEST_HISTORY
    assert book.failed == 100


def test_a_book_that_somebody_edited_is_none() -> None:
    found = books.config_map(begun(), "kcp-system")
    assert books.read_book(read(ConfigMap, found)) == begun()
    for text in ("", "{", '{"opened": "yesterday"}'):
        assert books.read_book(read(ConfigMap, {**found, "data": {"book": text}})) is None
    assert books.read_book(read(ConfigMap, {"metadata": {}})) is None


def test_the_runtime_is_the_templates_with_a_name_and_labels_of_its_own() -> None:
    template: Object = yaml.load(TEMPLATE.read_bytes())
    made = service.runtime(read_template(template), "cn-1", "kcp-system")
    labels = made["metadata"]["labels"]
    assert set(RequiredLabels.IN_ORDER) <= set(labels)
    assert labels["kyma-project.io/runtime-id"] == labels[service.RUN] == "cn-1"
    assert labels["kyma-project.io/global-account-id"] == "canary"
    assert made["spec"] == {**template["spec"], "shoot": {**template["spec"]["shoot"], "name": "cn-1"}}
    assert template == yaml.load(TEMPLATE.read_bytes())


def test_without_a_template_there_is_no_canary() -> None:
    values = FlagSet((*FLAGS, *OTHERS)).parse([])
    assert not DOMAIN.served(values)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: [", "canary-template"),
        ("[]", "must be one manifest of a Runtime"),
        ("apiVersion: v1\nkind: Pod\n", "apiVersion is 'v1' and must be 'infrastructuremanager.kyma-project.io/v1'"),
        ("apiVersion: infrastructuremanager.kyma-project.io/v1\nkind: Runtime\n", "spec.shoot is missing"),
        (TEMPLATE.read_text().replace("labels:\n", "labels:\n    a: 1\n"), "`$.metadata.labels"),
        (TEMPLATE.read_text().replace("metadata:\n", "metadata:\n  namespace: there\n"), "no Runtime is watched"),
    ],
)
def test_a_template_that_cannot_be_used_is_refused_at_start(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "template.yaml"
    path.write_text(text)
    with pytest.raises(FlagError, match=str(path)) as refused:
        settings(f"--canary-template={path}")
    assert says in str(refused.value)


def test_a_template_that_is_not_there_and_times_that_are_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FlagError, match="cannot be read"):
        settings(f"--canary-template={tmp_path / 'none'}")
    with pytest.raises(FlagError, match="--canary-period: must be more than 0"):
        settings("--canary-period=0s")
