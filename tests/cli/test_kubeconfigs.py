"""`hortus kubeconfig` and `hortus credential-plugin`: names, files, and credentials that stay fresh for any client."""

from __future__ import annotations

import asyncio
import base64
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kr8s
import kubernetes
import orjson
import pytest
from click.testing import CliRunner
from tests.cli.conftest import CRDS, NOW, Answer, Fleet, cluster, encoded, user_kubeconfig
from tests.docs.consoles import ROOT
from tests.scenarios.running import environment

from hortus.cli.shell import app
from hortus.domains.clusters.types import RUNTIMES, Runtime
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.engine.kubeconfigs import SECRETS
from hortus.kube import Client, kubeconfig, yaml
from hortus.kube.clock import SystemClock
from hortus.kube.kubeconfig.plugin import EXEC_INFO
from hortus.kube.objects import Object, Resource, parse_time
from hortus.schema import crd

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
SHOOT = "shoot--demo--one"
V1 = "client.authentication.k8s.io/v1"
needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")


@pytest.fixture(scope="module")
def named(fleet: Fleet) -> Fleet:
    """The fleet with the Runtime `blue` of its cluster `one`, and names that several kinds have."""
    runtime: Object = yaml.load((ROOT / "examples" / "runtimes" / "aws.yaml").read_bytes())

    async def fill(client: Client) -> None:
        await client.apply(CRDS, crd(Runtime), field_manager="tests")
        for name, identity in (("blue", "one"), ("twin", "one")):
            labels = runtime["metadata"]["labels"] | {"kyma-project.io/runtime-id": identity}
            metadata = {"name": name, "namespace": "kcp-system", "labels": labels}
            await client.create(RUNTIMES, runtime | {"metadata": metadata})
        twin, bare = cluster("twin"), cluster("bare")
        del bare["metadata"]["labels"]
        bare["spec"]["shoot"]["name"] = "unlabelled"
        for made in (twin, bare):
            await client.create(GARDENER_CLUSTERS, made)

    fleet.run(fill)
    return fleet


@pytest.fixture
def merged(named: Fleet, tmp_path: Path) -> Path:
    """A kubeconfig file with the context `one`, which holds no credential."""
    path = tmp_path / "config"
    answer = named.type("kubeconfig", "one", "--exec", "--merge", "--use", "--into", str(path))
    assert answer.code == 0, answer.err
    return path


@pytest.fixture
def rotated(named: Fleet) -> Iterator[None]:
    """The Secret holds the kubeconfig of another user for the time of a test."""
    before = named.run(lambda client: client.get(SECRETS, "kubeconfig-one", "kcp-system"))["data"]["config"]
    store(named, user_kubeconfig(named.server, SHOOT, "fresh"))
    yield
    patch = {"data": {"config": before}}
    named.run(lambda client: client.patch(SECRETS, "kubeconfig-one", patch, "kcp-system"))


def store(fleet: Fleet, document: Object) -> None:
    patch = {"data": {"config": encoded(yaml.dump(document).encode())}}
    fleet.run(lambda client: client.patch(SECRETS, "kubeconfig-one", patch, "kcp-system"))


def plugin(fleet: Fleet, *words: str, info: Object | None = None, **more: str) -> Answer:
    environment = {"GARDEN_KUBECONFIG": "", "KUBECONFIG": str(fleet.folder / "kubeconfig"), **more}
    environment[EXEC_INFO] = orjson.dumps(info).decode() if info is not None else ""
    result = CliRunner(env=environment).invoke(app, ["credential-plugin", *words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Answer(result.exit_code, result.stdout, result.stderr)


def asked(cluster: Object, **config: Any) -> Object:
    """The request of a client for a cluster; `config` is the content of the cluster's extension."""
    spec = {"interactive": False, "cluster": cluster | ({"config": config} if config else {})}
    return {"apiVersion": V1, "kind": "ExecCredential", "spec": spec}


def body_of(fleet: Fleet) -> Object:
    found: Object = fleet.server.kubeconfig_dict(SHOOT)["clusters"][0]["cluster"]
    return found


def kubectl(path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["kubectl", "--kubeconfig", str(path), *words],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment(KUBECACHEDIR=str(path.parent / "cache")),
    )


@pytest.mark.parametrize(
    "name",
    ["one", "blue", "gc/one", "gardenercluster/one", "clusters/one", "runtime/blue", "runtimes/blue", "shoot/one"],
)
def test_a_cluster_goes_by_any_of_its_names(named: Fleet, name: str) -> None:
    answer = named.type("kubeconfig", name)
    assert (answer.code, answer.err) == (0, "")
    assert kubeconfig.from_untrusted(answer.out).access().server.endswith(f"/clusters/{SHOOT}")
    assert named.type("tree", name, "-o", "json").out.count('"Shoot"') == 1
    context = orjson.loads(orjson.dumps(yaml.load(named.type("kubeconfig", name, "--exec").out)))["current-context"]
    assert context == name.rpartition("/")[2]


def test_a_rotation_is_asked_for_by_any_name_and_once(named: Fleet) -> None:
    answer = named.type("rotate", "blue", "shoot/one", "one", "--no-wait")
    assert answer == (0, "gardenercluster/one rotation asked for\n", "")


@pytest.mark.parametrize(
    ("name", "code", "says"),
    [
        ("twin", 2, "twin stands for several clusters: gardenercluster/twin, runtime/twin"),
        ("shoot/none", 1, "no GardenerCluster of Shoot none in namespace kcp-system; there are: bare, one, twin, two"),
        ("runtime/one", 1, "no GardenerCluster of Runtime one in namespace kcp-system"),
        ("pod/one", 2, "pod/one: a name, or TYPE/NAME with a type of gardenercluster, runtime, shoot"),
        ("runtime/", 2, "runtime/: a name, or TYPE/NAME"),
        ("a b", 1, "no GardenerCluster a b in namespace kcp-system"),
        ("unlabelled", 1, "GardenerCluster bare has no kubeconfig"),
    ],
)
def test_a_name_that_stands_for_no_one_cluster_is_an_error(named: Fleet, name: str, code: int, says: str) -> None:
    answer = named.type("kubeconfig", name)
    assert (answer.code, answer.out) == (code, "")
    assert says in answer.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--use",), "--use goes with --merge"),
        (("--into", "x"), "--into goes with --merge"),
        (("--overwrite",), "--overwrite goes with --merge"),
        (("--exec", "--use"), "--use goes with --merge"),
        (("--context-name", "x"), "--context-name goes with --merge or --exec"),
    ],
)
def test_options_that_mean_nothing_are_refused(named: Fleet, words: tuple[str, ...], says: str) -> None:
    answer = named.type("kubeconfig", "one", *words)
    assert (answer.code, answer.out) == (2, "")
    assert says in answer.err


@pytest.mark.parametrize(
    ("present", "chosen"), [(("b",), "b"), (("b", "c"), "b"), (("a", "b"), "a"), ((), "c")], ids=str
)
def test_a_context_is_merged_where_kubectl_would_write_it(
    named: Fleet, tmp_path: Path, present: tuple[str, ...], chosen: str
) -> None:
    mine = {"apiVersion": "v1", "kind": "Config", "contexts": [{"name": "mine", "context": {"cluster": "x"}}]}
    for name in present:
        (tmp_path / name).write_bytes(yaml.dump(mine).encode())
        (tmp_path / name).chmod(0o644)
    listed = os.pathsep.join(str(tmp_path / name) for name in "abc")
    words = ["kubeconfig", "one", "--merge", "--state-dir", str(named.folder)]
    result = CliRunner(env={"KUBECONFIG": listed, "GARDEN_KUBECONFIG": ""}).invoke(app, words)
    assert result.exit_code == 0, result.output
    target = tmp_path / chosen
    assert f"Context one is in {target} (from secret kcp-system/kubeconfig-one)" in result.output
    assert {path.name for path in tmp_path.iterdir()} == {*present, chosen}
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    contexts = [part["name"] for part in yaml.load(target.read_bytes())["contexts"]]
    assert contexts == (["mine", "one"] if present else ["one"])


def test_a_context_of_another_cluster_is_not_replaced_unasked(named: Fleet, tmp_path: Path) -> None:
    path = tmp_path / "config"
    kubeconfig.write(path, kubeconfig.document("one", "https://prod.example.org"))
    before = path.read_bytes()
    into = ("--merge", "--into", str(path))
    refused = named.type("kubeconfig", "one", *into)
    assert (refused.code, path.read_bytes()) == (1, before)
    assert "has a cluster one already, at https://prod.example.org: give --context-name NAME" in refused.err
    assert named.type("kubeconfig", "one", *into, "--context-name", "demo").code == 0
    assert kubeconfig.load(path).access("one").server == "https://prod.example.org"
    assert kubeconfig.load(path).access("demo").server.endswith(SHOOT)
    assert named.type("kubeconfig", "one", *into, "--overwrite").code == 0
    assert kubeconfig.load(path).access("one").server.endswith(SHOOT)


def test_the_context_of_a_cluster_that_moved_is_replaced(named: Fleet, merged: Path) -> None:
    document = yaml.load(merged.read_bytes())
    document["clusters"][0]["cluster"]["server"] = "https://old.example.org"
    kubeconfig.write(merged, document)
    assert named.type("kubeconfig", "one", "--exec", "--merge", "--into", str(merged)).code == 0
    assert kubeconfig.load(merged).access("one").server.endswith(SHOOT)


def test_a_context_with_exec_holds_no_credential_and_its_own_way_back(named: Fleet, merged: Path) -> None:
    text = merged.read_text()
    assert "token" not in text and "client-key-data" not in text
    (user,) = yaml.load(text)["users"]
    entry = user["user"]["exec"]
    assert entry["args"] == [
        "credential-plugin",
        "--secret",
        "kcp-system/kubeconfig-one",
        "--key",
        "config",
        "--kubeconfig",
        str(named.folder / "kubeconfig"),
        "--context",
        "root",
    ]
    assert (entry["interactiveMode"], entry["provideClusterInfo"]) == ("Never", True)


@needs_kubectl
def test_kubectl_uses_what_the_secret_holds_now(merged: Path, rotated: None) -> None:
    found = kubectl(merged, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
    assert (found.stdout, found.stderr) == ("fresh", "")


@needs_kubectl
def test_a_management_cluster_of_several_files_is_found_again(named: Fleet, tmp_path: Path) -> None:
    whole = yaml.load((named.folder / "kubeconfig").read_bytes())
    shell = {"apiVersion": "v1", "kind": "Config"}
    kubeconfig.write(tmp_path / "a", shell | {"contexts": whole["contexts"], "current-context": "root"})
    kubeconfig.write(tmp_path / "b", shell | {"clusters": whole["clusters"], "users": whole["users"]})
    listed = os.pathsep.join((str(tmp_path / "a"), str(tmp_path / "b")))
    target = tmp_path / "target"
    words = ["kubeconfig", "one", "--exec", "--merge", "--use", "--into", str(target)]
    made = CliRunner(env={"KUBECONFIG": listed}).invoke(app, words)
    assert made.exit_code == 0, made.output
    assert kubectl(target, "get", "namespace", "default", "-o", "name").stdout == "namespace/default\n"


@needs_kubectl
@pytest.mark.parametrize("key", ["config", ""])
def test_kubectl_passes_the_secret_in_the_extension_of_the_cluster(named: Fleet, tmp_path: Path, key: str) -> None:
    path = tmp_path / "config"
    kubeconfig.write(path, by_extension(named, {"namespace": "kcp-system", "name": "kubeconfig-one", "key": key}))
    assert kubectl(path, "get", "namespace", "default", "-o", "name").stdout == "namespace/default\n"


def by_extension(fleet: Fleet, secret: Object) -> Object:
    """A kubeconfig as a consumer of ClusterProfiles puts it together."""
    document = kubeconfig.with_plugin(
        kubeconfig.document("member", "https://replaced"),
        [str(Path(sys.executable).parent / "hortus")],
        ["credential-plugin"],
        {"KUBECONFIG": str(fleet.folder / "kubeconfig")},
    )
    extension = {"name": f"{V1.rpartition('/')[0]}/exec", "extension": {"secret": secret}}
    document["clusters"][0]["cluster"] = body_of(fleet) | {"extensions": [extension]}
    return document


def test_other_clients_and_ours_run_the_plugin(named: Fleet, merged: Path) -> None:
    api = kubernetes.config.new_client_from_config(config_file=str(merged))
    with api:
        kubernetes_python = kubernetes.client.CoreV1Api(api).read_namespace("default")
    assert kubernetes_python.metadata.name == "default"
    assert [found.name for found in kr8s.get("namespaces", "default", api=kr8s.api(kubeconfig=str(merged)))] == [
        "default"
    ]

    async def ours() -> str:
        async with Client.from_kubeconfig(merged) as client:
            return str((await client.get(NAMESPACES, "default"))["metadata"]["name"])

    assert asyncio.run(ours()) == "default"


def test_the_answer_has_the_certificate_and_its_end(named: Fleet) -> None:
    answer = plugin(named, "--secret", "kcp-system/kubeconfig-one")
    assert (answer.code, answer.err) == (0, "")
    found = orjson.loads(answer.out)
    assert (found["apiVersion"], found["kind"]) == (V1, "ExecCredential")
    assert set(found["status"]) == {"clientCertificateData", "clientKeyData", "expirationTimestamp"}
    assert parse_time(found["status"]["expirationTimestamp"]) == pytest.approx(SystemClock().now() + 86400, abs=600)
    older = plugin(
        named,
        "--secret",
        "kcp-system/kubeconfig-one",
        info=asked(body_of(named)) | {"apiVersion": "client.authentication.k8s.io/v1beta1"},
    )
    assert orjson.loads(older.out)["apiVersion"] == "client.authentication.k8s.io/v1beta1"


def jwt(**claims: Any) -> str:
    parts = (orjson.dumps({"alg": "none"}), orjson.dumps(claims), b"signature")
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


@pytest.mark.parametrize(
    ("token", "end"),
    [(jwt(exp=NOW + 86_400, sub="x"), NOW + 86_400), (jwt(sub="x"), None), ("opaque", None)],
    ids=["with an end", "without", "no claims"],
)
def test_a_token_ends_when_its_claims_say(named: Fleet, rotated: None, token: str, end: float | None) -> None:
    document = named.server.kubeconfig_dict(SHOOT)
    document["users"][0]["user"] = {"token": token}
    store(named, document)
    status = orjson.loads(plugin(named, "--secret", "kcp-system/kubeconfig-one").out)["status"]
    assert status.pop("token") == token
    assert [parse_time(text) for text in status.values()] == ([pytest.approx(end, abs=1)] if end is not None else [])


@pytest.mark.parametrize(
    ("user", "says"),
    [
        ({"token": jwt(exp=1.0)}, "ended at 1970-01-01T00:00:01Z; do the controllers run?"),
        ({"username": "u", "password": "p"}, "holds neither a token nor a client certificate"),
        ({}, "holds neither a token nor a client certificate"),
        ({"exec": {"command": "touch"}}, "exec is not allowed in a kubeconfig from an object"),
        ({"tokenFile": "/etc/passwd"}, "tokenFile is not allowed"),
    ],
)
def test_a_secret_without_a_usable_credential_is_an_error(named: Fleet, rotated: None, user: Object, says: str) -> None:
    document = named.server.kubeconfig_dict(SHOOT)
    document["users"][0]["user"] = user
    store(named, document)
    answer = plugin(named, "--secret", "kcp-system/kubeconfig-one")
    assert (answer.code, answer.out) == (1, "")
    assert says in answer.err
    assert "secret kcp-system/kubeconfig-one" in answer.err


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"server": "https://evil.example.org"}, "and the client asks for https://evil.example.org: no credential"),
        ({"server": "http://127.0.0.1"}, "no credential is handed out"),
        ({"insecure-skip-tls-verify": True}, "the client trusts other certificates"),
        ({"certificate-authority-data": ""}, "the client trusts other certificates"),
        ({"certificate-authority-data": "?"}, "certificate-authority-data is not base64"),
    ],
)
@pytest.mark.parametrize("extended", [True, False])
def test_a_credential_goes_to_no_server_but_its_own(named: Fleet, change: Object, says: str, extended: bool) -> None:
    secret = {"namespace": "kcp-system", "name": "kubeconfig-one"}
    words = () if extended else ("--secret", "kcp-system/kubeconfig-one")
    request = asked(body_of(named) | change, **({"secret": secret} if extended else {}))
    answer = plugin(named, *words, info=request)
    assert (answer.code, answer.out) == (1, "")
    assert says in answer.err


def test_a_ca_that_is_being_replaced_is_known_by_its_old_certificate(named: Fleet, rotated: None) -> None:
    document = named.server.kubeconfig_dict(SHOOT)
    body = document["clusters"][0]["cluster"]
    own = base64.b64decode(body["certificate-authority-data"])
    other = b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
    body["certificate-authority-data"] = base64.b64encode(other + own).decode()
    store(named, document)
    words = ("--secret", "kcp-system/kubeconfig-one")
    assert plugin(named, *words, info=asked(body_of(named))).code == 0
    spelled = body_of(named) | {"server": body_of(named)["server"] + "/"}
    assert plugin(named, *words, info=asked(spelled)).code == 0
    alone = body_of(named) | {"certificate-authority-data": base64.b64encode(other + b"x").decode()}
    assert plugin(named, *words, info=asked(alone)).code == 0
    foreign = other.replace(b"MIIB", b"MIIC")
    wider = body_of(named) | {"certificate-authority-data": base64.b64encode(own + foreign).decode()}
    assert plugin(named, *words, info=asked(wider)).code == 1


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ((), 2, "no Secret is named: give --secret NAMESPACE/NAME"),
        (("--secret", "name"), 2, "no Secret is named"),
        (("--secret", "a/b/c"), 2, "no Secret is named"),
        (("--secret", "kcp-system/none"), 1, "secret kcp-system/none does not exist at 127.0.0.1"),
        (("--secret", "kcp-system/kubeconfig-one", "--key", "x"), 1, "has no key x; it has: config"),
    ],
)
def test_a_secret_that_is_not_there_is_an_error(named: Fleet, words: tuple[str, ...], code: int, says: str) -> None:
    answer = plugin(named, *words)
    assert (answer.code, answer.out) == (code, "")
    assert says in answer.err


@pytest.mark.parametrize("text", ["[", '{"spec": 1}', '{"apiVersion": "v9"}'])
def test_a_request_that_cannot_be_read_is_an_error(named: Fleet, text: str) -> None:
    result = CliRunner(env={EXEC_INFO: text}).invoke(app, ["credential-plugin", "--secret", "a/b"])
    assert result.exit_code == 1
    assert EXEC_INFO in result.stderr


def test_of_several_keys_the_usual_one_is_taken(named: Fleet) -> None:
    content = encoded(yaml.dump(named.server.kubeconfig_dict(SHOOT)).encode())
    made = {"metadata": {"name": "capi", "namespace": "default"}, "data": {"value": content, "other": "eA=="}}
    named.run(lambda client: client.create(SECRETS, made))
    assert plugin(named, "--secret", "default/capi").code == 0
    odd = {"metadata": {"name": "odd", "namespace": "default"}, "data": {"a": "eA==", "b": "eA=="}}
    named.run(lambda client: client.create(SECRETS, odd))
    assert "has no key that holds a kubeconfig; it has: a, b" in plugin(named, "--secret", "default/odd").err


def test_a_reader_without_permission_gets_nothing(named: Fleet, tmp_path: Path) -> None:
    path = tmp_path / "nobody"
    kubeconfig.write(path, user_kubeconfig(named.server, "root", "nobody"))
    answer = plugin(named, "--secret", "kcp-system/kubeconfig-one", KUBECONFIG=str(path))
    assert (answer.code, answer.out) == (1, "")
    assert 'secrets "kubeconfig-one" is forbidden: User "nobody"' in answer.err


@needs_kubectl
def test_a_plugin_that_would_need_itself_ends(named: Fleet, merged: Path) -> None:
    """The plugin's own kubeconfig names the context that runs the plugin."""
    document = yaml.load(merged.read_bytes())
    arguments = document["users"][0]["user"]["exec"]["args"]
    arguments[arguments.index("--kubeconfig") + 1] = str(merged)
    arguments[arguments.index("--context") + 1] = "one"
    kubeconfig.write(merged, document)
    found = kubectl(merged, "get", "--raw", "/api")  # one request: others are repeated, and the plugin with them
    assert found.returncode == 1
    assert "needs the credential in kcp-system/kubeconfig-one itself" in found.stderr


@needs_kubectl
def test_a_stopped_fleet_is_named_by_kubectl(named: Fleet, merged: Path, tmp_path: Path) -> None:
    from hortus.cli.up.state import RunFile, StateDirectory

    state = StateDirectory(tmp_path / "state")
    state.acquire()
    state.write_run(RunFile(pid=1, server="https://127.0.0.1:1", version="0", started=""))
    shutil.copy(named.folder / "kubeconfig", state.kubeconfig)
    state.release()
    text = merged.read_text().replace(str(named.folder / "kubeconfig"), str(state.kubeconfig))
    merged.write_text(text)
    found = kubectl(merged, "get", "--raw", "/api")  # one request: others are repeated, and the plugin with them
    assert f"error: the fleet in {state.path} is stopped: start it with `hortus up --state-dir" in found.stderr
