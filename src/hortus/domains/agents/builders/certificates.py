"""Certificates of agents that options ask for: by cert-manager, by OpenShift's service CA, or by ourselves.

The Secret is written by the issuer, or built here from the pairs in the facts. Pods mount it once it is complete, so
that an issuer that is slow or broken holds no agent up; a certificate of the CR counts before it.
"""

from __future__ import annotations

from typing import Final

from hortus.domains.agents.builders import names, secrets, services
from hortus.domains.agents.builders.facts import InstanaFacts
from hortus.domains.agents.builders.metadata import AGENT, REMOTE, common_labels, namespaced
from hortus.domains.agents.builders.names import AnyAgent
from hortus.domains.agents.builders.remote import hostname
from hortus.domains.agents.names import CERTIFICATES
from hortus.domains.agents.options import InstanaOptions
from hortus.domains.agents.types import InstanaAgentRemote
from hortus.kube.objects import Object

_USAGES: Final = ("digital signature", "key encipherment", "server auth")


def certificate(agent: AnyAgent, facts: InstanaFacts) -> Object | None:
    """The Certificate that cert-manager issues; None where the options name no issuer."""
    wanted = facts.options.certificate
    if wanted is None or wanted.issuer is None:
        return None
    secret, component = names.issued_secret(agent), REMOTE if isinstance(agent, InstanaAgentRemote) else AGENT
    issuer = wanted.issuer
    spec: Object = {
        "secretName": secret,
        "dnsNames": [*_dns_names(agent), *wanted.dns_names],
        "usages": list(_USAGES),
        "issuerRef": {"group": issuer.group, "kind": issuer.kind, "name": issuer.name},
    }
    terms = {"duration": wanted.duration, "renewBefore": wanted.renew_before}
    return {
        "apiVersion": CERTIFICATES.api_version,
        "kind": CERTIFICATES.kind,
        "metadata": namespaced(agent, secret, common_labels(agent, component, facts.operator_version)),
        "spec": {**spec, **{name: text for name, text in terms.items() if text}},
    }


def own_secrets(agent: AnyAgent, facts: InstanaFacts) -> tuple[Object, ...]:
    """The Secrets of a certificate that we issue: that of the authority, and that of the agent."""
    pairs = facts.own_certificate
    if pairs is None or facts.options.certificate is None or not facts.options.certificate.own:
        return ()
    kept = ((names.authority_secret(agent), pairs.authority), (names.issued_secret(agent), pairs.serving))
    return tuple(secrets.of_pair(agent, facts, name, pair) for name, pair in kept)


def own_names(agent: AnyAgent, options: InstanaOptions) -> list[str] | None:
    """The names in a certificate that we issue; None where options ask for none."""
    wanted = options.certificate
    return [*_dns_names(agent), *wanted.dns_names] if wanted is not None and wanted.own else None


def missing(agent: AnyAgent, facts: InstanaFacts) -> str:
    """The reason for which the certificate that the options ask for is not there; empty for none."""
    wanted = facts.options.certificate
    if wanted is None or secrets.mounted_certificate(agent, facts):
        return ""
    name = names.issued_secret(agent)
    if wanted.issuer is not None:
        by = f"{wanted.issuer.kind} {wanted.issuer.name}"
        return f"option certificate: Secret {name} is not issued by {by} yet: Certificate {name} says why"
    if wanted.own:
        return f"option certificate: Secret {name} is not made yet"
    if not facts.openshift:
        return "option certificate: the cluster is not OpenShift: name an issuer of cert-manager instead"
    return (
        f"option certificate: Secret {name} is not issued yet: see the annotations of Service "
        f"{services.serving(agent)} that begin with service.beta.openshift.io"
    )


def _dns_names(agent: AnyAgent) -> list[str]:
    """The names by which workloads of the cluster, and agents among each other, find the agent."""
    if isinstance(agent, InstanaAgentRemote):
        return [hostname(agent)]
    namespace, headless = agent.metadata.namespace, names.headless(agent)
    within = [f"{name}.{namespace}.svc" for name in (agent.metadata.name, headless)]
    return [f"{agent.metadata.name}.{namespace}", *within, f"*.{headless}.{namespace}.svc"]


__all__ = ["certificate", "missing", "own_names", "own_secrets"]
