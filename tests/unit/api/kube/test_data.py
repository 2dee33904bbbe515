from mizzen.api.kube.data import Secret
from mizzen.api.meta import ObjectMeta


def test_an_entry_is_found_wherever_it_was_written() -> None:
    secret = Secret(data={"a": b"old", "b": b"b"}, string_data={"a": "new"})
    assert secret.get("a") == b"new"
    assert secret.get("b") == b"b"
    assert secret.get("c") is None


def test_a_secret_does_not_show_its_values() -> None:
    metadata = ObjectMeta(name="tls", namespace="web")
    secret = Secret(metadata=metadata, type="tls", data={"key": b"hunter2"}, string_data={"more": "hunter2"})
    assert repr(secret) == "Secret(web/tls, type='tls', keys=['key', 'more'])"
    assert "hunter2" not in f"{secret} {secret!r}"
