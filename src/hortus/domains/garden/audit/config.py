"""The configuration of auditing, read from the Shoot as the Go extension has it, and checked. Pure.

apiVersion: audit.metal.extensions.gardener.cloud/v1alpha1
kind: AuditConfig
webhookMode: blocking-strict
backends:
  splunk: {enabled: true, index: audit, host: splunk.example.org, port: "8088", secretResourceName: splunk}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from hortus.domains.garden.audit.backends import BackendReader
from hortus.domains.garden.audit.names import API_VERSION, KIND
from hortus.domains.garden.audit.plan import EVENT_MARGIN, LARGEST_EVENT, MODES, AuditPlan
from hortus.kube.quantities import Quantity, QuantityError
from hortus.schema import FieldError
from hortus.schema.problems import invalid, not_supported, type_invalid


class ReadAudit(msgspec.Struct, frozen=True):
    """A configuration as far as it can be read, and the problems with it."""

    plan: AuditPlan
    errors: tuple[FieldError, ...] = ()
    warnings: tuple[str, ...] = ()


class _Fields(msgspec.Struct, rename="camel"):
    pass


class _WrittenConfig(_Fields):
    api_version: Any = None
    kind: Any = None
    persistence: Any = None
    replicas: Any = None
    webhook_mode: Any = None
    messages: Any = None
    backends: Any = None


class _WrittenPersistence(_Fields):
    size: Any = None
    storage_class_name: Any = None


class _WrittenMessages(_Fields):
    max_event_size: Any = None


def read_audit(config: Any, path: str) -> ReadAudit:
    """Read and check a configuration at `path`; without one all is as by default."""
    if config is None:
        return ReadAudit(AuditPlan())
    if not isinstance(config, Mapping):
        return ReadAudit(AuditPlan(), (type_invalid(path, config, "must be an object"),))
    reader = _Reader()
    written = reader.struct(config, _WrittenConfig, path)
    for key, value, expected in (("apiVersion", written.api_version, API_VERSION), ("kind", written.kind, KIND)):
        if value != expected:
            reader.errors.append(not_supported(f"{path}.{key}", value, [expected]))
    plan = AuditPlan(
        mode=reader.mode(written.webhook_mode, f"{path}.webhookMode"),
        replicas=reader.number(written.replicas, f"{path}.replicas", 2, least=1, most=10),
        largest_event=reader.largest(written.messages, f"{path}.messages"),
        backends=reader.backends(written.backends, f"{path}.backends"),
        **reader.persistence(written.persistence, f"{path}.persistence"),
    )
    return ReadAudit(plan, tuple(reader.errors), tuple(reader.warnings))


class _Reader(BackendReader):
    def mode(self, value: Any, path: str) -> str:
        """The mode; one that is not known means the default, as in the Go extension."""
        if value is None or value == "":
            return ""
        if value not in MODES:
            self.warnings.append(f"{path}: {value!r} is no mode, the default counts; there are: {', '.join(MODES)}")
            return ""
        return str(value)

    def number(self, value: Any, path: str, default: int, *, least: int, most: int) -> int:
        if value is None:
            return default
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            self.errors.append(invalid(path, value, f"must be a whole number from {least} to {most}"))
            return default
        return value

    def largest(self, value: Any, path: str) -> int:
        written = self.struct({} if value is None else value, _WrittenMessages, path)
        place = f"{path}.maxEventSize"
        return self.number(written.max_event_size, place, LARGEST_EVENT, least=EVENT_MARGIN + 1, most=LARGEST_EVENT)

    def persistence(self, value: Any, path: str) -> dict[str, Any]:
        written = self.struct({} if value is None else value, _WrittenPersistence, path)
        size = AuditPlan().size
        if written.size is not None:
            try:
                known = Quantity.parse(str(written.size)).value() > 0
            except QuantityError:
                known = False
            if known:
                size = str(written.size)
            else:
                self.errors.append(invalid(f"{path}.size", written.size, "must be a quantity above 0, such as 10Gi"))
        return {"size": size, "storage_class": self.text(written.storage_class_name, f"{path}.storageClassName")}
