"""Asks from several threads as one agent and answers as another, with the client that blocks. Argument: the token of who is asked.

It prints each cycle that has ended, then what else the client promises: timeouts, use after close, and no thread that stays.
"""

import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import List

import parley

URL, CYCLES = os.environ["PARLEY_URL"], 20
FIELDS: List[parley.Field] = [{"name": "n", "type": "number", "required": True}]


def answers(host: parley.Client) -> None:
    for item in host.follow(pending=True):
        if item.message["answerNeeded"]:
            if item.message["description"] == "end":
                return
            host.answer(item.message, {"n": int(item.message["description"])})


def cycle(fae: parley.Client, i: int) -> None:
    got = fae.ask("HOST", str(i), FIELDS).answer()["n"]
    if got != i:
        raise ValueError(f"{i} was answered {got}")
    print("cycle", i, flush=True)


def late(fae: parley.Client) -> None:
    asked = fae.ask("HOST", "end", FIELDS)
    try:
        asked.wait(timeout=0.05)
    except TimeoutError:
        print("TimeoutError")
    print("followed", list(fae.follow(pending=True, timeout=0.05)))
    fae.close()
    assert asked.form is not None
    print(fae.cancel(asked.form)["status"], asked.wait(timeout=60)["status"])


def forked(fae: parley.Client) -> None:
    """Uses the client in a child process, which has none of the parent's threads, and then in the parent."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        print("child", fae.send("HOST", "from the child", timeout=60) >= 0, flush=True)
        os._exit(0)
    print("exit", os.waitpid(child, 0)[1], "parent", fae.send("HOST", "from the parent", timeout=60) >= 0)


def main(token: str) -> None:
    with parley.connect(URL, os.environ["PARLEY_TOKEN"], timeout=60) as fae, parley.connect(URL, token) as host:
        answering = threading.Thread(target=answers, args=(host,))
        answering.start()
        began, used = time.monotonic(), time.process_time()
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda i: cycle(fae, i), range(CYCLES)))
        took, used = time.monotonic() - began, time.process_time() - used
        print(f"{CYCLES / took:.0f} cycles a second, {1000 * used / CYCLES:.2f} ms of processor each", file=sys.stderr)
        if len(sys.argv) > 2:
            fae.ask("HOST", "end", FIELDS)
            answering.join()
            return
        late(fae)
        answering.join()
        forked(fae)
    print("threads", threading.active_count())


main(sys.argv[1])
