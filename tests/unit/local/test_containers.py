"""Command lines and environments of containers, by Kubernetes' rules."""

import msgspec
import pytest
from local_objects import pod

from mizzen.api.kube.data import ConfigMap, Secret
from mizzen.api.kube.pods import Container
from mizzen.api.meta import Key, ObjectMeta
from mizzen.api.scalars import decode_scalar
from mizzen.errors import LocalError
from mizzen.local.pods import containers
from mizzen.local.pods.containers import Machine

MACHINE = Machine(cpus=2, memory_bytes=8 << 30)
OBJECTS = {
    Key("ConfigMap", "shop", "colours"): ConfigMap(
        metadata=ObjectMeta(name="colours", namespace="shop"), data={"RED": "ff0000", "BLUE": "0000ff"}
    ),
    Key("Secret", "shop", "login"): Secret(
        metadata=ObjectMeta(name="login", namespace="shop"), data={"user": b"eve"}, string_data={"password": "p"}
    ),
}


def container(**fields: object) -> Container:
    return msgspec.convert({"name": "app", "command": ["run"], **fields}, Container, dec_hook=decode_scalar)


def environ(item: Container, base: dict[str, str] | None = None) -> dict[str, str]:
    owner = pod("cart-0", "10.44.0.10", "cart", item, node_name="n1", service_account_name="cart")
    return containers.build_environ(item, owner, base or {}, OBJECTS.get, MACHINE)


def test_a_later_variable_may_refer_to_an_earlier_one_and_to_the_image():
    item = container(
        env=[
            {"name": "A", "value": "1"},
            {"name": "B", "value": "$(A)-$(HOME)-$(LATER)"},
            {"name": "LATER", "value": "x"},
        ]
    )
    assert environ(item, {"HOME": "/root"})["B"] == "1-/root-$(LATER)"


@pytest.mark.parametrize(
    ("text", "expanded"),
    [("$(A)", "1"), ("$$(A)", "$(A)"), ("$$$(A)", "$1"), ("$(NONE)", "$(NONE)"), ("$A ${A} $()", "$A ${A} $()")],
)
def test_references_expand_as_in_kubernetes(text, expanded):
    assert containers.expand(text, {"A": "1"}) == expanded


def test_arguments_expand_with_the_containers_own_variables():
    item = container(command=["serve"], args=["--port=$(PORT)"], env=[{"name": "PORT", "value": "8080"}])
    owner = pod("cart-0", "10.44.0.10", "cart", item)
    program = containers.build_program(item, owner, {"PATH": "/bin"}, OBJECTS.get, MACHINE)
    assert program.argv == ("serve", "--port=8080")
    assert program.environ == {"PATH": "/bin", "PORT": "8080"}


def test_the_downward_api_gives_fields_of_the_pod():
    fields = {
        "NAME": "metadata.name",
        "IP": "status.podIP",
        "HOST": "status.hostIP",
        "ACCOUNT": "spec.serviceAccountName",
        "NODE": "spec.nodeName",
        "APP": "metadata.labels['app']",
        "NONE": "metadata.annotations['none']",
    }
    item = container(
        env=[{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields.items()]
    )
    assert environ(item) == {
        "NAME": "cart-0",
        "IP": "10.44.0.10",
        "HOST": "10.44.0.1",
        "ACCOUNT": "cart",
        "NODE": "n1",
        "APP": "cart",
        "NONE": "",
    }


def test_resources_come_in_units_of_their_divisor_rounded_up():
    def source(resource: str, divisor: str) -> dict[str, object]:
        return {"resourceFieldRef": {"resource": resource, "divisor": divisor}}

    item = container(
        resources={"limits": {"cpu": "1500m", "memory": "1Gi"}},
        env=[
            {"name": "CPU", "valueFrom": source("limits.cpu", "1")},
            {"name": "MILLI", "valueFrom": source("limits.cpu", "1m")},
            {"name": "MEMORY", "valueFrom": source("limits.memory", "1Mi")},
            {"name": "REQUEST", "valueFrom": source("requests.cpu", "0")},
        ],
    )
    assert environ(item) == {"CPU": "2", "MILLI": "1500", "MEMORY": "1024", "REQUEST": "2"}


def test_entries_of_config_maps_and_secrets_become_variables():
    item = container(
        envFrom=[{"prefix": "C_", "configMapRef": {"name": "colours"}}],
        env=[{"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "login", "key": "password"}}}],
    )
    assert environ(item) == {"C_BLUE": "0000ff", "C_RED": "ff0000", "PASSWORD": "p"}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"envFrom": [{"secretRef": {"name": "no"}}]}, "there is no Secret shop/no"),
        (
            {"env": [{"name": "X", "valueFrom": {"configMapKeyRef": {"name": "colours", "key": "GREY"}}}]},
            "ConfigMap shop/colours has no entry GREY",
        ),
        ({"env": [{"name": "X", "valueFrom": {"fieldRef": {"fieldPath": "status.phase"}}}]}, "status.phase"),
        (
            {
                "env": [
                    {"name": "X", "valueFrom": {"resourceFieldRef": {"containerName": "b", "resource": "limits.cpu"}}}
                ]
            },
            "no container b",
        ),
    ],
)
def test_a_reference_that_leads_nowhere_is_named(fields, message):
    with pytest.raises(LocalError, match=message):
        environ(container(**fields))


def test_optional_references_may_lead_nowhere():
    item = container(
        envFrom=[{"configMapRef": {"name": "no", "optional": True}}],
        env=[{"name": "X", "valueFrom": {"secretKeyRef": {"name": "no", "key": "k", "optional": True}}}],
    )
    assert environ(item) == {}


def test_labels_are_written_as_the_downward_api_writes_them():
    assert containers.render_map({"b": 'say "x"', "a": "1"}) == 'a="1"\nb="say \\"x\\""'
