"""Sends packets from a node and from a pod behind it, and prints those that a host outside received.

Started by test_firewall.py under `unshare`, with the text of the rules on standard input: three network namespaces, in
which the node forwards for the pod. All is sent without rules and, once nftables has loaded them, again.
"""

from __future__ import annotations

import selectors
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from typing import NamedTuple

import orjson

POD, POD6 = "100.96.0.2", "fd00:96::2"
"""The pod, on a network of the cluster."""
NEAR, NEAR6 = "10.250.0.9", "fd00:250::9"
"""The host, on the network of nodes."""
FAR, FAR6 = "203.0.113.9", "2001:db8:9::9"
"""The same host, under addresses that are on no list."""
LISTED, LISTED6 = "198.51.100.9", "2001:db8:1::9"
"""The same host, under addresses that the list has, with port 443 of UDP."""
_PORTS = (67, 547, 443)
_HERE = ("ip", "netns", "exec")
_ND = 135
"""Neighbor solicitation (RFC 4861)."""
_SETUP = f"""
mount -t tmpfs none /run
ip netns add pod
ip netns add out
sysctl -qw net.ipv6.conf.default.accept_dad=0
ip netns exec pod sysctl -qw net.ipv6.conf.default.accept_dad=0
ip netns exec out sysctl -qw net.ipv6.conf.default.accept_dad=0
ip link set lo up
ip link add name pods type veth peer name eth0 netns pod
ip link add name out type veth peer name eth0 netns out
ip addr add 100.96.0.1/24 dev pods
ip addr add fd00:96::1/64 dev pods
ip addr add 10.250.0.1/16 dev out
ip addr add fd00:250::1/64 dev out
ip link set pods up
ip link set out up
sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
ip -n pod addr add {POD}/24 dev eth0
ip -n pod addr add {POD6}/64 dev eth0
ip -n pod link set eth0 up
ip -n pod route add default via 100.96.0.1
ip -n pod route add default via fd00:96::1
ip -n out addr add {NEAR}/16 dev eth0
ip -n out addr add {FAR}/32 dev eth0
ip -n out addr add {LISTED}/32 dev eth0
ip -n out addr add {NEAR6}/64 dev eth0
ip -n out addr add {FAR6}/128 dev eth0
ip -n out addr add {LISTED6}/128 dev eth0
ip -n out link set eth0 up
ip -n out route add default via 10.250.0.1
ip -n out route add default via fd00:250::1
ip route add {FAR}/32 via {NEAR}
ip route add {LISTED}/32 via {NEAR}
ip route add {FAR6}/128 via {NEAR6}
ip route add {LISTED6}/128 via {NEAR6}
"""


class Packet(NamedTuple):
    label: str
    host: str
    source: int
    port: int
    """0 for a neighbor solicitation."""


def packets(sender: str) -> Iterator[Packet]:
    """The packets of a sender: each way out that a firewall of this kind leaves to itself, and the listed one."""
    yield Packet(f"{sender} dhcp broadcast", "255.255.255.255", 68, 67)
    yield Packet(f"{sender} dhcp near", NEAR, 68, 67)
    yield Packet(f"{sender} dhcp far", FAR, 68, 67)
    yield Packet(f"{sender} dhcp6 multicast", "ff02::1:2", 546, 547)
    yield Packet(f"{sender} dhcp6 near", NEAR6, 546, 547)
    yield Packet(f"{sender} dhcp6 far", FAR6, 546, 547)
    yield Packet(f"{sender} solicitation near", NEAR6, 0, 0)
    yield Packet(f"{sender} solicitation far", FAR6, 0, 0)
    yield Packet(f"{sender} unlisted", FAR, 443, 443)
    yield Packet(f"{sender} unlisted6", FAR6, 443, 443)
    yield Packet(f"{sender} listed6", LISTED6, 443, 443)
    yield Packet(f"{sender} listed", LISTED, 443, 443)


def send(sender: str, device: str) -> None:
    for packet in packets(sender):
        family = socket.AF_INET6 if ":" in packet.host else socket.AF_INET
        raw = not packet.port
        with socket.socket(family, *((socket.SOCK_RAW, socket.IPPROTO_ICMPV6) if raw else (socket.SOCK_DGRAM,))) as own:
            own.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            body = packet.label.encode()
            if packet.host in ("255.255.255.255", "ff02::1:2"):
                own.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
            if raw:
                own.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, 255)
                target = socket.inet_pton(socket.AF_INET6, packet.host)
                body = struct.pack("!BBHI", _ND, 0, 0, 0) + target + body
            else:
                own.bind(("", packet.source))
            try:
                own.sendto(body, (packet.host, packet.port))
            except PermissionError:
                continue  # refused on this machine


def receive() -> None:
    """Print the labels of all packets up to the last of each family; a neighbor keeps their order."""
    chosen = selectors.DefaultSelector()
    for port in _PORTS:
        for family in (socket.AF_INET, socket.AF_INET6):
            own = socket.socket(family, socket.SOCK_DGRAM)
            if family == socket.AF_INET6:
                own.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                group = socket.inet_pton(family, "ff02::1:2") + struct.pack("@I", socket.if_nametoindex("eth0"))
                own.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, group)
            own.bind(("", port))
            chosen.register(own, selectors.EVENT_READ)
    chosen.register(socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6), selectors.EVENT_READ)
    print("ready", flush=True)
    last = {b"node listed", b"node listed6"}
    while ready := chosen.select(None if last else 0):  # each socket keeps its own packets
        for key, _ in ready:
            assert isinstance(key.fileobj, socket.socket)
            body = key.fileobj.recv(2048)
            if key.fileobj.type == socket.SOCK_RAW:
                body = body[24:] if body[0] == _ND else b""
            if body.startswith((b"node", b"pod")):
                print(body.decode(), flush=True)
            last.discard(body)


def received() -> list[str]:
    this = (sys.executable, "-m", "tests.domains.garden.airgap.enforced")
    listener = subprocess.Popen((*_HERE, "out", *this, "receive"), stdout=subprocess.PIPE, text=True)
    assert listener.stdout is not None
    assert listener.stdout.readline() == "ready\n"
    subprocess.run((*_HERE, "pod", *this, "send", "pod", "eth0"), check=True)
    subprocess.run((*this, "send", "node", "out"), check=True)
    found, _ = listener.communicate(timeout=20)
    return sorted(found.splitlines())


def main() -> None:
    rules = sys.stdin.read()
    for line in _SETUP.strip().splitlines():
        subprocess.run(line.split(), check=True)
    without = received()
    for _ in range(2):  # the second load replaces the first
        subprocess.run(("nft", "-f", "-"), input=rules, text=True, check=True)
    sys.stdout.write(orjson.dumps({"without": without, "enforced": received()}).decode())


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["send", sender, device]:
            send(sender, device)
        case ["receive"]:
            receive()
        case _:
            main()
