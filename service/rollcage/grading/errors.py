"""
Why a rollout gets no score. Each of these is a refusal with a reason, and none of them is a zero.
"""

from rollcage.core.errors import RollcageError


class NoGrader(RollcageError):
    """The environment says nothing about grading."""

    code = "no_grader"


class GraderCrashed(RollcageError):
    """The grader broke; what it would have said is not known."""

    code = "grader_crashed"

    def __init__(self, *, cause: str, account: str = "") -> None:
        super().__init__(f"the grader broke: {cause}")
        self.cause = cause
        self.account = account


class GraderTimedOut(RollcageError):
    """The grader took longer than it may, and was ended."""

    code = "grader_timed_out"

    def __init__(self, *, seconds: float) -> None:
        super().__init__(f"the grader was not done after {seconds:g} s")
        self.seconds = seconds


class GraderRefused(RollcageError):
    """The grader itself says that it cannot tell."""

    code = "grader_refused"

    def __init__(self, *, cause: str) -> None:
        super().__init__(f"the grader refused: {cause}")
        self.cause = cause


class ScoreInvalid(RollcageError):
    """The grader's answer is no number of the declared range."""

    code = "score_invalid"

    def __init__(self, *, cause: str) -> None:
        super().__init__(f"the grader gave {cause}")
        self.cause = cause


class GradersBusy(RollcageError):
    """As many gradings run and wait as may."""

    code = "graders_busy"
    retry_after = 5.0


class ArtifactsMissing(RollcageError):
    """What the grader needs of the sandbox could not be had, and not by the model's doing."""

    code = "artifacts_missing"

    def __init__(self, *, cause: str) -> None:
        super().__init__(f"no artifacts: {cause}")
        self.cause = cause


class GradingSandboxFailed(RollcageError):
    """The infrastructure failed a sandbox that the grader needed."""

    code = "grading_sandbox_failed"

    def __init__(self, *, cause: str) -> None:
        super().__init__(f"a sandbox for grading failed: {cause}")
        self.cause = cause


class RolloutAbandoned(RollcageError):
    """The rollout was given up before anybody asked for its score."""

    code = "rollout_abandoned"


class GradeConflict(RollcageError):
    """The rollout has a score for another answer, another item or another environment; that one stands."""

    code = "grade_conflict"
