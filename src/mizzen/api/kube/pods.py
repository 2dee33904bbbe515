"""Pod: its containers, where it runs and whether it is ready. `PodTemplate` is the same, before it runs.

Whoever makes pods, or describes one, reads all of a Pod; a control plane holds what is `as_running`.
"""

from collections.abc import Mapping
from typing import ClassVar

from msgspec import field
from msgspec.structs import replace

from mizzen.api.message import FreeForm, Message, names
from mizzen.api.meta import Object, ObjectMeta, without_remarks
from mizzen.api.scalars import Int32, Int64, IntOrString, Quantity


class ContainerPort(Message, frozen=True, kw_only=True):
    """A port that a container declares; traffic does not depend on the declaration."""

    name: str = ""
    container_port: Int32 = 0
    host_port: Int32 = 0
    host_ip: str = field(name="hostIP", default="")
    protocol: str = "TCP"


class KeySelector(Message, frozen=True, kw_only=True):
    """A key of a ConfigMap or a Secret."""

    name: str = ""
    key: str = ""
    optional: bool = False


class ObjectFieldSelector(Message, frozen=True, kw_only=True):
    """A field of the pod itself."""

    field_path: str = ""
    api_version: str = "v1"


class ResourceFieldSelector(Message, frozen=True, kw_only=True):
    """A resource limit or request of a container."""

    resource: str = ""
    container_name: str = ""
    divisor: Quantity | None = None


class EnvVarSource(Message, frozen=True, kw_only=True):
    """Where a variable's value comes from: one of these."""

    field_ref: ObjectFieldSelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None
    config_map_key_ref: KeySelector | None = None
    secret_key_ref: KeySelector | None = None

    unread: ClassVar[frozenset[str]] = names("fileKeyRef")


class EnvVar(Message, frozen=True, kw_only=True):
    """An environment variable."""

    name: str = ""
    value: str = ""
    value_from: EnvVarSource | None = None


class EnvSource(Message, frozen=True, kw_only=True):
    """A ConfigMap or a Secret whose keys all become variables."""

    name: str = ""
    optional: bool = False


class EnvFromSource(Message, frozen=True, kw_only=True):
    """Many variables at once."""

    prefix: str = ""
    config_map_ref: EnvSource | None = None
    secret_ref: EnvSource | None = None


class HTTPHeader(Message, frozen=True, kw_only=True):
    """A header of a probe."""

    name: str = ""
    value: str = ""


class HTTPGetAction(Message, frozen=True, kw_only=True):
    """An HTTP request by the kubelet."""

    path: str = ""
    port: IntOrString = 0
    host: str = ""
    scheme: str = ""
    http_headers: tuple[HTTPHeader, ...] = ()

    unread: ClassVar[frozenset[str]] = names("protocol")


class TCPSocketAction(Message, frozen=True, kw_only=True):
    """A connection by the kubelet."""

    port: IntOrString = 0
    host: str = ""


class GRPCAction(Message, frozen=True, kw_only=True):
    """A call of gRPC's health service by the kubelet."""

    port: Int32 = 0
    service: str = ""

    unread: ClassVar[frozenset[str]] = names("mode")


class ExecAction(Message, frozen=True, kw_only=True):
    """A command in the container."""

    command: tuple[str, ...] = ()


class Probe(Message, frozen=True, kw_only=True):
    """A check of a container: one of the first four."""

    http_get: HTTPGetAction | None = None
    tcp_socket: TCPSocketAction | None = None
    grpc: GRPCAction | None = None
    exec: ExecAction | None = None
    initial_delay_seconds: Int32 = 0
    timeout_seconds: Int32 = 0
    period_seconds: Int32 = 0
    success_threshold: Int32 = 0
    failure_threshold: Int32 = 0
    termination_grace_period_seconds: Int64 | None = None


class SleepAction(Message, frozen=True, kw_only=True):
    """A pause."""

    seconds: Int64 = 0


class LifecycleHandler(Message, frozen=True, kw_only=True):
    """What runs when a container starts or stops."""

    exec: ExecAction | None = None
    http_get: HTTPGetAction | None = None
    tcp_socket: TCPSocketAction | None = None
    sleep: SleepAction | None = None


class Lifecycle(Message, frozen=True, kw_only=True):
    """Hooks of a container."""

    post_start: LifecycleHandler | None = None
    pre_stop: LifecycleHandler | None = None

    unread: ClassVar[frozenset[str]] = names("stopSignal")


class ResourceRequirements(Message, frozen=True, kw_only=True):
    """What a container asks for and is held to."""

    limits: Mapping[str, Quantity] = {}
    requests: Mapping[str, Quantity] = {}

    unread: ClassVar[frozenset[str]] = names("claims")


class SecurityContext(Message, frozen=True, kw_only=True):
    """Who a container runs as."""

    run_as_user: Int64 | None = None
    run_as_group: Int64 | None = None
    run_as_non_root: bool | None = None
    privileged: bool | None = None
    read_only_root_filesystem: bool | None = None
    allow_privilege_escalation: bool | None = None
    capabilities: FreeForm | None = None

    unread: ClassVar[frozenset[str]] = names(
        """
        appArmorProfile procMount seLinuxOptions seccompProfile windowsOptions
        """
    )


class VolumeMount(Message, frozen=True, kw_only=True):
    """A volume in a container's file system."""

    name: str = ""
    mount_path: str = ""
    sub_path: str = ""
    read_only: bool = False

    unread: ClassVar[frozenset[str]] = names("bindMountOptions mountPropagation recursiveReadOnly subPathExpr")


class Container(Message, frozen=True, kw_only=True):
    """A container; `restart_policy` Always on an init container makes it a native sidecar."""

    name: str = ""
    image: str = ""
    image_pull_policy: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    working_dir: str = ""
    ports: tuple[ContainerPort, ...] = ()
    env: tuple[EnvVar, ...] = ()
    env_from: tuple[EnvFromSource, ...] = ()
    resources: ResourceRequirements | None = None
    liveness_probe: Probe | None = None
    readiness_probe: Probe | None = None
    startup_probe: Probe | None = None
    lifecycle: Lifecycle | None = None
    security_context: SecurityContext | None = None
    volume_mounts: tuple[VolumeMount, ...] = ()
    restart_policy: str = ""

    unread: ClassVar[frozenset[str]] = names(
        """
        resizePolicy restartPolicyRules stdin stdinOnce terminationMessagePath terminationMessagePolicy tty
        volumeDevices
        """
    )


class PodSecurityContext(Message, frozen=True, kw_only=True):
    """Who the pod's containers run as."""

    run_as_user: Int64 | None = None
    run_as_group: Int64 | None = None
    run_as_non_root: bool | None = None
    fs_group: Int64 | None = None

    unread: ClassVar[frozenset[str]] = names(
        """
        appArmorProfile fsGroupChangePolicy seLinuxChangePolicy seLinuxOptions seccompProfile
        supplementalGroups supplementalGroupsPolicy sysctls windowsOptions
        """
    )


class KeyToPath(Message, frozen=True, kw_only=True):
    """A key and the file that it becomes."""

    key: str = ""
    path: str = ""
    mode: Int32 | None = None

    unread: ClassVar[frozenset[str]] = names("user")


class ConfigMapVolume(Message, frozen=True, kw_only=True):
    """The keys of a ConfigMap as files."""

    name: str = ""
    items: tuple[KeyToPath, ...] = ()
    default_mode: Int32 | None = None
    optional: bool = False

    unread: ClassVar[frozenset[str]] = names("defaultUser")


class SecretVolume(Message, frozen=True, kw_only=True):
    """The keys of a Secret as files."""

    secret_name: str = ""
    items: tuple[KeyToPath, ...] = ()
    default_mode: Int32 | None = None
    optional: bool = False

    unread: ClassVar[frozenset[str]] = names("defaultUser")


class Volume(Message, frozen=True, kw_only=True):
    """A volume; of its many sources only those are read that hold configuration."""

    name: str = ""
    config_map: ConfigMapVolume | None = None
    secret: SecretVolume | None = None
    empty_dir: FreeForm | None = None
    host_path: FreeForm | None = None
    projected: FreeForm | None = None
    downward_api: FreeForm | None = field(name="downwardAPI", default=None)

    unread: ClassVar[frozenset[str]] = names(
        """
        awsElasticBlockStore azureDisk azureFile cephfs cinder csi ephemeral fc flexVolume flocker
        gcePersistentDisk gitRepo glusterfs image iscsi nfs persistentVolumeClaim photonPersistentDisk
        portworxVolume quobyte rbd scaleIO storageos vsphereVolume
        """
    )


class HostAlias(Message, frozen=True, kw_only=True):
    """A line of /etc/hosts."""

    ip: str = ""
    hostnames: tuple[str, ...] = ()


class PodDNSConfig(Message, frozen=True, kw_only=True):
    """Additions to the pod's resolver settings."""

    nameservers: tuple[str, ...] = ()
    searches: tuple[str, ...] = ()
    options: tuple[FreeForm, ...] = ()


class LocalObjectReference(Message, frozen=True, kw_only=True):
    """An object of the same namespace."""

    name: str = ""


class PodReadinessGate(Message, frozen=True, kw_only=True):
    """A further condition of readiness."""

    condition_type: str = ""


class PodSpec(Message, frozen=True, kw_only=True):
    """What runs in a pod, and how it is known on the network."""

    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    volumes: tuple[Volume, ...] = ()
    service_account_name: str = ""
    service_account: str = ""
    """Deprecated spelling of `service_account_name`."""
    automount_service_account_token: bool | None = None
    node_name: str = ""
    hostname: str = ""
    subdomain: str = ""
    host_network: bool = False
    host_pid: bool = field(name="hostPID", default=False)
    share_process_namespace: bool = False
    restart_policy: str = ""
    termination_grace_period_seconds: Int64 | None = None
    security_context: PodSecurityContext | None = None
    dns_policy: str = ""
    dns_config: PodDNSConfig | None = None
    host_aliases: tuple[HostAlias, ...] = ()
    image_pull_secrets: tuple[LocalObjectReference, ...] = ()
    node_selector: Mapping[str, str] = {}
    readiness_gates: tuple[PodReadinessGate, ...] = ()

    unread: ClassVar[frozenset[str]] = names(
        """
        activeDeadlineSeconds affinity enableServiceLinks ephemeralContainers evictionResponders hostIPC
        hostUsers hostnameOverride os overhead preemptionPolicy priority priorityClassName resourceClaims
        resources runtimeClassName schedulerName schedulingGates schedulingGroup
        setHostnameAsFQDN tolerations topologySpreadConstraints
        """
    )


class PodIP(Message, frozen=True, kw_only=True):
    """One address of a pod."""

    ip: str = ""


class PodCondition(Message, frozen=True, kw_only=True):
    """A condition as far as it is acted on."""

    type: str = ""
    status: str = ""

    unread: ClassVar[frozenset[str]] = names("lastProbeTime lastTransitionTime message reason observedGeneration")


class ContainerStatus(Message, frozen=True, kw_only=True):
    """Whether a container is ready."""

    name: str = ""
    ready: bool = False

    unread: ClassVar[frozenset[str]] = names(
        """
        allocatedResources allocatedResourcesStatus containerID image imageID lastState resources restartCount started
        state stopSignal user volumeMounts
        """
    )


class PodStatus(Message, frozen=True, kw_only=True):
    """Where a pod runs and how it fares."""

    phase: str = ""
    pod_ip: str = field(name="podIP", default="")
    pod_ips: tuple[PodIP, ...] = field(name="podIPs", default=())
    host_ip: str = field(name="hostIP", default="")
    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()

    unread: ClassVar[frozenset[str]] = names(
        """
        allocatedResources ephemeralContainerStatuses extendedResourceClaimStatus hostIPs
        message nodeAllocatableResourceClaimStatuses nominatedNodeName
        observedGeneration qosClass reason resize resourceClaimStatuses resources startTime volumeHealth
        """
    )


class Pod(Object, frozen=True, kw_only=True):
    """The kind Pod."""

    spec: PodSpec = PodSpec()
    status: PodStatus | None = None


class PodTemplate(Message, frozen=True, kw_only=True):
    """A pod to be made by a workload."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


def as_running(found: Object) -> Object:
    """A pod without what is read only for its making, or to describe it; the same object where nothing is left out.

    Marks of other tools, restarts of containers and conditions beside Ready come and go while a pod runs, and make no
    difference to a mesh. Objects of other kinds are as they are.
    """
    if not isinstance(found, Pod):
        return found
    annotations = without_remarks(found.metadata.annotations, of_tools=True)
    if annotations is not found.metadata.annotations:
        found = replace(found, metadata=replace(found.metadata, annotations=annotations))
    status = found.status
    if status is None:
        return found
    conditions = tuple(condition for condition in status.conditions if condition.type == "Ready")
    if len(conditions) < len(status.conditions) or status.container_statuses or status.init_container_statuses:
        status = replace(status, conditions=conditions, container_statuses=(), init_container_statuses=())
        found = replace(found, status=status)
    return found
