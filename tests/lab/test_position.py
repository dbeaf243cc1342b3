"""The position of a stopped worker in its source, and the values of its private variables."""

from sampletool.lab.scenario import PACKAGE

from .conftest import Lab


def seen(
    lab: Lab, name: str, variant: str, schedule: str
) -> list[tuple[str, str, dict[str, str] | None]]:
    """Return the step of each event, the line of the worker before it, and its private values."""
    events = []
    for event in lab.play(name, variant, schedule).events:
        assert event.at is not None
        file, _, number = event.at.partition(":")
        lines = (PACKAGE / file).read_text().splitlines()
        events.append((event.step, lines[int(number) - 1].strip(), event.private))
    return events


def test_a_step_names_its_line_and_the_copy_that_grew_old_is_seen(lab: Lab) -> None:
    old = {"text": "[settings]\njobs = 4\n"}

    events = seen(lab, "lost-config-update", "naive", "A1 B1 A2 B2")

    assert [event[::2] for event in events] == [
        ("read", None),
        ("read", None),
        ("write", old),
        ("write", old),
    ]
    assert [line for _, line, _ in events[1:3]] == [
        "text = FILE.read_text()",
        'FILE.write_text(f"{text}{worker} = 1\\n")',
    ]


def test_a_command_stands_in_the_production_code_also_while_it_waits_for_a_lock(lab: Lab) -> None:
    events = seen(lab, "lost-config-update", "fixed", "A1 B1")

    assert {line for step, line, _ in events if step == "lock"} == {
        "with lock.exclusively(timeout_seconds) as hold:"
    }


def test_where_the_power_may_fail_each_event_tells_what_the_disk_may_hold(lab: Lab) -> None:
    events = lab.play("torn-write", "fixed", "A1 A2 A3 A4 A5").events

    old, new = '[settings] name="old" level=1', '[settings] name="new" level=2'
    assert [event.on_disk for event in events] == [
        (old,),
        (old,),
        (old,),
        (new, old),
        (new,),
        (new,),
    ]
    assert {event.on_disk for event in lab.play("lost-config-update", "naive").events} == {None}
