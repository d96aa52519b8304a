"""Impressions, and clicks on them, from a seed; and the expected results of their join, computed without a join."""

import random
from dataclasses import dataclass
from itertools import pairwise

IMPRESSIONS, CLICKS = "impressions", "clicks"
# The average time between two impressions, by the records' timestamps.
GAP_MS = 1000
_FIRST_MS = 1_767_225_600_000
_CLICKED = 0.35
_FORGED = 0.03


@dataclass(frozen=True)
class Record:
    """A record to be produced. Its key determines its partition."""

    topic: str
    key: bytes
    value: bytes
    timestamp: int


@dataclass(frozen=True)
class Campaign:
    """All records that are produced, and the expected results.

    Attributes:
        window_ms: the longest time between an impression and a click that counts.
        batches: the records, in order of their time, in parts of about equal length.
        matches: click to impression: the expected results. The join must find each of them once.
    """

    window_ms: int
    batches: list[list[Record]]
    matches: dict[str, str]


def campaign(seed: int, impressions: int, batches: int) -> Campaign:
    """A campaign whose window is as long as one of its batches.

    Some clicks come too late, and some name an impression that does not exist. Neither may be matched.
    """
    chance = random.Random(seed)
    window = GAP_MS * impressions // batches
    records: list[Record] = []
    matches: dict[str, str] = {}
    clicks = 0
    now = _FIRST_MS
    for number in range(impressions):
        now += 1 + int(chance.expovariate(1 / GAP_MS))
        impression = f"impression-{number:06}"
        records.append(Record(IMPRESSIONS, impression.encode(), b"ad-%02d" % chance.randrange(40), now))
        for _ in range(2):
            if chance.random() >= _CLICKED:
                break
            # One click in six is later than the window.
            delay = int(chance.random() * window * 1.2)
            click = f"click-{clicks:06}"
            clicks += 1
            records.append(Record(CLICKS, impression.encode(), click.encode(), now + delay))
            if delay <= window:
                matches[click] = impression
        if chance.random() < _FORGED:
            forged = f"forged-{number:06}"
            records.append(Record(CLICKS, forged.encode(), b"click-%06d" % clicks, now))
            clicks += 1
    records.sort(key=lambda record: (record.timestamp, record.topic, record.key, record.value))
    cuts = [len(records) * part // batches for part in range(batches + 1)]
    parts = [records[start:end] for start, end in pairwise(cuts)]
    return Campaign(window, parts, matches)
