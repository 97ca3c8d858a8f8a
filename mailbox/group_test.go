package mailbox_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/mailboxtest"
)

// TestGroupLaws has agents join and leave a group, on the node of the asker or on another, while forms come. The forms are
// answered by the group and those that are members at that time, and by nobody else.
func TestGroupLaws(t *testing.T) {
	lawful(t, func(t *rapid.T) {
		v := mailboxtest.New(t)
		for _, name := range []string{"host@A", "grp@A", "ann@A", "host@B", "bob@B"} {
			v.Add(name)
		}
		v.NameAgents()
		v.OnRefusal = func(_, _, why string) { // a member that left before the copy came has no message to end
			mayBe := []parley.Code{parley.NotPermitted, parley.NoSuchMessage, parley.AlreadyAnswered, parley.AlreadyCancelled}
			if code, _, _ := strings.Cut(why, ":"); !slices.Contains(mayBe, parley.Code(code)) {
				t.Fatal(why)
			}
		}
		v.Introduce("host@A", "host@B")
		v.Must("host@A", mailbox.PostMessage{To: "grp", Post: parley.Post{Text: "know @ann and @B"}})
		v.Must("host@A", mailbox.PostMessage{To: "B", Post: parley.Post{Text: "know @ann"}})
		v.Deliver(false)
		group, to, others := "grp@A", "grp", []string{"ann@A", "host@B"}
		if rapid.Bool().Draw(t, "remote") {
			group, to, others = "host@B", "B", []string{"ann@A", "bob@B"}
		}
		members, joins := map[string]bool{}, 0
		var asked []capabilities.ID
		other, twice := rapid.SampledFrom(others), rapid.Bool()
		home := func(id capabilities.ID) *mailbox.Form {
			m, err := v.States["host@A"].Mail.FindFormID(id)
			if err != nil {
				t.Fatal(err)
			}
			return m.Form
		}
		t.Repeat(map[string]func(*rapid.T){
			"join": func(t *rapid.T) {
				if joins++; joins > 14 { // a form is forwarded so many times only
					return
				}
				who := other.Draw(t, "who")
				v.Must(group, mailbox.SetMember{Agent: v.States[who].ID.String(), In: true})
				members[who] = true
			},
			"leave": func(t *rapid.T) {
				who := other.Draw(t, "who")
				v.Must(group, mailbox.SetMember{Agent: v.States[who].ID.String()})
				members[who] = false
			},
			"ask": func(*rapid.T) {
				asked = append(asked, v.Must("host@A", mailbox.RequestForm{Form: parley.Form{To: to, Description: "question", Fields: text}})[0].(*events.FormRequested).ID)
			},
			"deliver":    func(t *rapid.T) { v.Deliver(twice.Draw(t, "twice")) },
			"disconnect": func(*rapid.T) { v.Offline = map[string]bool{"A": true} },
			"restart":    func(*rapid.T) { v.CheckReplay() },
			"answer": func(t *rapid.T) {
				v.Offline = nil
				v.Deliver(twice.Draw(t, "twice"))
				who := rapid.SampledFrom(append(slices.Clone(others), group)).Draw(t, "who")
				for _, id := range asked {
					if f := home(id); f.IsOpen() {
						answerHome(t, v, who, id)
						if may := who == group || members[who]; home(id).IsOpen() == may {
							t.Fatalf("%s of %v: may answer: %v; the form is open: %v", who, members, may, home(id).IsOpen())
						}
						return
					}
				}
			},
		})
	})
}

// answerHome answers a form of host@A and delivers the answer. One who has no copy, or whose answer is refused, does nothing.
func answerHome(t rapid.TB, v *mailboxtest.Harness, who string, form capabilities.ID) {
	c, home, err := v.States[who].DraftAnswer(mailbox.Reply{Form: capabilities.FormID(form), Answer: parley.Answer{Texts: []events.FieldText{{Name: "f", Text: "x"}}}}, v.Now, v.IDsOf(who))
	switch {
	case parley.CodeOf(err) == parley.NoSuchMessage:
	case err != nil:
		t.Fatal(err)
	case home.Node != v.States[who].ID.Node:
		v.Must(who, mailbox.QueueAnswer{Answer: c})
	default:
		if _, err := v.Decide("host@A", c); err != nil && parley.CodeOf(err) != parley.NotPermitted {
			t.Fatal(err)
		}
	}
	v.Deliver(false)
}

// TestRevokedForwardCutsDelegates has a recipient on another node forward a form to one who forwards it on. Revoking the
// grant of the first forward takes the form from both, and leaves the recipient's own answer.
func TestRevokedForwardCutsDelegates(t *testing.T) {
	t.Parallel()
	v := mailboxtest.New(t)
	for _, name := range []string{"host@A", "host@B", "bob@B", "cy@B"} {
		v.Add(name)
	}
	v.NameAgents()
	v.OnRefusal = func(_, _, why string) {
		if !strings.HasPrefix(why, string(parley.NotPermitted)) {
			t.Fatal(why)
		}
	}
	v.Introduce("host@A", "host@B")
	v.Must("host@B", mailbox.PostMessage{To: "bob", Post: parley.Post{Text: "know @cy"}})
	v.Deliver(false)
	form := v.Must("host@A", mailbox.RequestForm{Form: parley.Form{To: "B", Description: "question", Fields: text}})[0].(*events.FormRequested).ID
	v.Deliver(false)
	cy := v.States["cy@B"].ID.String()
	evs := v.Must("host@B", mailbox.QueueForward{Form: capabilities.FormID(form), To: "bob"})
	v.Deliver(false)
	v.Must("bob@B", mailbox.QueueForward{Form: capabilities.FormID(form), To: cy})
	v.Deliver(false)
	v.Must("host@B", mailbox.RevokeCapability{Grant: evs[0].(*events.CapabilityGranted).Grant.ID})
	v.Deliver(true)
	f := func() *mailbox.Form {
		m, err := v.States["host@A"].Mail.FindFormID(form)
		if err != nil {
			t.Fatal(err)
		}
		return m.Form
	}
	for _, who := range []string{"bob@B", "cy@B"} {
		if answerHome(t, v, who, form); !f().IsOpen() {
			t.Fatalf("%s answered what was taken back", who)
		}
	}
	v.CheckReplay()
	if answerHome(t, v, "host@B", form); f().Answered == nil {
		t.Error("the recipient cannot answer any more")
	}
}
