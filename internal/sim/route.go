package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// formFacts is what a log says about a form, beside its beginning and its end.
type formFacts struct {
	question string
	revision uint64
	reminded uint32
	step     uint32
	date     capabilities.Time
	deadline capabilities.Time
	route    *events.Route
	holders  []capabilities.ID // at the form's home
	notified []capabilities.ID // those of the last reminder

	votes map[capabilities.ID]events.VoteCast // by principal
}

// amendment is a revision of a form.
type amendment struct {
	form     capabilities.ID
	revision uint64
}

func (f *formFacts) asked(e *events.FormRequested) {
	f.question, f.revision, f.date, f.deadline, f.route = e.Description, 1, e.Date, e.Deadline, e.Route
	f.holders = append(f.holders, e.To)
}

// route adds reminders and escalations to a form.
func (w *world) route(c *mailbox.RequestForm, b *mailboxActor, d *draw) {
	for range d.n(3) {
		c.Remind = append(c.Remind, 1+events.Delay(d.n(80)))
	}
	for range 1 + d.n(2) {
		c.Escalate = append(c.Escalate, parley.Escalation{After: 1 + events.Delay(d.n(60)), To: w.path(b, d)})
	}
	if d.oneIn(2) {
		w.severalNeeded(c, d)
	}
}

// amend amends the question of a form. The question of revision 3 is "d3".
func (w *world) amend(b *mailboxActor, form capabilities.ID) {
	w.begin(b, "amend "+form.ULID.String()).step(b, func(b *mailboxActor) error {
		m, err := b.find(form)
		if err != nil {
			return err
		}
		question := "d" + strconv.FormatUint(m.Form.Revision()+1, 10)
		_, err = b.decide(mailbox.AmendForm{Form: capabilities.FormID(form), Amendment: parley.Amendment{Description: &question}})
		if !m.Form.IsOpen() && err != nil {
			w.sometimes(amendmentTooLate)
		}
		return err
	}, nil)
}

// lookAndAnswer has a client look at a form, and answer some time later what it was shown.
func (w *world) lookAndAnswer(b *mailboxActor, form capabilities.ID) {
	o := w.begin(b, "look at "+form.ULID.String())
	r := mailbox.Reply{Form: capabilities.FormID(form), Schema: w.schema, Answer: parley.Answer{Texts: []events.FieldText{{Name: "f"}}}}
	o.step(b, func(b *mailboxActor) error {
		m, err := b.find(form)
		if err == nil {
			r.Revision = m.Form.Revision()
		}
		return err
	}, func() {
		o.end(nil)
		b.node.later("answer "+form.ULID.String(), func() { w.answer(b, form, r, false) })
	})
}

// shown returns the words of an answer: who answers, and the question as it was shown. Revision is 0 for the present one.
func (b *mailboxActor) shown(form capabilities.ID, revision uint64) string {
	if m, err := b.find(form); err == nil && revision == 0 {
		return b.name + " saw " + m.Form.Description
	}
	return fmt.Sprintf("%s saw d%d", b.name, revision)
}

// textOf returns the words of an answer.
func textOf(values capabilities.Value) string {
	all, _ := values.AsRecord()
	text, _ := all["f"].AsString()
	return text
}

// amended checks an amendment in a log. Those of the home follow one another, and those of a copy are the home's.
func (b *mailboxActor) amended(e *events.FormAmended) {
	w, c, key := b.node.world, b.shadow.copies[e.Form], amendment{e.Form, e.Revision}
	switch {
	case c == nil || !c.open:
		w.failf("%s: form %s is amended in the log and was not open", b.name, e.Form.ULID)
	case c.from == b && e.Revision != c.revision+1:
		w.failf("%s: form %s is amended to revision %d after %d", b.name, e.Form.ULID, e.Revision, c.revision)
	case c.from == b:
		w.facts.amended[key] = e.Description
	case e.Revision <= c.revision:
		w.failf("%s: the copy of form %s is amended to revision %d after %d", b.name, e.Form.ULID, e.Revision, c.revision)
	case w.facts.amended[key] != e.Description:
		w.failf("%s has %q as revision %d of form %s, and its home %q", b.name, e.Description, e.Revision, e.Form.ULID, w.facts.amended[key])
	}
	c.revision, c.question = e.Revision, e.Description
	c.voided(e.Revision)
}

// noteAmendment notes an amendment that meets an answer under way.
func (w *world) noteAmendment(b *mailboxActor, c mailbox.RecordAmendment, err error) {
	if isFinal(err) {
		w.facts.amendmentRefused[c.Amendment.Form] = true
	}
	if m, found := b.find(c.Amendment.Form); err == nil && found == nil && m.Form.Queued().Answer != nil {
		w.sometimes(amendmentMeetsAnswer)
	}
}

// decided checks that a settlement in the home's log answers the question that the log had then. Its agent has to have
// been shown that question.
func (b *mailboxActor) decided(form, by capabilities.ID, words string) {
	c := b.shadow.copies[form]
	if c.from != b || strings.HasPrefix(words, "not accepted: ") { // the copy was refused
		return
	}
	w := b.node.world
	if want := w.mailbox(by).name + " saw " + c.question; words != want {
		w.failf("form %s asks %q when it is settled, and the answer is %q", form.ULID, c.question, words)
	}
	if c.revision > 1 {
		w.sometimes(amendedSettled)
	}
}

// reminded checks a reminder in a log: each is sent once, when it is due, and none after the deadline.
func (b *mailboxActor) reminded(e *events.FormReminded) {
	w, c := b.node.world, b.shadow.copies[e.Form]
	switch {
	case c == nil || !c.open:
		w.failf("%s: a reminder of form %s, which was not open", b.name, e.Form.ULID)
	case e.N <= c.reminded:
		w.failf("%s: reminder %d of form %s after %d", b.name, e.N, e.Form.ULID, c.reminded)
	case c.from != b && e.N > w.facts.reminded[e.Form]:
		w.failf("%s has reminder %d of form %s, and its home has sent %d", b.name, e.N, e.Form.ULID, w.facts.reminded[e.Form])
	case c.from == b:
		if int(e.N) > len(c.route.Remind) || c.route.Remind[e.N-1].After(c.date) > e.Date {
			w.failf("%s: reminder %d of form %s is not due", b.name, e.N, e.Form.ULID)
		}
		b.checkBeforeDeadline("reminder", e.Form, e.Date)
		w.facts.reminded[e.Form] = e.N
		c.notified = slices.Clone(c.holders)
	default:
		w.sometimes(copyReminded)
	}
	c.reminded = e.N
}

// routed checks a step of a route in the home's log: each is taken once, when it is due, and none after the deadline.
func (b *mailboxActor) routed(e *events.FormRouted) {
	w, c := b.node.world, b.shadow.copies[e.Form]
	switch {
	case c == nil || !c.open || c.from != b:
		w.failf("%s: a step of form %s, which was not open or not its own", b.name, e.Form.ULID)
	case e.Cause == events.Revoked: // a forward was taken back
		if !slices.Contains(c.holders, e.To) {
			w.failf("%s: form %s was taken back from %s, which never had it", b.name, e.Form.ULID, w.mailbox(e.To).name)
		}
		return
	case e.Step != c.step+1:
		w.failf("%s: step %d of form %s after %d", b.name, e.Step, e.Form.ULID, c.step)
	case int(e.Step) > len(c.route.Escalate) || c.route.Escalate[e.Step-1].After.After(c.date) > e.Date:
		w.failf("%s: step %d of form %s is not due", b.name, e.Step, e.Form.ULID)
	}
	b.checkBeforeDeadline("step", e.Form, e.Date)
	c.step = e.Step
	if e.Cause != events.Escalated {
		w.sometimes(escalationUnreachable)
		return
	}
	w.sometimes(escalated)
	w.facts.shared = append(w.facts.shared, e.Form)
	c.holders = append(c.holders, e.To)
	b.sends(e.Form, w.mailbox(e.To))
}

func (b *mailboxActor) checkBeforeDeadline(what string, form capabilities.ID, at capabilities.Time) {
	if c := b.shadow.copies[form]; c.deadline != 0 && at >= c.deadline {
		b.node.world.failf("%s: a %s of form %s at %d, after its deadline %d", b.name, what, form.ULID, at, c.deadline)
	}
}

// expires notes a form that expires, and one that had a step of its route due at the time.
func (b *mailboxActor) expires(e *events.FormCancelled) {
	w, c := b.node.world, b.shadow.copies[e.Form]
	w.sometimes(deadlinePassed)
	if c == nil || c.from != b || c.route == nil {
		return
	}
	reminds := slices.ContainsFunc(c.route.Remind[min(int(c.reminded), len(c.route.Remind)):], func(d events.Delay) bool { return d.After(c.date) <= e.Date })
	escalates := int(c.step) < len(c.route.Escalate) && c.route.Escalate[c.step].After.After(c.date) <= e.Date
	if reminds || escalates {
		w.sometimes(deadlineWins)
	}
}

// checkCopy checks that a copy of a form has the amendments and reminders of its home. It does so when the world is at
// rest.
func (w *world) checkCopy(b *mailboxActor, copied, home *mailbox.Form) {
	if copied.Revision() != home.Revision() && !w.facts.amendmentRefused[home.ID] {
		w.failf("%s has revision %d of form %s, and its home %d", b.name, copied.Revision(), home.ID.ULID, home.Revision())
	}
	w.checkVotes(b, copied, home)
	notified := w.mailbox(home.From).shadow.copies[home.ID].notified
	if home.Reminded() != nil && slices.Contains(notified, b.id) && (copied.Reminded() == nil || copied.Reminded().N != home.Reminded().N) {
		w.failf("%s has not the last reminder of form %s", b.name, home.ID.ULID)
	}
}
