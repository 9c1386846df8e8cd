"""Instant times: unique and increasing on a table, whatever the clocks say."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from hoodie_ds.errors import TimelineError

_SECONDS = "%Y%m%d%H%M%S"


def format_time(epoch_ms: int, utc: bool) -> str:
    """Write a moment as an instant time.

    Parameters
    ----------
    epoch_ms : int
        Milliseconds since the Unix epoch.
    utc : bool
        True for tables whose ``hoodie.table.timeline.timezone`` is ``UTC``. Others use the local
        zone of the machine, as Hudi does, so that their times stay in step with Hudi's.
    """
    zone = timezone.utc if utc else None
    moment = datetime.fromtimestamp(epoch_ms // 1000, tz=zone)
    return f"{moment.strftime(_SECONDS)}{epoch_ms % 1000:03d}"


def epoch_ms(time: str, utc: bool) -> int:
    """Return the moment of an instant time, in milliseconds since the Unix epoch.

    Parameters
    ----------
    time : str
        As `format_time` writes it.
    utc : bool
        As there.

    Raises
    ------
    TimelineError
        It is no instant time.
    """
    moment = _moment(padded(time)).replace(tzinfo=timezone.utc if utc else None)
    return int(moment.timestamp()) * 1000 + moment.microsecond // 1000


def next_time(now_ms: int, utc: bool, latest: str | None) -> str:
    """Choose a time later than everything on the timeline.

    Parameters
    ----------
    now_ms : int
        The clock, in milliseconds since the Unix epoch.
    utc : bool
        See `format_time`.
    latest : str or None
        The greatest instant time that the table knows.

    Returns
    -------
    str
        17 digits, the maximum of the clock's time and `latest` plus one millisecond, since
        Hudi compares times as text and clocks may step back or differ between machines.
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
    return time if len(time) == 17 else f"{time}999"


def _moment(time: str) -> datetime:
    try:
        return datetime.strptime(time[:14], _SECONDS).replace(microsecond=int(time[14:]) * 1000)
    except ValueError as error:
        raise TimelineError(
            f"{time!r} on the timeline is not an instant time (yyyyMMddHHmmssSSS)"
        ) from error
