package api

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"parley"
)

// Subject says which message a request is about: by its number in the agent's mailbox, or by the ID of
// the message, form or promise.
type Subject struct {
	Number Which `json:"number,omitempty"`
	ID     Which `json:"id,omitempty"`
}

// About gives the Subject that a person means by s.
func About(s string) Subject {
	if s != "" && strings.Trim(s, "0123456789") == "" {
		return Subject{Number: Which(s)}
	}
	return Subject{ID: Which(s)}
}

// Which is a number or an ID as text. In JSON it may be a number too.
type Which string

// UnmarshalJSON reads a JSON number or string.
func (r *Which) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] != '"' {
		var n json.Number
		if err := json.Unmarshal(b, &n); err != nil {
			return parley.Refuse(parley.InvalidArgument, "%.40q is neither a number nor an ID", b)
		}
		*r = Which(n)
		return nil
	}
	if bytes.IndexByte(b, '\\') < 0 && utf8.Valid(b) { // it is what it says
		*r = Which(bytes.Trim(b, `"`))
		return nil
	}
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	*r = Which(s)
	return nil
}
