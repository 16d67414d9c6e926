"""The limits of a pool of remote clusters, one place for all of them."""

from __future__ import annotations

import msgspec

from hortus.engine.backoff import Backoff
from hortus.kube import LOCAL_NETWORKS, ConnectionSettings, Retries
from hortus.kube.dialing import Network
from hortus.kube.kubeconfig import Trust


class RemoteSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Limits for each cluster and for all together; times in seconds, sizes in bytes."""

    qps: float = 50.0
    """Calls a second to one cluster, on average; this and `burst` are lifecycle-manager's (`k8s-skr-client-qps`)."""
    burst: int = 100
    calls: int = 3
    """Calls in flight to one cluster; more wait in line, within their deadline. Each needs a connection, whose TLS
    handshake costs more processor time than the call: a reconcile of eight objects at once would make eight."""
    timeout: float = 10.0
    """For one attempt of a call."""
    connect_timeout: float = 10.0
    deadline: float = 20.0
    """For a whole call: waiting for its turn, connecting, every attempt."""
    patience: float = 0.5
    """After so long a call lets another worker of its controller stand in for the one that waits, unless most clusters
    answer as late."""
    max_response: int = 16 << 20
    max_list: int = 64 << 20
    """For a list, all pages together, and for what a watch keeps in its cache."""
    max_event: int = 2 << 20
    longest_pause: float = 60.0
    """A cluster that answers 429 is left alone as long as it asks for, and never longer than this."""

    sockets: int = 20_000
    """Open connections to all clusters together. A watched cluster needs one for each watch, and one while called."""
    watch_share: float = 0.9
    """The part of `sockets` that watches may have, so that calls always find some."""
    memory: int = 256 << 20
    """The most bytes that long answers and unfinished events of all clusters hold together while they are read."""
    handshakes: int = 32
    """Connections being made at once: they are what costs CPU. One that takes longer than a second counts no more."""
    idle: float = 120.0
    """A cluster that was neither called nor watched for so long is closed."""

    failures: int = 3
    """Connections that failed in a row until the breaker opens. A timeout or a refused credential opens it at once."""
    breaker: Backoff = Backoff(first=2.0, cap=120.0, factor=2.0, jitter=0.5)
    """The time before one probe goes out; the jitter spreads the clusters of a region that came back."""
    probe_every: float = 300.0
    """A cluster that is watched and was not heard of for so long is probed."""
    bookmark_period: float = 60.0
    """Between two bookmarks: a watch with them that is silent for two ends, and its cluster is probed. One watch of a
    cluster has them."""
    watch_period: float = 3600.0
    """The shortest time of one stream of a watch, up to twice this. To begin one again costs a request, so thousands of
    clusters at rest are asked seldom; bookmarks show all the while that a stream lives."""
    watch_turn: float = 300.0
    """The same while four of five places for watches are taken, so that those who wait for one get their turn."""
    probes: int = 64
    """Probes under way at once."""

    trust: Trust = Trust()
    """The features that a kubeconfig may use."""
    deny: tuple[Network, ...] = LOCAL_NETWORKS
    """Networks that a kubeconfig may not lead to, whatever a name resolves to."""
    user_agent: str = "hortus"

    def __post_init__(self) -> None:
        if self.sockets < 2 or self.handshakes < 1 or self.calls < 1 or not 0 < self.watch_share < 1:
            raise ValueError("sockets must be at least 2, handshakes and calls at least 1, watch_share between 0 and 1")

    def connection(self) -> ConnectionSettings:
        """The settings of one cluster's connection. The rate limit is not in it: it outlives a connection."""
        return ConnectionSettings(
            connections=self.calls,
            timeout=self.timeout,
            connect_timeout=self.connect_timeout,
            max_response=self.max_response,
            max_list=self.max_list,
            max_event=self.max_event,
            bookmark_period=self.bookmark_period,
            watch_period=self.watch_period,
            # A worker waits for a call: what takes long is left to its queue.
            retries=Retries(attempts=2, first_wait=0.1, longest_wait=1.0),
            user_agent=self.user_agent,
            deny=self.deny,
        )
