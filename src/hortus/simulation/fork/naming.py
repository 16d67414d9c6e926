"""The names of live clusters in the fork, found by the addresses under which they are reached.

A fleet of `hortus up` has all clusters behind one server, whose paths name them already. Elsewhere a Shoot advertises
its addresses, and any other cluster is named after its address.
"""

from __future__ import annotations

import hashlib
from typing import Final

from yarl import URL

from hortus.kube.objects import Object
from hortus.simulation.garden.kinds import technical_id

GARDEN: Final = "garden"
NOWHERE: Final = "https://plan.invalid"
"""The server of clusters that exist in the fork alone."""
FOREIGN: Final = "cluster-"
"""Begins the names of clusters that are named after their addresses."""
_PREFIX: Final = "/clusters/"


class ForkNames:
    def __init__(self, management: str, garden: str) -> None:
        """`management` and `garden` are the servers of both; `garden` is empty where there is none."""
        self._origins = {str(URL(management).origin()), NOWHERE}
        self._known = {_normal(management): "root"}
        if garden:
            self._known[_normal(garden)] = GARDEN
        self._found: dict[str, str] = {}

    def take(self, shoot: Object) -> None:
        """Learns the addresses of a Shoot's cluster."""
        self._found.clear()
        metadata = shoot["metadata"]
        for address in (shoot.get("status") or {}).get("advertisedAddresses") or ():
            url = address.get("url", "")
            if url and address.get("name") != "service-account-issuer":
                self._known.setdefault(_normal(url), technical_id(metadata["namespace"], metadata["name"]))

    def of(self, server: str) -> str:
        """The name of the cluster at the address `server`."""
        found = self._found.get(server)
        if found is None:
            found = self._found[server] = self._look_up(server)
        return found

    def _look_up(self, server: str) -> str:
        url = URL(server)
        if str(url.origin()) in self._origins and url.path.startswith(_PREFIX):
            return url.path.removeprefix(_PREFIX).strip("/")
        known = self._known.get(_normal(server))
        return known or f"{FOREIGN}{hashlib.sha256(_normal(server).encode()).hexdigest()[:10]}"


def _normal(server: str) -> str:
    url = URL(server)
    return f"{url.host}:{url.port}{url.path.rstrip('/')}"
