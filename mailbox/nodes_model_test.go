package mailbox_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/mailboxtest"
)

// TestNodesAgreeDespiteDeliveryFaults delays, repeats and drops deliveries between three nodes. Each form is settled
// once, with the same outcome for all. No agent is reached without a grant. A revocation holds on all nodes.
func TestNodesAgreeDespiteDeliveryFaults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newCluster(t)
		actions := map[string]func(*rapid.T){
			"ask": w.ask, "answer": w.answer, "answer more": w.answer, "forward": w.forward, "cancel": w.cancel, "send": w.send, "send more": w.send,
			"adopt": w.adopt, "revoke": w.revoke, "wait": w.wait, "deliver one": w.deliverOne, "deliver again": w.deliverOne, "deliver more": w.deliverOne,
			"redeliver": w.redeliver, "restart": w.restart, "disconnect": w.disconnect,
		}
		t.Repeat(actions)
		w.Offline = nil
		w.Deliver(false)
		for _, name := range w.Agents { // expires the forms whose deadline has passed
			w.Now += 100
			w.Must(name, mailbox.ExpireForms{})
		}
		w.Deliver(true)
		w.redeliver(t)
		w.checkForms(t)
		w.checkGrants(t)
		w.CheckReplay()
		checkCounts(t, w.Harness)
	})
}

// cluster is a Harness on three nodes. It records all deliveries.
type cluster struct {
	*mailboxtest.Harness
	delivered []func()           // repeats a delivery to another node
	mayReach  map[[2]string]bool // by agent and node: whether the node may reach the agent
	checked   map[string]int     // by agent: number of events checked
}

func newCluster(t *rapid.T) *cluster {
	w := &cluster{Harness: mailboxtest.New(t), mayReach: map[[2]string]bool{}, checked: map[string]int{}}
	w.SkipChecksums = true
	w.OnRefusal = func(string, string, string) {}
	for _, name := range []string{"h@A", "a@A", "h@B", "b@B", "h@C", "c@C"} {
		w.Add(name)
	}
	w.NameAgents()
	w.Introduce("h@A", "h@B")
	w.Introduce("h@B", "h@C")
	w.checkNewEvents(t)
	return w
}

func (w *cluster) anyAgent(t *rapid.T) string { return rapid.SampledFrom(w.Agents).Draw(t, "who") }

// path draws the path of a name of an agent, or of a value in its mail.
func (w *cluster) path(t *rapid.T, who string) string {
	names := []string{"HOST", "SELF", "A", "B", "C", "a", "b", "c", "x", "y"}
	if n := len(w.Messages(who)); n > 0 {
		names = append(names, "@mail/"+rapid.SampledFrom(numbersTo(n)).Draw(t, "message")+"/@from")
	}
	return rapid.SampledFrom(names).Draw(t, "path")
}

func numbersTo(n int) (all []string) {
	for i := range n {
		all = append(all, string(rune('0'+i%10)))
	}
	return all[:min(n, 10)]
}

// try runs a command that may be refused. An internal error fails the test.
func (w *cluster) try(t *rapid.T, who string, c mailbox.Command) ([]events.Event, bool) {
	evs, err := w.Decide(who, c)
	if code := parley.CodeOf(err); code == parley.Internal {
		t.Fatalf("%s, %+v: %v", who, c, err)
	}
	w.checkNewEvents(t)
	return evs, err == nil
}

func (w *cluster) ask(t *rapid.T) {
	who := w.anyAgent(t)
	a := mailbox.RequestForm{Form: parley.Form{To: w.path(t, who), Description: "d", Fields: []events.Field{{Name: "f"}, {Name: "who", Type: events.Capability}}}}
	if rapid.IntRange(0, 3).Draw(t, "deadline") == 0 {
		a.Deadline = w.Now + 20
	}
	w.try(t, who, a)
}

// form draws a form of an agent.
func (w *cluster) form(t *rapid.T, who string) capabilities.FormRef {
	var forms []capabilities.FormRef
	for _, m := range w.Messages(who) {
		if m.Form != nil && (m.Form.IsOpen() || rapid.IntRange(0, 9).Draw(t, "old") == 0) {
			forms = append(forms, capabilities.FormID(m.ID()))
		}
	}
	if len(forms) == 0 {
		t.Skip("no forms")
	}
	return rapid.SampledFrom(forms).Draw(t, "form")
}

func (w *cluster) answer(t *rapid.T) {
	who := w.anyAgent(t)
	which := w.form(t, who)
	s := w.States[who]
	var c mailbox.SettleForm
	var home capabilities.ID
	var err error
	if rapid.IntRange(0, 3).Draw(t, "no") == 0 {
		c, home, err = s.DraftDecline(which, 0, "no", w.IDsOf(who))
	} else {
		r := mailbox.Reply{Form: which, Answer: parley.Answer{Texts: []events.FieldText{{Name: "f", Text: who}}}}
		if rapid.Bool().Draw(t, "gives") {
			r.Texts = append(r.Texts, events.FieldText{Name: "who", Text: w.path(t, who)})
		}
		c, home, err = s.DraftAnswer(r, w.Now, w.IDsOf(who))
	}
	switch {
	case err != nil:
	case home.Node == s.ID.Node:
		w.try(t, w.NameOf[home], c)
	default:
		w.try(t, who, mailbox.QueueAnswer{Answer: c})
	}
}

func (w *cluster) forward(t *rapid.T) {
	who := w.anyAgent(t)
	form, to := w.form(t, who), w.path(t, who)
	c, home, err := w.States[who].DraftForward(form, to, w.Now)
	switch {
	case err != nil:
	case home.Node == w.States[who].ID.Node:
		w.try(t, w.NameOf[home], c)
	default:
		w.try(t, who, mailbox.QueueForward{Form: form, To: to})
	}
}

func (w *cluster) cancel(t *rapid.T) {
	who := w.anyAgent(t)
	w.try(t, who, mailbox.CancelForm{Form: w.form(t, who)})
}

func (w *cluster) send(t *rapid.T) {
	who := w.anyAgent(t)
	to, value := w.path(t, who), w.path(t, who)
	w.try(t, who, mailbox.PostMessage{To: to, Post: parley.Post{Text: "take @it:" + value}})
}

func (w *cluster) adopt(t *rapid.T) {
	who := w.anyAgent(t)
	name := rapid.SampledFrom([]string{"x", "y"}).Draw(t, "name")
	n := len(w.Messages(who))
	if n == 0 {
		t.Skip("no mail")
	}
	if rapid.IntRange(0, 3).Draw(t, "free it") == 0 {
		w.try(t, who, mailbox.UnbindName{Name: name})
	}
	w.try(t, who, mailbox.AdoptName{Message: mailboxtest.MustRef(rapid.SampledFrom(numbersTo(n)).Draw(t, "message")), Edge: "it", Name: name})
}

func (w *cluster) revoke(t *rapid.T) {
	who := w.anyAgent(t)
	if all := w.States[who].Grants.All(); len(all) > 0 {
		w.try(t, who, mailbox.RevokeCapability{Grant: rapid.SampledFrom(all).Draw(t, "grant").ID})
	}
}

func (w *cluster) wait(t *rapid.T) {
	w.Now += 10
	w.try(t, w.anyAgent(t), mailbox.ExpireForms{})
}

func (w *cluster) disconnect(t *rapid.T) {
	node := rapid.SampledFrom([]string{"A", "B", "C", ""}).Draw(t, "node")
	w.Offline = map[string]bool{node: node != ""}
}

// deliverOne delivers the first item of one mailbox for another, if the nodes are reachable. Its ack may be lost.
func (w *cluster) deliverOne(t *rapid.T) {
	from := w.anyAgent(t)
	firsts := map[capabilities.ID]bool{}
	all := slices.DeleteFunc(w.Outgoing(from), func(p mailbox.OutboxItem) bool {
		was := firsts[p.To]
		firsts[p.To] = true
		return was
	})
	if len(all) == 0 {
		t.Skip("nothing to deliver")
	}
	p := rapid.SampledFrom(all).Draw(t, "item")
	c, err := w.States[from].CommandFor(p)
	if err != nil {
		t.Fatal(err)
	}
	to := w.NameOf[p.To]
	if p.To.Node != w.States[from].ID.Node {
		c = w.ToRemote(from, p, c)
		w.delivered = append(w.delivered, func() { w.try(t, to, c) })
	}
	_, err = w.Decide(to, c)
	w.checkNewEvents(t)
	refused := ""
	if err != nil {
		refused = string(parley.CodeOf(err))
	}
	if rapid.IntRange(0, 4).Draw(t, "ack") > 0 {
		w.try(t, from, mailbox.RecordDelivery{Items: []mailbox.OutboxItem{p}, Refused: refused})
	}
}

// redeliver repeats earlier deliveries in any order.
func (w *cluster) redeliver(t *rapid.T) {
	for range min(3, len(w.delivered)) {
		rapid.SampledFrom(w.delivered).Draw(t, "echo")()
	}
}

func (w *cluster) restart(t *rapid.T) {
	who := w.anyAgent(t)
	s, err := mailbox.Restore(w.States[who].ID, []byte(w.Snapshot(who)))
	if err != nil {
		t.Fatal(err)
	}
	w.SetState(who, s)
}

// checkNewEvents checks the events since its last call. Each event from another node needs an earlier grant.
func (w *cluster) checkNewEvents(t *rapid.T) {
	for again := true; again; { // an event may justify one of another mailbox
		again = false
		for _, who := range w.Agents {
			for ; w.checked[who] < len(w.Logs[who]); w.checked[who]++ {
				again = true
				w.checkEvent(t, who, w.Logs[who][w.checked[who]].Event)
			}
		}
	}
}

func (w *cluster) checkEvent(t *rapid.T, who string, e events.Event) {
	node := mailboxtest.NodeOf(who)
	received := func(from capabilities.ID) {
		if at := mailboxtest.NodeOf(w.NameOf[from]); at != node && !w.mayReach[[2]string{who, at}] {
			t.Fatalf("%s was reached from %s, which has no grant for it", who, at)
		}
	}
	sent := func(to capabilities.ID) { w.mayReach[[2]string{who, mailboxtest.NodeOf(w.NameOf[to])}] = true }
	switch e := e.(type) {
	case *events.FormRequested:
		if e.From != w.States[who].ID {
			received(e.From)
			return
		}
		sent(e.To)
	case *events.MessagePosted:
		if e.From != w.States[who].ID {
			received(e.From)
			return
		}
		sent(e.To)
	case *events.FormForwarded:
		if m, err := w.States[who].Mail.FindFormID(e.Form); err == nil && m.Form.From == w.States[who].ID {
			sent(e.To)
		}
	case *events.CapabilityGranted:
		w.recordGrant(t, who, e.Grant)
	case *events.CapabilityMinted:
		if by := mailboxtest.NodeOf(w.NameOf[e.Grant.By]); by != node && !w.mayReach[[2]string{who, by}] {
			t.Fatalf("%s was granted by %s, which has no grant for it", who, by)
		}
	}
}

// recordGrant records the node that may reach an agent by a grant, if the grantor's node may.
func (w *cluster) recordGrant(t *rapid.T, who string, g capabilities.Grant) {
	target := w.NameOf[g.Target]
	if target == "" {
		t.Fatalf("%s granted %+v", who, g)
	}
	if by := mailboxtest.NodeOf(who); by == mailboxtest.NodeOf(target) || w.mayReach[[2]string{target, by}] {
		w.mayReach[[2]string{target, mailboxtest.NodeOf(w.NameOf[g.To])}] = true
	}
}

func (w *cluster) checkForms(t *rapid.T) {
	for _, home := range w.Agents {
		for _, m := range w.Messages(home) {
			if m.Form == nil || m.Form.From != w.States[home].ID {
				continue
			}
			for _, h := range m.Form.Holders {
				c, err := w.States[w.NameOf[h]].Mail.FindFormID(m.ID())
				if err != nil {
					continue // it was refused
				}
				if outcomeText(c.Form) != outcomeText(m.Form) {
					t.Fatalf("%s: form %s has outcome %q, and for %s %q", home, m.ID(), outcomeText(m.Form), w.NameOf[h], outcomeText(c.Form))
				}
				if len(c.Form.Queued().Forwards) > 0 || c.Form.Queued().Answer != nil {
					t.Fatalf("%s has a queued settlement of form %s", w.NameOf[h], m.ID())
				}
			}
		}
	}
}

// outcomeText returns the outcome of a form as all holders see it.
func outcomeText(f *mailbox.Form) string {
	switch {
	case f.Answered != nil:
		return "answered by " + f.Answered.By.String() + f.Answered.Date.String()
	case f.Ended != nil:
		return string(f.Ended.Reason) + " by " + f.Ended.By.String()
	}
	return "open"
}

// checkGrants checks that no grant is valid that was derived from a revoked one.
func (w *cluster) checkGrants(t *rapid.T) {
	var all []capabilities.Grant
	for _, who := range w.Agents {
		all = append(all, w.States[who].Grants.All()...)
	}
	slices.SortFunc(all, func(a, b capabilities.Grant) int { return a.ID.Compare(b.ID) }) // parents are older
	ended := map[capabilities.ID]bool{}
	for _, g := range all {
		ended[g.ID] = g.Revoked != 0 || ended[g.Parent]
		if ended[g.ID] && g.Revoked == 0 {
			t.Fatalf("%s has a valid grant of a revoked one: %+v", w.NameOf[g.By], g)
		}
	}
	for _, who := range w.Agents {
		for _, g := range w.States[who].Grants.Minted() {
			if ended[g.ID] && g.Revoked == 0 {
				t.Fatalf("%s can be reached by the revoked grant %s", who, g.ID)
			}
		}
	}
}
