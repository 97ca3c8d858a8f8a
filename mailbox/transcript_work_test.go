package mailbox

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"parley/capabilities"
	"parley/events"
)

// atWork runs the commands of transcripts that are about programs. What the program of an agent asks is asked by
// "question" and "call", whose IDs are as the rooms outside make them; "hear" reads what was said to a call.
func (v *harness) atWork(cmd, as string, arg func(string) string, input string) (string, bool) {
	s := v.states[as]
	switch cmd {
	case "program":
		p := events.ProgramSet{Runtime: arg("runtime"), Command: strings.Fields(input), Environment: strings.Fields(arg("env")), Access: strings.Fields(arg("access"))}
		if err := CheckProgram(p); err != nil {
			return v.refusal(err), true
		}
		v.apply(as, &p)
		return "", true
	case "question":
		a := RequestForm{To: "HOST", Description: "something", Fields: []events.Field{{Name: "value"}}, Key: s.Runs.AskKey(arg("id"))}
		return v.asks(as, a, a), true
	case "call":
		return v.calls(as, arg("tool"), strings.TrimSpace(input)), true
	case "work":
		return v.showWork(as), true
	case "profile":
		return v.showProfile(as), true
	}
	c := v.working(cmd, as, arg, input)
	if c == nil {
		return "", false
	}
	if cmd == "run" {
		v.taken[as] = map[string]bool{}
	}
	return v.outcome(v.decide(as, c)), true
}

func (v *harness) working(cmd, as string, arg func(string) string, input string) Command {
	s := v.states[as]
	by := func() capabilities.ID { return v.states[cmp.Or(arg("by"), "host")].ID }
	switch cmd {
	case "run":
		return StartRun{Unprompted: arg("unprompted") == "yes"}
	case "end":
		end := EndRun{Error: arg("error"), Silent: arg("silent") == "yes", Output: strings.TrimSuffix(input, "\n")}
		if run, ok := s.Runs.Current(); ok && arg("run") != "other" {
			end.Run = run.Run
		}
		return end
	case "prepare":
		return PrepareProgram{Status: arg("status"), Error: arg("error")}
	case "interrupt":
		also, note := []capabilities.ID{}, arg("note")
		for _, n := range strings.FieldsFunc(arg("also"), func(r rune) bool { return r == ',' }) {
			m, err := s.Mail.Find(mustRef(n))
			if err != nil {
				v.tb.Fatal(err)
			}
			also = append(also, m.ID())
		}
		return InterruptRun{Note: note, Also: also}
	case "archive":
		return ArchiveAgent{By: by()}
	case "report":
		return ReportStatus{Status: arg("status"), Error: expandLength(arg("error"))}
	case "describe":
		return v.describing(arg, input)
	case "policy":
		return SetPolicy{Policy: arg("is"), By: by()}
	case "limit":
		n, _ := strconv.Atoi(arg("rule"))
		minutes, _ := strconv.Atoi(arg("minutes"))
		return LimitRule{Rule: s.Rules.Valid(v.now)[n].Rule, Until: v.now + capabilities.Time(minutes*60_000), By: by()}
	}
	return nil
}

// describing reads labels, one name=value a line; "none" is the empty set of them.
func (v *harness) describing(arg func(string) string, input string) Command {
	d := UpdateAgent{}
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

// expandLength makes so many letters of a length: "1025" is 1025 times x.
func expandLength(text string) string {
	if n, err := strconv.Atoi(text); err == nil {
		return strings.Repeat("x", n)
	}
	return text
}

// asks asks what may have been asked before.
func (v *harness) asks(as string, a RequestForm, c Command) string {
	if known, ok, err := a.FindExisting(v.states[as]); err != nil {
		return v.refusal(err)
	} else if ok {
		f := known.Message.Form
		if result := v.states[as].ApprovalResult(f, f.Digest()); result.Decision != "" {
			return fmt.Sprintf("#%d, as before: %s\n", known.Message.Number, result.Decision)
		}
		if f.Answered != nil {
			return fmt.Sprintf("#%d, as before: %s\n", known.Message.Number, f.Answered.Values.Text())
		}
		return fmt.Sprintf("#%d, as before\n", known.Message.Number)
	}
	return v.outcome(v.decide(as, c))
}

// calls asks whether a call may be made, as the desk of a run does.
func (v *harness) calls(as, tool, input string) string {
	s, taken := v.states[as], v.taken[as]
	c := RequestApproval{Tool: tool, Input: input, Key: s.CallKey(tool+input, "", func(key string) bool { return taken[key] })}
	out := v.asks(as, c.Form(), c)
	if _, asked, err := c.Form().FindExisting(s); asked && err == nil {
		taken[c.Key] = true
	}
	return out
}

// showWork says what an agent's program does and has to do.
func (v *harness) showWork(as string) string {
	var b strings.Builder
	s := v.states[as]
	fmt.Fprint(&b, s.Profile.Status)
	if s.Profile.Error != "" {
		fmt.Fprintf(&b, " (%s)", s.Profile.Error)
	}
	if run, ok := s.Runs.Current(); ok {
		fmt.Fprint(&b, ", runs")
		if m, err := s.Mail.FindID(run.Prompt); err == nil {
			fmt.Fprintf(&b, " for #%d", m.Number)
		}
	}
	for _, m := range s.Runs.Prompts() {
		fmt.Fprintf(&b, ", #%d waits", m.Number)
	}
	for _, m := range s.Runs.Interrupted() {
		fmt.Fprintf(&b, ", #%d was cut off", m.Number)
	}
	for _, m := range s.Mail.Approvals() {
		fmt.Fprintf(&b, ", asks for #%d", m.Number)
	}
	status, over := s.Finish()
	if !over {
		status = "not over"
	}
	return fmt.Sprintf("%s; %s, %d in hand\n", b.String(), status, s.Summary().Outbox)
}

func (v *harness) showProfile(as string) string {
	p := v.states[as].Profile
	var labels []string
	for k, l := range p.Labels {
		labels = append(labels, k+"="+l)
	}
	slices.Sort(labels)
	known := fmt.Sprintf("%q %v", p.Title, labels)
	if len(known) > 100 {
		known = fmt.Sprintf("a title of %d bytes, %d labels", len(p.Title), len(labels))
	}
	return fmt.Sprintf("%s, %s, an error of %d bytes, policy %s\n", known, p.Status, len(p.Error), v.states[as].Rules.Policy())
}
