from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollcage.core.ids import BadId, RolloutId, RolloutKey
from rollcage.store.calls import Call
from rollcage.store.pools import Counts
from rollcage.store.records import RECORD, Rollout, Sandbox, State, Subject, Verdict

SUBJECT = Subject.of(RolloutId("acme", "trace_1"), run="step", environment="py")


@given(st.text(), st.text(), st.text())
def test_a_card_reads_back_as_it_was_written(address: str, node: str, image: str) -> None:
    sandbox = Sandbox(name="s1", environment="py", address=address, node=node, image=image)

    assert Sandbox.from_card(sandbox.card().encode()) == sandbox


def read(**fields: str) -> Rollout:
    assert fields.keys() <= set(RECORD)
    return Rollout.read(SUBJECT.key.encode(), [fields[name].encode() if name in fields else None for name in RECORD])


def test_a_record_of_an_asking_rollout_has_no_sandbox_and_no_times() -> None:
    record = read(state="asked", environment="py")

    assert record.state is State.ASKED
    assert (record.sandbox, record.verdict, record.bound_at, record.subject.rollout) == (None, None, None, None)


def test_a_whole_record_is_read() -> None:
    sandbox = Sandbox(name="s1", environment="py", address="10.0.0.1:80")

    record = read(
        state="ended",
        environment="py",
        tenant="acme",
        name="trace_1",
        run_name="step",
        card=sandbox.card(),
        calls="3",
        ended_at="1800000000000",
        verdict="masked",
        cause="node_lost",
        verdict_by="controller",
        verdict_at="1800000000000",
    )

    assert (record.subject, record.sandbox, record.calls) == (SUBJECT, sandbox, 3)
    assert record.ended_at == datetime(2027, 1, 15, 8, tzinfo=UTC)
    assert record.verdict
    assert (record.verdict.word, record.verdict.cause) == ("masked", "node_lost")


def test_a_subject_without_names_gives_none_away() -> None:
    assert Subject(SUBJECT.key, "py").fields() == {"rollout": SUBJECT.key, "environment": "py"}


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: Subject(RolloutKey("trace_1"), "py"), id="a trainer's id for a key"),
        pytest.param(lambda: Sandbox(name="s 1", environment="py", address=""), id="a sandbox with a space"),
        pytest.param(lambda: Sandbox(name="s1", environment="Py", address=""), id="an environment with a capital"),
        pytest.param(lambda: Verdict("Masked", by="gateway"), id="a verdict that is no word"),
        pytest.param(lambda: Verdict("masked", by="gateway", cause="node lost"), id="a cause that is no word"),
        pytest.param(lambda: Call(id="a b", hash="h", attempt="a"), id="a call id with a space"),
        pytest.param(lambda: Call(id="a", hash="h", attempt="a 1"), id="an attempt with a space"),
    ],
)
def test_bad_names_make_no_values(make: object) -> None:
    assert callable(make)
    with pytest.raises(BadId):
        make()


def test_demand_counts_waiters_and_what_is_promised_and_not_there() -> None:
    counts = Counts(ready=0, set_aside=2, claimed=7, waiting=3, reserved=5, spent=1)

    assert counts.demand == 6
