"""Kubeconfigs: the operator's own, those out of objects, and those we write."""

from __future__ import annotations

import base64
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hortus.kube import kubeconfig, yaml
from hortus.kube.access import Access
from hortus.kube.kubeconfig import KubeconfigError, Trust
from hortus.kube.objects import Object
from hortus.kube.secret import Secret

CA = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def config(cluster: Object | None = None, user: Object | None = None, **context: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "https://h:1", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", **context}}],
        "current-context": "x",
    }


def write(path: Path, content: object) -> Path:
    path.write_text(yaml.dump(content))
    return path


# Our own files


def test_a_kubeconfig_comes_down_to_an_access(tmp_path: Path) -> None:
    cluster = {"certificate-authority-data": encoded(CA), "tls-server-name": "n", "proxy-url": "http://p"}
    user = {"client-certificate-data": encoded(b"cert"), "client-key-data": encoded(b"key"), "token": "t", "as": "jane"}
    path = write(tmp_path / "config", config(cluster, user, namespace="ns"))
    access = kubeconfig.load(path).access()
    assert (access.server, access.ca, access.tls_server_name, access.namespace) == ("https://h:1", CA, "n", "ns")
    assert access.proxy_url == Secret("http://p")
    assert (access.credentials.certificate, access.credentials.key) == (b"cert", Secret("key"))
    assert access.credentials.token == Secret("t")
    assert access.impersonate is not None
    assert access.impersonate.user == "jane"


def test_relative_paths_start_at_the_file_that_names_them(tmp_path: Path) -> None:
    (tmp_path / "pki").mkdir()
    (tmp_path / "pki" / "ca.crt").write_bytes(CA)
    user = {"tokenFile": "token", "exec": {"apiVersion": "v", "command": "./plugin", "args": ["a"]}}
    path = write(tmp_path / "config", config({"certificate-authority": "pki/ca.crt"}, user))
    access = kubeconfig.load(path).access()
    assert access.ca == CA
    assert access.credentials.token_file == str(tmp_path / "token")
    assert access.credentials.exec is not None
    assert access.credentials.exec.directory == str(tmp_path)


def test_of_several_files_the_first_to_name_an_entry_wins(tmp_path: Path) -> None:
    one = write(tmp_path / "1", {**config({"server": "https://one:1"}), "current-context": ""})
    two = config({"server": "https://two:1"})
    two["contexts"].append({"name": "y", "context": {"cluster": "d", "user": "u"}})
    two["clusters"].append({"name": "d", "cluster": {"server": "https://d:1"}})
    second = write(tmp_path / "2", two)
    environment = {"KUBECONFIG": os.pathsep.join(["", str(one), str(tmp_path / "missing"), str(second)])}
    found = kubeconfig.load(environment=environment)
    assert found.current_context == "x"
    assert found.access().server == "https://one:1"
    assert found.access("y").server == "https://d:1"


def test_without_options_the_file_in_the_home_folder_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(KubeconfigError, match=r"no kubeconfig at .*\.kube/config: set KUBECONFIG"):
        kubeconfig.load(environment={})
    (tmp_path / ".kube").mkdir()
    write(tmp_path / ".kube" / "config", config())
    assert kubeconfig.load(environment={}).access().server == "https://h:1"


def test_a_file_named_outright_must_exist(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError, match="missing: cannot be read: No such file"):
        kubeconfig.load(tmp_path / "missing")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ([], "expected a mapping"),
        ({"kind": "Secret"}, "expected apiVersion v1, kind Config"),
        ({"clusters": {}}, "clusters is not a list"),
        ({"clusters": [{}]}, r"clusters\[0\] has no name"),
        ({"clusters": [{"name": "a", "cluster": "b"}]}, r"clusters\[0\].cluster is not a mapping"),
        ({"current-context": 3}, "current-context is not a string"),
        ({}, "no current-context"),
        ({**config(), "current-context": "z"}, 'context "z" does not exist; there are: x'),
        ({**config(), "clusters": []}, r'cluster "c" does not exist; there are: \(there is none\)'),
        ({**config(), "users": []}, 'user "u" does not exist'),
        (config({"server": ""}), "server is missing"),
        (config({"server": 3}), "server is not a string"),
        (config({"insecure-skip-tls-verify": "yes"}), "neither true nor false"),
        (
            config({"insecure-skip-tls-verify": True, "certificate-authority-data": encoded(CA)}),
            "cannot be true together with",
        ),
        (config({"certificate-authority-data": "&&&"}), "certificate-authority-data is not base64"),
        (config({"certificate-authority": "missing.crt"}), "names .*missing.crt, which cannot be read"),
        (config(user={"client-certificate-data": encoded(b"c")}), "must be given together"),
        (config(user={"auth-provider": {"name": "gcp"}}), "no longer part of Kubernetes"),
        (config(user={"exec": {"args": []}}), "exec.command is missing"),
        (config(user={"exec": {"command": "c", "interactiveMode": "Always"}}), "there is no terminal"),
        (config(user={"exec": {"command": "c", "args": "x"}}), "exec.args is not a list of strings"),
        (config(user={"exec": {"command": "c", "env": [{"name": "A"}]}}), "exec.env is not a list of name and value"),
        (config(user={"as-groups": ["g"]}), "as is missing"),
        (config(user={"as": "j", "as-user-extra": {"k": "v"}}), "as-user-extra.k is not a list of strings"),
    ],
)
def test_a_broken_kubeconfig_names_the_file_and_the_field(tmp_path: Path, content: Any, problem: str) -> None:
    path = write(tmp_path / "config", content)
    with pytest.raises(KubeconfigError, match=problem):
        kubeconfig.load(path).access()


def test_text_that_is_no_yaml_names_the_file_and_the_line(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("users:\n- token: canary\n  token: [\n")
    with pytest.raises(KubeconfigError, match=f"{path}: line") as caught:
        kubeconfig.load(path)
    assert "canary" not in str(caught.value)


def test_a_kubeconfig_does_not_print_its_credentials(tmp_path: Path) -> None:
    found = kubeconfig.load(write(tmp_path / "config", config(user={"token": "canary", "password": "canary"})))
    assert "canary" not in repr(found)
    assert "canary" not in repr(found.access())


# In a pod


def test_in_a_pod_it_is_the_service_account(tmp_path: Path) -> None:
    environment = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    with pytest.raises(KubeconfigError, match="not in a pod"):
        kubeconfig.in_cluster(folder=tmp_path, environment={})
    with pytest.raises(KubeconfigError, match="without a service account"):
        kubeconfig.in_cluster(folder=tmp_path, environment=environment)
    (tmp_path / "token").write_text("t")
    (tmp_path / "ca.crt").write_bytes(CA)
    (tmp_path / "namespace").write_text("ns")
    access = kubeconfig.in_cluster(folder=tmp_path, environment=environment)
    assert (access.server, access.ca, access.namespace) == ("https://[fd00::1]:443", CA, "ns")
    assert access.credentials.token_file == str(tmp_path / "token")


# Proxies


@pytest.mark.parametrize(
    ("server", "environment", "proxy"),
    [
        ("https://h.example:6443", {}, None),
        ("https://h.example:6443", {"HTTPS_PROXY": "http://p:3128"}, "http://p:3128"),
        ("https://h.example:6443", {"https_proxy": "p:3128"}, "http://p:3128"),
        ("https://h.example:6443", {"HTTP_PROXY": "http://p"}, None),
        ("http://h.example", {"HTTP_PROXY": "http://p"}, "http://p"),
        ("https://127.0.0.1:6443", {"HTTPS_PROXY": "http://p"}, None),
        ("https://[::1]:6443", {"HTTPS_PROXY": "http://p"}, None),
        ("https://localhost:6443", {"HTTPS_PROXY": "http://p"}, None),
        ("https://h.example", {"HTTPS_PROXY": "http://p", "NO_PROXY": "other, example"}, None),
        ("https://h.example", {"HTTPS_PROXY": "http://p", "NO_PROXY": ".h.example"}, "http://p"),
        ("https://h.example:6443", {"HTTPS_PROXY": "http://p", "NO_PROXY": "h.example:443"}, "http://p"),
        ("https://h.example:6443", {"HTTPS_PROXY": "http://p", "NO_PROXY": "h.example:6443"}, None),
        ("https://10.1.2.3", {"HTTPS_PROXY": "http://p", "no_proxy": "10.0.0.0/8"}, None),
        ("https://[fd00::1]", {"HTTPS_PROXY": "http://p", "no_proxy": "fd00::/8"}, None),
        ("https://h.example", {"HTTPS_PROXY": "http://p", "NO_PROXY": "*"}, None),
    ],
)
def test_proxies_of_the_environment_are_used_as_go_programs_use_them(
    server: str, environment: dict[str, str], proxy: str | None
) -> None:
    found = kubeconfig.through_proxy(Access(server=server), environment).proxy_url
    assert (found.reveal() if found else None) == proxy


def test_a_proxy_of_the_kubeconfig_comes_before_that_of_the_environment() -> None:
    access = Access(server="https://h", proxy_url=Secret("http://own"))
    assert kubeconfig.through_proxy(access, {"HTTPS_PROXY": "http://p"}).proxy_url == Secret("http://own")


# Out of an object


def untrusted(content: object, **trust: Any) -> Access:
    return kubeconfig.from_untrusted(yaml.dump(content), trust=Trust(**trust)).access()


def test_inline_data_out_of_an_object_is_fine() -> None:
    user = {"client-certificate-data": encoded(b"cert"), "client-key-data": encoded(b"key"), "token": "t"}
    access = untrusted(config({"certificate-authority-data": encoded(CA), "insecure-skip-tls-verify": False}, user))
    assert (access.ca, access.credentials.token) == (CA, Secret("t"))


@pytest.mark.parametrize(
    ("cluster", "user", "field"),
    [
        ({}, {"exec": {"apiVersion": "v", "command": "touch"}}, "exec"),
        ({}, {"auth-provider": {"name": "oidc"}}, "auth-provider"),
        ({}, {"client-certificate": "/etc/passwd"}, "client-certificate"),
        ({}, {"client-key": "/etc/passwd"}, "client-key"),
        ({}, {"tokenFile": "/etc/passwd"}, "tokenFile"),
        ({}, {"as": "system:admin"}, "as"),
        ({}, {"as-groups": ["system:masters"]}, "as-groups"),
        ({"certificate-authority": "/etc/passwd"}, {}, "certificate-authority"),
        ({"proxy-url": "http://evil"}, {}, "proxy-url"),
        ({"insecure-skip-tls-verify": True}, {}, "insecure-skip-tls-verify"),
        ({"tls-server-name": "other"}, {}, "tls-server-name"),
        ({"server": "http://h"}, {}, "server"),
        ({"server": "file:///etc/passwd"}, {}, "server"),
        ({"server": "https://u:canary@h"}, {}, "server"),
        ({"server": "https://h:99999"}, {}, "server"),
        ({"server": "https://[::1"}, {}, "server"),
        ({"server": "https://"}, {}, "server"),
        ({"server": ["https://h"]}, {}, "server"),
        ({"server": "https://h/?x=1"}, {}, "server"),
    ],
)
def test_forbidden_fields_of_an_untrusted_kubeconfig_are_refused_by_name(
    cluster: Object, user: Object, field: str
) -> None:
    with pytest.raises(KubeconfigError, match=rf"(cluster|user) \"[cu]\": {field} ") as caught:
        untrusted(config(cluster, user))
    assert "canary" not in str(caught.value)


def test_entries_that_are_not_used_are_checked_too() -> None:
    content = config()
    content["users"].append({"name": "other", "user": {"exec": {"command": "touch"}}})
    with pytest.raises(KubeconfigError, match='user "other": exec is not allowed'):
        untrusted(content)


def test_configuration_may_allow_single_things() -> None:
    assert untrusted(config({"server": "http://h"}), plain_http=True).server == "http://h"
    assert untrusted(config({"insecure-skip-tls-verify": True}), insecure_skip_tls_verify=True).insecure
    assert untrusted(config({"proxy-url": "http://p"}), proxy_url=True).proxy_url == Secret("http://p")
    assert untrusted(config({"tls-server-name": "n"}), tls_server_name=True).tls_server_name == "n"
    assert untrusted(config(user={"as": "j"}), impersonation=True).impersonate is not None
    with pytest.raises(KubeconfigError, match="certificate-authority-data is missing"):
        untrusted(config(), system_ca=False)


@pytest.mark.parametrize(
    "text",
    [
        "x" * ((1 << 20) + 1),
        "a: &a [x]\n"
        + "".join(f"k{i}: &k{i} [{','.join(['*a' if not i else f'*k{i - 1}'] * 9)}]\n" for i in range(12)),
        "[" * 5000,
        "a: !!python/object/apply:os.system [touch]",
        b"\xff\xfe\x00\xd8",
        b"\x00\x01",
        "users: [",
        "",
        "null",
        "3",
    ],
    ids=["long", "aliases", "deep", "tag", "surrogate", "nul", "half", "empty", "null", "number"],
)
def test_untrusted_documents_that_are_no_kubeconfigs_are_refused(text: bytes | str) -> None:
    with pytest.raises(KubeconfigError) as caught:
        kubeconfig.from_untrusted(text, origin="secret garden/kubeconfig").access()
    assert len(str(caught.value)) < 400


# Writing


def made(name: str = "new", **options: Any) -> Object:
    return kubeconfig.document(name, "https://n:1", ca=CA, token=Secret("t"), **options)


def test_a_document_reads_back_as_the_access_it_was_made_for() -> None:
    content = made(namespace="ns", certificate=b"cert", key=Secret("key"), user="me", context="here")
    access = untrusted(content)
    assert (access.server, access.ca, access.namespace) == ("https://n:1", CA, "ns")
    assert (access.credentials.certificate, access.credentials.key) == (b"cert", Secret("key"))
    assert access.credentials.token == Secret("t")
    assert content["current-context"] == "here"


def test_merging_keeps_other_entries_and_the_mode_0600(tmp_path: Path) -> None:
    path = tmp_path / "config"
    old = config()
    old["preferences"] = {"colors": True}
    old["users"][0]["user"]["exec"] = {"command": "c"}
    write(path, old)
    path.chmod(0o644)
    kubeconfig.merge_into(path, made())
    kubeconfig.merge_into(path, made(), use=False)
    merged = yaml.load(path.read_bytes())
    assert merged["preferences"] == {"colors": True}
    assert merged["users"] == [*old["users"], made()["users"][0]]
    assert [entry["name"] for entry in merged["clusters"]] == ["c", "new"]
    assert merged["current-context"] == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == ["config"]


def test_merging_again_replaces_entries_of_the_same_name(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "config"
    kubeconfig.merge_into(path, made())
    kubeconfig.merge_into(path, kubeconfig.document("new", "https://other:1"))
    assert kubeconfig.load(path).access().server == "https://other:1"
    assert len(yaml.load(path.read_bytes())["clusters"]) == 1


def test_merging_without_use_leaves_the_current_context(tmp_path: Path) -> None:
    path = write(tmp_path / "config", config())
    kubeconfig.merge_into(path, made(), use=False)
    assert yaml.load(path.read_bytes())["current-context"] == "x"


def test_merging_writes_through_a_link(tmp_path: Path) -> None:
    target = write(tmp_path / "real", config())
    link = tmp_path / "link"
    link.symlink_to(target)
    kubeconfig.merge_into(link, made())
    assert link.is_symlink()
    assert len(yaml.load(target.read_bytes())["clusters"]) == 2


def test_a_broken_file_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("clusters: [")
    with pytest.raises(KubeconfigError, match="left as it is"):
        kubeconfig.merge_into(path, made())
    assert path.read_text() == "clusters: ["
    assert [entry.name for entry in tmp_path.iterdir()] == ["config"]


@pytest.mark.parametrize("plural", ["clusters", "users", "contexts"])
def test_an_untrusted_kubeconfig_has_no_two_entries_of_one_name(plural: str) -> None:
    """It is handed on as it is, to programs of which some take the last one."""
    content: dict[str, Any] = {
        "clusters": [{"name": "a", "cluster": {"server": "https://one.example"}}],
        "users": [{"name": "a", "user": {"token": "t"}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "current-context": "a",
    }
    assert kubeconfig.from_untrusted(yaml.dump(content)).access().server == "https://one.example"
    content[plural].append({"name": "a", plural[:-1]: {"exec": {"command": "/bin/sh"}}})
    with pytest.raises(kubeconfig.KubeconfigError, match=f"{plural} has two entries with one name"):
        kubeconfig.from_untrusted(yaml.dump(content))


_MERGES = """
import sys
from hortus.kube import kubeconfig
print("begins", flush=True)
for number in range(int(sys.argv[2])):
    name = f"{sys.argv[3]}-{number}"
    kubeconfig.merge_into(sys.argv[1], kubeconfig.document(name, "https://127.0.0.1:1"), use=False)
"""


def _merging(path: Path, count: int, name: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _MERGES, str(path), str(count), name]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_a_merge_that_is_killed_leaves_the_file_before_or_after_it(tmp_path: Path) -> None:
    path = write(tmp_path / "config", config())
    before = yaml.load(path.read_bytes())["contexts"]
    for attempt in range(5):
        with _merging(path, 10_000, f"killed-{attempt}") as process:
            assert process.stdout is not None and process.stdout.readline() == "begins\n"
            size = path.stat().st_size
            while path.stat().st_size == size:
                assert process.poll() is None
            process.kill()
        found = kubeconfig.load(path)
        assert yaml.load(path.read_bytes())["contexts"][: len(before)] == before
        assert all(f"killed-{earlier}-0" in found.clusters for earlier in range(attempt + 1))
        assert set(found.clusters) - {"c"} == set(found.contexts) - {entry["name"] for entry in before}
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_merges_at_the_same_time_lose_no_entry(tmp_path: Path) -> None:
    path = write(tmp_path / "config", config())
    processes = [_merging(path, 20, f"writer-{number}") for number in range(3)]
    for process in processes:
        process.communicate(timeout=60)
        assert process.returncode == 0
    expected = {f"writer-{number}-{merge}" for number in range(3) for merge in range(20)}
    assert expected <= set(kubeconfig.load(path).clusters)
