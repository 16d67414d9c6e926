"""`hortus run`: the controllers in production, with the flags of the Go systems they stand in for."""

from __future__ import annotations

import inspect
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from hortus.terminal import EXIT_USAGE, CommandGroup, fail

if TYPE_CHECKING:
    from hortus.engine.configuration import FlagValues
    from hortus.engine.flags import FlagSet
    from hortus.engine.logging import LogSettings


def register(app: CommandGroup) -> None:
    @app.command(
        name="run",
        panel="In production",
        uses=("kubeconfig",),
        help=run.__doc__,
        context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
    )
    @click.pass_context
    def command(context: click.Context) -> None:
        before: Path | None = context.find_root().params.get("kubeconfig")
        run([*([f"--kubeconfig={before}"] if before is not None else []), *context.args])


def run(arguments: list[str]) -> None:
    """Run the controllers against a management cluster.

    Takes the flags of Kyma's infrastructure-manager, with one dash or two; `hortus run --help` lists them. Each may
    also stand in the environment (HORTUS_WATCH_NAMESPACE) or in the file of --config, which is followed while it runs.
    """
    from hortus.cli.flags import FLAGS
    from hortus.engine.flags import FlagSet

    flags = FlagSet(FLAGS)
    if any(word.lstrip("-") in ("help", "h") for word in arguments):
        _print_help(flags.usage())
    else:
        _run_until_stopped(flags, arguments)


def _run_until_stopped(flags: FlagSet, arguments: list[str]) -> NoReturn:
    _load_structlog()
    from hortus.engine.configuration import FlagValues
    from hortus.engine.flags import FlagError
    from hortus.engine.hosting import log_settings
    from hortus.kube.errors import KubeError
    from hortus.kube.kubeconfig import KubeconfigError

    try:
        configuration = FlagValues(flags, arguments, os.environ)
        values = configuration.load()
        logs = log_settings(values)
        if values["replicas"] < 1:
            raise FlagError(f"invalid value {values['replicas']} for flag --replicas: must be 1 or more")
        code = _run(values, logs, configuration) if values["replicas"] == 1 else _run_several(arguments, values, logs)
    except (FlagError, KubeconfigError) as error:
        fail(str(error), EXIT_USAGE)
    except KubeError as error:
        fail(str(error))
    except OSError as error:
        from hortus.engine.serving.listening import CANNOT_LISTEN

        if error.strerror is None or not error.strerror.startswith(CANNOT_LISTEN):
            raise
        fail(f"{error.strerror} (--metrics-bind-address, --health-probe-bind-address, --debug-bind-address)")
    sys.exit(code)


def _print_help(flags: str) -> None:
    width = shutil.get_terminal_size().columns
    about = click.wrap_text(inspect.cleandoc(run.__doc__ or ""), width, preserve_paragraphs=True)
    click.echo(f"Usage: hortus run [flags]\n\n{about}\n")
    for line in flags.splitlines():
        indent = line[: len(line) - len(line.lstrip())]
        click.echo(click.wrap_text(line.lstrip(), width, indent, indent))


def _load_structlog() -> None:
    """Import structlog without rich, which it would load for a renderer of its own that is not used here: 3 MiB."""
    if "rich" in sys.modules:
        return
    sys.modules["rich"] = None  # type: ignore[assignment]
    try:
        import structlog  # noqa: F401
    finally:
        del sys.modules["rich"]


def _run(values: dict[str, Any], logs: LogSettings, configuration: FlagValues) -> int:
    from hortus.cli.program import program, warn_of_rivals
    from hortus.engine import process
    from hortus.engine.logging import configure_logging

    configure_logging(logs)

    async def main() -> int:
        async with program(values, configuration) as manager:
            warn_of_rivals(values)
            return await process.run_manager(manager)

    return process.run(main)


def _run_several(arguments: list[str], values: dict[str, Any], logs: LogSettings) -> int:
    import asyncio

    from hortus.cli.replicas import supervise
    from hortus.engine.logging import configure_logging

    configure_logging(logs)
    return asyncio.run(supervise(arguments, values))
