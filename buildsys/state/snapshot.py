"""The manifest's files: the live one that only the building process opens, and the snapshot that users open.

Knows nothing of tables. The live file must never be opened by hand in the process that holds the connection (closing it
would drop DuckDB's lock), so it is copied by another process.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from buildsys.errors import FAILED, LOCKED, BuildError
from buildsys.state.disk import sync_folder

if TYPE_CHECKING:
    import duckdb

NAME: Final = "manifest.duckdb"
STORAGE: Final = "v1.4.0"
"""The storage format that the snapshot can be read with; 2.0's default can't be read by 1.x tools."""

_DAMAGED: Final = ("Corrupt database file", "Could not read enough bytes")
_UNREADABLE: Final = (*_DAMAGED, "not a valid DuckDB database file", "WAL", "checksum")
"""What DuckDB says where the content of a file is wrong; it has no class of exceptions for that."""

_COPY: Final = "import shutil, sys; shutil.copyfile(sys.argv[1], sys.argv[2])"


def live_path(state: Path) -> Path:
    return state / "live" / NAME


def snapshot_path(state: Path) -> Path:
    return state / NAME


def published_path(state: Path) -> Path:
    """The file that says of what the snapshot was made."""
    return state / "live" / "published"


def attach(path: Path) -> duckdb.DuckDBPyConnection:
    """A connection to the database at `path`, made where it does not exist. Raises duckdb.Error for a damaged one."""
    import duckdb

    path.parent.mkdir(parents=True, exist_ok=True)
    con = duckdb.connect()
    try:
        con.execute(f"ATTACH '{quoted(path)}' AS manifest (STORAGE_VERSION '{STORAGE}')")
        con.execute("USE manifest")
    except BaseException:
        con.close()
        raise
    return con


def is_damage(error: Exception) -> bool:
    """A query failed since the bytes on disk are not those that DuckDB wrote."""
    return any(text in str(error) for text in _DAMAGED)


def recover(state: Path, error: Exception, *, is_open: bool = False) -> str:
    """Put aside what can't be read, so that the next try has something that can be; says what was lost.

    First the log of the last commits goes, then the whole file, which the published snapshot replaces where it is
    sound. is_open: the log was read well, so the damage is in the file. Raises BuildError where nothing is damaged:
    another process has the file, or it can't be reached.
    """
    live = live_path(state)
    _refuse(live, error)
    reason = str(error).splitlines()[0]
    wal = live.with_name(f"{NAME}.wal")
    if wal.exists():
        kept = _put_aside(wal)
        if is_open:
            return recover(state, error)
        return f"the manifest's last commits can't be read and are lost; kept as {kept.name} ({reason})"
    kept = _put_aside(live)
    return f"the manifest can't be read; kept as {kept.name} ({reason}); {_start_from_snapshot(state)}"


def recover_missing(state: Path) -> list[str]:
    """Replace a live file that is gone though there was a build before; says so, nothing where all is well."""
    live = live_path(state)
    if live.exists() or not snapshot_path(state).exists():
        return []
    live.parent.mkdir(parents=True, exist_ok=True)
    wal = live.with_name(f"{NAME}.wal")
    if wal.exists():
        _put_aside(wal)
    return [f"the manifest is missing; {_start_from_snapshot(state)}"]


def copy_snapshot(state: Path) -> None:
    """Replace the snapshot by a copy of the live file, which must just have been checkpointed.

    Readers of the old one keep it. Raises BuildError where the copy fails, with the old snapshot in place.
    """
    target = snapshot_path(state)
    copy = target.with_name(f"{NAME}.tmp")
    for leftover in (copy, copy.with_name(f"{NAME}.tmp.wal")):
        leftover.unlink(missing_ok=True)
    _copy(live_path(state), copy)
    copy.chmod(0o444)
    with copy.open("rb") as file:
        os.fsync(file.fileno())
    os.rename(copy, target)
    target.with_name(f"{NAME}.wal").unlink(missing_ok=True)
    sync_folder(target.parent)


def unreadable(path: Path, error: Exception) -> BuildError:
    """The snapshot is damaged: nothing is lost, the live file has it all."""
    return BuildError(
        "the manifest's snapshot can't be read",
        facts=[("file", str(path)), ("reason", str(error).splitlines()[0])],
        hint="`buildsys build` publishes it anew",
    )


def damage_in(path: Path) -> str:
    """What DuckDB says of a database of which not every block can be read; "" where all is well.

    No process may have it open for writing.
    """
    import duckdb

    try:
        with duckdb.connect(str(path), read_only=True) as con:
            tables = con.execute("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'recorded'").fetchall()
            for (table,) in tables:
                con.execute(f"SELECT max(hash(COLUMNS(*))) FROM recorded.{table}").fetchall()
    except duckdb.Error as error:
        return str(error).splitlines()[0]
    return "" if tables else "it is empty"


@contextmanager
def writing(state: Path) -> Iterator[None]:
    """What keeps DuckDB from writing the live file is an error for people: a full disk, most of the time.

    Not so where the file is damaged; see `is_damage`.
    """
    import duckdb

    try:
        yield
    except (duckdb.IOException, duckdb.TransactionException, duckdb.FatalException) as error:
        if is_damage(error):
            raise
        raise BuildError(
            "the manifest can't be written",
            facts=[("file", str(live_path(state))), ("reason", str(error).splitlines()[0])],
            hint="make room, or make it writable; then build again: what was recorded stays",
            exit_code=FAILED,
        ) from error


def quoted(path: Path) -> str:
    """A path as the inside of a SQL string."""
    return str(path).replace("'", "''")


def _copy(source: Path, target: Path) -> None:
    errors = ""
    for command in (["cp", "--reflink=auto", "--"], [sys.executable, "-I", "-c", _COPY]):
        try:
            done = subprocess.run([*command, str(source), str(target)], capture_output=True, text=True)
        except FileNotFoundError:
            continue
        if done.returncode == 0:
            return
        errors = done.stderr.strip()
    raise BuildError("the manifest's snapshot can't be written", facts=[("file", str(target)), ("reason", errors)])


def _refuse(live: Path, error: Exception) -> None:
    """Raise BuildError for what is wrong around the file, not in it: then nothing must be put aside."""
    import duckdb

    text = str(error)
    facts = [("file", str(live)), ("reason", text)]
    if "set lock" in text:
        hint = "end it; look at the snapshot with buildsys sql, never at the live file"
        raise BuildError("another process has the manifest open", facts=facts, hint=hint, exit_code=LOCKED) from error
    is_outside = isinstance(error, duckdb.OutOfMemoryException | duckdb.IOException)
    if "storage version" in text or (is_outside and not any(damage in text for damage in _UNREADABLE)):
        raise BuildError("the manifest can't be opened", facts=facts) from error


def _start_from_snapshot(state: Path) -> str:
    """Give the live file, which is not there, the snapshot's content where that is sound; says what is lost."""
    if snapshot_path(state).exists() and not damage_in(snapshot_path(state)):
        shutil.copyfile(snapshot_path(state), live_path(state))
        return "the snapshot of an earlier build takes its place, what was recorded since is lost"
    return "the history is lost, and what was made is made again"


def _put_aside(path: Path) -> Path:
    n = 1
    while (kept := path.with_name(f"{path.name}.damaged-{n}")).exists():
        n += 1
    path.rename(kept)
    return kept
