"""Kubeconfig Secrets: kept, stamped, proven, rotated and repaired, for every domain that hands out kubeconfigs.

    STAMPS = Stamps(issued="a/issued-at", expires="a/expires-at", checksum="a/checksum", made_for="a/made-for")
    POLICY = RotationPolicy(share=0.6, spread=0.1)

    cache = manager.cache(SECRETS, labels="a/cluster", transform=sealed)
    store = KubeconfigStore(client, cache, field_manager="a")
    plan = SecretPlan(key=key, data_key="config", stamps=STAMPS, labels=labels, owner=owner)

    due = POLICY.next(
        issued=STAMPS.issued_at(secret), expires=STAMPS.expires_at(secret), fraction=fraction_of(uid), now=now
    )
    await proof.prove(content, origin=f"kubeconfig of cluster {name}")
    await store.create(plan.created(kubeconfig))          # or, of one that is there:
    await store.change(secret, plan.renewal(secret, kubeconfig))

- **Contents** (`secrets`, `contents`): checksums in place of values, the annotations that say what a Secret holds, the
  patches that renew and repair it.
- **Store** (`store`): writes that reach only the Secret that was looked at, with update where patch is not allowed.
- **Rotation** (`rotation`): the due time, from a share of the life that was asked for or granted.
- **Proof** (`proof`): a kubeconfig is data, and its cluster answers to it, before it replaces another one.
- **Repairs** (`repairs`): a Secret that another writer changes over and over is written less and less often.
"""

from typing import TYPE_CHECKING

from hortus.facade import lazy

if TYPE_CHECKING:
    from hortus.engine.kubeconfigs.contents import IssuedKubeconfig, SecretPlan, Stamps, restores_identity
    from hortus.engine.kubeconfigs.proof import (
        Advice,
        ClusterProof,
        DocumentProof,
        KubeconfigProof,
        ProofFailed,
        TrialClients,
    )
    from hortus.engine.kubeconfigs.repairs import RepairBackoff
    from hortus.engine.kubeconfigs.rotation import Due, RotationPolicy, fraction_of
    from hortus.engine.kubeconfigs.secrets import SECRETS, KubeconfigSecret, checksum, encoded, read_secret, sealed
    from hortus.engine.kubeconfigs.store import KubeconfigStore
else:
    __getattr__ = lazy(
        __name__,
        {
            "contents": "IssuedKubeconfig SecretPlan Stamps restores_identity",
            "proof": "Advice ClusterProof DocumentProof KubeconfigProof ProofFailed TrialClients",
            "repairs": "RepairBackoff",
            "rotation": "Due RotationPolicy fraction_of",
            "secrets": "SECRETS KubeconfigSecret checksum encoded read_secret sealed",
            "store": "KubeconfigStore",
        },
    )

__all__ = [
    "SECRETS",
    "Advice",
    "ClusterProof",
    "DocumentProof",
    "Due",
    "IssuedKubeconfig",
    "KubeconfigProof",
    "KubeconfigSecret",
    "KubeconfigStore",
    "ProofFailed",
    "RepairBackoff",
    "RotationPolicy",
    "SecretPlan",
    "Stamps",
    "TrialClients",
    "checksum",
    "encoded",
    "fraction_of",
    "read_secret",
    "restores_identity",
    "sealed",
]
