package parley

import "parley/events"

// ReviewTerms say which agent reviews the approvals of another before its host is asked, and what it may do. It may deny a call, or hand it
// on to the host with an opinion. It may allow calls that are not of high risk, and none whose input seems to have a secret in it is shown
// to it at all.
type ReviewTerms struct {
	Reviewer string        `json:"reviewer"`           // a path of the host's names, or the ID or locator of another agent of the node
	Sample   uint32        `json:"sample,omitempty"`   // of the calls that it allows, so many of a hundred go to the host all the same, at random
	Cautious bool          `json:"cautious,omitempty"` // it may allow no call with any known risk
	Wait     events.Delay  `json:"wait,omitempty"`     // how long a call waits for it, from a second to an hour; default: a minute
	Rules    []MandateRule `json:"rules,omitempty"`    // it may allow calls that one of these covers alone, 32 at most; none is an offer, and each names its folder
}
