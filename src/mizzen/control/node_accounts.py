"""Certificates for others: what a node's own agent may have of the pods on its node.

In: the accounts that are trusted with this (`CA_TRUSTED_NODE_ACCOUNTS`), pods as they are followed. Out: nothing, or
AuthorityError with the reason. The caller has shown the token of a pod that runs now; the identity it asks for must
be that of a pod on the same node now. What is not known is refused.
"""

import time
from collections.abc import Callable, Iterable, Sequence

from mizzen.api.kube.pods import Pod
from mizzen.api.meta import Object
from mizzen.ca.identity import Caller
from mizzen.errors import AuthorityError
from mizzen.model.spiffe import parse_spiffe

_FINISHED = ("Succeeded", "Failed")
_FRESH, _FRESH_ENOUGH = 0.1, 1.0
"""Seconds for which an index of the pods is not made again: for who is not in it, and for who is."""


class NodeAccounts:
    """Decides who may have certificates of others."""

    def __init__(
        self,
        accounts: Sequence[str],
        pods: Callable[[], Iterable[Object]],
        trust_domain: Callable[[], str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._accounts = frozenset(_parse(account) for account in accounts)
        self._pods, self._trust_domain, self._clock = pods, trust_domain, clock
        self._by_uid: dict[str, Pod] = {}
        self._on_nodes: set[tuple[str, str, str]] = set()
        self._made_at = float("-inf")

    def check(self, caller: Caller, other: str) -> None:
        """Raise AuthorityError unless the caller may have the certificate of that identity."""
        own, wanted = parse_spiffe(caller.identities[0]), parse_spiffe(other)
        domain = self._trust_domain().replace("@", ".")
        if own is None or own.trust_domain != domain or own[1:] not in self._accounts:
            raise AuthorityError("the account is not trusted with certificates of others")
        if wanted is None or wanted.trust_domain != domain:
            raise AuthorityError("what is asked for is no identity of this trust domain")
        pod = self._pod(caller)
        if (pod.metadata.namespace, pod.metadata.name) != (own.namespace, caller.pod) or _account(pod) != own[1:]:
            raise AuthorityError("the caller's pod does not run under the caller's account")
        node = pod.spec.node_name
        if not node or (caller.node and caller.node != node):
            raise AuthorityError("the caller's pod does not run on the node that its token names")
        if not self._is_on(node, wanted[1:]):
            raise AuthorityError(f"no pod of that account is on the node {node}")

    def _pod(self, caller: Caller) -> Pod:
        if not caller.pod or not caller.pod_uid:
            raise AuthorityError("the caller's token is bound to no pod")
        self._index(_FRESH_ENOUGH)
        if caller.pod_uid not in self._by_uid:
            self._index(_FRESH)
        pod = self._by_uid.get(caller.pod_uid)
        if pod is None:
            raise AuthorityError("the caller's pod is not there")
        return pod

    def _is_on(self, node: str, account: tuple[str, str]) -> bool:
        if (node, *account) not in self._on_nodes:
            self._index(_FRESH)
        return (node, *account) in self._on_nodes

    def _index(self, fresh: float) -> None:
        """Look at all pods, unless that was done just now."""
        now = self._clock()
        if now < self._made_at + fresh:
            return
        self._made_at = now
        pods = [pod for pod in self._pods() if isinstance(pod, Pod) and not _is_finished(pod)]
        self._by_uid = {pod.metadata.uid: pod for pod in pods if pod.metadata.uid}
        self._on_nodes = {(pod.spec.node_name, *_account(pod)) for pod in pods if pod.spec.node_name}


def _account(pod: Pod) -> tuple[str, str]:
    return pod.metadata.namespace, pod.spec.service_account_name or "default"


def _is_finished(pod: Pod) -> bool:
    return pod.status is not None and pod.status.phase in _FINISHED


def _parse(account: str) -> tuple[str, str]:
    namespace, slash, name = account.partition("/")
    if not slash or not namespace or not name or "/" in name:
        raise AuthorityError(f"CA_TRUSTED_NODE_ACCOUNTS: {account!r} is not namespace/name")
    return namespace, name
