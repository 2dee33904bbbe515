"""What a starting mesh tells, on a terminal and elsewhere."""

import io

from mizzen.local.timeline import Timeline


def told(*, terminal: bool) -> str:
    stream, moments = io.StringIO(), iter([12.34, 15.0])
    timeline = Timeline(stream, lambda: next(moments), start=10.0, terminal=terminal)
    timeline.progress("1 of 2 pods ready")
    timeline.say("cart sidecar ready")
    timeline.line("a warning")
    timeline.progress("")
    timeline.say("mesh ready")
    return stream.getvalue()


def test_a_log_gets_plain_lines_with_seconds_since_the_start():
    assert told(terminal=False) == "   2.3s  cart sidecar ready\na warning\n   5.0s  mesh ready\n"


def test_a_terminal_gets_a_last_line_that_is_overwritten():
    status, erase = "1 of 2 pods ready", "\r\x1b[K"
    assert told(terminal=True) == (
        f"{status}{erase}   2.3s  cart sidecar ready\n{status}{erase}a warning\n{status}{erase}   5.0s  mesh ready\n"
    )


def test_a_reader_that_has_gone_does_not_stop_the_mesh():
    class Gone(io.StringIO):
        def write(self, text: str, /) -> int:
            raise BrokenPipeError(text)

    timeline = Timeline(Gone(), lambda: 0.0, start=0.0, terminal=False)
    timeline.say("one")
    timeline.say("two")
