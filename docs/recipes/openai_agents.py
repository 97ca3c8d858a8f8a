"""An agent of the OpenAI Agents SDK, in Python, whose tool runs when it is allowed in Parley.

Give PARLEY_URL and PARLEY_TOKEN. Argument: the session, whose calls are asked about once however often this is run.
"""

import asyncio
import json
import os
import sys

from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage, function_tool
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText
from parley import aio

session = sys.argv[1] if len(sys.argv) > 1 else "session-7"


class Canned(Model):
    """Stands in for your model: it calls the tool, and repeats its result."""

    async def get_response(self, system_instructions, input, *args, **kwargs):
        last = input[-1] if isinstance(input, list) else {}
        if last.get("type") == "function_call_output":
            text = ResponseOutputText(type="output_text", text=last["output"], annotations=[])
            output = ResponseOutputMessage(type="message", id="m1", role="assistant", status="completed", content=[text])
        else:
            output = ResponseFunctionToolCall(type="function_call", call_id="call-1", name="deploy", arguments='{"version":"7.0"}')
        return ModelResponse(output=[output], usage=Usage(), response_id=None)

    def stream_response(self, *args, **kwargs):
        raise NotImplementedError


@function_tool(needs_approval=True)
def deploy(version: str) -> str:
    """Deploys a version."""
    return f"{version} is deployed"


async def run_with_approvals(agent: Agent, question: str, client: aio.AsyncClient) -> str:
    """Runs an agent to its end. Each call that needs approval is asked about in Parley; several at once are asked at once."""
    config = RunConfig(tracing_disabled=True)

    async def decide(call):
        key = f"{session}/{call.raw_item.call_id}"
        permission = await client.approve(call.name, json.loads(call.arguments), key=key)
        return call, await permission.decision()

    result = await Runner.run(agent, question, run_config=config)
    while result.interruptions:
        state = result.to_state()  # state.to_string() keeps it on disk
        for call, decision in await asyncio.gather(*map(decide, result.interruptions)):
            if decision.allowed:
                state.approve(call)
            else:
                state.reject(call, rejection_message=f"not allowed: {decision.reason}")
        result = await Runner.run(agent, state, run_config=config)
    return result.final_output


async def main() -> None:
    agent = Agent(name="deployer", model=Canned(), tools=[deploy])
    async with aio.connect(os.environ["PARLEY_URL"], os.environ["PARLEY_TOKEN"]) as client:
        print(await run_with_approvals(agent, "Deploy 7.0.", client))


asyncio.run(main())
