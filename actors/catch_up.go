package actors

// catchUp notifies waiters of what the log shows, when the state was made from it again. A commit that was in doubt may
// have been stored, and a crash may have kept the actor from notifying anybody.
func (b *mailboxActor) catchUp() {
	for _, key := range b.node.ended.keys(func(k formKey) bool { return k.mailbox == b.reg.id }) {
		if m, err := b.state.FindFormID(key.form); err == nil && !m.Form.IsOpen() {
			b.notifyWaiters(key.form)
		}
	}
	if b.node.changed.has(b.reg.id) {
		b.release(func(error) { b.node.changed.notify(b.reg.id, none{}) })
	}
	b.publishStatus(0)
}

// recheckAll has every mailbox in memory compare its state with the log.
func (r *registry) recheckAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, s := range r.registrations {
		r.send(s, delivery{message: resume{r.node, id}})
	}
}
