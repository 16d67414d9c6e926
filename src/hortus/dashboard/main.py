"""The program `hortus-dashboard`: `serve` for a cluster's users, `open` for the person at this machine.

`hortus up` starts the first as one of its processes, and the chart as a Deployment; `hortus ui` starts the second.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
import webbrowser
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from hortus.dashboard.health.sources import AddressSource, MetricsSource, pod_source
from hortus.dashboard.oidc import OidcProvider, OidcSettings
from hortus.dashboard.server import Dashboard
from hortus.dashboard.serving import (
    Entrance,
    TicketRefused,
    entrance,
    listening,
    origins_of,
    own_origin,
    settings_for,
    ticket_of,
    tickets_at,
    tls_context,
)
from hortus.dashboard.viewers import ViewerCredential
from hortus.domains import free_port
from hortus.engine import process
from hortus.engine.logging import LogSettings, configure_logging
from hortus.kube import Access, Secret
from hortus.kube.clock import SystemClock
from hortus.kube.kubeconfig import KubeconfigError, in_cluster, load

SOCKET = "dashboard.sock"
"""In the state directory of `hortus up`: gives tickets to its owner."""
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_PODS = "hortus-system/app.kubernetes.io/name=hortus,app.kubernetes.io/component=controllers:8080"
"""The pods of the controllers where the chart is installed in its usual namespace, and their port."""
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def app() -> None:
    """The web dashboard of a fleet. It has no power of its own: everything is done with the viewer's credential."""


@app.command()
@click.option(
    "--kubeconfig", type=_FILE, help="The management cluster: address and trust are read, credentials never.",
    show_default="the cluster of the pod, as the pod's account knows it",
)  # fmt: skip
@click.option("--context", default="", help="A context of that kubeconfig.")
@click.option(
    "--certificate-authority",
    type=_FILE,
    help="PEM file that the API server of the pod's cluster is trusted by; no token of the pod is needed or read.",
)
@click.option("--listen", default="127.0.0.1", metavar="ADDRESS", help="Address to listen on.", show_default=True)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port; 0 takes any free one.", show_default=True)
@click.option("--tls-cert-file", type=_FILE, help="PEM certificate for browsers.")
@click.option("--tls-key-file", type=_FILE, help="PEM private key of that certificate.")
@click.option(
    "--public-url", multiple=True, metavar="URL",
    help="Scheme and host by which browsers come, such as https://hortus.example.org. May be repeated.",
)  # fmt: skip
@click.option(
    "--metrics-from", multiple=True, metavar="ADDRESS",
    help="Metrics of a replica of the controllers, for the page of health: http://HOST:PORT, or unix:/PATH of a "
    "socket. May be repeated. Viewers need permission to get the path /metrics.",
)  # fmt: skip
@click.option(
    "--metrics-pods", metavar="NAMESPACE/SELECTOR:PORT",
    help="Pods of the controllers, whose metrics are read through the API server with the credential of the viewer, "
    "who needs permission to list pods and to get pods/proxy.",
)  # fmt: skip
@click.option(
    "--oidc-issuer-url", metavar="URL",
    help="OpenID Connect provider by which viewers may sign in; the API server must accept its ID tokens.",
)  # fmt: skip
@click.option("--oidc-client-id", default="", metavar="ID", help="The dashboard as a client of that provider.")
@click.option("--oidc-client-secret-file", type=_FILE, help="File with the client's secret; none for a public client.")
@click.option(
    "--oidc-scope", multiple=True, default=("email", "groups", "offline_access"), show_default=True, metavar="SCOPE",
    help="Scope that is asked for besides openid. May be repeated; offline_access lets sessions outlive an ID token.",
)  # fmt: skip
@click.option("--oidc-ca-file", type=_FILE, help="PEM file that the provider is trusted by, in place of the system's.")
@click.option("--state-dir", type=click.Path(path_type=Path), hidden=True)
@click.option("--supervised", is_flag=True, hidden=True)
def serve(
    kubeconfig: Path | None,
    context: str,
    certificate_authority: Path | None,
    listen: str,
    port: int,
    tls_cert_file: Path | None,
    tls_key_file: Path | None,
    public_url: tuple[str, ...],
    metrics_from: tuple[str, ...],
    metrics_pods: str | None,
    oidc_issuer_url: str | None,
    oidc_client_id: str,
    oidc_client_secret_file: Path | None,
    oidc_scope: tuple[str, ...],
    oidc_ca_file: Path | None,
    state_dir: Path | None,
    supervised: bool,
) -> None:
    """Serve the dashboard to those who can sign in to the management cluster."""
    configure_logging(LogSettings())
    if (tls_cert_file is None) != (tls_key_file is None):
        raise click.UsageError("--tls-cert-file and --tls-key-file belong together: give both, or none")
    _check_listening(listen, bool(tls_cert_file), public_url)
    try:
        access = load(kubeconfig).access(context) if kubeconfig is not None else _cluster_of_pod(certificate_authority)
        tls = tls_context(tls_cert_file, tls_key_file) if tls_cert_file and tls_key_file else None
    except (KubeconfigError, OSError) as error:
        raise click.ClickException(str(error)) from None

    metrics = _sources(metrics_from, metrics_pods)
    oidc = _provider(oidc_issuer_url, oidc_client_id, oidc_client_secret_file, oidc_scope, oidc_ca_file)

    async def work() -> None:
        port_known = port or free_port()
        try:
            # A certificate is for other names.
            own = own_origin(port_known, state_dir) if tls is None else ""
            origins = origins_of(own, public_url)
        except ValueError as error:
            raise click.ClickException(f"--public-url: {error}") from None
        dashboard = Dashboard(settings_for(access, origins, metrics, oidc))
        address = " and ".join(filter(None, (own, *public_url)))
        async with listening(dashboard, host=listen, port=port_known, tls=tls):
            if state_dir is None:
                await _until_stopped(lambda: _say(supervised, address), supervised=supervised)
                return
            async with tickets_at(state_dir / SOCKET, dashboard, own):
                await _until_stopped(lambda: _say(supervised, address), supervised=supervised)

    _run(work)


@app.command("open")
@click.option("--kubeconfig", type=_FILE, required=True)
@click.option("--context", default="")
@click.option("--garden-kubeconfig", type=_FILE)
@click.option("--garden-namespace", default="")
@click.option("--state-dir", type=click.Path(path_type=Path))
@click.option("--port", type=click.IntRange(0, 65535), default=0)
@click.option("--metrics-pods", default=_PODS)
@click.option("--browser/--no-browser", default=True)
def open_(
    kubeconfig: Path,
    context: str,
    garden_kubeconfig: Path | None,
    garden_namespace: str,
    state_dir: Path | None,
    port: int,
    metrics_pods: str,
    browser: bool,
) -> None:
    """Open the dashboard in a browser, signed in with a credential of a kubeconfig."""
    configure_logging(LogSettings())
    try:
        access = load(kubeconfig).access(context)
        garden = load(garden_kubeconfig).access() if garden_kubeconfig is not None else None
    except (KubeconfigError, OSError) as error:
        raise click.ClickException(str(error)) from None
    credential = ViewerCredential(access, garden, garden_namespace)
    if state_dir is not None and (state_dir / SOCKET).exists():
        try:
            _show(asyncio.run(ticket_of(state_dir / SOCKET, credential, page=browser)))
        except TicketRefused as refused:
            raise click.ClickException(str(refused)) from None
        return
    metrics = _sources((), metrics_pods)
    _run(lambda: _serve_one(access, credential, metrics, port, browser=browser))


async def _serve_one(
    access: Access, credential: ViewerCredential, metrics: Sequence[MetricsSource], port: int, *, browser: bool
) -> None:
    port = port or free_port()
    own = own_origin(port)
    dashboard = Dashboard(settings_for(access, origins_of(own), metrics))

    with tempfile.TemporaryDirectory(prefix="hortus-ui-") as folder:

        def ready() -> None:
            _show(entrance(dashboard, own, credential, Path(folder) if browser else None))
            click.echo("Ctrl-C ends it.", err=True)

        async with listening(dashboard, host="127.0.0.1", port=port):
            await _until_stopped(ready, supervised=False)


def _show(found: Entrance) -> None:
    """Prints the address, and opens a browser with the file that leads there."""
    click.echo(found.address)
    if found.page and not webbrowser.open(Path(found.page).as_uri()):
        click.echo("No browser could be started: open the address above within a minute.", err=True)


def _sources(addresses: Sequence[str], pods: str | None) -> list[MetricsSource]:
    """The places where metrics are read. Raises UsageError."""
    found: list[MetricsSource] = []
    try:
        if addresses:
            found.append(AddressSource(addresses))
        if pods:
            found.append(pod_source(pods))
    except ValueError as error:
        raise click.UsageError(f"--metrics-{'pods' if found or not addresses else 'from'}: {error}") from None
    return found


def _provider(
    issuer: str | None, client_id: str, secret: Path | None, scopes: tuple[str, ...], authority: Path | None
) -> OidcProvider | None:
    """The provider of the flags; None without an issuer. Raises UsageError, ClickException."""
    if issuer is None:
        if client_id or secret is not None:
            raise click.UsageError("--oidc-client-id: give --oidc-issuer-url, too")
        return None
    if not client_id:
        raise click.UsageError("--oidc-issuer-url: give --oidc-client-id, too")
    try:
        known = Secret(secret.read_text().strip()) if secret is not None else None
        ca = authority.read_bytes() if authority is not None else b""
        return OidcProvider(OidcSettings(issuer, client_id, known, scopes, ca), SystemClock())
    except ValueError as error:
        raise click.UsageError(f"--oidc-issuer-url: {error}") from None
    except OSError as error:
        raise click.ClickException(str(error)) from None


def _check_listening(listen: str, tls: bool, public: tuple[str, ...]) -> None:
    """A token must not cross a network in the clear, and browsers come by a name. Raises UsageError."""
    if tls and not public:
        raise click.UsageError(
            "--tls-cert-file: give --public-url, too: the name of the certificate, as browsers reach it, such as "
            "https://localhost:8443"
        )
    if listen in _LOOPBACK or tls or any(url.startswith("https://") for url in public):
        return
    raise click.UsageError(
        f"--listen {listen}: others could read tokens on their way. Give --tls-cert-file and --tls-key-file, or the "
        "https address of the proxy before it with --public-url"
    )


def _cluster_of_pod(authority: Path | None) -> Access:
    """The API server of the pod's cluster. Raises KubeconfigError, OSError, UsageError."""
    if authority is None:
        return in_cluster()
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST", ""), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise click.UsageError("--certificate-authority: this is no pod of a cluster; give --kubeconfig FILE")
    return Access(server=f"https://{_shown(host)}:{port}", ca=authority.read_bytes())


def _say(supervised: bool, address: str) -> None:
    if supervised:
        # The form of the supervisor of `hortus up` (hortus.cli.up.supervisor.ChildReport).
        line = {"state": "ready", "message": address, "facts": {"dashboard": address}}
        sys.stdout.buffer.write(msgspec.json.encode(line) + b"\n")
        sys.stdout.buffer.flush()
    else:
        click.echo(f"The dashboard is at {address}", err=True)


async def _until_stopped(ready: Callable[[], None], *, supervised: bool) -> None:
    """Returns at SIGINT or SIGTERM, and for a supervised one at the end of standard input."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if supervised:
        process.stop_with_supervisor(stop.set, within=process.ORPHAN_GRACE)
    ready()
    await stop.wait()


def _run(work: Callable[[], Awaitable[Any]]) -> None:
    async def whole() -> None:
        await work()

    try:
        process.run(whole)
    except OSError as error:
        raise click.ClickException(f"the dashboard cannot start: {error}") from None


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def main() -> None:
    app.main(prog_name="hortus-dashboard")


if __name__ == "__main__":
    main()
