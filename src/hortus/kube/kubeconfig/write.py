"""Making kubeconfigs: a document for one user of one cluster, and merging it into a file of the operator.

A file is written whole under another name in its folder, with mode 0600 from the first byte, then renamed; a crash
leaves the old or the new one.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hortus.kube import yaml
from hortus.kube.kubeconfig.document import KubeconfigError, parse
from hortus.kube.objects import Object
from hortus.kube.secret import Secret


def document(
    name: str,
    server: str,
    *,
    ca: bytes = b"",
    user: str = "",
    token: Secret | None = None,
    certificate: bytes = b"",
    key: Secret | None = None,
    namespace: str = "",
    context: str = "",
) -> Object:
    """A kubeconfig for one user of one cluster, all inline. `user` and `context` default to the cluster's name."""
    user, context = user or name, context or name
    cluster: Object = {"server": server}
    if ca:
        cluster["certificate-authority-data"] = base64.b64encode(ca).decode()
    credentials: Object = {}
    if certificate and key:
        credentials["client-certificate-data"] = base64.b64encode(certificate).decode()
        credentials["client-key-data"] = base64.b64encode(key.reveal().encode()).decode()
    if token:
        credentials["token"] = token.reveal()
    place = {"cluster": name, "user": user} | ({"namespace": namespace} if namespace else {})
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "contexts": [{"name": context, "context": place}],
        "current-context": context,
        "users": [{"name": user, "user": credentials}],
    }


def merge_into(path: str | os.PathLike[str], addition: Object, *, use: bool = True) -> None:
    """Writes the entries of `addition` into the kubeconfig at `path`, as `merged` puts them together.

    Makes the file and its folder when missing. Raises KubeconfigError, the file then as before; OSError.
    """
    target = Path(path).expanduser()
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    target = target.resolve()
    with _locked(target):
        write(target, merged(target, addition, use=use))


def merged(path: Path, addition: Object, *, use: bool = True) -> Object:
    """The document at `path` with the entries of `addition`.

    Everything else in it stays, unknown fields too; comments do not. With `use` its current context becomes that of
    `addition`. Raises KubeconfigError, OSError.
    """
    existing = _existing(path)
    for plural in ("clusters", "contexts", "users"):
        existing[plural] = _joined(existing.get(plural) or [], addition.get(plural) or [])
    if use and addition.get("current-context"):
        existing["current-context"] = addition["current-context"]
    return existing


def write(path: str | os.PathLike[str], content: Object) -> None:
    """Writes a kubeconfig with mode 0600, whole or not at all."""
    target = Path(path)
    descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(yaml.dump(content))
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _existing(target: Path) -> Object:
    try:
        found = yaml.load(target.read_bytes())
    except FileNotFoundError:
        found = None
    except yaml.YamlError as error:
        raise KubeconfigError(f"{target}: {error}; it is left as it is") from None
    parse(found, origin=str(target))
    return found or {"apiVersion": "v1", "kind": "Config"}


def _joined(existing: list[Any], addition: list[Any]) -> list[Any]:
    fresh = {item["name"]: item for item in addition}
    kept = [fresh.pop(item["name"], item) for item in existing]
    return kept + list(fresh.values())


@contextlib.contextmanager
def _locked(target: Path) -> Iterator[None]:
    """Lets one process of Hortus write at a time. The lock is on the folder, because the file itself is replaced."""
    descriptor = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
