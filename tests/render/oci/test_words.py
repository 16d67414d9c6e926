"""References, credentials and challenges: text in, values out, nonsense refused."""

from __future__ import annotations

import base64

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hortus.render.oci import BadCredentials, BadReference, CredentialStore, Reference, parse_reference, tag_of_version
from hortus.render.oci.auth import challenges

SHA = "sha256:" + "a" * 64


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("oci://ghcr.io/team/web:1.0.0", ("ghcr.io", "team/web", "1.0.0", None)),
        ("localhost:5000/web", ("localhost:5000", "web", "", None)),
        ("localhost/web:v1", ("localhost", "web", "v1", None)),
        (f"r.example.com/a/b/c:t@{SHA}", ("r.example.com", "a/b/c", "t", SHA)),
        (f"r.example.com/a@{SHA}", ("r.example.com", "a", "", SHA)),
        ("[::1]:5000/a:b", ("[::1]:5000", "a", "b", None)),
        ("docker.io/alpine:3", ("docker.io", "library/alpine", "3", None)),
        ("index.docker.io/team/x:3", ("docker.io", "team/x", "3", None)),
        ("10.0.0.1:5000/a__b/c-d.e:T_1", ("10.0.0.1:5000", "a__b/c-d.e", "T_1", None)),
    ],
)
def test_a_reference_is_taken_apart_and_put_together(text: str, parts: tuple[str, ...]) -> None:
    found = parse_reference(text)
    assert (found.registry, found.repository, found.tag, found.digest) == parts
    assert parse_reference(str(found)) == found


@pytest.mark.parametrize(
    "text",
    [
        "",
        "alpine",
        "team/web:1",
        "https://r.example.com/a",
        "r.example.com/",
        "r.example.com/A",
        "r.example.com/a/../b",
        "r.example.com/a//b",
        "r.example.com/a:",
        "r.example.com/a:.x",
        "r.example.com/a:" + "x" * 129,
        "r.example.com/a@sha256:short",
        f"r.example.com/a@{SHA.upper()}",
        "r.example.com/a@md5:" + "a" * 32,
        "user@r.example.com/a",
        "r.example.com/" + "a" * 300,
        "r.example.com:x/a",
        "r.example.com/a?b=c",
        "r.example.com/a#b",
        "r.example.com/a\nb",
        "r.example.com/%2e%2e/a",
        "x" * 2000,
    ],
)
def test_what_names_no_artifact_is_refused(text: str) -> None:
    with pytest.raises(BadReference):
        parse_reference(text)


@given(st.text(max_size=80))
def test_any_text_is_a_reference_or_refused(text: str) -> None:
    for candidate in (text, f"r.example.com/{text}", f"r.example.com/a:{text}"):
        try:
            found = parse_reference(candidate)
        except BadReference:
            continue
        assert parse_reference(str(found)) == found


def test_a_reference_without_tag_and_digest_names_no_artifact() -> None:
    with pytest.raises(BadReference, match="names no tag or digest"):
        _ = parse_reference("r.example.com/a").identifier


def test_a_version_becomes_the_tag_that_helm_gives_it() -> None:
    assert tag_of_version("1.2.3+build.5") == "1.2.3_build.5"


def test_docker_hub_has_an_api_host_of_its_own() -> None:
    assert parse_reference("docker.io/alpine:3").api_host == "registry-1.docker.io"
    assert Reference(registry="ghcr.io", repository="a").api_host == "ghcr.io"


def config(**auths: object) -> bytes:
    return orjson.dumps({"auths": auths})


def test_credentials_are_found_by_the_longest_place() -> None:
    pair = base64.b64encode(b"me:pa:ss").decode()
    store = CredentialStore.from_docker_config(
        orjson.dumps(
            {
                "auths": {
                    "https://index.docker.io/v1/": {"auth": pair},
                    "Registry.example.com": {"username": "all", "password": "1"},
                    "registry.example.com/team": {"username": "team", "password": "2"},
                    "registry.example.com/team/web": {"identitytoken": "refresh"},
                    "other.example.com:5000": {"registrytoken": "bearer", "auth": None},
                }
            }
        )
    )

    def user(registry: str, repository: str) -> str | None:
        found = store.find(registry, repository)
        return None if found is None else found.username

    hub = store.find("docker.io", "library/alpine")
    assert hub is not None
    assert hub.password is not None
    assert (hub.username, hub.password.reveal()) == ("me", "pa:ss")
    assert user("registry.example.com", "x") == "all"
    assert user("registry.example.com", "team/other") == "team"
    assert user("registry.example.com", "teams/other") == "all"
    web = store.find("registry.example.com", "team/web")
    assert web is not None
    assert web.identity_token is not None
    assert user("registry.example.com:5000", "x") is None
    assert user("other.example.com:5000", "x") == ""
    assert user("example.com", "x") is None
    assert "pa:ss" not in repr(hub)


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"[]",
        b'{"auths": []}',
        b'{"credsStore": "desktop"}',
        b'{"credHelpers": {"gcr.io": "gcloud"}}',
        config(a="text"),
        config(a={"auth": "!!!"}),
        config(a={"auth": base64.b64encode(b"canary").decode()}),
        config(a={"auth": base64.b64encode(b"canary:new\nline").decode()}),
        config(a={"username": 1}),
        config(a={"username": "a\r\nX-Evil: 1", "password": "canary"}),
    ],
)
def test_a_docker_config_that_cannot_be_used_is_refused_without_showing_it(document: bytes) -> None:
    with pytest.raises(BadCredentials) as caught:
        CredentialStore.from_docker_config(document)
    assert "canary" not in str(caught.value)


def test_challenges_are_taken_apart() -> None:
    found = challenges(
        [
            'Bearer realm="https://a/token",service="x, y",scope="repository:a:pull,push", Basic realm="a \\"b\\""',
            "Negotiate",
            "Basic",
        ]
    )
    assert [one.scheme for one in found] == ["bearer", "basic", "negotiate", "basic"]
    assert found[0].parameters == {"realm": "https://a/token", "service": "x, y", "scope": "repository:a:pull,push"}
    assert found[1].parameters == {"realm": 'a "b"'}


@given(st.text(max_size=200))
def test_any_challenge_is_read_or_left(text: str) -> None:
    for challenge in challenges([text, "Bearer " + text]):
        assert challenge.scheme
