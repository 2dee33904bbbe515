"""A real Envoy reads what is taken for a readable format, and refuses what is not."""

import pathlib

import pytest
from envoy_validation import EXTENSIONS, takes_connection_manager

from mizzen.compile.filters import formats

pytestmark = pytest.mark.envoy

SIMPLE = sorted(formats.ALONE | formats.EITHER | formats.PARTS.keys())
TRICKY = {
    **dict.fromkeys(
        ("%%", "%REQ(:AUTHORITY?X-B)%", "%REQ(x):5%", "%FILTER_STATE(a:FIELD:x)%", "%METADATA(LISTENER:a)%"), True
    ),
    **dict.fromkeys(("%PATH(WQ:ORIG_OR_PATH)%", "%QUERY_PARAMS(ORIG)%", "%START_TIME(%s)%"), True),
    **dict.fromkeys(("%GRPC_STATUS(CAMEL_STRING)%", "%GRPC_STATUS()%", "%GRPC_STATUS%"), True),
    **dict.fromkeys(("%LISTENER_NAME%", "%PACKETS_RETRANSMITTED%"), True),
    **dict.fromkeys(("%PER_REQUEST_STATE(a)%", "%GRPC_STATUS(x)%", "%GRPC_STATUS:3%"), False),
    '%COALESCE({"operators":["PROTOCOL",{"command":"REQ","param":"a"}]})%': True,
    **dict.fromkeys(("100%", "%NO_SUCH_COMMAND%", "%REQ(a b)%", "%DURATION:3%", "%FILTER_STATE(a:b)%"), False),
    **dict.fromkeys(("%PATH(x)%", "%COMMON_DURATION(a:b:c)%", '%COALESCE({"operators":["NOPE"]})%'), False),
}


def is_taken(folder: pathlib.Path, log_format: dict) -> bool:
    log = {"@type": f"{EXTENSIONS}.access_loggers.file.v3.FileAccessLog", "path": "/dev/null", "log_format": log_format}
    return takes_connection_manager(folder, access_log=[{"name": "log", "typed_config": log}])


def test_every_command_that_is_known_is_read(tmp_path: pathlib.Path) -> None:
    assert len(SIMPLE) > 100
    assert is_taken(tmp_path, {"json_format": {command: f"%{command}%" for command in SIMPLE}})


@pytest.mark.parametrize(("text", "taken"), TRICKY.items())
def test_envoy_agrees(tmp_path: pathlib.Path, text: str, taken: bool) -> None:
    assert formats.is_readable(text) is taken
    assert is_taken(tmp_path, {"text_format_source": {"inline_string": text}}) is taken
