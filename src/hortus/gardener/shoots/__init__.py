"""Shoots as Gardener's API server treats them: what it makes of one that is sent, and the rules by which it refuses.

    defaulted(shoot)             # a copy that is decoded and has its defaults; raises ShapeError in Go's words
    shoot_problems(shoot)        # the problems of creating a Shoot that was decoded and has its defaults
    change_problems(shoot, old)  # those of writing it over the Shoot `old`

The problems are FieldErrors with the paths and the words of Gardener's own errors. What differs between Kubernetes
versions stands in tables of fields, feature gates, APIs and admission plugins; what differs between the releases of
Gardener in `RELEASES` goes by the argument `release`. Pure; what needs other objects (profiles, bindings, seeds) is not
known here. Source: gardener/gardener, pkg/api/core/validation, read at v1.148.0, v1.149.0 and v1.150.0. Differences on
purpose: docs/simulated-garden.md.
"""

from __future__ import annotations

from hortus.gardener.shoots.changes import change_problems
from hortus.gardener.shoots.defaulting import default, defaulted
from hortus.gardener.shoots.facts import NEWEST, RELEASES, Release
from hortus.gardener.shoots.validation import shoot_problems

__all__ = ["NEWEST", "RELEASES", "Release", "change_problems", "default", "defaulted", "shoot_problems"]
