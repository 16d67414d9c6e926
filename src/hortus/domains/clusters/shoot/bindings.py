"""The binding to the credentials for the provider (GEP-26): by SecretBinding, or by CredentialsBinding.

Gardener forbids SecretBindings from Kubernetes 1.34 on and moves such Shoots itself when it raises them by force. A
CredentialsBinding that a Shoot has stays, whatever the Runtime says: another one may lead to another account.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hortus.domains.clusters.configuration import Configuration
from hortus.domains.clusters.shoot.context import Context
from hortus.domains.clusters.shoot.kubernetes import version
from hortus.domains.clusters.shoot.live import LiveShoot
from hortus.domains.clusters.types import Runtime
from hortus.gardener.shoots.fields import OLD_BINDING, is_forbidden
from hortus.kube import Object
from hortus.schema import FieldError
from hortus.schema.problems import invalid

PATH: Final = "spec.shoot.secretBindingName"
FORCE_MIGRATED: Final = "force-migrated-"
"""Beginning of the names of CredentialsBindings that Gardener makes of SecretBindings.

Source: gardener/gardener, pkg/controllermanager/controller/shoot/maintenance/reconciler.go.
"""


def binding(runtime: Runtime, config: Configuration, context: Context, live: LiveShoot | None = None) -> Object:
    """The field of a Shoot's spec that names the binding."""
    name = runtime.wanted.shoot.secret_binding_name
    if not by_credentials_binding(runtime, config, live):
        return {"secretBindingName": name}
    present = live.spec.credentials_binding_name if live is not None else ""
    return {"credentialsBindingName": present or context.credentials_binding or name}


def by_credentials_binding(runtime: Runtime, config: Configuration, live: LiveShoot | None = None) -> bool:
    """True when the Shoot names a CredentialsBinding: by the configuration, where it has one, or by its version."""
    if config.converter.gardener.credentials_binding or (live is not None and live.spec.credentials_binding_name):
        return True
    return is_forbidden(OLD_BINDING, version(runtime, config, live))


def leaves_secret_binding(runtime: Runtime, config: Configuration, live: LiveShoot) -> bool:
    """True when a patch replaces the SecretBinding of a live Shoot by a CredentialsBinding."""
    return bool(live.spec.secret_binding_name) and by_credentials_binding(runtime, config, live)


def binding_problems(runtime: Runtime, config: Configuration, live: LiveShoot) -> Iterator[FieldError]:
    """A SecretBinding cannot be changed but for a CredentialsBinding."""
    wanted, present = runtime.wanted.shoot.secret_binding_name, live.spec.secret_binding_name
    if present and wanted != present and not by_credentials_binding(runtime, config, live):
        yield invalid(PATH, wanted, f"cannot be changed; the shoot has {present}")


def binding_remarks(runtime: Runtime, live: LiveShoot) -> Iterator[FieldError]:
    wanted, present = runtime.wanted.shoot.secret_binding_name, live.spec.credentials_binding_name
    if present and present not in (wanted, f"{FORCE_MIGRATED}{wanted}"):
        yield invalid(PATH, wanted, f"the shoot has the CredentialsBinding {present}, which stays")
