package gateway

import (
	"bytes"
	"cmp"
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
)

// ParseError is the code for a frame that is not JSON. It is the one code that only frames have.
const ParseError parley.Code = "PARSE_ERROR"

// maxRequestID bounds what a client may call its requests and subscriptions, in bytes.
const maxRequestID = 256

// head is what a frame says of itself.
type head struct {
	Type string `json:"type"`
	regarding
}

// regarding is what a frame is about. An error says it again.
type regarding struct {
	RequestID      json.RawMessage `json:"requestId,omitempty"`
	ID             json.RawMessage `json:"id,omitempty"` // of the dialect that has it in place of requestId
	SubscriptionID json.RawMessage `json:"subscriptionId,omitempty"`
	QuestionID     json.RawMessage `json:"questionId,omitempty"`
}

// readHead reads what a frame says of itself. It refuses with PARSE_ERROR, TOO_LARGE or INVALID_ARGUMENT, and
// gives as much as can be told then.
func readHead(kind websocket.MessageType, text []byte) (h head, err error) {
	switch {
	case kind != websocket.MessageText:
		return h, parley.Refuse(parley.InvalidArgument, "frames are text")
	case !utf8.Valid(text):
		return h, parley.Refuse(ParseError, "the frame is not valid UTF-8")
	case capabilities.Nesting(text) > maxDepth:
		return h, parley.Refuse(parley.TooLarge, "a frame may be nested %d deep at most", maxDepth)
	case !json.Valid(text):
		return h, parley.Refuse(ParseError, "the frame is not JSON")
	}
	if err := json.Unmarshal(text, &h); err != nil {
		return head{}, parley.Refuse(parley.InvalidArgument, `a frame is an object: {"type":…,"requestId":…}`)
	}
	if !isBrief(h.RequestID) {
		h.RequestID = nil
		err = parley.Refuse(parley.InvalidArgument, "a requestId is a string or a number of %d bytes at most", maxRequestID)
	}
	for _, other := range []*json.RawMessage{&h.ID, &h.SubscriptionID, &h.QuestionID} {
		if !isBrief(*other) {
			*other = nil // it is not said again
		}
	}
	return h, err
}

// requestIDOf returns the requestId of a frame that is refused before it was looked at, if it has one.
func requestIDOf(text []byte) json.RawMessage {
	var h struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	if len(text) > bodyFree || json.Unmarshal(text, &h) != nil || !isBrief(h.RequestID) {
		return nil
	}
	return h.RequestID
}

// calledFor gives the ID that an answer is for, which may stand within it. An error is about that.
func (h *head) calledFor(within, outside string) string {
	id := cmp.Or(within, outside)
	if raw, err := json.Marshal(id); err == nil && isBrief(raw) {
		h.ID = raw
	}
	return id
}

// isBrief reports whether a JSON text is a string or number to call something by.
func isBrief(raw json.RawMessage) bool {
	if len(raw) == 0 {
		return true
	}
	return len(raw) <= maxRequestID && (raw[0] == '"' || raw[0] == '-' || '0' <= raw[0] && raw[0] <= '9')
}

// failureFrame is how an error stands in a frame.
type failureFrame struct {
	Type string `json:"type"` // error
	regarding
	Code    parley.Code       `json:"code"`
	Message string            `json:"message"`
	Hint    string            `json:"hint,omitempty"`
	Fields  map[string]string `json:"fields,omitempty"`
	TS      capabilities.Time `json:"ts"`
}

func failed(about regarding, err error) failureFrame {
	e := shown(err)
	if about.RequestID == nil {
		about.RequestID = about.ID
	}
	return failureFrame{
		Type: "error", regarding: about, Code: e.Code, Message: e.Message, Hint: e.Hint, Fields: e.Fields,
		TS: capabilities.At(time.Now()),
	}
}

// responseHead is what stands in a response before what it says.
type responseHead struct {
	Type      string          `json:"type"`
	RequestID json.RawMessage `json:"requestId,omitempty"`
}

// messageBody is the body of a response that is a message, which has a type of its own.
type messageBody struct {
	Message view.Message `json:"message"`
}

// responseText writes the response to a request: what an operation gives, with the frame's own members beside it.
func responseText(operation string, h head, resp any) ([]byte, error) {
	if e, ok := resp.(view.Message); ok {
		resp = messageBody{e}
	}
	opening, err := frameText(responseHead{Type: operation + "_response", RequestID: h.RequestID})
	if err != nil {
		return nil, err
	}
	body, err := frameText(resp)
	if err != nil {
		return nil, err
	}
	if bytes.Equal(body, []byte("{}")) {
		return opening, nil
	}
	text := append(opening[:len(opening)-1], ',')
	return append(text, body[1:]...), nil
}

// frameText writes a frame.
func frameText(frame any) ([]byte, error) {
	var buf bytes.Buffer
	if err := encode(&buf, frame); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}
