import json

from injected_pods import build_pod, container, environment, inject

from mizzen.inject.probes import restore_probes, rewrite_probes
from mizzen.inject.values import InjectionConfig

APP = {
    "name": "app",
    "ports": [{"name": "web", "containerPort": 8080}],
    "readinessProbe": {"httpGet": {"port": "web", "path": "/r", "scheme": "HTTPS"}, "periodSeconds": 3},
    "livenessProbe": {"tcpSocket": {"port": 90}, "timeoutSeconds": 7},
    "startupProbe": {"grpc": {"port": 91, "service": "s"}},
    "lifecycle": {"preStop": {"httpGet": {"port": 92, "path": "/bye"}}, "postStart": {"exec": {"command": ["true"]}}},
}


def test_every_kind_of_probe_asks_the_agent_and_keeps_its_timing() -> None:
    app = container(inject(build_pod(APP)), "app")
    assert app["readinessProbe"] == {"httpGet": {"path": "/app-health/app/readyz", "port": 15020}, "periodSeconds": 3}
    assert app["livenessProbe"] == {"httpGet": {"path": "/app-health/app/livez", "port": 15020}, "timeoutSeconds": 7}
    assert app["startupProbe"] == {"httpGet": {"path": "/app-health/app/startupz", "port": 15020}}
    assert app["lifecycle"]["preStop"] == {"httpGet": {"path": "/app-lifecycle/app/prestopz", "port": 15020}}
    assert app["lifecycle"]["postStart"] == APP["lifecycle"]["postStart"]


def test_the_agent_learns_the_original_probes_with_numbers_for_named_ports() -> None:
    probers = json.loads(environment(inject(build_pod(APP)))["ISTIO_KUBE_APP_PROBERS"])
    assert list(probers) == sorted(probers)
    assert probers == {
        "/app-health/app/livez": {"tcpSocket": {"port": 90}, "timeoutSeconds": 7},
        "/app-health/app/readyz": {"httpGet": {"port": 8080, "path": "/r", "scheme": "HTTPS"}},
        "/app-health/app/startupz": {"grpc": {"port": 91, "service": "s"}},
        "/app-lifecycle/app/prestopz": {"httpGet": {"port": 92, "path": "/bye"}},
    }


def test_commands_and_unknown_ports_are_left_alone() -> None:
    app = {
        "name": "app",
        "readinessProbe": {"exec": {"command": ["true"]}},
        "livenessProbe": {"httpGet": {"port": "nowhere", "path": "/"}},
    }
    pod = inject(build_pod(app))
    assert container(pod, "app") == app
    assert "ISTIO_KUBE_APP_PROBERS" not in environment(pod)


def test_init_containers_are_rewritten_too_and_the_proxy_is_not() -> None:
    helper = {"name": "helper", "restartPolicy": "Always", "startupProbe": {"tcpSocket": {"port": 1}}}
    pod = inject(build_pod(initContainers=[helper]))
    assert container(pod, "helper")["startupProbe"] == {
        "httpGet": {"path": "/app-health/helper/startupz", "port": 15020}
    }
    assert container(pod)["readinessProbe"]["httpGet"] == {"path": "/healthz/ready", "port": 15021}


def test_rewriting_can_be_turned_off_by_values_and_by_annotation() -> None:
    off = InjectionConfig(rewrite_probes=False)
    name = "sidecar.istio.io/rewriteAppHTTPProbers"
    assert container(inject(build_pod(APP), config=off), "app") == APP
    assert container(inject(build_pod(APP, annotations={name: "false"})), "app") == APP
    assert container(inject(build_pod(APP, annotations={name: "true"}), config=off), "app") != APP


def test_the_status_port_of_the_pod_is_asked() -> None:
    pod = inject(build_pod(APP, annotations={"status.sidecar.istio.io/port": "15333"}))
    assert container(pod, "app")["livenessProbe"]["httpGet"]["port"] == 15333


def test_restoring_gives_back_what_was_rewritten() -> None:
    rewritten, probers = rewrite_probes(APP, status_port=15020)
    restored = restore_probes(rewritten, probers)
    assert restored["readinessProbe"]["httpGet"]["port"] == 8080
    restored["readinessProbe"]["httpGet"]["port"] = "web"
    assert restored == APP


def test_a_probe_that_asks_the_agent_already_is_not_taken_for_the_applications() -> None:
    rewritten, _ = rewrite_probes(APP, status_port=15020)
    assert rewrite_probes(rewritten, status_port=15020) == (rewritten, {})
