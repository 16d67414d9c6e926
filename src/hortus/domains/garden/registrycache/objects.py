"""The objects of one cache in the Shoot: Service, StatefulSet, configuration and certificate. Pure.

Contract: gardener-extension-registry-cache, pkg/component/registrycaches.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Final

import msgspec

from hortus.domains.garden.extension.certificates import ShootPair
from hortus.domains.garden.registrycache.config import RegistryCache
from hortus.domains.garden.registrycache.names import (
    DEBUG_PORT,
    NAMESPACE,
    PORT,
    REMOTE_NOTE,
    UPSTREAM_LABEL,
    UPSTREAM_NOTE,
)
from hortus.kube import durations, yaml
from hortus.kube.objects import Object

CONFIG_FILE: Final = "config.yml"
_CERTIFICATES: Final = "/etc/distribution/certs"
_ALLOWED: Final = "allowed"
_PORT_NAME: Final = "registry-cache"


class CacheCredentials(msgspec.Struct, frozen=True):
    """A user of the registry."""

    username: str
    password: str


def service(cache: RegistryCache) -> Object:
    """The Service, whose address nodes call: they have no DNS of the cluster."""
    labels = _labels(cache)
    port = {"name": _PORT_NAME, "port": PORT, "protocol": "TCP", "targetPort": _PORT_NAME}
    notes = {UPSTREAM_NOTE: cache.upstream, REMOTE_NOTE: cache.url}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": cache.name, "namespace": NAMESPACE, "labels": labels, "annotations": notes},
        "spec": {"type": "ClusterIP", "selector": labels, "ports": [port]},
    }


def cache_objects(
    cache: RegistryCache, *, image: str, credentials: CacheCredentials | None, pair: ShootPair | None
) -> tuple[Object, ...]:
    """All objects of a cache; `pair` is the certificate by which it serves."""
    config = _secret(cache, "config", {CONFIG_FILE: configuration(cache, credentials, tls=pair is not None).encode()})
    made = [config]
    tls = None
    if pair is not None:
        values = {"tls.crt": pair.certificate, "tls.key": pair.key.reveal().encode()}
        tls = _secret(cache, "tls", values)
        made.append(tls)
    bodies = [one.body for one in made]
    found = (*bodies, service(cache), _stateful_set(cache, image, config.name, tls.name if tls is not None else ""))
    return (*found, _budget(cache)) if cache.available else found


def configuration(cache: RegistryCache, credentials: CacheCredentials | None, *, tls: bool) -> str:
    """The configuration of distribution, the program of the cache."""
    proxy: Object = {"remoteurl": cache.url, "ttl": durations.from_seconds(cache.ttl)}
    if credentials is not None:
        proxy |= {"username": credentials.username, "password": credentials.password}
    http: Object = {
        "addr": f":{PORT}",
        "debug": {"addr": f":{DEBUG_PORT}", "prometheus": {"enabled": True, "path": "/metrics"}},
        "draintimeout": "25s",
        "headers": {"X-Content-Type-Options": ["nosniff"]},
    }
    if tls:
        http["tls"] = {"certificate": f"{_CERTIFICATES}/tls.crt", "key": f"{_CERTIFICATES}/tls.key"}
    return yaml.dump(
        {
            "version": "0.1",
            "log": {"fields": {"service": "registry"}},
            "storage": {
                "delete": {"enabled": True},
                "cache": {"blobdescriptor": "inmemory"},
                "filesystem": {"rootdirectory": "/var/lib/registry"},
                "tag": {"concurrencylimit": 5},
            },
            "http": http,
            "health": {"storagedriver": {"enabled": True, "interval": "10s", "threshold": 3}},
            "proxy": proxy,
        }
    )


class _CacheSecret(msgspec.Struct, frozen=True):
    name: str
    body: Object


def _secret(cache: RegistryCache, part: str, values: Mapping[str, bytes]) -> _CacheSecret:
    """An immutable Secret whose name follows from its content, so that another content makes other pods."""
    data = {key: base64.b64encode(value).decode() for key, value in values.items()}
    digest = hashlib.sha256(repr(sorted(data.items())).encode()).hexdigest()[:8]
    name = f"{cache.name}-{part}-{digest}"
    metadata = {"name": name, "namespace": NAMESPACE, "labels": _labels(cache)}
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data, "immutable": True}
    return _CacheSecret(name, body)


def _stateful_set(cache: RegistryCache, image: str, config: str, tls: str) -> Object:
    labels = _labels(cache)
    claim: Object = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": cache.size}}}
    if cache.storage_class:
        claim["storageClassName"] = cache.storage_class
    own = {"resources.gardener.cloud/high-availability-config.type": "server"} if cache.available else {}
    pod_labels = {
        **labels,
        "networking.gardener.cloud/to-dns": _ALLOWED,
        "networking.gardener.cloud/to-public-networks": _ALLOWED,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": cache.name, "namespace": NAMESPACE, "labels": {**labels, **own}},
        "spec": {
            "serviceName": cache.name,
            "replicas": 2 if cache.available else 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": pod_labels}, "spec": _pod(cache, image, config, tls)},
            "volumeClaimTemplates": [{"metadata": {"name": "cache-volume", "labels": labels}, "spec": claim}],
        },
    }


def _pod(cache: RegistryCache, image: str, config: str, tls: str) -> Object:
    proxies = {"HTTP_PROXY": cache.http_proxy, "HTTPS_PROXY": cache.https_proxy}
    # distribution 3 looks for a collector of traces unless a variable says that there is none.
    variables = {"OTEL_TRACES_EXPORTER": "none", **{name: one for name, one in proxies.items() if one}}
    mounts = [
        {"name": "cache-volume", "mountPath": "/var/lib/registry"},
        {"name": "config-volume", "mountPath": "/etc/distribution"},
    ]
    volumes: list[Object] = [{"name": "config-volume", "secret": {"secretName": config}}]
    if tls:
        mounts.append({"name": "certs-volume", "mountPath": _CERTIFICATES})
        volumes.append({"name": "certs-volume", "secret": {"secretName": tls}})
    container: Object = {
        "name": "registry-cache",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "env": [{"name": name, "value": value} for name, value in variables.items()],
        "ports": [
            {"name": _PORT_NAME, "containerPort": PORT},
            {"name": "debug", "containerPort": DEBUG_PORT},
        ],
        "livenessProbe": {**_probe(), "failureThreshold": 6},
        "readinessProbe": {**_probe(), "failureThreshold": 3},
        "resources": {"requests": {"cpu": "20m", "memory": "50Mi"}},
        "securityContext": {"allowPrivilegeEscalation": False},
        "volumeMounts": mounts,
    }
    return {
        "automountServiceAccountToken": False,
        "priorityClassName": "system-cluster-critical",
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
        "volumes": volumes,
    }


def _probe() -> Object:
    return {"httpGet": {"path": "/debug/health", "port": DEBUG_PORT}, "periodSeconds": 20}


def _budget(cache: RegistryCache) -> Object:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": cache.name, "namespace": NAMESPACE, "labels": _labels(cache)},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": _labels(cache)}},
    }


def _labels(cache: RegistryCache) -> dict[str, str]:
    return {"app": cache.name, UPSTREAM_LABEL: cache.label}
