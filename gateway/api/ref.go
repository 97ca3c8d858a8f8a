package api

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"parley"
	"parley/capabilities"
)

// FormRef is the part of a request that names a form or other message: by its number in the agent's mailbox, or by the
// ID of the message, form or promise. Exactly one of the two is set.
type FormRef struct {
	Number RefText `json:"number,omitempty"`
	ID     RefText `json:"id,omitempty"`
}

// Parse reads the number or ID. It refuses with INVALID_ARGUMENT neither, both, and text that is not a number or an ID.
func (r FormRef) Parse() (capabilities.FormRef, error) {
	switch {
	case r.Number == "" && r.ID == "":
		return capabilities.FormRef{}, parley.Refuse(parley.InvalidArgument, "which message? give its number or id")
	case r.Number != "" && r.ID != "":
		return capabilities.FormRef{}, parley.Refuse(parley.InvalidArgument, "give a number or an id, not both")
	case r.ID != "":
		return capabilities.ParseFormRef(string(r.ID))
	}
	return capabilities.ParseFormRef(string(r.Number))
}

// RefTo returns the FormRef for a number or an ID.
func RefTo(s string) FormRef {
	if s != "" && strings.Trim(s, "0123456789") == "" {
		return FormRef{Number: RefText(s)}
	}
	return FormRef{ID: RefText(s)}
}

// RefText is a number or an ID as text. In JSON it may be a number too.
type RefText string

// UnmarshalJSON reads a JSON number or string.
func (r *RefText) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] != '"' {
		var n json.Number
		if err := json.Unmarshal(b, &n); err != nil {
			return parley.Refuse(parley.InvalidArgument, "%.40q is neither a number nor an ID", b)
		}
		*r = RefText(n)
		return nil
	}
	if bytes.IndexByte(b, '\\') < 0 && utf8.Valid(b) { // no escapes to decode
		*r = RefText(bytes.Trim(b, `"`))
		return nil
	}
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	*r = RefText(s)
	return nil
}

// Reference returns the FormRef of a request that has one.
func (r *FormRef) Reference() *FormRef { return r }

// Reached returns whom the request is for, as the caller names them.
func (r *SendRequest) Reached() []*string {
	return reached(&r.Recipient, r.Recipients, &r.Escalate)
}

// Reached returns whom the request is for, as the caller names them.
func (r *ScheduleRequest) Reached() []*string {
	return reached(&r.Recipient, r.Recipients, &r.Escalate)
}

// reached returns the recipients of a message, and who gets it if it is not acknowledged. Of more than a message has it returns none:
// such a request is refused.
func reached(first *string, others []string, escalate *string) []*string {
	if len(others) > parley.MaxRecipients {
		return nil
	}
	all := []*string{first, escalate}
	for i := range others {
		all = append(all, &others[i])
	}
	return all
}

// Reached returns whom the request is for, as the caller names that.
func (r *FormRequest) Reached() []*string { return []*string{&r.To} }

// Reached returns whom the request is for, as the caller names that.
func (r *CapabilityRequest) Reached() []*string { return []*string{&r.To} }

// Reached returns whom the request is for, as the caller names that.
func (r *ForwardFormRequest) Reached() []*string { return []*string{&r.Recipient} }
