"""The application: routes, limits, metrics, reloads."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from castalia import __version__
from castalia.errors import CastaliaError, InvalidData, InvalidParameter
from castalia.serve.batcher import Batcher, TooBusy
from castalia.serve.json_columns import row_list
from castalia.serve.language_routes import Completion, embeddings, stream_events
from castalia.serve.open_inference import described, infer_outputs, infer_rows
from castalia.serve.prometheus_text import ServerCounters, sample
from castalia.serve.served_model import LoadedModel, ServedModel, version_of
from castalia.utils.imports import require
from castalia.utils.local_host import host_is_local, origin_is_local

__all__ = ["ServeSettings", "Server", "make_app", "serve"]

OPEN = ("/v2/health/live", "/v2/health/ready")  # answered without a token
_JSON = {"content-type": "application/json"}


@dataclass(frozen=True, kw_only=True)
class ServeSettings:
    """Limits and options of a server.

    Attributes
    ----------
    token
        What clients must send as ``Authorization: Bearer …``; None: nothing.
    most_bytes
        Of the body of a request.
    most_rows
        Of a request.
    seconds
        Time for an answer.
    batch
        Most rows that are computed together.
    watch
        Seconds between two looks for a new version of a model; None: only when asked.
    local
        Whether only this machine may ask, under its own name and from no page of another site: what
        a browser visits could reach a server without a token otherwise.
    """

    token: str | None = None
    most_bytes: int = 8_000_000
    most_rows: int = 10_000
    seconds: float = 30.0
    batch: int = 256
    watch: float | None = None
    local: bool = False


class Refused(Exception):  # noqa: N818 - an answer to a client
    """A status and a sentence."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


class Server:
    """What the routes share: models, batchers, counters.

    Parameters
    ----------
    models
        By name.
    settings
        Limits.
    """

    def __init__(self, models: Mapping[str, ServedModel], settings: ServeSettings) -> None:
        self.models, self.settings = dict(models), settings
        self.counters = ServerCounters()
        self.batchers: dict[str, Batcher] = {}
        self.pool = ThreadPoolExecutor(1, "castalia-language")  # one text is written at a time
        self.ready = False

    # -- what routes need ----------------------------------------------------------------

    def find(self, name: str | None) -> ServedModel:
        """Return a model by its name, or the only one."""
        if name is None and len(self.models) == 1:
            return next(iter(self.models.values()))
        if name not in self.models:
            have = ", ".join(self.models)
            raise Refused(404, f"serve: there is no model {name!r}; there are {have}.")
        return self.models[name]

    async def body(self, request: Any) -> bytes:
        """Return the body of a request, if it is not too large."""
        most, parts, size = self.settings.most_bytes, [], 0
        if _length(request, "content-length", 0) > most:
            raise Refused(413, f"serve: a request must have at most {most:,} bytes.")
        async for part in request.stream():
            size += len(part)
            if size > most:
                raise Refused(413, f"serve: a request must have at most {most:,} bytes.")
            parts.append(part)
        return b"".join(parts)

    async def rows(self, loaded: LoadedModel, name: str, rows: Sequence[Any]) -> Any:
        """Check rows and return their answers."""
        if loaded.predictor is None:
            raise Refused(404, f"serve: `{name}` writes texts; ask /v1/completions.")
        part = loaded.predictor.parse(rows)
        seconds = self.settings.seconds
        try:
            return await self.batchers[name].answer(loaded, part, len(rows), seconds)
        except TimeoutError:
            raise Refused(504, f"serve: no answer in {seconds:g} seconds.") from None

    # -- routes --------------------------------------------------------------------------

    async def predict(self, request: Any) -> Any:
        """Answer rows by column names."""
        served = self.find(request.path_params.get("name"))
        loaded = served.current
        rows = row_list(_parsed(await self.body(request)), self.settings.most_rows)
        found = await self.rows(loaded, served.name, rows)
        lists = _columns(found, loaded.predictor.classes)
        answers = [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]
        facts = {"model": served.name, "version": loaded.version}
        return _answer({"predictions": answers, **facts})

    async def infer(self, request: Any) -> Any:
        """Answer tensors of the Open Inference Protocol."""
        served = self.find(request.path_params["name"])
        loaded, content = served.current, await self.body(request)
        cut = _length(request, "inference-header-content-length", len(content))
        body = _parsed(content[:cut])
        kind = getattr(getattr(loaded.predictor, "entry", None), "kind", "table")
        columns = {} if loaded.predictor is None else loaded.predictor.columns
        rows = infer_rows(body, content[cut:], columns, kind)
        found = await self.rows(loaded, served.name, row_list(rows, self.settings.most_rows))
        outputs = infer_outputs(found, body.get("outputs"))
        names = {"model_name": served.name, "model_version": loaded.version}
        own = {"id": body["id"]} if "id" in body else {}
        return _answer({**names, **own, "outputs": outputs})

    async def metadata(self, request: Any) -> Any:
        """Describe a model."""
        served = self.find(request.path_params["name"])
        return _answer(described(served.name, served.current))

    async def health(self, request: Any) -> Any:
        """Say whether the server, or a model, can answer."""
        if "name" in request.path_params:
            self.find(request.path_params["name"])
        live = request.url.path.endswith("/live")
        return _answer({}, 200 if live or self.ready else 503)

    async def about(self, request: Any) -> Any:
        """Describe the server."""
        extensions = ["model_repository", "binary_tensor_data"]
        return _answer({"name": "castalia", "version": __version__, "extensions": extensions})

    async def listed(self, request: Any) -> Any:
        """List the models, as OpenAI's API and the repository extension do."""
        if request.url.path.startswith("/v1"):
            data = [{"id": name, "object": "model", "owned_by": "castalia"} for name in self.models]
            return _answer({"object": "list", "data": data})
        found = [
            {"name": name, "version": model.current.version, "state": "READY"}
            for name, model in self.models.items()
        ]
        return _answer(found)

    async def changed(self, request: Any) -> Any:
        """Load the version that is on disk, or go back to the one before."""
        served = self.find(request.path_params["name"])
        back = request.url.path.endswith("/rollback")
        if fault := await self.change(served, back):
            raise Refused(409, fault)
        return _answer({"name": served.name, "version": served.current.version})

    async def change(self, served: ServedModel, back: bool = False) -> str:
        """Swap the version of a model; return a fault, after which the one before goes on."""
        loop, outcome, fault = asyncio.get_running_loop(), "rollback" if back else "load", ""
        try:
            await loop.run_in_executor(self.pool, served.rollback if back else served.reload)
        except (CastaliaError, OSError) as error:
            outcome, fault = "failed", " ".join(str(error).split())
        self.counters.reloads[served.name, outcome] += 1
        return fault

    async def completions(self, request: Any) -> Any:
        """Write texts."""
        from starlette.responses import StreamingResponse

        body = _parsed(await self.body(request))
        served = self.find(body.get("model") if isinstance(body, dict) else None)
        if not served.current.writes:
            raise Refused(404, f"serve: `{served.name}` is no language model; ask /predict.")
        asked, loop = Completion(body, served.current.model), asyncio.get_running_loop()
        if asked.stream:
            events = stream_events(asked, loop, self.pool)
            return StreamingResponse(events, media_type="text/event-stream")
        done = loop.run_in_executor(self.pool, asked.whole)
        try:
            return _answer(await asyncio.wait_for(done, self.settings.seconds))
        except TimeoutError:
            raise Refused(504, f"serve: no text in {self.settings.seconds:g} seconds.") from None

    async def embed(self, request: Any) -> Any:
        """Return vectors of texts."""
        body = _parsed(await self.body(request))
        served = self.find(body.get("model") if isinstance(body, dict) else None)
        if not served.current.embeds:
            raise Refused(404, f"serve: `{served.name}` gives no vectors of texts.")
        arguments = (body, served.current.model, served.name)
        loop = asyncio.get_running_loop()
        return _answer(await loop.run_in_executor(self.pool, embeddings, *arguments))

    async def metrics(self, request: Any) -> Any:
        """Return all counters."""
        from starlette.responses import PlainTextResponse

        lines = list(self.counters.lines())
        for name, model in self.models.items():
            lines.append(
                sample("castalia_model_info", 1, model=name, version=model.current.version)
            )
            lines += [
                sample(metric, value, model=name, column=column)
                for metric, column, value in model.current.drift.samples()
            ]
        kind = "text/plain; version=0.0.4"
        return PlainTextResponse("\n".join(lines) + "\n", media_type=kind)

    # -- life ----------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def life(self, app: Any) -> AsyncIterator[None]:
        """Be ready, watch for new versions, and answer what waits before the end."""
        seen = self.counters.batches.add
        self.batchers = {name: Batcher(self.settings.batch, seen=seen) for name in self.models}
        watcher = asyncio.create_task(self._watch()) if self.settings.watch else None
        self.ready = True
        yield
        self.ready = False
        if watcher is not None:
            watcher.cancel()
        for batcher in self.batchers.values():
            await batcher.drain()
        self.pool.shutdown(wait=True)

    async def _watch(self) -> None:
        """Load new versions when their folders change."""
        tried: dict[str, str] = {}
        while True:
            await asyncio.sleep(self.settings.watch or 1.0)
            for name, model in self.models.items():
                with contextlib.suppress(OSError):
                    found = version_of(model.folder)
                    if found not in (model.current.version, tried.get(name)):
                        tried[name] = found
                        await self.change(model)


def _length(request: Any, header: str, usual: int) -> int:
    """Return the number of bytes that a header gives, or the usual one where it is absent."""
    given = request.headers.get(header, str(usual))
    if not given.isascii() or not given.isdigit():
        raise InvalidData(f"serve: the header `{header}` must be a number of bytes; got {given!r}.")
    return int(given)


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise InvalidData("serve: the body must be JSON.") from None


def _columns(found: Mapping[str, np.ndarray], classes: list[Any] | None) -> dict[str, list[Any]]:
    """Return answers as lists by column: ``probability_<class>`` for every class."""
    lists: dict[str, list[Any]] = {}
    for name, values in found.items():
        if name == "probability" and values.ndim == 2 and classes is not None:
            pairs = zip(classes, values.T.tolist(), strict=True)
            lists |= {f"probability_{label}": column for label, column in pairs}
        else:
            lists[name] = values.tolist()
    return lists


def _answer(content: Any, status: int = 200) -> Any:
    from starlette.responses import Response

    try:
        text = json.dumps(content, ensure_ascii=False, allow_nan=False)
    except ValueError:
        raise InvalidData(
            "serve: the answer to these rows is not finite; they lie far from the training rows."
        ) from None
    return Response(text.encode(), status, _JSON)


Route = Callable[[Any], Awaitable[Any]]


class Guarded:
    """A route: counts a request, checks its token, and turns errors into sentences with a status.

    An application of its own, not a function: Starlette would wrap each call of a function twice.
    """

    def __init__(self, server: Server, route: str, handler: Route) -> None:
        self.server, self.route, self.handler = server, route, handler

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        from starlette.requests import Request

        start, counters = time.perf_counter(), self.server.counters
        found = await self._answered(Request(scope, receive))
        counters.requests[self.route, found.status_code] += 1
        counters.seconds.add(time.perf_counter() - start)
        await found(scope, receive, send)

    async def _answered(self, request: Any) -> Any:
        try:
            _check_sender(self.server.settings, request)
            return await self.handler(request)
        except Refused as error:
            return self._refusal(str(error), error.status)
        except TooBusy:
            found = self._refusal("serve: too many rows wait; try again.", 503)
            found.headers["retry-after"] = "1"
            return found
        except CastaliaError as error:
            return self._refusal(" ".join(str(error).split()), 422)

    def _refusal(self, said: str, status: int) -> Any:
        """Return a sentence; OpenAI's clients look for it one level deeper."""
        deeper = {"message": said, "type": "invalid_request_error", "code": status}
        return _answer({"error": deeper if self.route.startswith("/v1/") else said}, status)


def _check_sender(settings: ServeSettings, request: Any) -> None:
    token, headers = settings.token, request.headers
    if settings.local and not host_is_local(headers.get("host", "")):
        raise Refused(421, "serve: without CASTALIA_TOKEN, ask 127.0.0.1 or localhost.")
    if settings.local and not origin_is_local(headers.get("origin")):
        raise Refused(403, "serve: without CASTALIA_TOKEN, other sites' pages may not ask.")
    if token is None or request.url.path in OPEN:
        return
    sent = request.headers.get("authorization", "")
    if not hmac.compare_digest(sent.encode(), f"Bearer {token}".encode()):
        raise Refused(401, "serve: the request must carry the server's bearer token.")


def make_app(models: Mapping[str, ServedModel], settings: ServeSettings | None = None) -> Any:
    """Return the ASGI application that serves models by name.

    Parameters
    ----------
    models
        By name.
    settings
        Limits; None: the usual ones.
    """
    require("starlette", caller="serve", extra="serve")
    from starlette.applications import Starlette
    from starlette.routing import Route as Path

    server = Server(models, settings or ServeSettings())
    own, repository = "/v2/models/{name}", "/v2/repository"
    gets = {
        "/v2": server.about,
        "/v2/health/live": server.health,
        "/v2/health/ready": server.health,
        f"{own}/ready": server.health,
        own: server.metadata,
        f"{own}/versions/{{version}}": server.metadata,
        "/v1/models": server.listed,
        "/metrics": server.metrics,
    }
    posts = {
        "/predict": server.predict,
        "/predict/{name}": server.predict,
        f"{own}/infer": server.infer,
        f"{own}/versions/{{version}}/infer": server.infer,
        f"{repository}/index": server.listed,
        f"{repository}/models/{{name}}/load": server.changed,
        f"{repository}/models/{{name}}/rollback": server.changed,
        "/v1/completions": server.completions,
        "/v1/embeddings": server.embed,
    }
    routes = [
        Path(path, Guarded(server, path, handler), methods=[method])
        for method, table in (("POST", posts), ("GET", gets))
        for path, handler in table.items()
    ]
    app = Starlette(routes=routes, lifespan=server.life)
    app.state.server = server
    return app


def serve(models: Mapping[str, ServedModel], settings: ServeSettings, host: str, port: int) -> None:
    """Serve until the process is asked to end; what was accepted is answered first."""
    uvicorn = require("uvicorn", caller="serve", extra="serve")
    if settings.token is None and host not in ("127.0.0.1", "localhost", "::1"):
        raise InvalidParameter(
            f"serve: a server on {host} must have a token, as everybody can reach it; got none. "
            "Set CASTALIA_TOKEN."
        )
    uvicorn.run(
        make_app(models, replace(settings, local=settings.token is None)),
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=int(settings.seconds) + 1,
    )
