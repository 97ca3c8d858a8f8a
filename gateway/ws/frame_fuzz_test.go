package ws

import (
	"encoding/json"
	"testing"

	"parley"
	"parley/gateway/api"
	"parley/gateway/compat"
	"parley/internal/websocket"
)

// FuzzHead reads any text as the head of a frame. It is taken, or refused with a code of the edge's; what an error repeats is
// brief, and is JSON.
func FuzzHead(f *testing.F) {
	for _, text := range []string{
		`{"type":"send_request","requestId":1,"recipient":"bob"}`, `{"type":"ask_request","id":"1","payload":{"prompt":"?"}}`, `[]`, `{"requestId":{}}`,
		`{"type":"unsubscribe","requestId":"u","subscriptionId":"s0"}`, `{"type":5}`, "{\"type\":\"\xff\"}", `{"questionId":1e999}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		h, err := readHead(websocket.Text, text)
		switch parley.CodeOf(err) {
		case ParseError, parley.TooLarge, parley.InvalidArgument:
		default:
			if err != nil {
				t.Errorf("refused with %v", err)
			}
		}
		for _, echoed := range []json.RawMessage{h.RequestID, h.ID, h.SubscriptionID, h.QuestionID, requestIDOf(text)} {
			if echoed != nil && (!json.Valid(echoed) || !compat.IsBrief(echoed)) {
				t.Errorf("%.100q is repeated", echoed)
			}
		}
		if err == nil {
			return
		}
		if _, err := frameText(compat.Failed(h.Regarding, err)); err != nil && len(text) <= api.MaxBody {
			t.Errorf("the refusal cannot be written: %v", err)
		}
	})
}
