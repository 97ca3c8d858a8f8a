package actors

import (
	"strings"
	"testing"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/mailbox"
)

// TestApprovalKeyCoversOneCall checks that an approval under a key allows one call of one agent. A guest cannot approve its
// own calls.
func TestApprovalKeyCoversOneCall(t *testing.T) {
	n := openNode(t, t.TempDir())
	fae := guest(t, n, "fae")
	const harmless, harmful = `{"command":"ls"}`, `{"command":"rm -rf /"}`
	own := mailbox.RequestApproval{Permission: parley.Permission{Tool: "shell", Input: harmless}, To: "@self", Key: "own"}
	p, err := fae.Approve(t.Context(), own)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fae.Answer(t.Context(), capabilities.FormID(p.Form), parley.Answer{Values: text("decision", mailbox.Once)}); err != nil {
		t.Fatal(err)
	}
	if allowed, o, err := fae.AwaitApproval(t.Context(), capabilities.FormID(p.Form)); err != nil || allowed || o.Status != view.StatusAnswered {
		t.Fatalf("fae allows itself a call: %v, %+v, %v", allowed, o, err)
	}
	if again, err := fae.Approve(t.Context(), own); err != nil || again.Allowed {
		t.Fatalf("asked again, fae allows itself a call: %+v, %v", again, err)
	}
	own.To = ""
	if again, err := fae.Approve(t.Context(), own); parley.CodeOf(err) != parley.InvalidArgument || again.Allowed {
		t.Fatalf("its own answer passes for the host's: %+v, %v", again, err)
	}

	asked := mailbox.RequestApproval{Permission: parley.Permission{Tool: "shell", Input: harmless}, Key: "k"}
	if p, err = fae.Approve(t.Context(), asked); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Host().Answer(t.Context(), capabilities.FormNumber(0), parley.Answer{Digest: strings.Repeat("0", 64), Values: text("decision", mailbox.Once)}); parley.CodeOf(err) != parley.InvalidArgument {
		t.Fatalf("a call that was not shown is decided: %v", err)
	}
	if _, err := n.Host().Answer(t.Context(), capabilities.FormNumber(0), parley.Answer{Digest: digestOf(t, fae, p.Form), Values: text("decision", mailbox.Once)}); err != nil {
		t.Fatal(err)
	}
	if allowed, _, err := fae.AwaitApproval(t.Context(), capabilities.FormID(p.Form)); err != nil || !allowed {
		t.Fatalf("the host allowed it: %v, %v", allowed, err)
	}
	if again, err := fae.Approve(t.Context(), asked); err != nil || !again.Allowed || again.Form != p.Form {
		t.Fatalf("the same again: %+v, %v", again, err)
	}
	for _, other := range []mailbox.RequestApproval{
		{Permission: parley.Permission{Tool: "shell", Input: harmful}, Key: "k"}, {Permission: parley.Permission{Tool: "terminal", Input: harmless}, Key: "k"},
		{Permission: parley.Permission{Tool: "shell", Input: harmless}, To: "@self", Key: "k"}, {Permission: parley.Permission{Tool: "shell", Input: harmless, Reason: "why"}, Key: "k"},
		{Permission: parley.Permission{Tool: "shell", Input: harmless, Part: "one"}, Key: "k"},
	} {
		if again, err := fae.Approve(t.Context(), other); parley.CodeOf(err) != parley.InvalidArgument || again.Allowed {
			t.Errorf("%+v: %+v, %v", other, again, err)
		}
	}
}

// TestPromptKeyNamesOneMessage sends prompts under one key. Only the same text for the same agent is the same prompt.
func TestPromptKeyNamesOneMessage(t *testing.T) {
	n := openNode(t, t.TempDir())
	fae, bob := guest(t, n, "fae"), guest(t, n, "bob")
	first, err := n.Host().Prompt(t.Context(), fae, "look around", "k")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := n.Host().Prompt(t.Context(), fae, "look around", "k"); err != nil || again.Message != first.Message {
		t.Fatalf("the same again: %+v, %v", again, err)
	}
	if _, err := n.Host().Prompt(t.Context(), fae, "delete it all", "k"); parley.CodeOf(err) != parley.InvalidArgument {
		t.Errorf("another text under the key: %v", err)
	}
	if _, err := n.Host().Prompt(t.Context(), bob, "look around", "k"); parley.CodeOf(err) != parley.InvalidArgument {
		t.Errorf("another agent under the key: %v", err)
	}
}
