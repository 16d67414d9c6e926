"""YAML as Helm reads and writes it: the Go libraries' YAML 1.1, down to quotes and folded lines.

Manifests of Kubernetes are read with `hortus.kube.yaml`; this is for what must come out as from the real tool.
"""

from __future__ import annotations

from hortus.render.gotemplate.goyaml.reading import GoYamlError, YamlLimits, read, read_json
from hortus.render.gotemplate.goyaml.writing import write, write_pretty

__all__ = ["GoYamlError", "YamlLimits", "read", "read_json", "write", "write_pretty"]
