package client

import (
	"crypto/rand"
	"strconv"

	"github.com/oklog/ulid/v2"

	"parley/capabilities"
	"parley/gateway/api"
)

// ID names an agent, message, form, promise or grant anywhere: {ULID}@{node}. For a message of the client's own agent, its
// Number can be used in place of the ID.
type ID string

// Number returns the number of a message in its agent's own mailbox, for use as an ID.
func Number(n uint64) ID { return ID(strconv.FormatUint(n, 10)) }

// refTo returns the part of a request that names a message.
func refTo(id ID) api.FormRef { return api.RefTo(string(id)) }

// idOf returns the client's form of an ID; "" for the zero ID.
func idOf(id capabilities.ID) ID {
	if id.IsZero() {
		return ""
	}
	return ID(id.String())
}

// NewKey returns a new, unique idempotency key: a ULID.
func NewKey() string {
	var entropy [10]byte
	_, _ = rand.Read(entropy[:]) // it never fails
	var u ulid.ULID
	_ = u.SetTime(ulid.Now())    // it fails in some thousand years
	_ = u.SetEntropy(entropy[:]) // it is as long as it has to be
	return u.String()
}

// Ref is a live reference in an answer or message. In an answer that is sent, a name that the answerer holds can be used in
// its place. Knowing a Ref gives no authority: the node checks what the agent holds.
type Ref struct {
	Target ID     `json:"$cap"`
	Kind   string `json:"kind"` // agent, form, message, promise, resolver, grant, blob or node
	Grant  ID     `json:"grant,omitempty"`
}
