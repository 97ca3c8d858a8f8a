package mailbox

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// The statuses of an agent.
const (
	Initializing = "initializing" // its program is getting ready
	Idle         = "idle"
	Running      = "running"
	Failed       = "error"
	Closed       = "closed" // it is archived
)

// Interrupted is the error of a run that ended because its node did.
const Interrupted = "interrupted"

// maxRetries bounds the runs of one message that are lost with their node. The message itself may be what crashes the
// node.
const maxRetries = 5

// maxInterrupted bounds the messages that are kept of those whose runs were interrupted.
const maxInterrupted = 16

// Run is one run of an agent's program.
type Run struct {
	events.RunStarted
	First uint64 // the number of the first message after it began
	Ruled bool   // whether a standing rule or the policy has decided one of its calls
}

// Runs holds the agent's program, its run, and the messages that wait for one.
type Runs struct {
	program     events.ProgramSet
	run         *Run            // nil if none is under way
	prompt      *Message        // that the run is for; nil if there is none
	ended       uint64          // the version after the end of the last run
	attempt     capabilities.ID // the first run since one succeeded
	prompts     []*Message      // that wait for a run, oldest first
	retries     int             // consecutive runs of the first prompt that were lost
	interrupted []*Message      // the newest whose runs were interrupted, oldest first
	held        bool            // no run is started
}

// Program returns the agent's program. An agent without one has the zero program.
func (r *Runs) Program() events.ProgramSet { return r.program }

// HasProgram reports whether a program runs for messages to the agent.
func (r *Runs) HasProgram() bool { return r.program.Runtime != "" }

// Current returns the run that is under way.
func (r *Runs) Current() (Run, bool) {
	if r.run == nil {
		return Run{}, false
	}
	return *r.run, true
}

// Prompts returns the messages that wait for a run, oldest first.
func (r *Runs) Prompts() []*Message { return slices.Clone(r.prompts) }

// Held reports whether the messages that wait stay queued until somebody starts the agent.
func (r *Runs) Held() bool { return r.held }

// Queued returns the number of messages that wait for a run.
func (r *Runs) Queued() int { return len(r.prompts) }

// IsPrompt reports whether a message waits for a run.
func (r *Runs) IsPrompt(number uint64) bool {
	_, waits := slices.BinarySearchFunc(r.prompts, number, func(m *Message, n uint64) int { return cmp.Compare(m.Number, n) })
	return waits
}

// Interrupted returns the newest messages whose runs were interrupted, oldest first.
func (r *Runs) Interrupted() []*Message { return slices.Clone(r.interrupted) }

// WasInterrupted reports whether a message is one of Interrupted.
func (r *Runs) WasInterrupted(number uint64) bool {
	return slices.ContainsFunc(r.interrupted, func(m *Message) bool { return m.Number == number })
}

// pending returns the number of runs that are under way or to come.
func (r *Runs) pending() int {
	if r.run == nil {
		return r.Queued()
	}
	return r.Queued() + 1
}

// AskKey returns the idempotency key of a form that the program asks under an ID of its own. Consecutive runs that
// fail, up to the next that succeeds, are one attempt. Within an attempt, an ID stands for one form.
func (r *Runs) AskKey(id string) string { return "run:" + r.attempt.ULID.String() + ":" + id }

// enqueue adds a received message to those that wait for a run.
func (r *Runs) enqueue(m *Message) { r.prompts = append(r.prompts, m) }

// requeue puts the message of a lost run before all others that wait.
func (r *Runs) requeue(m *Message) {
	r.prompts = slices.Insert(r.prompts, 0, m)
	r.retries++
}

// drop removes a message from those that wait for a run and from those whose runs were interrupted. It reports whether
// the message was one of them.
func (r *Runs) drop(m *Message) (dropped bool) {
	if len(r.prompts) > 0 && r.prompts[0] == m {
		r.retries = 0
	}
	for _, messages := range []*[]*Message{&r.prompts, &r.interrupted} {
		if i := slices.Index(*messages, m); i >= 0 {
			*messages, dropped = slices.Delete(*messages, i, i+1), true
		}
	}
	return dropped
}

// clear drops all messages, and returns them.
func (r *Runs) clear() []*Message {
	all := slices.Concat(r.prompts, r.interrupted)
	r.prompts, r.interrupted = nil, nil
	return all
}

// holds reports whether a message waits for a run, or is that of one.
func (r *Runs) holds(m *Message) bool {
	return r.prompt == m || r.IsPrompt(m.Number) || r.WasInterrupted(m.Number)
}

// start begins a run at a number of messages. It returns the message that the run is for; nil if that did not wait.
func (r *Runs) start(e *events.RunStarted, first uint64) *Message {
	r.run, r.prompt = &Run{RunStarted: *e, First: first}, nil
	if r.attempt.IsZero() {
		r.attempt = e.Run
	}
	if len(r.prompts) == 0 || r.prompts[0].ID() != e.Prompt {
		return nil
	}
	r.prompt = r.prompts[0]
	r.prompts = r.prompts[1:]
	return r.prompt
}

// succeeded ends the attempt.
func (r *Runs) succeeded() { r.retries, r.attempt = 0, capabilities.ID{} }

// noteInterrupted adds a message to those whose runs were interrupted, and returns those that are dropped for it.
func (r *Runs) noteInterrupted(m *Message) (dropped []*Message) {
	r.interrupted = append(r.interrupted, m)
	most := max(0, len(r.interrupted)-maxInterrupted)
	dropped, r.interrupted = r.interrupted[:most], r.interrupted[most:]
	return dropped
}

// decidedCall notes that a call of the run under way was decided without a question.
func (r *Runs) decidedCall() {
	if r.run != nil {
		r.run.Ruled = true
	}
}

// StartRun starts the run for the message that has waited longest. It has no effect while a run is under way. Without a
// waiting message it has none either, unless Unprompted is set.
type StartRun struct{ Unprompted bool }

func (c StartRun) decide(s *State, _ capabilities.Time, ids IDs) ([]events.Event, error) {
	if err := s.Profile.checkActive(); err != nil {
		return nil, err
	}
	if !s.Runs.HasProgram() || s.Runs.run != nil || s.Runs.held {
		return nil, nil
	}
	e := &events.RunStarted{}
	if len(s.Runs.prompts) > 0 {
		e.Prompt = s.Runs.prompts[0].ID()
	} else if !c.Unprompted {
		return nil, nil
	}
	e.Run = ids()
	return []events.Event{e}, nil
}

const (
	maxRunError  = 4 << 10
	maxRunOutput = 8 << 10
)

// EndRun records the end of a run. A run that has ended already is ignored. A run that was Interrupted without any
// effect is lost: its message gets another run.
type EndRun struct {
	Run    capabilities.ID
	Error  string // "" for success
	Output string // the tail of the program's output
	Silent bool   // the program had no output
}

func (c EndRun) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	if s.Runs.run == nil || s.Runs.run.Run != c.Run {
		return nil, nil
	}
	again := false
	if c.Silent && c.Error == Interrupted {
		var err error
		if again, err = mayRunAgain(s); err != nil {
			return nil, err
		}
	}
	output := c.Output
	if len(output) > maxRunOutput {
		output = output[len(output)-maxRunOutput:]
	}
	return []events.Event{&events.RunEnded{
		Run: c.Run, Error: parley.Shown(c.Error, maxRunError), Output: strings.ToValidUTF8(output, "�"),
		Again: again,
	}}, nil
}

// mayRunAgain reports whether the message of the run under way may get another run: this one had no effect that the
// mailbox knows of. It fails with PagedOut.
func mayRunAgain(s *State) (bool, error) {
	run := s.Runs.run
	prompt := s.Runs.prompt
	if prompt == nil || run.Ruled || prompt.Dismissed || s.Runs.retries+1 >= maxRetries {
		return false, nil
	}
	for first := run.First; ; {
		some, err := s.Mail.Index.List(first)
		if err != nil || len(some) == 0 {
			return err == nil, err
		}
		if slices.ContainsFunc(some, func(m Listed) bool { return m.Sent }) {
			return false, nil
		}
		first += uint64(len(some))
	}
}

// InterruptRun ends the run that is under way, on behalf of the agent By. It cancels the forms that the agent asked
// since the run began. It also cancels those in Also, which the run took over from an earlier one.
type InterruptRun struct {
	By   capabilities.ID
	Note string
	Also []capabilities.ID
}

func (c InterruptRun) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	if s.Runs.run == nil {
		return nil, nil
	}
	evs := []events.Event{&events.RunEnded{Run: s.Runs.run.Run, By: c.By}}
	return append(evs, s.Mail.cancelOpen(s.Runs.run.First, c.Also, c.Note, now)...), nil
}

// HoldRuns has the agent's program be started for no message until it is let go again, on behalf of the agent By. With Held it
// ends the run that is under way, as InterruptRun does.
type HoldRuns struct {
	InterruptRun
	Held bool
}

func (c HoldRuns) decide(s *State, now capabilities.Time, ids IDs) (evs []events.Event, err error) {
	if err := s.Profile.checkActive(); err != nil {
		return nil, err
	}
	if !s.Runs.HasProgram() {
		return nil, parley.Refuse(parley.InvalidArgument, "the agent has no program that the node starts").
			WithHint("a coding agent is stopped where it runs")
	}
	if c.Held != s.Runs.held {
		evs = append(evs, &events.RunsHeld{By: c.By, Held: c.Held})
	}
	if !c.Held {
		return evs, nil
	}
	ends, err := c.InterruptRun.decide(s, now, ids)
	return append(evs, ends...), err
}

// CallKey returns the key under which the program's run asks whether it may make a call. An earlier run's form is used
// if its answer was not read and it is not taken. An answer that a run has read was for one call. The call is given by the
// digest of what it asks. It fails with PagedOut.
func (s *State) CallKey(call string, taken func(key string) bool) (string, error) {
	for n := 0; ; n++ {
		key := s.Runs.AskKey(call + ":" + strconv.Itoa(n))
		m, err := s.Mail.underKey(&s.Mail.Keys.asked, key)
		if m == nil {
			return key, err
		}
		before := s.Runs.run == nil || m.Number < s.Runs.run.First
		if before && (m.Form.IsOpen() || m.Form.Settled > s.Runs.ended) && !taken(key) {
			return key, nil
		}
	}
}

// Finish returns the result of the agent's work, and whether the work is over. The result is idle, error, or permission
// while a call needs approval.
func (s *State) Finish() (status string, over bool) {
	switch {
	case s.Mail.asks.approvals.Len() > 0:
		return "permission", true
	case s.Runs.held && s.Runs.run == nil:
		return Idle, true // what waits stays queued
	case s.Runs.pending() > 0 || s.Profile.Status == Running || s.Profile.Status == Initializing:
		return "", false
	case s.Profile.Status == Failed:
		return Failed, true
	}
	return Idle, true
}
