"""The other team's client: it sends messages over A2A and reads the ledgers."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx
from a2a.client import A2ACardResolver, ClientCallContext, ClientConfig, ClientFactory
from a2a.client.client import Client
from a2a.client.errors import AgentCardResolutionError
from a2a.types import AgentCard, Message, Part, Role, SendMessageRequest
from a2a.utils.constants import TransportProtocol

from orchestrator import deployment
from orchestrator.errors import AgentUnreachable
from orchestrator.frames import Frame, frames
from orchestrator.per_loop import PerLoop
from orchestrator.tokens import Tokens, fingerprint
from orchestrator.transport import EVENT_SECONDS, Wire, WireTransport

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from orchestrator.config import Configuration
    from orchestrator.deployment import Deployment

SWITCHES_URI = "https://invoice-8812.example/a2a/demo-switches/v1"
LEDGER_PATH = "/demo/ledger"
TIMEOUT = httpx.Timeout(connect=5, read=EVENT_SECONDS, write=10, pool=10)
LEDGER_TIMEOUT = httpx.Timeout(5)
_SHOWN_HEADERS = ("A2A-Version", "A2A-Extensions", "X-Affinity", "Content-Type")


@dataclass(frozen=True, slots=True)
class Call:
    """One message to send.

    Args:
        subject: whom the token is for; tasks and sessions are scoped by it.
        tenant: the tenant the token is for.
        context_id: the conversation.
        task_id: the task it answers; empty for a new one.
        message_id: the same again for the same send, so that it is not run twice.
        text: what it says.
        configuration: its switches.
    """

    subject: str
    tenant: str
    context_id: str
    task_id: str
    message_id: str
    text: str
    configuration: Configuration

    def as_request(self) -> SendMessageRequest:
        """Return the message as the protocol has it, with its switches."""
        message = Message(
            message_id=self.message_id,
            role=Role.ROLE_USER,
            context_id=self.context_id,
            task_id=self.task_id,
            parts=[Part(text=self.text)],
        )
        request = SendMessageRequest(message=message)
        switches = self.configuration.as_dict()
        # Affinity is the router's, and travels as a header.
        del switches["affinity"]
        request.metadata.update({SWITCHES_URI: switches})
        return request

    def headers(self, token: str) -> dict[str, str]:
        """Return the headers the message needs beside the protocol's own."""
        return {
            "Authorization": f"Bearer {token}",
            "A2A-Extensions": SWITCHES_URI,
            "X-Affinity": str(self.configuration.affinity),
            # For a router that does not read bodies.
            "X-A2A-Context": self.context_id,
        }


@dataclass(frozen=True, slots=True)
class Ledger:
    """What the stores hold; ``unread`` names the replicas that did not answer."""

    stores: list[dict[str, Any]]
    unread: list[str]


def shown(request: httpx.Request, body: dict[str, Any], token: str) -> dict[str, Any]:
    """Return a request as it may be stored: a fingerprint in place of the token."""
    headers = {
        name: request.headers[name]
        for name in _SHOWN_HEADERS
        if name in request.headers
    }
    headers["Authorization"] = f"Bearer {fingerprint(token)}"
    return {
        "method": request.method,
        "url": str(request.url),
        "headers": headers,
        "body": body,
    }


class AgentClient:
    """Talks to one deployment of the billing agent. It repeats nothing by itself.

    Connecting may take 5 s, and each event of an answer 60 s.
    """

    def __init__(self, deployed: Deployment) -> None:
        self._deployed = deployed
        # Loopback and cluster addresses are no business of a proxy.
        self._http = httpx.AsyncClient(timeout=TIMEOUT, trust_env=False)
        self._tokens = Tokens(self._http, deployed)
        self._agent: Client | None = None
        self._lock = asyncio.Lock()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def stream(
        self, call: Call, sending: Callable[[dict[str, Any]], Awaitable[None]]
    ) -> AsyncGenerator[Frame]:
        """Send a message and yield what arrives, until the agent ends the stream.

        Args:
            call: the message.
            sending: awaited with the request, as it may be shown, before it leaves.

        Raises:
            TokenUnavailable: the issuer gave no token.
            AgentUnreachable, AgentSilent, AgentRefused, StreamBroken: see there.
        """
        token = await self._tokens.get(call.subject, call.tenant)

        async def leaving(request: httpx.Request, body: dict[str, Any]) -> None:
            await sending(shown(request, body, token))

        wire = Wire(leaving)
        context = ClientCallContext(service_parameters=call.headers(token))
        wire.attach(context)
        agent = await self._resolved()
        answer = agent.send_message(call.as_request(), context=context)
        async with aclosing(answer):  # type: ignore[type-var]
            async for event in answer:
                for frame in frames(
                    event,
                    size=wire.size,
                    replica=wire.replica,
                    response=wire.response or {},
                ):
                    yield frame

    async def ledger(self, subject: str, tenant: str) -> Ledger:
        """Ask every replica what its stores hold for a subject.

        Raises:
            TokenUnavailable: the issuer gave no token.
        """
        token = await self._tokens.get(subject, tenant)
        replicas = self._deployed.replicas
        answers = await asyncio.gather(
            *(self._stores(url, token) for url in replicas.values())
        )
        read = [
            {**store, "replica": "" if store["store"] == "shared" else name}
            for name, answer in zip(replicas, answers, strict=True)
            for store in answer or ()
        ]
        own = [store for store in read if store["replica"]]
        # Every replica tells of the shared store; it is one.
        shared = [store for store in read if not store["replica"]][:1]
        unread = [
            name
            for name, answer in zip(replicas, answers, strict=True)
            if answer is None
        ]
        return Ledger([*own, *shared], unread)

    async def _stores(self, url: str, token: str) -> list[dict[str, Any]] | None:
        try:
            answer = await self._http.get(
                url + LEDGER_PATH,
                headers={"Authorization": f"Bearer {token}"},
                timeout=LEDGER_TIMEOUT,
            )
            answer.raise_for_status()
            return list(answer.json()["stores"])
        except (httpx.HTTPError, ValueError, KeyError):
            return None

    async def _resolved(self) -> Client:
        """Return the SDK's client for the agent, from its card."""
        async with self._lock:
            if self._agent is None:
                url = self._deployed.public_url
                try:
                    card = await A2ACardResolver(self._http, url).get_agent_card()
                    self._agent = self._factory().create(card)
                except (AgentCardResolutionError, ValueError) as error:
                    raise AgentUnreachable(f"agent card: {error}") from error
            return self._agent

    def _factory(self) -> ClientFactory:
        def transport(card: AgentCard, url: str, config: ClientConfig) -> WireTransport:
            return WireTransport(self._http, card, url, is_shared_httpx=True)

        factory = ClientFactory(ClientConfig(httpx_client=self._http))
        factory.register(TransportProtocol.JSONRPC, transport)
        return factory


def _new_client() -> AgentClient:
    return AgentClient(deployment.current())


_clients = PerLoop(_new_client, lambda client: client.aclose())


def shared() -> AgentClient:
    """Return the running loop's client of the current deployment."""
    return _clients.get()


async def close() -> None:
    """Close the running loop's client; the next use makes a new one."""
    await _clients.aclose()
