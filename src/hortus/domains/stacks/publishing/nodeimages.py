"""The plugin of a provider that makes node images: a program `csctl-<provider>`, called as csctl calls it.

    csctl-openstack create-node-images <stack folder> <release folder> <node image registry>

It writes node-images.yaml into the release folder. It is looked for in the current folder first, then on the PATH.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from hortus.domains.stacks.publishing.config import ProviderConfig
from hortus.domains.stacks.publishing.errors import BadStack

_COMMAND = "create-node-images"


def needs_plugin(provider: ProviderConfig) -> bool:
    """True where csctl.yaml has a part for the plugin."""
    return bool(provider.config)


def create_node_images(provider: ProviderConfig, stack: Path, release: Path, registry: str) -> None:
    """Run the plugin; what it prints is shown. Raises BadStack where there is none or it fails."""
    name = f"csctl-{provider.type}"
    program = _plugin(name)
    arguments = [str(program), _COMMAND, str(stack), str(release), registry]
    try:
        done = subprocess.run(arguments, check=False)  # noqa: S603 - the author of the stack chose the program
    except OSError as error:
        raise BadStack(f"the plugin {program} cannot be started: {error.strerror}; make it executable") from None
    if done.returncode != 0:
        problem = f"the plugin {program} failed with exit code {done.returncode}"
        raise BadStack(f"{problem}; correct what it reports above, and create the release again")


def _plugin(name: str) -> Path:
    here = Path(name)
    if here.is_file():
        return here.absolute()
    found = shutil.which(name)
    if found is None:
        problem = f"config.provider.config: needs the plugin {name}, which is not in this folder and not on the PATH"
        raise BadStack(f"{problem}; install it, or remove config.provider.config from csctl.yaml")
    return Path(found)
