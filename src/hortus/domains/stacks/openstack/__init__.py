"""Node images of OpenStack clouds: imported by Glance, followed until they are active, and cleaned up by option.

`clouds` reads the Secret with clouds.yaml, `keystone` and `glance` speak the APIs over `transport`, `service` decides.
`releases` and `nodeimages` are the controllers of OpenStackClusterStackReleases and OpenStackNodeImageReleases.
"""
