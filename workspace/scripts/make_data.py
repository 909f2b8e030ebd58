"""Makes the shipped data: `sample.jsonl` for training a draft, `heldout.jsonl` for measuring it.

Both have the schema of mlabonne/open-perfectblend, so that the hub's data set takes their place by configuration
alone. By hand: `python workspace/scripts/make_data.py`. The files are committed; making them anew changes no byte.
"""

import json
from pathlib import Path

from problems import Problem, problems

N_SAMPLE = 640
N_HELDOUT = 96


def make(sample: Path, heldout: Path) -> None:
    """Writes both files, one conversation a line."""
    for path, split, count in ((sample, "sample", N_SAMPLE), (heldout, "heldout", N_HELDOUT)):
        path.write_text("".join(_line(problem) for problem in problems(split, count)))


def _line(problem: Problem) -> str:
    conversation = [{"from": "human", "value": problem.text}, {"from": "gpt", "value": problem.answer}]
    return json.dumps({"conversations": conversation, "source": f"templates/{problem.kind}"}) + "\n"


if __name__ == "__main__":
    data = Path(__file__).parent.parent / "data"
    make(data / "sample.jsonl", data / "heldout.jsonl")
