"""A folder for KUBEBUILDER_ASSETS in which Hortus stands in for kube-apiserver and etcd.

Go projects start these two programs in their suites with controller-runtime's envtest, which finds them by their names
and passes kube-apiserver's own flags. Both are wrappers of a few lines: `kube-apiserver` serves from memory with the
certificates that envtest made, `etcd` reports that it is healthy and stores nothing.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

_ETCD = Path(__file__).with_name("etcd.py")
_MODULES = {"kube-apiserver": "-m hortus.cli.envtest.apiserver", "etcd": f"-I -S '{_ETCD}'"}


def default_folder() -> Path:
    """The folder of this installation, below the user's cache."""
    from hortus.cli.up.state import cache_directory

    return cache_directory() / "envtest"


def write_assets(folder: Path) -> Path:
    """Write both programs, and kubectl where there is one, into `folder`, which is returned. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, module in _MODULES.items():
        _write(folder / name, f"#!/bin/sh\nexec '{sys.executable}' {module} \"$@\"\n")
    kubectl = shutil.which("kubectl")
    if kubectl is not None and not (folder / "kubectl").exists():
        (folder / "kubectl").symlink_to(kubectl)
    return folder


def _write(path: Path, text: str) -> None:
    """Replace the program at once, so that a suite that starts it now finds the old one or the new one."""
    new = path.with_name(f".{path.name}.new")
    new.write_text(text)
    new.chmod(0o755)
    new.replace(path)
