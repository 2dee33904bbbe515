"""Everything that an installation puts into a cluster, in the order in which it is to be applied.

In: `Values`. Out: documents: definitions first, then accounts and roles, validation, configuration, workloads and
webhooks, and at last autoscalers and Services, as istioctl has them.
"""

from typing import Any

import msgspec

from mizzen.install.config_maps import dashboards_config_map, injector_config_map, mesh_config_map
from mizzen.install.control_plane import control_plane_documents, tag_service, texts
from mizzen.install.crds.definitions import mesh_crds
from mizzen.install.gateways import gateway_documents
from mizzen.install.identity import DEFAULT_REVISION
from mizzen.install.rbac import rbac_documents
from mizzen.install.values import Values
from mizzen.install.webhooks import Injector, Validator, injector_configuration, validator_configuration

_ORDER = (
    ("CustomResourceDefinition",),
    ("ServiceAccount", "ClusterRole", "Role"),
    ("ClusterRoleBinding", "RoleBinding"),
    ("ValidatingWebhookConfiguration",),
    ("ConfigMap",),
    (),
    ("HorizontalPodAutoscaler",),
    ("Service",),
)
"""Kinds by when they are applied; all others where nothing stands."""


def manifests(values: Values) -> list[dict[str, Any]]:
    """The documents, ready to apply."""
    documents = [
        *mesh_crds(),
        *_rbac(values),
        *_validators(values),
        mesh_config_map(values),
        injector_config_map(values),
        *([dashboards_config_map(values)] if values.get("dashboards.enabled") else []),
        *control_plane_documents(values),
        *(tag_service(values, tag) for tag in _tags(values)),
        *(injector_configuration(injector) for injector in _injectors(values)),
        *gateway_documents(values),
    ]
    return sorted(documents, key=lambda each: _rank(each["kind"]))


def _rank(kind: str) -> int:
    return next((at for at, kinds in enumerate(_ORDER) if kind in kinds), _ORDER.index(()))


def _rbac(values: Values) -> list[dict[str, Any]]:
    documents = rbac_documents(values.identity, values.get("global.certSigners") or ())
    if annotations := texts(values.get("pilot.serviceAccountAnnotations")):
        documents[0]["metadata"]["annotations"] = annotations
    return documents


def _injectors(values: Values) -> list[Injector]:
    """The revision's own, and one for each tag."""
    own = Injector(
        identity=values.identity,
        enable_namespaces_by_default=bool(values.get("sidecarInjectorWebhook.enableNamespacesByDefault")),
        reinvocation_policy=values.text("sidecarInjectorWebhook.reinvocationPolicy"),
        path=values.text("istiodRemote.injectionPath"),
        url=values.text("istiodRemote.injectionURL"),
        ca_bundle=values.text("istiodRemote.injectionCABundle"),
    )
    return [own, *(msgspec.structs.replace(own, tag=tag) for tag in _tags(values))]


def _tags(values: Values) -> list[str]:
    """The revision's tags; that it is called by its own name needs none."""
    return [tag for tag in map(str, values.get("revisionTags") or ()) if tag != values.identity.revision_label]


def _validators(values: Values) -> list[dict[str, Any]]:
    """Of the revision, and of who names none if that is this control plane's."""
    url, bundle = values.text("base.validationURL"), values.text("base.validationCABundle")
    wanted = [False, *([True] if values.identity.is_default or DEFAULT_REVISION in _tags(values) else [])]
    return [
        validator_configuration(Validator(identity=values.identity, is_default=is_default, url=url, ca_bundle=bundle))
        for is_default in wanted
    ]
