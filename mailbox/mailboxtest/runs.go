package mailboxtest

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// runCommand runs a command about programs and profiles. It reports whether the command is one. A program asks by
// "question" and "call".
func (v *Harness) runCommand(cmd, as string, arg func(string) string, input string) (string, bool) {
	s := v.States[as]
	switch cmd {
	case "program":
		p := events.ProgramSet{Runtime: arg("runtime"), Command: strings.Fields(input), Environment: strings.Fields(arg("env")), Access: strings.Fields(arg("access"))}
		if err := mailbox.CheckProgram(p); err != nil {
			return v.refusal(err), true
		}
		v.Apply(as, &p)
		return "", true
	case "question":
		a := mailbox.RequestForm{Form: parley.Form{To: "HOST", Description: "something", Fields: []events.Field{{Name: "value"}}, Key: s.Runs.AskKey(arg("id"))}}
		return v.askAgain(as, a, a), true
	case "call":
		return v.askCall(as, arg("tool"), strings.TrimSpace(input)), true
	case "status":
		return v.showWork(as), true
	case "profile":
		return v.showProfile(as), true
	case "sessions":
		return showSessions(v, as), true
	case "lend":
		return lend(v, as, arg("to"), v.expand(arg("path"))), true
	}
	c := v.workCommand(cmd, as, arg, input)
	if c == nil {
		return "", false
	}
	if cmd == "run" {
		v.taken[as] = map[string]bool{}
	}
	return v.outcome(v.Decide(as, c)), true
}

// workCommand returns the command of the mailbox for one of a transcript; nil if there is none.
func (v *Harness) workCommand(cmd, as string, arg func(string) string, input string) mailbox.Command {
	s := v.States[as]
	by := func() capabilities.ID { return v.States[cmp.Or(arg("by"), "host")].ID }
	switch cmd {
	case "run":
		return mailbox.StartRun{Unprompted: arg("unprompted") == "yes"}
	case "end":
		end := mailbox.EndRun{Error: arg("error"), Silent: arg("silent") == "yes", Output: strings.TrimSuffix(input, "\n")}
		if run, ok := s.Runs.Current(); ok && arg("run") != "other" {
			end.Run = run.Run
		}
		return end
	case "prepare":
		return mailbox.PrepareProgram{Status: arg("status"), Error: arg("error")}
	case "interrupt":
		also, note := []capabilities.ID{}, arg("note")
		for _, n := range strings.FieldsFunc(arg("also"), func(r rune) bool { return r == ',' }) {
			m, err := s.Mail.Find(MustRef(n))
			if err != nil {
				v.TB.Fatal(err)
			}
			also = append(also, m.ID())
		}
		return mailbox.InterruptRun{By: by(), Note: note, Also: also}
	case "session":
		return mailbox.StartSession{
			Agent: v.States[arg("agent")].ID, Session: expandLength(arg("id")), Process: events.SessionProcess{PID: len(arg("process")), Start: arg("process")},
		}
	case "endsession":
		return mailbox.EndSession{Agent: v.States[arg("agent")].ID, Forget: arg("forget") == "yes"}
	case "living":
		return mailbox.SetSession{Living: arg("is") == "yes"}
	case "archive":
		return mailbox.ArchiveAgent{By: by()}
	case "report":
		return mailbox.ReportStatus{Status: arg("status"), Error: expandLength(arg("error"))}
	case "describe":
		return v.profileUpdate(arg, input)
	case "holdruns":
		return mailbox.HoldRuns{InterruptRun: mailbox.InterruptRun{By: by()}, Held: arg("is") == "yes"}
	case "policy":
		c := mailbox.SetPolicy{Policy: arg("is"), By: by()}
		if reviewer := arg("reviewer"); reviewer != "" {
			sample, _ := strconv.Atoi(arg("sample"))
			c.Reviewer, c.Review = v.States[reviewer].ID, &parley.ReviewTerms{Reviewer: reviewer, Sample: uint32(sample), Cautious: arg("cautious") == "yes"}
			if arg("wait") != "" {
				c.Review.Wait = v.delay(arg("wait"))
			}
			if terms := strings.TrimSpace(input); terms != "" {
				c.Review.Rules = v.ReadTerms(terms).Rules
			}
		}
		return c
	case "limit":
		n, _ := strconv.Atoi(arg("rule"))
		minutes, _ := strconv.Atoi(arg("minutes"))
		return mailbox.LimitRule{Rule: s.Rules.Valid(v.Now)[n].Rule, Until: v.Now + capabilities.Time(minutes*60_000), By: by()}
	}
	return nil
}

// profileUpdate parses labels, one name=value a line; "none" is the empty set.
func (v *Harness) profileUpdate(arg func(string) string, input string) mailbox.Command {
	d := mailbox.UpdateAgent{}
	if title := arg("title"); title != "" {
		title = expandLength(title)
		d.Title = &title
	}
	for _, line := range strings.Split(strings.TrimSpace(input), "\n") {
		switch name, value, ok := strings.Cut(line, "="); {
		case line == "none":
			d.Labels = map[string]string{}
		case ok:
			if d.Labels == nil {
				d.Labels = map[string]string{}
			}
			d.Labels[name] = expandLength(value)
		}
	}
	if many, _ := strconv.Atoi(arg("labels")); many > 0 {
		d.Labels = map[string]string{}
		for i := range many {
			d.Labels[fmt.Sprint("label", i)] = "x"
		}
	}
	return d
}

// expandLength returns a text of the length that a number gives: 1025 times x for "1025".
func expandLength(text string) string {
	if n, err := strconv.Atoi(text); err == nil {
		return strings.Repeat("x", n)
	}
	return text
}

// askAgain asks a form, or describes the existing one.
func (v *Harness) askAgain(as string, a mailbox.RequestForm, c mailbox.Command) string {
	if known, ok, err := a.FindExisting(v.States[as]); err != nil {
		return v.refusal(err)
	} else if ok {
		f := known.Message.Form
		if asked := f.Permission(); asked != nil {
			if result := v.States[as].ApprovalResult(f, asked.Call()); result.Decision != "" {
				return fmt.Sprintf("#%d, existing: %s\n", known.Message.Number, result.Decision)
			}
		}
		if f.Answered != nil {
			return fmt.Sprintf("#%d, existing: %s\n", known.Message.Number, f.Answered.Values.Text())
		}
		return fmt.Sprintf("#%d, existing\n", known.Message.Number)
	}
	return v.outcome(v.Decide(as, c))
}

// askCall asks whether a call may be made, as the program of a run does.
func (v *Harness) askCall(as, tool, input string) string {
	s, taken := v.States[as], v.taken[as]
	key, err := s.CallKey(tool+input, func(key string) bool { return taken[key] })
	if err != nil {
		v.TB.Fatal(err)
	}
	c := mailbox.RequestApproval{Permission: parley.Permission{Tool: tool, Input: input}, Key: key}
	out := v.askAgain(as, c.Form(), c)
	if _, asked, err := c.Form().FindExisting(s); asked && err == nil {
		taken[c.Key] = true
	}
	return out
}

// showWork returns the state of an agent's program and the messages that wait for it.
func (v *Harness) showWork(as string) string {
	var b strings.Builder
	s := v.States[as]
	fmt.Fprint(&b, s.Profile.Status)
	if s.Profile.Error != "" {
		fmt.Fprintf(&b, " (%s)", s.Profile.Error)
	}
	if run, ok := s.Runs.Current(); ok {
		fmt.Fprint(&b, ", has a run")
		if m, err := s.Mail.FindID(run.Prompt); err == nil {
			fmt.Fprintf(&b, " for #%d", m.Number)
		}
	}
	for _, m := range s.Runs.Prompts() {
		fmt.Fprintf(&b, ", #%d queued", m.Number)
	}
	for _, m := range s.Runs.Interrupted() {
		fmt.Fprintf(&b, ", #%d interrupted", m.Number)
	}
	approvals, _ := s.Mail.Approvals(1 << 30)
	for _, m := range approvals {
		fmt.Fprintf(&b, ", approval #%d open", m.Number)
	}
	status, over := s.Finish()
	if !over {
		status = "working"
	}
	return fmt.Sprintf("%s; %s, %d outstanding\n", b.String(), status, s.Summary().Outbox)
}

func (v *Harness) showProfile(as string) string {
	p := v.States[as].Profile
	var labels []string
	for k, l := range p.Labels {
		labels = append(labels, k+"="+l)
	}
	slices.Sort(labels)
	known := fmt.Sprintf("%q %v", p.Title, labels)
	if len(known) > 100 {
		known = fmt.Sprintf("a title of %d bytes, %d labels", len(p.Title), len(labels))
	}
	return fmt.Sprintf("%s, %s, an error of %d bytes, policy %s\n", known, p.Status, len(p.Error), v.States[as].Rules.Policy())
}

// showSessions returns a line for each session of an agent.
func showSessions(v *Harness, as string) string {
	var b strings.Builder
	for _, s := range v.States[as].Sessions.All() {
		state := "lives"
		if !s.IsLiving() {
			state = "has ended"
		}
		fmt.Fprintf(&b, "%s: %s in %s, %s\n", v.NameOf[s.Agent], s.Session, s.Process.Start, state)
	}
	return b.String()
}

// lend has a session hold what its address has under a path.
func lend(v *Harness, as, to, path string) string {
	v.TB.Helper()
	var (
		name  string
		given capabilities.Value
		evs   []events.Event
	)
	err := v.recalling(as, v.States[as], func() (err error) {
		name, given, evs, err = mailbox.ShareWith(v.States[as], v.States[to].ID, path, v.Now, v.IDsOf(as))
		return err
	})
	if err != nil {
		return v.outcome(nil, err)
	}
	v.Apply(as, evs...)
	held, err := v.Decide(to, mailbox.Inherit{Name: cmp.Or(name, "lent"), Value: given})
	return v.outcome(append(evs, held...), err)
}
