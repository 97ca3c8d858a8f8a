"""Asks the host for a port, and prints what it says. Give PARLEY_URL and PARLEY_TOKEN."""

import os

import parley

with parley.connect(os.environ["PARLEY_URL"], os.environ["PARLEY_TOKEN"]) as client:
    asked = client.ask("HOST", "Where to listen?", [{"name": "port", "type": "number", "required": True}])
    print("asked", flush=True)
    print("the host says", asked.answer()["port"])  # now, or after a restart of the node
    print("followed", next(client.follow(all=True)).message["number"])
