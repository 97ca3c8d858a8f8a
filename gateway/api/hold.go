package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"parley/capabilities"
)

// HoldPath is the address, on the node's socket, at which a process holds a form with POST: as long as the connection
// lasts, the process waits for the answer. The node cancels the form when the connection ends. DELETE cancels the forms
// that a session holds, and returns a CallEnded if there is something to say. GET returns an Attendance. None is an operation.
const HoldPath = "/hold"

// HeldAskPath is the address at which a process asks with POST and holds the form that comes of it, as at HoldPath. The response
// begins with a view.Permitted, and lasts as long as the form is held: without an open form it ends at once. The form is held
// from its first moment, so that a process that is killed before it has read the response leaves none open.
const HeldAskPath = HoldPath + "/ask"

// HeldAsk is a hold of a form that is not asked yet: an approval or a form.
type HeldAsk struct {
	Hold
	Approval *ApproveRequest `json:"approval,omitempty"`
	Question *FormRequest    `json:"question,omitempty"`
}

// Hold is a form that a process waits for, or with DELETE a choice of such forms.
type Hold struct {
	Acting
	Form    capabilities.ID `json:"form,omitzero"`
	Session string          `json:"session,omitempty"` // in which the form was asked
	Part    string          `json:"part,omitempty"`    // the part of the session, such as a subagent
	Call    string          `json:"call,omitempty"`    // a digest of the call that the form is about
	Use     string          `json:"use,omitempty"`     // the session's ID of that call; "" where the process has none
	Whole   bool            `json:"whole,omitempty"`   // with DELETE: of all parts and calls
	Reason  string          `json:"reason,omitempty"`  // to cancel the form

	// With POST, of an approval: its caller waits for the asker's host only where somebody follows the host's mail. When a review leaves
	// the decision to the host, the response goes on with an Attendance.
	Attended bool `json:"attended,omitempty"`

	// With DELETE, of a call that was made: the input that it had. Of one that no approval can have, for its size or its text, the
	// beginning alone, with Cut.
	Input string `json:"input,omitempty"`
	Cut   bool   `json:"cut,omitempty"`
}

// InputDigest returns a digest of the input of a call, a JSON document. White space and the order of members do not count.
func InputDigest(input []byte) string {
	d := json.NewDecoder(bytes.NewReader(input))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err == nil {
		input, _ = json.Marshal(value) // what was read has a JSON form
	}
	sum := sha256.Sum256(input)
	return hex.EncodeToString(sum[:])
}

// CallEnded is the response to the end of a call.
type CallEnded struct {
	Other bool `json:"other"` // it was made with another input than the one that was allowed. The host was sent a message
}

// Covers reports whether a choice includes a hold. A choice without a call includes all calls of its part. One with a
// call includes the hold of that call alone where both have its ID. Otherwise it includes each hold of an equal call.
func (h Hold) Covers(held Hold) bool {
	switch {
	case h.As != held.As || h.Session != held.Session:
		return false
	case h.Whole:
		return true
	}
	return h.Part == held.Part && (h.Call == "" || h.Call == held.Call && (h.Use == "" || held.Use == "" || h.Use == held.Use))
}

// Counts reports whether of the holds that a choice covers only one is meant: equal calls that have no ID of their own are
// told apart by their number.
func (h Hold) Counts(held Hold) bool { return !h.Whole && h.Call != "" && held.Use == "" }

// Attendance reports whether a page, a client or a command follows the mail of the node's host.
type Attendance struct {
	Attended bool `json:"attended"`
}
