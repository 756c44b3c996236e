"""An issuer's signing keys: found by discovery, cached, refreshed when needed."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from billing_agent.refusals import Later

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger(__name__)

TIMEOUT = 3.0
MAX_AGE = 3600.0
MIN_INTERVAL = 10.0
RETRY_AFTER = 1.0
_ASYMMETRIC = frozenset({"EC", "RSA"})


class IssuerUnreachable(Later):
    """The issuer's metadata or keys cannot be had right now."""

    def __init__(self) -> None:
        super().__init__("the token issuer cannot be reached", RETRY_AFTER)


# What an issuer that is down, or answers something else than keys, ends in.
_UNUSABLE = (
    httpx.HTTPError,
    IssuerUnreachable,
    JoseError,
    AttributeError,
    KeyError,
    TypeError,
    ValueError,
)


def metadata_addresses(issuer: str) -> list[str]:
    """Return where an issuer's metadata may be.

    RFC 8414, section 3.1, puts the well-known part before the issuer's path;
    OpenID Connect Discovery 1.0, section 4, puts it after.
    """
    parts = urlsplit(issuer)
    path = parts.path.rstrip("/")
    host = f"{parts.scheme}://{parts.netloc}"
    return [
        f"{host}/.well-known/oauth-authorization-server{path}",
        f"{host}{path}/.well-known/openid-configuration",
    ]


def issuer_client(
    issuer: str, transport: httpx.AsyncBaseTransport | None = None
) -> httpx.AsyncClient:
    """Return a client for the issuer; a proxy of the environment is for others."""
    local = urlsplit(issuer).hostname in {"127.0.0.1", "::1", "localhost"}
    return httpx.AsyncClient(timeout=TIMEOUT, transport=transport, trust_env=not local)


async def discover(client: httpx.AsyncClient, issuer: str) -> dict[str, Any]:
    """Return the issuer's metadata.

    Raises:
        IssuerUnreachable: no address answers with metadata of this very issuer
            (RFC 8414, section 3.3).
    """
    for address in metadata_addresses(issuer):
        answer = await client.get(address)
        if answer.is_success:
            metadata = answer.json()
            if isinstance(metadata, dict) and metadata.get("issuer") == issuer:
                return metadata
    raise IssuerUnreachable


class IssuerKeys:
    """The public keys of one issuer.

    Args:
        issuer: its identifier, an address.
        transport: how it is reached; httpx's own when left out.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        issuer: str,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._issuer = issuer
        self._transport = transport
        self._clock = clock
        self._lock = asyncio.Lock()
        self._keys: KeySet | None = None
        self._fetched = self._failed = float("-inf")

    async def get(self, key_id: str | None) -> KeySet:
        """Return the keys, asking the issuer again when ``key_id`` is new.

        A flood of unknown ids costs the issuer one request in ``MIN_INTERVAL``
        seconds; keys that cannot be refreshed go on serving.

        Raises:
            IssuerUnreachable: there are no keys yet and none can be had.
        """
        if self._due(key_id):
            async with self._lock:
                if self._due(key_id):
                    await self._refresh()
        if self._keys is None:
            raise IssuerUnreachable
        return self._keys

    def _due(self, key_id: str | None) -> bool:
        now = self._clock()
        if now - self._failed < RETRY_AFTER:
            return False
        age = now - self._fetched
        return age >= MAX_AGE or (age >= MIN_INTERVAL and not self._holds(key_id))

    def _holds(self, key_id: str | None) -> bool:
        keys = self._keys or ()
        return key_id is None or any(key.kid == key_id for key in keys)

    async def _refresh(self) -> None:
        try:
            self._keys = await self._fetch()
            self._fetched = self._clock()
        except _UNUSABLE as error:
            self._failed = self._clock()
            logger.warning("Keys of %s cannot be fetched: %r", self._issuer, error)

    async def _fetch(self) -> KeySet:
        async with issuer_client(self._issuer, self._transport) as client:
            metadata = await discover(client, self._issuer)
            answer = (await client.get(metadata["jwks_uri"])).raise_for_status()
            keys = answer.json()["keys"]
        # A symmetric key has no place among public ones: with it, whoever reads the
        # set could sign.
        public = [key for key in keys if key.get("kty") in _ASYMMETRIC]
        return KeySet.import_key_set({"keys": public})
