package events

import (
	"parley/capabilities"
)

// ReviewerSet sets the policy by which an agent's approvals go to a reviewer before its host. An event PolicySet ends it.
type ReviewerSet struct {
	Reviewer capabilities.ID `json:"reviewer"`
	Sample   uint32          `json:"sample,omitempty"`   // of the calls that the reviewer would allow, so many of a hundred go to the host all the same
	Cautious bool            `json:"cautious,omitempty"` // it may allow no call with any known risk; without it none of high risk
	Wait     Delay           `json:"wait"`               // how long an approval waits for it
	Rules    []MandateRule   `json:"rules,omitempty"`    // it may allow calls that one of these covers alone; any, without them
}

// ReviewAsked puts an approval to a reviewer, in the commit that asks for it. It is in the log of the asker, and in that of the reviewer.
type ReviewAsked struct {
	Form     capabilities.ID   `json:"form"`
	Reviewer capabilities.ID   `json:"reviewer"`
	MayAllow bool              `json:"mayAllow,omitempty"` // else the reviewer may deny the call, and have an opinion
	Sample   uint32            `json:"sample,omitempty"`   // as in ReviewerSet; the reviewer is not told
	Until    capabilities.Time `json:"until"`              // after that the asker's host decides
}

// ReviewEnd is how a review has ended.
type ReviewEnd string

// The ends of a review. After all but the first two the asker's host decides.
const (
	ReviewAllowed     ReviewEnd = "allowed"
	ReviewDenied      ReviewEnd = "denied"
	ReviewHandedOn    ReviewEnd = "handed on"   // the reviewer left the decision to the host
	ReviewBeyond      ReviewEnd = "beyond"      // the reviewer would allow the call, and may not
	ReviewSampled     ReviewEnd = "sampled"     // the reviewer allowed the call, and it was drawn for the host
	ReviewLate        ReviewEnd = "late"        // the reviewer said nothing in time
	ReviewUnreachable ReviewEnd = "unreachable" // the reviewer's mailbox did not take it
	ReviewRevoked     ReviewEnd = "revoked"     // the host has set another policy
)

// ReviewEnded ends a review. It is in the log of the asker, and in that of the host, in the commit of its copy. With the first two ends
// the approval is answered in the same commit.
type ReviewEnded struct {
	Form     capabilities.ID   `json:"form"`
	Reviewer capabilities.ID   `json:"reviewer"`
	How      ReviewEnd         `json:"how"`
	Note     string            `json:"note,omitempty"` // the reviewer's reason or opinion, in its own words
	Date     capabilities.Time `json:"date"`
}
