package mailbox_test

import (
	"cmp"
	"slices"

	"pgregory.net/rapid"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	messagetext "parley/mailbox/text"
)

func (m *model) ask(t *rapid.T) {
	p := m.anyAgent(t)
	a := mailbox.RequestForm{Form: parley.Form{
		To:          somePath.Draw(t, "to"),
		Description: "something",
		Fields:      []events.Field{{Name: "f", Required: true}},
		Key:         rapid.SampledFrom([]string{"", "", "k1", "k2"}).Draw(t, "key"),
		Name:        rapid.SampledFrom([]string{"", "", "n", "c"}).Draw(t, "result"),
		Deadline:    m.Now + capabilities.Time(rapid.IntRange(0, 8).Draw(t, "deadline")),
		NoForward:   rapid.IntRange(0, 3).Draw(t, "no forward") == 0,
	}}
	if rapid.Bool().Draw(t, "no deadline") {
		a.Deadline = 0
	}
	if m.isPromised(p, a.To) {
		t.Skip("TestQueuedMailGoesOnOnce has mail to what is not answered yet")
	}
	to, want := p.resolve(a.To)
	if a.Deadline == m.Now {
		want = parley.InvalidArgument
	}
	known, code := m.existing(p, a)
	if known {
		want = code
	}
	evs, ok := m.do(t, p.name, a, want)
	if known && len(evs) != 0 {
		t.Fatalf("asked again: %v", evs)
	}
	if known || !ok {
		return
	}
	f := &modelForm{
		id: evs[0].(*events.FormRequested).ID, asker: p.name, holders: []string{to.agent}, deadline: a.Deadline, noForward: a.NoForward, key: a.Key, result: a.Name,
	}
	m.forms = append(m.forms, f)
	p.mail = append(p.mail, modelMessage{id: f.id, form: f, from: p.name})
	if a.Key != "" {
		p.keys[a.Key] = f
	}
}

// isPromised reports whether a path stands for the answer of an open form.
func (m *model) isPromised(p *modelAgent, path string) bool {
	_, bound := p.names[path]
	return !bound && slices.ContainsFunc(m.forms, func(f *modelForm) bool { return f.asker == p.name && f.result == path && f.outcome == "" })
}

// answerable returns the expected refusal of answering, declining and forwarding.
func (p *modelAgent) answerable(t *rapid.T) (n capabilities.FormRef, f *modelForm, want parley.Code) {
	n, msg, want := p.pick(t, func(m modelMessage) bool {
		return m.form != nil && p.knownOutcome(m.form) == "" && slices.Contains(m.form.holders, p.name)
	})
	if want != "" {
		return n, nil, want
	}
	f = msg.form
	if want = p.knownOutcome(f); want == "" && !slices.Contains(f.holders, p.name) {
		want = parley.NotPermitted
	}
	return n, f, want
}

func (m *model) send(t *rapid.T, draft mailbox.Command, home capabilities.ID, err error, want parley.Code) {
	t.Helper()
	if parley.CodeOf(err) != want {
		t.Fatalf("drafting %+v: got %v, want %q", draft, err, want)
	}
	if err == nil {
		m.inTransit = append(m.inTransit, delivery{m.Harness.NameOf[home], draft})
	}
}

func (m *model) answer(t *rapid.T) {
	p := m.anyAgent(t)
	n, _, want := p.answerable(t)
	text := rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "text")
	if want == "" && text == "" {
		want = parley.InvalidAnswer
	}
	c, home, err := m.States[p.name].DraftAnswer(mailbox.Reply{Form: n, Answer: parley.Answer{Texts: []events.FieldText{{Name: "f", Text: text}}}}, m.Now, m.NewID)
	m.send(t, c, home, err, want)
}

func (m *model) decline(t *rapid.T) {
	p := m.anyAgent(t)
	n, _, want := p.answerable(t)
	c, home, err := m.States[p.name].DraftDecline(n, 0, "no", m.NewID)
	m.send(t, c, home, err, want)
}

func (m *model) forward(t *rapid.T) {
	p := m.anyAgent(t)
	n, f, want := p.answerable(t)
	to := somePath.Draw(t, "to")
	if want == "" && f.noForward {
		want = parley.NotPermitted
	}
	if _, code := p.resolve(to); want == "" {
		want = code
	}
	c, home, err := m.States[p.name].DraftForward(n, to, m.Now)
	m.send(t, c, home, err, want)
}

// arrive delivers a settlement or forward to its home. It may be delivered again later.
func (m *model) arrive(t *rapid.T) {
	if len(m.inTransit) == 0 {
		t.Skip("nothing is in transit")
	}
	i := rapid.IntRange(0, len(m.inTransit)-1).Draw(t, "delivery")
	e := m.inTransit[i]
	if !rapid.Bool().Draw(t, "again") {
		m.inTransit = slices.Delete(m.inTransit, i, i+1)
	}
	switch c := e.command.(type) {
	case mailbox.SettleForm:
		f := m.form(c.Form)
		want := f.outcome
		if want == "" && f.deadline != 0 && m.Now >= f.deadline {
			want = parley.AlreadyExpired
		}
		if _, ok := m.do(t, e.to, c, want); ok && c.Reason == "" {
			text, _ := c.Values["f"].AsString()
			m.ended(f, parley.AlreadyAnswered, m.Harness.NameOf[c.By], text)
		} else if ok {
			m.ended(f, parley.AlreadyDeclined, m.Harness.NameOf[c.By], "")
		}
	case mailbox.ForwardForm:
		f, to := m.form(c.Form), m.Harness.NameOf[c.To]
		want := f.outcome
		if want == "" && (f.noForward || to == f.asker || slices.Contains(f.holders, to)) {
			want = parley.NotPermitted
		}
		if _, ok := m.do(t, e.to, c, want); ok {
			f.holders = append(f.holders, to)
			f.forwards = append(f.forwards, [2]string{m.Harness.NameOf[c.By], to})
		}
	}
}

func (m *model) form(id capabilities.ID) *modelForm {
	return m.forms[slices.IndexFunc(m.forms, func(f *modelForm) bool { return f.id == id })]
}

// ended settles a form in the model.
func (m *model) ended(f *modelForm, end parley.Code, by, text string) {
	home := m.agent(f.asker)
	f.outcome, f.by, f.text, home.learned[f] = end, by, text, true
	if f.result != "" && end == parley.AlreadyAnswered {
		home.names[f.result] = modelValue{text: `{"f":"` + text + `"}`}
	}
}

func (m *model) cancel(t *rapid.T) {
	p := m.anyAgent(t)
	n, msg, want := p.pick(t, func(msg modelMessage) bool {
		return msg.form != nil && msg.form.asker == p.name && msg.form.outcome == ""
	})
	if want == "" && msg.form.asker != p.name {
		want = parley.NotPermitted
	}
	if want == "" {
		want = msg.form.outcome
	}
	if _, ok := m.do(t, p.name, mailbox.CancelForm{Form: n}, want); ok {
		m.ended(msg.form, parley.AlreadyCancelled, p.name, "")
	}
}

func (m *model) wait(t *rapid.T) {
	m.Now += capabilities.Time(rapid.IntRange(1, 4).Draw(t, "long"))
}

func (m *model) expire(t *rapid.T) {
	p := m.anyAgent(t)
	evs, _ := m.do(t, p.name, mailbox.ExpireForms{}, "")
	for _, f := range m.forms {
		if f.asker == p.name && f.outcome == "" && f.deadline != 0 && f.deadline <= m.Now {
			m.ended(f, parley.AlreadyExpired, "", "")
			evs = slices.DeleteFunc(evs, func(e events.Event) bool { return e.(*events.FormCancelled).Form == f.id })
		}
	}
	if len(evs) != 0 {
		t.Fatalf("expired too early: %v", evs)
	}
}

func (m *model) post(t *rapid.T) {
	p := m.anyAgent(t)
	to, edge := somePath.Draw(t, "to"), cmp.Or(rapid.SampledFrom([]string{"", "b", "n"}).Draw(t, "edge"), "SELF")
	if m.isPromised(p, to) {
		t.Skip("TestQueuedMailGoesOnOnce has mail to what is not answered yet")
	}
	target, want := p.resolve(to)
	value, known := p.lookup(edge)
	if !known {
		value.text = "@it:" + edge // it stays text
	}
	if want == "" && value.agent != "" && p.revoked[value.grant] {
		want = parley.NotPermitted
	}
	key := rapid.SampledFrom([]string{"", "", "", "k1", "k2"}).Draw(t, "key")
	before, again := p.posted[key]
	switch reached, found := p.lookup(to); {
	case !again:
	case !found || reached.agent == "":
		want = parley.UnknownRecipient
	case reached.agent != before.to || value.agent != before.value.agent || value.text != before.value.text:
		want = parley.InvalidArgument
	default:
		want = ""
	}
	evs, ok := m.do(t, p.name, mailbox.PostMessage{To: to, Post: parley.Post{Text: "take @it:" + edge, Key: key}}, want)
	if again && len(evs) != 0 {
		t.Fatalf("sent again: %v", evs)
	}
	if !ok || again {
		return
	}
	if key != "" {
		p.posted[key] = modelPost{target.agent, value}
	}
	posted := evs[0].(*events.MessagePosted)
	if value.agent != "" {
		g := evs[1].(*events.CapabilityGranted).Grant
		if g.Parent != value.grant || m.Harness.NameOf[g.Target] != value.agent || m.Harness.NameOf[g.To] != target.agent || m.Harness.NameOf[g.By] != p.name {
			t.Fatalf("%s granted %+v of %+v", p.name, g, value)
		}
		p.grants, value.grant = append(p.grants, g), g.ID
	}
	sent := modelMessage{id: posted.Message, from: p.name, edges: map[string]modelValue{"it": value}}
	if given, plain := messagetext.References("take @it:"+edge, posted.Text); known != (len(given) == 1) || known == (len(plain) == 1) {
		t.Fatalf("%q is known: %t, and it is said that %v was given and %v is text", edge, known, given, plain)
	}
	if !known {
		sent.edges = nil
	}
	if target.agent == p.name {
		p.receive(sent)
	} else {
		p.mail = append(p.mail, sent)
	}
}

func (m *model) adopt(t *rapid.T) {
	p, name := m.anyAgent(t), someName.Draw(t, "name")
	n, msg, want := p.pick(t, func(msg modelMessage) bool { return msg.form == nil && msg.from != p.name })
	if _, carries := msg.edges["it"]; want == parley.NotAForm && carries {
		want = m.free(p, name)
	} else if want == "" || want == parley.NotAForm {
		want = parley.UnknownName // a form has no such edge, nor has a message whose reference named nothing
	}
	if _, ok := m.do(t, p.name, mailbox.AdoptName{Message: n, Edge: "it", Name: name}, want); ok {
		p.names[name] = msg.edges["it"]
	}
}

func (m *model) store(t *rapid.T) {
	p, name := m.anyAgent(t), someName.Draw(t, "name")
	if _, ok := m.do(t, p.name, mailbox.BindName{Name: name, Value: "5"}, m.free(p, name)); ok {
		p.names[name] = modelValue{text: "5"}
	}
}

func (m *model) rename(t *rapid.T) {
	p, from, to := m.anyAgent(t), someName.Draw(t, "from"), someName.Draw(t, "to")
	want := m.free(p, to)
	if _, bound := p.names[from]; !bound {
		want = parley.UnknownName
	}
	if _, ok := m.do(t, p.name, mailbox.MoveName{From: from, To: to}, want); ok {
		p.names[to] = p.names[from]
		delete(p.names, from)
	}
}

func (m *model) remove(t *rapid.T) {
	p, name := m.anyAgent(t), someName.Draw(t, "name")
	want := parley.UnknownName
	if _, bound := p.names[name]; bound {
		want = ""
	}
	if _, ok := m.do(t, p.name, mailbox.UnbindName{Name: name}, want); ok {
		delete(p.names, name)
	}
}

func (m *model) dismiss(t *rapid.T) {
	p := m.anyAgent(t)
	n, msg, want := p.pick(t, func(modelMessage) bool { return true })
	if want == parley.NotAForm {
		want = ""
	}
	if _, ok := m.do(t, p.name, mailbox.DismissMessage{Message: n}, want); ok && p.program != nil {
		p.program.waiting = slices.DeleteFunc(p.program.waiting, func(id capabilities.ID) bool { return id == msg.id })
	}
}

func (m *model) revoke(t *rapid.T) {
	p := m.anyAgent(t)
	if len(p.grants) == 0 {
		t.Skip("it has no grants")
	}
	g := rapid.SampledFrom(p.grants).Draw(t, "grant")
	m.do(t, p.name, mailbox.RevokeCapability{Grant: g.ID}, "")
	p.revoke(g.ID)
}

// revoke records in the model that a grant is revoked, with all grants that the agent derived from it.
func (p *modelAgent) revoke(id capabilities.ID) {
	p.revoked[id] = true
	for _, g := range p.grants {
		if p.revoked[g.Parent] && !p.revoked[g.ID] {
			p.revoke(g.ID)
		}
	}
}
