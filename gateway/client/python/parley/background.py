"""An event loop in a thread of its own, with which a client that blocks uses the connection of asyncio."""

from __future__ import annotations

import asyncio
import threading
import time
import weakref
from concurrent.futures import CancelledError, Future
from typing import Any, AsyncIterator, Callable, Coroutine, Iterator, Optional, Tuple, TypeVar

from .aio_wire import Connection
from .errors import ParleyError

_T = TypeVar("_T")


class Background:
    """Runs coroutines that use a connection. Its thread begins with the first, and ends with close or with the program.

    After close, and in a forked process, the next coroutine begins another thread. Several threads may use it.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._thread: Optional[threading.Thread] = None
        self._end: Callable[[], object] = lambda: None

    def run(self, coroutine: Coroutine[Any, Any, _T], timeout: Optional[float] = None) -> _T:
        """Returns what a coroutine returns. It raises TimeoutError after some seconds."""
        within = coroutine if timeout is None else _within(coroutine, timeout)
        with self._lock:  # so that what begins before close is ended by it
            future = asyncio.run_coroutine_threadsafe(within, self._running())
        try:
            return future.result()
        except CancelledError:
            raise ParleyError("INVALID_ARGUMENT", "the client was closed") from None
        finally:
            future.cancel()  # if the caller was interrupted

    def each(self, items: AsyncIterator[_T], timeout: Optional[float]) -> Iterator[_T]:
        """Yields what an asynchronous iterator yields. It raises TimeoutError after some seconds."""
        return self._each(items, None if timeout is None else time.monotonic() + timeout)

    def _each(self, items: AsyncIterator[_T], end: Optional[float]) -> Iterator[_T]:
        while True:
            try:
                item = self.run(_next(items), None if end is None else end - time.monotonic())
            except StopAsyncIteration:
                return
            yield item  # if it ends here, the loop closes items when they are collected

    def close(self) -> None:
        """Closes the connection and ends the thread."""
        with self._lock:
            self._end()
            self._thread = None

    def _running(self) -> asyncio.AbstractEventLoop:
        """Returns the loop of a thread that lives."""
        if self._loop is None or self._thread is None or not self._thread.is_alive():
            ready: Future[Tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
            self._thread = threading.Thread(target=_serve, args=(self._connection, ready), name="parley", daemon=True)
            self._thread.start()
            self._loop, stop = ready.result()
            self._end = weakref.finalize(self, _stop, self._loop, stop, self._thread)
        return self._loop


def _serve(connection: Connection, ready: Future[Tuple[asyncio.AbstractEventLoop, asyncio.Event]]) -> None:
    async def serve() -> None:
        stop = asyncio.Event()
        connection.reopen()
        ready.set_result((asyncio.get_running_loop(), stop))
        await stop.wait()
        await connection.close()

    try:
        asyncio.run(serve())
    except BaseException as error:
        if ready.done():
            raise
        ready.set_exception(error)


def _stop(loop: asyncio.AbstractEventLoop, stop: asyncio.Event, thread: threading.Thread) -> None:
    if not thread.is_alive():  # a forked process has none of its parent's
        return
    loop.call_soon_threadsafe(stop.set)
    if thread is not threading.current_thread():
        thread.join()


async def _within(coroutine: Coroutine[Any, Any, _T], timeout: float) -> _T:
    try:
        return await asyncio.wait_for(coroutine, timeout)
    except asyncio.TimeoutError:
        raise TimeoutError("no answer in the time given; what was asked for may still happen") from None


async def _next(items: AsyncIterator[_T]) -> _T:
    return await items.__anext__()
