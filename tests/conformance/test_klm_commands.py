"""The commands of Kyma's command line for modules and of modulectl: each flag is served, or the page says why not."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from hortus.cli.shell import app

PAGE = (Path(__file__).parents[2] / "docs" / "modules" / "contract.md").read_text()
KYMA = {
    ("module", "list"): ("--output", "-o", "--show-errors"),
    ("module", "catalog"): ("--output", "-o"),
    ("module", "add"): (
        *("--channel", "-c", "--default-config-cr", "--default-cr", "--config-cr-path", "--cr-path"),
        *("--auto-approve", "--origin", "--community"),
    ),
    ("module", "enable"): ("--channel", "-c", "--default-cr", "--cr-path"),
    ("module", "delete"): ("--auto-approve", "--community"),
    ("module", "manage"): ("--policy",),
    ("module", "unmanage"): (),
    ("module", "pull"): ("--namespace", "-n", "--version", "-v", "--force"),
    ("alpha", "module", "list"): ("--output", "-o"),
    ("alpha", "module", "catalog"): ("--remote", "--remote-url", "--output", "-o"),
    ("alpha", "module", "pull"): ("--namespace", "-n", "--version", "-v", "--force", "--remote-url"),
    ("alpha", "module", "add"): ("--channel", "--default-config-cr", "--config-cr-path", "--auto-approve"),
    ("alpha", "module", "delete"): ("--auto-approve",),
    ("alpha", "module", "manage"): ("--policy",),
    ("alpha", "module", "unmanage"): (),
}
"""The commands of kyma-project/cli (v3) with their flags."""
MODULECTL = {
    ("module", "create"): (
        *("--config-file", "-c", "--output", "-o", "--output-constructor-file"),
        *("--module-sources-git-directory", "--skip-version-validation"),
    ),
    ("module", "scaffold"): (
        *("--directory", "-d", "--config-file", "-c", "--overwrite", "-o", "--gen-manifest", "--gen-default-cr"),
        *("--gen-security-config", "--module-name", "--module-version", "--module-team"),
    ),
    ("version",): (),
}
"""The commands of kyma-project/modulectl (3.2) with their flags."""
REFUSED = {("module", "add"): ("--origin", "--community"), ("module", "delete"): ("--community",)}
"""Flags that the Go system hides and refuses, and so do we."""
COMMON = ("--kubeconfig", "--context")
NOT_SERVED = ("--skip-extensions", "--show-extensions-error")
DEFAULTS = {
    ("module", "list", "--output"): "table",
    ("module", "manage", "--policy"): "CreateAndDelete",
    ("module", "pull", "--namespace"): "default",
    ("module", "create", "--config-file"): "module-config.yaml",
    ("module", "create", "--output"): "template.yaml",
    ("module", "create", "--output-constructor-file"): "component-constructor.yaml",
    ("module", "create", "--module-sources-git-directory"): ".",
    ("module", "create", "--skip-version-validation"): "True",
    ("module", "scaffold", "--config-file"): "scaffold-module-config.yaml",
    ("module", "scaffold", "--module-version"): "0.0.1",
}


def command(words: tuple[str, ...]) -> click.Command:
    found: click.Command = app
    for word in words:
        assert isinstance(found, click.Group)
        assert word in found.commands, f"there is no command {' '.join(words)}"
        found = found.commands[word]
    return found


def option(words: tuple[str, ...], flag: str) -> click.Option | None:
    options = (one for one in command(words).params if isinstance(one, click.Option))
    return next((one for one in options if flag in (*one.opts, *one.secondary_opts)), None)


@pytest.mark.parametrize("words", [*KYMA, *MODULECTL], ids=" ".join)
def test_every_command_takes_the_flags_of_the_go_program(words: tuple[str, ...]) -> None:
    flags = (KYMA | MODULECTL)[words]
    assert [flag for flag in flags if option(words, flag) is None] == []


def test_hidden_flags_are_those_that_are_refused() -> None:
    for words, flags in REFUSED.items():
        assert all(found is not None and found.hidden for found in (option(words, flag) for flag in flags))


def test_a_default_is_that_of_the_go_program() -> None:
    found = {(*words, flag): option(tuple(words), flag) for *words, flag in DEFAULTS}
    assert {name: str(one.default) for name, one in found.items() if one is not None} == DEFAULTS


def test_what_all_commands_take_stands_before_them() -> None:
    names = {flag for one in app.params if isinstance(one, click.Option) for flag in one.opts}
    assert set(COMMON) <= names


def test_the_page_names_what_is_not_served_or_differs() -> None:
    for name in (*NOT_SERVED, "`--remote`", "`modulectl create`", "`--manifest FILE`", "`kyma alpha module`"):
        assert name in PAGE, name
