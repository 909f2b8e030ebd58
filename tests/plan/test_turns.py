"""Who may start: the order of asking counts for each resource, and nobody waits for ever."""

from __future__ import annotations

import random

from buildsys.plan.turns import Turn, Turns


def turns(*devices: str, seats: int = 9, **sizes: int) -> Turns[str]:
    return Turns(sizes, devices, seats)


def started(turns: Turns[str]) -> list[str]:
    return [turn.who for turn in turns.next()]


def test_who_takes_nothing_starts_at_once_in_order() -> None:
    line = turns(disk=1)
    for who in "abc":
        line.ask(who, {})
    assert started(line) == ["a", "b", "c"]
    assert started(line) == []


def test_a_resource_is_given_to_so_many_as_it_has_room_for() -> None:
    line = turns(disk=3)
    for who in "abcd":
        line.ask(who, {"disk": 1})
    first, *_ = line.next()
    assert started(line) == []
    line.give_back(first)
    assert started(line) == ["d"]


def test_one_that_takes_much_is_not_starved_by_those_that_take_little() -> None:
    line = turns(disk=2)
    line.ask("small 1", {"disk": 1})
    (small,) = line.next()
    line.ask("large", {"disk": 2})
    line.ask("small 2", {"disk": 1})
    assert started(line) == []
    line.give_back(small)
    assert started(line) == ["large"]


def test_who_waits_holds_back_no_one_who_takes_other_things() -> None:
    line = turns(disk=1, net=1)
    line.ask("a", {"disk": 1})
    line.ask("b", {"disk": 1})
    line.ask("c", {"net": 1})
    line.ask("d", {})
    assert started(line) == ["a", "c", "d"]


def test_one_that_takes_two_things_is_not_starved_of_either() -> None:
    line = turns(disk=1, net=1)
    line.ask("a", {"disk": 1})
    (a,) = line.next()
    line.ask("both", {"disk": 1, "net": 1})
    line.ask("b", {"net": 1})
    line.ask("c", {"disk": 1})
    assert started(line) == []
    line.give_back(a)
    assert started(line) == ["both"]


def test_gpus_are_told_apart_and_the_last_one_back_is_given_first() -> None:
    line = turns("0", "1", "2")
    line.ask("a", {"gpu": 1})
    line.ask("b", {"gpu": 2})
    a, b = line.next()
    assert sorted([*a.devices, *b.devices]) == ["0", "1", "2"]
    line.give_back(b)
    line.give_back(a)
    line.ask("c", {"gpu": 1})
    (c,) = line.next()
    assert c.devices == a.devices


def test_nobody_is_given_what_he_has_no_seat_to_use() -> None:
    line = turns("0", "1", seats=1)
    for who in "abc":
        line.ask(who, {"gpu": 1})
    line.ask("d", {})
    line.ask("e", {"gpu": 1}, seated=False)
    (a, d) = line.next()
    assert (a.who, d.who) == ("a", "d")
    line.give_back(a)
    (b,) = line.next()
    assert (b.who, b.devices) == ("b", a.devices)


def test_taking_none_of_a_resource_is_taking_nothing() -> None:
    line = turns()
    line.ask("a", {"gpu": 0, "memory": 0})
    assert line.next() == [Turn("a", {}, (), seated=False)]


def test_whatever_is_asked_all_start_and_never_more_than_there_is() -> None:
    rng = random.Random(3)
    sizes = {"disk": 3, "net": 2}
    line = Turns[int](sizes, ["0", "1"], seats=3)
    takes = [
        {name: rng.randint(0, most) for name, most in {**sizes, "gpu": 2}.items() if rng.random() < 0.5}
        for _ in range(300)
    ]
    for who, taken in enumerate(takes):
        line.ask(who, taken, seated=rng.random() < 0.8)
    running = line.next()
    seen = [turn.who for turn in running]
    while running:
        for name, size in {**sizes, "gpu": 2}.items():
            assert sum(turn.takes.get(name, 0) for turn in running) <= size
        assert sum(turn.seated for turn in running) <= 3
        devices = [device for turn in running for device in turn.devices]
        assert len(devices) == len(set(devices))
        line.give_back(running.pop(rng.randrange(len(running))))
        new = line.next()
        running += new
        seen += [turn.who for turn in new]
    assert sorted(seen) == list(range(300))
