"""The variables of the environment that name the places of releases, and their credentials.

They are those of SovereignCloudStack/cluster-stack-operator and csctl, so that one Secret serves all.

| OCI_REGISTRY, OCI_REPOSITORY | the repository, with the registry in front; `http://` allows plain HTTP |
| OCI_ACCESS_TOKEN, or OCI_USERNAME and OCI_PASSWORD | credentials |
| GIT_PROVIDER, GIT_ORG_NAME, GIT_REPOSITORY_NAME, GIT_ACCESS_TOKEN | the repository on GitHub |
| GIT_API_URL | the API of an enterprise server, as https://github.example.com/api/v3; an addition of Hortus |
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from hortus.kube.secret import Secret

if TYPE_CHECKING:
    from hortus.render.oci import RegistryCredentials


class RemoteVariables(msgspec.Struct, frozen=True, rename=str.upper):
    """The variables."""

    oci_registry: str = ""
    oci_repository: str = ""
    oci_access_token: str = ""
    oci_username: str = ""
    oci_password: str = ""
    git_provider: str = "github"
    git_org_name: str = ""
    git_repository_name: str = ""
    git_access_token: str = ""
    git_api_url: str = ""

    @property
    def git_token(self) -> Secret | None:
        """The token for GitHub; None to call it anonymously."""
        return Secret(self.git_access_token) if self.git_access_token else None

    def registry_credentials(self) -> RegistryCredentials | None:
        """The credentials for the registry; None to call it anonymously."""
        from hortus.render.oci import RegistryCredentials

        if self.oci_access_token:
            # As the Go clients do: registries that take such a token expect it in base64.
            token = base64.b64encode(self.oci_access_token.encode()).decode()
            return RegistryCredentials(registry_token=Secret(token))
        if self.oci_username and self.oci_password:
            return RegistryCredentials(username=self.oci_username, password=Secret(self.oci_password))
        return None

    def __repr__(self) -> str:
        return f"RemoteVariables({self.oci_repository!r}, {self.git_org_name!r}, {self.git_repository_name!r})"


def remote_variables(environment: Mapping[str, str]) -> RemoteVariables:
    """The variables that are set in an environment."""
    return msgspec.convert(dict(environment), RemoteVariables)
