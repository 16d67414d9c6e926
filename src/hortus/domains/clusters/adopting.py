"""`hortus adopt`: clusters that exist become Runtimes and GardenerClusters, and nothing in them changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hortus.terminal import OUTPUT, CommandGroup, Connections, Decorator, OutputFormat, run, together

if TYPE_CHECKING:
    from hortus.domains.clusters.adoption.running import Work

Connect = Callable[[], Connections]

_ABOUT = """Make Runtimes and GardenerClusters of clusters that exist; nothing in them changes.

\b
1. `hortus adopt shoots --all` shows what would become of each shoot, and what a patch would change.
   With --apply the objects are made, locked: nothing is done for them.
2. `hortus adopt compare --all` has the garden itself tell what would change (a dry run).
3. `hortus adopt release --all` takes the lock off those that change nothing.

Exit code 0 when nothing differs, 1 when something differs or is refused, 2 when it failed."""


def _names(meaning: str) -> Decorator:
    return click.argument("names", nargs=-1, metavar="[NAME]...", help=meaning)


LOCKED = _names("Runtimes, their shoots or runtime-ids.")
ALL = click.option("--all", "everything", is_flag=True, help="All of them.")
SELECTOR = click.option("--selector", "-l", default="", metavar="LABELS", help="Those with these labels.")
NAMESPACE = click.option(
    "--namespace", "-n", default="kcp-system", help="Namespace of Runtimes, GardenerClusters and Kymas."
)
PROJECT = click.option("--project", default="", help="The Gardener project; must be the configuration's.")
LABELS = click.option(
    "--label", "labels", multiple=True, metavar="KEY=VALUE", help="A label where no object tells it. Repeatable."
)
ADMINISTRATORS = click.option(
    "--administrator", "administrators", multiple=True, metavar="NAME", help="Who is cluster-admin. Repeatable."
)
INSIDE = click.option(
    "--look-inside/--no-look-inside",
    "inside",
    default=True,
    help="Read administrators and login providers in the clusters themselves.",
)
APPLY = click.option("--apply/--dry-run", default=False, help="Make the objects, or only show them.")
DIFF = click.option("--diff", is_flag=True, help="Print a unified diff of each shoot as a patch would leave it.")
REPORT = click.option(
    "--report", type=click.Path(path_type=Path), metavar="FILE", help="Write everything there as JSON."
)
AT_ONCE = click.option(
    "--concurrency", type=click.IntRange(1, 64), metavar="NUMBER", default=8, help="Clusters looked at at once."
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
    help="As the controllers have it.",
)
ACL = click.option(
    "--api-server-acl-enabled/--no-api-server-acl-enabled", "acl", default=False, help="As the controllers have it."
)
AUDIT_LOG = click.option(
    "--audit-log-mandatory/--no-audit-log-mandatory",
    "audit_log",
    default=None,
    help="As the controllers have it.",
    show_default="yes; no for `hortus up`",
)
CHOSEN = together(ALL, SELECTOR)
TOLD = together(OUTPUT, REPORT, NAMESPACE, PROJECT, CONFIGURATION)
SETTINGS = together(STRUCTURED, ACL, AUDIT_LOG, AT_ONCE)


def register(app: CommandGroup, connect: Connect) -> None:
    """Add the command group to `app`."""
    group = CommandGroup("adopt", panel="Clusters", help=_ABOUT, no_args_is_help=True)
    for add in (_shoots, _kyma, _kubeconfigs, _compare, _release):
        add(group, connect)
    app.add_command(group)


def _shoots(group: CommandGroup, connect: Connect) -> None:
    @group.command()
    @_names("Which ones.")
    @CHOSEN
    @LABELS
    @ADMINISTRATORS
    @INSIDE
    @APPLY
    @DIFF
    @TOLD
    @SETTINGS
    @QUIET
    def shoots(**given: Any) -> None:
        """Make a locked Runtime and a GardenerCluster of each shoot.

        Labels come from the shoot, its GardenerCluster and its Kyma; --label fills what nobody tells.
        """
        from hortus.domains.clusters.adoption.running import adopt_shoots

        run(adopt_shoots(connect(), _work(given)))


def _kyma(group: CommandGroup, connect: Connect) -> None:
    @group.command()
    @_names("Which ones.")
    @CHOSEN
    @LABELS
    @APPLY
    @TOLD
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
    @TOLD
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
    @TOLD
    @SETTINGS
    @QUIET
    def compare(**given: Any) -> None:
        """Have the garden tell what locked Runtimes would change, by a dry run."""
        from hortus.domains.clusters.adoption.running import compare as compared

        run(compared(connect(), _work(given)))


def _release(group: CommandGroup, connect: Connect) -> None:
    @group.command()
    @LOCKED
    @CHOSEN
    @click.option("--accept-differences", "accept", is_flag=True, help="Release those named although they differ.")
    @TOLD
    @SETTINGS
    @QUIET
    def release(accept: bool, **given: Any) -> None:
        """Compare locked Runtimes once more, and have those served that change nothing."""
        from hortus.domains.clusters.adoption.running import release as released

        if accept and not given["names"]:
            raise click.BadParameter("--accept-differences is for clusters given by name")
        run(released(connect(), _work(given), accept=accept))


def _work(given: dict[str, Any]) -> Work:
    """What the options of a command say."""
    from hortus.domains.clusters.adoption.landscape import Choices
    from hortus.domains.clusters.adoption.planning import Wishes
    from hortus.domains.clusters.adoption.running import Telling, Work
    from hortus.domains.clusters.adoption.sources import Selection

    return Work(
        selection=Selection(given["names"], given["selector"], given["everything"]),
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
            format=OutputFormat.parse(given["output"]),
            diff=given.get("diff", False),
            report=given["report"],
            quiet=given["quiet"],
        ),
        apply=given.get("apply", False),
        inside=given.get("inside", False),
        at_once=given.get("concurrency", 8),
    )


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals or not value:
        raise click.BadParameter(f"{text!r} is not KEY=VALUE", param_hint="--label")
    return key, value
