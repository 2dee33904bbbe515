"""Texts that clients make up, as long and as many as they like, pile up nowhere; the stream they came on goes on."""

import pytest
from ads_server import serve
from adsclient import Client, node
from eventually import eventually

from mizzen.compile.resource import CLUSTER
from mizzen.observe import REGISTRY

MESH = [(CLUSTER, "a", "1")]
MANY = 100


def series(metric: str) -> list[dict[str, str]]:
    """The labels of a metric's series."""
    return [sample.labels for found in REGISTRY.collect() if found.name == metric for sample in found.samples]


async def still_served(client: Client) -> None:
    await client.subscribe(CLUSTER, "*")
    assert (await client.read_acked()).names == ["a"]


async def test_types_that_are_not_served_are_told_of_a_few_times_and_in_short(caplog):
    async with serve(MESH) as serving, Client(serving.target) as client:
        for number in range(MANY):
            await client.subscribe(f"type.googleapis.com/{number}{'x' * 10_000}")
        await still_served(client)
    said = [record.getMessage() for record in caplog.records if "not served" in record.getMessage()]
    assert 0 < len(said) < MANY / 2
    assert max(map(len, said)) < 1000


async def test_codes_of_rejections_that_grpc_does_not_know_are_one():
    async with serve(MESH) as serving, Client(serving.target, node=node("inventor")) as client:
        await client.subscribe(CLUSTER)
        answer = await client.read()
        for number in range(MANY):
            await client._respond(answer, error_detail={"code": 1000 + number, "message": "bad"})
        await still_served(client)
        errors = {labels["err"] for labels in series("pilot_xds_cds_reject") if "inventor" in labels["node"]}
        assert errors == {"Unknown"}


async def test_of_a_rejection_as_long_as_a_request_the_beginning_counts(caplog):
    async with serve(MESH) as serving, Client(serving.target) as client:
        await client.subscribe(CLUSTER)
        await client.nack(await client.read(), "bad a: " + "x" * 3_000_000)
        await still_served(client)
    (said,) = (text for record in caplog.records if "ACK ERROR" in (text := record.getMessage()))
    assert "bad a: xxx" in said
    assert len(said) < 10_000


async def test_versions_that_nobody_has_any_more_go_once_there_are_many():
    async with serve(MESH) as serving:
        for number in range(MANY):
            version = f"{number}.{'9' * 1000}"
            async with Client(serving.target, node=node(ISTIO_VERSION=version)) as client:
                await still_served(client)
        await eventually(lambda: not len(serving.discovery.connections))
        versions = [labels["version"] for labels in series("pilot_xds")]
        assert len(versions) < MANY / 2
        assert max(map(len, versions)) < 100


@pytest.mark.parametrize(
    "metadata",
    [
        {"ISTIO_VERSION": "9" * 5000 + ".1"},
        {"HTTP_PROXY_PORT": "²"},
        {"ENVOY_STATUS_PORT": "9" * 5000},
    ],
    ids=lambda metadata: next(iter(metadata)),
)
async def test_what_looks_like_a_number_and_is_none_keeps_nobody_out(metadata):
    async with serve(MESH) as serving, Client(serving.target, node=node(**metadata)) as client:
        await still_served(client)
