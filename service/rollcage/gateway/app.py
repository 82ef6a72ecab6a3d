"""
Put the gateway together: an application from its parts.

Nothing is decided here. Which parts are real is said in wiring, how the
application is served in ``serving``.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Final

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from rollcage.core.errors import RollcageError
from rollcage.gateway.dialects.agent_rft.openapi import with_agent_rft
from rollcage.gateway.dialects.agent_rft.route import AgentRft
from rollcage.gateway.dialects.native import router as native
from rollcage.gateway.errors import BadRequest
from rollcage.gateway.exchange import App
from rollcage.gateway.front import Front
from rollcage.gateway.ports import Checks, Parts
from rollcage.gateway.problems import INTERNAL, MEDIA_TYPE, Problem, problem_of
from rollcage.gateway.readiness import Readiness
from rollcage.telemetry.metrics import CONTENT_TYPE

# Runs beside the application: following files, and whatever else wiring wants to live as long.
Background = Callable[[], AbstractAsyncContextManager[None]]

_NOT_SERVED: Final = {
    HTTPStatus.NOT_FOUND: "no_such_route",
    HTTPStatus.METHOD_NOT_ALLOWED: "wrong_method",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "body_too_large",
}

_log = structlog.get_logger()


def gateway(
    parts: Parts, *, checks: Checks, background: Background | None = None, mounts: Mapping[str, App] | None = None
) -> Front:
    """Return the application; *mounts* are others' that are served along with it, by path."""

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        if background is None:
            yield
        else:
            async with background():
                yield

    app = FastAPI(
        title="Rollcage",
        summary="Sandboxes for rollouts of tool-using agents",
        version="v1",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    app.state.parts = parts
    _serve_operations(app, parts, Readiness(checks, parts.admission))
    app.include_router(native())
    for path, mounted in (mounts or {}).items():
        app.mount(path, mounted)
    _tell_problems(app)
    app.openapi = with_agent_rft(app.openapi)  # type: ignore[method-assign]
    return Front(parts, agent_rft=AgentRft(parts), rest=app, state=app)


def _serve_operations(app: FastAPI, parts: Parts, readiness: Readiness) -> None:
    @app.get("/healthz", tags=["operations"], summary="The process serves")
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/readyz", tags=["operations"], summary="Trainers may be sent here", responses={503: {}})
    async def readyz() -> Response:
        report = await readiness.report()
        status = HTTPStatus.OK if report.ready else HTTPStatus.SERVICE_UNAVAILABLE
        return JSONResponse(
            {
                "ready": report.ready,
                "draining": report.draining,
                "checks": dict(report.checks),
                # Answers carry no date; whoever looks for trouble wants to compare clocks.
                "time": datetime.now(UTC).isoformat(),
            },
            status_code=status,
        )

    @app.get("/metrics", tags=["operations"], summary="For Prometheus", response_class=Response)
    def metrics() -> Response:
        # In a thread: with many environments it takes longer than a call should wait.
        return Response(parts.metrics.exposition(), media_type=CONTENT_TYPE)


def _tell_problems(app: FastAPI) -> None:
    async def refused(_request: Request, error: Exception) -> Response:
        problem = problem_of(error)
        if problem.code == INTERNAL:
            _log.error("request_broke", exc_info=error)
        return _answer(problem)

    async def invalid(_request: Request, error: Exception) -> Response:
        found: Any = error.errors() if isinstance(error, RequestValidationError) else ()
        texts = (f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in found)
        return _answer(problem_of(BadRequest("; ".join(texts))))

    async def not_served(_request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else HTTPStatus.INTERNAL_SERVER_ERROR
        code = _NOT_SERVED.get(HTTPStatus(status), "bad_request")
        return _answer(Problem(status, code, getattr(error, "detail", "")))

    handlers: list[tuple[type[Exception], Callable[[Request, Exception], Awaitable[Response]]]] = [
        (RollcageError, refused),
        (RequestValidationError, invalid),
        (HTTPException, not_served),
        (Exception, refused),
    ]
    for kind, handler in handlers:
        app.add_exception_handler(kind, handler)


def _answer(problem: Problem) -> Response:
    headers = {name.decode(): value.decode() for name, value in problem.headers()}
    return JSONResponse(problem.body(), status_code=problem.status, headers=headers, media_type=MEDIA_TYPE)
