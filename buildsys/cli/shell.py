"""The SQL shell: lines from a terminal to statements, with a history that lasts and completion of names."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from buildsys.cli.asking import Asking
from buildsys.cli.signals import Terminated
from buildsys.errors import BuildError
from buildsys.terminal import Span, error_lines, show

_PROMPT: Final = "buildsys> "
_MORE: Final = "      ... "
_HISTORY_LENGTH: Final = 10_000
_TABLES_FOLLOW: Final = re.compile(r"\b(from|join|describe|summarize)\s+$", re.IGNORECASE)
_COLUMN_OF: Final = re.compile(r"(\w+)\.$")


class Shell:
    """Asks for statements until the end of input. A statement ends with `;` or an empty line."""

    def __init__(self, asking: Asking, history: Path) -> None:
        self._asking = asking
        self._history = history

    def run(self) -> None:
        import readline

        names = Names.read(self._asking)
        self._prepare(names)
        print("SQL over the manifest; `SHOW TABLES;` lists what there is, Tab completes, Ctrl-D ends.")
        while (text := self._statement()) is not None:
            if text.strip(" ;\n"):
                readline.add_history(" ".join(text.split()))
                readline.append_history_file(1, self._history)
                self._answer(text, names)

    def _prepare(self, names: Names) -> None:
        import readline

        self._history.touch()
        readline.read_history_file(self._history)
        readline.set_history_length(_HISTORY_LENGTH)
        readline.set_auto_history(False)
        readline.set_completer_delims(" \t\n,.()=<>;'\"+-*/")
        readline.set_completer(lambda text, n: _nth(names.matching(text, _line_before()), n))
        readline.parse_and_bind("bind ^I rl_complete" if "libedit" in (readline.__doc__ or "") else "tab: complete")

    def _statement(self) -> str | None:
        """What is typed up to the end of a statement, None at the end of input; Ctrl-C starts anew."""
        lines: list[str] = []
        while True:
            try:
                line = input(_MORE if lines else _PROMPT)
            except EOFError:
                print()
                return None
            except KeyboardInterrupt as interrupt:
                if isinstance(interrupt, Terminated):
                    raise
                print()
                return ""
            if not lines and line.strip() in ("exit", "quit"):
                return None
            lines.append(line)
            if not line.strip() or line.rstrip().endswith(";"):
                return "\n".join(lines)

    def _answer(self, text: str, names: Names) -> None:
        try:
            if self._asking.follow():
                names.update(self._asking)
                show([[Span("the snapshot of a newer build", "dim")]], sys.stderr)
            for statement in self._asking.statements(text):
                self._asking.show(statement)
        except BuildError as error:
            show(error_lines(error.render()), sys.stderr)
        except KeyboardInterrupt as interrupt:
            if isinstance(interrupt, Terminated):
                raise
            print("interrupted", file=sys.stderr)


class Names:
    """What can be completed: tables and views, their columns, table macros, keywords."""

    def __init__(self, columns: Sequence[tuple[str, str]], macros: Sequence[str], keywords: Sequence[str]) -> None:
        """columns: (table, column)."""
        self._columns = columns
        self._macros = macros
        self._keywords = keywords

    @classmethod
    def read(cls, asking: Asking) -> Names:
        names = cls((), (), ())
        names.update(asking)
        return names

    def update(self, asking: Asking) -> None:
        self._columns = asking.execute(
            "SELECT table_name, column_name FROM duckdb_columns() WHERE schema_name = 'main' AND NOT internal"
        ).fetchall()
        self._macros = _firsts(
            asking, "SELECT DISTINCT function_name FROM duckdb_functions() WHERE schema_name = 'main' AND NOT internal"
        )
        self._keywords = _firsts(asking, "SELECT keyword_name FROM duckdb_keywords()")

    def matching(self, text: str, before: str) -> list[str]:
        """Names that begin with `text`; before: the line up to it, where only some names may stand."""
        if column_of := _COLUMN_OF.search(before):
            found = [column for table, column in self._columns if table.lower() == column_of[1].lower()]
        else:
            found = [*(table for table, _ in self._columns), *self._macros]
            if not _TABLES_FOLLOW.search(before):
                keywords = [word.upper() if text.isupper() else word for word in self._keywords]
                found += [*(column for _, column in self._columns), *keywords]
        return [name for name in dict.fromkeys(found) if name.lower().startswith(text.lower())]


def _firsts(asking: Asking, query: str) -> list[str]:
    return [name for (name,) in asking.execute(query).fetchall()]


def _line_before() -> str:
    import readline

    return readline.get_line_buffer()[: readline.get_begidx()]


def _nth(names: list[str], n: int) -> str | None:
    return names[n] if n < len(names) else None
