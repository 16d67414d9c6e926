"""Request counts and latencies in Prometheus' text format, under kube-apiserver's names.

Plain integers in a dict: a counter object per label set would cost more than the rest of a small request.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

_BOUNDS = (0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0)
"""Seconds; a selection of kube-apiserver's buckets."""


class _Asked(NamedTuple):
    verb: str
    group: str
    resource: str
    subresource: str


_MOST_ASKED = 4096
"""Kinds of request with series of their own; CRDs of all logical clusters may bring more."""
_OTHER = _Asked("", "", "", "")


class ServerMetrics:
    def __init__(self) -> None:
        self._codes: Counter[tuple[str, str, str, str, int]] = Counter()
        self._buckets: dict[_Asked, list[int]] = {}
        self._sums: dict[_Asked, float] = {}
        self.watches: Counter[str] = Counter()

    def done(
        self,
        verb: str,
        group: str,
        resource: str,
        subresource: str,
        code: int,
        duration: float,
        *,
        made_up: bool = False,
    ) -> None:
        """Count one answered request; `duration` in seconds.

        `made_up` means that the names come from an unauthorized client and may be arbitrary: unless such a request has
        been counted before, it is counted without them.
        """
        asked = _Asked(verb, group, resource, subresource)
        buckets = self._buckets.get(asked)
        if buckets is None:
            if made_up or len(self._buckets) >= _MOST_ASKED:
                asked = _OTHER
            buckets = self._buckets.setdefault(asked, [0] * (len(_BOUNDS) + 1))
            self._sums.setdefault(asked, 0.0)
        self._codes[(*asked, code)] += 1
        index = 0
        while index < len(_BOUNDS) and duration > _BOUNDS[index]:
            index += 1
        buckets[index] += 1
        self._sums[asked] += duration

    def text(self) -> bytes:
        lines = ["# TYPE apiserver_request_total counter"]
        for (verb, group, resource, subresource, code), count in sorted(self._codes.items()):
            labels = _labels(_Asked(verb, group, resource, subresource))
            lines.append(f'apiserver_request_total{{{labels},code="{code}"}} {count}')
        lines.append("# TYPE apiserver_request_duration_seconds histogram")
        for asked, buckets in sorted(self._buckets.items()):
            lines += _histogram(asked, buckets, self._sums[asked])
        lines.append("# TYPE apiserver_longrunning_requests gauge")
        for resource, count in sorted(self.watches.items()):
            lines.append(f'apiserver_longrunning_requests{{verb="WATCH",resource="{resource}"}} {count}')
        return ("\n".join(lines) + "\n").encode()


def _histogram(asked: _Asked, buckets: list[int], total: float) -> list[str]:
    labels, lines, count = _labels(asked), [], 0
    for bound, number in zip([*map(str, _BOUNDS), "+Inf"], buckets, strict=True):
        count += number
        lines.append(f'apiserver_request_duration_seconds_bucket{{{labels},le="{bound}"}} {count}')
    lines.append(f"apiserver_request_duration_seconds_sum{{{labels}}} {total:.6f}")
    lines.append(f"apiserver_request_duration_seconds_count{{{labels}}} {count}")
    return lines


def _labels(asked: _Asked) -> str:
    return (
        f'verb="{asked.verb.upper()}",group="{asked.group}",resource="{asked.resource}",'
        f'subresource="{asked.subresource}"'
    )
