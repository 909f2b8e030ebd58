"""The program by which another interpreter tells which source texts it can compile, as JSON.

Run by path in any Python from 3.9 on, so it imports nothing but the standard library. It gets a list of texts on its
standard input, and answers with one entry for each: null, or [message, line, column, last line, last column].
"""

from __future__ import annotations

import sys

if __name__ == "__main__" and not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
    del sys.path[0]  # This folder is no place to import from.

import json
import warnings


def fault(text: str) -> list[object] | None:
    try:
        compile(text, "", "exec", dont_inherit=True)
    except SyntaxError as error:
        end = getattr(error, "end_lineno", None), getattr(error, "end_offset", None)
        return [error.msg, error.lineno or 0, error.offset or 0, *end]
    except ValueError as error:
        return [str(error), 0, 0, None, None]
    except (RecursionError, MemoryError):
        return None
    return None


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps([fault(text) for text in json.load(sys.stdin)]))
