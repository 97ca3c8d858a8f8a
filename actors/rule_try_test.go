package actors

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/oklog/ulid/v2"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/rule"
	"parley/persistence/projection"
)

// askedCall asks for a call of an agent, and returns its form; zero if a rule decided.
func askedCall(t *testing.T, a *Agent, line string) capabilities.ID {
	t.Helper()
	p, err := a.Approve(t.Context(), mailbox.RequestApproval{Permission: parley.Permission{Tool: "Bash", Input: fmt.Sprintf(`{"command":%q}`, line), Folder: "/srv/shop"}})
	if err != nil {
		t.Fatal(err)
	}
	return p.Form
}

// decideCall decides on a call as the host.
func decideCall(t *testing.T, n *Node, form capabilities.ID, decision string, rule string) {
	t.Helper()
	m, err := n.Host().Message(t.Context(), capabilities.FormID(form))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range n.Host().Decide(t.Context(), "", []parley.Decision{{Form: form, Digest: m.Digest, Decision: decision, Rule: rule}}) {
		if d.Err != nil {
			t.Fatal(d.Err)
		}
	}
}

// TestRulesAreTriedOnThePast tries what a call offers on those before, also after a restart with no index.
func TestRulesAreTriedOnThePast(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	n := openNode(t, folder)
	fae, bob := guest(t, n, "fae"), guest(t, n, "bob")
	for _, past := range []struct{ line, decision string }{
		{"git push origin main", mailbox.Once}, {"git push origin main", mailbox.Once}, {"git push origin v1", mailbox.Deny}, {"make", mailbox.Deny}, {"git push origin v2", ""},
	} {
		form := askedCall(t, fae, past.line)
		if past.decision != "" {
			decideCall(t, n, form, past.decision, "")
		}
	}
	decideCall(t, n, askedCall(t, bob, "git push origin main"), mailbox.Deny, "")
	form := askedCall(t, fae, "git push origin main")
	try := func(n *Node, a capabilities.ID) view.Trial {
		t.Helper()
		m, offers, err := n.Host().Rules().OffersOf(t.Context(), capabilities.FormID(form))
		if err != nil {
			t.Fatal(err)
		}
		var rules []TriedRule
		for _, o := range offers {
			rules = append(rules, TriedRule{"Bash", o.Rule, true}, TriedRule{"Bash", o.Rule, false})
		}
		open := m.Permission
		if a != m.From {
			open = nil
		}
		tried, err := AgentOf(n, a).Rules().Try(t.Context(), rules, open)
		if err != nil {
			t.Fatal(err)
		}
		return tried
	}
	check := func(n *Node) {
		t.Helper()
		got := try(n, fae.id)
		type counts struct{ covered, allowed, denied, against int }
		for i, want := range []counts{{2, 2, 0, 0}, {2, 2, 0, 2}, {4, 2, 1, 1}, {4, 2, 1, 2}} {
			if r := got.Rules[i]; (counts{r.Covered, r.Allowed, r.Denied, r.Against}) != want {
				t.Errorf("%s, allow %v: %+v, want %+v", r.Words, r.Allow, r, want)
			}
		}
		if e := got.Rules[2].Examples; got.Calls != 5 || len(e) != 1 || e[0].Number != 2 || e[0].Input != `{"command":"git push origin v1"}` {
			t.Errorf("%d calls, against the rule: %+v", got.Calls, e)
		}
		if other := try(n, bob.id); other.Calls != 1 || other.Rules[2].Denied != 1 {
			t.Errorf("of another: %+v", other)
		}
	}
	check(n)
	closeNode(t, n)
	if err := os.Remove(filepath.Join(folder, indexFile)); err != nil {
		t.Fatal(err)
	}
	n = openNode(t, folder)
	check(n)
	// What a rule decides is nobody's decision.
	m, err := n.Host().Message(t.Context(), capabilities.FormID(form))
	if err != nil {
		t.Fatal(err)
	}
	decideCall(t, n, form, mailbox.Always, m.Permission.Offers[1].ID)
	if form := askedCall(t, AgentOf(n, fae.id), "git push origin v9"); !form.IsZero() {
		t.Fatal("the rule decides nothing")
	}
	rules, err := AgentOf(n, fae.id).Rules().List(t.Context())
	if err != nil || len(rules) != 1 {
		t.Fatal(rules, err)
	}
	got, err := AgentOf(n, fae.id).Rules().Try(t.Context(), []TriedRule{{rules[0].Tool, rules[0].Covers, rules[0].Allow}}, nil)
	if err != nil || got.Calls != 6 || got.Rules[0].Covered != 5 || got.Rules[0].Allowed != 3 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := fae.Rules().Try(t.Context(), make([]TriedRule, maxTried+1), nil); parley.CodeOf(err) != parley.TooLarge {
		t.Errorf("many rules: %v", err)
	}
}

// TestRulesFollowFromDecisionsAlike proposes rules, and makes one. What was decided otherwise once, or is risky, is not proposed.
func TestRulesFollowFromDecisionsAlike(t *testing.T) {
	t.Parallel()
	n := openNode(t, t.TempDir())
	fae, bob := guest(t, n, "fae"), guest(t, n, "bob")
	several := func(times int, line, decision string) {
		t.Helper()
		for i := range times {
			text := line
			if strings.Contains(line, "%d") {
				text = fmt.Sprintf(line, i)
			}
			decideCall(t, n, askedCall(t, fae, text), decision, "")
		}
	}
	isRisky := func(p *parley.Permission) bool { return strings.Contains(p.Input, "danger") }
	propose := func() (words []string) {
		t.Helper()
		got, err := fae.Rules().Propose(t.Context(), isRisky)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range got.Rules {
			words = append(words, fmt.Sprintf("%v %s %d", r.Allow, r.Words, r.Covered))
		}
		return words
	}
	want := func(all ...string) {
		t.Helper()
		if got := propose(); !slices.Equal(got, all) {
			t.Errorf("proposed are %q, want %q", got, all)
		}
	}
	const pushes = "git push to origin, any branches or tags, without options, in /srv/shop"
	several(4, "git push origin v%d", mailbox.Once)
	several(5, "make danger", mailbox.Once)
	several(4, "make", mailbox.Deny)
	want()
	several(1, "git push origin v7", mailbox.Once)
	want("true " + pushes + " 5")
	several(1, "make", mailbox.Deny)
	want("true "+pushes+" 5", "false exactly: make, in /srv/shop 5")
	several(5, "git push origin main", mailbox.Once) // the narrower covers fewer
	want("true "+pushes+" 10", "true exactly: git push origin main, in /srv/shop 5", "false exactly: make, in /srv/shop 5")
	id := proposalID(&TriedRule{Tool: "Bash", Allow: true, Covers: rule.Read(&parley.Permission{Tool: "Bash", Folder: "/srv/shop", Input: `{"command":"git push origin v7"}`}).Offers()[0]})
	if _, err := bob.Rules().MakeProposed(t.Context(), fae, id, 0, isRisky); parley.CodeOf(err) != parley.NotPermitted {
		t.Errorf("by another: %v", err)
	}
	if _, err := fae.Rules().MakeProposed(t.Context(), fae, id, 0, isRisky); parley.CodeOf(err) != parley.NotPermitted {
		t.Errorf("by the agent itself: %v", err)
	}
	if _, err := n.Host().Rules().MakeProposed(t.Context(), fae, "always-call-0", 0, isRisky); parley.CodeOf(err) != parley.InvalidArgument {
		t.Errorf("what is not proposed: %v", err)
	}
	added, err := n.Host().Rules().MakeProposed(t.Context(), fae, id, 0, isRisky)
	if err != nil || added.Rule.IsZero() || added.Words != pushes {
		t.Fatalf("%+v, %v", added, err)
	}
	if !askedCall(t, fae, "git push origin v99").IsZero() {
		t.Error("the rule decides nothing")
	}
	want("false exactly: make, in /srv/shop 5")
	several(1, "make", mailbox.Once)
	want()
}

// BenchmarkTryRules tries the rules that a push offers on 100,000 calls of one tool in one folder, no two of which are equal.
func BenchmarkTryRules(b *testing.B) {
	x, err := projection.Open(b.Context(), filepath.Join(b.TempDir(), "index"))
	if err != nil {
		b.Fatal(err)
	}
	defer x.Close() //nolint:errcheck // only read from
	node := capabilities.NodeOf([32]byte{7})
	id := func(kind byte, n int) capabilities.ID {
		return capabilities.ID{ULID: ulid.ULID{0: 1, 1: kind, 13: byte(n >> 16), 14: byte(n >> 8), 15: byte(n)}, Node: node}
	}
	fae, host := id(1, 0), id(2, 0)
	lines := []string{"git push origin feature-%d", "make test-%d", "go test ./pkg%d -run 'TestOne'", "cat src/file%d.go | head -20", "git log --oneline -%d", "npm run build -- --id=%d", "grep -rn \"word%d\" src", "ls -l dir%d"}
	const all, atOnce = 100_000, 1000
	version := uint64(1)
	for n := 0; n < all; n += atOnce {
		var evs []events.Recorded
		for i := n; i < n+atOnce; i++ {
			input := fmt.Sprintf(`{"command":%q,"description":"What it is for"}`, fmt.Sprintf(lines[i%len(lines)], i))
			evs = append(evs,
				events.Recorded{At: capabilities.Time(i + 1), Event: &events.FormRequested{Number: uint64(i), ID: id(3, i), From: fae, To: host, Kind: events.Approval, Title: "Bash", Description: input, Call: &events.Call{Folder: "/srv/shop"}}},
				events.Recorded{At: capabilities.Time(i + 1), Event: &events.FormAnswered{Form: id(3, i), By: host, Values: capabilities.Record(map[string]capabilities.Value{"decision": capabilities.String("once")})}})
		}
		if err := x.Add(b.Context(), fae, version, evs); err != nil {
			b.Fatal(err)
		}
		version += uint64(len(evs))
	}
	read := rule.Read(&parley.Permission{Tool: "Bash", Folder: "/srv/shop", Input: `{"command":"git push origin main"}`})
	rules := []TriedRule{{"Bash", read.Exact(), true}}
	for _, c := range read.Offers() {
		rules = append(rules, TriedRule{"Bash", c, true})
	}
	b.ResetTimer()
	for range b.N {
		t, err := tryAll(rules, nil, nil, nil, func(tool string, before int64, try func([]projection.Call)) error {
			calls, err := x.Calls(b.Context(), fae, tool, before, triedAtOnce)
			try(calls)
			return err
		})
		if err != nil || t.Calls != all || t.Rules[1].Covered != all/len(lines) || t.More {
			b.Fatalf("%+v, %v", t, err)
		}
	}
}

// TestNoRuleIsMadeOfACallOfHighRisk makes rules of calls that a guest decided, of which the host has no message: what the call is
// stands with who asked. One that allows a call of high risk is refused, one that denies it is not.
func TestNoRuleIsMadeOfACallOfHighRisk(t *testing.T) {
	t.Parallel()
	n := openNode(t, t.TempDir())
	fae, bob := guest(t, n, "fae"), guest(t, n, "bob")
	send(t, n.Host(), "fae", "ask @bob")
	p, err := fae.Approve(t.Context(), mailbox.RequestApproval{To: "@mail/0/bob", Permission: parley.Permission{Tool: "Bash", Folder: "/srv/shop", Input: `{"command":"make danger"}`}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bob.Answer(t.Context(), capabilities.FormID(p.Form), parley.Answer{Values: map[string]capabilities.Value{"decision": capabilities.String(mailbox.Once)}}); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Host().Message(t.Context(), capabilities.FormID(p.Form)); err == nil {
		t.Fatal("the host has the call")
	}
	isRisky := func(p *parley.Permission) bool { return strings.Contains(p.Input, "danger") }
	if _, err := n.Host().Rules().Make(t.Context(), fae, p.Form, "", true, 0, isRisky); parley.CodeOf(err) != parley.InvalidAnswer {
		t.Errorf("a rule that allows it: %v", err)
	}
	if made, err := n.Host().Rules().Make(t.Context(), fae, p.Form, "", false, 0, isRisky); err != nil || made.Allow {
		t.Errorf("a rule that denies it: %+v, %v", made, err)
	}
}
