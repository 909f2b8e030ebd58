"""What the tests ask: records, and the scripts that make requests of them."""

from typing import Any

Json = dict[str, Any]
Turns = list[tuple[Json, list[Json]]]


def records(*numbers: int) -> list[Json]:
    return [{"id": f"r{n}", "question": f"q{n}"} for n in numbers]


def request(record: Json, **fields: Any) -> Json:
    return {"model": "m", "messages": [{"role": "user", "content": record["question"]}], **fields}


def one_turn(turns: Turns) -> list[Json | None]:
    return [None if replies else request(record) for record, replies in turns]
