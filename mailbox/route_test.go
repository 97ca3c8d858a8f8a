package mailbox_test

import (
	"flag"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/mailboxtest"
)

// lawful checks a property of several nodes. Each run is long, so that by default there are 15; -rapid.checks sets another
// number.
func lawful(t *testing.T, property func(*rapid.T)) {
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue {
		_ = flag.Set("rapid.checks", "15")
		defer func() { _ = flag.Set("rapid.checks", checks.DefValue) }()
	}
	rapid.Check(t, property)
}

// TestRouteLaws reminds of one form, escalates, forwards and answers it over three nodes that lose each other. A reminder
// and a step are made once, none before its time, and none of a form that has ended or whose deadline has passed. Nobody
// who may answer is taken away. When all is delivered, all of them show the same end.
func TestRouteLaws(t *testing.T) {
	lawful(t, func(t *rapid.T) {
		v := mailboxtest.New(t)
		for _, name := range []string{"fae@A", "host@B", "host@C", "cy@C"} {
			v.Add(name)
		}
		v.NameAgents()
		v.OnRefusal = func(_, _, why string) {
			if !strings.HasPrefix(why, "ALREADY_") && !strings.HasPrefix(why, string(parley.NotPermitted)) {
				t.Fatal(why)
			}
		}
		v.Introduce("fae@A", "host@B")
		v.Introduce("fae@A", "host@C")
		v.Introduce("host@B", "host@C")
		hours := func(most int, what string) events.Delay {
			return events.Delay(time.Duration(rapid.IntRange(1, most).Draw(t, what)) * time.Hour / time.Millisecond)
		}
		asked := v.Must("fae@A", mailbox.RequestForm{Form: parley.Form{
			To:          "B",
			Description: "question",
			Fields:      text,
			Deadline:    hours(12, "deadline").After(v.Now),
			Remind:      []events.Delay{hours(12, "remind"), hours(12, "again")},
			Escalate:    []parley.Escalation{{After: hours(12, "escalate"), To: "C"}},
		}})[0].(*events.FormRequested)
		ref := capabilities.FormID(asked.ID)
		find := func(name string) *mailbox.Form {
			m, err := v.States[name].Mail.FindFormID(asked.ID)
			if err != nil {
				return nil
			}
			return m.Form
		}
		timers := func() {
			for _, c := range []mailbox.Command{mailbox.ExpireForms{}, mailbox.RemindForms{}, mailbox.EscalateForms{}} {
				v.Must("fae@A", c)
			}
		}
		agents := rapid.SampledFrom([]string{"host@B", "host@C", "cy@C"})
		t.Repeat(map[string]func(*rapid.T){
			"":     func(t *rapid.T) { checkRoute(t, asked, v.Logs["fae@A"]) },
			"wait": func(t *rapid.T) { v.Now = hours(4, "long").After(v.Now) },
			"fire": func(*rapid.T) { timers() },
			"steps alone": func(*rapid.T) { // the deadline wins without ExpireForms
				v.Must("fae@A", mailbox.EscalateForms{})
				v.Must("fae@A", mailbox.RemindForms{})
			},
			"answer": func(t *rapid.T) {
				name := agents.Draw(t, "agent")
				c, _, err := v.States[name].DraftAnswer(mailbox.Reply{Form: ref, Answer: parley.Answer{Texts: []events.FieldText{{Name: "f", Text: "x"}}}}, v.Now, v.IDsOf(name))
				if err == nil {
					v.Must(name, mailbox.QueueAnswer{Answer: c})
				}
			},
			"forward": func(t *rapid.T) {
				from, to := agents.Draw(t, "from"), rapid.SampledFrom([]string{"cy", "C"}).Draw(t, "to")
				if f := find(from); f != nil && f.IsOpen() {
					_, _ = v.Decide(from, mailbox.QueueForward{Form: ref, To: to}) // refused if the agent cannot reach the other
				}
			},
			"disconnect": func(t *rapid.T) {
				v.Offline = map[string]bool{rapid.SampledFrom([]string{"A", "B", "C"}).Draw(t, "node"): true}
			},
			"deliver": func(t *rapid.T) { v.Deliver(rapid.Bool().Draw(t, "twice")) },
			"restart": func(*rapid.T) { v.CheckReplay() },
			"reconnect": func(t *rapid.T) {
				v.Offline = nil
				timers()
				v.Deliver(true)
				home := find("fae@A")
				for _, h := range home.Holders {
					f := find(v.NameOf[h])
					switch {
					case f == nil:
						t.Fatalf("%s has no copy", v.NameOf[h])
					case f.IsOpen() != home.IsOpen():
						t.Fatalf("the copy of %s is open: %v", v.NameOf[h], f.IsOpen())
					case home.IsOpen() && home.Reminded() != nil && v.NameOf[h] == "host@B" && (f.Reminded() == nil || f.Reminded().N != home.Reminded().N):
						t.Fatalf("%s was not reminded", v.NameOf[h])
					case f.Route != nil:
						t.Fatalf("%s has the asker's route", v.NameOf[h])
					}
				}
			},
		})
	})
}

// checkRoute checks the events of a form at its home.
func checkRoute(t *rapid.T, asked *events.FormRequested, log []events.Recorded) {
	var reminded, step uint32
	ended := false
	early := func(what string, at capabilities.Time, d events.Delay) {
		if at < d.After(asked.Date) || at >= asked.Deadline || ended {
			t.Fatalf("%s at %s of a form with the deadline %s", what, at, asked.Deadline)
		}
	}
	for _, r := range log {
		switch e := r.Event.(type) {
		case *events.FormReminded:
			if e.N <= reminded || int(e.N) > len(asked.Route.Remind) {
				t.Fatalf("reminder %d after %d", e.N, reminded)
			}
			early("a reminder", e.Date, asked.Route.Remind[e.N-1])
			reminded = e.N
		case *events.FormRouted:
			if e.Step <= step {
				t.Fatalf("step %d after %d", e.Step, step)
			}
			early("a step", e.Date, asked.Route.Escalate[e.Step-1].After)
			step = e.Step
		case *events.FormAnswered, *events.FormCancelled:
			ended = true
		}
	}
}

// TestReminderOfAnotherNodeIsChecked refuses reminders that the form's asker did not send.
func TestReminderOfAnotherNodeIsChecked(t *testing.T) {
	v := mailboxtest.New(t)
	for _, name := range []string{"fae@A", "eve@A", "host@B"} {
		v.Add(name)
	}
	v.NameAgents()
	v.Introduce("fae@A", "host@B")
	asked := v.Must("fae@A", mailbox.RequestForm{Form: parley.Form{To: "B", Description: "question", Fields: text}})[0].(*events.FormRequested)
	v.Deliver(false)
	fae, eve := v.States["fae@A"].ID, v.States["eve@A"].ID
	for name, c := range map[string]struct {
		home capabilities.ID
		n    uint32
		form capabilities.ID
		want parley.Code
		news bool
	}{
		"of another agent":   {home: eve, n: 1, form: asked.ID, want: parley.NotPermitted},
		"of an unknown form": {home: fae, n: 1, form: v.NewID(), want: parley.NoSuchMessage},
		"too many":           {home: fae, n: 1 << 30, form: asked.ID, want: parley.TooLarge},
		"none":               {home: fae, form: asked.ID},
		"one":                {home: fae, n: 1, form: asked.ID, news: true},
	} {
		c2 := mailbox.RemoteReminder{RecordReminder: mailbox.RecordReminder{Reminder: &events.FormReminded{Form: c.form, N: c.n, Date: v.Now}}, Home: c.home}
		evs, err := v.States["host@B"].Decide(c2, v.Now, v.NewID)
		if parley.CodeOf(err) != c.want || (len(evs) == 1) != c.news {
			t.Errorf("%s: %v, %v", name, evs, err)
		}
	}
}

// TestCausesOfAnotherNodeAreChecked refuses copies and forwards with causes that no agent has, and news of such forwards.
func TestCausesOfAnotherNodeAreChecked(t *testing.T) {
	v := mailboxtest.New(t)
	for _, name := range []string{"fae@A", "host@B", "bob@B"} {
		v.Add(name)
	}
	v.NameAgents()
	v.Introduce("fae@A", "host@B")
	fae, host, bob := v.States["fae@A"].ID, v.States["host@B"].ID, v.States["bob@B"].ID
	asked := v.Must("fae@A", mailbox.RequestForm{Form: parley.Form{To: "B", Description: "question", Fields: text}})[0].(*events.FormRequested)
	sent, err := v.States["fae@A"].CommandFor(v.States["fae@A"].Outbox.Items()[0])
	if err != nil {
		t.Fatal(err)
	}
	v.Deliver(false)
	until := v.Now + 1000
	for name, c := range map[string]struct {
		because events.ForwardCause
		want    parley.Code
	}{
		"by hand":                    {},
		"away":                       {because: events.ForwardCause{Cause: events.Absent, Until: until}},
		"a member":                   {because: events.ForwardCause{Cause: events.Member}},
		"away for ever":              {because: events.ForwardCause{Cause: events.Absent}, want: parley.InvalidArgument},
		"away until before all time": {because: events.ForwardCause{Cause: events.Absent, Until: -1}, want: parley.InvalidArgument},
		"a member for a time":        {because: events.ForwardCause{Cause: events.Member, Until: until}, want: parley.InvalidArgument},
		"by hand for a time":         {because: events.ForwardCause{Until: until}, want: parley.InvalidArgument},
		"escalated":                  {because: events.ForwardCause{Cause: events.Escalated}, want: parley.InvalidArgument},
		"of an unknown cause":        {because: events.ForwardCause{Cause: "\u202e"}, want: parley.InvalidArgument},
	} {
		forward := mailbox.ForwardForm{Form: asked.ID, By: host, To: bob, Via: capabilities.ID{ULID: v.NewID().ULID, Node: host.Node}, Because: c.because}
		evs, err := v.States["fae@A"].Decide(mailbox.RemoteForward{ForwardForm: forward}, v.Now, v.NewID)
		if parley.CodeOf(err) != c.want || (len(evs) == 1) != (err == nil) || err == nil && evs[0].(*events.FormForwarded).Because != c.because {
			t.Errorf("a forward %s: %v, %v", name, evs, err)
		}
	}
	queued := v.Must("host@B", mailbox.QueueForward{Form: capabilities.FormNumber(0), To: "bob"})[1].(*events.ForwardQueued)
	for cause, want := range map[events.Cause]parley.Code{"": "", events.Member: parley.NotPermitted, "else": parley.InvalidArgument} {
		f := events.FormForwarded{Form: asked.ID, By: host, To: bob, Via: queued.Via, Date: v.Now, Because: events.ForwardCause{Cause: cause}}
		c := mailbox.RemoteOutcome{RecordOutcome: mailbox.RecordOutcome{Form: asked.ID, Forwarded: []events.FormForwarded{f}}, Home: fae}
		if evs, err := v.States["host@B"].Decide(c, v.Now, v.NewID); parley.CodeOf(err) != want {
			t.Errorf("news of a forward by %q: %v, %v", cause, evs, err)
		}
	}
	escalated := events.CopyStep{By: fae, Cause: events.Escalated, Date: v.Now, After: 1}
	away := events.CopyStep{By: bob, Cause: events.Absent, Date: 1 << 60, Until: until}
	change := func(s events.CopyStep, f func(*events.CopyStep)) events.CopyStep {
		f(&s)
		return s
	}
	for name, c := range map[string]struct {
		steps  events.CopySteps
		direct bool
		wrong  bool
	}{
		"none":                       {},
		"none of a direct one":       {direct: true},
		"away":                       {steps: events.CopySteps{away}},
		"escalated":                  {steps: events.CopySteps{escalated}, direct: true},
		"escalated, then forwarded":  {steps: events.CopySteps{escalated, away}},
		"escalated alone":            {steps: events.CopySteps{escalated}, wrong: true},
		"escalated last":             {steps: events.CopySteps{away, escalated}, wrong: true},
		"escalated twice":            {steps: events.CopySteps{escalated, escalated}, wrong: true},
		"forwarded to be put to":     {steps: events.CopySteps{away}, direct: true, wrong: true},
		"more than the chain":        {steps: events.CopySteps{away, away}, wrong: true},
		"by another":                 {steps: events.CopySteps{change(away, func(s *events.CopyStep) { s.By = fae })}, wrong: true},
		"away for ever":              {steps: events.CopySteps{change(away, func(s *events.CopyStep) { s.Until = 0 })}, wrong: true},
		"away after a delay":         {steps: events.CopySteps{change(away, func(s *events.CopyStep) { s.After = 1 })}, wrong: true},
		"by an unknown cause":        {steps: events.CopySteps{change(away, func(s *events.CopyStep) { s.Cause = "else" })}, wrong: true},
		"escalated at once":          {steps: events.CopySteps{change(escalated, func(s *events.CopyStep) { s.After = 0 })}, direct: true, wrong: true},
		"escalated after ages":       {steps: events.CopySteps{change(escalated, func(s *events.CopyStep) { s.After = 1 << 50 })}, direct: true, wrong: true},
		"escalated from nobody":      {steps: events.CopySteps{change(escalated, func(s *events.CopyStep) { s.By = capabilities.ID{} })}, direct: true, wrong: true},
		"escalated from the same":    {steps: events.CopySteps{change(escalated, func(s *events.CopyStep) { s.By = host })}, direct: true, wrong: true},
		"escalated for an absence":   {steps: events.CopySteps{change(escalated, func(s *events.CopyStep) { s.Until = until })}, direct: true, wrong: true},
		"escalated, and again by no": {steps: events.CopySteps{escalated, change(away, func(s *events.CopyStep) { s.By = host })}, wrong: true},
	} {
		e, before := *sent.(mailbox.AcceptDelivery).Form, slices.Clone(c.steps)
		id := func() capabilities.ID { return capabilities.ID{ULID: v.NewID().ULID, Node: fae.Node} }
		e.ID, e.Promise, e.Resolver = id(), id(), id()
		if e.Steps = nil; c.steps != nil {
			e.Steps = &c.steps
		}
		if !c.direct {
			e.To, e.Forwarder, e.Chain = bob, bob, []capabilities.ID{bob}
		}
		evs, err := v.States["host@B"].Decide(mailbox.RemoteDelivery{AcceptDelivery: mailbox.AcceptDelivery{Form: &e}}, v.Now, v.NewID)
		if !slices.Equal(before, c.steps) {
			t.Errorf("a copy %s: the delivery was changed", name)
		}
		if c.wrong != (parley.CodeOf(err) == parley.InvalidArgument) || !c.wrong && err != nil {
			t.Errorf("a copy %s: %v, %v", name, evs, err)
			continue
		}
		if err == nil {
			for _, s := range evs[0].(*events.FormRequested).Steps.List() {
				if s.Date != v.Now {
					t.Errorf("a copy %s: the step is of %d", name, s.Date)
				}
			}
		}
	}
}

// TestStandInLaws puts forms to agents that are away, or groups, in any order and in loops, over two nodes that lose each
// other. Forwarding ends. Nobody gets a form twice. When all is delivered, everybody shows the same end.
func TestStandInLaws(t *testing.T) {
	lawful(t, func(t *rapid.T) {
		v := mailboxtest.New(t)
		names := []string{"host@A", "ann@A", "host@B", "bob@B", "cy@B"}
		for _, name := range names {
			v.Add(name)
		}
		v.NameAgents()
		left := map[string]bool{} // who was no member any more before a form came, and has no copy of it
		v.OnRefusal = func(to, _, why string) {
			switch {
			case strings.HasPrefix(why, string(parley.NotPermitted)):
				left[to] = true
			case strings.HasPrefix(why, string(parley.NoSuchMessage)) && left[to]: // its end comes too
			case !strings.HasPrefix(why, "ALREADY_") && !strings.HasPrefix(why, string(parley.AlreadyExpired)):
				t.Fatal(to, why)
			}
		}
		v.Introduce("host@A", "host@B")
		for _, meeting := range []string{"host@A:ann:know @B", "host@B:bob:know @A and @cy", "host@B:cy:know @A and @bob"} { // so that there are loops
			from, rest, _ := strings.Cut(meeting, ":")
			to, words, _ := strings.Cut(rest, ":")
			v.Must(from, mailbox.PostMessage{To: to, Post: parley.Post{Text: words}})
		}
		v.Deliver(false)
		agent := rapid.SampledFrom(names)
		idOf := func(t *rapid.T) string { return v.States[agent.Draw(t, "to")].ID.String() }
		var asked []capabilities.ID
		t.Repeat(map[string]func(*rapid.T){
			"away": func(t *rapid.T) {
				until := v.Now.Add(time.Duration(rapid.IntRange(1, 3).Draw(t, "hours")) * time.Hour)
				_, _ = v.Decide(agent.Draw(t, "who"), mailbox.SetAway{Until: until, Delegate: idOf(t)}) // refused if they do not know each other
			},
			"back": func(t *rapid.T) { v.Must(agent.Draw(t, "who"), mailbox.SetAway{}) },
			"member": func(t *rapid.T) {
				_, _ = v.Decide(agent.Draw(t, "who"), mailbox.SetMember{Agent: idOf(t), In: rapid.IntRange(0, 3).Draw(t, "in") > 0})
			},
			"ask": func(t *rapid.T) {
				to := rapid.SampledFrom([]string{"B", "ann"}).Draw(t, "recipient")
				asked = append(asked, v.Must("host@A", mailbox.RequestForm{Form: parley.Form{To: to, Description: "question", Fields: text}})[0].(*events.FormRequested).ID)
			},
			"answer": func(t *rapid.T) {
				name := agent.Draw(t, "who")
				if len(asked) == 0 {
					return
				}
				ref := capabilities.FormID(rapid.SampledFrom(asked).Draw(t, "form"))
				c, _, err := v.States[name].DraftAnswer(mailbox.Reply{Form: ref, Answer: parley.Answer{Texts: []events.FieldText{{Name: "f", Text: "x"}}}}, v.Now, v.IDsOf(name))
				if err == nil && name != "host@A" && name != "ann@A" {
					v.Must(name, mailbox.QueueAnswer{Answer: c})
				}
			},
			"wait":       func(*rapid.T) { v.Now = v.Now.Add(time.Hour) },
			"disconnect": func(*rapid.T) { v.Offline = map[string]bool{"A": true} },
			"restart":    func(*rapid.T) { v.CheckReplay() },
			"reconnect": func(t *rapid.T) {
				v.Offline = nil
				v.Deliver(true)
				for _, id := range asked {
					home, _ := v.States["host@A"].Mail.FindFormID(id)
					seen := map[capabilities.ID]bool{}
					for _, h := range home.Form.Holders {
						m, err := v.States[v.NameOf[h]].Mail.FindFormID(id)
						if err != nil && left[v.NameOf[h]] {
							continue
						}
						if err != nil || m.Form.IsOpen() != home.Form.IsOpen() || seen[h] || h == home.Form.From {
							t.Fatalf("%s of %v: %v, %v", v.NameOf[h], home.Form.Holders, m, err)
						}
						seen[h] = true
					}
				}
			},
		})
	})
}
