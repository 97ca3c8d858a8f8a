package gateway

import (
	"cmp"
	"slices"
	"sync"

	"github.com/coder/websocket"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/api"
)

const maxRuns = 1024 // that one session watches

// desk is where the forms of dialects are brought to one session's client: those that wait for its agent's
// answer, and how those ended that its agent asked. It knows nothing that is not in the mailbox, but what the
// client was told.
type formRelay struct {
	c       *wsSession
	asks    bool // the client may ask
	answers bool // and answer

	mu    sync.Mutex
	await map[capabilities.ID]string     // the forms whose end the client waits for, and what it calls them
	posed map[capabilities.ID]markedForm // what waits for the agent's answer
	runs  map[string]bool                // the runs that the client watches
	given map[capabilities.ID]bool       // the inputs that it was given
}

// open makes the desk ready.
func (d *formRelay) open(c *wsSession) {
	d.c = c
	may := func(s api.Scope) bool { return c.principal.may(api.Operation{Scope: s}) == nil }
	d.asks, d.answers = may(api.ScopeRead) && may(api.ScopeAsk), may(api.ScopeRead) && may(api.ScopeAnswer)
	d.await, d.posed = map[capabilities.ID]string{}, map[capabilities.ID]markedForm{}
	d.runs, d.given = map[string]bool{}, map[capabilities.ID]bool{}
}

// follow reads the agent's mail, from the first message on, until the session ends.
func (d *formRelay) follow() {
	if !d.asks && !d.answers {
		return
	}
	all := subscription{local: local{agent: d.c.principal.agent}, filter: view.MessageFilter{All: true}}
	err := d.c.server.follow(d.c.ctx, all, func(b batch) error {
		for _, e := range b.messages {
			if m, ok := markOf(e); ok {
				d.see(markedForm{m, e})
			}
		}
		return nil
	})
	if err != nil && d.c.ctx.Err() == nil {
		d.c.note("follow", err)
		d.c.end(websocket.StatusTryAgainLater, "the mailbox cannot be read now")
	}
}

// see tells the client of a form that has come or ended.
func (d *formRelay) see(f markedForm) {
	defer d.c.survive(f.Dialect, new(error))
	speaks, ok := d.c.server.dialects[f.Dialect]
	if !ok {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if f.Received && d.answers {
		d.received(speaks, f)
	}
	if f.Sent && d.asks && f.Outcome != nil {
		d.ended(speaks, f)
	}
}

func (d *formRelay) received(speaks dialect, f markedForm) {
	before, told := d.posed[f.MessageID]
	switch {
	case f.AnswerNeeded && !f.Dismissed && !told:
		if f.Dialect == approvalDialect {
			f.mark.ID = d.c.nameOf(f.Message)
		}
		d.posed[f.MessageID] = f
		if f.Dialect != runDialect || d.runs[f.Run] {
			d.tell(speaks.posed(f.mark, f.Message))
		}
	case f.Outcome != nil && told:
		delete(d.posed, f.MessageID)
		d.tell(speaks.settled(before.mark, f.Message, *f.Outcome))
	}
}

// ended tells of the end of a form that the agent asked: to who waits for it, and an input until it was received.
func (d *formRelay) ended(speaks dialect, f markedForm) {
	id, waits := d.await[f.MessageID]
	delete(d.await, f.MessageID)
	if waits {
		f.mark.ID = id
	}
	if f.Dialect == runDialect && f.Outcome.Status == view.StatusAnswered {
		waits = !f.Dismissed && !d.given[f.MessageID]
		d.given[f.MessageID] = true
	}
	if waits {
		d.tell(speaks.outcome(f.mark, f.MessageID.String(), *f.Outcome))
	}
}

func (d *formRelay) tell(frame any) {
	if frame != nil && d.c.check(d.c.acts) == nil {
		d.c.tell(frame)
	}
}

// ask asks a form of a dialect of the agent's host, or takes up again one that was asked before, and has the client
// told how it ends.
func (d *formRelay) ask(m mark, ask actors.Ask) error {
	var err error
	if ask.Fields, err = m.on(ask.Fields); err != nil {
		return err
	}
	ask.To, ask.Key = capabilities.NameHost, m.key()
	d.mu.Lock() // so that its end is not seen before it is known to be waited for
	defer d.mu.Unlock()
	asked, err := d.c.principal.agent.Ask(d.c.acts, ask)
	if err != nil {
		return err
	}
	d.asked(m, asked)
	return nil
}

// approve is ask for a call to be approved. A standing rule may decide that at once.
func (d *formRelay) approve(m mark) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, err := d.c.principal.agent.Approve(d.c.acts, actors.Approval{Tool: m.Tool, Input: m.Input, Key: m.key()})
	switch {
	case err != nil:
		return err
	case p.Decided:
		d.tell(ruled(m, p))
	default:
		d.asked(m, p.Asked)
	}
	return nil
}

// asked has the client told how what it asked ends, at once if it has.
func (d *formRelay) asked(m mark, asked view.Asked) {
	if asked.Outcome == nil {
		d.await[asked.Form] = m.ID
		return
	}
	if m.Dialect == runDialect {
		if d.given[asked.Form] {
			return
		}
		d.given[asked.Form] = true
	}
	d.tell(d.c.server.dialects[m.Dialect].outcome(m, asked.Form.String(), *asked.Outcome))
}

// watchRun has the client told of the inputs that a run waits for, beginning with those that wait now.
func (d *formRelay) watchRun(run string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.runs[run] {
		return nil
	}
	if len(d.runs) >= maxRuns {
		return parley.Refuse(parley.QuotaExceeded, "the connection watches %d runs already", maxRuns).
			WithHint("leave some first, or open another connection")
	}
	d.runs[run] = true
	var waits []markedForm
	for _, f := range d.posed {
		if f.Run == run {
			waits = append(waits, f)
		}
	}
	slices.SortFunc(waits, func(a, b markedForm) int { return cmp.Compare(a.Number, b.Number) })
	for _, f := range waits {
		d.tell(d.c.server.dialects[f.Dialect].posed(f.mark, f.Message))
	}
	return nil
}

func (d *formRelay) leaveRun(run string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.runs, run)
}
