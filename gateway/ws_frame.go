package gateway

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/gateway/httpd"
)

// plainProtocol is a WebSocket subprotocol without a meaning. The server chooses it where a client offers it beside the
// one that has its token, and so does not send the token back.
const plainProtocol = "parley"

// serveWebSocket turns a request into a wsSession, and returns when that has ended.
func (s *Server) serveWebSocket(w http.ResponseWriter, r *http.Request) {
	if err := checkOrigin(r); err != nil {
		httpd.Refuse(w, err, http.StatusForbidden)
		return
	}
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		w.Header().Set("Upgrade", "websocket")
		httpd.Refuse(w, parley.Refuse(parley.InvalidArgument, "at %s there is a WebSocket", api.WebSocketPath), http.StatusUpgradeRequired)
		return
	}
	p := s.caller(r.Context())
	agent, err := s.backend.Agent(r.Context(), p, "")
	if err != nil {
		httpd.Refuse(w, err, 0)
		return
	}
	account := p.Account()
	if err := account.Take(api.KindWebSockets, 1); err != nil {
		httpd.Refuse(w, err, 0)
		return
	}
	defer account.Give(api.KindWebSockets, 1)
	s.wsSessions.Add(1)
	defer s.wsSessions.Done()
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		Subprotocols:       subprotocols(r),
		InsecureSkipVerify: true, // the origin was checked
	})
	if err != nil {
		return // and was told why
	}
	newWSSession(s, conn, p, agent).run()
}

// checkOrigin refuses with NOT_PERMITTED what another site's page sends. Browsers say whose page it is, and other
// programs say nothing. That an upgrade is a GET, which is let through elsewhere, makes it no safer: it changes
// nothing, but what comes after it does.
func checkOrigin(r *http.Request) error {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return nil
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host) {
		return errOtherSite
	}
	return nil
}

// subprotocols gives the one subprotocol to choose of those that a client offers, if any: a browser that offered
// some wants one.
func subprotocols(r *http.Request) []string {
	var chosen []string
	for _, line := range r.Header.Values("Sec-WebSocket-Protocol") {
		for offered := range strings.SplitSeq(line, ",") {
			offered = strings.TrimSpace(offered)
			if offered == plainProtocol {
				return []string{plainProtocol}
			}
			if strings.HasPrefix(offered, BearerProtocol) && chosen == nil {
				chosen = []string{offered}
			}
		}
	}
	return chosen
}

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
	case capabilities.Nesting(text) > api.MaxDepth:
		return h, parley.Refuse(parley.TooLarge, "a frame may be nested %d deep at most", api.MaxDepth)
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
	if len(text) > httpd.BodyFree || json.Unmarshal(text, &h) != nil || !isBrief(h.RequestID) {
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
	e := api.Shown(err)
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
	if err := httpd.Encode(&buf, frame); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}
