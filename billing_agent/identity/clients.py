"""The demo issuer's OAuth 2 clients, and for whom each may ask for a token."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from authlib.oauth2.rfc6749 import ClientMixin
from django.conf import settings

from billing_agent.identity.kept import kept
from billing_agent.identity.tokens import RESERVED_PREFIX, subject_usable

WORKSHOP = "workshop"
GRANT = "client_credentials"
SCOPE = "invoices:read"
AUTH_METHODS = ("client_secret_basic", "client_secret_post")


@dataclass(frozen=True, slots=True)
class Client(ClientMixin):  # type: ignore[misc]
    """A confidential client (RFC 6749, section 2.1).

    Args:
        name: its client id, and the subject of a token asked for without one.
        secret: what it proves itself with.
        recorded: whether its subjects are the reserved ones; another client's never
            are.
        tenants: the tenants it may speak for; None: every tenant there is.
    """

    name: str
    secret: str
    recorded: bool = False
    tenants: frozenset[str] | None = None

    def may_be(self, subject: str) -> bool:
        """Return whether the client may ask for a token of this subject."""
        if subject in (settings.OIDC_CLIENT_ID, WORKSHOP):
            return subject == self.name
        reserved = subject.startswith(RESERVED_PREFIX)
        return subject_usable(subject) and reserved == self.recorded

    def within(self, tenant: str, subject: str) -> str:
        """Return the subject as a token names it: one tenant's, so one owner's.

        A recorded subject stands for a run, and a run has one tenant already.
        """
        return subject if self.recorded else f"{tenant}/{subject}"

    def may_speak_for(self, tenant: str) -> bool:
        """Return whether the client may ask for a token of this tenant."""
        return self.tenants is None or tenant in self.tenants

    def check_client_secret(self, client_secret: str) -> bool:
        """Compare in constant time; this and what follows is what Authlib asks."""
        return secrets.compare_digest(client_secret.encode(), self.secret.encode())

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return method in AUTH_METHODS and endpoint == "token"

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type == GRANT


def workshop_secret() -> str:
    """Return the secret of the workshop client, made at first use."""
    path = settings.VAR_DIR / "client-workshop"
    return kept(path, lambda: secrets.token_urlsafe(48))


def find(client_id: str) -> Client:
    """Return a client; for an unknown id one whose secret nobody has.

    So an unknown client and a wrong secret cannot be told apart.
    """
    if client_id == settings.OIDC_CLIENT_ID:
        return Client(client_id, settings.OIDC_CLIENT_SECRET, recorded=True)
    if client_id == WORKSHOP:
        return Client(client_id, workshop_secret())
    return Client(client_id, secrets.token_urlsafe(48))
