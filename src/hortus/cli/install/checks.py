"""Checks of an installation: what is there, what is missing, what it serves, and the fix of each problem.

Before `hortus install` the objects that it would make are judged, afterwards those of the cluster. Nothing is written.
"""

from __future__ import annotations

import asyncio
import base64
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
import orjson

from hortus.cli.flags import FLAGS, check_values
from hortus.cli.install import contents
from hortus.cli.install.leases import rival
from hortus.cli.install.mounted import copy_mounted
from hortus.cli.install.rollout import NOT_TRUSTED, established, rolled_out, why_not_ready
from hortus.cli.install.standards import foreign_definition
from hortus.domains import all_domains
from hortus.engine.configuration import FlagValues
from hortus.engine.flags import FlagError, FlagSet
from hortus.engine.rbac import Permission
from hortus.engine.serving import WEBHOOK_CONFIGURATIONS, is_trusted
from hortus.kube import Client, ConnectionSettings, Resource, yaml
from hortus.kube.errors import Forbidden, KubeError, NotFound
from hortus.kube.kubeconfig import KubeconfigError, Trust, from_untrusted
from hortus.kube.objects import Object

OLDEST_MINOR = 25
"""The first minor version that checks the CEL rules of CRDs by default (KEP-2876)."""
SERVED = "served"
"""The text of the finding about a kind that is reconciled."""
_WEBHOOK_VOLUME = "webhook-certificate"
"""The volume of the chart for a certificate that another program makes."""
_PARALLEL = 8
_SECONDS = 10.0

_CRDS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
_NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
_SECRETS = Resource("", "v1", "secrets", "Secret")
_CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
_DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
_ACCESS_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False
)
_SELF_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)

State = Literal["ok", "warning", "failed"]


class Finding(NamedTuple):
    """The result of one check; `text` of a problem ends with its fix."""

    state: State
    subject: str
    text: str

    def __str__(self) -> str:
        return f"{self.state:<9}{self.subject:<19}{self.text}"


class _Parts(NamedTuple):
    """The objects of the installation that the checks read, of the cluster or, before it, of the chart."""

    deployment: Object
    config: Mapping[str, Any]
    installed: bool


async def check(client: Client, wanted: Sequence[Object], namespace: str) -> AsyncIterator[Finding]:
    """The findings about the installation of the objects `wanted` in `namespace`, in the order of their causes.

    Raises KubeError when the API server does not answer at all.
    """
    yield await _server(client)
    for finding in await _definitions(client, wanted):
        yield finding
    parts = await _parts(client, wanted, namespace)
    values: dict[str, Any] = {}
    for finding in await _configuration(client, parts, namespace, values):
        yield finding
    if not values:
        return
    if values["watch-namespace"]:
        yield await _namespace(client, values["watch-namespace"], "watched namespace", "createWatchNamespace")
    if any(values[flag] for flag in contents.FLEET):
        yield await _namespace(client, values["fleet-namespace"], "fleet's namespace", "rollouts.createNamespace")
    if reason := await rival(client, namespace, values):
        yield Finding("failed", "other operators", reason)
    if values["gardener-kubeconfig-path"]:
        secret = await _secret(client, parts, namespace)
        yield secret.finding
    if values["gardener-kubeconfig-path"] and secret.kubeconfig:
        yield await _garden(secret.kubeconfig, f"garden-{values['gardener-project-name']}", contents.GARDEN)
    if not parts.installed:
        yield Finding("warning", "Deployment", f"not installed in {namespace}; run: hortus install -n {namespace}")
        return
    yield await _permissions(client, parts, values, namespace)
    yield await _rollout(client, parts.deployment)
    if _registers(parts):
        yield await _webhooks(client, parts.deployment["metadata"]["name"], namespace)


async def starting(client: Client, wanted: Sequence[Object], namespace: str) -> AsyncIterator[Finding]:
    """The findings that decide whether the pods start, and which kinds they serve then."""
    parts = await _parts(client, wanted, namespace)
    values: dict[str, Any] = {}
    for finding in await _configuration(client, parts, namespace, values):
        if finding.state != "ok" or finding.text == SERVED:
            yield finding
    secret = (await _secret(client, parts, namespace)).finding
    if secret.state != "ok":
        yield secret


async def _server(client: Client) -> Finding:
    version = orjson.loads((await client.request("GET", "/version")).body)
    name = str(version.get("gitVersion", "unknown"))
    minor = "".join(letter for letter in str(version.get("minor", "")) if letter.isdigit())
    if minor and int(minor) < OLDEST_MINOR:
        return Finding("failed", "API server", f"Kubernetes {name} is older than 1.{OLDEST_MINOR}: upgrade it first")
    return Finding("ok", "API server", f"Kubernetes {name} at {client.host}")


async def _definitions(client: Client, wanted: Sequence[Object]) -> list[Finding]:
    ours = {obj["metadata"]["name"]: obj for obj in wanted if obj["kind"] == _CRDS.kind}
    missing, waiting, poor = [], [], []
    for resource in contents.KINDS:
        name = f"{resource.plural}.{resource.group}"
        try:
            found = await client.get(_CRDS, name)
        except NotFound:
            missing.append(name)
            continue
        if not established(found):
            waiting.append(name)
        foreign = foreign_definition(found, ours.get(name))
        if foreign is not None and foreign.missing:
            poor.append(Finding("warning", "CRDs", f"{name} {foreign}"))
    if missing:
        text = f"{', '.join(missing)} missing; run: hortus install (crds.enabled)"
        return [Finding("failed", "CRDs", text), *poor]
    if waiting:
        text = f"{', '.join(waiting)} not established; see: kubectl describe crd {waiting[0]}"
        return [Finding("failed", "CRDs", text), *poor]
    return [Finding("ok", "CRDs", f"{len(contents.KINDS)} established"), *poor]


async def _parts(client: Client, wanted: Sequence[Object], namespace: str) -> _Parts:
    chart = {obj["kind"]: obj for obj in wanted if obj["kind"] in (_DEPLOYMENTS.kind, _CONFIG_MAPS.kind)}
    deployment, config_map, installed = chart[_DEPLOYMENTS.kind], chart[_CONFIG_MAPS.kind], True
    try:
        deployment = await client.get(_DEPLOYMENTS, deployment["metadata"]["name"], namespace)
        config_map = await client.get(_CONFIG_MAPS, config_map["metadata"]["name"], namespace)
    except NotFound:
        installed = False
    text = (config_map.get("data") or {}).get("config.yaml", "")
    loaded = yaml.load(text.encode())
    return _Parts(deployment, loaded if isinstance(loaded, dict) else {}, installed)


async def _configuration(client: Client, parts: _Parts, namespace: str, values: dict[str, Any]) -> list[Finding]:
    """Judge the flags as the process does, with copies of its files; fills `values`, or leaves it empty."""
    with tempfile.TemporaryDirectory(prefix="hortus-") as folder:
        mounted = await copy_mounted(client, parts.deployment, namespace, Path(folder), parts.config)
        if mounted.problems:
            return [Finding("failed", "mounted files", problem) for problem in mounted.problems]
        config = {
            name: mounted.local(value) if isinstance(value, str) else value for name, value in parts.config.items()
        }
        # A file may also lie where a flag looks for it by default.
        defaults = {flag.name: mounted.local(str(flag.default)) for flag in FLAGS}
        config = {**{name: path for name, path in defaults.items() if mounted.holds(path)}, **config}
        file = Path(folder) / "config.yaml"
        file.write_bytes(yaml.dump(config).encode())
        try:
            chosen = FlagValues(FlagSet(FLAGS), [f"--config={file}"], {}).load()
            check_values(chosen)
        except FlagError as error:
            text = mounted.in_pods(str(error)).replace(str(file), "config")
            return [Finding("failed", "configuration", f"{text}; mend it in the values and install again")]
        values.update(chosen)
        found = [Finding("ok", "configuration", f"{len(parts.config)} flags are set")]
        for domain in all_domains():
            reason = domain.unserved_reason(chosen)
            for resource in domain.kinds():
                served = Finding("ok", resource.kind, SERVED)
                found.append(Finding("warning", resource.kind, f"not served: {reason}") if reason else served)
        return found


async def _namespace(client: Client, namespace: str, subject: str, value: str) -> Finding:
    try:
        await client.get(_NAMESPACES, namespace, metadata_only=True)
    except NotFound:
        return Finding(
            "failed", subject, f"{namespace} is missing; kubectl create namespace {namespace}, or set {value}"
        )
    except Forbidden as error:
        return Finding("warning", subject, f"{namespace} cannot be read by you: {error}")
    return Finding("ok", subject, namespace)


class _Secret(NamedTuple):
    finding: Finding
    kubeconfig: bytes = b""


async def _secret(client: Client, parts: _Parts, namespace: str) -> _Secret:
    volumes = parts.deployment["spec"]["template"]["spec"]["volumes"]
    source = next(volume["secret"] for volume in volumes if volume["name"] == "garden")
    name, key = source["secretName"], source["items"][0]["key"]
    fix = f"kubectl -n {namespace} create secret generic {name} --from-file={key}=garden.yaml"
    try:
        found = await client.get(_SECRETS, name, namespace)
    except NotFound:
        return _Secret(Finding("failed", "Secret", f"{namespace}/{name} is missing; make it: {fix}"))
    except Forbidden:
        return _Secret(Finding("warning", "Secret", f"{namespace}/{name} may not be read by you, so not the garden"))
    value = (found.get("data") or {}).get(key, "")
    if not value:
        return _Secret(Finding("failed", "Secret", f"{namespace}/{name} has no key {key}; replace it: {fix}"))
    return _Secret(Finding("ok", "Secret", f"{namespace}/{name}, key {key}"), base64.b64decode(value))


async def _garden(kubeconfig: bytes, namespace: str, rules: Sequence[Permission]) -> Finding:
    """Ask the garden, as the mounted kubeconfig, for its permissions in the project."""
    try:
        access = from_untrusted(kubeconfig, trust=Trust(plain_http=True), origin="the garden's kubeconfig").access()
    except (KubeconfigError, ValueError) as error:
        return Finding("failed", "garden", f"{error}; take a kubeconfig with a token: docs/production.md")
    settings = ConnectionSettings(timeout=_SECONDS, connect_timeout=_SECONDS)
    async with Client(access, settings=settings) as garden:
        try:
            denied = await _denied(garden, rules, namespace)
        except KubeError as error:
            return Finding("warning", "garden", f"{error} (from here; the pods may reach it)")
    if denied:
        project = namespace.removeprefix("garden-")
        fix = f"hortus --garden-kubeconfig ADMIN install --garden-account {project}"
        more = f" and {len(denied) - 1} more" if denied[1:] else ""
        return Finding("failed", "garden", f"project {project} does not allow {denied[0]}{more}; run: {fix}")
    return Finding("ok", "garden", f"{access.server}, namespace {namespace}")


async def _denied(client: Client, rules: Sequence[Permission], namespace: str, user: str = "") -> list[str]:
    """The requests of `rules` that are denied to `user`, or to the client itself."""
    asked = [
        (rule.group, resource, verb, name)
        for rule in rules
        for resource in rule.resources
        for verb in rule.verbs
        for name in rule.names or ("",)
    ]
    limit = asyncio.Semaphore(_PARALLEL)

    async def ask(group: str, name: str, verb: str, of: str) -> str:
        plural, _, subresource = name.partition("/")
        attributes = {"group": group, "resource": plural, "verb": verb, "namespace": namespace, "name": of}
        spec: Object = {"resourceAttributes": {**attributes, "subresource": subresource}}
        resource = _ACCESS_REVIEWS if user else _SELF_REVIEWS
        if user:
            spec |= {"user": user, "groups": ["system:authenticated", "system:serviceaccounts"]}
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "spec": spec}
        async with limit:
            answer = await client.create(resource, body)
        title = f"{name} {of}" if of else name
        return "" if answer["status"].get("allowed") else f"{verb} {title} in {namespace or 'all namespaces'}"

    return [denied for denied in await asyncio.gather(*(ask(*one) for one in dict.fromkeys(asked))) if denied]


async def _permissions(client: Client, parts: _Parts, values: Mapping[str, Any], namespace: str) -> Finding:
    pod = parts.deployment["spec"]["template"]["spec"]
    user = f"system:serviceaccount:{namespace}:{pod.get('serviceAccountName', 'default')}"
    watched = values["watch-namespace"]
    leases = contents.SHARDING if values["sharding"] else contents.REPLICAS
    try:
        denied = await _denied(client, contents.MANAGEMENT, watched, user)
        if not watched:
            denied += await _denied(client, contents.EVERYWHERE, "", user)
        for place, by_flag in (
            (watched, contents.OPTIONAL),
            (values["fleet-namespace"], contents.FLEET),
            ("", contents.WIDE),
        ):
            chosen = [rule for flag, rules in by_flag.items() if values[flag] for rule in rules]
            denied += await _denied(client, chosen, place, user)
        for found in contents.ELSEWHERE:
            if values[found.flag]:
                place = found.namespace or values[found.namespace_flag]
                denied += await _denied(client, found.permissions, place, user)
        denied += await _denied(client, leases, namespace, user)
        if trusting := values["webhook-configuration"]:
            wide = [msgspec.structs.replace(rule, names=(trusting,)) for rule in contents.WEBHOOKS_WIDE]
            denied += await _denied(client, wide, "", user)
            denied += await _denied(client, contents.WEBHOOKS, namespace, user)
    except Forbidden as error:
        return Finding("warning", "RBAC", f"you may not ask for the account's permissions: {error}")
    if denied:
        return Finding("failed", "RBAC", f"{user} may not {'; '.join(denied)}; run: hortus install -n {namespace}")
    return Finding("ok", "RBAC", f"{user} has its permissions in {watched or 'all namespaces'}")


async def _rollout(client: Client, deployment: Object) -> Finding:
    name = f"{deployment['metadata']['namespace']}/{deployment['metadata']['name']}"
    image = deployment["spec"]["template"]["spec"]["containers"][0]["image"]
    if rolled_out(deployment):
        return Finding("ok", "Deployment", f"{name}, {deployment['spec']['replicas']} replicas of {image}")
    reasons = await why_not_ready(client, deployment)
    text = "; ".join(reasons) if reasons else "see: kubectl describe and kubectl logs of its pods"
    return Finding("failed", "Deployment", f"{name} with {image} is not ready: {text}")


def _registers(parts: _Parts) -> bool:
    """True where the chart registered webhooks: their flags may also be set in `config` for a server without it."""
    name = parts.deployment["metadata"]["name"]
    volumes = parts.deployment["spec"]["template"]["spec"].get("volumes") or ()
    mounted = any(volume["name"] == _WEBHOOK_VOLUME for volume in volumes)
    return mounted or parts.config.get("webhook-configuration") == name


async def _webhooks(client: Client, name: str, namespace: str) -> Finding:
    try:
        found = await client.get(WEBHOOK_CONFIGURATIONS, name)
    except NotFound:
        return Finding("failed", "webhooks", f"{name} is missing; run: hortus install -n {namespace}")
    except Forbidden as error:
        return Finding("warning", "webhooks", f"{name} cannot be read by you: {error}")
    if not is_trusted(found):
        return Finding("failed", "webhooks", f"{name}: {NOT_TRUSTED}")
    return Finding("ok", "webhooks", f"{name}, {len(found['webhooks'])} registered")
