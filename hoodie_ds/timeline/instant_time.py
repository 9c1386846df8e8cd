"""Instant times: unique and increasing on a table, whatever the clocks say."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from hoodie_ds.errors import TimelineError

_SECONDS = "%Y%m%d%H%M%S"


def format_time(epoch_ms: int, utc: bool) -> str:
    """Write epoch milliseconds as an instant time, in UTC or in the local zone of the machine.

    Tables whose ``hoodie.table.timeline.timezone`` is not ``UTC`` use the local zone, as in Hudi,
    so that our times stay in step with Hudi's.
    """
    zone = timezone.utc if utc else None
    moment = datetime.fromtimestamp(epoch_ms // 1000, tz=zone)
    return f"{moment.strftime(_SECONDS)}{epoch_ms % 1000:03d}"


def epoch_ms(time: str, utc: bool) -> int:
    """Return an instant time as epoch milliseconds; see `format_time`. Raises `TimelineError`."""
    moment = _moment(padded(time)).replace(tzinfo=timezone.utc if utc else None)
    return int(moment.timestamp()) * 1000 + moment.microsecond // 1000


def next_time(now_ms: int, utc: bool, latest: str | None) -> str:
    """Return the later of the clock's time and `latest` plus one millisecond, in 17 digits.

    `latest` is the greatest instant time of the table. Hudi compares times as strings, and clocks
    may step back or differ between machines.
    """
    now = format_time(now_ms, utc)
    return now if latest is None or now > padded(latest) else following(latest)


def following(time: str) -> str:
    """Return the instant time one millisecond later."""
    moment = _moment(padded(time))
    try:
        later = moment + timedelta(milliseconds=1)
    except OverflowError as error:
        raise TimelineError(f"no instant time comes after {time!r} on the timeline") from error
    return f"{later.strftime(_SECONDS)}{later.microsecond // 1000:03d}"


def padded(time: str) -> str:
    """Give a 14-digit time of an old table the milliseconds 999, as Hudi does to compare it."""
    return f"{time}999" if len(time) == 14 else time


def _moment(time: str) -> datetime:
    try:
        return datetime.strptime(time[:14], _SECONDS).replace(microsecond=int(time[14:]) * 1000)
    except ValueError as error:
        raise TimelineError(
            f"{time!r} on the timeline is not an instant time (yyyyMMddHHmmssSSS)"
        ) from error
