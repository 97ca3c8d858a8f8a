package acp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/coder/acp-go-sdk"

	"parley/actors/runtime"
	"parley/internal/elicitation"
)

// elicitRequest is an agent's question to the user.
type elicitRequest struct {
	SessionID string             `json:"sessionId"`
	Mode      string             `json:"mode"`
	Message   string             `json:"message"`
	Schema    elicitation.Schema `json:"requestedSchema"`
}

// elicit asks a question of an agent. The response tells apart answered, declined and undecided.
func elicit(ctx context.Context, t *turn, params json.RawMessage) (any, error) {
	var r elicitRequest
	if err := t.parse(params, &r, &r.SessionID); err != nil {
		return nil, err
	}
	if r.Mode != "" && r.Mode != "form" {
		return nil, acp.NewInvalidParams("only forms can be asked for")
	}
	fields, err := r.Schema.Fields()
	if err != nil {
		return nil, acp.NewInvalidParams(err.Error())
	}
	t.settle(ctx)
	q := runtime.Question{ID: t.questionID(params), Title: r.Schema.Title, Description: r.Message, Fields: fields}
	if q.Description == "" {
		q.Description = r.Schema.Description
	}
	a, err := t.host.Ask(ctx, q)
	switch {
	case t.isEnding():
		return acp.NewUnstableCreateElicitationResponseCancel(), nil
	case err != nil:
		return nil, err
	case a.Status == "answered":
		return accept(a.Values)
	case a.Status == "declined":
		return acp.NewUnstableCreateElicitationResponseDecline(), nil
	}
	return acp.NewUnstableCreateElicitationResponseCancel(), nil
}

// accepted is an answer with the numbers as they were given.
type accepted struct {
	Action  string                     `json:"action"`
	Content map[string]json.RawMessage `json:"content"`
}

func accept(values []byte) (any, error) {
	content, err := elicitation.Content(values)
	if err != nil {
		return nil, err
	}
	return accepted{"accept", content}, nil
}

// questionID returns the same ID for the same question, also after the agent was started again. The protocol has none.
func (t *turn) questionID(params json.RawMessage) string {
	var asked map[string]json.RawMessage
	if json.Unmarshal(params, &asked) != nil {
		asked = nil
	}
	h := sha256.New()
	for _, name := range []string{"message", "requestedSchema"} {
		h.Write([]byte(compact(asked[name])))
		h.Write([]byte{0})
	}
	digest := hex.EncodeToString(h.Sum(nil)[:16])
	t.asked.Lock()
	defer t.asked.Unlock()
	t.elicited[digest]++
	return fmt.Sprintf("elicitation-%s-%d", digest, t.elicited[digest])
}
