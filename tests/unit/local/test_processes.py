"""Processes and their supervision."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from eventually import eventually

from mizzen.errors import LocalError
from mizzen.local.processes import Command, Identity, Process, Supervisor, build_argv, describe_exit, trim_log


def read(path: Path, absent: str = "") -> str:
    return path.read_text() if path.exists() else absent


def command(tmp_path: Path, *argv: str, **fields: object) -> Command:
    return Command(argv=argv, environ=dict(os.environ), directory=tmp_path, log=tmp_path / "log", **fields)


def test_identity_and_resolver_are_set_by_tools_in_front_of_the_program(tmp_path):
    identity = Identity(uid=1337, gid=1338, capabilities=("dac_read_search",))
    argv = build_argv(command(tmp_path, "run", identity=identity, resolv_conf=Path("/r"), bound_to_parent=True))
    assert argv[:3] == ("unshare", "--mount", "--propagation=private")
    assert argv[argv.index("sh", 4) : argv.index("setpriv")] == ("sh", "/r")
    assert argv[argv.index("setpriv") :] == (
        "setpriv",
        "--no-new-privs",
        "--reuid=1337",
        "--regid=1338",
        "--clear-groups",
        "--inh-caps=+dac_read_search",
        "--ambient-caps=+dac_read_search",
        "--pdeathsig=KILL",
        "--",
        "run",
    )


async def test_output_goes_to_the_log_and_the_exit_code_comes_back(tmp_path):
    process = Process(command(tmp_path, "sh", "-c", "echo out; echo err >&2; exit 3"))
    assert await process.wait() == 3
    assert sorted((tmp_path / "log").read_text().split()) == ["err", "out"]
    process.close()


async def test_several_may_wait_for_one_end(tmp_path):
    process = Process(command(tmp_path, "sleep", "0.1"))
    assert await asyncio.gather(process.wait(), process.wait()) == [0, 0]
    process.close()


async def test_stopping_kills_what_ignores_the_request_and_its_children(tmp_path):
    script = "trap '' TERM; sleep 60 & echo $! > child; wait; sleep 60"
    process = Process(command(tmp_path, "sh", "-c", script))
    child = int(await eventually(lambda: read(tmp_path / "child")))
    await process.stop(0.1)
    assert await process.wait() == -9
    await eventually(lambda: "Z" in read(Path(f"/proc/{child}/stat"), "Z"))
    process.close()


async def test_what_a_program_leaves_in_its_session_ends_with_it(tmp_path):
    process = Process(command(tmp_path, "sh", "-c", "sleep 600 & echo $! > child"))
    assert await process.wait() == 0
    child = int(read(tmp_path / "child"))
    await eventually(lambda: "Z" in read(Path(f"/proc/{child}/stat"), "Z"))
    process.close()


_NUMBER_USED_AGAIN = """
import asyncio, os, pathlib, subprocess, sys
from mizzen.local.processes import Command, Process

async def main(folder):
    process = Process(Command(argv=("true",), environ=dict(os.environ), directory=folder, log=folder / "log"))
    await process.wait()
    pathlib.Path("/proc/sys/kernel/ns_last_pid").write_text(str(process.pid - 1))
    other = subprocess.Popen(["cat"], stdin=subprocess.PIPE, start_new_session=True)
    process.kill_group()
    await process.stop(0)
    other.communicate()
    print(other.pid == process.pid, other.returncode)

asyncio.run(main(pathlib.Path(sys.argv[1])))
"""


_ORPHANS = """
import collections, os, subprocess, threading
from mizzen.local.processes import bury_orphans

def count_dead():
    return sum(" Z " in open(f"/proc/{entry}/stat").read() for entry in os.listdir("/proc") if entry.isdecimal())

codes = collections.Counter()
ended = ("sh", "-c", "exec 1>&- 2>&-; exit 7")
thread = threading.Thread(
    target=lambda: codes.update(subprocess.run(ended, capture_output=True).returncode for _ in range(200))
)
thread.start()
while thread.is_alive():
    bury_orphans()
subprocess.run(["sh", "-c", "true & true & exit 0"])
while count_dead():
    bury_orphans()
print(dict(codes))
"""


def test_the_first_process_buries_orphans_and_leaves_the_rest_to_those_who_wait_for_them():
    if os.geteuid() != 0:
        pytest.skip("making a process namespace needs root")
    own = ("unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", _ORPHANS)
    done = subprocess.run(own, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "{7: 200}\n"


def test_an_ended_process_whose_number_is_another_s_now_kills_nobody(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("making a process namespace needs root")
    own = ("unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", _NUMBER_USED_AGAIN, str(tmp_path))
    done = subprocess.run(own, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "True 0\n"


async def test_the_host_sees_the_process_under_this_number(tmp_path):
    process = Process(command(tmp_path, "sleep", "60"))
    assert process.host_pid == process.pid
    await process.stop(1)
    process.close()


async def test_a_program_that_is_not_there_is_named_in_the_log(tmp_path):
    process = Process(command(tmp_path, "no-such-program"))
    assert await process.wait() == 127
    assert "no-such-program" in (tmp_path / "log").read_text()
    process.close()


async def test_a_directory_that_is_not_there_is_a_clear_failure(tmp_path):
    wanted = Command(argv=("true",), environ={}, directory=tmp_path / "no", log=tmp_path / "log")
    with pytest.raises(LocalError, match="cannot start true: No such file or directory"):
        Process(wanted)


async def test_a_supervised_program_runs_again_and_the_change_is_told(tmp_path):
    seen: list[int] = []
    supervisor: Supervisor

    async def build() -> Command:
        return command(tmp_path, sys.executable, "-c", "print('x')")

    def changed() -> None:
        seen.append(supervisor.restarts)

    supervisor = Supervisor(build, changed)
    task = asyncio.ensure_future(supervisor.run())
    await eventually(lambda: supervisor.restarts >= 2)
    task.cancel()
    await asyncio.wait([task])
    assert (tmp_path / "log").read_text().count("x") >= 2
    assert supervisor.failure == "exited with code 0"
    assert seen[:4] == [0, 0, 1, 1]
    assert supervisor.process is None


async def test_a_command_that_cannot_be_built_is_tried_again(tmp_path):
    attempts: list[int] = []

    async def build() -> Command:
        attempts.append(1)
        if len(attempts) < 3:
            raise LocalError("not yet")
        return command(tmp_path, "sleep", "60")

    supervisor = Supervisor(build, lambda: None)
    task = asyncio.ensure_future(supervisor.run())
    await eventually(lambda: supervisor.process)
    assert (supervisor.failure, len(attempts)) == ("cannot be started: not yet", 3)
    await supervisor.stop(60)
    await asyncio.wait([task])
    assert supervisor.failure == "killed by SIGTERM"


async def test_a_program_that_gave_up_has_said_why_in_its_last_line(tmp_path):
    """Of what an earlier one said in the same log, nothing is taken for its own words."""
    said = ["echo starting; echo 'no such port' >&2; echo; exit 3", "exit 4", "echo well"]
    heard: list[str] = []

    async def build() -> Command:
        return command(tmp_path, "sh", "-c", said[len(heard)])

    supervisor = Supervisor(build, lambda: None, lambda code: code != 0, heard.append)
    await supervisor.run()
    assert heard == ["exited with code 3 (no such port)", "exited with code 4"]
    assert supervisor.failure == "exited with code 0"


async def test_the_last_line_is_the_process_s_own_and_never_long(tmp_path):
    """A log that is begun anew while it runs holds nothing but its own words."""
    log = tmp_path / "log"
    log.write_text("of an earlier one\n")
    process = Process(command(tmp_path, "sh", "-c", "exit 1"))
    await process.wait()
    process.close()
    assert process.last_line() == ""
    log.write_text("short\n")
    assert process.last_line() == "short"
    log.write_text("0" * 9999)
    assert process.last_line() == "0" * 300


async def test_a_program_that_may_end_is_not_started_again(tmp_path):
    async def build() -> Command:
        return command(tmp_path, "true")

    supervisor = Supervisor(build, lambda: None, lambda code: code != 0)
    await supervisor.run()
    assert supervisor.restarts == 0


def test_a_log_that_has_grown_too_large_is_set_aside(tmp_path):
    log = tmp_path / "cart.log"
    log.write_text("0123456789")
    writer = os.open(log, os.O_WRONLY | os.O_APPEND)
    assert not trim_log(log, 10)
    assert trim_log(log, 9)
    os.write(writer, b"more")
    os.close(writer)
    assert (log.read_text(), (tmp_path / "cart.log.1").read_text()) == ("more", "0123456789")


def test_exits_read_as_words():
    assert [describe_exit(code) for code in (0, 3, -9, -250)] == [
        "exited with code 0",
        "exited with code 3",
        "killed by SIGKILL",
        "killed by signal 250",
    ]
