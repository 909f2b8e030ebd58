"""`buildsys service`: servers that a user brings up and down, and that builds use meanwhile."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

from buildsys.errors import FAILED, INTERRUPTED, NO_SUCH_TARGET, NOT_UP_TO_DATE
from buildsys.run.kept import KEPT, all_kept
from tests.cli.conftest import PROGRAM, environment, run_in
from tests.processes import processes_in
from tests.run.conftest import alive, within

pytestmark = pytest.mark.timeout(60)

RULES = """
[service.echo]
shell = "exec {python} server.py {port}"
ready = "http://127.0.0.1:{port}/"

[service.model]
shell  = "exec {python} server.py {port} {inputs.weights}"
inputs = { weights = "@weights" }
ready  = "http://127.0.0.1:{port}/"

[service.broken]
shell = "echo no memory; exit 3  # {port}"
ready = "http://127.0.0.1:{port}/"

[rule.weights]
shell   = "echo w > {outputs.weights}"
outputs = { weights = "build/weights.txt" }

[rule.asked]
shell    = "echo {services.echo} > {outputs.asked}"
services = ["echo"]
outputs  = { asked = "build/asked.txt" }
"""
SERVER = """
import http.server, os, sys, time

print("loading", flush=True)
while os.path.exists("wait"):
    time.sleep(0.02)

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        print("asked", flush=True)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *args): pass

http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


@pytest.fixture
def project(tmp_path):
    root = tmp_path / "project"
    (root / "rules").mkdir(parents=True)
    (root / "rules" / "services.toml").write_text(RULES)
    (root / "server.py").write_text(SERVER)
    yield root
    (root / "wait").unlink(missing_ok=True)
    for kept in all_kept(root / ".buildsys" / KEPT):
        assert kept.end()
    assert processes_in(root) == {}


def standing(run, name):
    (found,) = json.loads(run("service", "status", name, "--json").stdout)
    return found


def test_a_service_is_brought_up_used_by_builds_and_brought_down(run, project):
    assert standing(run, "echo")["state"] == "down"
    up = run("service", "up", "echo")
    assert up.returncode == 0
    found = standing(run, "echo")
    assert up.stderr.startswith(f"echo ready on {found['url'].removeprefix('http://')} (")
    assert (found["state"], found["key"], found["keep"]) == ("ready", "current", False)
    assert f"echo            ready     {found['url']}  pid {found['pid']}  up for " in run("service").stdout
    assert run_in(project, "build", "asked").returncode == 0
    assert (project / "build/asked.txt").read_text() == f"{found['url']}\n"
    assert run("service", "up", "echo").stderr == f"echo up already on {found['url'].removeprefix('http://')}\n"
    assert standing(run, "echo") == found
    assert run("service", "down").stderr == "echo is down\n"
    assert not alive(found["pid"])
    assert standing(run, "echo")["state"] == "down"
    assert run("service", "down", "echo").stderr == "echo is not up\n"
    assert run("service", "down").stderr == "no service is up\n"


def test_a_service_whose_script_is_edited_is_stale_and_a_build_starts_it_anew(run, project):
    run("service", "up", "echo")
    old = standing(run, "echo")
    (project / "server.py").write_text(SERVER.replace("200", "100 + 100"))
    assert standing(run, "echo")["key"] == "stale"
    assert "stale: a build starts it anew" in run("service", "status", "echo").stdout
    assert run_in(project, "build", "asked").returncode == 0
    new = standing(run, "echo")
    assert new["pid"] != old["pid"]
    assert (new["state"], new["key"]) == ("ready", "current")
    assert not alive(old["pid"])


def test_a_service_that_reads_what_is_not_built_says_what_to_build(run, project):
    told = run("service", "up", "model")
    assert told.returncode == NOT_UP_TO_DATE
    assert 'service "model" reads what is not up to date: weights\n  rules/services.toml:6' in told.stderr
    assert told.stderr.endswith("hint: buildsys build weights\n")
    run_in(project, "build", "weights")
    assert run("service", "up", "model").returncode == 0
    assert standing(run, "model")["key"] == "current"
    (project / "rules/services.toml").write_text(RULES.replace("echo w >", "echo v >"))
    assert standing(run, "model")["key"] == "unknown"


def test_a_service_that_does_not_come_up_is_told_and_the_others_stay(run):
    told = run("service", "up", "broken", "echo")
    assert told.returncode == FAILED
    assert 'error: service "broken" ended before it was ready\n    no memory\n' in told.stderr
    assert "echo ready on" in told.stderr
    assert standing(run, "echo")["state"] == "ready"
    broken = standing(run, "broken")
    assert (broken["state"], broken["ended"]) == ("ended", "exit code 3")


def test_ctrl_c_leaves_a_service_that_is_loading(run, project):
    (project / "wait").touch()
    with subprocess.Popen([*PROGRAM, "service", "up", "echo"], cwd=project, stderr=subprocess.PIPE, text=True) as up:
        assert within(20, lambda: any(kept.up for kept in all_kept(project / ".buildsys" / KEPT)))
        up.send_signal(signal.SIGINT)
        _, told = up.communicate(timeout=20)
    assert up.returncode == INTERRUPTED
    assert told.rstrip() == "echo goes on loading; `buildsys service down echo` ends it"
    loading = standing(run, "echo")
    assert loading["state"] == "not ready"
    (project / "wait").unlink()
    assert run("service", "up", "echo").returncode == 0
    assert standing(run, "echo")["pid"] == loading["pid"]


def test_a_terminal_shows_what_a_service_prints_while_it_is_loading(project):
    (project / "wait").touch()
    terminal, theirs = pty.openpty()
    with subprocess.Popen([*PROGRAM, "service", "up", "echo"], cwd=project, stderr=theirs, env=environment()) as up:
        os.close(theirs)
        seen = b""
        while b"loading" not in seen:
            seen += os.read(terminal, 4096)
        (project / "wait").unlink()
        assert up.wait(20) == 0
    os.close(terminal)
    assert b"  echo  starting for " in seen


def test_logs_are_printed_and_followed_until_the_service_has_ended(run, project):
    assert run("service", "logs", "echo").returncode == NO_SUCH_TARGET
    run("service", "up", "echo")
    assert run("service", "logs", "--json").stdout == '{\n  "echo": ".buildsys/services/echo.log"\n}\n'
    assert run("service", "logs", "echo").stdout.startswith("loading\nasked\n")
    assert run("log", "echo").stdout.startswith("loading\nasked\n")
    follow = [*PROGRAM, "service", "logs", "-f"]
    with subprocess.Popen(follow, cwd=project, stdout=subprocess.PIPE, text=True) as following:
        try:
            assert following.stdout
            assert following.stdout.readline() == "loading\n"
            time.sleep(0.1)
            urllib.request.urlopen(standing(run, "echo")["url"]).close()
            run("service", "down")
            rest, _ = following.communicate(timeout=20)
        finally:
            following.kill()
    assert set(rest.splitlines()) == {"asked"}
    assert following.returncode == 0


def test_down_needs_no_valid_rules_and_ends_a_service_that_none_declares_any_more(run, project):
    run("service", "up", "echo")
    pid = standing(run, "echo")["pid"]
    without = RULES.partition("[rule.asked]")[0].replace("[service.echo]", "[service.other]")
    (project / "rules/services.toml").write_text(without)
    assert standing(run, "echo")["key"] == "undeclared"
    (project / "rules/services.toml").write_text("[service")
    assert run("service", "down", "echo").stderr == "echo is down\n"
    assert not alive(pid)


def test_a_name_that_no_service_has_is_told_with_the_nearest(run):
    for words in (["up"], ["down"], ["status"], ["logs"], []):
        told = run("service", *words, "ecko")
        assert told.returncode == NO_SUCH_TARGET
        assert told.stderr == 'error: there is no service "ecko"\nhint: did you mean "echo"?\n'


def test_a_project_without_services_says_so(run, project: Path):
    (project / "rules/services.toml").write_text('[rule.a]\nshell = "touch {outputs.o}"\noutputs = { o = "o" }\n')
    assert run("service", "up").stderr.startswith("error: no rule file declares a service\n")
    assert run("service").stdout == ""
