package mailbox_test

import (
	"strings"
	"testing"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/mailboxtest"
	"parley/mailbox/rule"
)

const pushRule = "git push to origin, any branches or tags, without options, in /srv/shop"

// pushCall returns a call for which a wider rule is offered.
func pushCall() mailbox.RequestApproval {
	return mailbox.RequestApproval{Permission: parley.Permission{Tool: "shell", Input: `{"command":"git push origin main"}`, Folder: "/srv/shop"}}
}

// TestOffersFromAnotherNodeAreRefused sends approvals with offered rules or a remark. They are accepted from an agent of the
// same node only.
func TestOffersFromAnotherNodeAreRefused(t *testing.T) {
	v := mailboxtest.New(t)
	v.Add("host")
	v.Add("fae")
	evs, err := v.States["fae"].Decide(pushCall(), v.Now, v.NewID)
	if err != nil {
		t.Fatal(err)
	}
	asked := evs[0].(*events.FormRequested)
	remarked := *asked
	remarked.Fields = append([]events.Field{}, mailbox.ApprovalFields()...)
	remarked.Fields[0].Help = "Your rule covers it."
	plain := *asked
	plain.Fields = mailbox.ApprovalFields()
	for name, test := range map[string]struct {
		form    *events.FormRequested
		outside bool
		want    parley.Code
	}{
		"rules, same node": {asked, false, ""}, "rules, another node": {asked, true, parley.InvalidForm},
		"a remark, same node": {&remarked, false, ""}, "a remark, another node": {&remarked, true, parley.InvalidForm}, "neither, same node": {&plain, false, ""},
	} {
		var c mailbox.Command = mailbox.AcceptDelivery{Form: new(*test.form)}
		if test.outside {
			c = mailbox.RemoteDelivery{AcceptDelivery: mailbox.AcceptDelivery{Form: test.form}}
		}
		_, err := v.States["host"].Decide(c, v.Now, v.NewID)
		if got := parley.CodeOf(err); got != test.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	twice := plain
	twice.Description = `{"command":"ls","command":"rm"}`
	if _, err := v.States["host"].Decide(mailbox.RemoteDelivery{AcceptDelivery: mailbox.AcceptDelivery{Form: &twice}}, v.Now, v.NewID); parley.CodeOf(err) != parley.InvalidForm {
		t.Errorf("an input with a duplicate key is accepted: %v", err)
	}
	for name, fields := range map[string][]events.Field{
		"required": {mailbox.ApprovalFields()[0], mailbox.ApprovalFields()[1], {Name: mailbox.RuleField, Type: events.Select, Required: true, Options: []events.Option{{Value: "x"}}}},
		"two more": {mailbox.ApprovalFields()[0], mailbox.ApprovalFields()[1], asked.Fields[2], {Name: "more"}},
		"another":  {mailbox.ApprovalFields()[0], mailbox.ApprovalFields()[1], {Name: "secret", Type: events.Secret}},
	} {
		form := plain
		form.Fields = fields
		if _, err := v.States["host"].Decide(mailbox.AcceptDelivery{Form: &form}, v.Now, v.NewID); parley.CodeOf(err) != parley.InvalidForm {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSnapshotHasOfferedRules answers an approval in a restored mailbox.
func TestSnapshotHasOfferedRules(t *testing.T) {
	v := mailboxtest.New(t)
	v.Add("host")
	v.Add("fae")
	v.Must("fae", pushCall())
	snapshot, err := v.States["fae"].Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	fae, err := mailbox.Restore(v.States["fae"].ID, snapshot)
	if err != nil {
		t.Fatal(err)
	}
	m, err := fae.Mail.FindForm(capabilities.FormNumber(0))
	if err != nil {
		t.Fatal(err)
	}
	answer := func(offer string) ([]events.Event, error) {
		values := map[string]capabilities.Value{mailbox.DecisionField: capabilities.String(mailbox.Always), mailbox.RuleField: capabilities.String(offer)}
		return fae.Decide(mailbox.RemoteAnswer{SettleForm: mailbox.SettleForm{Form: m.Form.ID, By: v.States["host"].ID, Values: values, Answer: v.NewID()}}, v.Now, v.NewID)
	}
	if evs, err := answer("commands-0123456789abcdef"); parley.CodeOf(err) != parley.InvalidAnswer {
		t.Errorf("a rule that is not offered: %v %v", evs, err)
	}
	evs, err := answer(m.Form.Permission().Offers[1].ID)
	if err != nil || len(evs) != 2 {
		t.Fatal(evs, err)
	}
	made := evs[1].(*events.RuleAdded)
	if r := (mailbox.Rule{RuleAdded: *made}); r.Words() != pushRule || made.Covers.Folder != "/srv/shop" {
		t.Errorf("made %q, %+v", r.Words(), made)
	}
}

// TestLargestInputIsAccepted asks about calls of the largest input, and of one byte more, where they are asked and where they are delivered.
func TestLargestInputIsAccepted(t *testing.T) {
	v := mailboxtest.New(t)
	v.Add("host")
	v.Add("fae")
	call := func(size int) mailbox.RequestApproval {
		const around = `{"content":""}`
		return mailbox.RequestApproval{Permission: parley.Permission{Tool: "Write", Input: `{"content":"` + strings.Repeat("x", size-len(around)) + `"}`}}
	}
	refused := func(what string, err error) {
		t.Helper()
		if e := parley.AsError(err); e.Code != parley.TooLarge || !strings.Contains(e.Message, "over the limit of 262144") || e.Hint == "" {
			t.Errorf("%s: %v", what, err)
		}
	}
	evs, err := v.States["fae"].Decide(call(mailbox.MaxInput), v.Now, v.NewID)
	if err != nil {
		t.Fatal(err)
	}
	asked := *evs[0].(*events.FormRequested)
	asked.Fields = mailbox.ApprovalFields()
	deliver := func() error {
		_, err := v.States["host"].Decide(mailbox.AcceptDelivery{Form: new(asked)}, v.Now, v.NewID)
		return err
	}
	if err := deliver(); err != nil {
		t.Errorf("delivered: %v", err)
	}
	_, err = v.States["fae"].Decide(call(mailbox.MaxInput+1), v.Now, v.NewID)
	refused("one byte more", err)
	asked.Description = call(mailbox.MaxInput + 1).Input
	refused("one byte more, delivered", deliver())
	asked.Kind, asked.Call = events.PlainForm, nil
	asked.Description = strings.Repeat("x", 16<<10+1)
	if err := deliver(); parley.CodeOf(err) != parley.TooLarge {
		t.Errorf("a form with a description of %d bytes: %v", len(asked.Description), err)
	}
	asked.Description = asked.Description[1:]
	if err := deliver(); err != nil {
		t.Errorf("a form with a description of %d bytes: %v", len(asked.Description), err)
	}
}

// TestRuleIsOfTheNamedOffer answers an approval by the offers of it and of another. Two of its offers have the same words, and
// the ID tells them apart. That of another approval's offer is refused.
func TestRuleIsOfTheNamedOffer(t *testing.T) {
	v := mailboxtest.New(t)
	v.Add("host")
	v.Add("fae")
	offered := func(command string, change func(*events.FormRequested)) *mailbox.Form {
		evs, err := v.States["fae"].Decide(mailbox.RequestApproval{Permission: parley.Permission{Tool: "shell", Input: command, Folder: "/srv/shop"}}, v.Now, v.NewID)
		if err != nil || len(evs) != 1 {
			t.Fatal(evs, err)
		}
		change(evs[0].(*events.FormRequested))
		if err := v.States["fae"].Apply(events.Recorded{At: v.Now, Event: evs[0]}); err != nil {
			t.Fatal(err)
		}
		m, err := v.States["fae"].Mail.FindFormID(evs[0].(*events.FormRequested).ID)
		if err != nil {
			t.Fatal(err)
		}
		return m.Form
	}
	push := offered(`{"command":"git push origin main"}`, func(*events.FormRequested) {}).Permission().Offers[1]
	log := offered(`{"command":"git log"}`, func(e *events.FormRequested) {
		twin := e.Call.Offers[1]
		twin.ID, twin.Rule.Folder = "twin", "/srv"
		e.Call.Offers = append(e.Call.Offers, twin)
		e.Fields[2].Options = append(e.Fields[2].Options, events.Option{Value: twin.ID, Label: twin.Words})
	})
	answer := func(offer string) ([]events.Event, error) {
		values := map[string]capabilities.Value{mailbox.DecisionField: capabilities.String(mailbox.Always), mailbox.RuleField: capabilities.String(offer)}
		return v.States["fae"].Decide(mailbox.RemoteAnswer{SettleForm: mailbox.SettleForm{Form: log.ID, By: v.States["host"].ID, Values: values, Answer: v.NewID()}}, v.Now, v.NewID)
	}
	if evs, err := answer(push.ID); parley.CodeOf(err) != parley.InvalidAnswer {
		t.Errorf("the offer of another approval is taken: %v %v", evs, err)
	}
	if evs, err := answer(log.Permission().Offers[1].Words); parley.CodeOf(err) != parley.InvalidAnswer {
		t.Errorf("an offer is taken by its words: %v %v", evs, err)
	}
	for _, o := range log.Permission().Offers[1:] {
		evs, err := answer(o.ID)
		if err != nil || len(evs) != 2 {
			t.Fatal(evs, err)
		}
		if made := evs[1].(*events.RuleAdded); made.Covers.Folder != o.Rule.Folder {
			t.Errorf("the offer %s makes a rule in %s", o.ID, made.Covers.Folder)
		}
	}
}

// TestForeignApprovalOffersNoRules has an approval of another node offer a rule.
func TestForeignApprovalOffersNoRules(t *testing.T) {
	v := mailboxtest.New(t)
	v.Add("host")
	v.Add("fae")
	evs := v.Must("fae", mailbox.RequestApproval{Permission: parley.Permission{Tool: "shell", Input: "1"}})
	e := *evs[0].(*events.FormRequested)
	e.ID, e.Promise, e.Resolver, e.Fields = v.NewID(), v.NewID(), v.NewID(), mailbox.ApprovalFields()
	if len(e.Call.Offers) == 0 {
		t.Fatal("it offers none")
	}
	if _, err := v.States["host"].Decide(mailbox.RemoteDelivery{AcceptDelivery: mailbox.AcceptDelivery{Form: &e}}, v.Now, v.NewID); parley.CodeOf(err) != parley.InvalidForm {
		t.Errorf("it is accepted: %v", err)
	}
}

// TestOnlyTheHostAddsRules adds a rule without an approval. Another agent's is refused, one that has ended too, and a second that says no
// more is none.
func TestOnlyTheHostAddsRules(t *testing.T) {
	v := mailboxtest.New(t)
	v.Add("host")
	v.Add("fae")
	fae, host := v.States["fae"], v.States["fae"].Profile.Host
	read := rule.Read(&parley.Permission{Tool: "shell", Input: `{"command":"git push origin main"}`, Folder: "/srv/shop"})
	add := mailbox.AddRule{Tool: "shell", Covers: read.Offers()[0], Allow: true, By: host}
	for name, c := range map[string]struct {
		change func(c *mailbox.AddRule)
		want   parley.Code
	}{
		"by the agent itself": {func(c *mailbox.AddRule) { c.By = fae.ID }, parley.NotPermitted},
		"by nobody":           {func(c *mailbox.AddRule) { c.By = capabilities.ID{} }, parley.NotPermitted},
		"ended":               {func(c *mailbox.AddRule) { c.Until = v.Now }, parley.InvalidArgument},
	} {
		other := add
		c.change(&other)
		if evs, err := fae.Decide(other, v.Now, v.NewID); parley.CodeOf(err) != c.want || len(evs) > 0 {
			t.Errorf("%s: %v, %v", name, evs, err)
		}
	}
	evs, err := fae.Decide(add, v.Now, v.NewID)
	if err != nil || len(evs) != 1 {
		t.Fatal(evs, err)
	}
	if err := fae.Apply(events.Recorded{At: v.Now, Event: evs[0]}); err != nil {
		t.Fatal(err)
	}
	if again, err := fae.Decide(add, v.Now, v.NewID); err != nil || len(again) != 0 {
		t.Errorf("the same again: %v, %v", again, err)
	}
	used, err := fae.Decide(pushCall(), v.Now, v.NewID)
	if err != nil || len(used) != 1 {
		t.Fatal(used, err)
	}
	if _, ok := used[0].(*events.RuleUsed); !ok {
		t.Errorf("the rule decides nothing: %T", used[0])
	}
}

// TestPausedRuleAsks pauses rules that allow and that deny: what they covered is asked about, under each policy, unless another rule
// decides it. The same rule, made again, goes on. What was never allowed is asked about also where another rule allows it.
func TestPausedRuleAsks(t *testing.T) {
	v := mailboxtest.New(t)
	v.Add("host")
	v.Add("fae")
	fae := v.States["fae"]
	host := fae.Profile.Host
	read := rule.Read(&parley.Permission{Tool: "shell", Input: `{"command":"git push origin main"}`, Folder: "/srv/shop"})
	do := func(c mailbox.Command, want parley.Code, wantEvents int) {
		t.Helper()
		evs, err := fae.Decide(c, v.Now, v.NewID)
		if parley.CodeOf(err) != want || len(evs) != wantEvents {
			t.Fatalf("%+v: %v, %v", c, evs, err)
		}
		for _, e := range evs {
			if err := fae.Apply(events.Recorded{At: v.Now, Event: e}); err != nil {
				t.Fatal(err)
			}
		}
	}
	asks := func(want bool) {
		t.Helper()
		evs, err := fae.Decide(pushCall(), v.Now, v.NewID)
		if err != nil || len(evs) != 1 {
			t.Fatal(evs, err)
		}
		if _, is := evs[0].(*events.FormRequested); is != want {
			t.Errorf("the call: %T", evs[0])
		}
	}
	for _, allow := range []bool{true, false} {
		add := mailbox.AddRule{Tool: "shell", Covers: read.Offers()[0], Allow: allow, By: host}
		do(add, "", 1)
		made := fae.Rules.Valid(v.Now)[0].Rule
		asks(false)
		pause := mailbox.PauseRule{Rule: made, Paused: true, By: host}
		for _, by := range []capabilities.ID{fae.ID, {}} {
			other := pause
			other.By = by
			do(other, parley.NotPermitted, 0)
		}
		do(mailbox.PauseRule{Rule: fae.ID, Paused: true, By: host}, parley.NotPermitted, 0)
		do(pause, "", 1)
		do(pause, "", 0)
		for _, policy := range []string{mailbox.AskNever, mailbox.DenyAll, mailbox.AskAlways, mailbox.AskOnMiss} {
			do(mailbox.SetPolicy{Policy: policy, By: host}, "", 1)
			asks(true)
		}
		exact := add
		exact.Covers = read.Exact()
		do(exact, "", 1)
		asks(false)
		do(mailbox.RemoveRule{Rule: fae.Rules.Valid(v.Now)[1].Rule, By: host}, "", 1)
		asks(true)
		do(add, "", 1)
		if all := fae.Rules.Valid(v.Now); len(all) != 1 || all[0].Rule != made || all[0].Paused || all[0].Until != 0 {
			t.Errorf("made again: %+v", all)
		}
		asks(false)
		do(pause, "", 1)
		do(mailbox.LimitRule{Rule: made, Until: v.Now + 60_000, By: host}, "", 1)
		asks(true) // an end does not resume it
		pause.Paused = false
		do(pause, "", 1)
		asks(false)
		if !allow {
			do(mailbox.PauseRule{Rule: made, Paused: true, By: host}, "", 1)
			other := exact
			other.Allow = true
			do(other, "", 1)
			asks(true)
		}
		do(mailbox.RemoveRule{Rule: made, By: host}, "", 1)
	}
}

// TestEndedRuleIsNotProlonged has a rule end, and refuses to give it a later end: it would allow calls again that nobody made a rule of.
func TestEndedRuleIsNotProlonged(t *testing.T) {
	v := mailboxtest.New(t)
	v.Add("host")
	v.Add("fae")
	v.NameAgents()
	host := v.States["host"].ID
	p := parley.Permission{Tool: "Bash", Folder: "/srv/shop", Input: `{"command":"ls"}`}
	evs := v.Must("fae", mailbox.AddRule{By: host, Tool: p.Tool, Covers: rule.Read(&p).Exact(), Allow: true, Until: v.Now + 1000})
	id := evs[0].(*events.RuleAdded).Rule
	v.Must("fae", mailbox.LimitRule{Rule: id, By: host, Until: v.Now + 2000})
	v.Now += 2000
	if _, err := v.Decide("fae", mailbox.LimitRule{Rule: id, By: host, Until: v.Now + 1000}); err == nil {
		t.Error("a rule that has ended is prolonged")
	}
}
