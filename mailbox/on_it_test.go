package mailbox_test

import (
	"testing"

	"pgregory.net/rapid"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/mailboxtest"
)

const minute = 60_000

// opsGroup has a group of one here and one on another node, and returns the function that asks it.
func opsGroup(tb rapid.TB, ask parley.Form) (v *mailboxtest.Harness, asked func() capabilities.ID) {
	v = mailboxtest.New(tb)
	v.SkipChecksums = true
	for _, name := range []string{"host@A", "ops@A", "ann@A", "fae@A", "far@B"} {
		v.Add(name)
	}
	v.NameAgents()
	v.Introduce("host@A", "far@B")
	v.Must("host@A", mailbox.PostMessage{To: "ops", Post: parley.Post{Text: "know @ann and @B"}})
	v.Deliver(false)
	for _, member := range []string{"ann", "B"} {
		v.Must("ops@A", mailbox.SetMember{Agent: "@mail/0/" + member, In: true})
	}
	return v, func() capabilities.ID {
		ask.To, ask.Description, ask.Fields = "ops", "Deploy?", []events.Field{{Name: "f"}}
		form := v.Must("host@A", mailbox.RequestForm{Form: ask})[0].(*events.FormRequested).ID
		v.Deliver(false)
		return form
	}
}

// TestOneOfAGroupIsOnAForm claims, takes over, releases, answers, leaves and waits, while another node may be offline. What ends a form is of
// whoever was on it then, if anybody was; at most one is; and all who have the form know who is, once they are told.
func TestOneOfAGroupIsOnAForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, ask := opsGroup(t, parley.Form{})
		v.OnRefusal = func(string, string, string) {}
		v.Offline = map[string]bool{}
		form := ask()
		someone := rapid.SampledFrom([]string{"ops@A", "ann@A", "far@B", "fae@A"})
		claim := func(t *rapid.T) {
			who := someone.Draw(t, "who")
			until := v.Now + capabilities.Time(rapid.IntRange(1, 90).Draw(t, "minutes"))*minute
			if rapid.IntRange(0, 3).Draw(t, "release") == 0 {
				until = 0
			}
			c, home, err := mailbox.DraftClaim(v.States[who], capabilities.FormID(form), until, rapid.Bool().Draw(t, "take over"), v.Now)
			switch {
			case who == "fae@A":
				if parley.CodeOf(err) != parley.NoSuchMessage {
					t.Fatalf("who does not have the form claims it with %v", err)
				}
				c = mailbox.ClaimForm{Form: form, By: v.States[who].ID, Until: until, TakeOver: true}
				if _, err := v.Decide("host@A", c); parley.CodeOf(err) != parley.NotPermitted {
					t.Fatalf("who does not have the form claims it at its home with %v", err)
				}
			case err != nil:
			case v.NameOf[home] == "host@A" && who != "far@B":
				if _, err := v.Decide("host@A", c); err != nil && parley.CodeOf(err) != parley.Claimed && parley.CodeOf(err) != parley.NotPermitted && parley.CodeOf(err) != parley.TooLarge {
					t.Fatal(err)
				}
			default:
				_, _ = v.Decide(who, mailbox.QueueClaim{Claim: c}) // it may be refused, as on its way already
			}
			v.Deliver(false)
		}
		answer := func(t *rapid.T) {
			who := rapid.SampledFrom([]string{"ops@A", "ann@A", "far@B"}).Draw(t, "who")
			s := v.States[who]
			c, _, err := s.DraftAnswer(mailbox.Reply{Form: capabilities.FormID(form), Answer: parley.Answer{Texts: []events.FieldText{{Name: "f", Text: who}}}}, v.Now, v.IDsOf(who))
			if rapid.IntRange(0, 3).Draw(t, "decline") == 0 && err == nil {
				c, _, err = s.DraftDecline(capabilities.FormID(form), 0, "no", v.IDsOf(who))
			}
			if err != nil {
				return
			}
			if who == "far@B" {
				_, _ = v.Decide(who, mailbox.QueueAnswer{Answer: c})
			} else {
				_, _ = v.Decide("host@A", c)
			}
			v.Deliver(false)
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				if m, err := v.States["host@A"].Mail.FindFormID(form); err == nil && !m.Form.IsOpen() {
					form = ask()
				}
			},
			"claim": claim, "claim more": claim, "claim yet more": claim, "answer": answer,
			"wait":    func(t *rapid.T) { v.Now += capabilities.Time(rapid.IntRange(1, 40).Draw(t, "minutes")) * minute },
			"offline": func(*rapid.T) { v.Offline["B"] = !v.Offline["B"]; v.Deliver(true) },
			"leave": func(t *rapid.T) {
				v.Must("ops@A", mailbox.SetMember{Agent: "@mail/0/ann", In: rapid.Bool().Draw(t, "in")})
				v.Deliver(false)
			},
			"restart": func(t *rapid.T) {
				who := rapid.SampledFrom([]string{"host@A", "ops@A", "ann@A", "far@B"}).Draw(t, "who")
				s, err := mailbox.Restore(v.States[who].ID, []byte(v.Snapshot(who)))
				if err != nil {
					t.Fatal(err)
				}
				v.SetState(who, s)
			},
		})
		v.Offline = nil
		v.Deliver(true)
		v.CheckReplay()
		checkWhoEnded(t, v)
		home, err := v.States["host@A"].Mail.FindFormID(form)
		if err != nil || !home.Form.IsOpen() {
			return
		}
		for _, who := range []string{"ops@A", "ann@A", "far@B"} {
			copied, err := v.States[who].Mail.FindFormID(form)
			if err != nil {
				continue // it had left when the form came
			}
			a, b := home.Form.Claim(v.Now), copied.Form.Claim(v.Now)
			if (a == nil) != (b == nil) || a != nil && (a.By != b.By || a.Until != b.Until) {
				t.Fatalf("%s knows of the claim %+v, which is %+v", who, b, a)
			}
		}
	})
}

// checkWhoEnded reads the log of the forms' home, and fails if who ended a form was not on it while another was that might answer.
func checkWhoEnded(t *rapid.T, v *mailboxtest.Harness) {
	on, left := map[capabilities.ID]*events.FormClaimed{}, map[capabilities.ID]map[capabilities.ID]bool{}
	ended := func(form, by capabilities.ID, at capabilities.Time) {
		c := on[form]
		if c != nil && c.Until > at && c.By != by && !left[form][c.By] && by != v.States["host@A"].ID {
			t.Fatalf("%s ended a form at %d that %s was on until %d", v.NameOf[by], at, v.NameOf[c.By], c.Until)
		}
	}
	for _, r := range v.Logs["host@A"] {
		switch e := r.Event.(type) {
		case *events.FormClaimed:
			on[e.Form] = e
		case *events.FormRouted:
			if left[e.Form] == nil {
				left[e.Form] = map[capabilities.ID]bool{}
			}
			left[e.Form][e.To] = e.Cause == events.Revoked
		case *events.FormForwarded:
			if left[e.Form] != nil {
				left[e.Form][e.To] = false
			}
		case *events.FormAnswered:
			ended(e.Form, e.By, r.At)
		case *events.FormCancelled:
			ended(e.Form, e.By, r.At)
		}
	}
}

// TestAClaimGivesNothing claims a form that two have to answer, and a call: neither holds up anybody, and neither counts as a vote.
func TestAClaimGivesNothing(t *testing.T) {
	t.Parallel()
	v, ask := opsGroup(t, parley.Form{Need: 2})
	form := ask()
	v.Must("host@A", mailbox.ClaimForm{Form: form, By: v.States["ops@A"].ID, Until: v.Now + 30*minute})
	v.Deliver(false)
	m, err := v.States["host@A"].Mail.FindFormID(form)
	if err != nil || m.Form.Claim(v.Now) == nil || len(m.Form.Votes().Standing) != 0 || !m.Form.IsOpen() {
		t.Fatalf("the form that was claimed is %+v (%v)", m, err)
	}
	vote := func(who string) mailbox.SettleForm {
		t.Helper()
		c, _, err := v.States[who].DraftAnswer(mailbox.Reply{Form: capabilities.FormID(form), Answer: parley.Answer{Texts: []events.FieldText{{Name: "f", Text: "yes"}}}}, v.Now, v.IDsOf(who))
		if err != nil {
			t.Fatal(who, err)
		}
		return c
	}
	v.Must("host@A", vote("ann@A"))
	v.Deliver(false)
	if m.Form.Claim(v.Now) == nil {
		t.Error("the vote of another has ended the claim")
	}
	v.Must("host@A", vote("ops@A"))
	v.Deliver(false)
	if c := m.Form.Claim(v.Now); c != nil {
		t.Errorf("who has voted is on the form still: %+v", c)
	}
	if m.Form.Votes().Most() != 1 || !m.Form.IsOpen() {
		t.Errorf("agents of one host have cast %d votes", m.Form.Votes().Most())
	}
}

// TestAClaimOfAMinuteIsTaken claims a form for the least time, which the form's mailbox decides on a moment later.
func TestAClaimOfAMinuteIsTaken(t *testing.T) {
	t.Parallel()
	v, ask := opsGroup(t, parley.Form{})
	claim := mailbox.ClaimForm{Form: ask(), By: v.States["ops@A"].ID, Until: v.Now + minute - 20}
	if _, err := v.Decide("host@A", claim); err != nil {
		t.Error(err)
	}
	claim.Until = v.Now + minute/4
	if _, err := v.Decide("host@A", claim); parley.CodeOf(err) != parley.InvalidArgument {
		t.Errorf("a claim of a quarter of a minute is refused with %v", err)
	}
}

// TestAPoolDoesNotVoteForItself has an agent ask a group of its own host's agents, which it is a member of, for two votes: whatever they
// claim and answer, and whoever of them, it is one vote, and none where the asker's own do not count.
func TestAPoolDoesNotVoteForItself(t *testing.T) {
	t.Parallel()
	for _, noSelf := range []bool{false, true} {
		v := mailboxtest.New(t)
		names := []string{"host@A", "fae@A", "ops@A", "ann@A", "bob@A"}
		for _, name := range names {
			v.Add(name)
		}
		v.NameAgents()
		v.Must("host@A", mailbox.PostMessage{To: "ops", Post: parley.Post{Text: "know @fae, @ann and @bob"}})
		v.Must("host@A", mailbox.PostMessage{To: "fae", Post: parley.Post{Text: "know @ops"}})
		v.Deliver(false)
		for _, member := range []string{"fae", "ann", "bob"} {
			v.Must("ops@A", mailbox.SetMember{Agent: "@mail/0/" + member, In: true})
		}
		form := v.Must("fae@A", mailbox.RequestForm{Form: parley.Form{To: "@mail/0/ops", Description: "Deploy?", Fields: []events.Field{{Name: "f"}}, Need: 2, NoSelf: noSelf}})[0].(*events.FormRequested).ID
		v.Deliver(false)
		for _, who := range []string{"fae@A", "ops@A", "ann@A", "bob@A"} {
			if _, err := v.Decide("fae@A", mailbox.ClaimForm{Form: form, By: v.States[who].ID, Until: v.Now + 30*minute, TakeOver: true}); (err == nil) == (who == "fae@A") {
				t.Errorf("%s claims with %v", who, err)
			}
			_, err := v.Decide("fae@A", mailbox.SettleForm{Form: form, By: v.States[who].ID, Values: map[string]capabilities.Value{"f": capabilities.String("yes")}, Revision: 1, Principal: v.States["host@A"].ID})
			if refused := who == "fae@A" || noSelf; (err != nil) != refused {
				t.Errorf("%s votes with %v", who, err)
			}
			v.Deliver(false)
		}
		m, err := v.States["fae@A"].Mail.FindFormID(form)
		if err != nil || !m.Form.IsOpen() {
			t.Fatalf("the pool has decided for itself: %+v (%v)", m.Form, err)
		}
		if most := m.Form.Votes().Most(); most > 1 || noSelf && most > 0 {
			t.Errorf("the pool has cast %d votes", most)
		}
	}
}
