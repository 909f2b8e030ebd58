"""What tensors a `.safetensors` file holds, by its header alone: 8 bytes that say how long it is, then JSON.

Knows nothing of checks. Needs no library, and reads no tensor. The format is that of
https://huggingface.co/docs/safetensors (0.6).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, NamedTuple

MOST_HEADER_BYTES: Final = 100_000_000
"""The library refuses longer ones, too."""
_METADATA: Final = "__metadata__"
_BIGINT: Final = 2**63


class Tensor(NamedTuple):
    """One tensor. dtype: as the file names it, such as "BF16". n_bytes: that it takes in the file."""

    name: str
    dtype: str
    shape: list[int]
    n_bytes: int


def tensors(path: Path) -> list[Tensor]:
    """The tensors of a file in the order of its header. Raises ValueError, for people, where it is no such file."""
    with path.open("rb") as file:
        size = path.stat().st_size
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > size - 8:
            raise ValueError(f"{path.name} is no whole safetensors file: it ends within its header")
        if length > MOST_HEADER_BYTES:
            raise ValueError(f"{path.name} is no safetensors file: a header of {length:,} bytes is longer than any")
        header = _parsed(path, file.read(length))
    left = size - 8 - length
    found = [_tensor(path, name, told, left) for name, told in header.items() if name != _METADATA]
    try:
        "".join(tensor.name + tensor.dtype for tensor in found).encode()
    except UnicodeEncodeError:
        raise ValueError(f"{path.name} is damaged: a name in its header is no text") from None
    if (n_bytes := sum(tensor.n_bytes for tensor in found)) != left:
        raise ValueError(f"{path.name} is damaged: its tensors take {n_bytes:,} bytes, and it has {left:,} for them")
    return found


def _parsed(path: Path, header: bytes) -> dict[str, Any]:
    try:
        found = json.loads(header)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path.name} is no safetensors file: its header is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"{path.name} is no safetensors file: its header is no object")
    return found


def _tensor(path: Path, name: str, told: object, left: int) -> Tensor:
    """left: bytes that the file has for all tensors together."""
    match told:
        case {"dtype": str(dtype), "shape": list(shape), "data_offsets": [int(begin), int(end)]} if (
            all(type(n) is int and 0 <= n < _BIGINT for n in shape) and 0 <= begin <= end
        ):
            if end > left:
                raise ValueError(f"{path.name} is no whole safetensors file: it ends before its tensor {name} does")
            return Tensor(name, dtype, shape, end - begin)
    raise ValueError(f"{path.name} is damaged: what its header says of the tensor {name} makes no sense")
