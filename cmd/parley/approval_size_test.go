package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"parley"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/gateway/client"
)

// largestInput is the size of the largest input of a call, in bytes.
const largestInput = 256 << 10

// inputOf returns the input of a call that writes a file. Its text takes twice its size, and more, wherever it stands in
// other JSON.
func writeOf(size int, file string) string {
	const piece = `\"<\\&>\n`
	input := `{"file_path":"` + file + `","content":"`
	const end = `last"}`
	left := size - len(input) - len(end)
	return input + strings.Repeat(piece, left/len(piece)) + strings.Repeat("x", left%len(piece)) + end
}

// TestLargestCallIsShownAndDecided asks about calls of the largest input with the socket's client and the hook, and
// decides them by the digest of what permit show prints. A call of one byte more is refused, and nothing is lost.
func TestLargestCallIsShownAndDecided(t *testing.T) {
	t.Parallel()
	state := nodeTest(t)
	c := onceClient(t, state)
	if err := c.Call(t.Context(), "make_agent", api.MakeAgentRequest{Kind: "guest", Name: "fae"}, nil); err != nil {
		t.Fatal(err)
	}
	fae := c.ActingAs("fae")
	for i, decision := range []string{"allow", "deny"} {
		input := writeOf(largestInput, fmt.Sprintf("/srv/%d", i))
		asked, err := fae.Approve(t.Context(), client.Approval{Tool: "Write", Input: json.RawMessage(input)})
		if err != nil {
			t.Fatal(err)
		}
		digest := digestAbout(t, c, fmt.Sprintf("/srv/%d", i))
		decideLargest(t, state, digest, input, decision)
		if d, err := asked.Await(t.Context()); err != nil || d.Allowed != (decision == "allow") || d.Outcome.Digest != digest {
			t.Errorf("%s: %+v %v", decision, d, err)
		}
	}
	_, err := fae.Approve(t.Context(), client.Approval{Tool: "Write", Input: json.RawMessage(writeOf(largestInput+1, "/srv/over"))})
	if e := parley.AsError(err); e.Code != parley.TooLarge || !strings.Contains(e.Message, "262145 bytes") || e.Hint == "" {
		t.Errorf("one byte more: %v", err)
	}

	input := writeOf(largestInput, "/srv/hook")
	request := func(input string) string {
		return `{"session_id":"s","cwd":"/home/fae/app","hook_event_name":"PermissionRequest","tool_name":"Write","tool_input":` + input + `}`
	}
	hook := startHookOn(t, state, request(input))
	awaitCall(t, state, "/srv/hook")
	decideLargest(t, state, digestAbout(t, c, "/srv/hook"), input, "allow")
	if err := hook.command.Wait(); err != nil || !strings.Contains(hook.out.String(), `"behavior":"allow"`) {
		t.Errorf("the hook: %v, %.1000s", err, hook.out.String())
	}
	out, errs, exit := runTest(t.Context(), state, strings.NewReader(request(writeOf(largestInput+1, "/srv/over"))), "hook", "claude-code", "--wait-anyway")
	if exit != 0 || !strings.Contains(out+errs, "over the limit of 262144") || strings.Contains(out, `"behavior"`) {
		t.Errorf("one byte more in the hook: %d, %.1000s %.1000s", exit, out, errs)
	}
	out, errs, exit = runTest(t.Context(), state, nil, "permit", "ls", "--all", "--json")
	if exit != 0 || strings.Count(out, `"digest"`) != 3 || strings.Contains(out, "/srv/over") {
		t.Errorf("%d calls, %d, %s", strings.Count(out, `"digest"`), exit, errs)
	}
}

// digestAbout returns the digest of the approval that waits for the client's agent and names a file.
func digestAbout(t *testing.T, c *client.Client, file string) string {
	t.Helper()
	for m, err := range c.List(t.Context(), client.View{Pending: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(m.Description, `"`+file+`"`) {
			return m.Digest
		}
	}
	t.Fatalf("no approval names %s", file)
	return ""
}

// decideLargest checks that permit show has the whole of a call that waits, and decides it by its digest.
func decideLargest(t *testing.T, state, digest, input, decision string) {
	t.Helper()
	out, errs, exit := runTest(t.Context(), state, nil, "permit", "show", digest)
	if exit != 0 || !strings.Contains(out, `last`) || len(out) < largestInput/2 {
		t.Errorf("shown with %d, %d bytes, %s", exit, len(out), errs)
	}
	out, errs, exit = runTest(t.Context(), state, nil, "permit", "show", digest, "--json")
	var shown pendingCall
	var compact bytes.Buffer
	if err := json.Unmarshal([]byte(out), &shown); err != nil || exit != 0 || json.Compact(&compact, shown.Input) != nil || compact.String() != input {
		t.Errorf("shown as JSON with %d, %v, %d bytes, %s", exit, err, compact.Len(), errs)
	}
	if _, errs, exit := runTest(t.Context(), state, nil, "permit", decision, digest); exit != 0 {
		t.Fatalf("%s: %d, %s", decision, exit, errs)
	}
}

// TestRuleForLargestCallIsShort makes a rule for a call of the largest input.
func TestRuleForLargestCallIsShort(t *testing.T) {
	t.Parallel()
	state := nodeTest(t)
	c := onceClient(t, state)
	if err := c.Call(t.Context(), "make_agent", api.MakeAgentRequest{Kind: "guest", Name: "fae"}, nil); err != nil {
		t.Fatal(err)
	}
	approval := api.ApproveRequest{Acting: api.Acting{As: "fae"}, Approval: parley.Approval{Tool: "Write", Input: json.RawMessage(writeOf(largestInput, "/srv/a"))}}
	var asked struct {
		Form             capabilities.ID
		Decided, Allowed bool
	}
	if err := c.Call(t.Context(), "approve", approval, &asked); err != nil || asked.Decided {
		t.Fatal(asked, err)
	}
	if _, errs, exit := runTest(t.Context(), state, nil, "permit", "allow", asked.Form.String(), "--always"); exit != 0 {
		t.Fatal(errs)
	}
	if err := c.Call(t.Context(), "approve", approval, &asked); err != nil || !asked.Decided || !asked.Allowed {
		t.Errorf("again: %+v %v", asked, err)
	}
	out, _, _ := runTest(t.Context(), state, nil, "rules", "ls", "fae", "--json")
	if !strings.Contains(out, `"input":"sha256:`) || len(out) > 2000 {
		t.Errorf("the rule: %.2000s", out)
	}
	if out, _, _ = runTest(t.Context(), state, nil, "rules", "ls", "fae"); !strings.Contains(out, "exactly the long input with the SHA-256 digest ") {
		t.Errorf("the rule: %.2000s", out)
	}
}
