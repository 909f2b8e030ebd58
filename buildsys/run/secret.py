"""Where secrets come from: the environment, or files. Knows nothing of what they are for; keeps none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from buildsys.errors import BuildError
from buildsys.model import SECRET_FILE


def secret(named: str, env: Mapping[str, str], root: Path) -> str | None:
    """The secret in the variable of that name, or in the file that "file:PATH" names; None where none is set.

    root: what a path is relative to. White space around what a file holds is none of it. Raises BuildError for a file
    that can't be read, or holds nothing.
    """
    if not named.startswith(SECRET_FILE):
        return env.get(named) or None
    path = root / Path(named.removeprefix(SECRET_FILE)).expanduser()
    hint = "write the secret into it, and nothing else"
    try:
        found = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise BuildError("a secret can't be read", facts=[("file", str(path)), ("reason", reason)], hint=hint) from None
    if not found:
        raise BuildError("a secret is empty", facts=[("file", str(path))], hint=hint)
    return found
