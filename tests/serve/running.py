"""A server in a thread of the test, and a plain client of the standard library."""

import asyncio
import contextlib
import http.client
import json
import threading
import time

import uvicorn

from castalia.serve import make_app


@contextlib.contextmanager
def running(models, settings=None):
    """Yield a function that sends a request: method, path, body, headers."""
    app = make_app(models, settings)
    config = uvicorn.Config(app, port=0, log_level="error", loop="asyncio", ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.005)
    port = server.servers[0].sockets[0].getsockname()[1]

    def ask(method, path, body=None, headers=None, raw=False):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, path, content, headers or {})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, text.decode() if raw else json.loads(text or b"{}")

    ask.app = app
    yield ask
    server.should_exit = True
    thread.join(30)
