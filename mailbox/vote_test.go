package mailbox_test

import (
	"maps"
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

// TestVoteLaws puts a form that needs several answers to agents of three nodes that lose each other. They answer, decline,
// withdraw, forward, and the asker amends, in any order and delivered twice. The log of the home has one end, by as many
// principals as it takes. When all is delivered, each copy shows the votes and the end of the home.
func TestVoteLaws(t *testing.T) {
	lawful(t, func(t *rapid.T) {
		v := mailboxtest.New(t)
		for _, name := range []string{"host@A", "fae@A", "bob@A", "host@B", "cy@B", "host@C"} {
			v.Add(name)
		}
		v.NameAgents()
		v.OnRefusal = func(_, _, why string) {
			if !strings.HasPrefix(why, "ALREADY_") && !strings.HasPrefix(why, string(parley.NotPermitted)) && !strings.HasPrefix(why, string(parley.Amended)) {
				t.Fatal(why)
			}
		}
		v.Introduce("host@A", "host@B")
		v.Introduce("host@A", "host@C")
		v.Introduce("host@B", "host@C")
		v.Must("host@A", mailbox.PostMessage{To: "fae", Post: parley.Post{Text: "know @B, @C and @bob"}})
		v.Deliver(false)
		ask := mailbox.RequestForm{Form: parley.Form{
			To:          v.States["host@B"].ID.String(),
			Description: "question",
			Fields:      text,
			Need:        uint32(rapid.IntRange(2, 3).Draw(t, "need")),
			Veto:        new(!rapid.Bool().Draw(t, "no veto")),
			NoSelf:      rapid.Bool().Draw(t, "no self"),
			Escalate:    []parley.Escalation{{After: 1, To: v.States["host@C"].ID.String()}, {After: 2, To: "HOST"}, {After: 3, To: v.States["bob@A"].ID.String()}},
		}}
		asked := v.Must("fae@A", ask)[0].(*events.FormRequested)
		ref := capabilities.FormID(asked.ID)
		v.Now = v.Now.Add(1e9)
		v.Must("fae@A", mailbox.EscalateForms{})
		find := func(name string) *mailbox.Form {
			m, err := v.States[name].Mail.FindFormID(asked.ID)
			if err != nil {
				return nil
			}
			return m.Form
		}
		agents := rapid.SampledFrom([]string{"host@A", "fae@A", "bob@A", "host@B", "cy@B", "host@C"})
		settle := func(name string, c mailbox.SettleForm, home capabilities.ID, err error) {
			switch {
			case err != nil:
			case home.Node == v.States[name].ID.Node:
				if _, err = v.Decide("fae@A", c); err != nil {
					v.OnRefusal("fae@A", name, string(parley.CodeOf(err)))
				}
			default:
				v.Must(name, mailbox.QueueAnswer{Answer: c})
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				counted := checkVotes(t, asked, v.States["host@A"].ID, v.Logs["fae@A"])
				for _, h := range find("fae@A").Holders {
					if got := find("fae@A").Counted(h); got != slices.Contains(counted, h) {
						t.Fatalf("the vote of %s counted: %v; those of %v did", v.NameOf[h], got, counted)
					}
				}
			},
			"answer": func(t *rapid.T) {
				name := agents.Draw(t, "agent")
				c, home, err := v.States[name].DraftAnswer(mailbox.Reply{Form: ref, Answer: parley.Answer{Texts: []events.FieldText{{Name: "f", Text: "x"}}}}, v.Now, v.IDsOf(name))
				settle(name, c, home, err)
			},
			"decline": func(t *rapid.T) {
				name := agents.Draw(t, "agent")
				c, home, err := v.States[name].DraftDecline(ref, 0, "no", v.IDsOf(name))
				settle(name, c, home, err)
			},
			"withdraw": func(t *rapid.T) {
				name := agents.Draw(t, "agent")
				c, home, err := v.States[name].DraftWithdrawal(ref)
				if err == nil {
					_, _ = v.Withdraw(name, home, c) // refused if the form has ended, or has no vote of the agent
				}
			},
			"forward": func(t *rapid.T) {
				if f := find("host@B"); f != nil && f.IsOpen() {
					_, _ = v.Decide("host@B", mailbox.QueueForward{Form: ref, To: "cy"}) // refused the second time
				}
			},
			"amend": func(t *rapid.T) {
				about := rapid.StringN(1, 5, 20).Draw(t, "about")
				_, _ = v.Decide("fae@A", mailbox.AmendForm{Form: ref, Amendment: parley.Amendment{Description: &about}}) // refused after the end
			},
			"disconnect": func(t *rapid.T) {
				v.Offline = map[string]bool{rapid.SampledFrom([]string{"A", "B", "C"}).Draw(t, "node"): true}
			},
			"deliver": func(t *rapid.T) { v.Deliver(rapid.Bool().Draw(t, "twice")) },
			"restart": func(*rapid.T) { v.CheckReplay() },
			"reconnect": func(t *rapid.T) {
				v.Offline = nil
				v.Deliver(true)
				home := find("fae@A")
				for _, h := range home.Holders {
					f := find(v.NameOf[h])
					if f == nil || f.IsOpen() != home.IsOpen() || f.Counted(h) != home.Counted(h) || !slices.Equal(voters(f), voters(home)) {
						t.Fatalf("the copy of %s differs from the home", v.NameOf[h])
					}
					if f.IsOpen() && f.Queued().Answer != nil {
						t.Fatalf("%s still waits for its answer", v.NameOf[h])
					}
				}
			},
		})
	})
}

// voters returns who votes for what on a form.
func voters(f *mailbox.Form) (all []string) {
	for _, w := range f.Votes().Standing {
		all = append(all, w.By.String()+string(w.Outcome))
	}
	slices.Sort(all)
	return all
}

// checkVotes checks the votes on a form and its end, in the log of its home, against a count of its own. It returns the
// agents whose votes made the end.
func checkVotes(t *rapid.T, asked *events.FormRequested, host capabilities.ID, log []events.Recorded) (counted []capabilities.ID) {
	revision, ended := uint64(1), false
	standing := map[capabilities.ID]events.VoteOutcome{} // by principal
	stood := map[capabilities.ID]events.VoteOutcome{}    // by agent; the last vote of a principal replaces its earlier ones, unless it makes the end
	cast := map[capabilities.ID]bool{}                   // answers
	principal := func(by capabilities.ID) capabilities.ID {
		if by.Node != asked.From.Node {
			return capabilities.ID{Node: by.Node}
		}
		return host
	}
	count := func(o events.VoteOutcome, by capabilities.ID) {
		if by == asked.From || asked.Route.NoSelf && principal(by) == host || ended {
			t.Fatalf("the vote of %s counts", by)
		}
		standing[principal(by)], stood[by] = o, o
	}
	alike := func(o events.VoteOutcome) (n int) {
		for _, w := range standing {
			if w == o {
				n++
			}
		}
		return n
	}
	need, end := int(asked.Route.Need), events.VoteOutcome("")
	for _, r := range log {
		switch e := r.Event.(type) {
		case *events.FormAmended:
			revision = e.Revision
			clear(standing)
			clear(stood)
		case *events.VoteCast:
			maps.DeleteFunc(stood, func(by capabilities.ID, _ events.VoteOutcome) bool { return principal(by) == principal(e.By) })
			count(e.Outcome, e.By)
			if cast[e.Answer] && !e.Answer.IsZero() { // those of the node have none
				t.Fatalf("the vote %+v was cast before", e)
			}
			cast[e.Answer] = true
			if e.Revision != revision || e.Principal != principal(e.By) || alike(events.VoteAnswered) >= need || !asked.Route.NoVeto && e.Outcome == events.VoteDeclined {
				t.Fatalf("the vote %+v settles nothing at revision %d", e, revision)
			}
		case *events.VoteWithdrawn:
			if _, ok := standing[principal(e.By)]; !ok || ended {
				t.Fatalf("no vote of %s to withdraw", e.By)
			}
			delete(standing, principal(e.By))
			maps.DeleteFunc(stood, func(by capabilities.ID, _ events.VoteOutcome) bool { return principal(by) == principal(e.By) })
		case *events.FormAnswered:
			count(events.VoteAnswered, e.By)
			if alike(events.VoteAnswered) != need {
				t.Fatalf("answered by %v", standing)
			}
			ended, end = true, events.VoteAnswered
		case *events.FormCancelled:
			count(events.VoteDeclined, e.By)
			ended, end = true, events.VoteDeclined
		}
	}
	for by, o := range stood {
		if ended && o == end {
			counted = append(counted, by)
		}
	}
	return counted
}

// TestVotesOfAnotherNodeAreChecked refuses votes that the home of a form cannot have sent.
func TestVotesOfAnotherNodeAreChecked(t *testing.T) {
	v := mailboxtest.New(t)
	for _, name := range []string{"fae@A", "eve@A", "host@B"} {
		v.Add(name)
	}
	v.NameAgents()
	v.Introduce("fae@A", "host@B")
	asked := v.Must("fae@A", mailbox.RequestForm{Form: parley.Form{To: "B", Description: "question", Fields: text, Need: 2}})[0].(*events.FormRequested)
	single := v.Must("fae@A", mailbox.RequestForm{Form: parley.Form{To: "B", Description: "other", Fields: text}})[0].(*events.FormRequested)
	v.Deliver(false)
	fae, eve, bob := v.States["fae@A"].ID, v.States["eve@A"].ID, v.States["host@B"].ID
	good := events.VoteCast{Form: asked.ID, By: eve, Principal: fae, Revision: 1, Outcome: events.VoteAnswered, Date: v.Now}
	with := func(change func(*events.VoteCast)) events.VoteCast {
		w := good
		change(&w)
		return w
	}
	of := func(votes ...events.VoteCast) mailbox.RemoteVotes {
		return mailbox.RemoteVotes{RecordVotes: mailbox.RecordVotes{Form: asked.ID, Votes: votes}, Home: fae}
	}
	another, other := of(good), of(with(func(w *events.VoteCast) { w.Form = single.ID }))
	another.Home, other.Form = eve, single.ID
	for name, c := range map[string]struct {
		votes mailbox.RemoteVotes
		want  parley.Code
		news  int
	}{
		"of another agent":      {another, parley.NotPermitted, 0},
		"on a form for one":     {other, parley.InvalidArgument, 0},
		"on two forms":          {of(good, with(func(w *events.VoteCast) { w.Form, w.Principal, w.By = single.ID, bob, bob })), parley.InvalidArgument, 0},
		"of nobody":             {of(with(func(w *events.VoteCast) { w.By = capabilities.ID{} })), parley.InvalidArgument, 0},
		"twice":                 {of(good, good), parley.InvalidArgument, 0},
		"of two principals":     {of(good, with(func(w *events.VoteCast) { w.Principal = bob })), parley.InvalidArgument, 0},
		"with another's answer": {of(with(func(w *events.VoteCast) { w.Answer = asked.ID })), parley.InvalidArgument, 0},
		"for nonsense":          {of(with(func(w *events.VoteCast) { w.Outcome = "once" })), parley.InvalidArgument, 0},
		"of no revision":        {of(with(func(w *events.VoteCast) { w.Revision = 0 })), parley.InvalidArgument, 0},
		"with a long note":      {of(with(func(w *events.VoteCast) { w.Note = strings.Repeat("x", 1<<20) })), parley.TooLarge, 0},
		"too many":              {of(slices.Repeat([]events.VoteCast{good}, mailbox.MaxHolders+1)...), parley.InvalidArgument, 0},
		"none":                  {of(), "", 0},
		"one":                   {of(good), "", 1},
	} {
		evs, err := v.States["host@B"].Decide(c.votes, v.Now, v.NewID)
		if parley.CodeOf(err) != c.want || len(evs) != c.news {
			t.Errorf("%s: %v, %v", name, evs, err)
		}
	}
}

// TestWithdrawalOfAnotherNodeNamesItsVote refuses a withdrawal that could take back a later vote.
func TestWithdrawalOfAnotherNodeNamesItsVote(t *testing.T) {
	v := mailboxtest.New(t)
	for _, name := range []string{"fae@A", "host@B"} {
		v.Add(name)
	}
	v.NameAgents()
	v.Introduce("fae@A", "host@B")
	v.Must("fae@A", mailbox.RequestForm{Form: parley.Form{To: "B", Description: "question", Fields: text, Need: 2}})
	v.Deliver(false)
	ref := capabilities.FormNumber(0)
	vote := func() mailbox.SettleForm {
		c, _, err := v.States["host@B"].DraftAnswer(mailbox.Reply{Form: ref, Answer: parley.Answer{Texts: []events.FieldText{{Name: "f", Text: "x"}}}}, v.Now, v.IDsOf("host@B"))
		if err != nil {
			t.Fatal(err)
		}
		v.Must("host@B", mailbox.QueueAnswer{Answer: c})
		v.Deliver(true)
		return c
	}
	first := vote()
	w, home, err := v.States["host@B"].DraftWithdrawal(ref)
	if err != nil {
		t.Fatal(err)
	}
	atHome := func(w mailbox.WithdrawVote) ([]events.Event, error) {
		return v.Decide("fae@A", v.ToRemote("host@B", mailbox.OutboxItem{Kind: events.OutboxWithdrawal, To: home}, w))
	}
	if _, err := atHome(mailbox.WithdrawVote{Form: w.Form, By: w.By}); parley.CodeOf(err) != parley.InvalidArgument {
		t.Fatalf("a withdrawal of any vote: %v", err)
	}
	if _, err := v.Withdraw("host@B", home, w); err != nil {
		t.Fatal(err)
	}
	v.Deliver(false)
	vote()
	if evs, err := atHome(w); err != nil || len(evs) > 0 {
		t.Fatalf("the withdrawal of an earlier vote, delivered again: %v, %v", evs, err)
	}
	again := v.ToRemote("host@B", mailbox.OutboxItem{Kind: events.OutboxAnswer, To: home}, first)
	if evs, err := v.Decide("fae@A", again); err != nil || len(evs) > 0 {
		t.Fatalf("an answer that was withdrawn, delivered again: %v, %v", evs, err)
	}
}
