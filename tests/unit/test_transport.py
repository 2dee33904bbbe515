"""The server's end of a stream over real gRPC: what is told to whom when the other side or the server has ended."""

import asyncio
import contextlib

import faults
import grpc
import grpc.aio
import pytest
from adsclient import CHANNEL_OPTIONS

from mizzen import transport

BIG = b"x" * 10_000_000
"""More than gRPC takes from a writer before the client reads."""


class Served:
    """A server with one method, `serve`, and a client's stream to it."""

    def __init__(self, server: grpc.aio.Server, call) -> None:
        self.server = server
        self.call = call


@contextlib.asynccontextmanager
async def serving(serve):
    server = grpc.aio.server(options=[("grpc.max_send_message_length", -1)])
    handlers = {"Talk": transport.method(serve)}
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("test.Service", handlers)])
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=CHANNEL_OPTIONS) as channel:
            call = channel.stream_stream("/test.Service/Talk")()
            yield Served(server, call)
            await call.code()
    finally:
        await server.stop(None)


async def test_messages_go_both_ways_until_the_client_has_no_more(caplog) -> None:
    async def echo(stream: transport.Transport) -> None:
        while (data := await stream.read()) is not None:
            await stream.write(data + b"!")

    async with serving(echo) as served, asyncio.timeout(30):
        await served.call.write(b"one")
        assert await served.call.read() == b"one!"
        await served.call.done_writing()
        assert await served.call.read() is grpc.aio.EOF
        assert await served.call.code() is grpc.StatusCode.OK
    assert faults.logged(caplog) == []


async def test_messages_of_several_tasks_go_one_at_a_time(caplog) -> None:
    async def write(stream: transport.Transport) -> None:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(3):
                tasks.create_task(stream.write(BIG))

    async with serving(write) as served, asyncio.timeout(60):
        for _ in range(3):
            assert await served.call.read() == BIG
        assert await served.call.read() is grpc.aio.EOF
        assert await served.call.code() is grpc.StatusCode.OK
    assert faults.logged(caplog) == []


async def test_a_reason_is_told_to_the_client(caplog) -> None:
    async def refuse(stream: transport.Transport) -> None:
        await stream.begin()
        await stream.abort(grpc.StatusCode.UNAVAILABLE, "not now")

    async with serving(refuse) as served, asyncio.timeout(30):
        assert await served.call.code() is grpc.StatusCode.UNAVAILABLE
        assert await served.call.details() == "not now"
    assert faults.logged(caplog) == []


async def test_a_client_that_goes_away_while_it_is_written_to_ends_the_stream(caplog) -> None:
    writing, ended = asyncio.Event(), asyncio.get_running_loop().create_future()

    async def write(stream: transport.Transport) -> None:
        await stream.begin()
        writing.set()
        try:
            await stream.write(BIG)
        except BaseException as error:
            ended.set_result(error)
            raise

    async with serving(write) as served, asyncio.timeout(30):
        await served.call.initial_metadata()
        await writing.wait()
        served.call.cancel()
        # Which of them comes first is up to gRPC.
        assert isinstance(await ended, transport.Gone | asyncio.CancelledError)
    assert faults.logged(caplog) == []


class Late:
    """A handler that outlives its call, and takes a step once its test says that the other side has gone."""

    def __init__(self, step) -> None:
        self._step = step
        self.begun, self.gone = asyncio.Event(), asyncio.Event()
        self.ended = asyncio.get_running_loop().create_future()
        """What the step was ended by."""

    async def serve(self, stream: transport.Transport) -> None:
        self.begun.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await self.gone.wait()
        try:
            await self._step(stream)
        except BaseException as error:
            self.ended.set_result(error)
            raise


def _in_a_group(step):
    async def serve(stream: transport.Transport) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(step(stream))

    return serve


@pytest.mark.parametrize("stops", [False, True], ids=["client", "server"])
@pytest.mark.parametrize("grouped", [False, True], ids=["bare", "grouped"])
@pytest.mark.parametrize(
    "step",
    [
        lambda stream: stream.write(b"late"),
        lambda stream: stream.begin(),
        lambda stream: stream.abort(grpc.StatusCode.UNAVAILABLE, "late"),
    ],
    ids=["write", "begin", "abort"],
)
async def test_what_comes_after_the_end_of_either_side_is_gone(caplog, step, grouped, stops) -> None:
    late = Late(_in_a_group(step) if grouped else step)
    async with serving(late.serve) as served, asyncio.timeout(30):
        await late.begun.wait()
        if stops:
            await served.server.stop(None)
        else:
            served.call.cancel()
        late.gone.set()
        error = await late.ended
        assert isinstance(error.exceptions[0] if grouped else error, transport.Gone)
    assert faults.logged(caplog) == []


async def test_a_stream_that_reads_from_a_server_that_has_stopped_is_gone(caplog) -> None:
    late = Late(lambda stream: stream.read())
    async with serving(late.serve) as served, asyncio.timeout(30):
        await late.begun.wait()
        await served.server.stop(None)
        late.gone.set()
        assert isinstance(await late.ended, transport.Gone)
    assert faults.logged(caplog) == []


class Ending:
    """The context of a stream whose client has gone while it is written to, before gRPC has told the writer."""

    def __init__(self) -> None:
        self.told = asyncio.Event()

    async def read(self) -> object:
        return grpc.aio.EOF

    async def write(self, _: bytes) -> None:
        await self.told.wait()


async def test_that_there_is_no_more_to_read_is_said_once_what_is_being_written_is() -> None:
    context = Ending()
    stream = transport.Transport(context)
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        writing = tasks.create_task(stream.write(b"late"))
        await asyncio.sleep(0)
        reading = tasks.create_task(stream.read())
        for _ in range(5):
            await asyncio.sleep(0)
        assert not reading.done()
        context.told.set()
        assert await reading is None
        assert writing.done()


async def test_calling_grpc_otherwise_than_it_may_be_called_is_a_fault(caplog) -> None:
    async def begin_twice(stream: transport.Transport) -> None:
        await stream.begin()
        await stream.begin()

    async with serving(begin_twice) as served, asyncio.timeout(30):
        assert await served.call.code() is grpc.StatusCode.UNKNOWN
    assert len(faults.logged(caplog)) == 1


async def test_a_fault_of_the_handler_s_own_stays_one(caplog) -> None:
    async def fail(stream: transport.Transport) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_raise(transport.Gone("away")))
            tasks.create_task(_raise(KeyError("a fault")))

    async def _raise(error: Exception) -> None:
        raise error

    async with serving(fail) as served, asyncio.timeout(30):
        assert await served.call.code() is grpc.StatusCode.UNKNOWN
    assert len(faults.logged(caplog)) == 1
    assert "Unexpected [ExceptionGroup]" in faults.logged(caplog)[0]
