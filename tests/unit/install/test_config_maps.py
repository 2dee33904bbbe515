"""ConfigMaps of an installation, as the control plane reads them."""

import importlib
import json
import pkgutil
import re
from typing import Any

import msgspec
import yaml

import mizzen.ca
import mizzen.control
import mizzen.sources
import mizzen.xds
from mizzen import observe
from mizzen.api.mesh.merge import merge_mesh_config
from mizzen.inject.values import InjectionConfig, decode_injector
from mizzen.install import config_maps
from mizzen.install.values import lay_over


def injector(values: dict[str, Any]) -> InjectionConfig:
    return decode_injector(config_maps.injector_config_map(lay_over([values])))


def test_the_defaults_are_those_of_injection_but_for_the_images() -> None:
    found = injector({})
    built_in = InjectionConfig()
    assert (found.hub, found.tag) == ("localhost/mizzen", "0.1.0")
    assert msgspec.structs.replace(found, hub=built_in.hub, tag=built_in.tag) == built_in


def test_values_reach_the_injector() -> None:
    found = injector(
        {
            "revision": "canary",
            "global": {"proxy": {"logLevel": "debug", "resources": {"limits": None}, "autoInject": "disabled"}},
            "sidecarInjectorWebhook": {
                "neverInjectSelector": [{"matchLabels": {"job": "batch"}}],
                "injectedAnnotations": {"note": "<&>\u2028"},
                "rewriteAppHTTPProbe": False,
            },
        }
    )
    assert found.revision == "canary"
    assert found.log_level == "debug"
    assert found.resources.limits == {}
    assert found.policy == "disabled"
    assert found.never_inject[0].match_labels == {"job": "batch"}
    assert found.injected_annotations == {"note": "<&>\u2028"}
    assert not found.rewrite_probes


def test_the_mesh_config_is_one_without_a_fault() -> None:
    values = lay_over([{"revision": "canary", "meshConfig": {"accessLogFile": "/dev/stdout"}}])
    document = config_maps.mesh_config_map(values)
    assert document["metadata"]["name"] == "istio-canary"
    config, problems = merge_mesh_config(yaml.safe_load(document["data"]["mesh"]))
    assert problems == ()
    assert config.access_log_file == "/dev/stdout"
    assert config.trust_domain == "cluster.local"
    assert config.default_config.discovery_address == "istiod-canary.istio-system.svc:15012"


def test_every_metric_of_the_dashboard_is_exported() -> None:
    for package in (mizzen.ca, mizzen.control, mizzen.sources, mizzen.xds):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    families = {
        family.name + suffix
        for family in observe.REGISTRY.collect()
        for suffix in ("", *({"histogram": ("_bucket",), "counter": ("_total",)}.get(family.type, ())))
    }
    text = config_maps.dashboards_config_map(lay_over([]))["data"][config_maps.DASHBOARD]
    expressions = [target["expr"] for panel in json.loads(text)["panels"] for target in panel.get("targets", ())]
    assert len(expressions) > 20
    used = {name for each in expressions for name in re.findall(r"\b([a-z_0-9]+)\{", each)}
    assert used - families == set()
