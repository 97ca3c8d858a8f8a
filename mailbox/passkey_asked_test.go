package mailbox_test

import (
	"slices"
	"testing"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/internal/passkeytest"
	"parley/mailbox"
	"parley/mailbox/mailboxtest"
)

// signedBy returns a reply to a form with what the passkey of an agent signs of it.
func signedBy(t *testing.T, v *mailboxtest.Harness, agent string, d *passkeytest.Device, r mailbox.Reply) mailbox.Reply {
	t.Helper()
	s, wants, err := mailbox.DraftStatement(v.States[agent], r, v.Now, v.IDsOf(agent))
	if err != nil || !wants {
		t.Fatalf("what is signed: %v, wanted %t", err, wants)
	}
	s.Nonce = "asked"
	r.Passkey = d.Sign(t, s.Text())
	return r
}

func replyWith(form capabilities.ID, name, text string) mailbox.Reply {
	return mailbox.Reply{Form: capabilities.FormID(form), Answer: parley.Answer{Texts: []events.FieldText{{Name: name, Text: text}}}}
}

func wantsPasskey(t *testing.T, what string, err error) {
	t.Helper()
	if parley.CodeOf(err) != parley.PasskeyRequired {
		t.Errorf("%s: %v, want PASSKEY_REQUIRED", what, err)
	}
}

// TestCallThatAsksForAPasskey asks about a call for which its asker wants a passkey. No rule, mandate, policy or reviewer allows it, no
// answer without a signature does, and the answerer's mailbox, the home and its proof know what was signed. A denial needs none.
func TestCallThatAsksForAPasskey(t *testing.T) {
	v := mailboxtest.New(t)
	for _, name := range []string{"host", "fae", "bob"} {
		v.Add(name)
	}
	v.NameAgents()
	phone := passkeytest.NewDevice(t, "http://localhost:7420")
	v.Must("host", mailbox.AddPasskey{PasskeyAdded: phone.Added(t, "phone")})
	plain := parley.Permission{Tool: "shell", Input: `{"command":"make"}`, Folder: "/srv"}
	asks := plain
	asks.Passkey = true
	if plain.Digest() == asks.Digest() {
		t.Fatal("the digest of what is shown is the same without the passkey")
	}
	calm := func(*parley.Permission) mailbox.Risk { return mailbox.Risk{} }
	ask := func(need uint32) *mailbox.Form {
		t.Helper()
		evs := v.Must("fae", mailbox.RequestApproval{Permission: asks, Need: need, Risk: calm})
		v.Deliver(true)
		m, err := v.States["fae"].Mail.FindFormID(evs[0].(*events.FormRequested).ID)
		if err != nil {
			t.Fatal(err)
		}
		return m.Form
	}

	// A rule for the very call, and a policy that allows all, leave it to the host.
	rule := v.Must("fae", mailbox.RequestApproval{Permission: plain, Risk: calm})[0].(*events.FormRequested)
	v.Deliver(false)
	c, _, err := v.States["host"].DraftAnswer(replyWith(rule.ID, "decision", mailbox.Always), v.Now, v.IDsOf("host"))
	if err != nil {
		t.Fatal(err)
	}
	v.Must("fae", c)
	v.Deliver(false)
	if r, ruled := (mailbox.RequestApproval{Permission: plain, Risk: calm}).Ruled(v.States["fae"], v.Now); !ruled || !r.Allow {
		t.Fatal("there is no rule for the call")
	}
	for _, policy := range []string{mailbox.AskOnMiss, mailbox.AskNever} {
		if v.States["fae"].Rules.Policy() != policy {
			v.Must("fae", mailbox.SetPolicy{Policy: policy, By: v.States["host"].ID})
		}
		if r, ruled := (mailbox.RequestApproval{Permission: asks, Risk: calm}).Ruled(v.States["fae"], v.Now); ruled {
			t.Errorf("with the policy %s it is decided without a question: %+v", policy, r)
		}
	}
	v.Must("fae", mailbox.SetPolicy{Policy: mailbox.Review, By: v.States["host"].ID, Reviewer: v.States["bob"].ID, Review: &parley.ReviewTerms{Wait: 60_000}})

	// What the reviewer allows is an opinion.
	f := ask(0)
	c, _, err = v.States["bob"].DraftAnswer(replyWith(f.ID, "decision", mailbox.Once), v.Now, v.IDsOf("bob"))
	if err != nil {
		t.Fatal(err)
	}
	v.Must("fae", c)
	v.Deliver(true)
	if e := f.Review().Ended; e == nil || e.How != events.ReviewBeyond || !f.IsOpen() {
		t.Fatalf("the reviewer has decided it: %+v", e)
	}

	// The host's answer: without a signature, by a home that is told of none, of another decision, and signed.
	once := replyWith(f.ID, "decision", mailbox.Once)
	_, _, err = v.States["host"].DraftAnswer(once, v.Now, v.IDsOf("host"))
	wantsPasskey(t, "the host without it", err)
	values := map[string]capabilities.Value{"decision": capabilities.String(mailbox.Once)}
	_, err = v.Decide("fae", mailbox.SettleForm{Form: f.ID, By: v.States["host"].ID, Values: values, Principal: v.States["host"].ID})
	wantsPasskey(t, "the home without it", err)
	if _, _, err := v.States["host"].DraftAnswer(replyWith(f.ID, "decision", mailbox.Always), v.Now, v.IDsOf("host")); parley.CodeOf(err) != parley.InvalidAnswer {
		t.Errorf("a rule of it: %v", err)
	}
	signed := signedBy(t, v, "host", phone, once)
	moved := replyWith(ask(0).ID, "decision", mailbox.Once)
	moved.Passkey = signed.Passkey
	if _, _, err := v.States["host"].DraftAnswer(moved, v.Now, v.IDsOf("host")); parley.CodeOf(err) == "" {
		t.Error("what was signed of one call allows another")
	}
	c, _, err = v.States["host"].DraftAnswer(signed, v.Now, v.IDsOf("host"))
	if err != nil {
		t.Fatal(err)
	}
	v.Must("host", c.Use)
	v.Must("fae", c)
	v.Deliver(true)
	for _, name := range []string{"fae", "host"} {
		m, err := v.States[name].Mail.FindFormID(f.ID)
		if err != nil {
			t.Fatal(err)
		}
		if mailbox.Signed(m.Form) == nil || mailbox.Signed(m.Form).By != v.States["host"].ID || !m.Form.AsksPasskey() || m.Form.QuestionDigest() != f.QuestionDigest() {
			t.Errorf("the form of %s: signed %+v, asks for a passkey %t", name, mailbox.Signed(m.Form), m.Form.AsksPasskey())
		}
	}
	if !v.States["fae"].Allows(f) {
		t.Error("the call is not allowed")
	}

	// A denial needs none, nor does a reviewer's, and each vote for it does.
	f = ask(0)
	c, _, err = v.States["bob"].DraftAnswer(mailbox.Reply{Form: capabilities.FormID(f.ID), Answer: parley.Answer{Texts: []events.FieldText{{Name: "decision", Text: mailbox.Deny}, {Name: "reason", Text: "no"}}}}, v.Now, v.IDsOf("bob"))
	if err != nil {
		t.Fatal(err)
	}
	v.Must("fae", c)
	if f.IsOpen() {
		t.Error("a denial needs a passkey")
	}
	v.Must("fae", mailbox.SetPolicy{Policy: mailbox.AskAlways, By: v.States["host"].ID})
	f = ask(2)
	_, err = v.Decide("fae", mailbox.SettleForm{Form: f.ID, By: v.States["host"].ID, Values: values, Principal: v.States["host"].ID})
	wantsPasskey(t, "a vote for it", err)
	v.CheckReplay()
}

// TestRequestThatAsksForAPasskey requests a capability for which its asker wants a passkey, of an agent of its node and of another one. What is
// given is signed, with how far it is narrowed, and nothing is given without.
func TestRequestThatAsksForAPasskey(t *testing.T) {
	v := mailboxtest.New(t)
	for _, name := range []string{"host@A", "fae@A", "bob@A", "host@B", "eve@B"} {
		v.Add(name)
	}
	v.NameAgents()
	v.Introduce("host@A", "host@B")
	phone, far := passkeytest.NewDevice(t, "http://localhost:7420"), passkeytest.NewDevice(t, "http://localhost:7420")
	v.Must("host@A", mailbox.AddPasskey{PasskeyAdded: phone.Added(t, "phone")})
	v.Must("host@B", mailbox.AddPasskey{PasskeyAdded: far.Added(t, "phone")})
	for _, one := range []struct {
		asker, answerer, to, give string
		device                    *passkeytest.Device
	}{{"fae@A", "host@A", "HOST", "bob", phone}, {"host@A", "host@B", "B", "eve", far}} {
		ask := mailbox.RequestForm{Kind: events.Request, Form: parley.Form{To: one.to, Description: "somebody for the tests", Key: "k", Name: "helper", Passkey: true}}
		form := v.Must(one.asker, ask)[0].(*events.FormRequested)
		v.Deliver(true)
		bare := ask
		bare.Passkey = false
		if _, _, err := bare.FindExisting(v.States[one.asker]); parley.CodeOf(err) != parley.InvalidArgument {
			t.Errorf("%s: the same key without the passkey: %v", one.asker, err)
		}
		home, err := v.States[one.asker].Mail.FindFormID(form.ID)
		if err != nil {
			t.Fatal(err)
		}

		v.Must(one.answerer, mailbox.CopyName{From: one.give, To: "chosen", Facet: capabilities.Facet{Uses: 5}})
		given := replyWith(form.ID, "value", "chosen")
		given.Narrow = map[string]capabilities.Facet{"value": {Uses: 2}}
		_, _, err = v.States[one.answerer].DraftAnswer(given, v.Now, v.IDsOf(one.answerer))
		wantsPasskey(t, "given without it", err)
		signed := signedBy(t, v, one.answerer, one.device, given)
		more := signed
		more.Narrow = nil
		if _, _, err := v.States[one.answerer].DraftAnswer(more, v.Now, v.IDsOf(one.answerer)); parley.CodeOf(err) != parley.PasskeyRefused {
			t.Errorf("%s: more is given than was signed: %v", one.asker, err)
		}
		named := signed
		named.Texts = []events.FieldText{{Name: "value", Text: one.give}}
		if _, _, err := v.States[one.answerer].DraftAnswer(named, v.Now, v.IDsOf(one.answerer)); parley.CodeOf(err) != parley.PasskeyRefused {
			t.Errorf("%s: another name is given than was signed: %v", one.asker, err)
		}
		for _, other := range []mailbox.CopyName{{From: "HOST", To: "chosen", Facet: capabilities.Facet{Uses: 5}}, {From: one.give, To: "chosen"}} {
			v.Must(one.answerer, mailbox.UnbindName{Name: "chosen"})
			v.Must(one.answerer, other)
			if _, _, err := v.States[one.answerer].DraftAnswer(signed, v.Now, v.IDsOf(one.answerer)); parley.CodeOf(err) != parley.PasskeyRefused {
				t.Errorf("%s: the name that was signed leads to %+v now: %v", one.asker, other, err)
			}
		}
		v.Must(one.answerer, mailbox.UnbindName{Name: "chosen"})
		v.Must(one.answerer, mailbox.CopyName{From: one.give, To: "chosen", Facet: capabilities.Facet{Uses: 5}})
		c, _, err := v.States[one.answerer].DraftAnswer(signed, v.Now, v.IDsOf(one.answerer))
		if err != nil {
			t.Fatal(err)
		}
		if one.answerer == "host@B" {
			other := c
			other.Grants = slices.Clone(c.Grants)
			other.Grants[0].Target = v.States["host@B"].ID
			other.Values = map[string]capabilities.Value{"value": capabilities.Reference(other.Grants[0].Ref())}
			if _, err := v.Decide(one.asker, mailbox.RemoteAnswer{SettleForm: other}); parley.CodeOf(err) != parley.PasskeyRefused {
				t.Errorf("the home takes another reference than was signed: %v", err)
			}
		}
		unsigned := c
		unsigned.Signed = nil
		if one.answerer == "host@B" {
			_, err = v.Decide(one.asker, mailbox.RemoteAnswer{SettleForm: unsigned})
		} else {
			_, err = v.Decide(one.asker, unsigned)
		}
		wantsPasskey(t, "the home without it", err)
		v.Must(one.answerer, c.Use)
		v.Must(one.answerer, mailbox.QueueAnswer{Answer: c})
		v.Deliver(one.answerer == "host@B") // twice between nodes alone
		if home.Form.IsOpen() || mailbox.Signed(home.Form) == nil || home.Form.Answered == nil {
			t.Errorf("%s: at home open %t, signed %+v", one.asker, home.Form.IsOpen(), mailbox.Signed(home.Form))
		}
		if v, err := v.States[one.asker].Namespace().Lookup("helper"); err != nil || !v.IsRef() {
			t.Errorf("%s: nothing is bound: %v", one.asker, err)
		}
	}

	// Rejecting one needs none.
	form := v.Must("fae@A", mailbox.RequestForm{Kind: events.Request, Form: parley.Form{To: "HOST", Description: "more", Passkey: true}})[0].(*events.FormRequested)
	v.Deliver(true)
	c, _, err := v.States["host@A"].DraftDecline(capabilities.FormID(form.ID), 0, "no", v.IDsOf("host@A"))
	if err != nil {
		t.Fatal(err)
	}
	v.Must("fae@A", c)
	v.CheckReplay()
}

// TestFormThatAsksForAPasskeyFarAway asks an agent of another node, who hands the form on within that node. The demand goes with it, and the
// home takes no answer of that node without a signature of this very answer.
func TestFormThatAsksForAPasskeyFarAway(t *testing.T) {
	v := mailboxtest.New(t)
	for _, name := range []string{"host@A", "host@B", "far@B"} {
		v.Add(name)
	}
	v.NameAgents()
	v.Introduce("host@A", "host@B")
	phone, other := passkeytest.NewDevice(t, "http://localhost:7420"), passkeytest.NewDevice(t, "http://localhost:7420")
	v.Must("far@B", mailbox.AddPasskey{PasskeyAdded: phone.Added(t, "phone")})
	v.Must("host@B", mailbox.AddPasskey{PasskeyAdded: other.Added(t, "key")})
	ask := parley.Form{To: "B", Description: "Deploy?", Fields: []events.Field{{Name: "f"}}}
	bare := v.Must("host@A", mailbox.RequestForm{Form: ask})[0].(*events.FormRequested)
	ask.Passkey = true
	form := v.Must("host@A", mailbox.RequestForm{Form: ask})[0].(*events.FormRequested)
	v.Deliver(true)
	if (&mailbox.Question{FormRequested: form}).QuestionDigest() == (&mailbox.Question{FormRequested: bare}).QuestionDigest() {
		t.Error("the digest of what is shown is the same without the passkey")
	}
	home, err := v.States["host@A"].Mail.FindFormID(form.ID)
	if err != nil {
		t.Fatal(err)
	}

	// To another who has no passkey, or another one.
	_, _, err = v.States["host@B"].DraftAnswer(replyWith(form.ID, "f", "yes"), v.Now, v.IDsOf("host@B"))
	wantsPasskey(t, "far away without it", err)
	signed := signedBy(t, v, "host@B", phone, replyWith(form.ID, "f", "yes"))
	if _, _, err := v.States["host@B"].DraftAnswer(signed, v.Now, v.IDsOf("host@B")); parley.CodeOf(err) != parley.PasskeyRefused {
		t.Errorf("a passkey of another: %v", err)
	}

	// A node that does not look at the demand, or lies, is refused at the home.
	by := v.States["host@B"].ID
	answer := func(values string, signed *events.DecisionSigned) error {
		c := mailbox.RemoteAnswer{SettleForm: mailbox.SettleForm{Form: form.ID, By: by, Values: map[string]capabilities.Value{"f": capabilities.String(values)}, Answer: v.IDsOf("host@B")(), Revision: 1, Signed: signed}}
		_, err := v.States["host@A"].Decide(c, v.Now, v.IDsOf("host@A"))
		return err
	}
	wantsPasskey(t, "the home without it", answer("yes", nil))
	c, _, err := v.States["host@B"].DraftAnswer(signedBy(t, v, "host@B", other, replyWith(form.ID, "f", "yes")), v.Now, v.IDsOf("host@B"))
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(e *events.DecisionSigned){
		"another answerer":  func(e *events.DecisionSigned) { e.By = v.States["far@B"].ID },
		"another form":      func(e *events.DecisionSigned) { e.Form = bare.ID },
		"another signature": func(e *events.DecisionSigned) { e.Signature = append([]byte{}, e.Signature...); e.Signature[9] ^= 1 },
		"another key":       func(e *events.DecisionSigned) { e.Key = phone.Added(t, "").Key },
		"no key":            func(e *events.DecisionSigned) { e.Key = nil },
		"a passkey of here": func(e *events.DecisionSigned) { e.Passkey = v.States["host@A"].ID },
		"another statement": func(e *events.DecisionSigned) { e.Statement += " " },
	} {
		e := *c.Signed
		change(&e)
		if err := answer("yes", &e); parley.CodeOf(err) != parley.PasskeyRefused {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := answer("no", c.Signed); parley.CodeOf(err) != parley.PasskeyRefused {
		t.Errorf("another answer: %v", err)
	}
	if err := answer("yes", c.Signed); err != nil {
		t.Errorf("the answer that was signed: %v", err)
	}

	// The way that it goes: queued with the signature, sent twice, and both know.
	v.Must("host@B", c.Use)
	v.Must("host@B", mailbox.QueueAnswer{Answer: c})
	v.Deliver(true)
	if home.Form.IsOpen() || mailbox.Signed(home.Form) == nil || mailbox.Signed(home.Form).By != by {
		t.Fatalf("at home: open %t, signed %+v", home.Form.IsOpen(), mailbox.Signed(home.Form))
	}
	m, err := v.States["host@B"].Mail.FindFormID(form.ID)
	if err != nil || mailbox.Signed(m.Form) == nil {
		t.Fatalf("at who answered: %v", err)
	}

	// A signature that nobody asked for is refused.
	form = bare
	if err := answer("yes", c.Signed); parley.CodeOf(err) != parley.PasskeyRefused {
		t.Errorf("a signature of a form that asks for none: %v", err)
	}

	// Handed on, the demand goes with it.
	ask.Description = "Deploy now?"
	form = v.Must("host@A", mailbox.RequestForm{Form: ask})[0].(*events.FormRequested)
	v.Deliver(true)
	v.Must("host@B", mailbox.QueueForward{Form: capabilities.FormID(form.ID), To: "far"})
	v.Deliver(true)
	m, err = v.States["far@B"].Mail.FindFormID(form.ID)
	if err != nil || !m.Form.AsksPasskey() {
		t.Fatalf("what was handed on asks for no passkey: %v", err)
	}
	_, _, err = v.States["far@B"].DraftAnswer(replyWith(form.ID, "f", "yes"), v.Now, v.IDsOf("far@B"))
	wantsPasskey(t, "to whom it was handed on", err)
	v.CheckReplay()
}
