"""Word problems from templates, in three splits that share no text.

Four kinds (shopping, collecting, packing, travelling), two steps of arithmetic each, all numbers below 100. The
ranges are what a model of 0.9M parameters can learn in minutes: a number added or taken away is at most 12.
A problem belongs to the split that the hash of its text says, so the verifier's training data, the sample and the
held-out problems are disjoint whatever seeds and counts are used. Knows nothing of models, tokens or files.
"""

import hashlib
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

# Of ten hash values one goes to the held-out problems, one to the sample and the rest to the verifier.
SPLITS = ("heldout", "sample", *["verifier"] * 8)

NAMES = {
    "she": "Ada Mia Nora Lena Ruth Ines Zoe Ivy Elsa Maya Tara Olga".split(),
    "he": "Leo Ben Hugo Omar Ivan Noah Paul Finn Karl Amir Luis Theo".split(),
}
GOODS = "pens cups books lamps hats kites bells maps".split()
TREASURES = "shells stamps coins stones cards beads marbles badges".split()
FOODS = "apples plums eggs buns figs pears rolls lemons".split()
VEHICLES = "train bus ship truck tram ferry van bike car boat coach taxi lorry wagon sledge barge".split()


@dataclass(frozen=True)
class Problem:
    """One question with the way to its answer. text: what is asked; result: the number that is right."""

    kind: str
    text: str
    reasoning: str
    answer: str
    result: int

    @property
    def split(self) -> str:
        return SPLITS[int.from_bytes(hashlib.sha256(self.text.encode()).digest()[:8]) % len(SPLITS)]


def problems(split: str, count: int, seed: int = 0) -> list[Problem]:
    """`count` distinct problems of a split, kinds mixed; the same for the same arguments on every machine."""
    found: dict[str, Problem] = {}
    for problem in _stream(random.Random(f"{split}/{seed}")):
        if problem.split == split:
            found.setdefault(problem.text, problem)
        if len(found) == count:
            break
    return list(found.values())


def _stream(rng: random.Random) -> Iterator[Problem]:
    while True:
        yield rng.choice(KINDS)(rng)


def _person(rng: random.Random) -> tuple[str, str]:
    """A name and its pronoun."""
    pronoun = rng.choice(sorted(NAMES))
    return rng.choice(NAMES[pronoun]), pronoun


def shopping(rng: random.Random) -> Problem:
    name, pronoun = _person(rng)
    goods, count, price = rng.choice(GOODS), rng.randint(2, 7), rng.randint(2, 7)
    cost = count * price
    paid = cost + rng.randint(1, 12)
    ask = rng.choice((f"How much change does {pronoun} get?", f"How many dollars does {pronoun} get back?"))
    return Problem(
        "shopping",
        f"{name} buys {count} {goods} for {price} dollars each and pays with {paid} dollars. {ask}",
        f"The {goods} cost {count} * {price} = {cost} dollars. The change is {paid} - {cost} = {paid - cost}.",
        f"{name} gets {paid - cost} dollars back.",
        paid - cost,
    )


def collecting(rng: random.Random) -> Problem:
    name, pronoun = _person(rng)
    things, first, more = rng.choice(TREASURES), rng.randint(3, 24), rng.randint(2, 12)
    total = first + more
    given = rng.randint(2, min(total - 1, 12))
    verb = rng.choice(("finds", "wins"))
    return Problem(
        "collecting",
        f"{name} has {first} {things}. {pronoun.capitalize()} {verb} {more} more and gives {given} away. "
        f"How many {things} does {name} have now?",
        f"With the new ones {name} has {first} + {more} = {total} {things}. "
        f"Then {total} - {given} = {total - given} are left.",
        f"{name} has {total - given} {things} now.",
        total - given,
    )


def packing(rng: random.Random) -> Problem:
    name, pronoun = _person(rng)
    foods, size, boxes = rng.choice(FOODS), rng.randint(2, 9), rng.randint(3, 11)
    total, sold = size * boxes, rng.randint(1, boxes - 1)
    box = rng.choice(("boxes", "bags"))
    return Problem(
        "packing",
        f"{name} packs {total} {foods} into {box} of {size}. {pronoun.capitalize()} sells {sold} of the {box}. "
        f"How many {box} are left?",
        f"There are {total} / {size} = {boxes} {box}. After the sale {boxes} - {sold} = {boxes - sold} are left.",
        f"{name} has {boxes - sold} {box} left.",
        boxes - sold,
    )


def travelling(rng: random.Random) -> Problem:
    vehicle, speed, hours = rng.choice(VEHICLES), rng.randint(3, 9), rng.randint(2, 6)
    way = speed * hours
    rest = rng.randint(1, 12)
    ask = rng.choice(("How far does it go in all?", "How many miles is that?"))
    return Problem(
        "travelling",
        f"A {vehicle} goes {speed} miles an hour for {hours} hours and then {rest} miles more. {ask}",
        f"In {hours} hours the {vehicle} goes {speed} * {hours} = {way} miles. "
        f"In all it is {way} + {rest} = {way + rest}.",
        f"The {vehicle} goes {way + rest} miles.",
        way + rest,
    )


KINDS: tuple[Callable[[random.Random], Problem], ...] = (shopping, collecting, packing, travelling)
