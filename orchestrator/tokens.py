"""Access tokens by OAuth 2 client credentials, kept until shortly before they end."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from orchestrator.errors import TokenUnavailable

if TYPE_CHECKING:
    from orchestrator.deployment import Deployment

METADATA_PATH = "/.well-known/oauth-authorization-server"
# Seconds before its end at which a token is no longer used.
_MARGIN = 30
_MOST_KEPT = 512


def fingerprint(token: str) -> str:
    """Return what may be shown and stored instead of a token."""
    return f"sha256:{hashlib.sha256(token.encode()).hexdigest()[:12]}"


class Tokens:
    """Gets tokens for a subject and a tenant from the deployment's issuer.

    The issuer is found by its metadata (RFC 8414); the grant is RFC 6749, 4.4, with
    the client authenticated by HTTP Basic (2.3.1). ``subject`` and ``tenant`` are
    the demo issuer's own parameters; another issuer ignores them.
    """

    def __init__(self, http: httpx.AsyncClient, deployment: Deployment) -> None:
        self._http = http
        self._deployment = deployment
        self._endpoint = ""
        self._kept: OrderedDict[tuple[str, str], tuple[str, float]] = OrderedDict()
        self._lock = asyncio.Lock()

    async def get(self, subject: str, tenant: str) -> str:
        """Return a token that is good for a while yet.

        Raises:
            TokenUnavailable: the issuer cannot be reached or refuses.
        """
        token, ends = self._kept.get((subject, tenant), ("", 0.0))
        if time.monotonic() < ends - _MARGIN:
            return token
        try:
            answer = await self._request(subject, tenant)
            token = str(answer["access_token"])
            ends = time.monotonic() + float(answer.get("expires_in", 0))
        except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
            self._endpoint = ""
            raise TokenUnavailable(f"{type(error).__name__}: {error}") from error
        self._keep((subject, tenant), (token, ends))
        return token

    def _keep(self, key: tuple[str, str], token: tuple[str, float]) -> None:
        self._kept[key] = token
        self._kept.move_to_end(key)
        while len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)

    async def _request(self, subject: str, tenant: str) -> dict[str, Any]:
        client = self._deployment
        answer = await self._http.post(
            await self._token_endpoint(),
            data={
                "grant_type": "client_credentials",
                "subject": subject,
                "tenant": tenant,
            },
            auth=(quote(client.client_id), quote(client.client_secret)),
        )
        answer.raise_for_status()
        return dict(answer.json())

    async def _token_endpoint(self) -> str:
        async with self._lock:
            if not self._endpoint:
                issuer = self._deployment.issuer
                metadata = await self._http.get(issuer + METADATA_PATH)
                metadata.raise_for_status()
                found = metadata.json()
                # RFC 8414, 3.3: metadata of another issuer must not be used.
                if found["issuer"] != issuer:
                    raise ValueError(f"metadata of issuer {found['issuer']!r}")
                self._endpoint = str(found["token_endpoint"])
            return self._endpoint
