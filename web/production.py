"""What keeps a deployment that is no demo from starting on the demo's secrets."""

from __future__ import annotations

from django.conf import settings
from django.core.checks.security.base import check_secret_key

from billing_agent.serving import Exposed, is_loopback
from web import environment


def check_secrets(host: str) -> None:
    """Make sure that who is served on ``host`` is not served on the demo's secrets.

    With ``DEMO_SWITCHES`` the deployment says that it is the demo: its secrets are
    random, and everybody who can read ``VAR_DIR`` may speak for every tenant.

    Raises:
        Exposed: others can reach ``host``, and a secret is the demo's or weak.
    """
    if is_loopback(host):
        return
    if check_secret_key(None):
        raise Exposed(host, "SECRET_KEY is too short or too plain")
    if settings.DEMO_SWITCHES:
        return
    for name in ("SECRET_KEY", "OIDC_CLIENT_SECRET"):
        if not environment.text(name):
            raise Exposed(host, f"{name} is the demo's own; set it")
    if settings.OIDC_ISSUER == settings.WEB_URL:
        raise Exposed(host, "the token issuer is the demo's own; set OIDC_ISSUER")
