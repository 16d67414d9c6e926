"""Kubeconfigs out of Secrets, as commands hand them to people: printed, merged, or by the plugin that fetches them.

Commands of several domains find a Secret each in its own way; the options and the outcome are the same.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from hortus.terminal.commands import Decorator, together
from hortus.terminal.connections import Connections
from hortus.terminal.failures import CommandError
from hortus.terminal.output import raw

if TYPE_CHECKING:
    from hortus.kube.objects import Object, ObjectKey

PLUGIN = "credential-plugin"
"""The command that kubeconfigs with an exec entry run."""

HANDED_OUT: Decorator = together(
    click.option(
        "--exec",
        "fresh",
        is_flag=True,
        help="Hold no credential: kubectl fetches a fresh one from the management cluster at each start.",
    ),
    click.option("--merge", is_flag=True, help="Add it as a context to the kubeconfig that kubectl uses."),
    click.option(
        "--into",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="With --merge: add it to this file.",
        show_default="as kubectl: the first file of $KUBECONFIG that exists, else ~/.kube/config",
    ),
    click.option("--context-name", "context", metavar="NAME", help="With --merge or --exec: name of the context."),
    click.option("--use", is_flag=True, help="With --merge: make it the current context."),
    click.option("--overwrite", is_flag=True, help="With --merge: replace a context of another cluster."),
)
"""Options of commands that hand out a kubeconfig."""


class Delivery(NamedTuple):
    """The values of `HANDED_OUT`."""

    fresh: bool = False
    merge: bool = False
    into: Path | None = None
    context: str | None = None
    use: bool = False
    overwrite: bool = False

    def check(self) -> None:
        """Raises UsageError for an option that means nothing without another."""
        for option, given in (("--into", self.into), ("--use", self.use), ("--overwrite", self.overwrite)):
            if given and not self.merge:
                raise click.UsageError(f"{option} goes with --merge")
        if self.context and not (self.merge or self.fresh):
            raise click.UsageError("--context-name goes with --merge or --exec: a printed kubeconfig stays as it is")


class StoredKubeconfig(NamedTuple):
    """A kubeconfig and its place."""

    content: bytes
    secret: ObjectKey
    key: str


def deliver(
    stored: StoredKubeconfig, delivery: Delivery, connections: Connections, name: str, *, example: str = "get ns"
) -> None:
    """Print or merge a kubeconfig as the options say; `name` is that of its context by default.

    `example` is a request that it allows.

    Raises KubeconfigError for one that is more than inline data, and CommandError.
    """
    from hortus.kube import kubeconfig, yaml

    origin = f"secret {stored.secret}"
    found = kubeconfig.from_untrusted(stored.content, origin=origin)
    if not (delivery.fresh or delivery.merge):
        raw(stored.content)
        return
    name = delivery.context or name
    document = found.current_as(name)
    if delivery.fresh:
        document = _by_plugin(document, stored, connections)
    if not delivery.merge:
        raw(yaml.dump({"apiVersion": "v1", "kind": "Config", **document}).encode())
        return
    target = delivery.into or kubeconfig.default_file()
    if not delivery.overwrite:
        _check_free(target, name, document, stored)
    kubeconfig.merge_into(target, document, use=delivery.use)
    current = "; it is the current one" if delivery.use else ""
    kind = "fetches its credential from" if delivery.fresh else "from"
    option = "" if delivery.use else f" --context {shlex.quote(name)}"
    click.echo(f"Context {name} is in {target} ({kind} {origin}){current}. Try: kubectl{option} {example}")


def _by_plugin(document: Object, stored: StoredKubeconfig, connections: Connections) -> Object:
    from hortus.kube.kubeconfig import with_plugin

    target, environment = connections.target, {}
    arguments = [PLUGIN, "--secret", str(stored.secret), "--key", stored.key]
    # Its own connection is always named: $KUBECONFIG may lead to the very context that runs the plugin.
    if len(target.files) == 1:
        arguments += ["--kubeconfig", str(target.files[0])]
    elif target.files:
        environment["KUBECONFIG"] = os.pathsep.join(map(str, target.files))
    if target.context:
        arguments += ["--context", target.context]
    return with_plugin(document, _program(), arguments, environment)


def _program() -> tuple[str, ...]:
    """The command line of this program: its name if a shell finds it by that, else its path."""
    for folder in (Path(sys.argv[0]).absolute().parent, Path(sys.executable).parent):
        program = folder / "hortus"
        if program.is_file() and os.access(program, os.X_OK):
            found = shutil.which("hortus")
            return ("hortus",) if found and Path(found).resolve() == program.resolve() else (str(program),)
    return (sys.executable, "-P", "-m", "hortus")


def _check_free(target: Path, name: str, document: Object, stored: StoredKubeconfig) -> None:
    """Raises CommandError if the context of that name in `target` is of another cluster."""
    from hortus.kube.kubeconfig import KubeconfigError, load

    if not target.expanduser().exists():
        return
    try:
        there = load(target)
    except KubeconfigError:
        return  # merging reports it, and keeps the file
    cluster, user = there.clusters.get(name), there.users.get(name)
    server = document["clusters"][0]["cluster"]["server"]
    if cluster is None or cluster.body.get("server") == server:
        return
    if user is not None and str(stored.secret) in ((user.body.get("exec") or {}).get("args") or ()):
        return  # the same cluster has moved
    raise CommandError(
        f"{target} has a cluster {name} already, at {cluster.body.get('server')}: give --context-name NAME, "
        "or --overwrite"
    )
