package gateway

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/nats-io/nats.go"
	natsmicro "github.com/nats-io/nats.go/micro"

	"parley"
	"parley/gateway/api"
	"parley/gateway/client"
	"parley/gateway/edgetest"
	"parley/gateway/mux"
	"parley/gateway/ws"
)

// TestEdges plays the same scenes at each edge of one node.
func TestEdges(t *testing.T) {
	t.Parallel()
	edgetest.CheckTable(t)
	system, _ := runNATS(t, anyPort, 8<<20)
	h := openLimitedNATSTestServer(t, system.ClientURL(), api.Limits{api.LimitRate: 1 << 20}, nil)
	e := &edges{h: h, web: http.Client{Transport: &http.Transport{}}, socket: http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return client.Dial(ctx, h.server.socketPath) },
	}}, sessions: map[string]*websocket.Conn{}}
	t.Cleanup(e.close)
	inFrame := map[string]parley.Code{ // a request is part of a frame, which is read first
		"not JSON": ws.ParseError, "two requests": ws.ParseError, "not an object": "", "an empty request": "",
		"too large": "", "not UTF-8": "", // each ends the session: no frame may be so
		"too deep": parley.TooLarge, "an operation that there is not": parley.InvalidArgument, // of a frame
	}
	asMaps := map[string]parley.Code{"two requests": "", "not UTF-8": ""} // no map is either
	for _, edge := range []edgetest.Edge{
		{Name: "tcp", Call: e.overTCP},
		{Name: "socket", Call: e.overSocket, Local: true, Differs: withoutTokens()},
		{Name: "local", Call: e.overSocketWithToken},
		{Name: "mux", Call: e.overMux("unix", mux.AppendJSON[string])},
		{Name: "binary", Call: e.overMux("tcp", mux.AppendJSON[string])},
		{Name: "maps", Call: e.overMux("tcp", asMap), Differs: asMaps},
		{Name: "ws", Call: e.overWebSocket, Differs: inFrame},
		{Name: "nats", Call: e.overNATS},
		{Name: "mcp", Call: e.overMCP, Shapes: toolShapes(), Differs: map[string]parley.Code{
			"a wait of less than nothing": parley.InvalidArgument, // its argument has another name
			// Their hints name tools.
			"a message to somebody and to nobody": parley.UnknownRecipient, "an unknown recipient": parley.UnknownRecipient,
			"a message to nobody": parley.UnknownRecipient, "a form that there is not": parley.NoSuchMessage, "a use of an agent": parley.UnknownName,
		}},
	} {
		t.Run(edge.Name, func(t *testing.T) {
			edgetest.Run(t, edge, edgetest.Caller{Token: h.tokens["host"]}, filepath.Join("testdata", "edges.txt"))
		})
	}
}

// withoutTokens returns the scenes that the node's own socket has not, where nobody shows a token.
func withoutTokens() map[string]parley.Code {
	none := map[string]parley.Code{}
	for _, name := range []string{
		"no token", "a token of nobody", "a token with another secret", "a token that was revoked", "no scope to ask", "no scope to answer",
		"no scope to read", "no scope to manage", "an operation of the node", "as another agent", "not JSON", "two requests", "not an object",
	} {
		none[name] = ""
	}
	none["a program of an agent's own"] = parley.NotPermitted // with another reason: the caller is no host
	return none
}

// edges calls one node in each way.
type edges struct {
	h           *natsTestServer
	web, socket http.Client
	sessions    map[string]*websocket.Conn // by kind and token
	last        uint64
}

func (e *edges) close() {
	for _, conn := range e.sessions {
		_ = conn.CloseNow()
	}
	e.web.CloseIdleConnections()
	e.socket.CloseIdleConnections()
}

func (e *edges) overTCP(ctx context.Context, c edgetest.Caller, operation, request string) ([]byte, error) {
	return post(ctx, &e.web, "http://"+e.h.server.Address()+api.CallPath+operation, c.Token, request)
}

// overSocket calls as the node's host, who acts for the caller.
func (e *edges) overSocket(ctx context.Context, c edgetest.Caller, operation, request string) ([]byte, error) {
	if rest, ok := strings.CutPrefix(request, "{"); (ok || request == "") && c.As != "" && !strings.Contains(request, `"as":`) {
		separator := ","
		if strings.HasPrefix(rest, "}") {
			separator = ""
		}
		if request == "" {
			rest, separator = "}", ""
		}
		request = fmt.Sprintf(`{"as":%q%s%s`, c.As, separator, rest)
	}
	return post(ctx, &e.socket, "http://parley"+api.CallPath+operation, "", request)
}

// overSocketWithToken calls on the node's own socket as the caller. A request without the header would be the host's.
func (e *edges) overSocketWithToken(ctx context.Context, c edgetest.Caller, operation, request string) ([]byte, error) {
	return post(ctx, &e.socket, "http://parley"+api.CallPath+operation, cmp.Or(c.Token, " "), request)
}

func post(ctx context.Context, h *http.Client, address, token, request string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(request))
	if err != nil {
		return nil, err
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := h.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	err = refusalIn(resp.StatusCode >= 400, text)
	if want := api.HTTPStatus(parley.CodeOf(err)); err != nil && resp.StatusCode != want && resp.StatusCode != http.StatusNotFound {
		return nil, fmt.Errorf("the status is %d, want %d: %w", resp.StatusCode, want, err)
	}
	return text, err
}

// refusalIn returns the error in a response, if that is a failure.
func refusalIn(failed bool, text []byte) error {
	if !failed {
		return nil
	}
	var f api.Failure
	if err := json.Unmarshal(text, &f); err != nil || f.Error == nil {
		return fmt.Errorf("a failure without an error: %s", text)
	}
	return f.Error
}

func (e *edges) overNATS(_ context.Context, c edgetest.Caller, operation, request string) ([]byte, error) {
	authorization := ""
	if c.Token != "" {
		authorization = "Bearer " + c.Token
	}
	m, err := e.h.ask(operation, authorization, request)
	if errors.Is(err, nats.ErrNoResponders) {
		return nil, parley.Refuse(parley.InvalidArgument, "there is no operation %.80q", operation) // as a client says
	}
	if err != nil {
		return nil, err
	}
	status := m.Header.Get(natsmicro.ErrorCodeHeader)
	err = refusalIn(status != "", m.Data)
	code := parley.CodeOf(err)
	if err != nil && (status != fmt.Sprint(api.HTTPStatus(code)) || !strings.HasPrefix(m.Header.Get(natsmicro.ErrorHeader), string(code)+": ")) {
		return nil, fmt.Errorf("the headers are %v: %w", m.Header, err)
	}
	return m.Data, err
}

// session returns the open session of a kind with a token, or opens it.
func (e *edges) session(ctx context.Context, kind, token string, dial func(*websocket.DialOptions) (*websocket.Conn, *http.Response, error)) (*websocket.Conn, error) {
	key := kind + " " + token
	if conn := e.sessions[key]; conn != nil {
		return conn, nil
	}
	options := &websocket.DialOptions{HTTPHeader: http.Header{}}
	if token != "" {
		options.HTTPHeader.Set("Authorization", "Bearer "+token)
	}
	conn, resp, err := dial(options)
	if err != nil {
		if resp == nil {
			return nil, err
		}
		text, _ := io.ReadAll(resp.Body)
		return nil, refusalIn(true, text)
	}
	conn.SetReadLimit(16 << 20)
	e.sessions[key] = conn
	return conn, nil
}

// exchange sends a message and reads the answer. A session that the node has ended is opened again once.
func (e *edges) exchange(ctx context.Context, kind, token string, t websocket.MessageType, message []byte, dial func(*websocket.DialOptions) (*websocket.Conn, *http.Response, error)) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for try := 0; ; try++ {
		conn, err := e.session(ctx, kind, token, dial)
		if err != nil {
			return nil, err
		}
		if err = conn.Write(ctx, t, message); err == nil {
			var answer []byte
			for err == nil {
				if _, answer, err = conn.Read(ctx); err == nil && (t == websocket.MessageBinary || bytes.Contains(answer, []byte(`"requestId"`)) || bytes.Contains(answer, []byte(`"error"`))) {
					return answer, nil
				}
			}
		}
		_ = conn.CloseNow()
		delete(e.sessions, kind+" "+token)
		if try > 0 || websocket.CloseStatus(err) == websocket.StatusMessageTooBig {
			return nil, err
		}
	}
}

func (e *edges) overWebSocket(ctx context.Context, c edgetest.Caller, operation, request string) ([]byte, error) {
	frame := fmt.Sprintf(`{"type":"%s_request","requestId":1`, operation)
	if rest, ok := strings.CutPrefix(request, "{"); ok && rest != "}" {
		frame += "," + rest
	} else {
		frame += "}"
	}
	answer, err := e.exchange(ctx, "ws", c.Token, websocket.MessageText, []byte(frame), func(o *websocket.DialOptions) (*websocket.Conn, *http.Response, error) {
		return websocket.Dial(ctx, "ws://"+e.h.server.Address()+api.WebSocketPath, o)
	})
	if err != nil {
		return nil, err
	}
	return unframed(operation, answer)
}

// unframed returns the response of an operation in a frame, or its error.
func unframed(operation string, frame []byte) ([]byte, error) {
	var f map[string]json.RawMessage
	if err := json.Unmarshal(frame, &f); err != nil {
		return nil, err
	}
	if string(f["type"]) == `"error"` {
		var e parley.Error
		if err := json.Unmarshal(frame, &e); err != nil || e.Code == "" {
			return nil, fmt.Errorf("an error without a code: %s", frame)
		}
		return nil, &e
	}
	if string(f["type"]) != fmt.Sprintf("%q", operation+"_response") || string(f["requestId"]) != "1" {
		return nil, fmt.Errorf("another answer: %s", frame)
	}
	if message, ok := f["message"]; ok && bytes.HasPrefix(message, []byte("{")) {
		return message, nil
	}
	delete(f, "type")
	delete(f, "requestId")
	return json.Marshal(f)
}

// asMap appends the map of a request, or the JSON of one that is no object.
func asMap(b []byte, request string) []byte {
	body, err := mux.FromJSON([]byte(request))
	if err != nil {
		return mux.AppendJSON(b, request)
	}
	return append(b, body...)
}

// overMux returns a call by binary frames, on the node's own socket or at /ws. On the socket the caller signs in.
func (e *edges) overMux(network string, body func([]byte, string) []byte) func(context.Context, edgetest.Caller, string, string) ([]byte, error) {
	return func(ctx context.Context, c edgetest.Caller, operation, request string) ([]byte, error) {
		dial := func(o *websocket.DialOptions) (*websocket.Conn, *http.Response, error) {
			o.Subprotocols = []string{mux.Protocol}
			if network != "unix" {
				return websocket.Dial(ctx, "ws://"+e.h.server.Address()+api.WebSocketPath, o)
			}
			o.HTTPClient, o.HTTPHeader = &e.socket, nil
			return websocket.Dial(ctx, "ws://parley"+api.WebSocketPath, o)
		}
		agent := uint64(0)
		if network == "unix" {
			token, err := json.Marshal(map[string]string{"token": c.Token})
			if err != nil {
				return nil, err
			}
			in, err := e.frame(ctx, network, "", mux.Frame{Kind: mux.SignIn, Body: mux.AppendJSON(nil, token)}, dial)
			if err != nil {
				return nil, err
			}
			var admitted struct{ Agent uint64 }
			if err := json.Unmarshal(in, &admitted); err != nil {
				return nil, err
			}
			agent, c.Token = admitted.Agent, ""
		}
		return e.frame(ctx, network, c.Token, mux.Frame{Kind: mux.Call, Agent: agent, Operation: operation, Body: body(nil, request)}, dial)
	}
}

func (e *edges) frame(ctx context.Context, kind, token string, f mux.Frame, dial func(*websocket.DialOptions) (*websocket.Conn, *http.Response, error)) (text []byte, err error) {
	e.last++
	f.ID = e.last
	answer, err := e.exchange(ctx, kind, token, websocket.MessageBinary, mux.AppendClient(nil, f), dial)
	if err != nil {
		return nil, err
	}
	err = mux.ReadNode(answer, func(got mux.Frame) error {
		if text, err = mux.ToJSON(got.Body); err != nil {
			return err
		}
		switch {
		case got.ID != f.ID:
			return fmt.Errorf("frame %d is answered as %d", f.ID, got.ID)
		case got.Kind == mux.Refusal:
			var refused parley.Error
			if err := json.Unmarshal(text, &refused); err != nil {
				return err
			}
			return &refused
		}
		return nil
	})
	return text, err
}
