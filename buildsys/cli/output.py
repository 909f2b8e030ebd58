"""A command's answer as JSON on standard output, for programs."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from buildsys.model import ActionId


def print_json(value: object) -> None:
    print(json.dumps(plain(value), indent=2, ensure_ascii=False, default=str))


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
