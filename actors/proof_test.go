package actors

import (
	"strings"
	"testing"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/passkeys"
	"parley/internal/eventually"
	"parley/internal/passkeytest"
	"parley/mailbox"
	"parley/mailbox/proof"
)

// provenBy returns the proof of a form that an agent has made, once it was verified by the node's key alone.
func provenBy(t *testing.T, a *Agent, form capabilities.ID, digestOnly bool) (*proof.Proof, string) {
	t.Helper()
	got, err := a.Mail().Prove(t.Context(), capabilities.FormID(form), digestOnly)
	if err != nil {
		t.Fatal(err)
	}
	p, err := proof.Read([]byte(got.Proof), a.node.id)
	if err != nil {
		t.Fatal(err)
	}
	text := got.Proof
	for _, x := range p.Log {
		for _, part := range x.Shown {
			text += string(part.Content)
		}
	}
	return p, text
}

// TestProofShowsNothingElse proves a call while other calls and mail of the agent are under way, also after a restart, and from the archive of the log.
func TestProofShowsNothingElse(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	n := openNode(t, folder)
	fae, bob := guest(t, n, "fae"), guest(t, n, "bob")
	alone := askedCall(t, fae, "deploy one")
	decideCall(t, n, alone, mailbox.Once, "")
	first := askedCall(t, fae, "deploy two")
	beside := askedCall(t, fae, "private three") // its agent's status now has both
	decideCall(t, n, first, mailbox.Deny, "")
	several := []capabilities.ID{askedCall(t, fae, "private four"), askedCall(t, fae, "private five")}
	var decisions []parley.Decision
	for _, form := range several {
		m, err := n.Host().Message(t.Context(), capabilities.FormID(form))
		if err != nil {
			t.Fatal(err)
		}
		decisions = append(decisions, parley.Decision{Form: form, Digest: m.Digest, Decision: mailbox.Once})
	}
	for _, d := range n.Host().Decide(t.Context(), "", decisions) { // in one commit
		if d.Err != nil {
			t.Fatal(d.Err)
		}
	}
	check := func(n *Node) {
		t.Helper()
		for _, by := range []*Agent{n.Host(), AgentOf(n, fae.id)} {
			p, text := provenBy(t, by, alone, false)
			if p.Mailbox != fae.id || !p.Outcome.Allowed || p.Outcome.By != n.host || !p.Events[0].Shown || !p.Events[1].Shown || !strings.Contains(text, "deploy one") {
				t.Errorf("%+v", p)
			}
			p, text = provenBy(t, by, first, false)
			if p.Outcome.Decision != mailbox.Deny || p.Outcome.Allowed || !p.Events[0].Shown || p.Events[1].Shown {
				t.Errorf("%+v", p)
			}
			if strings.Contains(text, "private") {
				t.Errorf("it has another call: %s", text)
			}
			if p, text = provenBy(t, by, several[0], false); strings.Contains(text, "five") || !p.Outcome.Allowed || p.Events[1].Shown {
				t.Errorf("it has another call: %+v", p)
			}
			if p, text = provenBy(t, by, alone, true); strings.Contains(text, "deploy") || p.Question != nil || !p.Outcome.Allowed {
				t.Errorf("the digest tells more: %s", text)
			}
		}
	}
	check(n)
	if _, err := n.Host().Mail().Prove(t.Context(), capabilities.FormID(beside), false); parley.CodeOf(err) != parley.InvalidArgument {
		t.Errorf("of an open call: %v", err)
	}
	if _, err := bob.Mail().Prove(t.Context(), capabilities.FormID(alone), false); parley.CodeOf(err) != parley.NoSuchMessage {
		t.Errorf("by another agent: %v", err)
	}
	closeNode(t, n)
	n = openNode(t, folder)
	check(n)
	postLong(t, n, "bob")
	if p, _ := provenBy(t, n.Host(), alone, false); archiveAll(t, n).Last < p.Events[1].Commit {
		t.Fatal("the decision was not archived")
	}
	check(n)
}

// TestProofOfACopy proves a form by the copy of who was asked, and may not look into the asker.
func TestProofOfACopy(t *testing.T) {
	t.Parallel()
	n := openNode(t, t.TempDir())
	fae := guest(t, n, "fae")
	bob, err := fae.Make(t.Context(), NewAgent{Kind: events.Guest, Name: "bob"})
	if err != nil {
		t.Fatal(err)
	}
	asked, err := fae.Ask(t.Context(), parley.Form{To: "bob", Description: "Which port?", Fields: textField("port")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bob.Answer(t.Context(), capabilities.FormID(asked.Form), parley.Answer{Values: text("port", "80")}); err != nil {
		t.Fatal(err)
	}
	for _, by := range []*Agent{fae, bob} {
		p, _ := provenBy(t, by, asked.Form, false)
		if p.Mailbox != by.id || p.Outcome.By != bob.id || string(p.Outcome.Values) != `{"port":"80"}` || p.Digest.String() == "" {
			t.Errorf("%+v", p)
		}
	}
}

// TestProofSaysWhichReferenceWasSigned proves what was given in answer to a request with a passkey, at the home and on the answerer's node.
func TestProofSaysWhichReferenceWasSigned(t *testing.T) {
	t.Parallel()
	a, b := openClusterNode(t, "a", false), openClusterNode(t, "b", true)
	connectHosts(t, b, a)
	makeFolder(t, b.Host(), "notes")
	makeFolder(t, b.Host(), "other")
	var challenges passkeys.Challenges
	SetChallenges(b.Node, challenges.Answer)
	d := passkeytest.NewDevice(t, signedOrigin)
	if err := b.Host().do(t.Context(), mailbox.AddPasskey{PasskeyAdded: d.Added(t, "phone")}); err != nil {
		t.Fatal(err)
	}
	asked, err := a.Host().Requests().Send(t.Context(), parley.Request{To: "b", Text: "notes", Name: "notes", Passkey: true})
	if err != nil {
		t.Fatal(err)
	}
	awaitMessage(t, b.Host(), asked.Form)
	ref := capabilities.FormID(asked.Form)
	if err := b.Host().Names().Copy(t.Context(), "notes", "chosen", capabilities.Facet{}); err != nil {
		t.Fatal(err)
	}
	sign := func() parley.Answer {
		ans := parley.Answer{Texts: []parley.FieldText{{Name: "value", Text: "chosen"}}}
		s, _, err := PasskeysOf(b.Host()).Statement(t.Context(), ref, ans)
		if err != nil {
			t.Fatal(err)
		}
		ans.Passkey = d.Sign(t, challenges.Ask(b.host, s))
		return ans
	}
	signed := sign()
	if err := b.Host().do(t.Context(), mailbox.UnbindName{Name: "chosen"}); err != nil {
		t.Fatal(err)
	}
	if err := b.Host().Names().Copy(t.Context(), "other", "chosen", capabilities.Facet{}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Host().Answer(t.Context(), ref, signed); parley.CodeOf(err) != parley.PasskeyRefused {
		t.Errorf("the name that was signed leads elsewhere: %v", err)
	}
	if _, err := b.Host().Answer(t.Context(), ref, sign()); err != nil {
		t.Fatal(err)
	}
	for _, n := range []*clusterNode{a, b} {
		eventually.Holds(t, "the form has ended", func() bool { return shownTo(t, n.Host(), asked.Form).Outcome != nil })
		if p, _ := provenBy(t, n.Host(), asked.Form, false); len(p.Signed) != 1 || !strings.Contains(string(p.Outcome.Values), resourceNamed(t, b.Node, "other").String()) {
			t.Errorf("the proof of %s has %d signatures of %s", n.options.Name, len(p.Signed), p.Outcome.Values)
		}
	}
}
