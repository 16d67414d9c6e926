"""The operator's own kubeconfig: files on this machine, trusted in full (exec plugins, file paths, proxies).

Rules are those of kubectl: explicit paths, else the list in $KUBECONFIG, else ~/.kube/config. Of several files the
first to name an entry or the current context wins; files of a list that do not exist are passed over.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from ipaddress import ip_address, ip_network
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from hortus.kube import yaml
from hortus.kube.access import Access, Credentials
from hortus.kube.kubeconfig.document import Kubeconfig, KubeconfigError, parse
from hortus.kube.secret import Secret

_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def default_paths(environment: Mapping[str, str] | None = None) -> list[Path]:
    """The files that kubectl reads by default."""
    environment = os.environ if environment is None else environment
    listed = [part for part in environment.get("KUBECONFIG", "").split(os.pathsep) if part]
    if listed:
        return [Path(part).expanduser() for part in dict.fromkeys(listed)]
    return [Path.home() / ".kube" / "config"]


def default_file(environment: Mapping[str, str] | None = None) -> Path:
    """The file that kubectl writes to by default: of several the first that exists, or else the last."""
    paths = default_paths(environment)
    return next((path for path in paths if path.exists()), paths[-1])


def load(*paths: str | os.PathLike[str], environment: Mapping[str, str] | None = None) -> Kubeconfig:
    """The merged kubeconfig of these files, which must exist, or of the default ones. Raises KubeconfigError."""
    if paths:
        return merge(_read(Path(path).expanduser()) for path in paths)
    wanted = default_paths(environment)
    found = [path for path in wanted if path.exists()]
    if not found:
        listed = ", ".join(map(str, wanted))
        raise KubeconfigError(f"no kubeconfig at {listed}: set KUBECONFIG or name a file")
    return merge(_read(path) for path in found)


def merge(parts: Iterable[Kubeconfig]) -> Kubeconfig:
    """Merges several kubeconfigs; the first to name an entry wins."""
    found = list(parts)
    backwards = found[::-1]
    return Kubeconfig(
        {name: entry for part in backwards for name, entry in part.clusters.items()},
        {name: entry for part in backwards for name, entry in part.users.items()},
        {name: entry for part in backwards for name, entry in part.contexts.items()},
        next((part.current_context for part in found if part.current_context), ""),
    )


def through_proxy(access: Access, environment: Mapping[str, str] | None = None) -> Access:
    """`access` through the proxy that HTTPS_PROXY, HTTP_PROXY and NO_PROXY ask for, unless it names its own.

    As with Go programs, this machine itself is never reached through a proxy.
    """
    environment = os.environ if environment is None else environment
    url = urlsplit(access.server)
    host = url.hostname or ""
    proxy = environment.get(f"{url.scheme.upper()}_PROXY") or environment.get(f"{url.scheme}_proxy")
    if access.proxy_url or not proxy or host == "localhost" or _loopback(host):
        return access
    excluded = environment.get("NO_PROXY") or environment.get("no_proxy") or ""
    if _excluded(host, url.port, excluded):
        return access
    return msgspec.structs.replace(access, proxy_url=Secret(proxy if "://" in proxy else f"http://{proxy}"))


def _loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _excluded(host: str, port: int | None, listed: str) -> bool:
    """NO_PROXY as Go reads it: names with all below them, `.name` for those below alone, addresses, networks, `*`."""
    for part in filter(None, (part.strip().lower() for part in listed.split(","))):
        name, _, wanted = part.partition(":") if part.count(":") == 1 else (part, "", "")
        if wanted and wanted != str(port):
            continue
        if name == "*" or host == name or host.endswith(name if name.startswith(".") else "." + name):
            return True
        try:
            if ip_address(host) in ip_network(name, strict=False):
                return True
        except ValueError:
            continue
    return False


def _read(path: Path) -> Kubeconfig:
    try:
        text = path.read_bytes()
    except OSError as error:
        raise KubeconfigError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        document = yaml.load(text)
    except yaml.YamlError as error:
        raise KubeconfigError(f"{path}: {error}") from None
    return parse(document, origin=str(path), folder=path.absolute().parent)


def in_cluster(
    *, folder: str | os.PathLike[str] = _SERVICE_ACCOUNT, environment: Mapping[str, str] | None = None
) -> Access:
    """The `Access` of the pod this process runs in: its service account's token (re-read as it rotates) and CA.

    Raises KubeconfigError outside of a pod.
    """
    environment = os.environ if environment is None else environment
    host, port = environment.get("KUBERNETES_SERVICE_HOST", ""), environment.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise KubeconfigError("not in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
    mount = Path(folder)
    try:
        ca = (mount / "ca.crt").read_bytes()
        (mount / "token").stat()
    except OSError as error:
        raise KubeconfigError(f"in a pod, but without a service account: {error.filename}: {error.strerror}") from None
    namespace = mount / "namespace"
    return Access(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        ca=ca,
        namespace=namespace.read_text().strip() if namespace.exists() else "default",
        credentials=Credentials(token_file=str(mount / "token")),
    )
