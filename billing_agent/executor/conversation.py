"""One conversation's session: how it is named, found and created."""

from __future__ import annotations

from dataclasses import dataclass

from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.sessions import Session

from billing_agent.facts import Finder, SessionCreated, SessionLookedUp, Store, announce
from billing_agent.stores.scope import ScopedSessionService

USER_PREFIX = "A2A_USER_"


@dataclass(frozen=True, slots=True)
class Conversation:
    """Access to the session of one context, within one caller's scope.

    Args:
        service: the session service, scoped to the caller.
        store: which store that is, for the facts.
        app_name: ADK's app name.
        context_id: the A2A context id.
    """

    service: ScopedSessionService
    store: Store
    app_name: str
    context_id: str

    @property
    def user_id(self) -> str:
        """The ADK user: the context, not the caller."""
        return USER_PREFIX + self.context_id

    async def ensure(self) -> None:
        """Create the session under the context id, unless it is stored already.

        A look-up that follows is handed the created session: nobody else has the turn.
        """
        try:
            session = await self._create(self.context_id)
        except AlreadyExistsError:
            await self._announce_look_up(True, None, "hook")
            return
        self.service.hand_over(session)
        await self._announce_look_up(False, None, "hook")
        await announce(SessionCreated(self.store, session.id, "hook"))

    async def look_up(self) -> Session | None:
        """Return the session stored under the context id, if there is one."""
        session = await self.service.get_session(
            app_name=self.app_name, user_id=self.user_id, session_id=self.context_id
        )
        events = len(session.events) if session else 0
        await self._announce_look_up(session is not None, events, "lookup")
        return session

    async def create(self, session_id: str | None) -> Session:
        """Create the session under an id, or under a generated one.

        Losing the race for an id is answered by getting the winner's session.
        """
        try:
            session = await self._create(session_id)
        except AlreadyExistsError:
            winner = await self.look_up()
            if winner is None:
                raise
            return winner
        await announce(SessionCreated(self.store, session.id, "lookup"))
        return session

    async def _create(self, session_id: str | None) -> Session:
        return await self.service.create_session(
            app_name=self.app_name, user_id=self.user_id, session_id=session_id
        )

    async def _announce_look_up(
        self, found: bool, events: int | None, by: Finder
    ) -> None:
        await announce(SessionLookedUp(self.store, self.context_id, found, events, by))
