"""The floor under the benchmark's figures: every way of writing reaches all streams."""

from bench import floor


def test_every_stream_is_told_and_answers_however_it_is_written_to(capsys) -> None:
    found = floor.run(streams=5, repeat=1)
    assert [each.streams for each in found] == [5, 5, 5]
    assert all(each.seconds > 0 for each in found)
    floor.print_table(found)
    assert len(capsys.readouterr().out.strip().splitlines()) == 1 + len(found)
