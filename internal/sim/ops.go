package sim

import (
	"fmt"
	"slices"
	"strings"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// op is a call of a client, which ends with a result, an error, or the crash of its node.
type op struct {
	mailbox *mailboxActor
	what    string
	ended   bool
}

func (o *op) end(err error) {
	w := o.mailbox.node.world
	if o.ended {
		w.failf("%s of %s ends twice", o.what, o.mailbox.name)
	}
	o.ended = true
	w.trace("%s: %s ends: %v", o.mailbox.name, o.what, err)
	i := slices.Index(w.ops, o)
	if i < 0 {
		w.failf("%s of %s ends after a crash", o.what, o.mailbox.name)
	}
	w.ops = slices.Delete(w.ops, i, i+1)
}

// begin begins a call of a mailbox.
func (w *world) begin(b *mailboxActor, what string) *op {
	o := &op{mailbox: b, what: what}
	w.ops = append(w.ops, o)
	w.progress++
	return o
}

// step has a mailbox run a part of a call. Then gets its result when all that the mailbox has decided is durable.
func (o *op) step(b *mailboxActor, do func(*mailboxActor) error, then func()) {
	w := b.node.world
	b.tell(0, o.what+" of "+o.mailbox.name, func(b *mailboxActor) {
		err := do(b)
		version := b.state.Version
		b.release(func(lost error) {
			switch {
			case lost != nil:
				o.end(lost)
				return
			case b.shadow.version < version:
				w.failf("%s of %s is acknowledged before it is durable", o.what, b.name)
			}
			if err != nil || then == nil {
				o.end(err)
				return
			}
			then()
		})
	}, o.end)
}

// run has a mailbox decide on a command for a client.
func (w *world) run(b *mailboxActor, c mailbox.Command) {
	w.begin(b, nameOf(c)).step(b, func(b *mailboxActor) error {
		_, err := b.decide(c)
		return err
	}, nil)
}

// ask asks a form and may wait for its outcome.
func (w *world) ask(b *mailboxActor, c mailbox.RequestForm, waits bool) {
	var form capabilities.ID
	o := w.begin(b, "ask "+c.To)
	o.step(b, func(b *mailboxActor) error {
		evs, err := b.decide(c)
		for _, e := range evs {
			if asked, ok := e.(*events.FormRequested); ok {
				form = asked.ID
			}
		}
		if parley.CodeOf(err) == parley.QuotaExceeded {
			w.sometimes(quotaMet)
		}
		return err
	}, func() {
		o.end(nil)
		if waits && !form.IsZero() {
			w.await(b, form, &wait{})
		}
	})
}

// answer answers or declines a form.
func (w *world) answer(b *mailboxActor, form capabilities.ID, r mailbox.Reply, decline bool) {
	var (
		c    mailbox.SettleForm
		home *mailboxActor
	)
	o := w.begin(b, "answer "+form.ULID.String())
	o.step(b, func(b *mailboxActor) error {
		_, err := recalled(b, b.state, func() (struct{}, error) {
			var (
				err error
				id  capabilities.ID
			)
			words := b.shown(form, r.Revision)
			if m, err := b.find(form); err == nil && len(m.Form.Fields) == len(voteFields) {
				r.Schema, r.Texts = w.votes, r.Texts[:1]
			}
			if decline {
				c, id, err = b.state.DraftDecline(r.Form, r.Revision, words, b.node.newID)
			} else {
				r.Texts[0].Text = words
				c, id, err = b.state.DraftAnswer(r, b.node.now(), b.node.newID)
			}
			if err == nil {
				home = w.mailbox(id)
			}
			return struct{}{}, err
		})
		return err
	}, func() {
		if home.node != b.node {
			o.queue(b, c)
			return
		}
		o.step(home, func(home *mailboxActor) error {
			_, err := home.decide(c)
			w.noteSettlement(home, c, err)
			return err
		}, func() {
			w.checkWon(b, c)
			o.end(nil)
		})
	})
}

// queue records a settlement in the answerer's log.
func (o *op) queue(b *mailboxActor, c mailbox.SettleForm) {
	o.step(b, func(b *mailboxActor) error {
		_, err := b.decide(mailbox.QueueAnswer{Answer: c})
		return err
	}, nil)
}

// checkWon checks that a mailbox that is told so has settled a form.
func (w *world) checkWon(b *mailboxActor, c mailbox.SettleForm) {
	s := w.facts.settled[c.Form]
	if w.wasCast(c.Form, b.id) {
		return
	}
	if s == nil || !strings.Contains(s.text, "by "+b.id.ULID.String()+" ") {
		w.failf("%s was told that its answer has settled form %s, and the log has %v", b.name, c.Form.ULID, s)
	}
}

// forward forwards a form.
func (w *world) forward(b *mailboxActor, form capabilities.ID, to string) {
	var (
		c    mailbox.ForwardForm
		home *mailboxActor
	)
	ref := capabilities.FormID(form)
	o := w.begin(b, "forward "+form.ULID.String()+" to "+to)
	o.step(b, func(b *mailboxActor) error {
		_, err := recalled(b, b.state, func() (struct{}, error) {
			var (
				id  capabilities.ID
				err error
			)
			c, id, err = b.state.DraftForward(ref, to, b.node.now())
			if err == nil {
				home = w.mailbox(id)
			}
			return struct{}{}, err
		})
		return err
	}, func() {
		if home.node == b.node {
			o.step(home, func(home *mailboxActor) error {
				_, err := home.decide(c)
				return err
			}, nil)
			return
		}
		o.step(b, func(b *mailboxActor) error {
			_, err := b.decide(mailbox.QueueForward{Form: ref, To: to})
			return err
		}, nil)
	})
}

// revoke revokes a grant that the mailbox gave, by its place from the newest.
func (w *world) revoke(b *mailboxActor, nth int) {
	w.begin(b, "revoke").step(b, func(b *mailboxActor) error {
		all := b.state.Grants.All()
		if len(all) == 0 {
			return nil
		}
		waiting := slices.ContainsFunc(b.state.Outbox.Items(), func(o mailbox.OutboxItem) bool { return o.Kind == events.OutboxForward })
		evs, err := b.decide(mailbox.RevokeCapability{Grant: all[len(all)-1-nth%len(all)].ID})
		if len(evs) > 0 && waiting {
			w.sometimes(revokeMeetsForward)
		}
		return err
	}, nil)
}

// forge has a node send a message that its agent did not. The agent may hold no grant for the mailbox that it is sent
// to. It claims to hold some grant.
func (w *world) forge(b, to *mailboxActor, via capabilities.ID) {
	if to.node == b.node {
		return
	}
	e := &events.MessagePosted{Message: b.node.newID(), From: b.id, To: to.id, Via: via, Text: []events.Span{{Words: "forged"}}, Date: b.node.now()}
	w.facts.forged[e.Message] = true
	d := &direct{item: w.pack(b, mailbox.OutboxItem{Kind: events.OutboxCopy, To: to.id}, mailbox.AcceptDelivery{Posted: e})}
	d.result = func(r result) {
		if r.code == parley.NotPermitted {
			w.sometimes(forgeryRefused)
		}
	}
	p := b.node.peer(to.node)
	p.direct = append(p.direct, d)
}

// wait is a client that waits for the end of a form. It asks again after a crash or a failure of the journal.
type wait struct {
	outcome string // "" until it has one
	refused bool   // there is no such form
}

// await has a client wait for the end of a form.
func (w *world) await(b *mailboxActor, form capabilities.ID, t *wait) {
	w.facts.addWait(t, b, form)
	b.tell(0, "await "+form.ULID.String(), func(b *mailboxActor) {
		m, err := b.find(form)
		switch {
		case err != nil:
			b.release(func(lost error) {
				if lost != nil {
					b.node.later("await again", func() { w.await(b, form, t) })
					return
				}
				t.refused = true
			})
		case !m.Form.IsOpen():
			b.told(form, []*wait{t})
		default:
			if b.waiters == nil {
				b.waiters = map[capabilities.ID][]*wait{}
			}
			b.waiters[form] = append(b.waiters[form], t)
			b.release(func(lost error) {
				i := slices.Index(b.waiters[form], t)
				if lost == nil || i < 0 {
					return
				}
				b.waiters[form] = slices.Delete(b.waiters[form], i, i+1)
				b.node.later("await again", func() { w.await(b, form, t) })
			})
		}
	}, func(error) { b.node.later("await again", func() { w.await(b, form, t) }) })
}

// notify tells the waiters for a form that it has ended.
func (b *mailboxActor) notify(form capabilities.ID) {
	waits := b.waiters[form]
	if len(waits) == 0 {
		return
	}
	delete(b.waiters, form)
	b.told(form, waits)
}

// told tells waiters the outcome of a form that has ended, when that is durable.
func (b *mailboxActor) told(form capabilities.ID, waits []*wait) {
	m, err := b.find(form)
	if err != nil {
		b.node.world.failf("%s: the ended form %s: %v", b.name, form.ULID, err)
	}
	outcome := outcomeOf(m.Form)
	b.release(func(lost error) {
		for _, t := range waits {
			if lost != nil {
				b.node.later("await again", func() { b.node.world.await(b, form, t) })
				continue
			}
			b.node.world.checkOutcome(b, form, outcome)
			t.outcome = outcome
		}
	})
}

// outcomeOf returns the outcome of a form as all its holders see it.
func outcomeOf(f *mailbox.Form) string {
	switch {
	case f.Answered != nil:
		return answeredText(f.Answered)
	case f.Ended != nil:
		return endedText(f.Ended)
	}
	return ""
}

func answeredText(e *events.FormAnswered) string {
	return fmt.Sprintf("answered by %s at %d", e.By.ULID, e.Date)
}

func endedText(e *events.FormCancelled) string {
	return fmt.Sprintf("%s by %s at %d", e.Reason, e.By.ULID, e.Date)
}
