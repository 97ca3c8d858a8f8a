package mailbox

import (
	"maps"
	"slices"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// mayRule refuses with NOT_PERMITTED whoever is neither the agent's host nor made it.
func (s *State) mayRule(by capabilities.ID) error {
	if s.RuledBy(by) {
		return nil
	}
	return parley.Refuse(parley.NotPermitted, "that is for the agent's host")
}

// RuledBy reports whether an agent is this one's host, or made it.
func (s *State) RuledBy(by capabilities.ID) bool { return by == s.Profile.Host || by == s.Profile.By }

// UpdateAgent replaces what an agent is known by. A nil Title or Labels stays as it is.
type UpdateAgent struct {
	Title  *string
	Labels map[string]string
}

func (c UpdateAgent) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	if err := s.checkActive(); err != nil {
		return nil, err
	}
	title := s.Profile.Title
	if c.Title != nil {
		title = *c.Title
	}
	if err := checkProfile(title, c.Labels); err != nil {
		return nil, err
	}
	if title == s.Profile.Title && (c.Labels == nil || maps.Equal(c.Labels, s.Profile.Labels)) {
		return nil, nil
	}
	return []events.Event{&events.AgentUpdated{Title: c.Title, Labels: c.Labels}}, nil
}

// checkProfile holds a title and labels to their bounds.
func checkProfile(title string, labels map[string]string) error {
	if err := checkText("a title", title, maxTitle); err != nil {
		return err
	}
	if len(labels) > maxLabels {
		return parley.Refuse(parley.TooLarge, "an agent has %d labels at most", maxLabels)
	}
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		if err := checkText("a label", k+labels[k], maxLabelText); err != nil {
			return err
		}
	}
	return nil
}

// ReportStatus is what the client of an agent without a program says that it does.
type ReportStatus struct {
	Status string
	Error  string
}

func (c ReportStatus) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	if err := s.checkActive(); err != nil {
		return nil, err
	}
	if s.HasProgram() {
		return nil, parley.Refuse(parley.NotPermitted, "the agent has a program, and the node says what that does")
	}
	if !slices.Contains([]string{Initializing, Idle, Running, Failed}, c.Status) {
		return nil, parley.Refuse(parley.InvalidArgument, "unknown status %s", parley.Quoted(c.Status, 40)).
			WithHint("there are initializing, idle, running and error")
	}
	if c.Status != Failed && c.Error != "" {
		return nil, parley.Refuse(parley.InvalidArgument, "only the status error has one")
	}
	return s.is(c.Status, c.Error), nil
}

// is makes of a status and its error what the agent is, unless it is so.
func (s *State) is(status, problem string) []events.Event {
	problem = parley.Shown(problem, maxRunError)
	if status == s.Profile.Status && problem == s.Profile.Error {
		return nil
	}
	return []events.Event{&events.AgentUpdated{Status: status, Error: problem}}
}

// PrepareProgram says how far the agent's program is before its first run: Initializing, Idle, or Failed with an error.
type PrepareProgram struct {
	Status string
	Error  string
}

func (c PrepareProgram) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	if s.work.run != nil || s.Profile.Archived {
		return nil, nil
	}
	return s.is(c.Status, c.Error), nil
}

// ArchiveAgent puts the agent out of use, with what it does and asks. By is whose wish that is: its host's or its maker's.
type ArchiveAgent struct{ By capabilities.ID }

func (c ArchiveAgent) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	if err := s.mayRule(c.By); err != nil {
		return nil, err
	}
	if s.Profile.Archived {
		return nil, nil
	}
	if s.ID == s.Profile.Host && s.Profile.By.IsZero() {
		return nil, parley.Refuse(parley.NotPermitted, "the node's own host cannot be archived")
	}
	var evs []events.Event
	if s.work.run != nil {
		evs = append(evs, &events.RunEnded{Run: s.work.run.Run})
	}
	evs = append(evs, s.withdraw(0, InterruptRun{Note: "the agent is archived"}, now)...)
	return append(evs, &events.AgentArchived{By: c.By}), nil
}
