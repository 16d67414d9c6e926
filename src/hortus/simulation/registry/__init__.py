"""An OCI registry on loopback, with its content in a folder: for `hortus up` and for tests.

    async with RegistryServer(RegistryFolder(path), users={"hortus": password}) as registry:
        registry.address                  # 127.0.0.1:PORT, plain http

It serves what clients of distribution-spec 1.1 use: pulls with ranges, uploads in one piece, in chunks or mounted from
another repository, tags, referrers and deletion. With `users`, everyone pulls and these push.
"""

from hortus.simulation.registry.folder import RegistryFolder, StoredManifest
from hortus.simulation.registry.server import RegistryServer

__all__ = ["RegistryFolder", "RegistryServer", "StoredManifest"]
