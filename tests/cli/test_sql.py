"""`buildsys sql`: one query, statements from a pipe, the shell on a pseudo-terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import PROGRAM, environment, run_in

QUERY = "SELECT rule, count(*) AS n FROM actions GROUP BY rule ORDER BY rule"


def test_rows_are_a_table_for_people(run):
    told = run("sql", QUERY).stdout
    assert "│ book    │     1 │" in told
    assert "│ words   │     2 │" in told


def test_a_table_that_goes_into_a_pipe_is_not_cut(run):
    told = run("sql", "SELECT repeat('x', 300) AS long FROM range(500)").stdout
    assert told.count("x" * 300) == 500


def test_rows_as_csv_have_a_header_and_json_for_what_is_nested(run):
    told = run("sql", "--csv", "SELECT 1 AS a, NULL AS b, [1, 2] AS c, DATE '2026-01-02' AS d, true AS e").stdout
    assert told == 'a,b,c,d,e\n1,,"[1,2]",2026-01-02,true\n'


def test_rows_as_json_are_an_array_of_objects(run):
    told = run("sql", "--json", "SELECT range AS n, 'nan'::DOUBLE AS x, 1.5 AS d FROM range(2)").stdout
    assert json.loads(told) == [{"n": 0, "x": None, "d": 1.5}, {"n": 1, "x": None, "d": 1.5}]
    assert json.loads(run("sql", "--json", "FROM runs WHERE false").stdout) == []


def test_rows_go_into_a_parquet_file_beside_the_user(run, project):
    done = run("sql", "--parquet", "out.parquet", QUERY)
    assert (done.returncode, done.stdout) == (0, "")
    assert run("sql", "--csv", "SELECT count(*) AS n FROM 'out.parquet'").stdout == "n\n2\n"


def test_statements_come_from_a_pipe_and_formats_take_the_last(run):
    statements = "CREATE TEMP TABLE one AS SELECT 41 AS n;\n-- a comment\nSELECT n + 1 AS n FROM one;"
    assert run("sql", "--csv", stdin=statements).stdout == "n\n42\n"
    assert "│    42 │" in run("sql", stdin=statements).stdout


def test_a_wrong_query_is_an_error_with_its_place(run):
    done = run("sql", "SELECT rule,\n  nope FROM actions")
    assert (done.returncode, done.stdout) == (2, "")
    assert "query:2:3" in done.stderr


def test_no_statement_at_all_is_an_error(run):
    assert run("sql", stdin=" \n").returncode == 2


def test_two_formats_are_an_error(run):
    assert run("sql", "--csv", "--json", QUERY).returncode == 2


def test_before_the_first_build_it_says_what_to_do(run, fresh):
    done = run("sql", "FROM runs", cwd=fresh)
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, "error: nothing was built here yet")


def test_nothing_can_be_written(run):
    assert run("sql", "CREATE TABLE mine AS SELECT 1").returncode == 2


class Typist:
    """Somebody who types into the shell and waits for what it answers."""

    def __init__(self, project: Path) -> None:
        self._mine, its = pty.openpty()
        self.process = subprocess.Popen(
            [*PROGRAM, "sql"],
            cwd=project,
            stdin=its,
            stdout=its,
            stderr=its,
            env=environment(TERM="xterm", NO_COLOR="1"),
        )
        os.close(its)
        self._told = ""

    def types(self, text: str) -> None:
        os.write(self._mine, text.encode())

    def waits_for(self, pattern: str) -> str:
        """What was told up to and with the pattern."""
        deadline = time.monotonic() + 30
        while not (found := re.search(pattern, self._told)):
            readable, _, _ = select.select([self._mine], [], [], max(0.0, deadline - time.monotonic()))
            assert readable, self._told
            self._told += os.read(self._mine, 65536).decode()
        told, self._told = self._told[: found.end()], self._told[found.end() :]
        return told

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._mine)


@pytest.fixture
def typist(project: Path) -> Iterator[Typist]:
    typist = Typist(project)
    typist.waits_for("buildsys> ")
    yield typist
    typist.close()


def test_the_shell_answers_a_statement_over_several_lines(typist):
    typist.types("SELECT rule, count(*) AS n\r")
    typist.waits_for(r"\.\.\. ")
    typist.types("FROM actions GROUP BY rule;\r")
    assert "words" in typist.waits_for(r"└.*┘[^>]*buildsys> ")


def test_the_columns_of_runs_that_tell_most_fit_into_80_columns(typist):
    typist.types("FROM runs;\r")
    shown = typist.waits_for(r"└.*┘").split("┌")[-1].splitlines()
    assert re.findall(r"\w+", shown[1]) == ["run_id", "profile", "command", "n_ran", "wall_s", "outcome"]
    assert max(map(len, shown[1:])) <= 80


def test_the_shell_goes_on_after_a_mistake_and_after_ctrl_c(typist):
    typist.types("SELECT nope FROM runs;\r")
    typist.waits_for("error: .*nope")
    typist.waits_for("buildsys> ")
    typist.types("SELECT never ended")
    typist.waits_for("never ended")
    time.sleep(0.5)  # readline notices a signal only while it waits for a key
    typist.process.send_signal(signal.SIGINT)
    typist.waits_for("buildsys> ")
    typist.types("SELECT 40 + 2 AS n;\r")
    typist.waits_for("│ +42 │")


def test_the_shell_completes_views_columns_and_keywords(typist):
    typist.types("SEL\t artifacts.dig\t from artif\t limit 1;\r")
    assert "SELECT artifacts.digest from artifacts limit 1;" in typist.waits_for("│ +digest +│")


def test_the_shell_keeps_its_history(typist, project):
    typist.types("SELECT 1\r")
    typist.waits_for(r"\.\.\. ")
    typist.types("AS n;\r")
    typist.waits_for(r"└.*┘[^>]*buildsys> ")
    typist.types("\x04")
    assert typist.process.wait(30) == 0
    assert (project / ".buildsys" / "sql_history").read_text().splitlines()[-1] == "SELECT 1 AS n;"


def test_the_shell_sees_a_newer_build_and_keeps_what_the_session_made(typist, project):
    typist.types("CREATE TEMP TABLE kept AS SELECT 7 AS seven;\r")
    typist.waits_for(r"└.*┘[^>]*buildsys> ")
    (project / "data" / "one.txt").write_text("another\n")
    assert run_in(project, "build").returncode == 0
    typist.types("SELECT 'runs: ' || max(run_id) AS n, max(seven) AS s FROM runs, kept;\r")
    assert re.search("runs: 2 +│ +7 │", typist.waits_for(r"└.*┘[^>]*buildsys> "))


def test_a_request_to_end_ends_the_shell(typist):
    time.sleep(0.5)  # as above
    typist.process.send_signal(signal.SIGTERM)
    assert typist.process.wait(30) == 130
