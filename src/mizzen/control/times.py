"""Moments as objects of Kubernetes write them, and back."""

import datetime


def format_time(at: float) -> str:
    """A `Time`: to the second."""
    return datetime.datetime.fromtimestamp(at, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_micro_time(at: float) -> str:
    """A `MicroTime`: to the microsecond."""
    return datetime.datetime.fromtimestamp(at, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_time(text: str) -> float | None:
    """Seconds since 1970, to the microsecond; None for what is no time."""
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.timestamp() if moment.tzinfo is not None else None
