package client

import (
	"crypto/rand"
	"strconv"

	"github.com/oklog/ulid/v2"

	"parley/capabilities"
	"parley/gateway/api"
)

// ID names an agent, message, form, promise or grant anywhere: {ULID}@{node}. Where a message of the client's own agent
// is meant, its Number does as well.
type ID string

// Number gives what stands for the ID of a message in its agent's own mailbox.
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

// NewKey makes an idempotency key that is like no other: a ULID.
func NewKey() string {
	var entropy [10]byte
	_, _ = rand.Read(entropy[:]) // it never fails
	var u ulid.ULID
	_ = u.SetTime(ulid.Now())    // it fails in some thousand years
	_ = u.SetEntropy(entropy[:]) // it is as long as it has to be
	return u.String()
}

// Ref is a live reference as an answer or message carries it, and as it is given in one: to who gives a reference, a name
// that it holds does as well. Knowing a Ref gives no authority: the node checks what is held.
type Ref struct {
	Target ID     `json:"$cap"`
	Kind   string `json:"kind"` // agent, form, message, promise, resolver, grant, blob or node
	Grant  ID     `json:"grant,omitempty"`
}
