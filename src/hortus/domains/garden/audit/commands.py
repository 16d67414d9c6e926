"""`hortus garden audit`: receives audit events, verifies a spool, and sends its lines again."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import click

from hortus.terminal import EXIT_ERROR, CommandError, CommandGroup, Connections, print_line, run
from hortus.terminal.failures import fail

_CONFIG = click.option(
    "--config",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Configuration file of the receiver.",
)
_KEY = click.option(
    "--key-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with the key of the spool, where it has one.",
)
_SPOOL = click.argument("spool", type=click.Path(exists=True, file_okay=False, path_type=Path))


def register(group: CommandGroup, connect: Callable[[], Connections]) -> None:
    """Add these commands to the group of the garden."""
    audit = CommandGroup("audit", help="Receive, keep and verify audit events.", no_args_is_help=True)
    group.add_command(audit)

    @audit.command()
    @_CONFIG
    def serve(config: Path) -> None:
        """Receive audit events over HTTPS, keep them in a spool and deliver them to sinks.

        \b
        hortus garden audit serve --config receiver.yaml
        """
        _serve(config)

    @audit.command()
    @click.argument("log", type=click.Path(exists=True, dir_okay=False, path_type=Path))
    @click.option("--to", "url", required=True, help="Address of the receiver, such as https://127.0.0.1:9880/audit.")
    @click.option("--ca-file", type=click.Path(exists=True, path_type=Path), help="CA of the receiver's certificate.")
    @click.option("--certificate-file", type=click.Path(exists=True, path_type=Path), help="Client certificate.")
    @click.option("--client-key-file", type=click.Path(exists=True, path_type=Path), help="Its key.")
    def send(
        log: Path, url: str, ca_file: Path | None, certificate_file: Path | None, client_key_file: Path | None
    ) -> None:
        """Send an audit log file to a receiver, as an API server's webhook would.

        \b
        hortus garden audit send audit.log --to http://127.0.0.1:9880/audit
        """
        run(_send(log, url, ca_file, certificate_file, client_key_file))

    @audit.command()
    @_SPOOL
    @_KEY
    @click.option(
        "--expect",
        multiple=True,
        metavar="SEQUENCE[=DIGEST]",
        help="A place that the chain had: noted, received by a sink, or of the metric hortus_audit_spool_sequence.",
    )
    def verify(spool: Path, key_file: Path | None, expect: tuple[str, ...]) -> None:
        """Verify a spool: every byte, every digest, and that nothing is missing.

        Ends with 1 when lines were altered, removed or added. It may run next to a receiver.
        Where the whole folder was replaced, or emptied and begun again, a place that was noted elsewhere shows it.

        \b
        hortus garden audit verify /data/spool --key-file chain.key
        hortus garden audit verify /data/spool --expect 4711 --expect 1200=6b86b273...
        """
        _verify(spool, key_file, expect)

    @audit.command()
    @_SPOOL
    @_KEY
    @click.option("--config", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Receiver's file.")
    @click.option("--sink", default="", help="Name of the sink in the file; without it lines go to standard output.")
    @click.option("--from", "first", type=int, default=0, help="Sequence number of the first line.")
    @click.option("--to", "end", type=int, default=0, help="Sequence number behind the last line; 0 for all.")
    def replay(spool: Path, key_file: Path | None, config: Path | None, sink: str, first: int, end: int) -> None:
        """Send lines of a spool to a sink again, or print them.

        The sink's own place in the spool stays as it is. Lines that were altered are left out, and named at the end.

        \b
        hortus garden audit replay /data/spool --from 1000 --to 2000
        hortus garden audit replay /data/spool --config receiver.yaml --sink archive
        """
        if bool(sink) != (config is not None):
            raise click.UsageError("--sink and --config are given together")
        run(_replay(spool, key_file, config, sink, first, end))


def _serve(config: Path) -> None:
    from hortus.domains.garden.audit.buffer.program import serve
    from hortus.domains.garden.audit.buffer.spool import SpoolError

    try:
        code = serve(config)
    except (SpoolError, OSError, ValueError) as error:
        fail(str(error))
    raise SystemExit(code)


async def _send(log: Path, url: str, ca: Path | None, certificate: Path | None, key: Path | None) -> None:
    from hortus.domains.garden.audit.buffer.making import context_of
    from hortus.domains.garden.audit.buffer.sending import send_log
    from hortus.domains.garden.audit.buffer.settings import ClientTlsPart
    from hortus.domains.garden.audit.buffer.sinks import SinkError

    tls = ClientTlsPart(ca_file=ca, certificate_file=certificate, key_file=key)
    try:
        sent = await send_log(log, url, context=context_of(tls, url))
    except (SinkError, OSError, ValueError) as error:
        raise CommandError(str(error)) from None
    click.echo(f"Sent {sent} events.")


def _verify(spool: Path, key_file: Path | None, expect: tuple[str, ...]) -> None:
    from hortus.domains.garden.audit.buffer.composition import chain_of
    from hortus.domains.garden.audit.buffer.spool import SpoolError
    from hortus.domains.garden.audit.buffer.spool import verify as verified

    try:
        found = verified(spool, chain_of(key_file), expected=dict(map(_expected, expect)))
    except (SpoolError, OSError, ValueError) as error:
        fail(str(error))
    keyed = "with a key" if found.keyed else "without a key"
    click.echo(f"Spool {found.spool}, {keyed}: {found.lines} lines in {found.segments} segments, {found.bytes} bytes.")
    click.echo(f"Sequence {found.first} to {found.end}, head {found.head}")
    for text in (*found.reports, *found.notes):
        print_line(f"note: {text}")
    for finding in found.findings:
        print_line(f"FINDING: {finding}")
    if found.findings:
        raise SystemExit(EXIT_ERROR)
    click.echo("Every line is as it was written.")


def _expected(text: str) -> tuple[int, str]:
    sequence, equals, digest = text.partition("=")
    from hortus.kube.numbers import decimal

    number = decimal(sequence)
    if number is None or bool(equals) != bool(digest):
        raise click.UsageError(f"--expect {text!r}: write SEQUENCE, or SEQUENCE=DIGEST")
    return number, digest


async def _replay(spool: Path, key_file: Path | None, config: Path | None, sink: str, first: int, end: int) -> None:
    from hortus.domains.garden.audit.buffer.composition import chain_of
    from hortus.domains.garden.audit.buffer.replaying import replay, sink_named
    from hortus.domains.garden.audit.buffer.sinks import SinkError
    from hortus.domains.garden.audit.buffer.spool import SpoolError

    try:
        destination = sink_named(config, sink) if config is not None else None
        output = sys.stdout.buffer
        try:
            done = await replay(spool, chain_of(key_file), destination, output, first=first, end=end)
        finally:
            if destination is not None:
                await destination.close()
    except (SpoolError, SinkError, OSError, ValueError) as error:
        raise CommandError(str(error)) from None
    if destination is not None:
        click.echo(f"Sent {done.lines} lines.")
    for gap in done.gaps:
        print_line(f"FINDING: segment {gap.segment}, offset {gap.offset}: {gap.reason}", err=True)
    if done.gaps:
        raise SystemExit(EXIT_ERROR)
