package events

import (
	"fmt"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"parley/capabilities"
	"parley/internal/pack"
)

// Delay is a time after a form was asked, in milliseconds.
type Delay int64

// String returns the delay as in "1h0m0s".
func (d Delay) String() string { return (time.Duration(d) * time.Millisecond).String() }

// MarshalText is String.
func (d Delay) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText parses a delay as in "1h" or "30m".
func (d *Delay) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%.40q is no time: want one as in 90m or 4h", text)
	}
	*d = Delay(parsed.Milliseconds())
	return nil
}

// EncodeMsgpack writes the number of milliseconds.
func (d Delay) EncodeMsgpack(enc *msgpack.Encoder) error { return enc.EncodeInt(int64(d)) }

// DecodeMsgpack reads the number of milliseconds.
func (d *Delay) DecodeMsgpack(dec *msgpack.Decoder) error {
	n, err := dec.DecodeInt64()
	*d = Delay(n)
	return err
}

// After returns the time that is a delay after another.
func (d Delay) After(t capabilities.Time) capabilities.Time { return t + capabilities.Time(d) }

// Route says how a form is decided beyond the first answer of its recipient. Its delays count from the time when the form
// was asked.
type Route struct {
	Need     uint32       `json:"need,omitempty"`     // so many principals have to agree; 0 is 1
	NoVeto   bool         `json:"noVeto,omitempty"`   // a denial is one vote, and does not settle it alone
	NoSelf   bool         `json:"noSelf,omitempty"`   // agents of the asker's own host do not count
	Remind   []Delay      `json:"remind,omitempty"`   // when who may answer is reminded, in order
	Escalate []Escalation `json:"escalate,omitempty"` // in order
	Passkey  bool         `json:"passkey,omitempty"`  // who answers it, or allows the call, signs that with a passkey
}

// Escalation adds an agent that may answer a form which is still open after a time. Via and Facet are as in FormRequested.
type Escalation struct {
	After Delay              `json:"after"`
	To    capabilities.ID    `json:"to"`
	Via   capabilities.ID    `json:"via,omitzero"`
	Facet capabilities.Facet `json:"facet,omitzero"`
}

// FormReminded reminds all who may answer a form. It is recorded at its home, once for all reminders that are due, and in
// each copy. N is the number of reminders that have been due by then.
type FormReminded struct {
	Form capabilities.ID   `json:"form"`
	N    uint32            `json:"n"`
	Date capabilities.Time `json:"date"`
}

// Cause is the reason why a form was routed or forwarded to an agent.
type Cause string

// The causes.
const (
	Escalated   Cause = "escalated"   // a step of the form's route
	Unreachable Cause = "unreachable" // such a step to an agent that the asker may not ask any more: it changes nothing
	Absent      Cause = "away"        // the forwarder is away
	Member      Cause = "member"      // the forwarder is a group, which forwards to its members
	Revoked     Cause = "revoked"     // a forward to the agent was taken back
)

// ForwardCause is why a form was forwarded: Absent or Member, or by hand if it is zero. Until is the end of the absence.
type ForwardCause struct {
	Cause Cause             `json:"cause"`
	Until capabilities.Time `json:"until,omitzero"`
}

// CopyStep is a step by which a copy of a form came to its agent. By is the forwarder, or for Escalated the agent that was
// asked first. Until is as in ForwardCause. After is the delay of an escalation.
type CopyStep struct {
	By    capabilities.ID   `json:"by"`
	Cause Cause             `json:"cause,omitempty"` // "" for by hand
	Date  capabilities.Time `json:"date"`
	Until capabilities.Time `json:"until,omitzero"`
	After Delay             `json:"after,omitzero"`
}

// CopySteps are the steps of a copy. A form points at them, since few copies have any.
type CopySteps []CopyStep

// List returns the steps; nil if there are none.
func (s *CopySteps) List() []CopyStep {
	if s == nil {
		return nil
	}
	return *s
}

// FormRouted adds an agent that may answer a form, at the form's home. Step is the number of the step of the form's route,
// which begins at 1. If the cause is Revoked, it takes a forward back instead, and Step is the number of that forward.
type FormRouted struct {
	Form  capabilities.ID   `json:"form"`
	To    capabilities.ID   `json:"to"`
	Via   capabilities.ID   `json:"via,omitzero"` // the grant by which the home reaches To
	Cause Cause             `json:"cause"`
	Step  uint32            `json:"step"`
	Date  capabilities.Time `json:"date"`
}

// VoteOutcome is what a vote is for: the decision of an approval, or one of the constants.
type VoteOutcome string

// The outcomes of votes on other forms than approvals.
const (
	VoteAnswered VoteOutcome = "answered"
	VoteDeclined VoteOutcome = VoteOutcome(Declined)
)

// VoteCast is a valid answer or decline that does not settle its form yet. It is recorded at the home and in each copy.
// Principal is the host of By. If By is of another node than the home, it is an ID with the node alone. A principal's
// vote replaces its earlier one. Revision and Digest are those of the question, or of the call. Note is a comment on a
// decline. Answer is as in FormAnswered, and only the home and the copy of By have it.
type VoteCast struct {
	Form      capabilities.ID   `json:"form"`
	By        capabilities.ID   `json:"by"`
	Person    capabilities.ID   `json:"person,omitzero"` // who voted as By, if that is another agent of the node: a host stands for several
	Principal capabilities.ID   `json:"principal"`
	Revision  uint64            `json:"revision"`
	Outcome   VoteOutcome       `json:"outcome"`
	Digest    Hash              `json:"digest"`
	Note      string            `json:"note,omitempty"`
	Date      capabilities.Time `json:"date"`
	Answer    capabilities.ID   `json:"answer,omitzero"`
}

// VoteWithdrawn takes the vote of an agent back, before the form ends. Answer is that of the vote. In a delivery, no By
// means that no vote stands.
type VoteWithdrawn struct {
	Form   capabilities.ID   `json:"form"`
	By     capabilities.ID   `json:"by"`
	Date   capabilities.Time `json:"date"`
	Answer capabilities.ID   `json:"answer,omitzero"`
}

// AwaySet has the forms forwarded that come from one time to another, to Delegate if that is set. No Until ends the absence.
type AwaySet struct {
	From     capabilities.Time `json:"from,omitzero"`
	Until    capabilities.Time `json:"until,omitzero"`
	Delegate capabilities.ID   `json:"delegate,omitzero"`
	Date     capabilities.Time `json:"date"`
}

// MemberSet adds a member to a group, or without In removes it. An agent with members is a group: its forms are forwarded
// to them as they come.
type MemberSet struct {
	Agent capabilities.ID   `json:"agent"`
	In    bool              `json:"in,omitempty"`
	Date  capabilities.Time `json:"date"`
}

// plainRoute and signedRoute are the numbers of members in the two encodings of a route. One without Passkey has the shorter one.
const (
	plainRoute  = 5
	signedRoute = 6
)

// EncodeMsgpack writes the route as an array.
func (r *Route) EncodeMsgpack(enc *msgpack.Encoder) error { return write(enc, appendRoute(nil, r)) }

// DecodeMsgpack reads what EncodeMsgpack writes, and nothing else.
func (r *Route) DecodeMsgpack(dec *msgpack.Decoder) error {
	n, err := dec.DecodeArrayLen()
	if err != nil {
		return err
	}
	if n != plainRoute && n != signedRoute {
		return fmt.Errorf("%w: a route of %d members", errMalformed, n)
	}
	var got Route
	if err := dec.DecodeMulti(&got.Need, &got.NoVeto, &got.NoSelf, &got.Remind, &got.Escalate); err != nil {
		return fmt.Errorf("route: %w", err)
	}
	if n == signedRoute {
		if err := dec.Decode(&got.Passkey); err != nil || !got.Passkey {
			return fmt.Errorf("%w: the passkey of a route", errMalformed)
		}
	}
	*r = got
	return nil
}

func appendRoute(b []byte, r *Route) []byte {
	if r == nil {
		return pack.AppendNil(b)
	}
	size := plainRoute
	if r.Passkey {
		size = signedRoute
	}
	b = pack.AppendUint(pack.AppendArray(b, size), uint64(r.Need))
	b = pack.AppendBool(pack.AppendBool(b, r.NoVeto), r.NoSelf)
	b = appendList(b, r.Remind, func(b []byte, d *Delay) []byte { return pack.AppendInt(b, int64(*d)) })
	b = appendList(b, r.Escalate, func(b []byte, e *Escalation) []byte {
		b = pack.AppendInt(pack.AppendArray(b, 4), int64(e.After))
		return appendFacet(appendIDs(b, &e.To, &e.Via), e.Facet)
	})
	if r.Passkey {
		b = pack.AppendBool(b, true)
	}
	return b
}

func appendStep(b []byte, s *CopyStep) []byte {
	b = appendTexts(s.By.AppendMsgpack(pack.AppendArray(b, 5)), string(s.Cause))
	return pack.AppendInt(s.Until.AppendMsgpack(s.Date.AppendMsgpack(b)), int64(s.After))
}

// IsZero reports whether a form was forwarded by hand.
func (c ForwardCause) IsZero() bool { return c == ForwardCause{} }
