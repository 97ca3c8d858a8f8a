package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strconv"
	"strings"

	"parley/actors/view"
	"parley/events"
)

// dialectForm is a form of a dialect in the agent's mailbox.
type dialectForm struct {
	Asked events.Origin
	view.Message
}

// dialectOf returns a form with its origin, if it is one of a dialect. All approvals are, whoever asked them.
func dialectOf(e view.Message) (f dialectForm, ok bool) {
	f.Message = e
	if e.Origin != nil {
		f.Asked = *e.Origin
	}
	if e.Type == string(events.Approval) {
		f.Asked.Dialect = approvalDialect
		return f, true
	}
	return f, f.Asked.Dialect != "" && f.Asked.Dialect != approvalDialect
}

// keyPrefix begins the idempotency keys of forms of dialects.
const keyPrefix = "parley:"

// maxKey is the longest idempotency key, in bytes.
const maxKey = 255

// keyOf returns the idempotency key of a form: the asker's names for it.
func keyOf(o events.Origin) string {
	key := keyPrefix + o.Dialect
	for _, name := range []string{o.Session, o.ID, o.Run, o.Agent, strconv.FormatUint(o.Turn, 10)} {
		key += "/" + url.PathEscape(name)
	}
	if len(key) > maxKey {
		digest := sha256.Sum256([]byte(key))
		key = keyPrefix + o.Dialect + ":" + hex.EncodeToString(digest[:])
	}
	return key
}

// idOfKey returns the asker's ID in a key of a dialect; "" if it has none, or was too long to stand in it.
func idOfKey(dialect, key string) string {
	rest, ok := strings.CutPrefix(key, keyPrefix+dialect+"/")
	if parts := strings.Split(rest, "/"); ok && len(parts) > 1 {
		if id, err := url.PathUnescape(parts[1]); err == nil {
			return id
		}
	}
	return ""
}
