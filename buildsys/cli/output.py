"""A command's answer as JSON on standard output, for programs."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Mapping
from typing import Any

from buildsys.model import ActionId


def print_json(value: object) -> None:
    print(json_text(value, indent=2))


def json_text(value: object, *, indent: int | None = None) -> str:
    """As readable text, and in escapes where standard output can't write that, such as half a character."""
    found = plain(value)
    text = json.dumps(found, indent=indent, ensure_ascii=False, default=str)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(found, indent=indent, default=str)
    return text


def plain(value: object) -> Any:
    """Records as JSON has them: fields by name, actions as users type them."""
    match value:
        case ActionId():
            return str(value)
        case Mapping():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
    if dataclasses.is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return value
