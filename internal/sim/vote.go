package sim

import (
	"slices"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/form"
)

// voteFields are those of a form that needs several answers, none of which gives a capability.
var voteFields = []events.Field{{Name: "f"}}

// ballot is a vote of an agent on a revision of a form.
type ballot struct {
	form     capabilities.ID
	by       capabilities.ID
	revision uint64
	outcome  events.VoteOutcome
}

// severalNeeded has a form need two answers.
func (w *world) severalNeeded(c *mailbox.RequestForm, d *draw) {
	c.Need, c.Veto, c.Fields, c.Schema = 2, new(!d.oneIn(2)), voteFields, w.votes
}

// raceVotes has all agents answer an open form that needs several answers. It reports false if there is none.
func (w *world) raceVotes(d *draw) bool {
	for _, form := range slices.Backward(w.facts.shared) {
		if w.facts.settled[form] == nil && w.needsVotes(form) && d.oneIn(2) {
			w.race(form, d)
			return true
		}
	}
	return false
}

// elect has an agent ask a form that needs two answers. Its host forwards it to another node, and the hosts of both vote.
func (w *world) elect(n *node, d *draw) {
	to := w.neighbour(n, d)
	host, agent := n.mailboxes[0], n.mailboxes[1]
	if n.down || to.down {
		return
	}
	c := mailbox.RequestForm{Form: parley.Form{To: "HOST", Description: "d1"}}
	w.severalNeeded(&c, d)
	w.run(agent, c)
	for range 3 {
		w.exchange(n, to)
	}
	form, ok := w.form(host, d, true)
	if !ok {
		return
	}
	w.forward(host, form, to.name)
	for range 3 + d.n(6) {
		w.exchange(n, to)
	}
	w.race(form, d)
}

// needsVotes reports whether a form needs several answers.
func (w *world) needsVotes(form capabilities.ID) bool {
	return slices.ContainsFunc(w.all, func(b *mailboxActor) bool {
		c := b.shadow.copies[form]
		return c != nil && c.from == b && c.needs() > 1
	})
}

// needs returns the number of principals that have to answer a form.
func (f *formFacts) needs() int {
	if f.route == nil {
		return 1
	}
	return max(1, int(f.route.Need))
}

// schemaOf returns the compiled schema of the fields of a form.
func (w *world) schemaOf(fields []events.Field) *form.Schema {
	if len(fields) == len(voteFields) {
		return w.votes
	}
	return w.schema
}

// principal returns the one whose vote an answer to the mailbox's form is: the host of its agent, or another node.
func (b *mailboxActor) principal(by capabilities.ID) capabilities.ID {
	if by.Node != b.id.Node {
		return capabilities.ID{Node: by.Node}
	}
	return b.node.mailboxes[0].id
}

// alike returns the number of votes for an answer.
func (f *formFacts) alike() (n int) {
	for _, v := range f.votes {
		if v.Outcome == events.VoteAnswered {
			n++
		}
	}
	return n
}

// voted checks a vote in a log. At home it is one of a principal on the present question, and does not settle the form.
// Those in a copy are the home's.
func (b *mailboxActor) voted(e *events.VoteCast) {
	w, c := b.node.world, b.shadow.copies[e.Form]
	if c == nil || !c.open {
		w.failf("%s: a vote on form %s, which was not open", b.name, e.Form.ULID)
	}
	if c.votes == nil {
		c.votes = map[capabilities.ID]events.VoteCast{}
	}
	c.votes[e.Principal] = *e
	key := ballot{e.Form, e.By, e.Revision, e.Outcome}
	switch {
	case c.from != b && !w.facts.ballots[key]:
		w.failf("%s has a vote of %s on form %s that its home has not", b.name, w.mailbox(e.By).name, e.Form.ULID)
	case c.from != b:
		return
	case e.Revision != c.revision || e.By == b.id || e.Principal != b.principal(e.By):
		w.failf("%s: the vote %+v counts at revision %d", b.name, e, c.revision)
	case c.alike() >= c.needs() || e.Outcome == events.VoteDeclined && !c.route.NoVeto:
		w.failf("%s: the vote %+v is no settlement, with %v", b.name, e, c.votes)
	}
	w.facts.ballots[key] = true
	w.sometimes(voteCast)
}

// withdrawn checks that a vote was there that is withdrawn in a log.
func (b *mailboxActor) withdrawn(e *events.VoteWithdrawn) {
	c := b.shadow.copies[e.Form]
	for p, v := range c.votes {
		if v.By == e.By {
			delete(c.votes, p)
			b.node.world.sometimes(voteWithdrawn)
			return
		}
	}
	b.node.world.failf("%s: a vote of %s on form %s is withdrawn, and was not there", b.name, b.node.world.mailbox(e.By).name, e.Form.ULID)
}

// voided drops the votes on earlier questions.
func (f *formFacts) voided(revision uint64) {
	for p, v := range f.votes {
		if v.Revision < revision {
			delete(f.votes, p)
		}
	}
}

// elected checks that a form that needs several answers is answered in its home's log by as many principals.
func (b *mailboxActor) elected(form, by capabilities.ID) {
	c := b.shadow.copies[form]
	if c.from != b || c.needs() == 1 {
		return
	}
	delete(c.votes, b.principal(by))
	if n := c.alike() + 1; n != c.needs() || by == b.id {
		b.node.world.failf("form %s is answered by %d principals, and needs %d", form.ULID, n, c.needs())
	}
	b.node.world.sometimes(votesSettle)
}

// wasCast reports whether the home of a form has counted a vote of an agent.
func (w *world) wasCast(form, by capabilities.ID) bool {
	for key := range w.facts.ballots {
		if key.form == form && key.by == by {
			return true
		}
	}
	return false
}

// withdrawAny takes a vote of a mailbox back, if it has cast one.
func (w *world) withdrawAny(b *mailboxActor) {
	for _, form := range b.forms {
		c := b.shadow.copies[form]
		if c == nil || !c.open || c.from == b {
			continue
		}
		for _, v := range c.votes {
			if v.By == b.id {
				w.withdraw(b, form)
				return
			}
		}
	}
}

// withdraw takes the vote of a mailbox back, at once or not at all.
func (w *world) withdraw(b *mailboxActor, form capabilities.ID) {
	var (
		c    mailbox.WithdrawVote
		home *mailboxActor
	)
	o := w.begin(b, "withdraw from "+form.ULID.String())
	o.step(b, func(b *mailboxActor) error {
		_, err := recalled(b, b.state, func() (struct{}, error) {
			var (
				id  capabilities.ID
				err error
			)
			if c, id, err = b.state.DraftWithdrawal(capabilities.FormID(form)); err == nil {
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
		o.queue(b, mailbox.SettleForm{Form: c.Form, By: c.By, Reason: events.Withdrawn, Answer: c.Answer})
	})
}

// checkVotes checks that a copy of a form has the votes of its home, when the world is at rest.
func (w *world) checkVotes(b *mailboxActor, copied, home *mailbox.Form) {
	by := func(f *mailbox.Form) (all []string) {
		for _, v := range f.Votes().Standing {
			all = append(all, v.By.String()+string(v.Outcome))
		}
		slices.Sort(all)
		return all
	}
	if copied.Revision() == home.Revision() && !slices.Equal(by(copied), by(home)) {
		w.failf("%s has the votes %v on form %s, and its home %v", b.name, by(copied), home.ID.ULID, by(home))
	}
}
