"""What the files of a machine outside Kubernetes make of the agent's environment."""

import pytest

from mizzen.agent import machine
from mizzen.errors import DecodeError


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    machine.CLUSTER.parent.mkdir(parents=True)


def test_a_pod_has_no_such_files_and_keeps_its_environment():
    machine.SIDECAR.write_text("A=b\n")
    assert machine.read_environment({"C": "d"}) == {"C": "d"}


def test_values_are_quoted_as_for_a_shell():
    machine.CLUSTER.write_text("# written by a tool\nISTIO_INBOUND_PORTS='*'\nLABELS='{\"app\":\"a b\"}'\nEMPTY=''\n")
    found = machine.read_environment({})
    assert (found["ISTIO_INBOUND_PORTS"], found["LABELS"], found["EMPTY"]) == ("*", '{"app":"a b"}', "")


def test_the_process_wins_over_the_files_and_the_cluster_over_the_operator():
    machine.SIDECAR.write_text("A=operator\nB=operator\nC=operator\n")
    machine.CLUSTER.write_text("B=cluster\nC=cluster\n")
    found = machine.read_environment({"C": "process"})
    assert (found["A"], found["B"], found["C"]) == ("operator", "cluster", "process")


def test_the_machine_has_a_name_an_address_and_a_place_for_its_certificate():
    machine.CLUSTER.write_text("ISTIO_SVC_IP=10.0.0.9\n")
    found = machine.read_environment({})
    assert found["POD_NAME"]
    assert "." not in found["POD_NAME"]
    assert found["INSTANCE_IP"] == "10.0.0.9"
    assert found["PROV_CERT"] == found["OUTPUT_CERTS"] == "./etc/certs"
    assert machine.read_environment({"POD_NAME": "vm-1", "PROV_CERT": "/keys"})["PROV_CERT"] == "/keys"


def test_a_broken_file_is_told_of_with_its_line():
    machine.CLUSTER.write_text("A=b\nC='d\n")
    with pytest.raises(DecodeError, match=r"cluster.env.*line 2"):
        machine.read_environment({})
