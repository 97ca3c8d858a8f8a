package mailbox_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/mailboxtest"
)

// reviewedCall is a call as somebody knows it who sees what is asked and said, and not how it is kept.
type reviewedCall struct {
	form     capabilities.ID
	by       string // the reviewer; "" if it goes to the host at once
	risky    mailbox.RiskLevel
	sample   uint32
	cautious bool
	until    capabilities.Time
	need     uint32

	over    bool // nobody decides any more
	allowed bool
	host    bool // it is the host's to decide
}

// TestReviewersStayWithinTheirBounds asks for calls of every risk, and has reviewer and host say anything at any time, while policies
// change. A call is allowed by its host, or by the reviewer in time, within its bound and undrawn, and by nothing else. The host has an open
// copy exactly when the review is over, the reviewer when it is not, and no word of the reviewer is a vote.
func TestReviewersStayWithinTheirBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := mailboxtest.New(t)
		for _, a := range []string{"host", "fae", "bob", "eve"} {
			v.Add(a)
		}
		v.NameAgents()
		host := v.States["host"].ID
		var policy *parley.ReviewTerms
		reviewer := ""
		var all []*reviewedCall
		do := func(as string, c mailbox.Command) ([]events.Event, error) {
			evs, err := v.Decide(as, c)
			v.Deliver(false)
			return evs, err
		}
		hasOpen := func(as string, form capabilities.ID) bool {
			for _, m := range v.Messages(as) {
				if m.ID() == form {
					return m.Form.IsOpen() && m.Form.NeedsAnswer(v.States[as])
				}
			}
			return false
		}
		pick := func(t *rapid.T) *reviewedCall {
			if len(all) == 0 {
				t.Skip()
			}
			return all[rapid.IntRange(0, len(all)-1).Draw(t, "which")]
		}
		t.Repeat(map[string]func(*rapid.T){
			"policy": func(t *rapid.T) {
				reviewer, policy = rapid.SampledFrom([]string{"", "bob", "bob", "eve"}).Draw(t, "reviewer"), nil
				c := mailbox.SetPolicy{Policy: mailbox.AskOnMiss, By: host}
				if reviewer != "" {
					policy = &parley.ReviewTerms{Sample: rapid.SampledFrom([]uint32{0, 30, 100}).Draw(t, "sample"), Cautious: rapid.Bool().Draw(t, "cautious"), Wait: 60_000}
					c = mailbox.SetPolicy{Policy: mailbox.Review, By: host, Reviewer: v.States[reviewer].ID, Review: policy}
				}
				evs, err := do("fae", c)
				if err != nil {
					t.Fatal(err)
				}
				if len(evs) > 0 { // what was under way is the host's
					for _, c := range all {
						c.host = c.host || !c.over
					}
				}
			},
			"ask": func(t *rapid.T) {
				c := &reviewedCall{risky: mailbox.RiskLevel(rapid.IntRange(0, 2).Draw(t, "risk")), need: rapid.SampledFrom([]uint32{0, 0, 0, 2}).Draw(t, "need")}
				secret := rapid.IntRange(0, 5).Draw(t, "secret") == 0
				evs, err := do("fae", mailbox.RequestApproval{
					Permission: parley.Permission{Tool: "shell", Input: fmt.Sprintf(`{"n":%d}`, len(all))}, Need: c.need,
					Risk: func(*parley.Permission) mailbox.Risk { return mailbox.Risk{Level: c.risky, Secret: secret} },
				})
				if err != nil {
					t.Fatal(err)
				}
				c.form, c.until, c.host = evs[0].(*events.FormRequested).ID, v.Now+60_000, true
				if policy != nil && !secret {
					c.by, c.host, c.sample, c.cautious = reviewer, false, policy.Sample, policy.Cautious
				}
				all = append(all, c)
			},
			"reviewer says": func(t *rapid.T) {
				c, as := pick(t), rapid.SampledFrom([]string{"bob", "eve"}).Draw(t, "as")
				draw := uint32(rapid.IntRange(0, 1000).Draw(t, "draw"))
				said := rapid.SampledFrom([]string{mailbox.Once, mailbox.Once, mailbox.Deny, "", mailbox.Always}).Draw(t, "says")
				var s mailbox.SettleForm
				var err error
				if said == "" {
					s, _, err = v.States[as].DraftDecline(capabilities.FormID(c.form), 0, "not mine to say", v.IDsOf(as))
				} else {
					s, _, err = v.States[as].DraftAnswer(mailbox.Reply{Form: capabilities.FormID(c.form), Answer: parley.Answer{
						Texts: []events.FieldText{{Name: "decision", Text: said}, {Name: "reason", Text: "because"}},
					}}, v.Now, v.IDsOf(as))
				}
				if s.Draw = draw; err != nil {
					// Whatever its own mailbox says, its word may come to the asker's.
					s = mailbox.SettleForm{Form: c.form, By: v.States[as].ID, Values: map[string]capabilities.Value{"decision": capabilities.String(said)}, Principal: host, Draw: draw}
					if said == "" {
						s.Reason, s.Values = events.Declined, nil
					}
				}
				before := len(v.Logs["fae"])
				evs, err := do("fae", s)
				if err != nil && len(v.Logs["fae"]) != before {
					t.Fatal("a refusal left something")
				}
				if c.over || c.host || c.by != as {
					if err == nil && len(evs) > 0 {
						t.Fatalf("%s said %q to a call that is not its to review: %v", as, said, evs)
					}
					return
				}
				within := c.risky < mailbox.HighRisk && (!c.cautious || c.risky == mailbox.NoRisk) && c.need < 2
				switch {
				case err != nil:
					if said != mailbox.Always && said != mailbox.Deny && said != mailbox.Once {
						t.Fatal(err)
					}
				case said == mailbox.Once && within && draw%100 >= c.sample:
					c.over, c.allowed = true, true
				case said == mailbox.Deny:
					c.over = true
				case said == mailbox.Once || said == "":
					c.host = true
				default:
					t.Fatalf("it decided %q", said)
				}
			},
			"host says": func(t *rapid.T) {
				c, said := pick(t), rapid.SampledFrom([]string{mailbox.Once, mailbox.Deny}).Draw(t, "says")
				s, _, err := v.States["host"].DraftAnswer(mailbox.Reply{Form: capabilities.FormID(c.form), Answer: parley.Answer{Texts: []events.FieldText{{Name: "decision", Text: said}}}}, v.Now, v.IDsOf("host"))
				if err != nil {
					if c.host && !c.over && !hasVoted(v, c.form, host) {
						t.Fatalf("the host may not decide: %v", err)
					}
					return
				}
				evs, err := do("fae", s)
				if err != nil && c.host && !c.over {
					t.Fatalf("the host may not decide: %v", err)
				}
				if err != nil || len(evs) == 0 || c.over {
					return
				}
				if !c.host {
					t.Fatal("the host decided before the review ended")
				}
				if _, voted := evs[0].(*events.VoteCast); !voted {
					c.over, c.allowed = true, said == mailbox.Once
				}
				if c.allowed && c.need > 1 {
					t.Fatal("one vote allowed a call that needs two")
				}
			},
			"time": func(t *rapid.T) {
				v.Now += capabilities.Time(rapid.IntRange(1, 50).Draw(t, "seconds") * 1000)
				if _, err := do("fae", mailbox.EndReviews{}); err != nil {
					t.Fatal(err)
				}
				for _, c := range all {
					c.host = c.host || !c.over && v.Now >= c.until
				}
			},
			"": func(t *rapid.T) {
				v.CheckReplay()
				for _, m := range v.Messages("fae") {
					var c *reviewedCall
					for _, o := range all {
						if o.form == m.ID() {
							c = o
						}
					}
					if allowed := v.States["fae"].ApprovalResult(m.Form, m.Form.Permission().Call()).Allowed; allowed != c.allowed || m.Form.IsOpen() == c.over {
						t.Fatalf("allowed %v, open %v; want %+v", allowed, m.Form.IsOpen(), *c)
					}
					for _, vote := range m.Form.Votes().Standing {
						if vote.By != host {
							t.Fatalf("%s has a vote", v.NameOf[vote.By])
						}
					}
					if open := hasOpen("host", c.form); open != (c.host && !c.over && !hasVoted(v, c.form, host)) {
						t.Fatalf("the host has an open copy: %v; %+v", open, *c)
					}
					for _, as := range []string{"bob", "eve"} {
						if open := hasOpen(as, c.form); open != (c.by == as && !c.host && !c.over) {
							t.Fatalf("%s has an open copy: %v; %+v", as, open, *c)
						}
					}
				}
			},
		})
	})
}

// hasVoted reports whether an agent's vote stands on a call.
func hasVoted(v *mailboxtest.Harness, form, by capabilities.ID) bool {
	m, err := v.States["fae"].Mail.FindFormID(form)
	return err == nil && m.Form.Votes().Of(by) != nil
}
