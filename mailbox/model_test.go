package mailbox_test

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/mailboxtest"
)

func TestMailboxesMatchModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		actions := map[string]func(*rapid.T){
			"": m.check, "ask": m.ask, "answer": m.answer, "decline": m.decline, "forward": m.forward, "forward more": m.forward, "arrive": m.arrive, "arrive more": m.arrive,
			"cancel": m.cancel, "wait": m.wait, "expire": m.expire, "post": m.post, "adopt": m.adopt, "store": m.store, "rename": m.rename,
			"remove": m.remove, "dismiss": m.dismiss, "revoke": m.revoke, "deliver one": m.deliverOne, "deliver another": m.deliverOne, "redeliver": m.redeliver, "restart": m.restart,
			"run": m.run, "run ends": m.runEnds, "interrupt": m.interrupt,
		}
		for range 4 { // days
			t.Repeat(actions)
		}
		m.deliverAll(t)
	})
}

// model is a simple model of a Harness with three agents. It predicts the code of every refusal. It records undelivered
// items and settlements, and the outcomes that each agent knows.
type model struct {
	*mailboxtest.Harness
	agents    []*modelAgent
	forms     []*modelForm
	inTransit []delivery // settlements and forwards to a form's home, delivered in any order
	delivered []delivery // delivered commands, which may be delivered again
}

type delivery struct {
	to      string
	command mailbox.Command
}

// modelForm is the expected state of a form for all its holders.
type modelForm struct {
	id          capabilities.ID
	asker       string
	holders     []string
	deadline    capabilities.Time
	noForward   bool // it must not be forwarded
	key, result string
	outcome     parley.Code // "" while it is open
	by, text    string
	forwards    [][2]string // from and to
}

type modelAgent struct {
	name    string
	mail    []modelMessage
	names   map[string]modelValue
	keys    map[string]*modelForm
	learned map[*modelForm]bool // forms whose outcome it knows
	revoked map[capabilities.ID]bool
	grants  []capabilities.Grant
	posted  map[string]modelPost // by key
	program *modelProgram        // nil if it has no program
}

// modelMessage is a form, or a message with values.
type modelMessage struct {
	id    capabilities.ID
	form  *modelForm
	from  string
	edges map[string]modelValue
}

// modelPost is the recipient of a message, and the value in it.
type modelPost struct {
	to    string
	value modelValue
}

// modelValue is the value of a name: an agent by a grant, or text.
type modelValue struct {
	agent string
	grant capabilities.ID
	text  string
}

func newModel(t *rapid.T) *model {
	m := &model{Harness: mailboxtest.New(t)}
	for _, name := range []string{"a", "b", "c"} {
		m.Add(name)
		m.agents = append(m.agents, &modelAgent{
			name: name, names: map[string]modelValue{}, keys: map[string]*modelForm{}, learned: map[*modelForm]bool{}, revoked: map[capabilities.ID]bool{},
			posted: map[string]modelPost{},
		})
	}
	m.Apply("c", &events.ProgramSet{Runtime: "exec", Command: []string{"true"}})
	m.agent("c").program = &modelProgram{status: mailbox.Idle}
	for _, pair := range [][2]string{{"a", "b"}, {"a", "c"}, {"b", "c"}, {"c", "b"}} { // b and c know each other
		m.Apply(pair[0], &events.NameBound{Name: pair[1], Value: capabilities.Reference(mailbox.AgentRef(m.States[pair[1]].ID))})
		m.agent(pair[0]).names[pair[1]] = modelValue{agent: pair[1]}
	}
	return m
}

func (m *model) agent(name string) *modelAgent { return m.agents[slices.Index(m.Agents, name)] }

func (m *model) anyAgent(t *rapid.T) *modelAgent { return rapid.SampledFrom(m.agents).Draw(t, "who") }

var (
	someName = rapid.SampledFrom([]string{"b", "c", "n"})
	somePath = rapid.SampledFrom([]string{"b", "c", "n", "HOST", "SELF"})
)

// lookup returns the expected value of a path of one name.
func (p *modelAgent) lookup(path string) (modelValue, bool) {
	switch path {
	case "HOST":
		return modelValue{agent: "a"}, true
	case "SELF":
		return modelValue{agent: p.name}, true
	}
	got, ok := p.names[path]
	return got, ok
}

// resolve returns the expected agent at a path, or the expected refusal.
func (p *modelAgent) resolve(path string) (modelValue, parley.Code) {
	got, ok := p.lookup(path)
	switch {
	case !ok || got.agent == "":
		return got, parley.UnknownRecipient
	case p.revoked[got.grant]:
		return got, parley.NotPermitted
	}
	return got, ""
}

// existing returns the expected result of a form with a used key or name: the earlier form, or a refusal.
func (m *model) existing(p *modelAgent, a mailbox.RequestForm) (known bool, code parley.Code) {
	f, keyed := p.keys[a.Key]
	if i := slices.IndexFunc(m.forms, func(f *modelForm) bool { return f.asker == p.name && f.outcome == "" && f.result == a.Name }); !keyed && a.Name != "" {
		if _, bound := p.names[a.Name]; bound {
			return true, ""
		}
		if keyed = i >= 0; keyed {
			f = m.forms[i]
		}
	}
	to, found := p.lookup(a.To)
	switch {
	case !keyed:
		return false, ""
	case !found || to.agent == "":
		return true, parley.UnknownRecipient
	case to.agent != f.holders[0] || a.NoForward != f.noForward || a.Name != "" && a.Name != f.result:
		return true, parley.InvalidArgument
	}
	return true, ""
}

// isReserved reports whether the answer of an open form will have the name.
func (m *model) isReserved(p *modelAgent, name string) bool {
	return slices.ContainsFunc(m.forms, func(f *modelForm) bool { return f.asker == p.name && f.outcome == "" && f.result == name })
}

// free returns the expected refusal of binding a name.
func (m *model) free(p *modelAgent, name string) parley.Code {
	if _, taken := p.names[name]; taken || m.isReserved(p, name) {
		return parley.NameTaken
	}
	return ""
}

// do runs a command and compares its refusal with the expected one.
func (m *model) do(t *rapid.T, who string, c mailbox.Command, want parley.Code) ([]events.Event, bool) {
	t.Helper()
	evs, err := m.Decide(who, c)
	if parley.CodeOf(err) != want {
		t.Fatalf("%s, %T %+v: got %v, want %q", who, c, c, err, want)
	}
	return evs, err == nil
}

// pick draws the number of a message: mostly of a suitable one, sometimes of any, or one that does not exist. It
// returns the expected refusal of FindForm.
func (p *modelAgent) pick(t *rapid.T, fit func(modelMessage) bool) (n capabilities.FormRef, msg modelMessage, code parley.Code) {
	i := rapid.IntRange(0, len(p.mail)).Draw(t, "number")
	var fits []int
	for j, msg := range p.mail {
		if fit(msg) {
			fits = append(fits, j)
		}
	}
	if len(fits) > 0 && rapid.IntRange(0, 3).Draw(t, "any") != 3 {
		i = rapid.SampledFrom(fits).Draw(t, "fit")
	}
	n = capabilities.FormNumber(uint64(i))
	switch {
	case i == len(p.mail):
		return n, msg, parley.NoSuchMessage
	case p.mail[i].form == nil:
		return n, p.mail[i], parley.NotAForm
	}
	return n, p.mail[i], ""
}

// knownOutcome returns the outcome of the form as far as the agent knows it.
func (p *modelAgent) knownOutcome(f *modelForm) parley.Code {
	if p.learned[f] {
		return f.outcome
	}
	return ""
}

// deliverOne delivers the first item of one agent for another. If its ack is lost, it is delivered again.
func (m *model) deliverOne(t *rapid.T) {
	var routes []string // from and to
	for _, p := range m.agents {
		for _, o := range m.States[p.name].Outbox.Items() {
			if route := p.name + m.Harness.NameOf[o.To]; !slices.Contains(routes, route) {
				routes = append(routes, route)
			}
		}
	}
	if len(routes) == 0 {
		t.Skip("nothing to deliver")
	}
	route := rapid.SampledFrom(routes).Draw(t, "route")
	p := m.agent(route[:1])
	s := m.States[p.name]
	i := slices.IndexFunc(s.Outbox.Items(), func(o mailbox.OutboxItem) bool { return m.Harness.NameOf[o.To] == route[1:] })
	m.deliverItem(t, p, s.Outbox.Items()[i], rapid.IntRange(0, 3).Draw(t, "ack") != 3)
}

func (m *model) deliverItem(t *rapid.T, p *modelAgent, o mailbox.OutboxItem, ack bool) {
	c, err := m.States[p.name].CommandFor(o)
	if err != nil {
		t.Fatal(err)
	}
	to := m.agent(m.Harness.NameOf[o.To])
	m.do(t, to.name, c, "")
	m.delivered = append(m.delivered, delivery{to.name, c})
	switch c := c.(type) {
	case mailbox.AcceptDelivery:
		id := o.Subject
		if here := slices.ContainsFunc(to.mail, func(msg modelMessage) bool { return msg.id == id }); !here {
			msg := p.mail[slices.IndexFunc(p.mail, func(msg modelMessage) bool { return msg.id == id })]
			to.receive(msg)
		}
	case mailbox.RecordOutcome:
		if c.Forwarded == nil {
			to.learned[m.form(o.Subject)] = true
		}
	case mailbox.RecordRevocation:
		to.revoke(c.Grant)
	}
	if ack {
		m.do(t, p.name, mailbox.RecordDelivery{Items: []mailbox.OutboxItem{o}}, "")
	}
}

// redeliver delivers an earlier command again, which has no effect.
func (m *model) redeliver(t *rapid.T) {
	if len(m.delivered) == 0 {
		t.Skip("nothing was delivered")
	}
	e := rapid.SampledFrom(m.delivered).Draw(t, "echo")
	if evs, _ := m.do(t, e.to, e.command, ""); len(evs) != 0 {
		t.Fatalf("%T, delivered twice, makes %v", e.command, evs)
	}
}

// restart goes on with a state made from the log, or from a snapshot.
func (m *model) restart(t *rapid.T) {
	p := m.anyAgent(t)
	before := m.Snapshot(p.name)
	defer func() {
		if m.Snapshot(p.name) != before {
			t.Fatalf("the state of %s differs after a restart", p.name)
		}
	}()
	if rapid.Bool().Draw(t, "snapshot") {
		s, err := mailbox.Restore(m.States[p.name].ID, []byte(m.Snapshot(p.name)))
		if err != nil {
			t.Fatal(err)
		}
		m.SetState(p.name, s)
		return
	}
	m.SetState(p.name, m.Replay(p.name))
}

// check compares all mailboxes with the model.
func (m *model) check(t *rapid.T) {
	for _, p := range m.agents {
		s := m.States[p.name]
		if s.Mail.Index.Len() != uint64(len(p.mail)) {
			t.Fatalf("%s has %d messages, want %d", p.name, s.Mail.Index.Len(), len(p.mail))
		}
		var want events.Summary
		for n, msg := range m.Messages(p.name) {
			if msg.Number != uint64(n) || msg.ID() != p.mail[n].id || m.Harness.NameOf[msg.From()] != p.mail[n].from {
				t.Fatalf("%s: message %d is %d, %s", p.name, n, msg.Number, msg.ID())
			}
			if f := p.mail[n].form; f != nil {
				m.checkForm(t, p, f, msg.Form)
				if f.asker == p.name && f.outcome == "" {
					want.Open++
					if f.deadline != 0 && (want.Deadline == 0 || f.deadline < want.Deadline) {
						want.Deadline = f.deadline
					}
				}
			}
		}
		want.Waiting = uint32(s.Mail.Unanswered())
		want.Outbox = uint32(len(s.Outbox.Items()) + m.checkJob(t, p))
		if got := s.Summary(); got != want {
			t.Fatalf("%s: summary %+v, want %+v", p.name, got, want)
		}
		got := slices.Sorted(maps.Keys(s.Names.Values()))
		if !slices.Equal(got, slices.Sorted(maps.Keys(p.names))) {
			t.Fatalf("%s has the names %v, want %v", p.name, got, p.names)
		}
		for name, want := range p.names {
			ref, isRef := s.Names.Values()[name].AsRef()
			if isRef != (want.agent != "") || isRef && (m.Harness.NameOf[ref.Target] != want.agent || ref.Grant != want.grant) || !isRef && s.Names.Values()[name].Text() != want.text {
				t.Fatalf("%s: %s is %s, want %+v", p.name, name, s.Names.Values()[name].Text(), want)
			}
		}
	}
}

// checkForm compares one copy of a form with the knowledge of its holder.
func (m *model) checkForm(t *rapid.T, p *modelAgent, f *modelForm, got *mailbox.Form) {
	end := p.knownOutcome(f)
	if got.IsOpen() != (end == "") || got.Answered != nil && got.Ended != nil {
		t.Fatalf("%s: form %s open: %t, want %q", p.name, f.id, got.IsOpen(), end)
	}
	if end == "" {
		return
	}
	if code := parley.CodeOf(got.EndedForOthers()); code != f.outcome {
		t.Fatalf("%s: form %s is %s, want %s", p.name, f.id, code, f.outcome)
	}
	if a := got.Answered; a != nil {
		mine := p.name == f.asker || p.name == f.by
		want := capabilities.Null()
		if mine {
			want = capabilities.Record(map[string]capabilities.Value{"f": capabilities.String(f.text)})
		}
		if m.Harness.NameOf[a.By] != f.by || a.Withheld == mine || !a.Values.Equal(want) {
			t.Fatalf("%s: form %s has %s by %s, want %s by %s", p.name, f.id, a.Values.Text(), m.Harness.NameOf[a.By], f.text, f.by)
		}
	} else if by := m.Harness.NameOf[got.Ended.By]; by != f.by {
		t.Fatalf("%s: form %s was ended by %q, want %q", p.name, f.id, by, f.by)
	}
}

// deliverAll delivers all items, and checks that all agents know all outcomes.
func (m *model) deliverAll(t *rapid.T) {
	for again := true; again; {
		again = false
		for _, p := range m.agents {
			for len(m.States[p.name].Outbox.Items()) > 0 {
				again = true
				m.deliverItem(t, p, m.States[p.name].Outbox.Items()[0], true)
			}
		}
	}
	for _, f := range m.forms {
		m.checkForwards(t, f)
		for _, h := range append(slices.Clone(f.holders), f.asker) {
			if f.outcome != "" && !m.agent(h).learned[f] {
				t.Fatalf("%s has no outcome of %s", h, f.id)
			}
		}
	}
	m.check(t)
	m.CheckReplay()
	checkCounts(t, m.Harness)
	m.checkRevoked(t)
}

// checkForwards checks that a form's home knows all forwards, and each agent its own.
func (m *model) checkForwards(t *rapid.T, f *modelForm) {
	for _, p := range m.agents {
		msg, err := m.States[p.name].Mail.FindFormID(f.id)
		if err != nil {
			continue
		}
		var got, want [][2]string
		for _, h := range msg.Form.Forwarded() {
			got = append(got, [2]string{m.Harness.NameOf[h.By], m.Harness.NameOf[h.To]})
		}
		for _, h := range f.forwards {
			if p.name == f.asker || p.name == h[0] {
				want = append(want, h)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%s: form %s was forwarded %v, want %v", p.name, f.id, got, want)
		}
	}
}

// checkRevoked tries every name that is held by a revoked grant, or by one derived from a revoked grant.
func (m *model) checkRevoked(t *rapid.T) {
	var all []capabilities.Grant
	ended := map[capabilities.ID]bool{}
	for _, p := range m.agents {
		all = append(all, p.grants...)
		for _, g := range m.States[p.name].Grants.All() {
			ended[g.ID] = ended[g.ID] || g.Revoked != 0
		}
	}
	slices.SortFunc(all, func(a, b capabilities.Grant) int { return a.ID.Compare(b.ID) }) // parents are older
	for _, g := range all {
		ended[g.ID] = ended[g.ID] || ended[g.Parent]
	}
	for _, p := range m.agents {
		for name, held := range p.names {
			if ended[held.grant] {
				m.do(t, p.name, mailbox.PostMessage{To: name, Post: parley.Post{Text: "hello"}}, parley.NotPermitted)
				m.do(t, p.name, mailbox.RequestForm{Form: parley.Form{To: name, Description: "d", Fields: []events.Field{{Name: "f"}}}}, parley.NotPermitted)
				m.do(t, p.name, mailbox.PostMessage{To: "SELF", Post: parley.Post{Text: "@it:" + name}}, parley.NotPermitted)
			}
		}
	}
}
