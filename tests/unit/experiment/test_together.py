import threading
import time
from collections.abc import Sequence
from types import SimpleNamespace

import pytest

from rareswitch.experiment.together import Together


def run(calls: Together[int, int], numbers: Sequence[int]) -> dict[int, int | BaseException]:
    """What each of so many threads gets, all started together."""
    found: dict[int, int | BaseException] = {}
    ready = threading.Barrier(len(numbers))

    def call(number: int) -> None:
        ready.wait()
        try:
            found[number] = calls(number)
        except BaseException as error:
            found[number] = error

    threads = [threading.Thread(target=call, args=(number,)) for number in numbers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert not any(thread.is_alive() for thread in threads)
    return found


def test_each_caller_gets_its_own_result_and_those_who_wait_are_served_together() -> None:
    sizes = list[int]()

    def doubled(many: Sequence[int]) -> list[int]:
        sizes.append(len(many))
        time.sleep(0.05)
        return [2 * one for one in many]

    assert run(Together(doubled), range(40)) == {number: 2 * number for number in range(40)}
    assert sum(sizes) == 40
    assert len(sizes) <= 10  # the first may be alone, and so may late starters


def test_a_wrong_call_fails_alone() -> None:
    def halved(many: Sequence[int]) -> list[int]:
        time.sleep(0.01)
        if 13 in many:
            raise ValueError("13 cannot be halved")
        return [one // 2 for one in many]

    found = run(Together(halved), range(30))
    assert {number for number, result in found.items() if isinstance(result, ValueError)} == {13}
    assert all(found[number] == number // 2 for number in range(30) if number != 13)


def test_an_interruption_hits_the_thread_that_it_came_to_and_nobody_waits_for_ever() -> None:
    raised = list[int]()

    def interrupted(many: Sequence[int]) -> list[int]:
        time.sleep(0.01)
        if not raised:
            raised.append(many[0])
            raise KeyboardInterrupt
        return list(many)

    found = run(Together(interrupted), range(20))
    assert [number for number, result in found.items() if isinstance(result, KeyboardInterrupt)] == raised
    assert all(found[number] == number for number in range(20) if number not in raised)


class InterruptedLock:
    """A lock that is interrupted, in one thread, just after it was had."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.release = self.lock.release

    def acquire(self, blocking: bool = True) -> bool:
        held, found = self.lock.locked(), self.lock.acquire(blocking)
        if held and found and threading.current_thread().name == "interrupted":
            raise KeyboardInterrupt
        return found

    def __enter__(self) -> None:
        self.lock.acquire()

    def __exit__(self, *_: object) -> None:
        self.lock.release()


def test_who_is_interrupted_when_its_turn_to_lead_has_come_hands_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rareswitch.experiment.together.threading", SimpleNamespace(Lock=InterruptedLock))
    go, found = threading.Event(), dict[str, int | BaseException]()

    def slowly(many: Sequence[int]) -> list[int]:
        go.wait()
        return list(many)

    calls = Together[int, int](slowly)

    def call() -> None:
        name = threading.current_thread().name
        try:
            found[name] = calls(7)
        except BaseException as error:
            found[name] = error

    threads = list[threading.Thread]()
    for name in ("first", "interrupted", "last"):
        threads.append(threading.Thread(target=call, name=name, daemon=True))
        threads[-1].start()
        time.sleep(0.05)
    go.set()
    for thread in threads:
        thread.join(timeout=5)
    assert found["first"] == found["last"] == 7
    assert isinstance(found["interrupted"], KeyboardInterrupt)
    assert calls(8) == 8


def test_calls_go_on_after_all_have_gone() -> None:
    calls = Together[int, int](lambda many: list(many))
    assert [calls(number) for number in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(ZeroDivisionError):
        Together[int, float](lambda many: [1 / one for one in many])(0)
