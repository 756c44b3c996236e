"""The agent card: what a peer may know before it has a token."""

from __future__ import annotations

from collections.abc import Sequence

from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentExtension,
    AgentInterface,
    AgentProvider,
    AgentSkill,
    ClientCredentialsOAuthFlow,
    OAuth2SecurityScheme,
    OAuthFlows,
    SecurityRequirement,
    SecurityScheme,
    StringList,
)

PROTOCOL_VERSION = "1.0"
RPC_PATH = "/a2a/"
REST_PATH = "/a2a/rest"
CARD_PATH = "/.well-known/agent-card.json"
_SCHEME = "oauth2"
_SCOPES = {"invoices:read": "Ask about the invoices of the token's tenant."}
_MODES = ["text/plain", "application/json"]


def build_card(
    public_url: str, token_url: str, extensions: Sequence[AgentExtension] = ()
) -> AgentCard:
    """Return the billing agent's card.

    Args:
        public_url: where peers reach the agent (the router), without a slash at the
            end; never taken from a request.
        token_url: the issuer's OAuth 2 token endpoint.
        extensions: A2A extensions this deployment honours.
    """
    return AgentCard(
        name="Billing agent",
        description="Explains a tenant's invoices and compares their lines.",
        version="1.0.0",
        provider=AgentProvider(organization="Billing", url=public_url),
        supported_interfaces=[
            AgentInterface(
                url=public_url + path,
                protocol_binding=binding,
                protocol_version=PROTOCOL_VERSION,
            )
            for path, binding in ((RPC_PATH, "JSONRPC"), (REST_PATH, "HTTP+JSON"))
        ],
        capabilities=AgentCapabilities(streaming=True, extensions=extensions),
        default_input_modes=_MODES,
        default_output_modes=_MODES,
        security_schemes={_SCHEME: _security_scheme(token_url)},
        security_requirements=[SecurityRequirement(schemes={_SCHEME: StringList()})],
        skills=[_skill()],
    )


def _security_scheme(token_url: str) -> SecurityScheme:
    flow = ClientCredentialsOAuthFlow(token_url=token_url, scopes=_SCOPES)
    return SecurityScheme(
        oauth2_security_scheme=OAuth2SecurityScheme(
            description="Client credentials; the access token is a JWT (RFC 9068).",
            flows=OAuthFlows(client_credentials=flow),
        )
    )


def _skill() -> AgentSkill:
    return AgentSkill(
        id="explain-invoice",
        name="Explain an invoice",
        description="Says why an invoice is higher or lower than the month before.",
        tags=["billing", "invoice"],
        examples=["Why was invoice 8812 higher than last month?"],
    )
