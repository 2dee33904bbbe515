"""How attempts of a probe add up to a state, and which port they go to."""

import asyncio

import grpc
import grpc.aio
import pytest

from mizzen.api.kube.pods import Container, ContainerPort, GRPCAction, Probe
from mizzen.local.pods.probes import Verdict, check, interval, resolve_port


def test_one_success_is_enough_and_three_failures_are_needed_by_default():
    verdict = Verdict.of(Probe())
    assert [verdict.record(False), verdict.record(False), verdict.passing] == [False, False, None]
    assert [verdict.record(True), verdict.passing] == [True, True]
    assert [verdict.record(False), verdict.record(False), verdict.passing] == [False, False, True]
    assert [verdict.record(False), verdict.passing] == [True, False]


def test_a_success_in_between_starts_the_count_of_failures_again():
    verdict = Verdict.of(Probe(failure_threshold=2))
    verdict.record(True)
    changes = [verdict.record(success) for success in (False, True, False, True, False)]
    assert changes == [False] * 5
    assert verdict.passing is True


def test_a_success_threshold_needs_successes_in_a_row():
    verdict = Verdict.of(Probe(success_threshold=2))
    for success in (True, False, True):
        verdict.record(success)
    assert verdict.passing is None
    verdict.record(True)
    assert verdict.passing is True


def test_the_interval_defaults_to_ten_seconds():
    assert (interval(Probe()), interval(Probe(period_seconds=3))) == (10.0, 3.0)


def test_ports_resolve_by_number_name_and_spelt_number():
    container = Container(name="app", ports=(ContainerPort(name="web", container_port=9200),))
    assert [resolve_port(port, container) for port in (80, "web", "8080")] == [80, 9200, 8080]
    with pytest.raises(ValueError, match="grpc"):
        resolve_port("grpc", container)


async def run_nothing(command):
    """No probe here runs a command."""
    raise AssertionError(command)


async def test_every_probe_by_grpc_connects_anew():
    peers = set()
    both = asyncio.Barrier(2)

    async def answer(_, context):
        peers.add(context.peer())
        await both.wait()
        return b"\x08\x01"

    server = grpc.aio.server()
    methods = {"Check": grpc.unary_unary_rpc_method_handler(answer)}
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("grpc.health.v1.Health", methods)])
    probe = Probe(grpc=GRPCAction(port=server.add_insecure_port("127.0.0.1:0")), timeout_seconds=60)
    await server.start()
    try:
        probing = (check(probe, Container(name="app"), "127.0.0.1", run_nothing) for _ in range(2))
        assert await asyncio.gather(*probing) == [True, True]
    finally:
        await server.stop(None)
    assert len(peers) == 2
