package gateway

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"parley"
	"parley/actors/view"
	"parley/events"
	"parley/mailbox/form"
)

// mark says of a form which dialect it was asked in, and what that has to know of it beyond what forms have. It
// stands as a comment in the schema of the form's first field: so it goes wherever the form goes, is there after
// every restart, and asks nothing of an answer.
//
// Whoever can ask can write any mark. It gives no authority: it is read as the words of the asker, as all else in
// a form.
type mark struct {
	Dialect string `json:"dialect"`
	ID      string `json:"id,omitempty"`      // the asker's own for the question
	Session string `json:"session,omitempty"` // of a question
	Submit  string `json:"submit,omitempty"`  // label of its button
	Run     string `json:"run,omitempty"`     // of an input
	Agent   string `json:"agent,omitempty"`   // the run's name for who asks
	Turn    int    `json:"turn,omitempty"`    // which input of the agent's in the run it is
	Bare    bool   `json:"bare,omitempty"`    // the description is none of the asker's

	// of an approval, whose form is marked by its kind alone
	Tool  string `json:"-"`
	Input string `json:"-"`
}

const markPrefix = "parley:"

// on gives fields with the mark.
func (m mark) on(fields []events.Field) ([]events.Field, error) {
	if len(fields) == 0 {
		return fields, nil // which is refused
	}
	text, err := frameText(m)
	if err != nil {
		return nil, err
	}
	schema, err := frameText(map[string]string{"$comment": markPrefix + string(text)})
	if err != nil {
		return nil, err
	}
	if len(schema) > form.MaxPattern { // and who is asked is shown it whole, or not at all
		return nil, parley.Refuse(parley.TooLarge, "what is asked takes %d bytes, over the limit of %d", len(schema), form.MaxPattern)
	}
	fields[0].Pattern = schema
	return fields, nil
}

// markOf reads the mark of a form, if it has one.
func markOf(e view.Message) (m mark, ok bool) {
	if e.Type == string(events.Approval) {
		return mark{Dialect: approvalDialect, Tool: e.Title, Input: e.Description}, true
	}
	if len(e.Fields) == 0 || !bytes.Contains(e.Fields[0].Pattern, []byte(markPrefix)) {
		return m, false
	}
	var schema struct {
		Comment string `json:"$comment"`
	}
	if json.Unmarshal(e.Fields[0].Pattern, &schema) != nil {
		return m, false
	}
	text, ok := strings.CutPrefix(schema.Comment, markPrefix)
	if !ok || json.Unmarshal([]byte(text), &m) != nil {
		return mark{}, false
	}
	return m, m.Dialect != approvalDialect // which no plain form is
}

// maxKey is how long an idempotency key may be, in bytes.
const maxKey = 255

// key gives the idempotency key of the form: what the asker calls it.
func (m mark) key() string {
	key := markPrefix + m.Dialect
	for _, name := range []string{m.Session, m.ID, m.Run, m.Agent, strconv.Itoa(m.Turn)} {
		key += "/" + url.PathEscape(name)
	}
	if len(key) > maxKey {
		digest := sha256.Sum256([]byte(key))
		key = markPrefix + m.Dialect + ":" + hex.EncodeToString(digest[:])
	}
	return key
}

// idOfKey gives the asker's ID in a key of a dialect; "" if it has none, or was too long to stand in it.
func idOfKey(dialect, key string) string {
	rest, ok := strings.CutPrefix(key, markPrefix+dialect+"/")
	if parts := strings.Split(rest, "/"); ok && len(parts) > 1 {
		if id, err := url.PathUnescape(parts[1]); err == nil {
			return id
		}
	}
	return ""
}
