package actors

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/actors/peers"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/internal/eventually"
	"parley/mailbox/quota"
)

func openQuotas(tb testing.TB, folder string, quotas map[string]int64) *Node {
	return openWith(tb, Options{Folder: folder, Quotas: quotas})
}

// openTimeless opens a node whose clock stands still, so that no effort is forgotten.
func openTimeless(tb testing.TB, quotas map[string]int64) *Node {
	now := time.Now()
	return openWith(tb, Options{Folder: tb.TempDir(), Quotas: quotas, Clock: func() time.Time { return now }})
}

// sendUntilRefused sends messages of the given size until one is refused. It returns the number of accepted messages and
// the error.
func sendUntilRefused(tb testing.TB, from *Agent, to string, bytes, most int) (int, *parley.Error) {
	tb.Helper()
	text := strings.Repeat("x", bytes)
	for i := range most {
		if _, err := from.Send(tb.Context(), to, text); err != nil {
			return i, parley.AsError(err)
		}
	}
	tb.Fatalf("%d messages of %d bytes and none was refused", most, bytes)
	return 0, nil
}

func TestQuotaRefusesOneGuestOnly(t *testing.T) {
	folder := t.TempDir()
	quotas := map[string]int64{"inbox": 4 << 20, "daily": 8 << 20}
	n := openQuotas(t, folder, quotas)
	fae, tom := guest(t, n, "fae"), guest(t, n, "tom")
	before := heapInUse()
	sent, e := sendUntilRefused(t, fae, "@host", 127<<10, 1000)
	if e.Code != parley.QuotaExceeded || e.Hint == "" {
		t.Fatalf("after %d messages: %v", sent, e)
	}
	refused := 0
	eventually.Holds(t, "messages under way are shown as refused", func() bool {
		in, err := fae.Mail().Inbox(t.Context(), view.MessageFilter{All: true})
		if err != nil {
			t.Fatal(err)
		}
		refused = 0
		for _, m := range in.Messages {
			if strings.HasPrefix(m.Refused, "QUOTA_EXCEEDED") && !m.Delivered {
				refused++
			}
		}
		return sent-refused <= 32
	})
	if in, err := n.Host().Mail().Inbox(t.Context(), view.MessageFilter{}); err != nil || len(in.Messages) != sent-refused {
		t.Errorf("the host has %d messages of %d of which %d were refused: %v", len(in.Messages), sent, refused, err)
	}
	if grown := heapInUse() - before; grown > 64<<20 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
	send(t, tom, "@host", "another sender")
	ask(t, fae, parley.Form{To: "@self"})
	eventually.Holds(t, "the day's quota is used up", func() bool {
		in, err := n.Host().Mail().Inbox(t.Context(), view.MessageFilter{})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range in.Messages {
			if err := n.Host().Dismiss(t.Context(), capabilities.FormNumber(m.Number)); err != nil {
				t.Fatal(err)
			}
		}
		_, e = sendUntilRefused(t, fae, "@host", 127<<10, 1000)
		return strings.Contains(e.Message, "written today")
	})
	closeNode(t, n)

	n = openQuotas(t, folder, quotas)
	fae = &Agent{node: n, id: fae.id}
	if _, err := fae.Send(t.Context(), "@host", strings.Repeat("x", 127<<10)); parley.CodeOf(err) != parley.QuotaExceeded {
		t.Errorf("after a restart: %v", err)
	}
	if err := n.Host().Agents().SetQuota(t.Context(), fae, map[string]int64{"daily": -1, "inbox": -1}, false); err != nil {
		t.Fatal(err)
	}
	send(t, fae, "@host", strings.Repeat("x", 127<<10))
	closeNode(t, n)

	n = openQuotas(t, folder, quotas)
	fae = &Agent{node: n, id: fae.id}
	send(t, fae, "@host", strings.Repeat("x", 127<<10))
	if err := n.Host().Agents().SetQuota(t.Context(), fae, nil, true); err != nil {
		t.Fatal(err)
	}
	if _, err := fae.Send(t.Context(), "@host", strings.Repeat("x", 127<<10)); parley.CodeOf(err) != parley.QuotaExceeded {
		t.Errorf("with the node's quotas again: %v", err)
	}
	if err := fae.Agents().SetQuota(t.Context(), fae, map[string]int64{"daily": -1}, false); parley.CodeOf(err) != parley.NotPermitted {
		t.Errorf("a guest raises its own quota: %v", err)
	}
}

func TestMadeAgentsCountForTheirMaker(t *testing.T) {
	folder := t.TempDir()
	quotas := map[string]int64{"forms": 6, "agents": 4}
	n := openQuotas(t, folder, quotas)
	fae, tom := guest(t, n, "fae"), guest(t, n, "tom")
	makeBy := func(by *Agent, kind events.AgentKind, name string) (*Agent, error) {
		return by.Make(t.Context(), NewAgent{Kind: kind, Name: name})
	}
	one, err := makeBy(fae, events.Guest, "one")
	if err != nil {
		t.Fatal(err)
	}
	two, err := makeBy(one, events.Host, "two")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := makeBy(two, events.Guest, "three"); err != nil {
		t.Fatal(err)
	}
	if _, err := makeBy(one, events.Guest, "four"); err != nil {
		t.Fatal(err)
	}
	if _, err := makeBy(two, events.Guest, "five"); parley.CodeOf(err) != parley.QuotaExceeded {
		t.Errorf("five agents: %v", err)
	}
	asks := func(a *Agent) error {
		_, err := a.Ask(t.Context(), parley.Form{To: "@self", Description: "d", Fields: textField("f")})
		return err
	}
	for range 2 {
		for _, a := range []*Agent{fae, one, two} {
			if err := asks(a); err != nil {
				t.Fatal(err)
			}
		}
	}
	check := func(when string) {
		t.Helper()
		for name, a := range map[string]*Agent{"fae": fae, "one": one, "two": two} {
			eventually.Holds(t, when+", "+name+" is refused a seventh form", func() bool {
				return parley.CodeOf(asks(a)) == parley.QuotaExceeded
			})
		}
	}
	check("at first")
	if err := asks(tom); err != nil {
		t.Errorf("an agent that it did not make: %v", err)
	}
	u, err := n.Host().Agents().Quota(t.Context(), two)
	if err != nil || u.Agent != fae.id || u.Name != "fae" || u.Used[quota.Forms.String()] != 6 || u.Share != 1 {
		t.Errorf("%+v, %v", u, err)
	}
	if _, err := tom.Agents().Quota(t.Context(), fae); parley.CodeOf(err) != parley.NotPermitted {
		t.Errorf("shown to another guest: %v", err)
	}
	closeNode(t, n)

	n = openQuotas(t, folder, quotas)
	fae, one, two = &Agent{node: n, id: fae.id}, &Agent{node: n, id: one.id}, &Agent{node: n, id: two.id}
	currentStatus(t, two) // reads its mailbox
	eventually.Holds(t, "the others of the account are read", func() bool {
		return n.accounts.use(two.id, n.now()).Used[quota.Forms.String()] == 6
	})
	check("after a restart")
}

func TestPatternsUseProcessorQuota(t *testing.T) {
	n := openTimeless(t, map[string]int64{"processor": 60})
	fae, tom := guest(t, n, "fae"), guest(t, n, "tom")
	others := 0
	asks := func(a *Agent) error {
		fields := heavyFields(4)
		fields[0].Label = fmt.Sprint(others) // equal fields are compiled once
		others++
		_, err := a.Ask(t.Context(), parley.Form{To: "@host", Description: "d", Fields: fields})
		return err
	}
	var err error
	for i := 0; err == nil && i < 1000; i++ {
		err = asks(fae)
	}
	if parley.CodeOf(err) != parley.QuotaExceeded || !strings.Contains(err.Error(), "processor") {
		t.Fatalf("got %v", err)
	}
	ask(t, fae, parley.Form{To: "@host"}) // a form without patterns costs nothing
	for _, a := range []*Agent{tom, n.Host()} {
		if err := asks(a); err != nil {
			t.Errorf("another: %v", err)
		}
	}
	if _, err := fae.Compile(heavyFields(1)); parley.CodeOf(err) != parley.QuotaExceeded {
		t.Errorf("compiled without asking: %v", err)
	}
	q, err := n.Quotas(t.Context())
	if err != nil || len(q.Heaviest) == 0 || q.Heaviest[0].Name != "fae" || q.Heaviest[0].Quota != "processor" || q.Heaviest[0].Share < 0.9 {
		t.Errorf("%+v, %v", q.Heaviest, err)
	}
}

func TestEffortRecoversWithTime(t *testing.T) {
	e := effort{at: 1000, spent: 10 * time.Second}
	e.settle(1000+60_000, 6000)
	if e.spent != 4*time.Second {
		t.Errorf("%v remain after a minute", e.spent)
	}
	if n := e.inMinute(1000 + 60_000); n != 800 {
		t.Errorf("%d ms a minute", n)
	}
	e.settle(1000+1, 6000) // a clock that was set back
	if e.spent != 4*time.Second {
		t.Errorf("%v remain after a millisecond", e.spent)
	}
	if e.settle(1<<40, 6000); e.spent != 0 {
		t.Errorf("%v remain at the end", e.spent)
	}
}

func TestInvalidAnswersUseAnswererQuota(t *testing.T) {
	n := openTimeless(t, map[string]int64{"processor": 20})
	fae := guest(t, n, "fae")
	field := events.Field{Name: "f", Pattern: json.RawMessage(`{"pattern":"^(a|aa)*$","minLength":1000000}`)}
	asked, err := n.Host().Ask(t.Context(), parley.Form{To: "fae", Description: "d", Fields: []events.Field{field}})
	if err != nil {
		t.Fatal(err)
	}
	ref, wrong := capabilities.FormID(asked.Form), parley.Answer{Values: map[string]capabilities.Value{"f": capabilities.String(strings.Repeat("a", 200_000))}}
	for i := 0; ; i++ {
		_, err := fae.Answer(t.Context(), ref, wrong)
		if parley.CodeOf(err) == parley.QuotaExceeded {
			break
		}
		if parley.CodeOf(err) != parley.InvalidAnswer || i == 100 {
			t.Fatalf("answer %d: %v", i, err)
		}
	}
}

func TestQuotaRefusesOnePeerOnly(t *testing.T) {
	n := openWith(t, Options{Folder: t.TempDir(), Peers: "127.0.0.1:0", PeerQuotas: map[string]int64{"inbox": 1 << 20, "forms": 5, "grants": 3}})
	m, friend := newHostilePeer(t, n, "hostile"), newHostilePeer(t, n, "friend")
	for name, m := range map[string]*hostileNode{"hostile": m, "friend": friend} {
		send(t, n.Host(), name, "write to me")
		awaitEvent[*events.MessagePosted](m)
	}
	flood := func(m *hostileNode) (arrived int, last peers.Ack) {
		for range 40 {
			last = m.deliver(events.OutboxCopy, n.host, m.message(n.host, capabilities.ID{}, events.Span{Words: strings.Repeat("x", 100<<10)}))
			if last.Status != peers.AckAccepted {
				return arrived, last
			}
			arrived++
		}
		return arrived, last
	}
	arrived, last := flood(m)
	m.wantRefused(last, "QUOTA_EXCEEDED")
	if arrived != 10 {
		t.Errorf("%d messages of 100 KiB have arrived", arrived)
	}
	friend.wantAccepted(friend.deliver(events.OutboxCopy, n.host, friend.message(n.host, capabilities.ID{})))
	q, err := n.Quotas(t.Context())
	if err != nil || len(q.PeersUsed) != 2 || q.PeersUsed[0].Node != m.id || q.PeersUsed[0].Name != "hostile" || q.PeersUsed[0].Quota != "inbox" {
		t.Errorf("%+v, %v", q.PeersUsed, err)
	}
	if err := n.Host().Peers().Limit(t.Context(), m.id, map[string]int64{"inbox": 3 << 20}, false); err != nil {
		t.Fatal(err)
	}
	if more, last := flood(m); more != 20 || last.Code != "QUOTA_EXCEEDED" {
		t.Errorf("%d more messages, then %+v", more, last)
	}
	for range 5 {
		friend.wantAccepted(friend.deliver(events.OutboxCopy, n.host, friend.form(n.host, capabilities.ID{})))
	}
	friend.wantRefused(friend.deliver(events.OutboxCopy, n.host, friend.form(n.host, capabilities.ID{})), "QUOTA_EXCEEDED")
	if err := n.Host().Peers().Limit(t.Context(), friend.newUnknownNode().id, map[string]int64{"inbox": 1}, false); parley.CodeOf(err) != parley.NodeUnknown {
		t.Errorf("an unknown node: %v", err)
	}
}

// TestFormsOfAGuestElsewhereHoldUpNoOther has a guest use up what a node has for the patterns of another node's forms. Its forms wait there.
// What its host sends arrives, and is answered.
func TestFormsOfAGuestElsewhereHoldUpNoOther(t *testing.T) {
	t.Parallel()
	a, b := openClusterNode(t, "a", false), openClusterNode(t, "b", true)
	closeNode(t, b.Node)
	now := time.Now()
	b.options.PeerQuotas, b.options.Clock = map[string]int64{"processor": 1}, func() time.Time { return now } // no effort is forgotten
	b.open(t)
	connectHosts(t, b, a)
	fae := guest(t, a.Node, "fae")
	adoptReference(t, fae, send(t, a.Host(), "fae", "@b").Message, "b", "b")
	for i := range 8 {
		fields := heavyFields(4)
		fields[0].Label = fmt.Sprint(i) // equal fields are compiled once
		if _, err := fae.Ask(t.Context(), parley.Form{To: "b", Description: "d", Fields: fields}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 40 {
		awaitMessage(t, b.Host(), send(t, a.Host(), "b", fmt.Sprint("message ", i)).Message)
	}
	asked := ask(t, a.Host(), parley.Form{To: "b"})
	awaitMessage(t, b.Host(), asked.Form)
	if hasDelivered(t, fae) {
		t.Error("the guest's forms did not wait")
	}
}
