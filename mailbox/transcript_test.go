package mailbox

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/form"
)

// TestTranscripts runs the conversations in testdata, which are the specification of a mailbox. Agents are
// made by "agents", on several nodes if so named (fae@A); time starts at 0 and moves by "wait"; mail is delivered
// by "deliver", or at once unless "hold" is on, or the node is "away" until it is "back".
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) {
		v := newHarness(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			return v.run(d)
		})
	})
}

func (v *harness) run(d *datadriven.TestData) string {
	var refused strings.Builder
	v.refuse = func(to, from, why string) {
		fmt.Fprintf(&refused, "%s would not have it from %s: %s\n", to, from, v.plain(why))
	}
	out := v.command(d)
	if !v.held {
		v.deliver(false)
	}
	v.checkReplay()
	out += refused.String()
	if out == "" {
		return "ok\n"
	}
	return out
}

func (v *harness) command(d *datadriven.TestData) string {
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
				return mustRef(a.Key)
			}
		}
		if id := arg("form"); id != "" {
			return mustRef(id)
		}
		return capabilities.FormRef{}
	}
	as := arg("as")
	switch d.Cmd {
	case "agents":
		for _, a := range d.CmdArgs {
			v.add(a.Key)
		}
		return v.introduce()
	case "hold":
		v.held = true
		return ""
	case "deliver":
		v.held = false
		v.deliver(arg("times") == "twice")
		return ""
	case "wait":
		dur, err := time.ParseDuration(arg("for"))
		if err != nil {
			return err.Error() + "\n"
		}
		v.now = v.now.Add(dur)
		return ""
	case "ring":
		return v.outcome(v.decide(as, ExpireForms{}))
	case "show":
		return v.show(as)
	case "names":
		return v.showNames(as)
	case "rules":
		return v.showRules(as)
	case "shape": // a rule as logs of before hold it
		v.apply(as, &events.RuleAdded{Rule: v.idOf(as)(), Agent: v.states[as].ID, Tool: arg("tool"), Shape: strings.TrimSpace(d.Input), Allow: arg("never") == ""})
		return "ok\n"
	case "offers":
		return v.showOffers(as, form())
	case "grants":
		return v.showGrants(as)
	case "ask":
		return v.ask(as, arg, d.Input)
	case "answer":
		return v.answer(as, form(), d.Input, arg("late") == "yes")
	case "verdict":
		return v.approvalResult(as, form())
	case "decline":
		c, home, err := v.states[as].DraftDecline(form(), arg("note"), v.idOf(as))
		return v.settle(as, home, c, err)
	case "forward":
		c, home, err := v.states[as].DraftForward(form(), arg("to"), v.now)
		if err != nil {
			return v.refusal(err)
		}
		if home.Node != v.states[as].ID.Node {
			return v.outcome(v.decide(as, QueueForward{Form: form(), To: arg("to")}))
		}
		return v.outcome(v.decide(v.names[home], c))
	}
	if out, ok := v.outside(d.Cmd, as, arg); ok {
		return out
	}
	if out, ok := v.atWork(d.Cmd, as, arg, d.Input); ok {
		return out
	}
	c := v.simple(d.Cmd, form(), arg, d.Input)
	if c == nil {
		v.tb.Fatalf("unknown command %s", d.Cmd)
	}
	return v.outcome(v.decide(as, c))
}

// mustRef is ParseFormRef for text that names a form.
func mustRef(s string) capabilities.FormRef {
	ref, err := capabilities.ParseFormRef(s)
	if err != nil {
		panic(err)
	}
	return ref
}

// showRules lists an agent's standing rules.
func (v *harness) showRules(as string) string {
	var b strings.Builder
	for i, r := range v.states[as].Rules.Valid(v.now) {
		verb := "never"
		if r.Allow {
			verb = "always"
		}
		fmt.Fprintf(&b, "%d: %s %s %s, used %d times\n", i, verb, r.Tool, r.Words(), r.Uses)
		if why := r.Stale(); why != "" {
			fmt.Fprintf(&b, "   but %s\n", why)
		}
	}
	return b.String()
}

// showOffers lists the rules that an approval offers, and what is said of a rule of before.
func (v *harness) showOffers(as string, ref capabilities.FormRef) string {
	m, err := v.states[as].Mail.FindForm(ref)
	if err != nil {
		return v.refusal(err)
	}
	said := strings.Join(OffersOf(m.Form.Fields), "\n") + "\n"
	if help := m.Form.Fields[0].Help; help != "" {
		said += help + "\n"
	}
	return said
}

func (v *harness) simple(cmd string, ref capabilities.FormRef, arg func(string) string, input string) Command {
	switch cmd {
	case "cancel":
		return CancelForm{Form: ref, Reason: arg("note")}
	case "dismiss":
		return DismissMessage{Message: ref}
	case "send":
		return PostMessage{To: arg("to"), Text: strings.TrimSuffix(input, "\n"), Key: arg("key"), Plain: arg("plain") == "yes"}
	case "reply":
		return PostMessage{Reply: ref, Text: strings.TrimSuffix(input, "\n")}
	case "adopt":
		return AdoptName{Message: ref, Edge: arg("edge"), Name: arg("name")}
	case "store":
		return BindName{Name: arg("name"), Value: v.expand(strings.TrimSpace(input))}
	case "rename":
		return MoveName{From: arg("from"), To: arg("to")}
	case "remove":
		return UnbindName{Name: arg("name")}
	case "copy":
		uses, _ := strconv.Atoi(cmp.Or(arg("uses"), "0"))
		return CopyName{From: arg("from"), To: arg("to"), Facet: capabilities.Facet{Mode: capabilities.Mode(arg("facet")), Uses: uint32(uses)}}
	case "revoke":
		n, _ := strconv.Atoi(arg("grant"))
		return RevokeCapability{Grant: v.states[arg("as")].Grants.All()[n].ID}
	case "approve":
		return RequestApproval{To: arg("to"), Tool: arg("tool"), Input: strings.TrimSpace(input), Folder: arg("folder"), Key: arg("key")}
	case "unrule":
		n, _ := strconv.Atoi(arg("rule"))
		return RemoveRule{Rule: v.states[arg("as")].Rules.Valid(v.now)[n].Rule, By: v.states[cmp.Or(arg("by"), "host")].ID}
	case "make":
		return CreateAgent{Agent: v.idOf(arg("as"))(), Kind: events.Guest, Name: arg("name")}
	}
	return nil
}

// introduce lets the host hold all the others by name, as their maker does.
func (v *harness) introduce() string {
	for _, name := range v.agents {
		host := v.hostOf(name)
		called, _, _ := strings.Cut(name, "@")
		if _, taken := v.states[host].Names.values[called]; !taken && name != host {
			v.apply(host, &events.NameBound{Name: called, Value: capabilities.Reference(agentRef(v.states[name].ID))})
		}
	}
	return ""
}

// expand puts the locator of an agent for <name>, so that a transcript can show what knowing one is worth.
func (v *harness) expand(text string) string {
	if name, ok := strings.CutPrefix(text, "<"); ok {
		return capabilities.Locator{ID: v.states[strings.TrimSuffix(name, ">")].ID, Kind: capabilities.KindAgent}.String()
	}
	return text
}

func (v *harness) ask(as string, arg func(string) string, fields string) string {
	a := RequestForm{
		To: arg("to"), Description: cmp.Or(arg("about"), "something"), Key: arg("key"), Result: arg("name"),
		NoForward: arg("forward") == "no", Kind: events.FormKind(arg("kind")),
	}
	if in := arg("deadline"); in != "" {
		dur, err := time.ParseDuration(in)
		if err != nil {
			return err.Error() + "\n"
		}
		a.Deadline = v.now.Add(dur)
	}
	if strings.HasPrefix(strings.TrimSpace(fields), "[") {
		parsed, err := form.ParseFields([]byte(fields))
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
	if known, ok, err := a.FindExisting(v.states[as]); err != nil {
		return v.refusal(err)
	} else if ok && known.Message != nil {
		return fmt.Sprintf("form %d, as before\n", known.Message.Number)
	} else if ok {
		return "known: " + v.plain(known.Value.Text()) + "\n"
	}
	return v.outcome(v.decide(as, a))
}

func (v *harness) answer(as string, ref capabilities.FormRef, input string, late bool) string {
	var texts []events.FieldText
	for _, line := range strings.Split(strings.TrimSpace(input), "\n") {
		if line == "" {
			continue
		}
		text, err := form.SplitText(line)
		if err != nil {
			return v.refusal(err)
		}
		texts = append(texts, text)
	}
	c, home, err := v.states[as].DraftAnswer(Reply{Form: ref, Texts: texts}, v.now, v.idOf(as))
	if late {
		v.now = v.now.Add(time.Hour)
	}
	return v.settle(as, home, c, err)
}

// approvalResult reports whether a call that an agent asked about is allowed.
func (v *harness) approvalResult(as string, ref capabilities.FormRef) string {
	s := v.states[as]
	m, err := s.Mail.FindForm(ref)
	if err != nil {
		return v.refusal(err)
	}
	result := s.ApprovalResult(m.Form, m.Form.Digest())
	if other := s.ApprovalResult(m.Form, DigestCall(m.Form.Title, m.Form.Description+" ")); other.Allowed {
		v.tb.Fatal("another call is allowed by the same answer")
	}
	if result.Allowed {
		return "allowed\n"
	}
	return cmp.Or(result.Decision, "nothing") + ", not allowed\n"
}

func (v *harness) settle(as string, home capabilities.ID, c SettleForm, err error) string {
	if err != nil {
		return v.refusal(err)
	}
	if home.Node != v.states[as].ID.Node {
		return v.outcome(v.decide(as, QueueAnswer{Answer: c}))
	}
	m, err := v.states[v.names[home]].Mail.FindFormID(c.Form)
	if err != nil {
		v.tb.Fatal(err)
	}
	for _, f := range m.Form.Fields {
		if f.Type == events.Secret {
			c.Sealed = map[string]capabilities.Value{f.Name: capabilities.Sealed([]byte{1, 2, 3})}
		}
	}
	return v.outcome(v.decide(v.names[home], c))
}

func (v *harness) outcome(evs []events.Event, err error) string {
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

func (v *harness) refusal(err error) string {
	e := parley.AsError(err)
	if len(e.Fields) == 0 {
		return v.plain(string(e.Code)+": "+e.Message) + "\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", e.Code)
	for _, f := range slices.Sorted(maps.Keys(e.Fields)) {
		fmt.Fprintf(&b, "  %s: %s\n", f, v.plain(e.Fields[f]))
	}
	return b.String()
}

// plain puts the agents' names for their IDs.
func (v *harness) plain(text string) string {
	for id, name := range v.names {
		text = strings.ReplaceAll(text, capabilities.Locator{ID: id, Kind: capabilities.KindAgent}.String(), "<"+name+">")
		text = strings.ReplaceAll(text, id.String(), "<"+name+">")
	}
	for _, id := range v.made {
		text = strings.ReplaceAll(text, id.String(), "<id>")
	}
	return text
}

func (v *harness) show(only string) string {
	var b strings.Builder
	for _, name := range v.agents {
		if only != "" && only != name {
			continue
		}
		s := v.states[name]
		for _, m := range s.Mail.All() {
			fmt.Fprintf(&b, "%s: #%d %s\n", name, m.Number, v.describe(s, m))
		}
		for _, p := range s.Outbox.Items() {
			fmt.Fprintf(&b, "%s: owes %s item %d\n", name, v.names[p.To], p.Kind)
		}
	}
	return v.plain(b.String())
}

func (v *harness) describe(s *State, m *Message) string {
	from := "from " + v.names[m.From()]
	if s.Mail.Sent(m) {
		from = "to " + v.names[m.To()]
	}
	gone := ""
	if m.Dismissed {
		gone = ", dismissed"
	}
	if m.Posted != nil {
		return fmt.Sprintf("message %s: %s%s", from, ShowText(m.Posted.Text), gone)
	}
	f := m.Form
	if !f.Forwarder.IsZero() {
		from += " by way of " + v.names[f.Forwarder]
	}
	status := "open" + v.onItsWay(f)
	if a := f.Answered; a != nil {
		status = "answered by " + v.names[a.By]
		if !a.Withheld {
			values, _ := a.Values.MarshalJSON()
			status += " " + string(shorten(values))
		}
	}
	if e := f.Ended; e != nil {
		status = string(e.Reason)
		if !e.By.IsZero() {
			status += " by " + v.names[e.By]
		}
		if e.Note != "" {
			status += ": " + e.Note
		}
	}
	for _, h := range f.Forwarded {
		from += ", handed to " + v.names[h.To]
	}
	return fmt.Sprintf("%s %s, %s%s", m.Type(), from, status, gone)
}

// shorten leaves out the grants of references, whose IDs say nothing to a reader.
func shorten(b []byte) []byte {
	s := string(b)
	for {
		i := strings.Index(s, `,"grant":"`)
		if i < 0 {
			return []byte(s)
		}
		s = s[:i] + s[i+len(`,"grant":"`)+26+1+56+1:]
	}
}

func (v *harness) showNames(as string) string {
	var b strings.Builder
	names, err := v.states[as].ListNames("")
	if err != nil {
		return v.refusal(err)
	}
	for _, n := range names {
		value, err := v.states[as].Lookup(n)
		if err != nil {
			return v.refusal(err)
		}
		fmt.Fprintf(&b, "%s: %s\n", n, string(shorten([]byte(value.Text()))))
	}
	return v.plain(b.String())
}

func (v *harness) showGrants(as string) string {
	var b strings.Builder
	for i, g := range v.states[as].Grants.All() {
		state := "live"
		if g.Revoked != 0 {
			state = "revoked"
		}
		fmt.Fprintf(&b, "%d. %s to %s, %s\n", i, v.names[g.Target], v.names[g.To], state)
	}
	return cmp.Or(b.String(), "none\n")
}
