package api

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"parley"
)

// FormRef names the form or other message that a request is about: by its number in the agent's mailbox, or by the ID of
// the message, form or promise.
type FormRef struct {
	Number RefText `json:"number,omitempty"`
	ID     RefText `json:"id,omitempty"`
}

// RefTo returns the FormRef that a person means by s.
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
	if bytes.IndexByte(b, '\\') < 0 && utf8.Valid(b) { // it is what it says
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
