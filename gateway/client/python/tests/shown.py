"""Answers a form in the revision that was read, after it was amended, and follows agents. Argument: the token of the asker."""

import asyncio
import os
import sys

import parley
from parley import aio


async def main(token: str) -> None:
    async with aio.connect(os.environ["PARLEY_URL"], os.environ["PARLEY_TOKEN"]) as host:
        fae = await host.sign_in(token)
        asked = await fae.ask("HOST", "Which port?", [{"name": "port", "type": "number", "required": True}])
        assert asked.form is not None
        read = await host.message(asked.form)
        await fae.amend(asked.form, title="Which port, really?")
        for call in (host.answer(read, {"port": 80}), host.decline(read, "no")):
            try:
                await call
            except parley.ParleyError as error:
                print(error.code)
        try:
            with parley.connect(os.environ["PARLEY_URL"], os.environ["PARLEY_TOKEN"]) as blocking:
                blocking.answer(read, {"port": 80})
        except parley.ParleyError as error:
            print(error.code)
        try:
            await host.answer(asked.form, {"port": "many"})
        except parley.ParleyError as error:
            print(error.code, error.fields)
        await host.answer(await host.message(asked.form), {"port": 81})
        print(await asked.answer())
        async for update in host.follow_agents():
            if update.agent["name"] == "fae":
                print(update.kind, update.agent["name"])
                break
        large = "x" * (20 << 20)
        with parley.connect(os.environ["PARLEY_URL"], os.environ["PARLEY_TOKEN"]) as blocking:
            try:
                blocking.ask("HOST", large, [{"name": "n"}])
            except parley.ParleyError as error:
                print(error.code)
        for size in (len(large), (1 << 20) - 300):
            try:
                await fae.ask("HOST", large[:size], [{"name": "n"}])
            except parley.ParleyError as error:
                print(error.code)
        never = await fae.ask("HOST", "never", [{"name": "n"}])
        try:
            await asyncio.wait_for(never.wait(), 0.05)
        except asyncio.TimeoutError:
            print("not waited for")
        two = await host.ask("fae", "Deploy?", [{"name": "ok"}], need=2, remind=["1h"])
        assert two.form is not None
        print("remindsAt" in (await host.message(two.form))["route"], (await fae.answer(two.form, {"ok": "yes"}))["status"], await fae.withdraw(two.form))
        with parley.connect(os.environ["PARLEY_URL"], token) as blocking:
            permission = blocking.approve("shell", {"command": "ls"}, need=2, remind=["1h"])
            assert permission.form is not None
            print((await host.message(permission.form))["votes"]["need"])
            print((await host.answer(permission.form, {"decision": "once"}))["status"], blocking.cancel(permission.form)["status"])


asyncio.run(main(sys.argv[1]))
