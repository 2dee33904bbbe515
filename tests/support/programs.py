"""Commands of the program in processes of their own, for tests whose control plane is in this one."""

import asyncio
import sys
from collections.abc import Mapping
from typing import NamedTuple


class Answer(NamedTuple):
    """What a program said."""

    code: int
    out: str
    err: str


async def run(*command: object, environ: Mapping[str, str] | None = None) -> Answer:
    """Any program; `environ` replaces this process's environment."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*map(str, command), stdout=pipe, stderr=pipe, env=environ)
    out, err = await process.communicate()
    return Answer(process.returncode or 0, out.decode(), err.decode())


async def mizzen(*arguments: object) -> Answer:
    """Mizzen's own."""
    return await run(sys.executable, "-m", "mizzen", *arguments)
