package mailbox_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/mailboxtest"
)

// TestAmendedFormLaws amends, answers and forwards one form over two nodes that lose each other. A copy only ever shows a
// question of its home, and no earlier one than before. What settles the form is an answer to the home's last question.
// When all is delivered, all copies show that.
func TestAmendedFormLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := mailboxtest.New(t)
		for _, name := range []string{"fae@A", "host@B", "bob@B", "cy@B"} {
			v.Add(name)
		}
		v.NameAgents()
		v.OnRefusal = func(_, _, why string) {
			if !strings.HasPrefix(why, string(parley.Amended)) && !strings.HasPrefix(why, string(parley.NotPermitted)) && !strings.HasPrefix(why, "ALREADY_") {
				t.Fatal(why)
			}
		}
		v.Introduce("fae@A", "host@B")
		form := v.Must("fae@A", mailbox.RequestForm{Form: parley.Form{To: "B", Description: "question 1", Fields: text}})[0].(*events.FormRequested).ID
		v.Deliver(false)
		ref := capabilities.FormID(form)
		find := func(name string) *mailbox.Form {
			m, err := v.States[name].Mail.FindFormID(form)
			if err != nil {
				return nil
			}
			return m.Form
		}
		holders := rapid.SampledFrom([]string{"host@B", "bob@B", "cy@B"})
		seen := map[string]uint64{}
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				for _, name := range v.Agents {
					f := find(name)
					if f == nil {
						continue
					}
					if now := f.Revision(); now < seen[name] {
						t.Fatalf("%s has revision %d after %d", name, now, seen[name])
					}
					if seen[name] = f.Revision(); f.Description != fmt.Sprint("question ", f.Revision()) {
						t.Fatalf("%s shows %q as revision %d", name, f.Description, f.Revision())
					}
				}
				checkSettledRevision(t, v.Logs["fae@A"], v.Logs)
			},
			"amend": func(*rapid.T) {
				f := find("fae@A")
				next := fmt.Sprint("question ", f.Revision()+1)
				_, err := v.Decide("fae@A", mailbox.AmendForm{Form: ref, Amendment: parley.Amendment{Description: &next}})
				if f.IsOpen() != (err == nil) && parley.CodeOf(err) != parley.TooLarge {
					t.Fatal(err)
				}
			},
			"answer": func(t *rapid.T) {
				name := holders.Draw(t, "holder")
				f := find(name)
				if f == nil {
					return
				}
				shown := uint64(rapid.IntRange(1, int(f.Revision())).Draw(t, "shown"))
				c, _, err := v.States[name].DraftAnswer(mailbox.Reply{Form: ref, Answer: parley.Answer{Revision: shown, Texts: []events.FieldText{{Name: "f", Text: "x"}}}}, v.Now, v.IDsOf(name))
				switch {
				case err == nil && shown != f.Revision():
					t.Fatalf("an answer to revision %d of %d is drafted", shown, f.Revision())
				case err == nil:
					v.Must(name, mailbox.QueueAnswer{Answer: c})
				case f.IsOpen() && f.Queued().Answer == nil && parley.CodeOf(err) != parley.Amended:
					t.Fatal(err)
				}
			},
			"forward": func(t *rapid.T) {
				from, to := holders.Draw(t, "from"), rapid.SampledFrom([]string{"bob", "cy"}).Draw(t, "to")
				if f := find(from); f != nil && f.IsOpen() {
					_, _ = v.Decide(from, mailbox.QueueForward{Form: ref, To: to}) // refused if the agent cannot reach the other
				}
			},
			"disconnect": func(*rapid.T) { v.Offline = map[string]bool{"A": true} },
			"deliver":    func(t *rapid.T) { v.Deliver(rapid.Bool().Draw(t, "twice")) },
			"restart":    func(*rapid.T) { v.CheckReplay() },
			"reconnect": func(*rapid.T) {
				v.Offline = nil
				v.Deliver(true)
				home := find("fae@A")
				for _, name := range v.Agents {
					if f := find(name); f != nil && home.IsOpen() && f.Revision() != home.Revision() {
						t.Fatalf("%s has revision %d, and the home %d", name, f.Revision(), home.Revision())
					}
				}
			},
		})
	})
}

// checkSettledRevision fails if the form was settled by an answer to another revision than the one before the settlement.
func checkSettledRevision(t *rapid.T, home []events.Recorded, logs map[string][]events.Recorded) {
	var revision uint64
	for _, r := range home {
		switch e := r.Event.(type) {
		case *events.FormAmended:
			revision = e.Revision
		case *events.FormAnswered:
			for _, log := range logs {
				for _, r := range log {
					if q, ok := r.Event.(*events.AnswerQueued); ok && q.Answer == e.Answer && q.Revision != revision {
						t.Fatalf("an answer to revision %d settled revision %d", q.Revision, revision)
					}
				}
			}
		}
	}
}

// TestAmendmentOfAnotherNodeIsChecked refuses amendments that the form's asker did not make, or could not make.
func TestAmendmentOfAnotherNodeIsChecked(t *testing.T) {
	v := mailboxtest.New(t)
	for _, name := range []string{"fae@A", "eve@A", "host@B"} {
		v.Add(name)
	}
	v.Introduce("fae@A", "host@B")
	asked := v.Must("fae@A", mailbox.RequestForm{Form: parley.Form{To: "B", Description: "first", Fields: text}})[0].(*events.FormRequested)
	v.Deliver(false)
	good := func() *events.FormAmended {
		return &events.FormAmended{Form: asked.ID, Revision: 2, Description: "second", Fields: asked.Fields, Date: v.Now}
	}
	for name, c := range map[string]struct {
		change func(*events.FormAmended)
		from   string
		digest bool
		want   parley.Code
	}{
		"another agent of the node": {from: "eve@A", want: parley.NotPermitted},
		"another digest":            {digest: true, want: parley.InvalidArgument},
		"too many":                  {change: func(e *events.FormAmended) { e.Revision = 1 << 60 }, want: parley.TooLarge},
		"no question":               {change: func(e *events.FormAmended) { e.Description = "" }, want: parley.InvalidForm},
		"a field twice":             {change: func(e *events.FormAmended) { e.Fields = append(e.Fields, e.Fields[0]) }, want: parley.InvalidForm},
		"an unknown form":           {change: func(e *events.FormAmended) { e.Form = v.NewID() }, want: parley.NoSuchMessage},
		"the revision that is here": {change: func(e *events.FormAmended) { e.Revision = 1 }},
		"a long comment":            {change: func(e *events.FormAmended) { e.Note = string(make([]byte, 1<<20)) }, want: parley.TooLarge},
	} {
		e := good()
		if c.change != nil {
			c.change(e)
		}
		if e.Digest = e.QuestionDigest(); c.digest {
			e.Digest[0]++
		}
		from := v.States["fae@A"].ID
		if c.from != "" {
			from = v.States[c.from].ID
		}
		command, err := mailbox.Unpack(events.OutboxAmendment, from, []events.Event{e})
		if err == nil {
			_, err = v.Decide("host@B", command)
		}
		if parley.CodeOf(err) != c.want {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	if f := v.Messages("host@B")[0].Form; f.Revision() != 1 || f.Description != "first" {
		t.Errorf("the form is at revision %d: %s", f.Revision(), f.Description)
	}
}
