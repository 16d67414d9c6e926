"""A Runtime as a Gardener Shoot: pure functions from values to values, which keep nothing.

    shoot = shoot_for(runtime, config, context)                  # to create
    patch = patch_for(runtime, live, config, context)            # to bring a live one up to the Runtime
    config_map = authentication(runtime, config)                 # with structured authentication: before either

A Runtime comes as its struct, a live Shoot as `LiveShoot`, a CloudProfile as its `Offer`. Results are plain objects,
ready to be sent, and share parts with the arguments: nobody changes either. A Runtime that cannot be converted raises
ConversionError, whose `problems` name the field, the value and what is allowed.
Contract: kyma-project/infrastructure-manager, pkg/gardener/shoot. The treatment of each field: docs/clusters/shoot.md.
"""

from hortus.domains.clusters.shoot.bindings import by_credentials_binding, leaves_secret_binding
from hortus.domains.clusters.shoot.context import DEFAULT_CONTEXT, Context
from hortus.domains.clusters.shoot.conversion import shoot_for
from hortus.domains.clusters.shoot.kubernetes import authentication, authentication_name, has_structured_authentication
from hortus.domains.clusters.shoot.live import LiveShoot
from hortus.domains.clusters.shoot.patching import (
    Patch,
    applied,
    patch_for,
    pools_in_place,
    pools_taken_over,
    shoot_after,
)
from hortus.domains.clusters.shoot.placement import profile_name
from hortus.domains.clusters.shoot.problems import ConversionError
from hortus.domains.clusters.shoot.profile import Offer, kept_offer, offer_of, profile_outline
from hortus.domains.clusters.shoot.remarks import remarks_of
from hortus.domains.clusters.shoots import SHOOTS

__all__ = [
    "DEFAULT_CONTEXT",
    "SHOOTS",
    "Context",
    "ConversionError",
    "LiveShoot",
    "Offer",
    "Patch",
    "applied",
    "authentication",
    "authentication_name",
    "by_credentials_binding",
    "has_structured_authentication",
    "kept_offer",
    "leaves_secret_binding",
    "offer_of",
    "patch_for",
    "pools_in_place",
    "pools_taken_over",
    "profile_name",
    "profile_outline",
    "remarks_of",
    "shoot_after",
    "shoot_for",
]
