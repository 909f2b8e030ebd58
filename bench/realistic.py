"""A project as people write them, made from shapes of real code by a seed: packages, modules that import one another,
classes that derive from others, decorators, registries, docstrings and comments.

Knows nothing of what is measured with it. Every name, the order of shapes and who calls whom come from the seed; the
code runs.
"""

from __future__ import annotations

import random
import textwrap
from collections.abc import Iterator
from pathlib import Path

ENTRY = "app.main:run"
_PARTS = ("core", "data", "text", "model", "train", "report")
_TOPICS = (
    "batches cache columns config counters encoding errors events fields files filters formats graph index labels "
    "layers limits losses masks merge metrics names options order pages parts paths pools queues ranges readers "
    "records rules samples schema scores shards sizes spans states steps tables tokens trees types units views"
).split()
_VERBS = "apply build check collect count describe encode expand filter find group join load merge pack parse".split()
_VERBS += "read resolve scale score select shift sort split store sum trim update validate walk".split()
_NOUNS = "batch block chunk column entry field frame group item key label line node page part record row".split()
_NOUNS += "rule sample score segment shard span state step table token unit value view window".split()

_SHAPES = (
    '''
    def {f}({a}, limit=None, *, strict=False):
        """Return the {noun}s of {a} in order, at most `limit` of them.

        With `strict`, a {noun} that can't be read is an error; else it is left out.
        {doc}
        """
        found = []
        for position, {noun} in enumerate({a}):
            if limit is not None and position >= limit:
                break
            try:
                number = int({noun}) if not isinstance({noun}, float) else math.floor({noun})
            except (TypeError, ValueError) as error:
                if strict:
                    raise ValueError(f"{noun} {{position}} can't be read: {{{noun}!r}}") from error
                continue
            found.append({call}(number) if number % 2 else number)
        return found
    ''',
    '''
    def {f}({a}):
        """A number that says which {noun}s there are, in whatever order they come.

        {doc}
        """
        # A plain loop is faster here than anything that looks better.
        total, seen = 0, set()
        for {noun} in {a}:
            key = str({noun}).strip().lower()
            if key in seen:
                continue
            seen.add(key)
            total += len(key) * {n} + (ord(key[0]) if key else 0)
        logger.debug("%d {noun}s, %d of them differ", len({a}), len(seen))
        return total % {m}
    ''',
    '''
    @dataclass(frozen=True)
    class {C}:
        """One {noun}, as {other} has it.

        {doc}
        """

        name: str
        size: int = {n}
        weight: float = 1.0
        tags: tuple[str, ...] = ()

        @property
        def {verb}ed(self) -> float:
            return self.size * self.weight / max(1, len(self.tags))

        def with_tag(self, tag: str) -> "{C}":
            """The same with one tag more; the order of tags is kept."""
            if tag in self.tags:
                return self
            return replace(self, tags=(*self.tags, tag))

        @classmethod
        def parse(cls, text: str) -> "{C}":
            name, _, rest = text.partition(":")
            tags = tuple(part.strip() for part in rest.split(",") if part.strip())
            return cls(name or DEFAULT_NAME, size=len(text), tags=tags)
    ''',
    '''
    class {C}({base}):
        """Keeps {noun}s by key, and forgets those that were not asked for in a long time.

        {doc}
        """

        capacity = {m}

        def __init__(self, capacity=None, name=DEFAULT_NAME):
            super().__init__(name)
            self.capacity = capacity or self.capacity
            self._entries = OrderedDict()
            self.hits = self.misses = 0

        def __len__(self):
            return len(self._entries)

        def __contains__(self, key):
            return key in self._entries

        def get(self, key, default=None):
            try:
                value = self._entries[key]
            except KeyError:
                self.misses += 1
                return default
            self._entries.move_to_end(key)
            self.hits += 1
            return value

        def put(self, key, value):
            self._entries[key] = value
            self._entries.move_to_end(key)
            while len(self._entries) > self.capacity:
                forgotten, _ = self._entries.popitem(last=False)
                logger.debug("%s: %r is forgotten", self.name, forgotten)

        def handle(self, values):
            for value in values:
                if value not in self:
                    self.put(value, {call}(len(str(value))))
            return [self.get(value) for value in values]
    ''',
    '''
    @register("{f}")
    def {f}({a}, options=None):
        """{Noun}s with the options that were given, else with those of this module.

        {doc}
        """
        options = {{**OPTIONS, **(options or {{}})}}
        if options.get("reverse"):
            {a} = list(reversed(list({a})))
        {noun}s = [{noun} for {noun} in {a} if str({noun}) not in options["skip"]]
        width = max((len(str({noun})) for {noun} in {noun}s), default=0)
        lines = [f"{{str({noun}):>{{width}}}}  {{index:03d}}" for index, {noun} in enumerate({noun}s)]
        return {{
            "n": len({noun}s),
            "lines": lines[: options["most"]],
            "sum": sum({call}(len(line)) for line in lines),
        }}
    ''',
    '''
    def {f}(path, encoding="utf-8"):
        """Yield the {noun}s of a file, one a line; lines that are empty or begin with # are skipped.

        {doc}
        """
        if not os.path.exists(path):
            return
        with open(path, encoding=encoding) as file:
            for number, line in enumerate(file, 1):
                line = line.rstrip("\\n")
                if not line or line.startswith("#"):
                    continue
                match = PATTERN.match(line)
                if match is None:
                    logger.warning("%s:%d is no {noun}", path, number)
                    continue
                yield {{"line": number, **match.groupdict()}}
    ''',
    '''
    @lru_cache(maxsize={m})
    def {f}(n):
        """How many ways there are to {verb} n {noun}s.

        {doc}
        """
        if n < 2:
            return n
        if n > {m}:
            return {f}(n % {n})
        left, right = divmod(n, 2)
        return ({f}(left) + {f}(right) + SIZES.get("{noun}", {n})) % {m}
    ''',
    '''
    class {C}({base}):
        # {Noun}s are few, so what is simple is fast enough.
        kind = "{noun}"

        def __init__(self, {noun}s=(), scale={n}):
            super().__init__(f"{{self.kind}}-{{scale}}")
            self.scale = scale
            self.{noun}s = list({noun}s)

        def __iter__(self):
            return iter(self.{noun}s)

        def __repr__(self):
            return f"{{type(self).__name__}}({{self.{noun}s!r}}, scale={{self.scale}})"

        def {verb}(self, *, key=None):
            """In the order of `key`, as a list of (key, {noun}).

            {deep}
            """
            key = key or (lambda {noun}: (len(str({noun})), str({noun})))
            return sorted((key({noun}), {noun}) for {noun} in self)

        def handle(self, values):
            self.{noun}s.extend(values)
            weights = [self.scale * {call}(len(str(value))) for value in values]
            return [weight for weight in weights if weight >= 0] or super().handle(values)

        @staticmethod
        def is_{noun}(value):
            return isinstance(value, (int, str)) and bool(value)
    ''',
    '''
    def {f}(left, right, *, weights=(0.5, 0.3, 0.2)):
        """How alike two texts are, between 0 and 1.

        Three measures are weighed: the words that they share, their lengths, and how they begin. None of them knows
        what a {noun} means, which has been good enough for what this is used for.
        """
        if not left or not right:
            return 1.0 if left == right else 0.0
        ours, theirs = Counter(left.split()), Counter(right.split())
        shared = sum((ours & theirs).values()) / max(1, sum((ours | theirs).values()))
        lengths = min(len(left), len(right)) / max(len(left), len(right))
        begin = len(os.path.commonprefix([left, right])) / min(len(left), len(right))
        score = sum(weight * one for weight, one in zip(weights, (shared, lengths, begin)))
        return round(score, {digits})
    ''',
    '''
    def {f}({a}, size={n}):
        """Split {a} into runs of `size`; the last one may be shorter.

        {doc}
        """
        if size < 1:
            raise {error}("size must be positive", size)
        run = []
        for {noun} in {a}:
            run.append({noun})
            if len(run) == size:
                yield tuple(run)
                run = []
        if run:
            yield tuple(run)


    def {f}_all({a}, size={n}):
        return [[{call}(len(str({noun}))) for {noun} in run] for run in {f}({a}, size)]
    ''',
    '''
    def {f}(settings):
        """Check what was configured; the first mistake is told with the key that it was made in.

        {doc}
        """
        known = {{"name", "size", "skip", "most", "reverse", "mode"}}
        for key in settings:
            if key not in known:
                raise {error}(f"{{key}} is not known here; known are {{', '.join(sorted(known))}}", key)
        size = settings.get("size", {n})
        if not isinstance(size, int) or isinstance(size, bool) or not 0 < size <= {m}:
            raise {error}(f"size must be a number from 1 to {m}, not {{size!r}}", "size")
        mode = settings.get("mode") or os.environ.get("{ENV}", "fast")
        if mode == "fast":
            return {{**settings, "size": size, "level": {n}}}
        elif mode == "exact":
            return {{**settings, "size": size, "level": {m}, "check": True}}
        raise {error}(f"mode is fast or exact, not {{mode!r}}", "mode")
    ''',
    '''
    @contextmanager
    def {f}(name, *, quiet=False):
        """Measure how long it takes to {verb} a {noun}.

        {doc}
        """
        started = time.perf_counter()
        try:
            yield name
        except {error}:
            if not quiet:
                raise
            logger.info("%s was given up", name)
        finally:
            TIMES.setdefault(name, []).append(time.perf_counter() - started)
    ''',
)
_HEAD = '''\
"""{Topic}: what {part} knows of {topic}, and how it is {verb}ed."""

import logging
import math
import os
import re
import time
from collections import Counter, OrderedDict
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache

{imports}

__all__ = {exports!r}

logger = logging.getLogger(__name__)

DEFAULT_NAME = "{topic}"
OPTIONS = {{"skip": {skip!r}, "most": {n}, "reverse": {reverse}}}
SIZES = {sizes!r}
TIMES = {{}}
PATTERN = re.compile(r"(?P<name>[a-z_]+)\\s*[=:]\\s*(?P<value>.+)")
REGISTRY = {{}}


class {error}(ValueError):
    def __init__(self, message, key=None):
        super().__init__(message)
        self.key = key


class {base}:
    """What all of {topic} have in common."""

    def __init__(self, name=DEFAULT_NAME):
        self.name = name

    def handle(self, values):
        return list(values)


def register(name):
    def keep(function):
        REGISTRY[name] = function
        return function

    return keep


def rate(n):
    """A number from another number; what other modules call."""
    if n <= 0:
        return 0
    return (n * {n} + math.isqrt(n) + SIZES["{noun}"]) % {m}
'''
_MAIN = '''\
"""The program: all parts in their order."""

{imports}


def run(values=("one", "two", "three")):
{calls}
    return values


if __name__ == "__main__":
    print(run())
'''


def write(root: Path, n_modules: int = 50, n_lines: int = 10_000, seed: int = 1) -> None:
    """Write a project of so many modules, `__init__` files included, with so many lines together; begins at ENTRY."""
    for path, text in texts(n_modules, n_lines, seed).items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def texts(n_modules: int, n_lines: int, seed: int) -> dict[str, str]:
    chance = random.Random(seed)
    n_parts = min(len(_PARTS), max(1, n_modules // 8))
    n_own = n_modules - n_parts - 2
    places = [f"app/{_PARTS[n % n_parts]}/{_TOPICS[n % len(_TOPICS)]}{n // len(_TOPICS) or ''}" for n in range(n_own)]
    uses = {place: chance.sample(places[:n], min(n, chance.randint(2, 5))) for n, place in enumerate(places)}
    made = {"app/__init__.py": '"""A project that was made up."""\n'}
    for part in _PARTS[:n_parts]:
        inside = [place for place in places if place.startswith(f"app/{part}/")]
        shown = [f"from .{place.rpartition('/')[2]} import {_base(place)}\n" for place in inside[:1]]
        made[f"app/{part}/__init__.py"] = f'"""The part of {part}."""\n\n{"".join(shown)}'
    top = [place for place in places if not any(place in used for used in uses.values())]
    imports = "\n".join(f"from app.{_dotted(place)} import {_names(place)[0]}" for place in top)
    calls = "\n".join(f"    values = {_names(place)[0]}(values)" for place in top)
    made["app/main.py"] = _MAIN.format(imports=imports, calls=calls)
    rest = n_lines - sum(text.count("\n") for text in made.values())
    for n, place in enumerate(places):
        mine = rest // (n_own - n)
        made[f"{place}.py"] = _module(chance, place, uses[place], mine)
        rest -= mine
    return made


def _module(chance: random.Random, place: str, used: list[str], n_lines: int) -> str:
    """A module of exactly so many lines that calls those that it uses."""
    part, topic = place.split("/")[1:]
    slots = {
        "topic": topic,
        "Topic": topic.capitalize(),
        "part": part,
        "error": _error(place),
        "base": _base(place),
        "noun": chance.choice(_NOUNS),
        "verb": chance.choice(_VERBS),
        "n": chance.randint(2, 99),
        "m": chance.randint(101, 997),
        "reverse": chance.choice((True, False)),
        "exports": [_names(place)[0], _base(place), _error(place), "rate", "REGISTRY"],
        "skip": chance.sample(_NOUNS, 3),
        "imports": "\n".join(_imports(chance, place, used)),
    }
    slots["sizes"] = {noun: chance.randint(1, 99) for noun in sorted({*chance.sample(_NOUNS, 6), str(slots["noun"])})}
    text = _HEAD.format(**slots)
    last = _last(chance, place, used)
    free = n_lines - text.count("\n") - last.count("\n")
    bodies = []
    for n, body in enumerate(_bodies(chance, place, used)):
        if body.count("\n") > free or n > n_lines:
            break
        bodies.append(body)
        free -= body.count("\n")
    padding = "".join(f"# {chance.choice(_VERBS)} {chance.choice(_NOUNS)}\n" for _ in range(free))
    return text + "".join(bodies) + last + padding


def _imports(chance: random.Random, place: str, used: list[str]) -> Iterator[str]:
    for one in used:
        same = one.rpartition("/")[0] == place.rpartition("/")[0]
        name = one.rpartition("/")[2]
        way = chance.choice(("names", "module"))
        if way == "names":
            yield f"from {f'.{name}' if same else f'app.{_dotted(one)}'} import {_base(one)}, rate as {_rate(one)}"
        else:
            folder = _dotted(one.rpartition("/")[0])
            yield f"from {'.' if same else f'app.{folder}'} import {name}"
            yield f"{_base(one)}, {_rate(one)} = {name}.{_base(one)}, {name}.rate"


def _bodies(chance: random.Random, place: str, used: list[str]) -> Iterator[str]:
    n = 0
    while True:
        for shape in chance.sample(_SHAPES, len(_SHAPES)):
            n += 1
            noun, verb = chance.choice(_NOUNS), chance.choice(_VERBS)
            other = chance.choice(used) if used and chance.random() < 0.7 else place
            body = (
                textwrap.dedent(shape)
                .strip("\n")
                .format(
                    f=f"{verb}_{noun}_{n}",
                    C=f"{verb.capitalize()}{noun.capitalize()}{n}",
                    ENV=f"APP_{noun.upper()}_{n % 3}",
                    a=chance.choice(("values", "items", "rows", "given")),
                    base=_base(other),
                    error=_error(place),
                    other=other.rpartition("/")[2],
                    call="rate" if other == place else _rate(other),
                    doc=_paragraph(chance, 4),
                    deep=_paragraph(chance, 8),
                    digits=chance.randint(2, 6),
                    noun=noun,
                    Noun=noun.capitalize(),
                    verb=verb,
                    n=chance.randint(2, 99),
                    m=chance.randint(101, 997),
                )
            )
            yield f"\n\n{body}\n"


def _last(chance: random.Random, place: str, used: list[str]) -> str:
    """The function that others call: by it the project hangs together."""
    calls = "".join(
        f"    values = [value for value in {_base(one)}().handle(values) if value is not None]\n" for one in used
    )
    lines = f'\n\ndef {_names(place)[0]}(values):\n    """Hand values on to all that this module builds on."""\n{calls}'
    lines += "    for name in sorted(REGISTRY):\n        logger.debug('%s: %s', name, REGISTRY[name](values)['n'])\n"
    return f"{lines}    logger.debug('%d values', len(values))\n    return [*values, rate(len(values))]\n"


def _paragraph(chance: random.Random, indent: int) -> str:
    """Some lines of prose for a docstring."""
    words = []
    for _ in range(chance.randint(2, 7)):
        words += (
            f"The {chance.choice(_NOUNS)} of a {chance.choice(_NOUNS)} is what {chance.choice(_VERBS)} makes".split()
        )
        words += f"of it, unless a {chance.choice(_NOUNS)} was {chance.choice(_VERBS)}ed before.".split()
    lines = textwrap.wrap(" ".join(words), 100 - indent)
    return f"\n{' ' * indent}".join(lines)


def _dotted(place: str) -> str:
    return place.removeprefix("app/").replace("/", ".")


def _names(place: str) -> tuple[str, str]:
    topic = place.rpartition("/")[2]
    return f"run_{topic}", topic


def _base(place: str) -> str:
    return f"{place.rpartition('/')[2].capitalize()}Base"


def _error(place: str) -> str:
    return f"{place.rpartition('/')[2].capitalize()}Error"


def _rate(place: str) -> str:
    return f"rate_{place.rpartition('/')[2]}"
