"""What the model is told by the service itself."""

import pytest

from rollcage.core.verdict_words import Cause
from rollcage.rollouts import texts


@pytest.mark.parametrize("cause", [cause for cause in Cause if cause.is_models])
def test_every_end_that_the_model_can_bring_about_has_its_words(cause: Cause) -> None:
    text = texts.ended(cause)

    assert text.startswith("[the sandbox has ended: ")
    assert text.endswith("]")
