package gateway

import (
	"cmp"
	"encoding/json"
	"slices"
	"sync"

	"github.com/coder/websocket"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
)

const maxRuns = 1024 // that one session watches

// formRelay tells the client of one session of the forms of dialects: those that wait for its agent's answer, and the
// outcomes of those that its agent asked. All that it knows beside the mailbox is what the client was told.
type formRelay struct {
	c       *wsSession
	asks    bool // the client may ask
	answers bool // and answer

	mu    sync.Mutex
	await map[capabilities.ID]string      // the forms whose end the client waits for, and what it calls them
	posed map[capabilities.ID]dialectForm // what waits for the agent's answer
	runs  map[string]bool                 // the runs that the client watches
	given map[capabilities.ID]bool        // the inputs that it was given
}

// open initializes the relay.
func (d *formRelay) open(c *wsSession) {
	d.c = c
	may := func(s api.Scope) bool { return c.principal.May(api.Operation{Scope: s}) == nil }
	d.asks, d.answers = may(api.ScopeRead) && may(api.ScopeAsk), may(api.ScopeRead) && may(api.ScopeAnswer)
	d.await, d.posed = map[capabilities.ID]string{}, map[capabilities.ID]dialectForm{}
	d.runs, d.given = map[string]bool{}, map[capabilities.ID]bool{}
}

// follow reads the agent's mail, from the first message on, until the session ends.
func (d *formRelay) follow() {
	if !d.asks && !d.answers {
		return
	}
	err := api.Follow(d.c.ctx, d.c.agent.Mail(), view.MessageFilter{All: true}, api.At(0), func(b api.Batch) error {
		for _, e := range b.Messages {
			if f, ok := dialectOf(e); ok {
				d.see(f)
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
func (d *formRelay) see(f dialectForm) {
	defer d.c.survive(f.Asked.Dialect, new(error))
	speaks, ok := d.c.server.dialects[f.Asked.Dialect]
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

func (d *formRelay) received(speaks dialect, f dialectForm) {
	before, told := d.posed[f.MessageID]
	switch {
	case f.AnswerNeeded && !f.Dismissed && !told:
		if f.Asked.Dialect == approvalDialect {
			f.Asked.ID = d.c.nameOf(f.Message)
		}
		d.posed[f.MessageID] = f
		if f.Asked.Dialect != runDialect || d.runs[f.Asked.Run] {
			d.tell(speaks.posed(f.Asked, f.Message))
		}
	case f.Outcome != nil && told:
		delete(d.posed, f.MessageID)
		d.tell(speaks.settled(before.Asked, f.Message, *f.Outcome))
	}
}

// ended tells of the outcome of a form that the agent asked, if the client waits for it. It repeats an input until the
// client acknowledges it.
func (d *formRelay) ended(speaks dialect, f dialectForm) {
	id, waits := d.await[f.MessageID]
	delete(d.await, f.MessageID)
	if waits {
		f.Asked.ID = id
	}
	if f.Asked.Dialect == runDialect && f.Outcome.Status == view.StatusAnswered {
		waits = !f.Dismissed && !d.given[f.MessageID]
		d.given[f.MessageID] = true
	}
	if waits {
		d.tell(speaks.outcome(f.Asked, f.MessageID.String(), *f.Outcome))
	}
}

func (d *formRelay) tell(frame any) {
	if frame != nil && d.c.check(d.c.acts) == nil {
		d.c.tell(frame)
	}
}

// ask asks a form of a dialect of the agent's host, or resumes one that was asked before. The client is told the outcome.
func (d *formRelay) ask(o events.Origin, ask api.FormRequest) error {
	ask.Recipient, ask.Key = capabilities.NameHost, keyOf(o)
	d.mu.Lock() // so that its end is not seen before it is known to be waited for
	defer d.mu.Unlock()
	asked, err := d.c.agent.Ask(d.c.acts, o, ask)
	if err != nil {
		return err
	}
	d.asked(o, asked)
	return nil
}

// approve asks the host to approve a call. A standing rule may decide it at once.
func (d *formRelay) approve(o events.Origin, tool, input string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, err := d.c.agent.Approve(d.c.acts, o, api.ApproveRequest{Tool: tool, Input: json.RawMessage(input), Key: keyOf(o)})
	switch {
	case err != nil:
		return err
	case p.Decided:
		d.tell(ruled(o, p))
	default:
		d.asked(o, p.Asked)
	}
	return nil
}

// asked records that the client waits for the outcome of a form, and tells it at once if there is one.
func (d *formRelay) asked(m events.Origin, asked view.Asked) {
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

// watchRun tells the client of the inputs that a run waits for, beginning with those that wait now.
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
	var waits []dialectForm
	for _, f := range d.posed {
		if f.Asked.Run == run {
			waits = append(waits, f)
		}
	}
	slices.SortFunc(waits, func(a, b dialectForm) int { return cmp.Compare(a.Number, b.Number) })
	for _, f := range waits {
		d.tell(d.c.server.dialects[f.Asked.Dialect].posed(f.Asked, f.Message))
	}
	return nil
}

func (d *formRelay) leaveRun(run string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.runs, run)
}
