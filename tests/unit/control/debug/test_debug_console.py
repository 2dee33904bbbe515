"""Pages by name, with statuses and both ways to write JSON."""

import json

from mizzen.control.debug.console import Console, Page, PageError, Query, Write, text


def refuse(_: Query) -> Write:
    raise PageError(400, "which one?")


CONSOLE = Console(
    {
        "b": Page("Two things.", lambda query: lambda: {"one": query["x"], "two": ["ü"]}),
        "a": Page("Plain & simple.", lambda _: lambda: text("plain")),
        "c": Page("Refuses.", refuse),
    }
)


async def ask(page: str, **parameters: str) -> tuple[int, str, str]:
    answer = await CONSOLE.ask(Query(page=page, parameters=parameters))
    return answer.status, answer.content_type, answer.body.decode()


async def test_documents_are_compact_unless_pretty_is_asked_for() -> None:
    assert await ask("b", x="1") == (200, "application/json", '{"one":"1","two":["ü"]}')
    assert (await ask("b", pretty=""))[2] == '{\n    "one": "",\n    "two": [\n        "ü"\n    ]\n}'


async def test_plain_answers_stay_plain() -> None:
    assert await ask("a") == (200, "text/plain", "plain")


async def test_what_has_no_answer_says_so() -> None:
    assert await ask("c") == (400, "text/plain", "which one?")
    assert await ask("pprof") == (404, "text/plain", "404 page not found\n")


async def test_the_list_tells_all_names_but_its_own() -> None:
    assert json.loads((await ask("list"))[2]) == ["a", "b", "c"]


def test_the_index_says_what_pages_are_for() -> None:
    answer = CONSOLE.index()
    assert answer.content_type == "text/html"
    assert b"<title>Pilot Debug Console</title>" in answer.body
    assert b'<a href="/debug/a">a</a></td><td>Plain &amp; simple.' in answer.body
