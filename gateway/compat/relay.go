package compat

import (
	"cmp"
	"context"
	"hash/maphash"
	"maps"
	"slices"
	"sync"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
	"parley/internal/fair"
)

const maxRuns = 1024 // that one session watches

// Session is the connection of a client that speaks dialects. Operations are those of its agent.
type Session interface {
	api.Client
	// Agent returns the agent that the client acts for.
	Agent() api.Agent
	// Context returns the context of the client's calls. It does not end when the client goes away: a call may have taken
	// effect.
	Context() context.Context
	// Check refuses with UNAUTHENTICATED a client whose token has ended.
	Check() error
	// Tell sends a frame to the client.
	Tell(frame any)
}

// Options configure a Relay.
type Options struct {
	Asks    bool // the client's token permits asking
	Answers bool // and for answering
	Locks   *Locks
	Monitor api.Monitor
}

// Relay sends forms of dialects to the client of one session: those that wait for its agent's answer, and the outcomes of
// those that its agent asked. It stores only which frames it has sent. All else is in the mailbox.
type Relay struct {
	session  Session
	agent    api.Agent
	ctx      context.Context // of the client's calls
	locks    *Locks
	monitor  api.Monitor
	dialects map[string]dialect
	asks     bool
	answers  bool
	follower *api.Follower // nil before the first Next

	mu    sync.Mutex
	await map[capabilities.ID]string      // the forms whose end the client waits for, and what it calls them
	posed map[capabilities.ID]dialectForm // the forms that wait for the agent's answer
	runs  map[string]bool                 // the runs that the client watches
	given map[capabilities.ID]bool        // the inputs that it was given
}

// NewRelay returns the relay of a session.
func NewRelay(s Session, o Options) *Relay {
	return &Relay{
		session: s, agent: s.Agent(), ctx: s.Context(), locks: o.Locks, monitor: o.Monitor, dialects: dialects(),
		asks: o.Asks, answers: o.Answers,
		await: map[capabilities.ID]string{}, posed: map[capabilities.ID]dialectForm{},
		runs: map[string]bool{}, given: map[capabilities.ID]bool{},
	}
}

// Next sends what has changed in the agent's mail since the last call; in the first, what waits in it. It does not wait for changes,
// and one caller at a time may call it.
func (r *Relay) Next(ctx context.Context) error {
	if !r.asks && !r.answers {
		return nil
	}
	if r.follower == nil {
		at, err := r.first(ctx)
		if err != nil {
			return err
		}
		r.follower = api.NewFollower(r.agent.Mail(), view.MessageFilter{All: true, Forms: true}, at)
	}
	for {
		b, err := r.follower.Next(ctx)
		if err != nil || len(b.Messages) == 0 {
			return err
		}
		r.seeAll(b.Messages)
	}
}

// firstAtOnce is how many open forms are read at once.
const firstAtOnce = 500

// first sends what concerns a client that has just come: the open forms, and the inputs that were given and not acknowledged. Other
// messages are not read: a mailbox may have a hundred thousand, and a thousand clients may come at once. It returns the position from
// which the mail is to be followed.
func (r *Relay) first(ctx context.Context) (at api.Position, err error) {
	mail := r.agent.Mail()
	ctx = fair.Later(ctx)
	for number, begun := uint64(0), false; !begun || number != 0; begun = true {
		in, err := mail.Page(ctx, view.MessageFilter{All: true, Open: true}, number, firstAtOnce)
		if err != nil {
			return at, err
		}
		if !begun { // what changes later than the first page is after its cursor
			at = api.At(in.Cursor)
		}
		r.seeAll(in.Messages)
		number = in.Next
	}
	if !r.asks {
		return at, nil
	}
	in, err := mail.FormsOf(ctx, events.Origin{Dialect: runDialect})
	if err != nil {
		return at, err
	}
	r.seeAll(in.Messages)
	return at, r.seeAwaited(ctx)
}

// seeAwaited looks at the forms whose end the client waits for since before the position. They may have ended before it too.
func (r *Relay) seeAwaited(ctx context.Context) error {
	r.mu.Lock()
	awaited := slices.Collect(maps.Keys(r.await))
	r.mu.Unlock()
	for _, id := range awaited {
		m, err := r.agent.Message(ctx, capabilities.FormID(id))
		if err != nil {
			return err
		}
		r.seeAll([]view.Message{m})
	}
	return nil
}

func (r *Relay) seeAll(messages []view.Message) {
	for _, m := range messages {
		if f, ok := dialectOf(m); ok {
			r.see(f)
		}
	}
}

// see sends the client a form that has arrived or ended.
func (r *Relay) see(f dialectForm) {
	defer func() {
		if p := recover(); p != nil {
			_ = r.monitor.Panicked(f.Asked.Dialect, p) // no caller waits for the error
		}
	}()
	speaks, ok := r.dialects[f.Asked.Dialect]
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if f.Received && r.answers {
		r.received(speaks, f)
	}
	if f.Sent && r.asks && f.Outcome != nil {
		r.ended(speaks, f)
	}
}

func (r *Relay) received(speaks dialect, f dialectForm) {
	before, told := r.posed[f.MessageID]
	switch {
	case f.AnswerNeeded && !f.Dismissed && !told:
		if f.Asked.Dialect == approvalDialect {
			f.Asked.ID = r.nameOf(f.Message)
		}
		r.posed[f.MessageID] = f
		if f.Asked.Dialect != runDialect || r.runs[f.Asked.Run] {
			r.tell(speaks.posed(f.Asked, f.Message))
		}
	case f.Outcome != nil && told:
		delete(r.posed, f.MessageID)
		r.tell(speaks.settled(before.Asked, f.Message, *f.Outcome))
	}
}

// ended sends the outcome of a form that the agent asked, if the client waits for it. It repeats an input until the
// client acknowledges it.
func (r *Relay) ended(speaks dialect, f dialectForm) {
	id, waits := r.await[f.MessageID]
	delete(r.await, f.MessageID)
	if waits {
		f.Asked.ID = id
	}
	if f.Asked.Dialect == runDialect && f.Outcome.Status == view.StatusAnswered {
		waits = !f.Dismissed && !r.given[f.MessageID]
		r.given[f.MessageID] = true
	}
	if waits {
		r.tell(speaks.outcome(f.Asked, f.MessageID.String(), *f.Outcome))
	}
}

func (r *Relay) tell(frame any) {
	if frame != nil && r.session.Check() == nil {
		r.session.Tell(frame)
	}
}

// ask asks a form of a dialect of the agent's host, or resumes one that was asked before. The client gets the outcome.
func (r *Relay) ask(o events.Origin, ask parley.Form) error {
	ask.To, ask.Key, ask.Origin = capabilities.NameHost, keyOf(o), &o
	r.mu.Lock() // or see could get the outcome before expect
	defer r.mu.Unlock()
	asked, err := api.Form.Do(r.ctx, r.session, api.FormRequest{Form: ask})
	if err != nil {
		return err
	}
	r.expect(o, asked)
	return nil
}

// approve asks the host to approve a call. A standing rule may decide it at once.
func (r *Relay) approve(o events.Origin, asks ApprovalPayload) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, err := api.Approve.Do(r.ctx, r.session, api.ApproveRequest{Approval: parley.Approval{
		Tool:   asks.Tool,
		Input:  asks.Input,
		Folder: asks.Folder,
		Reason: asks.Reason,
		Part:   asks.Part,
		Key:    keyOf(o),
		Origin: &o,
	}})
	switch {
	case err != nil:
		return err
	case p.Decided:
		r.tell(ruled(o, p))
	default:
		r.expect(o, p.Asked)
	}
	return nil
}

// answer answers a form.
func (r *Relay) answer(form capabilities.ID, values map[string]capabilities.Value) error {
	return api.RespondForm.Run(r.ctx, r.session, api.RespondFormRequest{FormRef: refTo(form), Answer: parley.Answer{Values: values}})
}

// cancel cancels a form that the agent asked, unless it has ended.
func (r *Relay) cancel(form capabilities.ID, reason string) error {
	err := api.CancelForm.Run(r.ctx, r.session, api.EndRequest{FormRef: refTo(form), Reason: reason})
	if isSettled(err) {
		return nil
	}
	return err
}

// dismiss puts a form out of view.
func (r *Relay) dismiss(form capabilities.ID) error {
	return api.Dismiss.Run(r.ctx, r.session, api.MessageRequest{FormRef: refTo(form)})
}

func refTo(form capabilities.ID) api.FormRef { return api.RefTo(form.String()) }

// expect records that the client waits for the outcome of a form. If there is one, it sends the outcome at once.
func (r *Relay) expect(m events.Origin, asked view.Asked) {
	if asked.Outcome == nil {
		r.await[asked.Form] = m.ID
		return
	}
	if m.Dialect == runDialect {
		if r.given[asked.Form] {
			return
		}
		r.given[asked.Form] = true
	}
	r.tell(r.dialects[m.Dialect].outcome(m, asked.Form.String(), *asked.Outcome))
}

// watchRun sends the client the inputs that a run waits for, beginning with the present ones.
func (r *Relay) watchRun(run string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.runs[run] {
		return nil
	}
	if len(r.runs) >= maxRuns {
		return parley.Refuse(parley.QuotaExceeded, "the connection watches %d runs already", maxRuns).
			WithHint("leave some first, or open another connection")
	}
	r.runs[run] = true
	var waits []dialectForm
	for _, f := range r.posed {
		if f.Asked.Run == run {
			waits = append(waits, f)
		}
	}
	slices.SortFunc(waits, func(a, b dialectForm) int { return cmp.Compare(a.Number, b.Number) })
	for _, f := range waits {
		r.tell(r.dialects[f.Asked.Dialect].posed(f.Asked, f.Message))
	}
	return nil
}

// LeaveRun stops watching a run.
func (r *Relay) LeaveRun(run string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.runs, run)
}

// Locks holds a mutex for each key. It serializes what one agent does in several sessions of a node. Different keys rarely
// share a mutex.
type Locks struct {
	seed  maphash.Seed
	locks [64]sync.Mutex
}

// NewLocks returns the locks of a node.
func NewLocks() *Locks { return &Locks{seed: maphash.MakeSeed()} }

// lock locks a key and returns a function that unlocks it.
func (l *Locks) lock(key string) (unlock func()) {
	m := &l.locks[maphash.String(l.seed, key)%uint64(len(l.locks))]
	m.Lock()
	return m.Unlock
}
