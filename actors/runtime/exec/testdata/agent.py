"""An agent in Python that stays (Keep): it serves one prompt after the other."""
import json, sys

def say(**line): print(json.dumps(line), flush=True)
def receive(): return json.loads(sys.stdin.readline() or "null")

while (prompt := receive()) is not None:
    if prompt["type"] != "prompt":
        continue  # an answer that came too late, or a cancel
    print("working on:", prompt["text"], flush=True)  # plain lines are output
    say(type="ask_user", id="settings", title="Settings", fields=[
        {"name": "port", "type": "number", "required": True}, {"name": "region"}])
    answer = receive()
    if answer["type"] != "answer" or answer["status"] != "answered":
        say(type="done", error="no settings: " + answer.get("status", answer["type"]))
        continue
    say(type="approval", id="deploy", tool="deploy", input=answer["values"])
    allowed = receive().get("approved", False)
    say(type="output", text="deployed\n" if allowed else "not deployed\n")
    say(type="done")
