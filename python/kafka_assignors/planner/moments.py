"""Deadlines as people write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from kafka_assignors.errors import OptionError
from kafka_assignors.flags import duration_s

__all__ = ["deadline_ms"]

_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(Z?)")


def deadline_ms(option: str, text: str, now_ms: int) -> int:
    """A deadline in milliseconds since 1970.

    Args:
        option: the name of the option, for the error.
        text: a time of the day such as `18:00`, the next one in the local time zone, or in UTC with a `Z`; a date with
            a time, such as `2026-01-31T18:00`; or a duration from now on, such as `45m`.
        now_ms: now.

    Raises:
        OptionError: another text, or a moment that is past.

    >>> deadline_ms("--deadline", "00:10Z", 0), deadline_ms("--deadline", "45m", 0)
    (600000, 2700000)
    """
    text = text.strip()
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    clock = _CLOCK.fullmatch(text)
    if clock is not None:
        local = now if clock[3] else now.astimezone()
        wanted = local.replace(hour=int(clock[1]), minute=int(clock[2]), second=0, microsecond=0)
        if wanted <= local:
            wanted += timedelta(days=1)
        return round(wanted.timestamp() * 1000)
    if re.match(r"\d{4}-\d", text):
        try:
            found = round(datetime.fromisoformat(text).astimezone().timestamp() * 1000)
        except (ValueError, OverflowError, OSError) as error:
            raise OptionError(f"{option} is {text!r}, which is no date with a time; give 2026-01-31T18:00") from error
        if found <= now_ms:
            taken = f"{now:%Y-%m-%dT%H:%M}Z"
            raise OptionError(f"{option} is {text!r}, which was past at the reading, {taken}; give a later one")
        return found
    if not re.match(r"\d", text) or ":" in text:
        raise OptionError(f"{option} is {text!r}; give a time such as 18:00, a date with one, or a duration as 45m")
    return now_ms + round(1000 * duration_s(option, text))
