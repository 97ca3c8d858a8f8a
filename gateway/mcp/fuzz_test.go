package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley"
	"parley/gateway/api"
	"parley/gateway/sanitize"
)

// recorder is a guest of a node without messages: it refuses all operations, and notes the requests that tools make.
type recorder struct {
	*guest
	requests [][]byte
}

// Call implements Agent. It encodes requests as a client of the node does.
func (r *recorder) Call(_ context.Context, operation string, request, _ any) error {
	if count, ok := request.(api.ReadMailRequest); ok && count.Count {
		return nil
	}
	text, err := json.Marshal(request)
	if err != nil {
		return err
	}
	r.requests = append(r.requests, text)
	return parley.Refuse(parley.NoSuchMessage, "there is nothing for %s", operation)
}

// FuzzToolArguments calls each tool with any arguments. A call that reaches the node has a request that the node reads.
// Errors have codes, and texts that can be shown.
func FuzzToolArguments(f *testing.F) {
	names := slices.Sorted(maps.Keys(tools()))
	for i := range names {
		for _, text := range []string{
			`{"message":"Which?","fields":[{"name":"a","type":"select","options":["x","y"]}],"recipient":"@me","expiresInSeconds":1e308,"remind":["1h"],"escalate":[{"after":"1h","to":"bob"}]}`,
			`{"handle":"01ARZ3NDEKTSV4RRFFQ69G5FAV","timeoutSeconds":-1}`, `{"form":1,"values":{"a":[1,{"$bytes":"AA=="}]},"revision":3}`, `{"form":{},"reason":"\u202e"}`, `{"values":"{\"a\":1}","limit":"5","fields":"[{\"name\":\"a\"}]"}`,
			`{"recipient":"bob","text":"hello"}`, `{"replyTo":"x","text":""}`, `{"view":"all","cursor":"9","limit":-1}`, `{"message":18446744073709551615}`,
			`{"labels":{"a":"b"},"statuses":["idle"]}`, `{"agent":"bob","timeoutSeconds":0}`, `{"\u202e":1}`, `[]`, ``, `null`,
			`{"form":"1","values":` + strings.Repeat(`{"a":`, 60) + `1` + strings.Repeat("}", 61), "{\"recipient\":\"bob\",\"text\":\"\xff\"}",
		} {
			f.Add(uint8(i), []byte(text))
		}
	}
	f.Fuzz(func(t *testing.T, nth uint8, arguments []byte) {
		name := names[int(nth)%len(names)]
		var log bytes.Buffer
		s, err := newServer(t.Context(), Options{Key: make([]byte, 32), Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		defer s.close()
		a := &recorder{guest: newGuest("a", 1)}
		all, err := definitions()
		if err != nil {
			t.Fatal(err)
		}
		definition := all[slices.IndexFunc(all, func(d *sdk.Tool) bool { return d.Name == name })]
		do := s.handler(func(sdk.Request) (Client, error) { return a, nil }, definition, tools()[name])
		r, err := do(t.Context(), &sdk.CallToolRequest{Params: &sdk.CallToolParamsRaw{Name: name, Arguments: arguments}})
		if err != nil || !r.IsError || log.Len() > 0 {
			t.Fatalf("%s: %+v, %v, logged: %s", name, r, err, &log)
		}
		if len(a.requests) > 0 && api.CheckBody(arguments) != nil {
			t.Errorf("%s reached the node with what no other edge takes: %.200q", name, arguments)
		}
		text := r.Content[0].(*sdk.TextContent).Text
		if !json.Valid([]byte(text)) || strings.ContainsFunc(text, sanitize.Hides) {
			t.Errorf("%s: it is refused with %q", name, text)
		}
	})
}

// FuzzMessage posts any body to the server over HTTP, as clients with and without sessions do. It is answered, not with an
// error of the server, and leaves nothing behind.
func FuzzMessage(f *testing.F) {
	initialize := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}}`
	call := `{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"list_inbox","arguments":{}}}`
	for _, text := range []string{
		initialize, call, "[" + call + "," + initialize + "]", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"\u202e"}}`, `{"jsonrpc":"2.0","id":1,"method":"prompts/list"}`, `{"jsonrpc":"2.0","id":{},"method":5}`,
		`{"jsonrpc":"2.0","id":1,"result":{}}`, `[]`, ``, `null`, "\xff", strings.Repeat("[", 5000), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":null}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"?"}}`,
	} {
		f.Add("", "", []byte(text))
		f.Add(inResults, "", []byte(text))
		f.Add("2025-06-18", "session", []byte(text))
	}
	h, err := NewHTTP(Options{Key: make([]byte, 32), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(h.Close)
	f.Fuzz(func(t *testing.T, version, session string, body []byte) {
		r := httptest.NewRequest(http.MethodPost, "/mcp", bytes.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set(versionHeader, version)
		if session != "" {
			r.Header.Set(sessionHeader, session)
		}
		w := httptest.NewRecorder()
		err := h.ServeAgent(w, withToken(r), &recorder{guest: newGuest("a", 4)})
		if code := parley.CodeOf(err); err != nil && code != parley.RateLimited {
			t.Fatalf("refused with %v", err)
		}
		if w.Code >= 500 {
			t.Errorf("answered with %d: %s", w.Code, w.Body)
		}
	})
}
