package a2a

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"parley/events"
	"parley/gateway/bridge"
	"parley/gateway/exchange/exchangetest"
	"parley/gateway/sanitize"
)

// FuzzA2ARequest sends any body to each method of the protocol. It is answered with JSON or a stream, or refused with an error
// that is not the node's. Nothing that is hidden is in the answer.
func FuzzA2ARequest(f *testing.F) {
	s, err := New(Options{
		Version: "test", Pushes: f.TempDir(), Network: bridge.Public, Log: slog.New(slog.DiscardHandler), Now: time.Now,
		Resume: func(context.Context, events.TokenRef) (Client, error) { return exchangetest.Client{}, nil },
	})
	if err != nil {
		f.Fatal(err)
	}
	task := exchangetest.Form.String()
	rest := []struct{ method, path string }{
		{"POST", "/message:send"}, {"POST", "/message:stream"}, {"GET", "/tasks"}, {"GET", "/tasks/" + task}, {"POST", "/tasks/" + task + ":cancel"},
		{"POST", "/tasks/" + task + ":subscribe"}, {"POST", "/tasks/" + task + "/pushNotificationConfigs"}, {"GET", "/tasks/" + task + "/pushNotificationConfigs"},
		{"DELETE", "/tasks/" + task + "/pushNotificationConfigs/y"}, {"GET", "/extendedAgentCard"}, {"POST", "/someone/message:send"},
	}
	message := `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hello"}]},
		"configuration":{"returnImmediately":true,"historyLength":-1,"taskPushNotificationConfig":{"url":"https://a.example/","authentication":{"scheme":"Bearer"}}}}`
	answer := `{"message":{"messageId":"n","taskId":"` + task + `","parts":[{"data":{"a":1e99,"n":[1,{"$cap":"x"}]}}],
		"metadata":{"urn:parley:a2a:form:1":{"form":"` + exchangetest.Question.String() + `","revision":1}}}}`
	for _, method := range []string{
		"SendMessage", "SendStreamingMessage", "GetTask", "ListTasks", "CancelTask", "SubscribeToTask", "CreateTaskPushNotificationConfig",
		"GetTaskPushNotificationConfig", "ListTaskPushNotificationConfigs", "DeleteTaskPushNotificationConfig", "GetExtendedAgentCard",
	} {
		for _, params := range []string{
			message, answer, `{"id":"` + task + `","taskId":"` + task + `","pageToken":"1","pageSize":9,"url":"https://[::1]/","historyLength":9}`, `null`, `[]`,
			`{"message":{"parts":[null]}}`, `{"message":{"messageId":"o","taskId":"` + task + `","parts":[{"text":"no"}]}}`,
		} {
			f.Add(uint8(0), `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`)
		}
	}
	for i := range rest {
		f.Add(uint8(i+1), message)
		f.Add(uint8(i+1), answer)
		f.Add(uint8(i+1), "{\"message\":{\"messageId\":\"\u202e\",\"taskId\":\"\\u0000\",\"parts\":[{\"url\":\"file:///\"}]}}")
	}
	f.Fuzz(func(t *testing.T, which uint8, body string) {
		method, path := http.MethodPost, Path
		if n := int(which) % (len(rest) + 1); n > 0 {
			method, path = rest[n-1].method, RESTPath+rest[n-1].path
		}
		if !json.Valid([]byte(body)) { // the edge refuses it before
			return
		}
		r := httptest.NewRequestWithContext(t.Context(), method, "http://a.example"+path, strings.NewReader(body))
		w := httptest.NewRecorder()
		s.Serve(w, r, exchangetest.Client{}, "http://a.example")
		text := w.Body.String()
		if w.Code == http.StatusInternalServerError || strings.Contains(text, `"code":-32603`) {
			t.Errorf("%s %s: %d %.300s", method, path, w.Code, text)
		}
		if strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && sanitize.Hides(r) }) {
			t.Errorf("%s %s: what is hidden is in %.300q", method, path, text)
		}
		if !strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") {
			text = "data: " + text
		}
		for line := range strings.Lines(text) {
			if data, ok := strings.CutPrefix(line, "data: "); ok && strings.TrimSpace(data) != "" && !json.Valid([]byte(data)) && w.Code < 300 {
				t.Errorf("%s %s: %d %.300q", method, path, w.Code, line)
			}
		}
	})
}
