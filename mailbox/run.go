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

// work is what an agent's program does and has to do.
type work struct {
	program events.ProgramSet
	policy  string
	run     *Run            // nil if none is under way
	ended   uint64          // the version after the end of the last run
	attempt capabilities.ID // the first run since one ended well
	prompts []uint64        // numbers of the messages that wait for a run, oldest first
	lost    int             // runs for the first of them, one after the other, that came to nothing
	cut     []uint64        // numbers of the newest messages whose runs were interrupted, oldest first
}

// maxLost is how many runs for one message may come to nothing with their node before it is left at that: it may be
// the message that ends the node.
const maxLost = 5

// maxCut is how many messages are known whose runs were interrupted.
const maxCut = 16

// Run is one run of an agent's program.
type Run struct {
	events.RunStarted
	First uint64 // the number of the first message after it began
	Ruled bool   // whether it made calls that a standing rule or the policy has decided
}

// Run gives the run that is under way.
func (s *State) Run() (Run, bool) {
	if s.work.run == nil {
		return Run{}, false
	}
	return *s.work.run, true
}

// Prompts gives the messages that wait for a run, oldest first.
func (s *State) Prompts() []*Message {
	waiting := make([]*Message, len(s.work.prompts))
	for i, n := range s.work.prompts {
		waiting[i] = s.messages[n]
	}
	return waiting
}

// Interrupted gives the newest messages whose runs were interrupted, oldest first.
func (s *State) Interrupted() []*Message {
	cut := make([]*Message, len(s.work.cut))
	for i, n := range s.work.cut {
		cut[i] = s.messages[n]
	}
	return cut
}

// WasInterrupted reports whether a message is one of them.
func (s *State) WasInterrupted(number uint64) bool { return slices.Contains(s.work.cut, number) }

// IsPrompt reports whether a message waits for a run.
func (s *State) IsPrompt(number uint64) bool {
	_, waits := slices.BinarySearch(s.work.prompts, number)
	return waits
}

// Queued counts the messages that wait for a run.
func (s *State) Queued() int { return len(s.work.prompts) }

// inHand counts the runs that are under way or to come.
func (s *State) inHand() int {
	if s.work.run == nil {
		return s.Queued()
	}
	return s.Queued() + 1
}

// prompted enters a message that came in as something to run for.
func (s *State) prompted(m *Message) {
	if s.HasProgram() && !s.Profile.Archived {
		s.work.prompts, s.profileVersion = append(s.work.prompts, m.Number), s.Version
	}
}

// unprompted drops a message from those that wait for a run, and from those whose runs were interrupted.
func (s *State) unprompted(number uint64) {
	if len(s.work.prompts) > 0 && s.work.prompts[0] == number {
		s.work.lost = 0
	}
	for _, numbers := range []*[]uint64{&s.work.prompts, &s.work.cut} {
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
	if e.Again && s.promptedAgain(ended) {
		s.Profile.Status, s.Profile.Error = Idle, ""
		return
	}
	w.lost = 0
	s.Profile.Status, s.Profile.Error = Idle, e.Error
	if e.Error == "" {
		w.attempt = capabilities.ID{}
		return
	}
	s.Profile.Status = Failed
	if n, ok := s.promptOf(ended); ok && e.Error == Interrupted && !s.messages[n].Dismissed {
		w.cut = append(w.cut, n)
		w.cut = w.cut[max(0, len(w.cut)-maxCut):]
		s.messages[n].Changed = s.Version
	}
}

// promptOf gives the number of the message that a run is for.
func (s *State) promptOf(r *Run) (uint64, bool) {
	if r == nil || r.Prompt.IsZero() {
		return 0, false
	}
	return s.byID.get(r.Prompt)
}

// promptedAgain enters the message of a run that came to nothing before all others that wait.
func (s *State) promptedAgain(r *Run) bool {
	n, ok := s.promptOf(r)
	if ok {
		s.work.prompts = slices.Insert(s.work.prompts, 0, n)
		s.work.lost++
		s.messages[n].Changed = s.Version
	}
	return ok
}

// StartRun begins the run for the message that has waited longest. There is nothing to do while one is under way, or
// when no message waits, unless the run is to be Unprompted.
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

// EndRun says how a run ended. One that has ended already changes nothing. One that was Interrupted while it was Silent,
// and whose agent has said nothing since it began either, came to nothing: there is to be another for its message.
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

// mayRunAgain reports whether nothing has come of the run that is under way, as far as the mailbox knows, so that there
// may be another for its message.
func (s *State) mayRunAgain() bool {
	n, ok := s.promptOf(s.work.run)
	if !ok || s.work.run.Ruled || s.messages[n].Dismissed || s.work.lost+1 >= maxLost {
		return false
	}
	return !slices.ContainsFunc(s.messages[s.work.run.First:], func(m *Message) bool { return m.From() == s.ID })
}

// InterruptRun ends the run that is under way, and takes back what the agent asks since it began, and Also the forms
// that the run takes up from one before it.
type InterruptRun struct {
	Note string
	Also []capabilities.ID
}

func (c InterruptRun) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	if s.work.run == nil {
		return nil, nil
	}
	evs := []events.Event{&events.RunEnded{Run: s.work.run.Run}}
	return append(evs, s.withdraw(s.work.run.First, c, now)...), nil
}

// withdraw cancels the open forms that the agent asked, from a message number on.
func (s *State) withdraw(first uint64, c InterruptRun, now capabilities.Time) []events.Event {
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

// AskKey is the idempotency key of what the agent's program asks under an ID of its own. Runs from one that fails to
// the next that ends well are one attempt, in which an ID stands for one question.
func (s *State) AskKey(id string) string { return "run:" + s.work.attempt.ULID.String() + ":" + id }

// CallKey is the key under which the program's run is to ask whether it may make a call. What the run before it asked
// and did not hear is taken up, unless it is taken already or was about another folder; whatever a run has heard was for
// one call.
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

// ProfileVersion gives the version after the last event that changed what is said of the agent: its profile, its program's
// work, and the calls that it needs permission for.
func (s *State) ProfileVersion() uint64 { return s.profileVersion }

// Finish says what came of what the agent was to do, and whether it is over: idle, error, or permission, when that
// waits for somebody to permit a call.
func (s *State) Finish() (status string, over bool) {
	switch {
	case len(s.approvals) > 0:
		return "permission", true
	case s.inHand() > 0 || s.Profile.Status == Running || s.Profile.Status == Initializing:
		return "", false
	case s.Profile.Status == Failed:
		return Failed, true
	}
	return Idle, true
}
