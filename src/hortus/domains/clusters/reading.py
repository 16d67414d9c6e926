"""Documents as structs: the one place of this domain that looks into objects as servers send them.

Runtimes are read as far as they can be: one with a spec that has not the shape of its kind, as a newer release of the
Go system may write it, is read without that spec, so that it is reported and can be deleted.
"""

from __future__ import annotations

from typing import Any

import msgspec

from hortus.domains.clusters.types import Runtime, RuntimeSpec, RuntimeStatus
from hortus.domains.credentials.types import GardenerClusterStatus
from hortus.engine import metadata_of
from hortus.kube.objects import Object, shaped


class _Name(msgspec.Struct):
    name: str


class _Shoot(msgspec.Struct):
    shoot: _Name


class _Naming(msgspec.Struct):
    spec: _Shoot


class _Connected(msgspec.Struct):
    status: GardenerClusterStatus | None = None


class _ConfigMap(msgspec.Struct):
    data: dict[str, str] | None = None


class _Free(msgspec.Struct):
    spec: Any = None


def runtime_of(document: Object) -> Runtime:
    """The Runtime of a document, without a spec or a status that has not the shape of its kind."""
    return Runtime(
        metadata=metadata_of(document),
        spec=shaped(document.get("spec"), RuntimeSpec),
        status=shaped(document.get("status"), RuntimeStatus),
    )


def head_of(document: Object) -> Runtime:
    """The Runtime of a document with its metadata alone: enough for its id, in a fraction of the time."""
    return Runtime(metadata=metadata_of(document))


def shoot_name_of(document: Object) -> str:
    """The name of the Shoot in the spec of a Runtime or GardenerCluster, whatever else it holds; empty without one."""
    found = shaped(document, _Naming)
    return "" if found is None else found.spec.shoot.name


def spec_problem(document: Object) -> str:
    """The reason why a Runtime is read without a spec, for people; empty when it has one."""
    if not document.get("spec"):
        return "spec: Required value"
    try:
        msgspec.convert(document["spec"], RuntimeSpec)
    except msgspec.ValidationError as error:
        return f"spec: {error}"
    return ""


def connection_of(document: Object) -> str:
    """The state of a GardenerCluster; empty before it has one."""
    found = shaped(document, _Connected)
    return found.status.state if found is not None and found.status is not None else ""


def config_map_data(document: Object) -> dict[str, str]:
    """The data of a ConfigMap; empty when it has none, or no texts."""
    found = shaped(document, _ConfigMap)
    return (found.data if found is not None else None) or {}


def free_spec(document: Object) -> Any:
    """The spec of an object whose kind is defined by others, whatever it is; None when it has none."""
    found = shaped(document, _Free)
    return None if found is None else found.spec
