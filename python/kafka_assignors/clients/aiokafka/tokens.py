"""The tokens of a provider that is asked on the consumer's event loop, for a thread of the membership.

A re-authentication delays the heartbeats of its connection. If it waited for a blocked loop, the session would end.
"""

from __future__ import annotations

import asyncio
import base64
import inspect
import json
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["asking_on"]

# A loop that has not begun to ask after so many seconds is blocked.
_BLOCKED = 0.5
# The last token is used again if it is valid for so many seconds more.
_VALID = 5.0


def asking_on(loop: asyncio.AbstractEventLoop) -> Callable[[Any], Any]:
    """A function for one consumer that asks its provider on this loop, and waits for the token.

    While the loop is blocked it returns the last token, if that is a JSON Web Token (RFC 7519) with time left.

    Args:
        loop: the loop on which the client asks the provider, too.
    """
    last: Any = None

    def ask(provider: Any) -> Any:
        begun = threading.Event()

        async def asked() -> Any:
            nonlocal last
            begun.set()
            # As the client, which awaits the result of `token`.
            found = provider.token()
            last = await found if inspect.isawaitable(found) else found
            return last

        asking = asyncio.run_coroutine_threadsafe(asked(), loop)
        if not begun.wait(_BLOCKED) and _expiry(last) > time.time() + _VALID:
            return last
        return asking.result()

    return ask


def _expiry(token: Any) -> float:
    """When a token expires, in seconds since the epoch; 0.0 if the token does not contain that."""
    try:
        claims = token.split(".")[1]
        expiry = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["exp"]
        return float(expiry)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        return 0.0
