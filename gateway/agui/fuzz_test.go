package agui

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"parley/gateway/exchange/exchangetest"
	"parley/gateway/sanitize"
)

// FuzzRun begins a run of any input. It is refused, or its events are JSON, the first that it has started and the last that
// it has ended. Nothing that is hidden is in them.
func FuzzRun(f *testing.F) {
	interrupt := exchangetest.Form.String() + "/" + exchangetest.Question.String() + "/1"
	for _, input := range []string{
		`{"threadId":"t","runId":"r","messages":[{"id":"m","role":"user","content":"hello"}],"tools":[],"context":[]}`,
		`{"threadId":"t","runId":"r","messages":[{"role":"user","content":[{"type":"text","text":"a\u202eb"},{"type":"image"}]}]}`,
		`{"threadId":"t","runId":"r","resume":[{"interruptId":"` + interrupt + `","status":"resolved","payload":{"a":1e99}}]}`,
		`{"threadId":"t","runId":"r","resume":[{"interruptId":"` + interrupt + `","status":"resolved","payload":"no"}]}`,
		`{"threadId":"t","runId":"r","resume":[{"interruptId":"` + interrupt + `","status":"cancelled"}]}`,
		`{"threadId":"t","runId":"\u0000","resume":[{"interruptId":"//0","status":"cancelled"}]}`,
		`{"threadId":1}`, `null`, `[]`, ``, `{"messages":[null]}`,
	} {
		f.Add("", input)
		f.Add("/someone", input)
	}
	f.Fuzz(func(t *testing.T, path, input string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://a.example", strings.NewReader(input))
		r.URL.Path = Path + path
		w := httptest.NewRecorder()
		Serve(w, r, exchangetest.Client{})
		text := w.Body.String()
		if w.Code == http.StatusInternalServerError {
			t.Errorf("%d %.300s", w.Code, text)
		}
		if strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && sanitize.Hides(r) }) {
			t.Errorf("what is hidden is in %.300q", text)
		}
		if w.Code != http.StatusOK {
			return
		}
		var types []string
		for line := range strings.Lines(text) {
			var e struct {
				Type string `json:"type"`
				Code string `json:"code"`
			}
			data, ok := strings.CutPrefix(line, "data: ")
			if ok && (json.Unmarshal([]byte(data), &e) != nil || e.Code == "INTERNAL") {
				t.Errorf("an event is %.300q", data)
			}
			if ok {
				types = append(types, e.Type)
			}
		}
		if len(types) < 2 || types[0] != "RUN_STARTED" || types[len(types)-1] != "RUN_FINISHED" && types[len(types)-1] != "RUN_ERROR" {
			t.Errorf("the events are %v", types)
		}
	})
}
