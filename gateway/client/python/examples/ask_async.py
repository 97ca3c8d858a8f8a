"""Asks the host for a port as ask.py does, with asyncio. Give PARLEY_URL and PARLEY_TOKEN."""

import asyncio
import os

from parley import aio


async def main() -> None:
    async with aio.connect(os.environ["PARLEY_URL"], os.environ["PARLEY_TOKEN"]) as client:
        asked = await client.ask("HOST", "Where to listen?", [{"name": "port", "type": "number", "required": True}])
        print("asked", flush=True)
        print("the host says", (await asked.answer())["port"])  # now, or after a restart of the node
        async for item in client.follow(all=True):
            print("followed", item.message["number"])
            break


asyncio.run(main())
