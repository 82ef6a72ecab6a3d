"""Whether a run's step is safe to train on."""

import pytest

from rollcage.core.health import Advice, Figures, Reason, judge_run


def figures(*, masked: int, trainable: int, abandoned: int = 0, store_live: bool = True) -> Figures:
    ended = masked + trainable + abandoned
    return Figures(
        rollouts=ended,
        active=0,
        ended=ended,
        calls=10 * ended,
        masked=masked,
        trainable=trainable,
        abandoned=abandoned,
        causes={"node_lost": masked},
        store_live=store_live,
    )


@pytest.mark.parametrize(
    ("seen", "advice", "reasons"),
    [
        pytest.param(figures(masked=0, trainable=500), Advice.PROCEED, (), id="nothing masked"),
        pytest.param(figures(masked=25, trainable=475), Advice.PROCEED, (), id="one in twenty masked"),
        pytest.param(figures(masked=26, trainable=474), Advice.HOLD, (Reason.MANY_MASKED,), id="a little more"),
        pytest.param(figures(masked=125, trainable=375), Advice.HOLD, (Reason.MANY_MASKED,), id="one in four"),
        pytest.param(figures(masked=126, trainable=374), Advice.SKIP, (Reason.TOO_MANY_MASKED,), id="more than that"),
        pytest.param(figures(masked=5, trainable=5), Advice.PROCEED, (), id="too few to say anything"),
        pytest.param(figures(masked=0, trainable=0), Advice.PROCEED, (), id="none at all"),
        pytest.param(
            figures(masked=0, trainable=20, abandoned=480), Advice.PROCEED, (), id="a trainer that gave up says nothing"
        ),
        pytest.param(
            figures(masked=0, trainable=500, store_live=False),
            Advice.HOLD,
            (Reason.STORE_RECOVERING,),
            id="a store that lost its memory",
        ),
        pytest.param(
            figures(masked=300, trainable=200, store_live=False),
            Advice.SKIP,
            (Reason.STORE_RECOVERING, Reason.TOO_MANY_MASKED),
            id="both",
        ),
    ],
)
def test_advice(seen: Figures, advice: Advice, reasons: tuple[Reason, ...]) -> None:
    health = judge_run(seen)

    assert (health.advice, health.reasons, health.figures) == (advice, reasons, seen)
