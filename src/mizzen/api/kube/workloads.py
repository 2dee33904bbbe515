"""The kinds that make pods: Deployment, StatefulSet, ReplicaSet, DaemonSet, Job and CronJob."""

from typing import ClassVar

from mizzen.api.kube.pods import PodTemplate
from mizzen.api.message import Message, names
from mizzen.api.meta import LabelSelector, Object, ObjectMeta
from mizzen.api.scalars import Int32


class DeploymentSpec(Message, frozen=True, kw_only=True):
    """Pods that are alike; `replicas` None is one."""

    replicas: Int32 | None = None
    selector: LabelSelector | None = None
    template: PodTemplate = PodTemplate()

    unread: ClassVar[frozenset[str]] = names(
        """
        minReadySeconds paused progressDeadlineSeconds revisionHistoryLimit strategy
        """
    )


class Deployment(Object, frozen=True, kw_only=True):
    """The kind Deployment."""

    spec: DeploymentSpec = DeploymentSpec()


class ReplicaSetSpec(Message, frozen=True, kw_only=True):
    """One generation of a Deployment's pods."""

    replicas: Int32 | None = None
    selector: LabelSelector | None = None
    template: PodTemplate = PodTemplate()

    unread: ClassVar[frozenset[str]] = names("minReadySeconds")


class ReplicaSet(Object, frozen=True, kw_only=True):
    """The kind ReplicaSet."""

    spec: ReplicaSetSpec = ReplicaSetSpec()


class StatefulSetSpec(Message, frozen=True, kw_only=True):
    """Pods with names of their own, under a headless Service."""

    replicas: Int32 | None = None
    selector: LabelSelector | None = None
    template: PodTemplate = PodTemplate()
    service_name: str = ""

    unread: ClassVar[frozenset[str]] = names(
        """
        minReadySeconds ordinals persistentVolumeClaimRetentionPolicy podManagementPolicy
        revisionHistoryLimit updateStrategy volumeClaimTemplates
        """
    )


class StatefulSet(Object, frozen=True, kw_only=True):
    """The kind StatefulSet."""

    spec: StatefulSetSpec = StatefulSetSpec()


class DaemonSetSpec(Message, frozen=True, kw_only=True):
    """One pod a node."""

    selector: LabelSelector | None = None
    template: PodTemplate = PodTemplate()

    unread: ClassVar[frozenset[str]] = names("minReadySeconds revisionHistoryLimit updateStrategy")


class DaemonSet(Object, frozen=True, kw_only=True):
    """The kind DaemonSet."""

    spec: DaemonSetSpec = DaemonSetSpec()


class JobSpec(Message, frozen=True, kw_only=True):
    """Pods that end."""

    parallelism: Int32 | None = None
    completions: Int32 | None = None
    selector: LabelSelector | None = None
    template: PodTemplate = PodTemplate()

    unread: ClassVar[frozenset[str]] = names(
        """
        activeDeadlineSeconds backoffLimit backoffLimitPerIndex completionMode managedBy manualSelector
        maxFailedIndexes podFailurePolicy podReplacementPolicy scheduling successPolicy suspend
        ttlSecondsAfterFinished
        """
    )


class Job(Object, frozen=True, kw_only=True):
    """The kind Job."""

    spec: JobSpec = JobSpec()


class JobTemplate(Message, frozen=True, kw_only=True):
    """A Job to be made by a CronJob."""

    metadata: ObjectMeta = ObjectMeta()
    spec: JobSpec = JobSpec()


class CronJobSpec(Message, frozen=True, kw_only=True):
    """Jobs by a timetable."""

    schedule: str = ""
    job_template: JobTemplate = JobTemplate()

    unread: ClassVar[frozenset[str]] = names(
        """
        concurrencyPolicy failedJobsHistoryLimit startingDeadlineSeconds successfulJobsHistoryLimit suspend
        timeZone
        """
    )


class CronJob(Object, frozen=True, kw_only=True):
    """The kind CronJob."""

    spec: CronJobSpec = CronJobSpec()
