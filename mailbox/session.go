package mailbox

import (
	"slices"
	"strings"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// MaxSessions bounds the sessions that an address has, ended ones that are not archived too.
const MaxSessions = 64

// maxSession bounds the ID that a coding agent has for a session, and the start of its process, in bytes.
const maxSession = 128

// Session is a session of a coding agent, as its address knows it.
type Session struct {
	Agent   capabilities.ID // the session's own agent
	Session string          // the coding agent's ID for it
	Process events.SessionProcess
	Began   capabilities.Time // or was moved last
	Ended   capabilities.Time // 0 for one that lives
	Former  string            // the ID that it had before a clear; "" for none
}

// IsLiving reports whether the session has not ended.
func (s Session) IsLiving() bool { return s.Ended == 0 }

// Sessions are the sessions of an agent that is the address of a coding agent in a folder.
type Sessions struct{ all []Session }

// All returns the sessions, the first one begun first. The slice is the caller's.
func (l *Sessions) All() []Session { return slices.Clone(l.all) }

// Of returns the session of an agent, and whether there is one.
func (l *Sessions) Of(agent capabilities.ID) (Session, bool) {
	if i := l.find(agent); i >= 0 {
		return l.all[i], true
	}
	return Session{}, false
}

func (l *Sessions) find(agent capabilities.ID) int {
	return slices.IndexFunc(l.all, func(s Session) bool { return s.Agent == agent })
}

func (l *Sessions) start(e *events.SessionStarted, at capabilities.Time) {
	l.all = append(l.all, Session{Agent: e.Agent, Session: e.Session, Process: e.Process, Began: at})
}

// move reports whether there is such a session.
func (l *Sessions) move(e *events.SessionMoved, at capabilities.Time) bool {
	i := l.find(e.Agent)
	if i >= 0 {
		former := l.all[i].Former
		if was := l.all[i].Session; was != e.Session {
			former = was
		}
		l.all[i] = Session{Agent: e.Agent, Session: e.Session, Process: e.Process, Began: at, Former: former}
	}
	return i >= 0
}

// end reports whether there is such a session.
func (l *Sessions) end(e *events.SessionEnded, at capabilities.Time) bool {
	i := l.find(e.Agent)
	switch {
	case i < 0:
	case e.Forgotten:
		if l.all = slices.Delete(l.all, i, i+1); len(l.all) == 0 {
			l.all = nil // which is encoded otherwise
		}
	default:
		l.all[i].Ended = at
	}
	return i >= 0
}

// StartSession records a session of the agent, or that one goes on: in another process, or under another ID. A session that
// goes on as it was is no event. It refuses with QUOTA_EXCEEDED more than MaxSessions.
type StartSession struct {
	Agent   capabilities.ID
	Session string
	Process events.SessionProcess
}

func (c StartSession) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	if err := s.Profile.checkActive(); err != nil {
		return nil, err
	}
	if !s.Profile.Of.IsZero() {
		return nil, parley.Refuse(parley.InvalidArgument, "a session has no sessions of its own")
	}
	for _, text := range []string{c.Session, c.Process.Start} {
		if len(text) > maxSession || strings.ContainsFunc(text, parley.IsInvisible) {
			return nil, parley.Refuse(parley.InvalidArgument, "the ID of a session is one word of %d bytes at most", maxSession)
		}
	}
	if c.Session == "" {
		return nil, parley.Refuse(parley.InvalidArgument, "a session needs the ID that the coding agent has for it")
	}
	for _, other := range s.Sessions.all {
		if other.Session == c.Session && other.Agent != c.Agent {
			return nil, parley.Refuse(parley.NameTaken, "the session %s is another agent's", parley.Quoted(c.Session, 80))
		}
	}
	now, known := s.Sessions.Of(c.Agent)
	switch {
	case known && now.IsLiving() && now.Session == c.Session && now.Process == c.Process:
		return nil, nil
	case known:
		e := events.SessionMoved(c)
		return []events.Event{&e}, nil
	case len(s.Sessions.all) >= MaxSessions:
		return nil, parley.Refuse(parley.QuotaExceeded, "%d sessions of one folder are as many as there may be", MaxSessions)
	}
	e := events.SessionStarted(c)
	return []events.Event{&e}, nil
}

// EndSession records that a session of the agent has ended. With Forget the session is taken from the list: its agent is
// archived, or was never made.
type EndSession struct {
	Agent  capabilities.ID
	Forget bool
}

func (c EndSession) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	if now, known := s.Sessions.Of(c.Agent); !known || !now.IsLiving() && !c.Forget {
		return nil, nil
	}
	return []events.Event{&events.SessionEnded{Agent: c.Agent, Forgotten: c.Forget}}, nil
}

// SetSession says of the agent of a session whether it lives. It changes nothing of an archived one.
type SetSession struct{ Living bool }

func (c SetSession) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	switch {
	case s.Profile.Archived:
		return nil, nil
	case !c.Living:
		return s.Profile.statusEvents(Closed, ""), nil
	case s.Profile.Status == Closed:
		return s.Profile.statusEvents(Idle, ""), nil
	}
	return nil, nil
}

// Owes reports whether an agent owes something or is owed: a form that it asked or has to answer is open, or something is on
// its way to others. What it has to answer does not count if others have it too.
func Owes(s *State, passedOn bool) bool {
	sum := s.Summary()
	return sum.Open > 0 || sum.Waiting > 0 && !passedOn || sum.Outbox > 0
}

// ShareWith gives a session of an agent a reference to an agent that it holds under a path, or with an ID or a locator. It returns
// the name that the agent has for it, the reference as the session will hold it, and the event of the grant. What the agent
// itself was granted the session's grant derives from, and ends with. It refuses as a message to that recipient.
func ShareWith(s *State, session capabilities.ID, path string, now capabilities.Time, ids IDs) (name string, given capabilities.Value, evs []events.Event, err error) {
	if _, known := s.Sessions.Of(session); !known {
		return "", given, nil, parley.Refuse(parley.NotPermitted, "it is no session of this agent")
	}
	h := s.holder(capabilities.UseGive, now)
	ref, err := h.lent(path)
	if err != nil {
		return "", given, nil, err
	}
	if name, err = s.Names.Of(ref.Target); err != nil {
		return "", given, nil, err
	}
	if ref.Target == s.ID {
		name = "" // its own name for itself names the session there
	}
	d := delegation{s: s, to: session, now: now, ids: ids}
	given, err = d.give(name, capabilities.Reference(ref))
	return name, given, grantEvents(d.grants), err
}

// lent returns the reference that is lent: one that the agent holds, or one to another of its sessions.
func (h holder) lent(path string) (capabilities.Ref, error) {
	if id, ok := targetOf(path); ok {
		if _, sibling := h.s.Sessions.Of(id); sibling {
			return agentRef(id), nil
		}
	}
	return h.reach(path)
}

// Inherit binds a name to a reference that the agent's address has lent, unless it has one that is as good.
type Inherit struct {
	Name  string
	Value capabilities.Value
}

func (c Inherit) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	if s.Profile.Of.IsZero() {
		return nil, parley.Refuse(parley.NotPermitted, "only a session is lent what its address holds")
	}
	if err := s.checkFree(c.Name); err != nil {
		return nil, err
	}
	return bindEvents(c.Name, c.Value)
}

// Reaches refuses a recipient that an agent does not reach by a path, an ID or a locator.
func Reaches(s *State, path string, now capabilities.Time) error {
	_, err := s.holder(capabilities.UseRead, now).reach(path)
	return err
}
