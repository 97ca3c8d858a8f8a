package mailboxtest

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/form"
)

// marks returns how a message stands in the inbox.
func (v *Harness) marks(s *mailbox.State, m *mailbox.Message) (text string) {
	if m.Dismissed {
		text = ", dismissed"
	}
	if until := s.Mail.Snoozed.Until(m.Number); until != 0 {
		text += ", snoozed for " + until.Std().Sub(v.Now.Std()).String()
	}
	if _, late, err := mailbox.IsAcknowledged(&s.Mail, m.Number); err == nil && late {
		text += ", overdue"
	}
	text += receipts(v, m)
	if m.Form != nil && m.Form.Draft != nil {
		values, _ := m.Form.Draft.Values.MarshalJSON()
		text += ", draft " + string(values)
	}
	return text
}

// receipts returns how far a message has come, and with whom.
func receipts(v *Harness, m *mailbox.Message) (text string) {
	for _, r := range m.Receipts {
		text += fmt.Sprintf(", %s to %s", r.State, v.NameOf[r.Reader])
		if r.How != "" {
			text += " (" + r.How + ")"
		}
		if !r.By.IsZero() {
			text += " says " + v.NameOf[r.By]
		}
	}
	if m.Posted != nil && len(m.Posted.Late) > 0 {
		text += ", escalated: not acknowledged by"
		for _, r := range m.Posted.Late {
			text += " " + v.NameOf[r.Agent]
		}
	}
	for _, e := range m.Members {
		text += fmt.Sprintf(", %s with %s says %s", e.State, v.NameOf[e.Member], v.NameOf[e.By])
	}
	for _, e := range m.Unreached {
		text += fmt.Sprintf(", not to %s (%s) says %s", v.NameOf[e.Agent], e.Why, v.NameOf[e.By])
	}
	return text
}

// offerCommand returns the command about offers of the messages in an input, or nil if it is none.
func offerCommand(v *Harness, cmd string, arg func(string) string, input string) mailbox.Command {
	reader := v.States[cmp.Or(arg("reader"), arg("as"))].ID
	var numbers []uint64
	for _, ref := range strings.Fields(input) {
		n, _ := MustRef(ref).Number()
		numbers = append(numbers, n)
	}
	switch cmd {
	case "offer":
		return mailbox.OfferMessages{Reader: reader, Token: arg("token"), Numbers: numbers, Moment: arg("moment"), All: arg("all") == "yes"}
	case "shown":
		return mailbox.ShowMessages{Reader: reader, Token: arg("token"), Numbers: numbers, Proof: arg("proof")}
	case "handle":
		return mailbox.HandleMessages{Reader: reader, Numbers: numbers, How: events.Handling(arg("how"))}
	case "repeat":
		return mailbox.RepeatNotice{Reader: reader, Token: arg("token"), Moment: arg("moment")}
	case "fetch":
		return mailbox.FetchMessages{Reader: reader, Numbers: numbers}
	case "return":
		var tokens []string
		if t := arg("token"); t != "" {
			tokens = append(tokens, t)
		}
		return mailbox.ReturnOffers{Reader: reader, Tokens: tokens}
	}
	return nil
}

// showOffered returns the offers of a reader without proof, and what it may be offered.
func showOffered(v *Harness, as, reader string) string {
	l, id := &v.States[as].Mail, v.States[cmp.Or(reader, as)].ID
	text := ""
	for _, o := range l.Offers.Of(id) {
		text += fmt.Sprintf("%s at %s: %d\n", o.Token, cmp.Or(o.Moment, "no moment"), o.Numbers)
	}
	numbers, known := l.Index.Unoffered(id)
	if !known {
		return text + "unknown\n"
	}
	if err := l.Index.ByPriority(numbers); err != nil {
		return v.refusal(err)
	}
	return text + fmt.Sprintf("unoffered: %d\n", numbers)
}

// snooze returns the command that snoozes a message for a time, or with none brings it back.
func (v *Harness) snooze(ref capabilities.FormRef, long string) mailbox.Command {
	dur, err := time.ParseDuration(cmp.Or(long, "0s"))
	if err != nil {
		v.TB.Fatal(err)
	}
	return mailbox.SnoozeMessage{Message: ref, Until: v.Now.Add(dur)}
}

// draft saves the lines of an input as a draft, with sealed values for secret fields.
func (v *Harness) draft(as string, ref capabilities.FormRef, input string) string {
	m, err := v.States[as].Mail.FindForm(ref)
	if err != nil {
		return v.refusal(err)
	}
	var texts []events.FieldText
	for line := range strings.Lines(input) {
		text, err := form.SplitText(strings.TrimSpace(line))
		if err != nil {
			return v.refusal(err)
		}
		texts = append(texts, text)
	}
	values, err := m.Form.DraftValues(texts)
	if err != nil {
		return v.refusal(err)
	}
	for _, name := range form.Secrets(m.Form.Fields) {
		if _, ok := values[name]; ok {
			values[name] = capabilities.Sealed([]byte{1, 2, 3})
		}
	}
	return v.outcome(v.Decide(as, mailbox.SaveDraft{Form: ref, Values: values}))
}

// move moves the messages in an input together.
func (v *Harness) move(as, do, long, input string) string {
	dur, err := time.ParseDuration(cmp.Or(long, "0s"))
	if err != nil {
		v.TB.Fatal(err)
	}
	c := mailbox.MoveMessages{Do: do, Until: v.Now.Add(dur)}
	for _, ref := range strings.Fields(input) {
		c.Messages = append(c.Messages, MustRef(ref))
	}
	evs, refused := v.States[as].MoveEach(nil, c, v.Now, v.IDsOf(as))
	v.Apply(as, evs...)
	out := fmt.Sprintf("%d events\n", len(evs))
	for i, err := range refused {
		if err != nil {
			out += c.Messages[i].String() + ": " + v.refusal(err)
		}
	}
	return out
}

// typed saves an input as the draft of a message or reply, and returns the draft that is kept.
func (v *Harness) typed(as, to string, reply capabilities.FormRef, text string) string {
	c := mailbox.DraftMessage{To: v.expand(to), Reply: reply, Text: text}
	out := v.outcome(v.Decide(as, c))
	target, replyTo, err := v.States[as].DraftPlace(c, v.Now)
	if err != nil {
		return v.refusal(err)
	}
	return out + fmt.Sprintf("kept %q\n", v.States[as].Mail.Texts.For(target, replyTo).Text)
}

// amend corrects a form by the lines of an input, which are its fields; without any they stay.
func (v *Harness) amend(ref capabilities.FormRef, arg func(string) string, input string) mailbox.Command {
	c := mailbox.AmendForm{Form: ref, Amendment: parley.Amendment{Note: arg("note")}}
	if about := arg("about"); about != "" {
		c.Description = &about
	}
	for line := range strings.Lines(input) {
		f, err := form.SplitField(strings.TrimSpace(line))
		if err != nil {
			v.TB.Fatal(err)
		}
		c.Fields = append(c.Fields, f)
	}
	return c
}

// amended returns how a form was amended.
func amended(f *mailbox.Form) string {
	if f.Amended() == nil {
		return ""
	}
	text := fmt.Sprintf(", revision %d (%s)", f.Revision(), strings.Join(f.Changes(), ", "))
	if f.Amended().Note != "" {
		text += " " + f.Amended().Note
	}
	return text
}

// showCounts returns the numbers of messages in the lists of an inbox.
func (v *Harness) showCounts(as string) string {
	c, err := mailbox.CountsOf(v.States[as])
	if err != nil {
		return v.refusal(err)
	}
	return fmt.Sprintf("%d pending, %d snoozed, %d done, %d unread of %d\n", c.Pending, c.Snoozed, c.Done, c.Unread, c.All)
}

func (v *Harness) delay(text string) (d events.Delay) {
	if err := d.UnmarshalText([]byte(text)); err != nil {
		v.TB.Fatal(err)
	}
	return d
}

// routed returns how a form was reminded of and escalated.
func (v *Harness) routed(f *mailbox.Form) (text string) {
	if r := f.Reminded(); r != nil {
		text += fmt.Sprintf(", reminded %d", r.N)
	}
	for _, r := range f.Routed() {
		text += fmt.Sprintf(", %s to %s", r.Cause, v.NameOf[r.To])
	}
	return text
}

// votes returns the votes on a form.
func (v *Harness) votes(f *mailbox.Form) (text string) {
	for _, w := range f.Votes().Standing {
		text += fmt.Sprintf(", vote of %s: %s", v.NameOf[w.By], w.Outcome)
		if w.Note != "" {
			text += " (" + w.Note + ")"
		}
	}
	for _, w := range f.Votes().Void {
		text += fmt.Sprintf(", void vote of %s on revision %d", v.NameOf[w.By], w.Revision)
	}
	if f.IsOpen() && f.Route != nil && f.Route.Need > 1 && len(f.Holders) > 0 {
		text += ", waiting for"
		for _, h := range f.Waiting() {
			text += " " + v.NameOf[h]
		}
	}
	return text
}

// withdraw takes an agent's vote back.
func (v *Harness) withdraw(as string, ref capabilities.FormRef) string {
	c, home, err := v.States[as].DraftWithdrawal(ref)
	if err != nil {
		return v.refusal(err)
	}
	return v.outcome(v.Withdraw(as, home, c))
}

// Withdraw decides on the withdrawal of a vote at the form's home. It queues the withdrawal for a home on another node.
func (v *Harness) Withdraw(as string, home capabilities.ID, c mailbox.WithdrawVote) ([]events.Event, error) {
	v.TB.Helper()
	if home.Node == v.States[as].ID.Node {
		return v.Decide(v.NameOf[home], c)
	}
	return v.Decide(as, mailbox.QueueAnswer{Answer: mailbox.SettleForm{Form: c.Form, By: c.By, Reason: events.Withdrawn, Answer: c.Answer}})
}

// route sets the route of a form by the arguments of a command.
func (v *Harness) route(a *mailbox.RequestForm, arg func(string) string) {
	need, _ := strconv.ParseUint(cmp.Or(arg("need"), "0"), 10, 32)
	a.Need, a.Veto, a.NoSelf = uint32(need), new(arg("veto") != "no"), arg("self") == "no"
	for in := range strings.FieldsFuncSeq(arg("remind"), func(r rune) bool { return r == ',' }) {
		a.Remind = append(a.Remind, v.delay(in))
	}
	for in := range strings.FieldsFuncSeq(arg("escalate"), func(r rune) bool { return r == ',' }) {
		after, to, _ := strings.Cut(in, ":")
		a.Escalate = append(a.Escalate, parley.Escalation{After: v.delay(after), To: to})
	}
}
