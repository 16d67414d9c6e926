"""The files that a new module begins with."""

from __future__ import annotations

from pathlib import Path

import msgspec

from hortus.kube import yaml

DEFAULT_NAME = "kyma-project.io/module/mymodule"
_MANIFEST = """# The module's objects: the kind of its resource, roles, and the Deployment of its operator.
apiVersion: v1
kind: Namespace
metadata:
  name: {module}-system
"""
_DEFINITION = """---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: {plural}.operator.kyma-project.io
spec:
  group: operator.kyma-project.io
  names: {{kind: {kind}, listKind: {kind}List, plural: {plural}, singular: {singular}}}
  scope: Namespaced
  versions:
    - name: v1alpha1
      served: true
      storage: true
      subresources: {{status: {{}}}}
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec: {{type: object, x-kubernetes-preserve-unknown-fields: true}}
            status: {{type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
_DEFAULT_CR = """# The resource that is created with the module. The manifest defines its kind.
apiVersion: operator.kyma-project.io/v1alpha1
kind: {kind}
metadata:
  name: default
spec: {{}}
"""
_SECURITY = """# Accepted and not used: images are read from the manifest.
module-name: {module}
"""


class ScaffoldPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The files to make in `folder`; an empty name leaves a file out."""

    folder: Path
    config: str
    manifest: str
    default_cr: str
    security: str
    name: str
    version: str
    team: str


class FileExists(Exception):
    """The module-config is there already."""


def scaffold(plan: ScaffoldPlan, *, overwrite: bool) -> tuple[list[Path], list[Path]]:
    """Write the files that are missing; `overwrite` replaces the config alone. Returns the written and the kept ones.

    Raises FileExists, OSError.
    """
    config = plan.folder / plan.config
    if config.exists() and not overwrite:
        raise FileExists(f"{config} is there already; choose another name with --config-file, or pass --overwrite")
    plan.folder.mkdir(parents=True, exist_ok=True)
    module = plan.name.rpartition("/")[2]
    kind = "".join(part.capitalize() for part in module.split("-"))
    singular = kind.lower()
    names = {"module": module, "kind": kind, "singular": singular, "plural": f"{singular}s"}
    manifest = _MANIFEST + _DEFINITION if plan.default_cr else _MANIFEST
    wanted = {
        plan.manifest: manifest.format(**names),
        plan.default_cr: _DEFAULT_CR.format(kind=kind),
        plan.security: _SECURITY.format(module=module),
    }
    written, kept = [config], []
    config.write_text(_config_text(plan))
    for name, text in wanted.items():
        path = plan.folder / name
        if name and path.exists():
            kept.append(path)
        elif name:
            path.write_text(text)
            written.append(path)
    return written, kept


def _config_text(plan: ScaffoldPlan) -> str:
    module = plan.name.rpartition("/")[2]
    repository = f"https://github.com/OWNER/{module}"
    keys = {
        "name": plan.name,
        "version": plan.version,
        "manifest": plan.manifest,
        "defaultCR": plan.default_cr,
        "security": plan.security,
        "repository": repository,
        "documentation": f"{repository}/blob/main/README.md",
        "team": plan.team,
        "icons": [{"name": "module-icon", "link": f"{repository}/blob/main/logo.png"}],
    }
    head = "# The keys are explained in docs/modules/publishing.md of Hortus. Replace OWNER.\n"
    return head + yaml.dump({key: value for key, value in keys.items() if value})
