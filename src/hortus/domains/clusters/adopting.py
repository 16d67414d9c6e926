"""`hortus adopt`: makes Runtimes and GardenerClusters of existing clusters without a change to the clusters."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hortus.terminal import (
    DEFAULT_NAMESPACE,
    OUTPUT,
    YES,
    CommandGroup,
    Connect,
    Decorator,
    Number,
    TargetSelection,
    run,
    together,
)

if TYPE_CHECKING:
    from hortus.domains.clusters.adoption.running import Work


_ABOUT = """Make Runtimes and GardenerClusters of existing clusters, without a change to the clusters.

\b
1. `hortus adopt shoots --all` shows the objects for each shoot, and the
   changes of a patch. With --apply it makes the objects and locks them:
   the controllers ignore locked Runtimes.
2. `hortus adopt compare --all` asks the garden for the changes (a dry run).
3. `hortus adopt release --all` unlocks the Runtimes that change nothing.

Exit code 0 if nothing differs, 1 if something differs or is refused, 2 after a failure."""


def _names(meaning: str) -> Decorator:
    return click.argument("names", nargs=-1, metavar="[NAME]...", help=meaning)


LOCKED = _names("Runtimes, their shoots or runtime-ids.")
ALL = click.option("--all", "everything", is_flag=True, help="Choose all.")
SELECTOR = click.option("--selector", "-l", default="", metavar="LABELS", help="Choose those with these labels.")
NAMESPACE = click.option(
    "--namespace", "-n", default=DEFAULT_NAMESPACE, help="Namespace of Runtimes, GardenerClusters and Kymas."
)
PROJECT = click.option("--project", default="", help="The Gardener project; must be the configuration's.")
LABELS = click.option(
    "--label", "labels", multiple=True, metavar="KEY=VALUE", help="Value of a label that no object has. Repeatable."
)
ADMINISTRATORS = click.option(
    "--administrator", "administrators", multiple=True, metavar="NAME", help="User who is cluster-admin. Repeatable."
)
INSIDE = click.option(
    "--look-inside/--no-look-inside",
    "inside",
    default=True,
    help="Read administrators and login providers from the clusters.",
)
APPLY = together(click.option("--apply/--dry-run", default=False, help="Make the objects or only show them."), YES)
DIFF = click.option("--diff", is_flag=True, help="Print a unified diff of each shoot before and after a patch.")
REPORT = click.option(
    "--report", type=click.Path(path_type=Path), metavar="FILE", help="Write a report as JSON to this file."
)
AT_ONCE = click.option(
    "--concurrency",
    type=Number(1, 64),
    metavar="NUMBER",
    default=8,
    help="Number of clusters read in parallel.",
)
QUIET = click.option("--quiet", "-q", is_flag=True, help="Show neither progress nor notes.")
CONFIGURATION = click.option(
    "--converter-config-filepath",
    "config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The controllers' configuration.",
    show_default="that of `hortus up`, else the controllers' default",
)
STRUCTURED = click.option(
    "--structured-auth-enabled/--no-structured-auth-enabled",
    "structured",
    default=False,
    help="Same as the controllers' flag.",
)
ACL = click.option(
    "--api-server-acl-enabled/--no-api-server-acl-enabled", "acl", default=False, help="Same as the controllers' flag."
)
AUDIT_LOG = click.option(
    "--audit-log-mandatory/--no-audit-log-mandatory",
    "audit_log",
    default=None,
    help="Same as the controllers' flag.",
    show_default="yes; no for `hortus up`",
)
CHOSEN = together(ALL, SELECTOR)
REPORTED = together(OUTPUT, REPORT, NAMESPACE, PROJECT, CONFIGURATION)
SETTINGS = together(STRUCTURED, ACL, AUDIT_LOG, AT_ONCE)


def register(app: CommandGroup, connect: Connect) -> None:
    """Add the command group to `app`."""
    group = CommandGroup("adopt", panel="Clusters", help=_ABOUT, no_args_is_help=True)
    for add in (_shoots, _kyma, _kubeconfigs, _compare, _release):
        add(group, connect)
    app.add_command(group)


def _shoots(group: CommandGroup, connect: Connect) -> None:
    @group.command()
    @_names("Shoots of the garden.")
    @CHOSEN
    @LABELS
    @ADMINISTRATORS
    @INSIDE
    @APPLY
    @DIFF
    @REPORTED
    @SETTINGS
    @QUIET
    def shoots(**given: Any) -> None:
        """Make a locked Runtime and a GardenerCluster of each shoot.

        Labels come from the shoot, its GardenerCluster and its Kyma; --label adds those that none of them has.
        """
        from hortus.domains.clusters.adoption.running import adopt_shoots

        run(adopt_shoots(connect(), _work(given)))


def _kyma(group: CommandGroup, connect: Connect) -> None:
    @group.command()
    @_names("Kymas.")
    @CHOSEN
    @LABELS
    @APPLY
    @REPORTED
    @QUIET
    def kyma(**given: Any) -> None:
        """Make a GardenerCluster for each Kyma that names a shoot."""
        from hortus.domains.clusters.adoption.running import adopt_kymas

        run(adopt_kymas(connect(), _work(given)))


def _kubeconfigs(group: CommandGroup, connect: Connect) -> None:
    @group.command()
    @_names("Kubeconfig files; with --from-secrets Secrets.")
    @click.option("--from-secrets", is_flag=True, help="Read Secrets with a runtime-id.")
    @CHOSEN
    @LABELS
    @APPLY
    @REPORTED
    @QUIET
    def kubeconfigs(from_secrets: bool, **given: Any) -> None:
        """Make a GardenerCluster for each kubeconfig that leads to a shoot of the garden."""
        from hortus.domains.clusters.adoption.running import adopt_kubeconfigs

        if not from_secrets and (given["everything"] or given["selector"]):
            raise click.BadParameter("--all and --selector choose Secrets: give --from-secrets too")
        run(adopt_kubeconfigs(connect(), _work(given), from_secrets=from_secrets))


def _compare(group: CommandGroup, connect: Connect) -> None:
    @group.command()
    @LOCKED
    @CHOSEN
    @DIFF
    @REPORTED
    @SETTINGS
    @QUIET
    def compare(**given: Any) -> None:
        """Ask the garden by a dry run what locked Runtimes would change."""
        from hortus.domains.clusters.adoption.running import compare as compared

        run(compared(connect(), _work(given)))


def _release(group: CommandGroup, connect: Connect) -> None:
    @group.command()
    @LOCKED
    @CHOSEN
    @click.option("--accept-differences", "accept", is_flag=True, help="Release the named ones although they differ.")
    @YES
    @REPORTED
    @SETTINGS
    @QUIET
    def release(accept: bool, **given: Any) -> None:
        """Compare locked Runtimes again and unlock those that change nothing."""
        from hortus.domains.clusters.adoption.running import release as released

        if accept and not given["names"]:
            raise click.BadParameter("--accept-differences is for clusters given by name")
        run(released(connect(), _work(given), accept=accept))


def _work(given: dict[str, Any]) -> Work:
    """Returns the options of a command as a value."""
    from hortus.domains.clusters.adoption.landscape import Choices
    from hortus.domains.clusters.adoption.planning import Wishes
    from hortus.domains.clusters.adoption.running import Telling, Work

    return Work(
        selection=TargetSelection(given["names"], given["selector"], given["everything"]),
        wishes=Wishes(
            namespace=given["namespace"],
            labels=dict(_pair(text) for text in given.get("labels", ())),
            administrators=given.get("administrators", ()),
        ),
        choices=Choices(
            configuration=given["config"],
            project=given["project"],
            structured_authentication=given.get("structured", False),
            acl=given.get("acl", False),
            audit_log_mandatory=given.get("audit_log"),
        ),
        telling=Telling(
            format=given["output"],
            diff=given.get("diff", False),
            report=given["report"],
            quiet=given["quiet"],
        ),
        apply=given.get("apply", False),
        inside=given.get("inside", False),
        at_once=given.get("concurrency", 8),
        yes=given.get("yes", False),
    )


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals or not value:
        raise click.BadParameter(f"{text!r} is not KEY=VALUE", param_hint="--label")
    return key, value
