"""Which logs are whose, and which are outdated."""

from __future__ import annotations

from buildsys.state.logs import folder_of, outdated, prune, runs_of


def logged(logs, run_id, profile, *names):
    for name in names:
        path = folder_of(logs, run_id, profile) / f"{name}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(profile)


def left(logs):
    return sorted(path.relative_to(logs).as_posix() for path in logs.rglob("*.log"))


def test_the_runs_of_a_profile_are_told_apart_the_newest_first(tmp_path):
    for run_id, profile in ((2, "default"), (9, "a.b"), (10, "a.b"), (11, "default")):
        logged(tmp_path, run_id, profile, "x")
    (tmp_path / "notes").mkdir()
    assert [run.name for run in runs_of(tmp_path)] == ["11", "10.a.b", "9.a.b", "2"]
    assert [run.name for run in runs_of(tmp_path, "a.b")] == ["10.a.b", "9.a.b"]
    assert [run.name for run in runs_of(tmp_path, "default")] == ["11", "2"]


def test_a_log_is_not_outdated_by_one_of_another_profile(tmp_path):
    logged(tmp_path, 1, "default", "words/one", "words/two")
    logged(tmp_path, 2, "quiet", "words/one")
    logged(tmp_path, 3, "quiet", "words/one")
    assert [path.relative_to(tmp_path).as_posix() for path in outdated(tmp_path, 1)] == ["2.quiet/words/one.log"]
    prune(tmp_path, 1)
    assert left(tmp_path) == ["1/words/one.log", "1/words/two.log", "3.quiet/words/one.log"]
    assert not (tmp_path / "2.quiet").exists()
