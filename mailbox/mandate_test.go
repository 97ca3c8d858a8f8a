package mailbox_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/mailboxtest"
	"parley/mailbox/rule"
)

// givenMandate is a mandate as its giver knows it: what was given, and what was charged.
type givenMandate struct {
	session     string
	calls, most int
	until       capabilities.Time
	charged     []string // each call with its key; "" for one without
	spent       int
	ended       bool
}

func (m *givenMandate) lasts(session string, now capabilities.Time) bool {
	return !m.ended && m.session == session && (m.until == 0 || now < m.until)
}

// TestMandatesStayWithinWhatWasGiven gives mandates, makes calls, and ends mandates, sessions and time. What is decided is what somebody
// who only knows what was given and charged would say: no call is over what was given, none is charged twice, and none is allowed that is
// charged to nothing, or after an end.
func TestMandatesStayWithinWhatWasGiven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := mailboxtest.New(t)
		for _, a := range [][]string{{"host"}, {"shop"}, {"one", "shop"}, {"two", "shop"}} {
			v.Add(a[0], a[1:]...)
		}
		v.NameAgents()
		host := v.States["host"].ID
		do := func(as string, c mailbox.Command) []events.Event {
			evs, err := v.Decide(as, c)
			if err != nil {
				t.Fatal(err)
			}
			v.Deliver(false)
			return evs
		}
		living := map[string]bool{}
		live := func(session string) {
			if session != "" && !living[session] {
				do("shop", mailbox.StartSession{Agent: v.States[session].ID, Session: session, Process: events.SessionProcess{PID: 1}})
				living[session] = true
			}
		}
		of := func(session string) (id capabilities.ID) {
			if session != "" {
				id = v.States[session].ID
			}
			return id
		}
		var all []*givenMandate
		asked := map[string]bool{} // keys of calls that somebody was asked about
		sessions, plans := rapid.SampledFrom([]string{"", "", "", "one", "two"}), 0
		call := func(t *rapid.T) {
			session, amount := sessions.Draw(t, "session"), rapid.SampledFrom([]string{"0", "40", "40", "40", "60", `"5"`, "-5"}).Draw(t, "amount")
			live(session)
			key := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "key")
			c := mailbox.RequestApproval{Permission: parley.Permission{Tool: "pay", Input: `{"amount":` + amount + `}`}, SessionAgent: of(session), Risk: func(*parley.Permission) mailbox.Risk { return mailbox.Risk{} }}
			mark := ""
			if key != "" {
				c.Key = key + amount
				mark = c.Key
			}
			n, plain := rule.ParseAmount(amount)
			n /= 1_000_000
			known, room := -1, -1
			for i, m := range all {
				if !m.lasts(session, v.Now) {
					continue
				}
				if mark != "" && slices.Contains(m.charged, mark) {
					known = i
				} else if room < 0 && plain && len(m.charged) < m.calls && m.spent+int(n) <= m.most {
					room = i
				}
			}
			by, ruled := c.Ruled(v.States["shop"], v.Now)
			evs := do("shop", c)
			var charged *events.MandateCharged
			if len(evs) > 0 {
				charged, _ = evs[0].(*events.MandateCharged)
			}
			switch {
			case known >= 0:
				if len(evs) > 0 || !ruled || !by.Allow {
					t.Fatalf("a call that was charged before: %v, %+v", evs, by)
				}
			case room >= 0:
				if charged == nil || len(evs) != 1 || !by.Allow || by.Mandate != charged.Mandate {
					t.Fatalf("a call within mandate %d: %v, %+v", room, evs, by)
				}
				m := v.States["shop"].Rules.Mandates()
				if i := slices.IndexFunc(m, func(m *mailbox.Mandate) bool { return m.MandateGiven.Mandate == charged.Mandate }); m[i].Calls != uint32(all[room].calls) || m[i].Session != of(session) {
					t.Fatalf("the call was charged to %+v, and not to %+v", m[i], all[room])
				}
				all[room].charged, all[room].spent = append(all[room].charged, mark), all[room].spent+int(n)
			default:
				if charged != nil || ruled || len(evs) == 0 && !asked[mark] {
					t.Fatalf("a call beyond all mandates: %v, %+v", evs, by)
				}
				asked[mark] = asked[mark] || mark != ""
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"calls": func(t *rapid.T) {
				for range rapid.IntRange(3, 12).Draw(t, "several") {
					call(t)
				}
			},
			"": func(*rapid.T) { v.CheckReplay() },
			"give": func(t *rapid.T) {
				m := &givenMandate{session: sessions.Draw(t, "session"), calls: rapid.IntRange(1, 4).Draw(t, "calls"), most: rapid.IntRange(0, 100).Draw(t, "most")}
				live(m.session)
				terms := parley.MandateTerms{Rules: []parley.MandateRule{{Tool: "pay"}}, Calls: uint32(m.calls), Sums: []parley.MandateSum{{Member: "amount", Most: fmt.Sprint(m.most)}}}
				if minutes := rapid.IntRange(0, 90).Draw(t, "until"); minutes > 0 {
					terms.Until, m.until = fmt.Sprintf("%dm", minutes), v.Now+capabilities.Time(minutes*60_000)
				}
				plans++
				plan := do("shop", mailbox.RequestApproval{Permission: parley.Permission{Tool: "plan", Input: fmt.Sprint(plans)}, SessionAgent: of(m.session)})[0].(*events.FormRequested)
				draft, _, err := v.States["host"].DraftAnswer(mailbox.Reply{Form: capabilities.FormID(plan.ID), Answer: parley.Answer{
					Mandate: &terms, Texts: []events.FieldText{{Name: "decision", Text: mailbox.Once}},
				}}, v.Now, v.IDsOf("host"))
				if err != nil {
					t.Fatal(err)
				}
				do("shop", draft)
				all = append(all, m)
			},
			"call": func(t *rapid.T) { call(t) },
			"wait": func(t *rapid.T) { v.Now += capabilities.Time(rapid.IntRange(1, 40).Draw(t, "minutes") * 60_000) },
			"end": func(t *rapid.T) {
				if len(all) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(all)-1).Draw(t, "which")
				do("shop", mailbox.EndMandate{Mandate: v.States["shop"].Rules.Mandates()[i].MandateGiven.Mandate, By: host})
				all[i].ended = true
			},
			"end session": func(t *rapid.T) {
				session := sessions.Draw(t, "session")
				if session == "" || !living[session] {
					t.Skip()
				}
				do("shop", mailbox.EndSession{Agent: of(session)})
				living[session] = false
				for _, m := range all {
					m.ended = m.ended || m.session == session
				}
			},
		})
	})
}

// TestMandatesOfAnAgentAreBounded gives an agent as many as it may have, and more as some end.
func TestMandatesOfAnAgentAreBounded(t *testing.T) {
	v := mailboxtest.New(t)
	v.Add("host")
	v.Add("fae")
	v.NameAgents()
	give := func(n int) error {
		evs, err := v.Decide("fae", mailbox.RequestApproval{Permission: parley.Permission{Tool: "plan", Input: fmt.Sprint(n)}})
		if err != nil {
			return err
		}
		v.Deliver(false)
		c, _, err := v.States["host"].DraftAnswer(mailbox.Reply{Form: capabilities.FormID(evs[0].(*events.FormRequested).ID), Answer: parley.Answer{
			Mandate: &parley.MandateTerms{Rules: []parley.MandateRule{{Tool: "pay"}}}, Texts: []events.FieldText{{Name: "decision", Text: mailbox.Once}},
		}}, v.Now, v.IDsOf("host"))
		if err == nil {
			_, err = v.Decide("fae", c)
			v.Deliver(false)
		}
		return err
	}
	for n := range 300 {
		err := give(n)
		list := v.States["fae"].Rules.Mandates()
		switch {
		case err == nil && len(list) <= 64:
		case parley.CodeOf(err) == parley.TooLarge && n >= 32:
			if _, err := v.Decide("fae", mailbox.EndMandate{Mandate: list[len(list)-1].MandateGiven.Mandate, By: v.States["host"].ID}); err != nil {
				t.Fatal(err)
			}
		default:
			t.Fatalf("%d: %v with %d mandates", n, err, len(list))
		}
	}
	v.CheckReplay()
}
