package mailbox

import (
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

// work is the state of an agent's program: its run and the messages that wait for one.
type work struct {
	program     events.ProgramSet
	policy      string
	run         *Run            // nil if none is under way
	ended       uint64          // the version after the end of the last run
	attempt     capabilities.ID // the first run since one ended well
	prompts     []uint64        // numbers of the messages that wait for a run, oldest first
	retries     int             // runs for the first of them, one after the other, that came to nothing
	interrupted []uint64        // numbers of the newest messages whose runs were interrupted, oldest first
}

// maxRetries bounds the runs for one message that are lost with their node. The message itself may be what ends the node.
const maxRetries = 5

// maxInterrupted bounds the messages that are kept of those whose runs were interrupted.
const maxInterrupted = 16

// Run is one run of an agent's program.
type Run struct {
	events.RunStarted
	First uint64 // the number of the first message after it began
	Ruled bool   // whether it made calls that a standing rule or the policy has decided
}

// Run returns the run that is under way.
func (s *State) Run() (Run, bool) {
	if s.work.run == nil {
		return Run{}, false
	}
	return *s.work.run, true
}

// Prompts returns the messages that wait for a run, oldest first.
func (s *State) Prompts() []*Message {
	waiting := make([]*Message, len(s.work.prompts))
	for i, n := range s.work.prompts {
		waiting[i] = s.messages[n]
	}
	return waiting
}

// Interrupted returns the newest messages whose runs were interrupted, oldest first.
func (s *State) Interrupted() []*Message {
	cut := make([]*Message, len(s.work.interrupted))
	for i, n := range s.work.interrupted {
		cut[i] = s.messages[n]
	}
	return cut
}

// WasInterrupted reports whether a message is one of them.
func (s *State) WasInterrupted(number uint64) bool {
	return slices.Contains(s.work.interrupted, number)
}

// IsPrompt reports whether a message waits for a run.
func (s *State) IsPrompt(number uint64) bool {
	_, waits := slices.BinarySearch(s.work.prompts, number)
	return waits
}

// Queued counts the messages that wait for a run.
func (s *State) Queued() int { return len(s.work.prompts) }

// pendingRuns counts the runs that are under way or to come.
func (s *State) pendingRuns() int {
	if s.work.run == nil {
		return s.Queued()
	}
	return s.Queued() + 1
}

// enqueuePrompt adds a received message to those that wait for a run.
func (s *State) enqueuePrompt(m *Message) {
	if s.HasProgram() && !s.Profile.Archived {
		s.work.prompts, s.profileVersion = append(s.work.prompts, m.Number), s.Version
	}
}

// dropPrompt removes a message from those that wait for a run, and from those whose runs were interrupted.
func (s *State) dropPrompt(number uint64) {
	if len(s.work.prompts) > 0 && s.work.prompts[0] == number {
		s.work.retries = 0
	}
	for _, numbers := range []*[]uint64{&s.work.prompts, &s.work.interrupted} {
		if i := slices.Index(*numbers, number); i >= 0 {
			*numbers, s.profileVersion = slices.Delete(*numbers, i, i+1), s.Version
		}
	}
}

func (s *State) applyRunStarted(e *events.RunStarted) {
	w := &s.work
	s.Profile.Status, s.Profile.Error = Running, ""
	w.run = &Run{RunStarted: *e, First: uint64(len(s.messages))}
	if w.attempt.IsZero() {
		w.attempt = e.Run
	}
	if len(w.prompts) > 0 && s.messages[w.prompts[0]].ID() == e.Prompt {
		s.messages[w.prompts[0]].Changed = s.Version
		w.prompts = w.prompts[1:]
	}
}

func (s *State) applyRunEnded(e *events.RunEnded) {
	w := &s.work
	ended := w.run
	w.run, w.ended = nil, s.Version
	if e.Again && s.requeuePrompt(ended) {
		s.Profile.Status, s.Profile.Error = Idle, ""
		return
	}
	w.retries = 0
	s.Profile.Status, s.Profile.Error = Idle, e.Error
	if e.Error == "" {
		w.attempt = capabilities.ID{}
		return
	}
	s.Profile.Status = Failed
	if n, ok := s.promptOf(ended); ok && e.Error == Interrupted && !s.messages[n].Dismissed {
		w.interrupted = append(w.interrupted, n)
		w.interrupted = w.interrupted[max(0, len(w.interrupted)-maxInterrupted):]
		s.messages[n].Changed = s.Version
	}
}

// promptOf returns the number of the message that a run is for.
func (s *State) promptOf(r *Run) (uint64, bool) {
	if r == nil || r.Prompt.IsZero() {
		return 0, false
	}
	return s.byID.get(r.Prompt)
}

// requeuePrompt puts the message of a lost run before all others that wait.
func (s *State) requeuePrompt(r *Run) bool {
	n, ok := s.promptOf(r)
	if ok {
		s.work.prompts = slices.Insert(s.work.prompts, 0, n)
		s.work.retries++
		s.messages[n].Changed = s.Version
	}
	return ok
}

// StartRun starts the run for the message that has waited longest. It does nothing while a run is under way, or when
// no message waits, unless Unprompted is set.
type StartRun struct{ Unprompted bool }

func (c StartRun) decide(s *State, _ capabilities.Time, ids IDs) ([]events.Event, error) {
	if err := s.checkActive(); err != nil {
		return nil, err
	}
	if !s.HasProgram() || s.work.run != nil {
		return nil, nil
	}
	e := &events.RunStarted{}
	if len(s.work.prompts) > 0 {
		e.Prompt = s.messages[s.work.prompts[0]].ID()
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

// EndRun records the end of a run. A run that has ended already is ignored. A run that was Interrupted while Silent,
// and whose agent said nothing either, is lost: its message gets another run.
type EndRun struct {
	Run    capabilities.ID
	Error  string // "" is a good end
	Output string // the tail of it
	Silent bool   // the program has put out nothing
}

func (c EndRun) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	if s.work.run == nil || s.work.run.Run != c.Run {
		return nil, nil
	}
	output := c.Output
	if len(output) > maxRunOutput {
		output = output[len(output)-maxRunOutput:]
	}
	return []events.Event{&events.RunEnded{
		Run: c.Run, Error: parley.Shown(c.Error, maxRunError), Output: strings.ToValidUTF8(output, "�"),
		Again: c.Silent && c.Error == Interrupted && s.mayRunAgain(),
	}}, nil
}

// mayRunAgain reports whether the run under way has had no effect that the mailbox knows of, so that its message may
// get another.
func (s *State) mayRunAgain() bool {
	n, ok := s.promptOf(s.work.run)
	if !ok || s.work.run.Ruled || s.messages[n].Dismissed || s.work.retries+1 >= maxRetries {
		return false
	}
	return !slices.ContainsFunc(s.messages[s.work.run.First:], func(m *Message) bool { return m.From() == s.ID })
}

// InterruptRun ends the run that is under way. It cancels the forms that the agent asked since the run began, and
// those in Also, which the run took up from one before it.
type InterruptRun struct {
	Note string
	Also []capabilities.ID
}

func (c InterruptRun) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	if s.work.run == nil {
		return nil, nil
	}
	evs := []events.Event{&events.RunEnded{Run: s.work.run.Run}}
	return append(evs, s.cancelOpen(s.work.run.First, c, now)...), nil
}

// cancelOpen cancels the open forms that the agent asked, from a message number on.
func (s *State) cancelOpen(first uint64, c InterruptRun, now capabilities.Time) []events.Event {
	var evs []events.Event
	for _, m := range s.messages {
		if m.Form == nil || m.Form.From != s.ID || !m.Form.IsOpen() {
			continue
		}
		if m.Number >= first || slices.Contains(c.Also, m.ID()) {
			evs = append(evs, &events.FormCancelled{
				Form: m.ID(), Reason: events.Cancelled, By: s.ID, Note: c.Note, Date: now,
			})
		}
	}
	return evs
}

// AskKey returns the idempotency key of a form that the agent's program asks under an ID of its own. Consecutive runs
// that fail, up to the next that succeeds, are one attempt. Within it an ID stands for one form.
func (s *State) AskKey(id string) string { return "run:" + s.work.attempt.ULID.String() + ":" + id }

// CallKey returns the key under which the program's run asks whether it may make a call. A form of the run before is
// taken up if its answer was not read, it is not taken already and it is about the same folder. An answer that a run
// has read was for one call.
func (s *State) CallKey(call, folder string, taken func(key string) bool) string {
	for n := 0; ; n++ {
		key := s.AskKey(call + ":" + strconv.Itoa(n))
		asked, ok := s.keys[key]
		if !ok {
			return key
		}
		m := s.messages[asked]
		before := s.work.run == nil || m.Number < s.work.run.First
		here := m.Form.Offered == nil || m.Form.Offered.Folder == folder
		if before && here && (m.Form.IsOpen() || m.Form.Settled > s.work.ended) && !taken(key) {
			return key
		}
	}
}

// ProfileVersion returns the version after the last event that changed what is shown of the agent: its profile, its
// program's work, and the calls that it needs permission for.
func (s *State) ProfileVersion() uint64 { return s.profileVersion }

// Finish returns the result of the agent's work, and whether it is over: idle, error, or permission while a call waits
// for approval.
func (s *State) Finish() (status string, over bool) {
	switch {
	case len(s.approvals) > 0:
		return "permission", true
	case s.pendingRuns() > 0 || s.Profile.Status == Running || s.Profile.Status == Initializing:
		return "", false
	case s.Profile.Status == Failed:
		return Failed, true
	}
	return Idle, true
}
