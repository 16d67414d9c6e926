"""Calls to one repository of one registry: authorized, repeated after a 401 once, refused in our words."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping

import aiohttp
from yarl import URL

from hortus.render.artifacts import Transfer
from hortus.render.artifacts.redirects import authority
from hortus.render.artifacts.transfer import Answer
from hortus.render.oci.answers import refusal, refused
from hortus.render.oci.auth import Authorizer


class Repository:
    """One repository, in one or more scopes: `pull` to read, `pull,push` to write."""

    def __init__(self, transfer: Transfer, authorizer: Authorizer, base: URL, name: str, *, scope: str) -> None:
        self.transfer = transfer
        self.name = name
        self.base = base
        self.place = f"{authority(base)}/{name}"
        self._authorizer = authorizer
        self._scope = scope

    def url(self, kind: str, identifier: str, query: str = "") -> URL:
        """`/v2/<name>/<kind>/<identifier>`."""
        path = f"{self.base}/v2/{self.name}/{kind}/{identifier}"
        return URL(path + (f"?{query}" if query else ""), encoded=True)

    async def call(
        self,
        method: str,
        url: URL,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        expect: tuple[int, ...] = (200,),
        what: str,
    ) -> Answer:
        """One small answer with one of the statuses in `expect`. Raises ArtifactError."""
        header = self._authorizer.header(self._scope)
        answer = await self.transfer.document(method, url, headers=headers, authorization=header, body=body)
        if answer.status == 401 and answer.url.origin() == url.origin():
            offered = answer.headers.getall("WWW-Authenticate", [])
            header = await self._authorizer.answer(offered, self._scope, rejected=header)
            answer = await self.transfer.document(method, url, headers=headers, authorization=header, body=body)
        if answer.status not in expect:
            raise refusal(answer, what, self.transfer)
        return answer

    @contextlib.asynccontextmanager
    async def download(self, url: URL, start: int, *, what: str) -> AsyncIterator[aiohttp.ClientResponse]:
        """A blob from byte `start` on. Raises ArtifactError."""
        headers = {"Range": f"bytes={start}-"} if start else {}
        header = self._authorizer.header(self._scope)
        async with contextlib.AsyncExitStack() as stack:
            stream = self.transfer.stream("GET", url, headers=headers, authorization=header)
            response = await stack.enter_async_context(stream)
            if response.status == 401 and response.url.origin() == url.origin():
                offered = response.headers.getall("WWW-Authenticate", [])
                header = await self._authorizer.answer(offered, self._scope, rejected=header)
                stream = self.transfer.stream("GET", url, headers=headers, authorization=header)
                response = await stack.enter_async_context(stream)
            if response.status not in (200, 206, 416):
                raise refused(response.status, response.headers, authority(response.url), what, self.transfer)
            yield response
