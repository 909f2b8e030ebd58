"""A session of SQL over the manifest's snapshot, which follows the snapshot while builds publish new ones."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from buildsys.errors import BuildError
from buildsys.query import connect, explained
from buildsys.state.root import STATE
from buildsys.state.snapshot import quoted, snapshot_path

if TYPE_CHECKING:
    import duckdb

_MANY: Final = 1_000_000
_MOST_ROWS: Final = 40


class Asking:
    """Runs statements. A context manager: the connection ends with it. What is wrong is raised as a BuildError."""

    def __init__(self, root: Path) -> None:
        self._path = snapshot_path(root / STATE)
        self._seen = self._stamp()
        self._con = connect(root)
        self._n_newer = 0
        ((self._name,),) = self._con.execute("SELECT current_catalog()").fetchall()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._con.close()

    def statements(self, text: str) -> list[str]:
        """The single statements of a text. Raises BuildError where it holds none."""
        with self._explained(text):
            found = [statement.query for statement in self._con.extract_statements(text)]
        if not found:
            raise BuildError("there is no statement in the query", hint='buildsys sql "FROM runs"')
        return found

    def execute(self, statement: str) -> duckdb.DuckDBPyConnection:
        """The rows to come, and their columns in `description`."""
        with self._explained(statement):
            return self._con.execute(statement)

    def show(self, statement: str) -> None:
        """Print the rows as a table: cut to the terminal, in full where it goes elsewhere."""
        terminal = sys.stdout.isatty()
        with self._explained(statement):
            found = self._relation(statement)
            if found is not None:
                width = shutil.get_terminal_size().columns if terminal else _MANY
                found.show(max_width=width, max_rows=_MOST_ROWS if terminal else _MANY)

    def write_parquet(self, statement: str, path: Path) -> None:
        with self._explained(statement):
            found = self._relation(statement)
            if found is not None:
                found.write_parquet(str(path))

    def _relation(self, statement: str) -> duckdb.DuckDBPyRelation | None:
        """None for a statement without rows."""
        import duckdb

        try:
            return self._con.sql(statement)
        except (duckdb.BinderException, duckdb.CatalogException):
            self._con.execute(statement)  # fails alike before anything is done, and says where
            raise

    def follow(self) -> bool:
        """Take the newest snapshot; True where it is another than before. What the session made for itself stays."""
        stamp = self._stamp()
        if stamp == self._seen:
            return False
        self._n_newer += 1
        newer = f"newer_{self._n_newer}"
        self.execute(f"ATTACH '{quoted(self._path)}' AS {newer} (READ_ONLY)")
        self.execute(f"USE {newer}")
        self.execute(f'DETACH "{self._name}"')
        self._name = newer
        self._seen = stamp
        return True

    def _stamp(self) -> tuple[int, int]:
        try:
            stat = self._path.stat()
        except FileNotFoundError:
            return 0, 0
        return stat.st_ino, stat.st_mtime_ns

    @contextmanager
    def _explained(self, statement: str) -> Iterator[None]:
        import duckdb

        try:
            yield
        except duckdb.InterruptException:
            raise KeyboardInterrupt from None
        except duckdb.Error as error:
            raise explained(statement, str(error)) from error
