package client_test

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"parley/gateway/api"
	"parley/gateway/client"
)

// Programs that follow from a cursor, and begin anew after each message until one says "end". They print the numbers.
const (
	typeScriptCut = `
import { connect } from "./typescript/client.js";
const client = await connect({ url: process.env.PARLEY_URL, token: process.env.PARLEY_TOKEN });
let cursor = process.argv[1], text = "";
while (text !== "end") {
  for await (const item of client.follow({ cursor })) {
    ({ cursor, message: { text } } = item);
    console.log(item.message.number);
    break;
  }
}
process.exit(0);
`
	pythonCut = `
import os, sys, parley
cursor, text = sys.argv[1], ""
with parley.connect(os.environ["PARLEY_URL"], os.environ["PARLEY_TOKEN"]) as client:
    while text != "end":
        item = next(iter(client.follow(cursor)))
        cursor, text = item.cursor, item.message.get("text", "")
        print(item.message["number"])
`
)

// TestFollowCutOffTwiceWithinPage follows from within a batch that is larger than a page, and whose first messages
// changed last. The follow is cut off after each message.
func TestFollowCutOffTwiceWithinPage(t *testing.T) {
	h, host, fae := openTest(t)
	const messages, delivered = 12, 5
	for range messages {
		if _, err := fae.Send(t.Context(), "HOST", client.Post{Text: strings.Repeat("x", 100<<10)}); err != nil {
			t.Fatal(err)
		}
	}
	for n := range uint64(delivered - 1) {
		if err := api.Dismiss.Run(t.Context(), host, api.MessageRequest{FormRef: api.RefTo(string(client.Number(n)))}); err != nil {
			t.Fatal(err)
		}
		if err := api.RestoreMessage.Run(t.Context(), host, api.MessageRequest{FormRef: api.RefTo(string(client.Number(n)))}); err != nil {
			t.Fatal(err)
		}
	}
	var page struct{ Cursor uint64 }
	if err := host.Call(t.Context(), "list_messages", map[string]any{"limit": 1}, &page); err != nil {
		t.Fatal(err)
	}
	if _, err := fae.Send(t.Context(), "HOST", client.Post{Text: "end"}); err != nil {
		t.Fatal(err)
	}
	from := fmt.Sprintf("1.%d.%d", page.Cursor, delivered-1) // after the mailbox's creation
	var want []string
	for n := delivered; n <= messages; n++ {
		want = append(want, strconv.Itoa(n))
	}
	token := hostToken(t, host)
	byHTTP, err := client.Connect(t.Context(), client.Options{URL: h.url(), Token: token, HTTP: true})
	if err != nil {
		t.Fatal(err)
	}
	defer byHTTP.Close()
	ofGo := func(c *client.Client) func(t *testing.T) []string {
		return func(t *testing.T) (got []string) {
			for cursor, text := client.Cursor(from), ""; text != "end" && len(got) < 2*messages; {
				for m, err := range c.Follow(t.Context(), client.View{}, cursor) {
					if err != nil {
						t.Fatal(err)
					}
					cursor, text = m.Cursor, m.Text
					got = append(got, strconv.FormatUint(m.Number, 10))
					break
				}
			}
			return got
		}
	}
	program := func(name string, args ...string) func(t *testing.T) []string {
		return func(t *testing.T) []string {
			path, err := exec.LookPath(name)
			if err != nil {
				t.Skipf("there is no %s", name)
			}
			c := exec.CommandContext(t.Context(), path, append(args, from)...)
			c.Env = append(os.Environ(), "PYTHONPATH=python", "PYTHONDONTWRITEBYTECODE=1", "PARLEY_URL="+h.url(), "PARLEY_TOKEN="+token)
			c.Stderr = os.Stderr
			out, err := c.Output()
			if err != nil {
				t.Fatal(err)
			}
			return strings.Fields(string(out))
		}
	}
	for name, numbers := range map[string]func(t *testing.T) []string{
		"Go": ofGo(host), "Go over HTTP": ofGo(byHTTP), "Python": program("python3", "-c", pythonCut),
		"TypeScript":           program("node", withWebSocket, "--input-type=module", "-e", typeScriptCut),
		"TypeScript over HTTP": program("node", withoutWebSocket, "--input-type=module", "-e", typeScriptCut),
	} {
		t.Run(name, func(t *testing.T) {
			got := numbers(t)
			slices.SortFunc(got, func(a, b string) int { return len(a)*100 - len(b)*100 + strings.Compare(a, b) })
			if !slices.Equal(got, want) {
				t.Errorf("messages %v, want %v", got, want)
			}
		})
	}
}
