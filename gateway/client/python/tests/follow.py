"""Follows the mail, and prints each text, until one is: end. Argument, if any: the cursor to go on from."""

import asyncio
import os
import sys

from parley import aio


async def main(cursor: str) -> None:
    async with aio.connect(os.environ["PARLEY_URL"], os.environ["PARLEY_TOKEN"]) as host:
        async for item in host.follow(cursor):
            print(item.cursor, item.message["text"], flush=True)
            if item.message["text"] == "end":
                return


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else ""))
