"""`hortus adopt`: clusters that exist become Runtimes and GardenerClusters, and nothing in them changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hortus.terminal import Connections, Format, run

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

Names = Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Which ones.", show_default=False)]
Locked = Annotated[
    list[str] | None,
    typer.Argument(metavar="[NAME]...", help="Runtimes, their shoots or runtime-ids.", show_default=False),
]
Files = Annotated[
    list[str] | None,
    typer.Argument(metavar="[NAME]...", help="Kubeconfig files; with --from-secrets Secrets.", show_default=False),
]
All = Annotated[bool, typer.Option("--all", help="All of them.")]
Selector = Annotated[str, typer.Option("--selector", "-l", metavar="LABELS", help="Those with these labels.")]
Namespace = Annotated[str, typer.Option("--namespace", "-n", help="Namespace of Runtimes, GardenerClusters and Kymas.")]
Project = Annotated[str, typer.Option(help="The Gardener project; must be the configuration's.")]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        "--label", metavar="KEY=VALUE", help="A label where no object tells it. Repeatable.", show_default=False
    ),
]
Administrators = Annotated[
    list[str] | None,
    typer.Option("--administrator", metavar="NAME", help="Who is cluster-admin. Repeatable.", show_default=False),
]
Inside = Annotated[
    bool,
    typer.Option(
        "--look-inside/--no-look-inside", help="Read administrators and login providers in the clusters themselves."
    ),
]
Apply = Annotated[bool, typer.Option("--apply/--dry-run", help="Make the objects, or only show them.")]
Diff = Annotated[bool, typer.Option("--diff", help="Print a unified diff of each shoot as a patch would leave it.")]
Output = Annotated[str, typer.Option("--output", "-o", help="table, json or yaml.")]
ReportFile = Annotated[Path | None, typer.Option("--report", metavar="FILE", help="Write everything there as JSON.")]
AtOnce = Annotated[int, typer.Option("--concurrency", min=1, max=64, help="Clusters looked at at once.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show neither progress nor notes.")]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--converter-config-filepath",
        metavar="FILE",
        help="The controllers' configuration.",
        show_default="that of `hortus up`, else the controllers' default",
    ),
]
Structured = Annotated[
    bool, typer.Option("--structured-auth-enabled/--no-structured-auth-enabled", help="As the controllers have it.")
]
Acl = Annotated[
    bool, typer.Option("--api-server-acl-enabled/--no-api-server-acl-enabled", help="As the controllers have it.")
]
AuditLog = Annotated[
    bool | None,
    typer.Option(
        "--audit-log-mandatory/--no-audit-log-mandatory",
        help="As the controllers have it.",
        show_default="yes; no for `hortus up`",
    ),
]


def register(app: typer.Typer, connect: Connect) -> None:
    """Add the command group to `app`."""
    group = typer.Typer(name="adopt", help=_ABOUT, no_args_is_help=True, rich_markup_mode=None)
    for add in (_shoots, _kyma, _kubeconfigs, _compare, _release):
        add(group, connect)
    app.add_typer(group, rich_help_panel="Clusters")


def _shoots(group: typer.Typer, connect: Connect) -> None:
    @group.command()
    def shoots(
        names: Names = None,
        everything: All = False,
        selector: Selector = "",
        labels: Labels = None,
        administrators: Administrators = None,
        inside: Inside = True,
        apply: Apply = False,
        diff: Diff = False,
        output: Output = "table",
        report: ReportFile = None,
        namespace: Namespace = "kcp-system",
        project: Project = "",
        config: ConfigFile = None,
        structured: Structured = False,
        acl: Acl = False,
        audit_log: AuditLog = None,
        concurrency: AtOnce = 8,
        quiet: Quiet = False,
    ) -> None:
        """Make a locked Runtime and a GardenerCluster of each shoot.

        Labels come from the shoot, its GardenerCluster and its Kyma; --label fills what nobody tells.
        """
        from hortus.domains.clusters.adoption.running import adopt_shoots

        run(adopt_shoots(connect(), _work(locals())))


def _kyma(group: typer.Typer, connect: Connect) -> None:
    @group.command()
    def kyma(
        names: Names = None,
        everything: All = False,
        selector: Selector = "",
        labels: Labels = None,
        apply: Apply = False,
        output: Output = "table",
        report: ReportFile = None,
        namespace: Namespace = "kcp-system",
        project: Project = "",
        config: ConfigFile = None,
        quiet: Quiet = False,
    ) -> None:
        """Make a GardenerCluster for each Kyma that names a shoot."""
        from hortus.domains.clusters.adoption.running import adopt_kymas

        run(adopt_kymas(connect(), _work(locals())))


def _kubeconfigs(group: typer.Typer, connect: Connect) -> None:
    @group.command()
    def kubeconfigs(
        names: Files = None,
        from_secrets: Annotated[bool, typer.Option("--from-secrets", help="Read Secrets with a runtime-id.")] = False,
        everything: All = False,
        selector: Selector = "",
        labels: Labels = None,
        apply: Apply = False,
        output: Output = "table",
        report: ReportFile = None,
        namespace: Namespace = "kcp-system",
        project: Project = "",
        config: ConfigFile = None,
        quiet: Quiet = False,
    ) -> None:
        """Make a GardenerCluster for each kubeconfig that leads to a shoot of the garden."""
        from hortus.domains.clusters.adoption.running import adopt_kubeconfigs

        if not from_secrets and (everything or selector):
            raise typer.BadParameter("--all and --selector choose Secrets: give --from-secrets too")
        run(adopt_kubeconfigs(connect(), _work(locals()), from_secrets=from_secrets))


def _compare(group: typer.Typer, connect: Connect) -> None:
    @group.command()
    def compare(
        names: Locked = None,
        everything: All = False,
        selector: Selector = "",
        diff: Diff = False,
        output: Output = "table",
        report: ReportFile = None,
        namespace: Namespace = "kcp-system",
        project: Project = "",
        config: ConfigFile = None,
        structured: Structured = False,
        acl: Acl = False,
        audit_log: AuditLog = None,
        concurrency: AtOnce = 8,
        quiet: Quiet = False,
    ) -> None:
        """Have the garden tell what locked Runtimes would change, by a dry run."""
        from hortus.domains.clusters.adoption.running import compare as compared

        run(compared(connect(), _work(locals())))


def _release(group: typer.Typer, connect: Connect) -> None:
    @group.command()
    def release(
        names: Locked = None,
        everything: All = False,
        selector: Selector = "",
        accept: Annotated[
            bool, typer.Option("--accept-differences", help="Release those named although they differ.")
        ] = False,
        output: Output = "table",
        report: ReportFile = None,
        namespace: Namespace = "kcp-system",
        project: Project = "",
        config: ConfigFile = None,
        structured: Structured = False,
        acl: Acl = False,
        audit_log: AuditLog = None,
        concurrency: AtOnce = 8,
        quiet: Quiet = False,
    ) -> None:
        """Compare locked Runtimes once more, and have those served that change nothing."""
        from hortus.domains.clusters.adoption.running import release as released

        if accept and not names:
            raise typer.BadParameter("--accept-differences is for clusters given by name")
        run(released(connect(), _work(locals()), accept=accept))


def _work(given: dict[str, Any]) -> Work:
    """What the options of a command say."""
    from hortus.domains.clusters.adoption.landscape import Choices
    from hortus.domains.clusters.adoption.planning import Wishes
    from hortus.domains.clusters.adoption.running import Telling, Work
    from hortus.domains.clusters.adoption.sources import Selection

    return Work(
        selection=Selection(tuple(given["names"] or ()), given["selector"], given["everything"]),
        wishes=Wishes(
            namespace=given["namespace"],
            labels=dict(_pair(text) for text in given.get("labels") or ()),
            administrators=tuple(given.get("administrators") or ()),
        ),
        choices=Choices(
            configuration=given["config"],
            project=given["project"],
            structured_authentication=given.get("structured", False),
            acl=given.get("acl", False),
            audit_log_mandatory=given.get("audit_log"),
        ),
        telling=Telling(
            format=Format.parse(given["output"]),
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
        raise typer.BadParameter(f"{text!r} is not KEY=VALUE", param_hint="--label")
    return key, value
