package parley

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"parley/capabilities"
	"parley/events"
)

// Permission is what an approval asks for: that an agent may call Tool with Input. Reason and Part are words of the agent
// itself, which nothing has checked: whoever shows them says so.
type Permission struct {
	Tool   string `json:"tool"`
	Input  string `json:"input"`            // a JSON document, as the agent wrote it
	Folder string `json:"folder,omitempty"` // where the call is made: an absolute path; "" if that is not known
	Reason string `json:"reason,omitempty"` // why it wants to make the call
	Part   string `json:"part,omitempty"`   // the part of the agent that makes the call, such as a subagent

	Session string `json:"session,omitempty"` // of a coding agent: the session that makes the call, as the node calls it

	Offers []Offer `json:"offers,omitempty"` // the standing rules that an answer may make, that for the very call first

	Passkey bool `json:"passkey,omitempty"` // who allows it has to sign that with a passkey

	Use *AskedUse `json:"use,omitempty"` // of a resource, which asks for it; nil for the call of an agent
}

// AskedUse is what the node says of a use that a resource asks about.
type AskedUse = events.AskedUse

// Offer is a standing rule that an answer may make. The answer names it by its ID.
type Offer = events.Offer

// Digest returns the digest of all that is shown of the permission, in hexadecimal. Who decides names by it what was shown.
func (p *Permission) Digest() string {
	sum := p.Hash()
	return hex.EncodeToString(sum[:])
}

// Hash returns the digest as bytes.
func (p *Permission) Hash() (sum events.Hash) {
	before, after := p.Around()
	h := sha256.New()
	io.WriteString(h, before) //nolint:errcheck // a hash takes all
	appendParts(h, p.Input)
	io.WriteString(h, after) //nolint:errcheck // as above
	return events.Hash(h.Sum(nil))
}

// Around returns what the digest covers before the input and after it. Between them are the length of the input in
// bytes, a colon and the input. By this a page tells the digest of another input.
func (p *Permission) Around() (before, after string) {
	var b strings.Builder
	appendParts(&b, p.Tool)
	before = b.String()
	b.Reset()
	appendParts(&b, p.Folder, p.Reason, p.Part, p.Session)
	for _, o := range p.Offers {
		covers, err := json.Marshal(o.Rule)
		if err != nil { // a structure of texts always has a JSON form
			panic(err)
		}
		appendParts(&b, o.ID, o.Words, string(covers))
	}
	if u := p.Use; u != nil {
		appendParts(&b, "use", u.By.String(), u.Holder, u.Through, string(u.Kind), u.Name, u.Called)
	}
	if p.Passkey {
		appendParts(&b, "passkey")
	}
	return before, b.String()
}

// Call returns a key that is the same for the same call: of one tool with one input in one folder, whatever is said of it.
// Equal calls are shown and decided as one. Each decision has the Digest of its own.
func (p *Permission) Call() string {
	h := sha256.New()
	appendParts(h, p.Tool, p.Input, p.Folder)
	return hex.EncodeToString(h.Sum(nil))
}

// IsSameCall reports whether two permissions are for the same call: whether they have the same key as Call returns it.
func (p *Permission) IsSameCall(o *Permission) bool {
	return p.Tool == o.Tool && p.Folder == o.Folder && p.Input == o.Input
}

// Caller returns who makes a call, if the asker is the resource that is used: zero for any other call. Uses of several are never decided as one.
func (p *Permission) Caller() capabilities.ID {
	if p.Use != nil {
		return p.Use.By
	}
	return capabilities.ID{}
}

// appendParts writes texts so that no two lists of them are written alike.
func appendParts(w io.Writer, parts ...string) {
	for _, part := range parts {
		fmt.Fprintf(w, "%d:%s", len(part), part) //nolint:errcheck // a hash takes all
	}
}
