"""Keystone and Glance of one cloud on loopback: for tests and for `hortus up`.

    async with CloudServer(CloudUsers()) as cloud:
        cloud.auth_url                    # http://127.0.0.1:PORT/identity/v3
        cloud.images                      # the images, whose imports take as many looks as `script` has statuses

It speaks as the API documents say (https://docs.openstack.org/api-ref/identity/v3/ and
https://docs.openstack.org/api-ref/image/v2/): tokens by password, application credential and token; a catalog with
regions and interfaces; images created, listed by pages, imported by web-download with their tasks, and deleted.
`intercept` stands for faults.
"""

from hortus.simulation.glance.images import Images, StoredImage
from hortus.simulation.glance.server import CloudServer
from hortus.simulation.glance.tokens import CloudUsers

__all__ = ["CloudServer", "CloudUsers", "Images", "StoredImage"]
