package sim

import (
	"slices"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// settles checks the end of a form in a mailbox.
func (b *mailboxActor) settles(form capabilities.ID, text string) {
	w, f := b.node.world, &b.node.world.facts
	c := b.shadow.copies[form]
	if c == nil || !c.open {
		w.failf("%s: form %s ends in the log and was not open", b.name, form.ULID)
	}
	c.open = false
	if !c.gone && c.from != b {
		b.frees(c)
	}
	if c.from != b {
		w.checkOutcome(b, form, text)
		return
	}
	b.shadow.own--
	if was := f.settled[form]; was != nil {
		w.failf("form %s was %s, and then %s", form.ULID, was.text, text)
	}
	f.settled[form] = &settlement{text}
}

// checkOutcome checks that a form has ended in its home's log as somebody sees it.
func (w *world) checkOutcome(b *mailboxActor, form capabilities.ID, text string) {
	if was := w.facts.settled[form]; was == nil || was.text != text {
		w.failf("%s sees form %s as %s, and its home has %v", b.name, form.ULID, text, was)
	}
}

// noteSettlement notes two takers of a form.
func (w *world) noteSettlement(b *mailboxActor, c mailbox.Command, err error) {
	var s mailbox.SettleForm
	switch c := c.(type) {
	case mailbox.SettleForm:
		s = c
	case mailbox.RemoteAnswer:
		s = c.SettleForm
		if m, found := b.find(s.Form); isFinal(err) && found == nil && m.Form.EndedBy(s.Answer) {
			w.failf("%s refuses the answer that settled form %s: %v", b.name, s.Form.ULID, err)
		}
	case mailbox.RemoteForward:
		if !isFinal(err) {
			return
		}
		w.sometimes(forwardRefused)
		m, found := b.find(c.Form)
		if found == nil && slices.ContainsFunc(m.Form.Forwarded(), func(h events.FormForwarded) bool { return h.Via == c.Via }) {
			w.failf("%s refuses a forward of form %s that it has recorded: %v", b.name, c.Form.ULID, err)
		}
		return
	case mailbox.RemoteDelivery:
		if parley.CodeOf(err) == parley.QuotaExceeded {
			w.sometimes(peerQuotaMet)
		}
		w.noteRefusal(b, c.AcceptDelivery, err)
		return
	case mailbox.AcceptDelivery:
		w.noteRefusal(b, c, err)
		return
	case mailbox.RecordAmendment:
		w.noteAmendment(b, c, err)
		return
	case mailbox.RemoteAmendment:
		w.noteAmendment(b, c.RecordAmendment, err)
		return
	default:
		return
	}
	m, found := b.find(s.Form)
	if parley.CodeOf(err) == parley.Amended {
		w.sometimes(answerAmended)
	}
	if err == nil || found != nil || m.Form.IsOpen() {
		return
	}
	if a := m.Form.Answered; a != nil && a.By != s.By {
		w.sometimes(twoTakers)
	}
	if e := m.Form.Ended; e != nil && e.Reason == events.Expired {
		w.sometimes(answerAfterDeadline)
	}
	if e := m.Form.Ended; e != nil && e.Reason == events.Cancelled {
		w.sometimes(answerAfterCancel)
	}
}

// checkHolders checks that all holders of the mailbox's forms see the outcome that it has.
func (b *mailboxActor) checkHolders() {
	w := b.node.world
	for _, id := range b.forms {
		c := b.shadow.copies[id]
		if c == nil || c.from != b {
			continue
		}
		m, err := b.find(id)
		if err != nil {
			w.failf("%s: %v", b.name, err)
		}
		for _, h := range c.holders {
			if !slices.Contains(m.Form.Holders, h) {
				w.failf("%s may not answer form %s any more", w.mailbox(h).name, id.ULID)
			}
		}
		for _, h := range m.Form.Holders {
			holder := w.mailbox(h)
			copied, err := holder.find(id)
			if err != nil {
				continue // it was refused
			}
			if outcomeOf(copied.Form) != outcomeOf(m.Form) {
				w.failf("form %s is %q for %s, and %q for its home", id.ULID, outcomeOf(copied.Form), holder.name, outcomeOf(m.Form))
			}
			if copied.Form.Queued().Answer != nil || len(copied.Form.Queued().Forwards) > 0 {
				w.failf("%s has something queued for form %s", holder.name, id.ULID)
			}
			w.checkCopy(holder, copied.Form, m.Form)
		}
	}
}
