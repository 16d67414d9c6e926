"""`hortus credential-plugin`: the exec plugin by which kubectl and other clients get the credential in a Secret.

It reads with the caller's own connection to the management cluster, so a client gets what its caller may read.
"""

from __future__ import annotations

import base64
import binascii
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from hortus.terminal import CommandError, CommandGroup, Connections, run
from hortus.terminal.kubeconfigs import PLUGIN

if TYPE_CHECKING:
    from hortus.kube import Client
    from hortus.kube.kubeconfig.plugin import SecretSettings

_RUNNING = "HORTUS_CREDENTIAL_PLUGIN"
"""Environment variable of the plugins that run above this one: each as NAMESPACE/NAME, separated by commas."""
_KEYS = ("config", "kubeconfig", "value")
"""Keys under which kubeconfigs stand by convention: Kyma's, Hortus' own, Cluster API's."""


def register(app: CommandGroup, connect: Callable[[], Connections]) -> None:
    @app.command(name=PLUGIN, panel="Clusters")
    @click.option("--secret", default="", metavar="NAMESPACE/NAME", help="The Secret with the kubeconfig.")
    @click.option(
        "--key", default="", help="Key of its data.", show_default=f"the only one, else one of {', '.join(_KEYS)}"
    )
    def credential_plugin(secret: str, key: str) -> None:
        """Print the credential in a Secret as an ExecCredential, for kubectl and all clients with exec plugins.

        `hortus kubeconfig NAME --exec` writes kubeconfigs that run it. Programs that find clusters in API objects pass
        the Secret in the extension client.authentication.k8s.io/exec of the cluster: {secret: {namespace, name, key}}.
        A credential is handed out only for the server and the CA of its own kubeconfig.
        """
        run(_print_credential(connect(), secret, key))


async def _print_credential(connections: Connections, secret: str, key: str) -> None:
    import orjson

    from hortus.kube.kubeconfig import ExecRequest, exec_credential, from_untrusted
    from hortus.kube.kubeconfig.plugin import EXEC_INFO

    request = ExecRequest.parse(os.environ.get(EXEC_INFO, ""))
    wanted = _settings(secret, key, request.settings.secret)
    origin = f"secret {wanted.namespace}/{wanted.name}"
    with _outside_of_itself(f"{wanted.namespace}/{wanted.name}"):
        async with connections.management() as client:
            content = await _content(client, wanted, origin)
    access = request.context_of(from_untrusted(content, origin=origin), origin)
    answer = exec_credential(request, access, origin=origin, now=time.time())
    click.echo(orjson.dumps(answer).decode())


def _settings(secret: str, key: str, given: SecretSettings) -> SecretSettings:
    """The settings of the arguments, else those of the client. Raises UsageError."""
    from hortus.kube.kubeconfig.plugin import SecretSettings

    if secret:
        namespace, _, name = secret.partition("/")
        given = SecretSettings(namespace, name)
    if not given.namespace or not given.name or "/" in given.name:
        raise CommandError(
            "no Secret is named: give --secret NAMESPACE/NAME, or have the client pass secret.namespace and "
            "secret.name in the extension client.authentication.k8s.io/exec of its cluster",
            code=2,
        )
    return SecretSettings(given.namespace, given.name, key or given.key)


@contextmanager
def _outside_of_itself(secret: str) -> Iterator[None]:
    """Raises CommandError if the plugin's own connection needs this very plugin; else it would start itself forever."""
    before = os.environ.get(_RUNNING, "")
    above = [name for name in before.split(",") if name]
    if secret in above:
        raise CommandError(
            f"the connection to the management cluster needs the credential in {secret} itself: name another with "
            "--kubeconfig and --context"
        )
    os.environ[_RUNNING] = ",".join((*above, secret))
    try:
        yield
    finally:
        os.environ[_RUNNING] = before


async def _content(client: Client, wanted: SecretSettings, origin: str) -> bytes:
    """The kubeconfig in a Secret. Raises CommandError, KubeError."""
    from hortus.kube.errors import NotFound
    from hortus.kube.objects import Resource

    try:
        found = await client.get(Resource("", "v1", "secrets", "Secret"), wanted.name, wanted.namespace)
    except NotFound:
        raise CommandError(f"{origin} does not exist at {client.host}: is the cluster gone?") from None
    data: Mapping[str, str] = found.get("data") or {}
    key = wanted.key or _usual_key(data)
    if not data.get(key):
        keys = ", ".join(data) or "none"
        raise CommandError(f"{origin} has no key {key or 'that holds a kubeconfig'}; it has: {keys}")
    try:
        return base64.b64decode(data[key], validate=True)
    except (binascii.Error, ValueError):
        raise CommandError(f"{origin}: key {key} is not base64") from None


def _usual_key(data: Mapping[str, str]) -> str:
    if len(data) == 1:
        return next(iter(data))
    return next((key for key in _KEYS if key in data), "")
