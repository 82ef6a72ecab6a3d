"""
The way of a plain call, as nearly all are: its sandbox is connected, it comes to a result, and the record takes it.

Each step is taken in the moment in which the one before is over, without a task
that would have to be woken for it. Nothing is decided here: what turns out not
to be plain goes on in ``act``, from where it stands.
"""

from collections.abc import Coroutine
from typing import Any, Protocol

from rollcage.rollouts.actions import Answer
from rollcage.rollouts.beginning import Place
from rollcage.rollouts.connection import Cut, Reply
from rollcage.rollouts.job import Job
from rollcage.rollouts.routes import Route
from rollcage.rollouts.toolservers import Heard, heard
from rollcage.store.calls import Marking


class Asker(Protocol):
    """Whoever asked for a call; either its answer is known and then recorded, or it comes otherwise."""

    def known(self, answer: Answer) -> None:
        """Get ready to give an answer, which must not be given yet."""

    def recorded(self) -> None:
        """Give the answer that is known; must not raise."""

    def otherwise(self, answer: Coroutine[Any, Any, Answer]) -> None:
        """Wait for the answer, and give it; must not raise."""


class Course(Protocol):
    """The usual course of a call, and what of it a plain one takes."""

    def plain(self, job: Job, route: Route, heard: Heard) -> Answer | None:
        """Return what the model is told of a call that simply came to a result."""

    def counted(self, job: Job, answer: Answer) -> None:
        """Count a call that was answered."""

    def onward(self, job: Job, place: Place) -> Coroutine[Any, Any, Answer]:
        """Bring a call to its end from where it stands."""


class PlainCall:
    """One call that is being sent; *marking* is given to it as soon as it is."""

    __slots__ = ("_answer", "_asker", "_course", "_heard", "_job", "marking", "route")

    marking: Marking

    def __init__(self, course: Course, job: Job, route: Route, asker: Asker) -> None:
        self._course = course
        self._job = job
        self.route = route
        self._asker = asker
        self._heard: Heard | None = None
        self._answer: Answer | None = None

    def take(self, outcome: Reply | Cut) -> None:
        """Take what came of it in its sandbox, and have that recorded."""
        self._heard = heard(self.route, outcome)
        recording = False
        try:
            answer = self._course.plain(self._job, self.route, self._heard)
            recording = answer is not None and self.marking.end(
                answer.ending(self.route.boot),
                within=self._job.patience.store.total_seconds(),
                then=self._recorded,
            )
            if answer and recording:
                # While Redis is at it.
                self._asker.known(answer)
                self._answer = answer
        except Exception:  # noqa: BLE001, S110 - it will be raised again on the usual course, where it is told
            pass
        if not recording:
            self._onward()

    def _recorded(self, kept: bool) -> None:  # noqa: FBT001 - all there is to tell
        if self._answer and kept:
            self._asker.recorded()
            self._course.counted(self._job, self._answer)
        else:
            self._onward()

    def _onward(self) -> None:
        place = Place(self.route, marking=self.marking, heard=self._heard)
        self._asker.otherwise(self._course.onward(self._job, place))
