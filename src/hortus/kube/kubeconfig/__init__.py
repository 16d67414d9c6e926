"""Kubeconfigs, trusted and untrusted.

`load` reads the operator's own files and allows all that kubectl allows. `from_untrusted` reads a document out of an
API object and allows inline data only. Both give a `Kubeconfig`, whose `access(context)` a `Client` takes. `document`,
`write` and `merge_into` make them.
"""

from hortus.kube.kubeconfig.document import Kubeconfig, KubeconfigError
from hortus.kube.kubeconfig.load import default_file, default_paths, in_cluster, load, merge, through_proxy
from hortus.kube.kubeconfig.plugin import ExecRequest, exec_credential, with_plugin
from hortus.kube.kubeconfig.untrusted import Trust, from_untrusted
from hortus.kube.kubeconfig.write import document, merge_into, merged, write

__all__ = [
    "ExecRequest",
    "Kubeconfig",
    "KubeconfigError",
    "Trust",
    "default_file",
    "default_paths",
    "document",
    "exec_credential",
    "from_untrusted",
    "in_cluster",
    "load",
    "merge",
    "merge_into",
    "merged",
    "through_proxy",
    "with_plugin",
    "write",
]
