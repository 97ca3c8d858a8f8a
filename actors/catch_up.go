package actors

import "parley/capabilities"

// catchUp tells those who wait what the log shows once the state was made from it again. A commit that was in doubt may
// be there after all, and what crashed the mailbox may have kept it from telling anybody.
func (b *mailboxActor) catchUp() {
	for _, form := range b.node.waiters.awaited(b.reg.id) {
		if m, err := b.state.FindFormID(form); err == nil && !m.Form.IsOpen() {
			b.notifyWaiters(form)
		}
	}
	if b.node.waiters.watched(b.reg.id) {
		b.release(func(error) { b.node.waiters.changed(b.reg.id) })
	}
	b.publishStatus(0)
}

// awaited gives the forms whose ends are waited for in a mailbox.
func (w *waiters) awaited(mailbox capabilities.ID) (forms []capabilities.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for p := range w.settling {
		if p.mailbox == mailbox {
			forms = append(forms, p.form)
		}
	}
	return forms
}

// revisit has every mailbox that is in memory look at the log again if it has to.
func (r *registry) recheckAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, s := range r.registrations {
		r.send(s, visit{
			run:  func(*mailboxActor) {}, // each visit begins with that
			lost: func(err error) { r.node.resumeLater(id, err) },
		})
	}
}
