"""Resources that belong to the event loop that opened them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Generic, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")


class PerLoop(Generic[T]):
    """One resource for each event loop, made at its first use there.

    Args:
        make: makes the resource; runs on the loop.
        close: ends it.
    """

    def __init__(self, make: Callable[[], T], close: Callable[[T], Awaitable[None]]):
        self._make = make
        self._close = close
        self._held: WeakKeyDictionary[asyncio.AbstractEventLoop, T] = (
            WeakKeyDictionary()
        )

    def get(self) -> T:
        """Return the running loop's resource."""
        loop = asyncio.get_running_loop()
        if loop not in self._held:
            self._held[loop] = self._make()
        return self._held[loop]

    async def aclose(self) -> None:
        """Close the running loop's resource, if it has one; the next use reopens."""
        held = self._held.pop(asyncio.get_running_loop(), None)
        if held is not None:
            await self._close(held)
