package gateway

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"parley"
	"parley/actors/view"
	"parley/gateway/api"
	"parley/gateway/web"
)

// postJSON posts JSON as the page does.
func (h *pageServer) postJSON(path, body, token string) (int, string) {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, h.url+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	status, _, text := h.send(r, token)
	return status, text
}

func TestPreviewMatchesRecipientsView(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	const fields = `[{"name":"zone","label":"Zone <b>","type":"radio","required":true,"options":[{"value":"eu","label":"Europe"}],"help":"*where*"}]`
	status, text := h.postJSON(web.PreviewPath, `{"title":"A server","description":"Where?","fields":`+fields+`}`, h.token)
	if status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	if status, body := h.postJSON("/rpc/form", `{"recipient":"fae","title":"A server","description":"Where?","fields":`+fields+`}`, h.token); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	_, _, seen := h.get("/mail?as=fae", "text/html")
	field := func(html string) string {
		_, after, _ := strings.Cut(html, `<fieldset class="field radios"`)
		within, _, _ := strings.Cut(after, "</fieldset>")
		return within
	}
	if want := field(strings.ReplaceAll(seen, web.ElementKey("fae", 0), "preview")); want == "" || field(text) != want {
		t.Errorf("preview:\n%s\nseen:\n%s", field(text), want)
	}
	if in, err := h.node.Host().Mail().Inbox(t.Context(), view.MessageFilter{All: true}); err != nil || len(in.Messages) != 1 {
		t.Errorf("a preview left something: %v %v", in, err)
	}
}

func TestPreviewRefusesAsTheNode(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	for body, want := range map[string]struct {
		status int
		code   parley.Code
		field  string
	}{
		`{"fields":[{"name":"a:b"}]}`:                             {422, parley.InvalidForm, "a:b"},
		`{"fields":[{"name":"a","pattern":{"pattern":"(?=x)"}}]}`: {422, parley.InvalidForm, "a"},
		`{"fields":[{"name":"a","colour":"red"}]}`:                {422, parley.InvalidForm, "a"},
		`{"fields":[]}`: {422, parley.InvalidForm, ""},
		`{"fields":`:    {400, parley.InvalidArgument, ""},
		`{"fields":[{"name":"` + strings.Repeat("a", api.MaxBody) + `"}]}`: {413, parley.TooLarge, ""},
	} {
		status, text := h.postJSON(web.PreviewPath, body, h.token)
		var got struct{ Error parley.Error }
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatalf("%.80s: %v in %.200s", body, err, text)
		}
		if status != want.status || got.Error.Code != want.code || want.field != "" && got.Error.Fields[want.field] == "" {
			t.Errorf("%.80s: %d %+v", body, status, got.Error)
		}
	}
	if status, _ := h.postJSON(web.PreviewPath, `{"fields":[{"name":"a"}]}`, ""); status != 401 {
		t.Errorf("without a session: %d", status)
	}
	if status, _, _ := h.get(web.PreviewPath, "text/html"); status != 400 {
		t.Errorf("with GET: %d", status)
	}
}
