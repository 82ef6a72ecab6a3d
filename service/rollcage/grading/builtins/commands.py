"""
Whether a command succeeds in a fresh sandbox that was given the artifacts, and nothing else of the rollout.
"""

from rollcage.core.graders import CommandGrader
from rollcage.grading.builtins.junit import Cases, read_report
from rollcage.grading.builtins.selecting import select
from rollcage.grading.protocol import Context, Ran, Score


async def command_score(grader: CommandGrader, context: Context) -> Score:
    """Return the share of tests that passed, or 1 for exit code 0."""
    files = {path: select(source, context) for path, source in grader.files.items()}
    ran = await context.sandbox.run(
        grader.command,
        artifacts=context.artifacts.without(grader.without),
        files={path: str(text).encode() for path, text in files.items() if text is not None},
        collect=(grader.junit,) if grader.junit else (),
        environment=grader.environment,
        timeout_seconds=grader.timeout_seconds,
    )
    if grader.junit is None:
        return Score(float(ran.passed), notes=told(ran))
    report = read_report(ran.files.get(grader.junit, b""))
    if report is None:
        return Score(0.0, notes=("there is no report", *told(ran)))
    share = passed_share(report, ran, grader)
    parts = {"tests": float(report.all), "passed": float(report.passed)}
    return Score(share, parts, told(ran))


def passed_share(report: Cases, ran: Ran, grader: CommandGrader) -> float:
    """Return how much of all tests passed; all or nothing where that is wanted."""
    count = max(report.all, grader.tests or 0)
    share = report.passed / count if count else 0.0
    if grader.strict:
        # A report alone can be forged more easily than a report and an exit code.
        return float(share == 1.0 and ran.passed)
    return share


def told(ran: Ran) -> tuple[str, ...]:
    """Say what is worth knowing of a run."""
    if ran.ended:
        return ("the command took its sandbox down",)
    if ran.timed_out:
        return ("the command did not end in time",)
    return () if ran.exit_code == 0 else (f"exit code {ran.exit_code}",)
