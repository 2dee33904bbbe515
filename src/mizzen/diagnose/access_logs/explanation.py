"""What is said of a cause: what it is called, which link breaks, whom to look at, what to do.

`kinds` are the kinds of objects that are at fault, the likeliest first; the question is what decides whether it is so.
"""

from typing import NamedTuple

VS, DR, GW, SVC, SE = "VirtualService", "DestinationRule", "Gateway", "Service", "ServiceEntry"
AP, RA, PA, EF, SC = "AuthorizationPolicy", "RequestAuthentication", "PeerAuthentication", "EnvoyFilter", "Sidecar"


class Explanation(NamedTuple):
    """One cause in words."""

    title: str
    link: str
    """The link that breaks, in the words of `trace`; empty where the answer is the program's or the client's own."""
    kinds: tuple[str, ...]
    question: str
    remedy: str
