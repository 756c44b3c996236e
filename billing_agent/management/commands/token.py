"""``manage.py token``: a bearer token for curl and other A2A clients."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import httpx
from django.conf import settings
from django.core.management import BaseCommand, CommandError

from billing_agent.identity.clients import GRANT, WORKSHOP, workshop_secret
from billing_agent.identity.keys import IssuerUnreachable, discover, issuer_client
from billing_agent.management.options import UNLISTED

if TYPE_CHECKING:
    from django.core.management.base import CommandParser


class Command(BaseCommand):
    """Print a token of the workshop client, alone on its line."""

    help = "Get a bearer token from the issuer, as the workshop client."
    requires_system_checks: list[str] = []
    suppressed_base_arguments = UNLISTED

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare for whom the token is."""
        parser.add_argument("--tenant", required=True, help="such as acme")
        parser.add_argument("--subject", default="", help=f"default: {WORKSHOP}")

    def handle(self, *, tenant: str, subject: str, **options: Any) -> None:
        """Print the token; exit 2 when there is none to be had."""
        form = {"grant_type": GRANT, "tenant": tenant, "subject": subject}
        issuer = settings.OIDC_ISSUER
        try:
            answer = asyncio.run(_ask(issuer, form))
            document = answer.json()
        except (httpx.HTTPError, IssuerUnreachable, ValueError):
            message = f"the token issuer {issuer} cannot be reached"
            raise CommandError(message, returncode=2) from None
        if not answer.is_success:
            reason = document.get("error_description") or document.get("error")
            raise CommandError(f"the issuer refused: {reason}", returncode=2)
        self.stdout.write(document["access_token"])


async def _ask(issuer: str, form: dict[str, str]) -> httpx.Response:
    async with issuer_client(issuer) as client:
        metadata = await discover(client, issuer)
        credentials = (WORKSHOP, workshop_secret())
        return await client.post(
            metadata["token_endpoint"], data=form, auth=credentials
        )
