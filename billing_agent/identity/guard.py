"""The identity filter as this deployment's settings have it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings

from billing_agent.identity import tokens
from billing_agent.identity.filter import IdentityFilter
from billing_agent.identity.limits import RateLimiter

if TYPE_CHECKING:
    from starlette.types import ASGIApp


def guarded(app: ASGIApp, *, part: str, pass_token: bool = False) -> IdentityFilter:
    """Return the application behind the filter; see ``IdentityFilter``."""
    return IdentityFilter(
        app,
        verifier=tokens.from_settings(),
        part=part,
        hosts=settings.ALLOWED_HOSTS,
        body_limit=settings.BODY_LIMIT,
        limiter=RateLimiter(settings.RATE_PER_SECOND, settings.RATE_BURST),
        pass_token=pass_token,
    )
