package mailbox

import (
	"slices"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// SetPolicy says what becomes of the agent's calls that need permission. By is whose wish that is: its host's.
type SetPolicy struct {
	Policy string
	By     capabilities.ID
}

// The policies. Rules that deny go before all of them, and an expired question approves nothing.
const (
	AskAlways = "always"  // every call is asked about, whatever rules allow
	AskOnMiss = "on-miss" // calls that no rule decides are asked about: so it is where nothing is said
	AskNever  = "never"   // calls that no rule denies are allowed
	DenyAll   = "deny"    // calls that no rule allows are denied
)

func (c SetPolicy) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	if c.By != s.Profile.Host {
		return nil, parley.Refuse(parley.NotPermitted, "only the agent's host decides on its policy")
	}
	if err := CheckPolicy(c.Policy); err != nil {
		return nil, err
	}
	if c.Policy == s.Policy() {
		return nil, nil
	}
	return []events.Event{&events.PolicySet{Policy: c.Policy}}, nil
}

// CheckPolicy refuses with INVALID_ARGUMENT what is no policy.
func CheckPolicy(policy string) error {
	if slices.Contains([]string{AskAlways, AskOnMiss, AskNever, DenyAll}, policy) {
		return nil
	}
	return parley.Refuse(parley.InvalidArgument, "unknown policy %s", parley.Quoted(policy, 40)).
		WithHint("the policies are always, on-miss, never and deny")
}

// Policy gives the agent's policy.
func (s *State) Policy() string {
	if s.work.policy == "" {
		return AskOnMiss
	}
	return s.work.policy
}
