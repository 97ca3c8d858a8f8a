package mailboxtest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/datadriven"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/form"
)

// RunCommand runs one command of a transcript and returns its output.
func (v *Harness) RunCommand(d *datadriven.TestData) string {
	var refused strings.Builder
	v.OnRefusal = func(to, from, why string) {
		fmt.Fprintf(&refused, "%s refused an item from %s: %s\n", to, from, v.readable(why))
	}
	out := v.command(d)
	if !v.hold {
		v.Deliver(false)
	}
	v.CheckReplay()
	out += refused.String()
	if out == "" {
		return "ok\n"
	}
	return out
}

func (v *Harness) command(d *datadriven.TestData) string {
	arg := func(key string) string {
		for _, a := range d.CmdArgs {
			if a.Key == key {
				return strings.Join(a.Vals, ",")
			}
		}
		return ""
	}
	form := func() capabilities.FormRef {
		for _, a := range d.CmdArgs {
			if strings.HasPrefix(a.Key, "#") {
				return MustRef(a.Key)
			}
		}
		if id := arg("form"); id != "" {
			return MustRef(id)
		}
		return capabilities.FormRef{}
	}
	as := arg("as")
	switch d.Cmd {
	case "counts":
		return v.showCounts(as)
	case "offered":
		return showOffered(v, as, arg("reader"))
	case "offer", "repeat", "fetch", "shown", "handle", "return":
		return v.outcome(v.Decide(as, offerCommand(v, d.Cmd, arg, d.Input)))
	case "draft":
		return v.draft(as, form(), d.Input)
	case "move":
		return v.move(as, arg("do"), arg("for"), d.Input)
	case "typed":
		return v.typed(as, arg("to"), form(), d.Input)
	case "away":
		var c mailbox.SetAway
		if in := arg("for"); in != "" {
			c.Until, c.Delegate = v.delay(in).After(v.Now), v.expand(arg("to"))
		}
		return v.outcome(v.Decide(as, c))
	case "member":
		return v.outcome(v.Decide(as, mailbox.SetMember{Agent: v.expand(arg("agent")), In: arg("out") == ""}))
	case "ask":
		return v.ask(as, arg, d.Input)
	}
	if out, ok := v.timeCommand(d, as, arg); ok {
		return out
	}
	if out, ok := v.formCommand(d, as, form, arg); ok {
		return out
	}
	if out, ok := v.showCommand(d, as, form, arg); ok {
		return out
	}
	if out, ok := v.nodeCommand(d.Cmd, as, arg); ok {
		return out
	}
	if out, ok := leaseCommand(v, d.Cmd, as, arg, d.Input); ok {
		return out
	}
	if out, ok := topicCommand(v, d.Cmd, as, arg); ok {
		return out
	}
	if out, ok := v.runCommand(d.Cmd, as, arg, d.Input); ok {
		return out
	}
	c := v.simple(d.Cmd, form(), arg, d.Input)
	if c == nil {
		v.TB.Fatalf("unknown command %s", d.Cmd)
	}
	return v.outcome(v.Decide(as, c))
}

// timeCommand makes agents, has time pass or mail delivered, and reports whether the command is one of these.
func (v *Harness) timeCommand(d *datadriven.TestData, as string, arg func(string) string) (string, bool) {
	switch d.Cmd {
	case "agents":
		for _, a := range d.CmdArgs {
			v.Add(a.Key, a.Vals...)
		}
		v.NameAgents()
		return "", true
	case "hold":
		v.hold = true
		return "", true
	case "deliver":
		v.hold = false
		v.Deliver(arg("times") == "twice")
		return "", true
	case "wait":
		dur, err := time.ParseDuration(arg("for"))
		if err != nil {
			return err.Error() + "\n", true
		}
		v.Now = v.Now.Add(dur)
		return "", true
	case "wake":
		return v.outcome(v.Decide(as, mailbox.WakeMessages{})), true
	case "overdue":
		return v.outcome(v.Decide(as, mailbox.NoteOverdue{})), true
	case "remind":
		return v.outcome(v.Decide(as, mailbox.RemindForms{})), true
	case "review":
		return v.outcome(v.Decide(as, mailbox.EndReviews{})), true
	case "escalate":
		return v.outcome(v.Decide(as, mailbox.EscalateForms{})), true
	case "expire":
		return v.outcome(v.Decide(as, mailbox.ExpireForms{})), true
	default:
		return "", false
	}
}

// showCommand runs a command that shows a state or changes a log, and reports whether it is one.
func (v *Harness) showCommand(d *datadriven.TestData, as string, form func() capabilities.FormRef, arg func(string) string) (string, bool) {
	switch d.Cmd {
	case "show":
		return v.show(as), true
	case "names":
		return v.showNames(as), true
	case "rules":
		return v.showRules(as), true
	case "mandates":
		return v.showMandates(as), true
	case "offers":
		return v.showOffers(as, form()), true
	case "grants":
		return v.showGrants(as), true
	default:
		return "", false
	}
}

// formCommand settles or forwards a form, and reports whether the command is one of these.
func (v *Harness) formCommand(d *datadriven.TestData, as string, form func() capabilities.FormRef, arg func(string) string) (string, bool) {
	switch d.Cmd {
	case "answer":
		return v.answer(as, form(), d.Input, arg), true
	case "result":
		return v.approvalResult(as, form()), true
	case "decline":
		c, home, err := v.States[as].DraftDecline(form(), revisionOf(arg), arg("note"), v.IDsOf(as))
		return v.settle(as, home, c, err), true
	case "withdraw":
		return v.withdraw(as, form()), true
	case "forward":
		c, home, err := v.States[as].DraftForward(form(), arg("to"), v.Now)
		if err != nil {
			return v.refusal(err), true
		}
		if home.Node != v.States[as].ID.Node {
			return v.outcome(v.Decide(as, mailbox.QueueForward{Form: form(), To: arg("to")})), true
		}
		return v.outcome(v.Decide(v.NameOf[home], c)), true
	default:
		return "", false
	}
}

// MustRef is capabilities.ParseFormRef for text that is known to be valid.
func MustRef(s string) capabilities.FormRef {
	ref, err := capabilities.ParseFormRef(s)
	if err != nil {
		panic(err)
	}
	return ref
}

// send returns the command that sends a text.
func send(v *Harness, arg func(string) string, text string) mailbox.Command {
	h := parley.Header{Priority: parley.Priority(arg("priority"))}
	if in := arg("ack"); in != "" {
		dur, err := time.ParseDuration(in)
		if err != nil {
			v.TB.Fatal(err)
		}
		h.AckBy = v.Now.Add(dur)
	}
	to := strings.Split(arg("to"), ",")
	return mailbox.PostMessage{To: to[0], Also: to[1:], Post: parley.Post{Text: text, Key: arg("key"), Plain: arg("plain") == "yes", Escalate: arg("escalate"), Header: h}}
}

func (v *Harness) simple(cmd string, ref capabilities.FormRef, arg func(string) string, input string) mailbox.Command {
	switch cmd {
	case "cancel":
		return mailbox.CancelForm{Form: ref, Reason: arg("note")}
	case "amend":
		return v.amend(ref, arg, input)
	case "dismiss":
		return mailbox.DismissMessage{Message: ref}
	case "restore":
		return mailbox.RestoreMessage{Message: ref}
	case "snooze":
		return v.snooze(ref, arg("for"))
	case "read":
		n, _ := ref.Number()
		return mailbox.MarkMessages{Numbers: []uint64{n}, Unread: arg("un") == "yes"}
	case "send":
		return send(v, arg, strings.TrimSuffix(input, "\n"))
	case "reply":
		return mailbox.PostMessage{Reply: ref, All: arg("all") == "yes", Post: parley.Post{Text: strings.TrimSuffix(input, "\n"), Key: arg("key")}}
	case "adopt":
		return mailbox.AdoptName{Message: ref, Edge: arg("edge"), Name: arg("name")}
	case "store":
		return mailbox.BindName{Name: arg("name"), Value: v.expand(strings.TrimSpace(input))}
	case "rename":
		return mailbox.MoveName{From: arg("from"), To: arg("to"), Force: arg("force") == "yes"}
	case "remove":
		return mailbox.UnbindName{Name: arg("name")}
	case "copy":
		uses, _ := strconv.Atoi(cmp.Or(arg("uses"), "0"))
		return mailbox.CopyName{From: arg("from"), To: arg("to"), Facet: capabilities.Facet{Mode: capabilities.Mode(arg("facet")), Uses: uint32(uses)}}
	case "revoke":
		n, _ := strconv.Atoi(arg("grant"))
		return mailbox.RevokeCapability{Grant: v.States[arg("as")].Grants.All()[n].ID}
	case "approve":
		var r mailbox.RequestForm
		v.route(&r, arg)
		c := mailbox.RequestApproval{Permission: parley.Permission{Tool: arg("tool"), Input: strings.TrimSpace(input), Folder: arg("folder")}, To: arg("to"), Key: arg("key"), Editable: arg("editable") == "yes", Remind: r.Remind, Escalate: r.Escalate, Need: r.Need, Veto: r.Veto}
		c.Passkey = arg("passkey") == "yes"
		c.Risk = func(*parley.Permission) mailbox.Risk {
			level := map[string]mailbox.RiskLevel{"yes": mailbox.HighRisk, "some": mailbox.SomeRisk}[arg("risky")]
			return mailbox.Risk{Level: level, Secret: arg("secret") == "yes"}
		}
		if session := arg("session"); session != "" {
			c.SessionAgent = v.States[session].ID
		}
		return c
	case "endmandate":
		n, _ := strconv.Atoi(arg("mandate"))
		return mailbox.EndMandate{Mandate: v.States[arg("as")].Rules.Mandates()[n].MandateGiven.Mandate, By: v.States[cmp.Or(arg("by"), "host")].ID}
	case "unrule":
		n, _ := strconv.Atoi(arg("rule"))
		return mailbox.RemoveRule{Rule: v.States[arg("as")].Rules.Valid(v.Now)[n].Rule, By: v.States[cmp.Or(arg("by"), "host")].ID}
	case "pauserule":
		n, _ := strconv.Atoi(arg("rule"))
		return mailbox.PauseRule{Rule: v.States[arg("as")].Rules.Valid(v.Now)[n].Rule, Paused: arg("is") == "yes", By: v.States[cmp.Or(arg("by"), "host")].ID}
	case "make":
		return mailbox.CreateAgent{Agent: v.IDsOf(arg("as"))(), Kind: events.Guest, Name: arg("name")}
	}
	return nil
}

// NameAgents gives each host names for the other agents of its node, as if it had made them.
func (v *Harness) NameAgents() {
	for _, name := range v.Agents {
		host := v.hostOf(name)
		short, _, _ := strings.Cut(name, "@")
		if _, err := v.States[host].Namespace().Lookup(short); err != nil && name != host {
			v.Apply(host, &events.NameBound{Name: short, Value: capabilities.Reference(capabilities.Ref{Target: v.States[name].ID, Kind: capabilities.KindAgent})})
		}
	}
}

// expand replaces <name> by the locator of that agent.
func (v *Harness) expand(text string) string {
	if name, ok := strings.CutPrefix(text, "<"); ok {
		return capabilities.Locator{ID: v.States[strings.TrimSuffix(name, ">")].ID, Kind: capabilities.KindAgent}.String()
	}
	return text
}

func (v *Harness) ask(as string, arg func(string) string, fields string) string {
	a := mailbox.RequestForm{Kind: events.FormKind(arg("kind")), Form: parley.Form{
		To:          arg("to"),
		Description: cmp.Or(arg("about"), "something"),
		Key:         arg("key"),
		Name:        arg("name"),
		NoForward:   arg("forward") == "no",
		Passkey:     arg("passkey") == "yes",
	}}
	if in := arg("deadline"); in != "" {
		dur, err := time.ParseDuration(in)
		if err != nil {
			return err.Error() + "\n"
		}
		a.Deadline = v.Now.Add(dur)
	}
	v.route(&a, arg)
	if strings.HasPrefix(strings.TrimSpace(fields), "[") {
		parsed, err := parley.ParseFields([]byte(fields))
		if err != nil {
			return v.refusal(err)
		}
		a.Fields = parsed
	} else {
		for _, line := range strings.Split(strings.TrimSpace(fields), "\n") {
			f, err := form.SplitField(line)
			if err != nil && a.Kind == "" {
				return v.refusal(err)
			}
			a.Fields = append(a.Fields, f)
		}
	}
	if known, ok, err := a.FindExisting(v.States[as]); err != nil {
		return v.refusal(err)
	} else if ok && known.Message != nil {
		return fmt.Sprintf("form %d, existing\n", known.Message.Number)
	} else if ok {
		return "known: " + v.readable(known.Value.Text()) + "\n"
	}
	return v.outcome(v.Decide(as, a))
}

func (v *Harness) answer(as string, ref capabilities.FormRef, input string, arg func(string) string) string {
	var texts []events.FieldText
	var mandate *parley.MandateTerms
	for _, line := range strings.Split(strings.TrimSpace(input), "\n") {
		if line == "" {
			continue
		}
		if terms, ok := strings.CutPrefix(line, "mandate:"); ok {
			mandate = v.ReadTerms(terms)
			continue
		}
		text, err := form.SplitText(line)
		if err != nil {
			return v.refusal(err)
		}
		texts = append(texts, text)
	}
	c, home, err := v.States[as].DraftAnswer(mailbox.Reply{Form: ref, Answer: parley.Answer{Texts: texts, Mandate: mandate, Revision: revisionOf(arg)}}, v.Now, v.IDsOf(as))
	if draw, err := strconv.ParseUint(arg("draw"), 10, 32); err == nil {
		c.Draw = uint32(draw)
	}
	if arg("late") == "yes" {
		v.Now = v.Now.Add(time.Hour)
	}
	return v.settle(as, home, c, err)
}

// revisionOf returns the revision that was shown; 0 is the present one.
func revisionOf(arg func(string) string) uint64 {
	revision, _ := strconv.ParseUint(cmp.Or(arg("revision"), "0"), 10, 64)
	return revision
}

// approvalResult reports whether a call that an agent asked about is allowed.
func (v *Harness) approvalResult(as string, ref capabilities.FormRef) string {
	s := v.States[as]
	m, err := s.Mail.FindForm(ref)
	if err != nil {
		return v.refusal(err)
	}
	asked, other := m.Form.Permission(), m.Form.Permission()
	other.Input += " "
	result := s.ApprovalResult(m.Form, asked.Call())
	if s.ApprovalResult(m.Form, other.Call()).Allowed {
		v.TB.Fatal("another call is allowed by the same answer")
	}
	switch {
	case result.Allowed && result.Input != "":
		return "allowed with " + result.Input + "\n"
	case result.Allowed:
		return "allowed\n"
	}
	return cmp.Or(result.Decision, "nothing") + ", not allowed\n"
}

func (v *Harness) settle(as string, home capabilities.ID, c mailbox.SettleForm, err error) string {
	if err != nil {
		return v.refusal(err)
	}
	if home.Node != v.States[as].ID.Node {
		return v.outcome(v.Decide(as, mailbox.QueueAnswer{Answer: c}))
	}
	m, err := v.States[v.NameOf[home]].Mail.FindFormID(c.Form)
	if err != nil {
		v.TB.Fatal(err)
	}
	for _, f := range m.Form.Fields {
		if form.ControlOf(&f) == form.Secret {
			c.Sealed = map[string]capabilities.Value{f.Name: capabilities.Sealed([]byte{1, 2, 3})}
		}
	}
	return v.outcome(v.Decide(v.NameOf[home], c))
}

func (v *Harness) outcome(evs []events.Event, err error) string {
	if err != nil {
		return v.refusal(err)
	}
	if len(evs) == 0 {
		return "nothing to do\n"
	}
	var names []string
	for _, e := range evs {
		names = append(names, events.Name(e))
	}
	return strings.Join(names, " ") + "\n"
}

func (v *Harness) refusal(err error) string {
	e := parley.AsError(err)
	if len(e.Fields) == 0 {
		return v.readable(string(e.Code)+": "+e.Message) + "\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", e.Code)
	for _, f := range slices.Sorted(maps.Keys(e.Fields)) {
		fmt.Fprintf(&b, "  %s: %s\n", f, v.readable(e.Fields[f]))
	}
	return b.String()
}

// readable replaces the IDs of agents by their names.
func (v *Harness) readable(text string) string {
	for id, name := range v.NameOf {
		text = strings.ReplaceAll(text, capabilities.Locator{ID: id, Kind: capabilities.KindAgent}.String(), "<"+name+">")
		text = strings.ReplaceAll(text, id.String(), "<"+name+">")
	}
	for _, id := range v.made {
		text = strings.ReplaceAll(text, id.String(), "<id>")
	}
	return text
}
