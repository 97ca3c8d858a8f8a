"""A graph in Python that stops at interrupt() until a form is answered in Parley.

Give PARLEY_URL and PARLEY_TOKEN. Argument: the thread, whose form is asked once however often this is run.
"""

import asyncio
import os
import sys
from typing import TypedDict

from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from parley import aio

thread = sys.argv[1] if len(sys.argv) > 1 else "release-7"
model = FakeListChatModel(responses=["Release 7 is ready."])  # in place of your model


class State(TypedDict, total=False):
    plan: str
    port: int
    result: str


async def write(state: State) -> State:
    return {"plan": (await model.ainvoke("Plan the release.")).content}


def ask(state: State) -> State:
    fields = [{"name": "port", "type": "number", "required": True}]
    return interrupt({"key": "port", "description": f"{state['plan']} Where is it to listen?", "fields": fields})


def run(state: State) -> State:
    return {"result": f"listens on {state['port']}"}


graph = StateGraph(State)
for node in (write, ask, run):
    graph.add_node(node.__name__, node)
for edge in ((START, "write"), ("write", "ask"), ("ask", "run"), ("run", END)):
    graph.add_edge(*edge)
compiled = graph.compile(checkpointer=InMemorySaver())  # one on disk keeps the graph where it stopped


async def run_with_forms(compiled, start, config, client, recipient):
    """Runs a graph to its end. Each interrupt is a form; several at once are asked at once.

    The key of an interrupt is the question's own within the thread: a node that asks again, in a loop, needs another.
    """

    async def answer(stop):
        question = {**stop.value, "key": f"{config['configurable']['thread_id']}/{stop.value['key']}"}
        return stop.id, await (await client.ask(recipient, **question)).answer()  # it raises DECLINED if the answer is no

    while True:
        state = await compiled.ainvoke(start, config)
        stops = state.get("__interrupt__", [])
        if not stops:
            return state
        start = Command(resume=dict(await asyncio.gather(*map(answer, stops))))


async def main() -> None:
    async with aio.connect(os.environ["PARLEY_URL"], os.environ["PARLEY_TOKEN"]) as client:
        state = await run_with_forms(compiled, {}, {"configurable": {"thread_id": thread}}, client, "HOST")
        print(state["result"])


asyncio.run(main())
