"""Shoots that exist become Runtimes, so that both together change nothing: the conversion in `shoot`, inverted.

    identity = identity_of(shoot, holders)                        # labels, from a source that knows them
    adoption = runtime_from(shoot, config, context, identity=identity)
    adoption.differences                                          # what a patch would change nevertheless, and why

Pure so far. `sources` reads what there is, `steps` writes: the objects locked, compared by the garden's own dry run,
then released. A locked Runtime is touched by no controller, and deleting it deletes nothing else. What people type and
see: docs/clusters/adoption.md.
"""

from hortus.domains.clusters.adoption.comparison import Difference, differences_between, unified
from hortus.domains.clusters.adoption.identity import Holder, Identity, Inside, identity_of
from hortus.domains.clusters.adoption.inverse import Adoption, runtime_from

__all__ = [
    "Adoption",
    "Difference",
    "Holder",
    "Identity",
    "Inside",
    "differences_between",
    "identity_of",
    "runtime_from",
    "unified",
]
