package mailbox

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// CreateAgent binds a name to a new agent. Genesis returns the agent's own first events.
type CreateAgent struct {
	Agent   capabilities.ID
	Kind    events.AgentKind
	Name    string
	Title   string
	Labels  map[string]string
	Program *events.ProgramSet // nil for none
	Policy  string             // "" is on-miss
	Of      capabilities.ID    // for a session of a coding agent: its address
}

func (c CreateAgent) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	if err := s.Profile.checkActive(); err != nil {
		return nil, err
	}
	if c.Kind != events.Host && c.Kind != events.Guest {
		return nil, parley.Refuse(parley.InvalidArgument, "unknown kind of agent %.40q", c.Kind)
	}
	if err := s.checkFree(c.Name); err != nil {
		return nil, err
	}
	if err := checkAgentName(c.Name); err != nil {
		return nil, err
	}
	if err := checkProfile(c.Title, c.Labels); err != nil {
		return nil, err
	}
	if c.Program != nil {
		if err := CheckProgram(*c.Program); err != nil {
			return nil, err
		}
	}
	if c.Policy != "" {
		if err := CheckPolicy(c.Policy); err != nil {
			return nil, err
		}
	}
	return []events.Event{&events.NameBound{Name: c.Name, Value: capabilities.Reference(agentRef(c.Agent))}}, nil
}

// checkAgentName refuses with INVALID_NAME a name that people and scripts cannot use for an agent: one with characters
// that do not show, with a space at an end, or like an option.
func checkAgentName(name string) error {
	why := ""
	switch {
	case strings.ContainsFunc(name, parley.IsInvisible):
		why = "it holds characters that do not show"
	case strings.TrimSpace(name) != name:
		why = "it begins or ends with a space"
	case strings.HasPrefix(name, "-"):
		why = "it reads as an option"
	default:
		return nil
	}
	return parley.Refuse(parley.InvalidName, "%s cannot be an agent's name: %s", parley.Quoted(name, 80), why)
}

// Genesis returns the first events of the mailbox of an agent that another makes. A host is its own @host; a guest has
// its maker's.
func (c CreateAgent) Genesis(by *State) []events.Event {
	made := &events.AgentCreated{Agent: c.Agent, Kind: c.Kind, Host: by.Profile.Host, By: by.ID, Name: capabilities.Normal(c.Name), Title: capabilities.Normal(c.Title), Labels: c.Labels, Of: c.Of}
	if c.Kind == events.Host {
		made.Host = c.Agent
	}
	evs := []events.Event{made}
	if c.Program != nil {
		evs = append(evs, c.Program)
	}
	if c.Policy != "" {
		evs = append(evs, &events.PolicySet{Policy: c.Policy})
	}
	return evs
}

// Profile describes an agent, apart from its mail.
type Profile struct {
	Kind     events.AgentKind
	Host     capabilities.ID
	By       capabilities.ID
	Of       capabilities.ID // for a session of a coding agent: its address
	Name     string          // that its maker gave it at first
	Title    string
	Labels   map[string]string
	Status   string
	Error    string
	Archived bool
	Created  capabilities.Time
	Updated  capabilities.Time
}

// called returns what the agent calls itself, for others: its title, or else the name that its maker gave it.
func (p *Profile) called() string { return parley.Shown(cmp.Or(p.Title, p.Name), parley.MaxCalled) }

// ManagedBy reports whether an agent is this one's host or maker.
func (p *Profile) ManagedBy(by capabilities.ID) bool { return by == p.Host || by == p.By }

// checkManager refuses with NOT_PERMITTED any agent but this one's host and maker.
func (p *Profile) checkManager(by capabilities.ID) error {
	if p.ManagedBy(by) {
		return nil
	}
	return parley.Refuse(parley.NotPermitted, "that is for the agent's host")
}

// checkActive refuses with AGENT_ARCHIVED an agent that is archived.
func (p *Profile) checkActive() error {
	if p.Archived {
		return parley.Refuse(parley.AgentArchived, "the agent is archived")
	}
	return nil
}

// isNodeHost reports whether the agent is the node's own host, which no other agent made.
func (p *Profile) isNodeHost() bool { return p.Kind == events.Host && p.By.IsZero() }

// checkNodeHost refuses with NOT_PERMITTED any agent but the node's own host.
func (p *Profile) checkNodeHost() error {
	if !p.isNodeHost() {
		return parley.Refuse(parley.NotPermitted, "only the node's own host deals with other nodes")
	}
	return nil
}

// statusEvents returns the event that sets a status and its error; none if they are set.
func (p *Profile) statusEvents(status, problem string) []events.Event {
	problem = parley.Shown(problem, maxRunError)
	if status == p.Status && problem == p.Error {
		return nil
	}
	return []events.Event{&events.AgentUpdated{Status: status, Error: problem}}
}

func (p *Profile) update(e *events.AgentUpdated) {
	if e.Title != nil {
		p.Title = *e.Title
	}
	if e.Labels != nil {
		p.Labels = maps.Clone(e.Labels)
	}
	if e.Status != "" {
		p.Status, p.Error = e.Status, e.Error
	}
}

func (p *Profile) archive() { p.Archived, p.Status = true, Closed }

// SetPolicy sets what happens to the agent's calls that need permission. By has to be its host. It ends the reviews that are under way: the
// host decides on these calls.
type SetPolicy struct {
	Policy   string
	By       capabilities.ID
	Reviewer capabilities.ID     // of the policy of review: that of its terms
	Review   *parley.ReviewTerms // of that policy alone
}

// The policies. Rules that deny go before all of them, and an expired question approves nothing.
const (
	AskAlways = "always"  // every call is asked about, whatever rules allow
	AskOnMiss = "on-miss" // calls that no rule decides are asked about; the default
	AskNever  = "never"   // calls that no rule denies are allowed
	DenyAll   = "deny"    // calls that no rule allows are denied
)

func (c SetPolicy) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	if c.By != s.Profile.Host {
		return nil, parley.Refuse(parley.NotPermitted, "only the agent's host decides on its policy")
	}
	if c.Policy == Review {
		e, err := c.reviewerSet(s)
		if err != nil || sameReviewer(e, s.Rules.reviewer) {
			return nil, err
		}
		return append([]events.Event{e}, endReviews(s, events.ReviewRevoked, now)...), nil
	}
	if err := CheckPolicy(c.Policy); err != nil {
		return nil, err
	}
	if c.Review != nil {
		return nil, parley.Refuse(parley.InvalidArgument, "the policy %s has no reviewer", c.Policy).WithHint("the policy %s has one", Review)
	}
	if c.Policy == s.Rules.Policy() {
		return nil, nil
	}
	return append([]events.Event{&events.PolicySet{Policy: c.Policy}}, endReviews(s, events.ReviewRevoked, now)...), nil
}

// CheckPolicy refuses with INVALID_ARGUMENT a policy that is unknown, or needs a reviewer.
func CheckPolicy(policy string) error {
	if slices.Contains([]string{AskAlways, AskOnMiss, AskNever, DenyAll}, policy) {
		return nil
	}
	if policy == Review {
		return noReviewer()
	}
	return parley.Refuse(parley.InvalidArgument, "unknown policy %s", parley.Quoted(policy, 40)).
		WithHint("the policies are always, on-miss, never, deny and review")
}

// UpdateAgent changes the agent's title and labels. A nil Title or Labels stays as it is.
type UpdateAgent struct {
	Title  *string
	Labels map[string]string
}

func (c UpdateAgent) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	if err := s.Profile.checkActive(); err != nil {
		return nil, err
	}
	title := s.Profile.Title
	if c.Title != nil {
		title = capabilities.Normal(*c.Title)
		c.Title = &title
	}
	if err := checkProfile(title, c.Labels); err != nil {
		return nil, err
	}
	if title == s.Profile.Title && (c.Labels == nil || maps.Equal(c.Labels, s.Profile.Labels)) {
		return nil, nil
	}
	return []events.Event{&events.AgentUpdated{Title: c.Title, Labels: c.Labels}}, nil
}

// checkProfile checks the bounds of a title and labels.
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

// ReportStatus sets the status of an agent without a program. It is for the agent's client.
type ReportStatus struct {
	Status string
	Error  string
}

func (c ReportStatus) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	if err := s.Profile.checkActive(); err != nil {
		return nil, err
	}
	if s.Runs.HasProgram() {
		return nil, parley.Refuse(parley.NotPermitted, "the agent has a program, and the node says what that does")
	}
	if !slices.Contains([]string{Initializing, Idle, Running, Failed}, c.Status) {
		return nil, parley.Refuse(parley.InvalidArgument, "unknown status %s", parley.Quoted(c.Status, 40)).
			WithHint("there are initializing, idle, running and error")
	}
	if c.Status != Failed && c.Error != "" {
		return nil, parley.Refuse(parley.InvalidArgument, "only the status error has one")
	}
	return s.Profile.statusEvents(c.Status, c.Error), nil
}

// PrepareProgram sets the status of the agent's program before its first run: Initializing, Idle, or Failed with an
// error.
type PrepareProgram struct {
	Status string
	Error  string
}

func (c PrepareProgram) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	if s.Runs.run != nil || s.Profile.Archived {
		return nil, nil
	}
	return s.Profile.statusEvents(c.Status, c.Error), nil
}

// ArchiveAgent archives the agent, and ends its run and its open forms. By has to be its host or its maker.
type ArchiveAgent struct{ By capabilities.ID }

func (c ArchiveAgent) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	if err := s.Profile.checkManager(c.By); err != nil {
		return nil, err
	}
	if s.Profile.Archived {
		return nil, nil
	}
	if s.ID == s.Profile.Host && s.Profile.By.IsZero() {
		return nil, parley.Refuse(parley.NotPermitted, "the node's own host cannot be archived")
	}
	var evs []events.Event
	if s.Runs.run != nil {
		evs = append(evs, &events.RunEnded{Run: s.Runs.run.Run, By: c.By})
	}
	evs = append(evs, s.Mail.cancelOpen(0, nil, "the agent is archived", now)...)
	return append(evs, &events.AgentArchived{By: c.By}), nil
}

const (
	maxLabels    = 64
	maxLabelText = 255
)

// Bounds of a program.
const (
	maxCommand     = 256 // words
	maxCommandText = 64 << 10
)

// CheckProgram refuses with INVALID_ARGUMENT an invalid program.
func CheckProgram(p events.ProgramSet) error {
	if p.Runtime != "exec" && p.Runtime != "acp" {
		return parley.Refuse(parley.InvalidArgument, "unknown runtime %s", parley.Quoted(p.Runtime, 40)).WithHint("the runtimes are exec and acp")
	}
	if len(p.Command) == 0 || p.Command[0] == "" {
		return parley.Refuse(parley.InvalidArgument, "a program needs a command")
	}
	if len(p.Command)+len(p.Environment)+len(p.Access)+len(p.Inherit)+len(p.Wrap) > maxCommand {
		return parley.Refuse(parley.TooLarge, "a command and its environment have %d words at most", maxCommand)
	}
	size := len(p.Folder)
	for _, word := range slices.Concat(p.Command, p.Environment, p.Inherit, p.Wrap, []string{p.User, p.Folder}) {
		if strings.ContainsRune(word, 0) {
			return parley.Refuse(parley.InvalidArgument, "a command holds no NUL")
		}
		size += len(word) + 1
	}
	if size > maxCommandText {
		return parley.Refuse(parley.TooLarge, "a command with its environment has %d bytes at most", maxCommandText)
	}
	for _, e := range p.Environment {
		if name, _, ok := strings.Cut(e, "="); !ok || name == "" {
			return parley.Refuse(parley.InvalidArgument, "%s in the environment: want NAME=value", parley.Quoted(e, 40))
		}
	}
	for _, name := range p.Inherit {
		if name == "" || strings.ContainsAny(name, "=*") {
			return parley.Refuse(parley.InvalidArgument, "%s names no variable", parley.Quoted(name, 40)).WithHint("a variable is set as NAME=value among the environment")
		}
	}
	if len(p.Wrap) > 0 && p.Wrap[0] == "" {
		return parley.Refuse(parley.InvalidArgument, "what a program is wrapped in needs a command")
	}
	if p.User != "" && (slices.Contains(p.Access, "read") || slices.Contains(p.Access, "write")) {
		return parley.Refuse(parley.InvalidArgument, "a program that runs as another user gets no access to files through the node").
			WithHint("it reads and writes them itself, as that user")
	}
	for _, a := range p.Access {
		if a != "read" && a != "write" && a != "terminal" {
			return parley.Refuse(parley.InvalidArgument, "unknown access %s", parley.Quoted(a, 40)).WithHint("there are read, write and terminal")
		}
	}
	return nil
}
