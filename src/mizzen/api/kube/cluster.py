"""What pods live in and on, and as whom: Namespace, Node and ServiceAccount."""

from typing import ClassVar

from mizzen.api.kube.pods import LocalObjectReference
from mizzen.api.message import Message, names
from mizzen.api.meta import Object


class Namespace(Object, frozen=True, kw_only=True):
    """The kind Namespace; its labels decide on injection, revision and discovery."""

    unread: ClassVar[frozenset[str]] = Object.unread | {"spec"}


class NodeAddress(Message, frozen=True, kw_only=True):
    """An address of a node."""

    type: str = ""
    address: str = ""


class NodeInfo(Message, frozen=True, kw_only=True):
    """What runs on a node."""

    kubelet_version: str = ""

    unread: ClassVar[frozenset[str]] = names(
        """
        architecture bootID containerRuntimeVersion kernelVersion kubeProxyVersion machineID operatingSystem osImage
        swap systemUUID
        """
    )


class NodeStatus(Message, frozen=True, kw_only=True):
    """A node's addresses and what runs on it, without the heartbeats."""

    addresses: tuple[NodeAddress, ...] = ()
    node_info: NodeInfo | None = None

    unread: ClassVar[frozenset[str]] = names(
        """
        allocatable capacity conditions config daemonEndpoints declaredFeatures features images
        phase runtimeHandlers volumesAttached volumesInUse
        """
    )


class Node(Object, frozen=True, kw_only=True):
    """The kind Node; its labels give its pods their locality."""

    status: NodeStatus | None = None

    unread: ClassVar[frozenset[str]] = Object.unread | {"spec"}


class ServiceAccount(Object, frozen=True, kw_only=True):
    """The kind ServiceAccount."""

    automount_service_account_token: bool | None = None
    image_pull_secrets: tuple[LocalObjectReference, ...] = ()

    unread: ClassVar[frozenset[str]] = Object.unread | {"secrets"}
