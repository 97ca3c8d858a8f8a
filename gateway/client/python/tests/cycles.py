"""Asks as one agent and answers as another, over one connection, and prints each cycle that has ended.

Arguments: how many, how many at once, and the token of the agent that is asked.
"""

import asyncio
import itertools
import os
import sys
import time
from typing import Iterator

import parley
from parley import aio


async def answer(host: aio.AsyncClient, message: parley.Message) -> None:
    while True:
        try:
            await host.answer(message, {"n": int(message["description"])})
            return
        except parley.ParleyError as error:
            if error.code == "ALREADY_ANSWERED":
                return
            if error.code != "NOT_RUNNING":  # whether it was answered is not known
                raise
            await asyncio.sleep(0.02)


async def answers(host: aio.AsyncClient) -> None:
    answering = set()
    async for item in host.follow(pending=True):
        if item.message["answerNeeded"]:
            answering.add(asyncio.ensure_future(answer(host, item.message)))


async def asks(fae: aio.AsyncClient, numbers: Iterator[int]) -> None:
    for i in numbers:
        asked = await fae.ask("HOST", str(i), [{"name": "n", "type": "number", "required": True}])
        got = (await asked.answer())["n"]
        if got != i:
            raise ValueError(f"{i} was answered {got}")
        print("cycle", i, flush=True)


async def main(cycles: int, callers: int, token: str) -> None:
    async with aio.connect(os.environ["PARLEY_URL"], os.environ.get("PARLEY_TOKEN")) as fae:
        host = await fae.sign_in(token)
        answering = asyncio.ensure_future(answers(host))
        numbers = itertools.chain(range(cycles))
        began, used = time.monotonic(), time.process_time()
        await asyncio.gather(*(asks(fae, numbers) for _ in range(callers)))
        took, used = time.monotonic() - began, time.process_time() - used
        answering.cancel()
        print(f"{cycles / took:.0f} cycles a second, {1000 * used / cycles:.2f} ms of processor each", file=sys.stderr)


asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
