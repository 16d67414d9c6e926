"""The rules that an OperatingSystemConfig has to keep before a node acts on it.

Gardener checks them when the object is written (pkg/api/extensions/validation/operatingsystemconfig.go of
gardener/gardener). A node checks again: the Secret that brings the configuration is written by somebody else, and a
half-understood configuration is not applied in part. gardenlet leaves name, type and purpose out of that Secret, and a
file there may be empty, since contents of other Secrets are put into it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

from hortus.kube.naming import dns_subdomain
from hortus.nodeagent.inplace import is_version
from hortus.nodeagent.kubeletfile import KUBELET_FILE, kubelet_problems
from hortus.nodeagent.osc import (
    PROVISION,
    RECONCILE,
    ContainerdConfig,
    OperatingSystemConfig,
    OscFile,
    OscUnit,
    PluginOperation,
    RegistryUpstream,
    paths_of,
)

_CAPABILITIES = ("pull", "resolve", "push")
_UNIT_NAME = re.compile(
    r"[A-Za-z0-9:_.\\@-]+\.(service|socket|device|mount|automount|swap|target|path|timer|slice|scope)"
)
"""systemd.unit(5)."""
_MOST_PERMISSIONS = 0o7777
_PORT, _LAST_PORT = re.compile(r"[1-9][0-9]{0,4}"), 65535


def problems(osc: OperatingSystemConfig, *, before: OperatingSystemConfig | None = None) -> list[str]:
    """The rules that `osc` breaks, each with its field; `before` is the configuration that it replaces."""
    return [
        *_purpose_problems(osc, before),
        *_in_place_problems(osc),
        *_containerd_problems(osc),
        *_unit_problems("spec.units", osc.spec.units, osc),
        *_unit_problems("status.extensionUnits", osc.status.extension_units, osc),
        *_file_problems("spec.files", osc.spec.files),
        *_file_problems("status.extensionFiles", osc.status.extension_files),
        *_duplicates((*osc.spec.files, *osc.status.extension_files)),
    ]


def _purpose_problems(osc: OperatingSystemConfig, before: OperatingSystemConfig | None) -> Iterator[str]:
    purpose = osc.spec.purpose or RECONCILE
    if purpose not in (PROVISION, RECONCILE):
        yield f"spec.purpose is {purpose!r}: set it to {PROVISION} or {RECONCILE}"
    if before is None or before.metadata.name != osc.metadata.name:
        return
    was = before.spec.purpose or RECONCILE
    if was != purpose:
        yield f"spec.purpose was {was!r} and cannot change to {purpose!r}: make another configuration"
    if osc.metadata.deletion_timestamp and before.spec != osc.spec:
        yield "spec has changed although the configuration is being deleted: restore it"


def _in_place_problems(osc: OperatingSystemConfig) -> Iterator[str]:
    """The rules for what has to be compared: Gardener's agent ends in an error when it cannot."""
    update = osc.spec.in_place_updates
    if update is None or osc.spec.purpose == PROVISION:
        return
    at = "spec.inPlaceUpdates"
    if not is_version(update.kubelet):
        yield f"{at}.kubelet is {update.kubelet!r}, which is no version: write for example 1.33.1"
    wanted = update.operating_system_version
    if wanted and not is_version(wanted):
        yield f"{at}.operatingSystemVersion is {wanted!r}, which is no version: write for example 1592.4"
    yield from (f"spec.files: {KUBELET_FILE} {problem}" for problem in kubelet_problems(osc))


def _containerd_problems(osc: OperatingSystemConfig) -> Iterator[str]:
    cri = osc.spec.cri_config
    if cri is None or cri.containerd is None:
        return
    at = "spec.criConfig.containerd"
    if osc.spec.purpose == PROVISION:
        yield f"{at} is forbidden with purpose {PROVISION}: remove it"
    if not cri.containerd.sandbox_image:
        yield f"{at}.sandboxImage is empty: name the image of the sandbox"
    yield from _registry_problems(f"{at}.registries", cri.containerd)
    for index, operation in enumerate(cri.containerd.plugins):
        yield from _plugin_problems(f"{at}.plugins[{index}]", operation)


def _registry_problems(at: str, containerd: ContainerdConfig) -> Iterator[str]:
    seen: set[str] = set()
    for index, registry in enumerate(containerd.registries):
        where = f"{at}[{index}]"
        if registry.upstream in seen:
            yield f"{where}.upstream {registry.upstream!r} is there twice: merge the two"
        seen.add(registry.upstream)
        if problem := _upstream_problem(registry.upstream):
            yield f"{where}.upstream {registry.upstream!r} {problem}"
        if registry.server is not None and (problem := _url_problem(registry.server)):
            yield f"{where}.server {registry.server!r} {problem}"
        yield from _host_problems(where, registry)


def _host_problems(where: str, registry: RegistryUpstream) -> Iterator[str]:
    for index, host in enumerate(registry.hosts):
        at = f"{where}.hosts[{index}]"
        if problem := _url_problem(host.url):
            yield f"{at}.url {host.url!r} {problem}"
        for capability in host.capabilities:
            if capability not in _CAPABILITIES:
                yield f"{at}.capabilities has {capability!r}: use {', '.join(_CAPABILITIES)}"


def _upstream_problem(upstream: str) -> str:
    """The reason why a registry cannot have this name: `_default`, or a host with or without a port, is allowed."""
    if upstream == "_default":
        return ""
    host, colon, port = upstream.partition(":")
    if colon and not (_PORT.fullmatch(port) and int(port) <= _LAST_PORT):
        return "has a port that is not one of 1 to 65535: write host or host:port"
    found = dns_subdomain(host)
    return f"is no host name ({found[0]}): write host or host:port" if found else ""


def _url_problem(url: str) -> str:
    try:
        parsed = urlsplit(url)
        host = parsed.hostname
    except ValueError:
        return "is no URL: write https://host"
    if parsed.scheme not in ("http", "https"):
        return "has another scheme than http and https: write https://host"
    return "" if host else "names no host: write https://host"


def _plugin_problems(at: str, operation: PluginOperation) -> Iterator[str]:
    if not operation.path:
        yield f"{at}.path is empty: name the table below plugins"
    if operation.op == "remove":
        if operation.values is not None:
            yield f"{at}.values is forbidden with op remove: remove it"
    elif operation.values is not None and not isinstance(operation.values, dict):
        yield f"{at}.values is not a JSON object: write key and value"


def _unit_problems(at: str, units: Iterable[OscUnit], osc: OperatingSystemConfig) -> Iterator[str]:
    paths = paths_of((*osc.spec.files, *osc.status.extension_files))
    for index, unit in enumerate(units):
        where = f"{at}[{index}]"
        if not unit.name:
            yield f"{where}.name is empty: name the unit"
        elif not _UNIT_NAME.fullmatch(unit.name):
            yield f"{where}.name {unit.name!r} is no name of a unit: write for example kubelet.service"
        for number, drop_in in enumerate(unit.drop_ins):
            place = f"{where}.dropIns[{number}]"
            if not drop_in.name:
                yield f"{place}.name is empty: name the drop-in"
            elif "/" in drop_in.name:
                yield f"{place}.name {drop_in.name!r} is no name of a file: write for example 10-limits.conf"
            if not drop_in.content:
                yield f"{place}.content is empty: write it, or remove the drop-in"
        for number, path in enumerate(unit.file_paths):
            if path not in paths:
                yield f"{where}.filePaths[{number}] {path!r} is no file of the configuration: add the file"


def _file_problems(at: str, files: Iterable[OscFile]) -> Iterator[str]:
    for index, file in enumerate(files):
        where = f"{at}[{index}]"
        if not file.path:
            yield f"{where}.path is empty: name the file"
        elif not file.path.startswith("/") or ".." in file.path.split("/"):
            yield f"{where}.path {file.path!r} is not absolute: begin with / and do without .."
        if file.host_name is not None and (found := dns_subdomain(file.host_name)):
            yield f"{where}.hostName {file.host_name!r} is no host name ({found[0]}): name the host, or leave it out"
        if not 0 <= file.mode <= _MOST_PERMISSIONS:
            yield f"{where}.permissions {file.mode} is more than octal 7777: write for example 0644"
        yield from _content_problems(f"{where}.content", file)


def _content_problems(at: str, file: OscFile) -> Iterator[str]:
    content = file.content
    sources = [each for each in (content.inline, content.secret_ref, content.image_ref) if each is not None]
    if len(sources) != 1:
        yield f"{at} has {len(sources)} sources: give one of inline, secretRef and imageRef"
    if content.inline is not None:
        if content.inline.encoding not in ("", "b64"):
            yield f"{at}.inline.encoding is {content.inline.encoding!r}: set it to b64, or leave it empty"
        else:
            try:
                content.inline.decoded()
            except ValueError as error:
                yield f"{at}.inline.data {error}: encode it again"
    if content.secret_ref is not None and not (content.secret_ref.name and content.secret_ref.data_key):
        yield f"{at}.secretRef has no name or no dataKey: give both"
    if content.image_ref is not None and not (content.image_ref.image and content.image_ref.file_path_in_image):
        yield f"{at}.imageRef has no image or no filePathInImage: give both"


def _duplicates(files: Iterable[OscFile]) -> Iterator[str]:
    """Several files of one path are for several hosts; one without a host name stands for all of them."""
    hosts: defaultdict[str, list[str | None]] = defaultdict(list)
    for file in files:
        if file.path:
            hosts[file.path].append(file.host_name)
    for path, named in hosts.items():
        if len(named) > 1 and (None in named or len(set(named)) < len(named)):
            yield f"path {path!r} is there {len(named)} times: give each file a hostName of its own, or merge them"
