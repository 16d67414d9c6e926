from __future__ import annotations

import time

import pytest

from hortus.engine.redaction import HIDDEN, redact, redact_text
from hortus.kube import Secret

CANARY = "c4n4ryc4n4ryc4n4ry"


@pytest.mark.parametrize(
    "text",
    [
        f"Authorization: Bearer {CANARY}",
        f"header was 'bearer {CANARY}'",
        f"GET https://admin:{CANARY}@garden.example.org/api failed",
        f'{{"token": "{CANARY}"}}',
        f"token={CANARY}&grant=x",
        f"client-key-data: {CANARY}",
        f"password: {CANARY}",
        f"clientSecret='{CANARY}'",
        f"-----BEGIN EC PRIVATE KEY-----\n{CANARY}\n-----END EC PRIVATE KEY-----",
        f"-----BEGIN PRIVATE KEY-----\n{CANARY}",
        f"LS0tLS1CRUdJTiBFQyBQUklWQVRF{CANARY}",
        f"eyJhbGciOiJSUzI1NiJ9.{CANARY}.sig",
        f"id_token: eyJhbGciOiJSUzI1NiJ9.{CANARY}",
    ],
)
def test_a_credential_inside_of_text_is_cut_out(text: str) -> None:
    assert CANARY not in redact_text(text)
    assert HIDDEN in redact_text(text)


@pytest.mark.parametrize(
    "text",
    [
        'secrets "kubeconfig-a" not found',
        "https://api.example.org:6443/apis is away",
        "the tokens of cluster a are 5 minutes old",
        "Rotated the kubeconfig: kcp-system/runtime-1",
    ],
)
def test_what_is_no_credential_stays(text: str) -> None:
    assert redact_text(text) == text


@pytest.mark.parametrize(
    "key",
    [
        *("token", "idToken", "access_token", "password", "kubeconfig", "admin_kubeconfig", "data", "stringData"),
        *("Authorization", "client-key-data", "clientSecret", "private_key"),
    ],
)
def test_what_stands_under_a_telling_key_is_hidden_whole(key: str) -> None:
    assert redact({"outer": [{key: {"inner": CANARY}}]}) == {"outer": [{key: HIDDEN}]}


def test_secrets_bytes_errors_and_bottomless_structures_are_hidden() -> None:
    deep: dict[str, object] = {"x": CANARY}
    for _ in range(50):
        deep = {"x": deep}
    values = {"a": Secret(CANARY), "b": CANARY.encode(), "c": ValueError(f"token={CANARY}"), "d": deep}
    assert CANARY not in str(redact(values))


def test_plain_values_and_names_of_secrets_stay() -> None:
    values = {"secret": "kubeconfig-a", "count": 3, "ratio": 0.5, "none": None, "flag": True, "token": None}
    assert redact(values) == values


@pytest.mark.parametrize(
    "piece", ["a", "eyJ", "token", "://", "Bearer ", "-----BEGIN PRIVATE KEY-----", "a-", '"', "= "]
)
def test_hostile_text_takes_time_that_grows_with_its_length_alone(piece: str) -> None:
    assert len(redact_text("token" + piece * 100_000)) < 50_000 * len(HIDDEN)
    short, long = (_cost("token" + piece * count) for count in (10_000, 100_000))
    # Ten times the length: a pattern that backtracks takes a hundred times as long, and more.
    assert long < 40 * short + 0.01


def _cost(text: str) -> float:
    """The least CPU seconds of several times: the machine does other things as well."""
    found = []
    for _ in range(3):
        before = time.process_time()
        redact_text(text)
        found.append(time.process_time() - before)
    return min(found)
