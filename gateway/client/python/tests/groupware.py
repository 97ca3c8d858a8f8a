"""Sends a file as one agent and reads it as another, and uses teams, topics and what a reader sets. Argument: the token of the host."""

import os
import sys

import parley

URL = os.environ["PARLEY_URL"]


def main(token: str) -> None:
    with parley.connect(URL, os.environ["PARLEY_TOKEN"], timeout=60) as fae, parley.connect(URL, token) as host:
        content = bytes(i % 251 for i in range(250_001))
        files = [fae.store_file("a.bin", content, type="application/octet-stream"), fae.store_file("empty", b"")]
        fae.call("send", {"recipient": "HOST", "text": "see", "files": files})
        for item in host.follow():
            if not item.message.get("files"):
                continue
            first, empty = item.message["files"]
            got = host.fetch_file(item.message["messageId"], first)
            print("file", first["name"], len(got), got == content, len(host.fetch_file(item.message["messageId"], empty)))
            try:
                other: parley.File = {**first, "size": 1}
                host.fetch_file(item.message["messageId"], other)
            except parley.ParleyError as error:
                print(error.code)
            break

        team = host.set_team("shop", add=["fae"])[0]
        print("team", team["team"], len(team["members"]), ",".join(t["team"] for t in fae.teams()))
        host.end_team("shop")
        print("teams", len(fae.teams()))

        host.make_topic("news")
        print("topic", fae.subscribe("news", every=60)["everyMs"])
        host.post("news", "The build is red", subject="Build", key="k")
        host.post("news", "The build is red", subject="Build", key="k")
        posts = fae.posts("news")
        while not posts:
            posts = fae.posts("news")
        print("posts", ",".join(f"{p['subject']}: {p['text']}" for p in posts), len(fae.topics()), fae.unsubscribe("news").get("subscribed", False))
        host.end_topic("news")

        print("attention", fae.set_attention(quiet="always", allSessions=True)["isQuiet"], fae.attention()["allSessions"])


main(sys.argv[1])
