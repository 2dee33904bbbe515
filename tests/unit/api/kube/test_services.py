import pytest

from mizzen.api.decode import decode_object


@pytest.mark.parametrize(
    "status",
    [None, {}, {"loadBalancer": {}}, {"loadBalancer": None}, {"conditions": [{"type": "Ready", "status": "True"}]}],
)
def test_a_service_that_was_given_nothing_is_the_same_however_that_is_said(status: object) -> None:
    plain = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}}
    assert decode_object({**plain, "status": status}) == decode_object(plain)
