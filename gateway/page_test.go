package gateway

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/web"
	"parley/mailbox"
)

// Bounds of the pages, the same as in package web.
const (
	firstPaint   = 50    // messages of the inbox at first
	newestEvents = 100   // events of a log at once
	maxPayload   = 4_000 // characters of an event
	shownAgents  = 100   // agents of the list at once
	maxFeeds     = 100   // mailboxes that a stream follows

	pagePolicy = "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; manifest-src 'self'; " +
		"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)

func TestPagesNeedASession(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	asset := h.server.site.Assets.URL("page.css")
	for _, path := range []string{"/mail", "/questions", "/agents", "/events", "/forms/0", asset, "/nothing"} {
		for accept, want := range map[string]string{"text/html": "parley open", "": "UNAUTHENTICATED"} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.url+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Accept", accept)
			if status, _, body := h.send(r, ""); status != 401 || !strings.Contains(body, want) {
				t.Errorf("%s for %q: %d %s", path, accept, status, body)
			}
		}
	}
}

func TestPagesRunNoForeignScript(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.ask(parley.Form{Fields: everyType()})
	for _, path := range []string{"/mail", "/questions", "/agents", "/forms/0"} {
		status, head, body := h.get(path, "text/html")
		if status != 200 {
			t.Fatalf("%s: %d %s", path, status, body)
		}
		const want = "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; manifest-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
		if got := head.Get("Content-Security-Policy"); got != want {
			t.Errorf("%s: policy %q", path, got)
		}
		if bad := regexp.MustCompile(`(?i)<style|\sstyle=|\son[a-z]+=|<script[^>]*>[^<]|https?://`).FindString(body); bad != "" {
			t.Errorf("%s has %q in it", path, bad)
		}
	}
}

func TestPageIsInstallable(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	status, head, body := h.get(web.ManifestPath, "")
	var m struct {
		Start string `json:"start_url"`
		Icons []struct{ Src, Type string }
	}
	if err := json.Unmarshal([]byte(body), &m); err != nil || status != 200 || head.Get("Content-Type") != "application/manifest+json" || m.Start != "questions" || len(m.Icons) != 3 {
		t.Fatalf("%d %v %s, %v", status, head, body, err)
	}
	for _, icon := range m.Icons {
		if status, head, _ := h.get("/"+icon.Src, ""); status != 200 || head.Get("Content-Type") != icon.Type {
			t.Errorf("%s: %d %v", icon.Src, status, head)
		}
	}
}

func TestAssetsAreSmallAndCached(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	total := 0
	for name := range h.server.site.Assets.Files {
		address := h.server.site.Assets.URL(name)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.url+address, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept-Encoding", "gzip")
		status, head, body := h.send(r, h.token)
		if status != 200 || !strings.Contains(head.Get("Cache-Control"), "immutable") || head.Get("Content-Encoding") != "gzip" {
			t.Errorf("%s: %d %v", name, status, head)
		}
		if strings.HasSuffix(name, ".js") || strings.HasSuffix(name, ".css") { // of the rest a page loads an icon
			total += len(body)
		}
		plain, err := gzip.NewReader(strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, plain); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if total > 108<<10 {
		t.Errorf("the scripts and styles take %d bytes", total)
	}
	t.Logf("%d bytes", total)
	if status, _, _ := h.get("/assets/0123456789abcdef/page.js", ""); status != 404 {
		t.Errorf("of another build: %d", status)
	}
}

// postForm sends a plain HTML form, as a browser without scripts does.
func (h *pageServer) postForm(path string, values url.Values) (int, http.Header, string) {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, h.url+path, strings.NewReader(values.Encode()))
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "text/html")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return h.send(r, h.token)
}

func TestFormNeedsNoScript(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	asked := h.ask(parley.Form{Fields: everyType()})
	path := "/forms/" + asked.Form.String()
	status, _, body := h.get(path, "text/html")
	if status != 200 || !regexp.MustCompile(`<form class="ask"[^>]* method="post" action="/forms/`).MatchString(body) {
		t.Fatalf("%d %s", status, body)
	}
	status, _, body = h.postForm(path, url.Values{"do": {"answer"}, "f0": {"typed <b>"}, "f2": {"eighty"}, "f10": {"hush"}})
	for _, want := range []string{"want a number", "required", `value="typed &lt;b&gt;"`, `value="eighty"`} {
		if !strings.Contains(body, want) {
			t.Errorf("the refusal lacks %q", want)
		}
	}
	if status != 422 || strings.Contains(body, "hush") {
		t.Errorf("refused with %d, secret shown: %v", status, strings.Contains(body, "hush"))
	}
	good := url.Values{"do": {"answer"}, "f0": {"x"}, "f1": {"a\r\nb"}, "f2": {""}, "f4": {"red"}, "f5": {"red", "blue"}, "f6": {""}, "f7": {"fast"}, "f8": {"Yes"}, "f10": {"hush"}, "f11": {"@self"}}
	status, head, body := h.postForm(path, good)
	if status != 303 || !strings.HasPrefix(head.Get("Location"), "/forms/") {
		t.Fatalf("%d %v %s", status, head, body)
	}
	_, _, body = h.get(path, "text/html")
	if !strings.Contains(body, "Answered by") || strings.Contains(body, "hush") {
		t.Errorf("settled: %s", body)
	}
	values, _ := h.outcome(asked).Values.AsRecord()
	for name, want := range map[string]string{"name": "x", "notes": "a\nb", "agree": "false", "several": `["red","blue"]`, "key": "hush"} {
		if got := values[name].Text(); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if _, has := values["port"]; has {
		t.Error("what was emptied has its default again")
	}
	if status, _, body = h.postForm(path, good); status != 409 || !strings.Contains(body, "Answered by") {
		t.Errorf("again: %d %s", status, body)
	}
}

func TestPlainFormsDeclineForwardCancelAndDismiss(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	joe := h.guest("joe")
	field := []events.Field{{Name: "a"}}
	h.ask(parley.Form{Fields: field})
	h.ask(parley.Form{Fields: field})
	sent, err := h.node.Host().Ask(t.Context(), parley.Form{To: "fae", Description: "Mine", Fields: field})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path   string
		values url.Values
		want   string
	}{
		{"/forms/0", url.Values{"do": {"decline"}, "reason": {"not today"}}, "not today"},
		{"/forms/1", url.Values{"do": {"forward"}, "to": {"joe"}}, "Forwarded to"},
		{"/forms/" + sent.Form.String(), url.Values{"do": {"amend"}, "title": {"Mine, corrected"}, "description": {"a\r\nb"}, "label": {"Another"}, "note": {"a typo"}}, "“a typo”"},
		{"/forms/" + sent.Form.String(), url.Values{"do": {"cancel"}}, "Cancelled"},
	} {
		if status, _, body := h.postForm(c.path, c.values); status != 303 {
			t.Errorf("%s: %d %s", c.path, status, body)
		}
		if _, _, body := h.get(c.path, "text/html"); !strings.Contains(body, c.want) {
			t.Errorf("%s lacks %q", c.path, c.want)
		}
	}
	if m, err := h.fae.Message(t.Context(), capabilities.FormID(sent.Form)); err != nil || m.Title != "Mine, corrected" || m.Description != "a\nb" || m.Fields[0].Label != "Another" {
		t.Errorf("amended: %q %q %v, %v", m.Title, m.Description, m.Fields, err)
	}
	late := h.message(h.ask(parley.Form{Fields: field}))
	if _, err := h.fae.Amend(t.Context(), capabilities.FormID(late.MessageID), parley.Amendment{Title: &late.Description}); err != nil {
		t.Fatal(err)
	}
	if status, _, body := h.postForm("/forms/"+late.MessageID.String(), url.Values{"do": {"answer"}, "f0": {"typed"}, "revision": {"1"}}); status != 409 || !strings.Contains(body, "Not sent: the question was changed") || !strings.Contains(body, `value="typed"`) {
		t.Errorf("an answer to the earlier question: %d %s", status, body)
	}
	if status, _, body := h.postForm("/forms/"+late.MessageID.String(), url.Values{"do": {"decline"}, "revision": {"1"}}); status != 409 || !strings.Contains(body, "Not sent: the question was changed") {
		t.Errorf("a decline of the earlier question: %d %s", status, body)
	}
	if _, _, body := h.get("/forms/"+late.MessageID.String(), "text/html"); strings.Count(body, `name="revision" value="2"`) != 2 {
		t.Errorf("the page says no revision: %s", body)
	}
	if in, err := joe.Mail().Inbox(t.Context(), view.MessageFilter{Pending: true}); err != nil || len(in.Messages) != 1 {
		t.Errorf("%v %v", in, err)
	}
	if status, _, _ := h.postForm("/forms/1", url.Values{"do": {"fly"}}); status != 400 {
		t.Errorf("what is not known: %d", status)
	}
	if status, _, _ := h.get("/forms/77", "text/html"); status != 404 {
		t.Errorf("what is not there: %d", status)
	}
}

func TestReadOnlyTokenCannotAnswerOnThePage(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.ask(parley.Form{Fields: []events.Field{{Name: "a"}}})
	h.token = makeToken(t, h.node.Host(), "read")
	if status, _, body := h.postForm("/forms/0", url.Values{"do": {"answer"}, "f0": {"x"}}); status != 403 {
		t.Errorf("%d %s", status, body)
	}
	h.token = makeToken(t, h.fae, "read", "answer")
	if status, _, _ := h.get("/mail?as=fae", "text/html"); status != 403 {
		t.Errorf("as another: %d", status)
	}
	if status, _, body := h.get("/mail", "text/html"); status != 200 || !strings.Contains(body, "You asked") {
		t.Errorf("its own mail: %d %s", status, body)
	}
}

func TestQuestionsOfAllAgentsAreSortedByAge(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	joe := h.guest("joe")
	if _, _, body := h.get("/questions", "text/html"); !strings.Contains(body, "Nothing needs you.") {
		t.Error("none is not said")
	}
	ask := func(from *actors.Agent, to, what string) {
		t.Helper()
		if _, err := from.Ask(t.Context(), parley.Form{To: to, Description: what, Fields: []events.Field{{Name: "a"}}}); err != nil {
			t.Fatal(err)
		}
	}
	ask(h.fae, "HOST", "the first")
	if err := h.node.Host().Names().Copy(t.Context(), "joe", "helper", capabilities.Facet{}); err != nil { // a second name for the same agent
		t.Fatal(err)
	}
	ask(joe, "@self", "the second")
	ask(h.node.Host(), "joe", "my own, to another")
	ask(h.fae, "HOST", "the third")
	_, _, body := h.get("/questions", "text/html")
	order := regexp.MustCompile(`class="what"><bdi>(the first|the second|the third|my own)`).FindAllString(body, -1)
	if len(order) != 3 || !strings.HasSuffix(order[0], "first") || !strings.HasSuffix(order[2], "third") { // the oldest first
		t.Errorf("%v", order)
	}
	if !strings.Contains(body, "<title>(3) Needs you · Parley</title>") {
		t.Error("the title does not say how many")
	}
}

func TestFirstPaintCostIsIndependentOfInboxSize(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.sendMany(300)
	few := h.firstPaint()
	h.sendMany(2700)
	if many := h.firstPaint(); many > 2*few {
		t.Errorf("with ten times the messages the first paint takes %d allocations, not %d", many, few)
	}
}

// firstPaint gets the inbox, which has more messages than are shown at first, several times. It returns the fewest
// allocations, because other work of the node counts too.
func (h *pageServer) firstPaint() uint64 {
	h.t.Helper()
	fewest := ^uint64(0)
	for range 8 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := time.Now()
		status, _, body := h.get("/mail", "text/html")
		h.t.Logf("painted in %v", time.Since(began))
		runtime.ReadMemStats(&after)
		if status != 200 || strings.Count(body, "<li class=\"entry\"") != firstPaint || !strings.Contains(body, `href="/mail?before=`) {
			h.t.Fatalf("%d, %d messages", status, strings.Count(body, "<li class=\"entry\""))
		}
		fewest = min(fewest, after.Mallocs-before.Mallocs)
	}
	return fewest
}

// TestPagesShowPriorities draws messages of each priority in the lists and alone, with their subjects. Urgent ones come first.
func TestPagesShowPriorities(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	fae := h.guest("bob")
	for _, p := range []events.Priority{events.Urgent, "", events.Low} {
		if _, err := actors.Post(t.Context(), fae, mailbox.PostMessage{To: "@host", Post: parley.Post{Header: parley.Header{Priority: p, Subject: "of <" + string(p) + ">"}, Text: "it is " + string(p)}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"/mail", "/forms/0", "/forms/1", "/forms/2"} {
		status, _, body := h.get(path, "text/html")
		if status != 200 {
			t.Fatalf("%s: %d %s", path, status, body)
		}
		for n, priority := range []string{"urgent", "", "low"} {
			mark := `<b class="priority">` + priority + `</b>`
			if wanted := path == "/mail" || path == fmt.Sprintf("/forms/%d", n); wanted && !strings.Contains(body, "of &lt;"+priority+"&gt;") {
				t.Errorf("%s lacks the subject of %q", path, priority)
			}
			if wanted := path == "/mail" || path == fmt.Sprintf("/forms/%d", n); wanted && priority != "" && !strings.Contains(body, mark) {
				t.Errorf("%s lacks %s", path, mark)
			}
		}
	}
	_, _, body := h.get("/mail", "text/html")
	if first := strings.Index(body, `class="entry`); first < 0 || !strings.Contains(body[first:first+2000], "of &lt;urgent&gt;") {
		t.Error("the first row is not the urgent one")
	}
}

// TestChangesHaveAFilterOfTheirOwn lists what waits by its kind: changes of files, which are calls too, apart from the other calls. Requests have a
// filter while there are any.
func TestChangesHaveAFilterOfTheirOwn(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.shell("make")
	h.approveIn("/srv/shop", "Edit", `{"file_path":"/srv/shop/a.go","old_string":"1","new_string":"2"}`)
	h.approveIn("/srv/shop", "Write", `{"file_path":"/srv/shop/b.go","content":"2"}`)
	h.ask(parley.Form{To: "HOST", Fields: []events.Field{{Name: "port"}}})
	read := func(at string) (filters string, rows int) {
		_, _, body := h.get(at, "text/html")
		_, list, _ := strings.Cut(body, `<nav class="filters" aria-label="Show">`)
		list, _, _ = strings.Cut(list, "</nav>")
		return strings.Join(strings.Fields(tags.ReplaceAllString(list, " ")), " "), strings.Count(body, `<li class="entry"`)
	}
	for kind, want := range map[string]int{"": 4, "approval": 1, "changes": 2, "form": 1} {
		if filters, rows := read("/questions?kind=" + kind); rows != want || filters != "All 4 Calls 1 Changes 2 Questions 1 Snoozed" {
			t.Errorf("%s: %d rows under %s", kind, rows, filters)
		}
	}
	if filters, _ := read("/questions?kind=request"); filters != "All 4 Calls 1 Changes 2 Questions 1 Requests Snoozed" {
		t.Errorf("of requests: %s", filters)
	}
}
