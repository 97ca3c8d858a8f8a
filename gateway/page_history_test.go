package gateway

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/internal/eventually"
)

// decideBecause denies a call with a reason.
func (h *pageServer) decideBecause(form capabilities.ID, decision, reason string) {
	h.t.Helper()
	_, err := h.node.Host().Answer(h.t.Context(), capabilities.FormID(form), parley.Answer{Texts: []events.FieldText{{Name: "decision", Text: decision}, {Name: "reason", Text: reason}}})
	if err != nil {
		h.t.Fatal(err)
	}
}

// TestHistoryIsFilteredByPage decides calls and a question, and has History pick them by each of its filters, some together.
func TestHistoryIsFilteredByPage(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.decide(h.shell("make build"), "once")
	h.decideBecause(h.shell("make releases").Form, "deny", "not on a Friday")
	h.decide(h.approveIn("/srv/shop", "Edit", `{"file_path":"/srv/shop/a.go","old_string":"1","new_string":"2"}`), "once")
	h.ask(parley.Form{Description: "Which port?", Fields: []events.Field{{Name: "port"}}})
	if _, err := h.node.Host().Decline(t.Context(), capabilities.FormNumber(3), 0, "ask the planner"); err != nil {
		t.Fatal(err)
	}
	h.shell("still open")
	fae, host := h.fae.ID().String(), h.node.Host().ID().String()
	entry := regexp.MustCompile(`<tr class="entry"[^>]*data-number="(\d+)"`)
	for query, want := range map[string]string{
		"": "3 2 1 0", "decision=denied": "1", "decision=allowed": "2 0", "decision=declined": "3", "tool=Edit": "2", "tool=Bash": "1 0", "tool=none": "", "by=" + host: "3 2 1 0", "by=" + fae: "",
		"agent=" + fae: "3 2 1 0", "agent=" + host: "", "q=friday": "1", "q=rele": "1", "q=make+buil": "0", "q=planner": "3", "q=nowhere": "", "days=7": "3 2 1 0", "kind=approval": "2 1 0",
		"kind=approval&decision=allowed&tool=Edit&days=1&by=" + host: "2", "q=make&decision=denied": "1", "before=2": "1 0", "before=1&decision=denied": "",
	} {
		status, _, body := h.get("/history?"+query, "text/html")
		var got []string
		for _, m := range entry.FindAllStringSubmatch(body, -1) {
			got = append(got, m[1])
		}
		if status != 200 || strings.Join(got, " ") != want {
			t.Errorf("%s: %d, %q and not %q", query, status, strings.Join(got, " "), want)
		}
	}
	for _, query := range []string{"days=x", "days=-1", "decision=odd", "before=x", "export=xml"} {
		if status, _, _ := h.get("/history?"+query, "text/html"); status != 400 {
			t.Errorf("%s: %d", query, status)
		}
	}
	_, _, body := h.get("/history?tool=Bash&decision=denied&q=make", "text/html")
	for _, want := range []string{`href="/history?decision=denied&amp;q=make"`, `name="tool" value="Bash"`, `<input type="hidden" name="decision" value="denied">`, `export=csv`} {
		if !strings.Contains(strings.ReplaceAll(body, h.path(""), ""), want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}

// TestHistoryIsATable has calls and questions end in each way, and reads the table's lines: what, how it ended, why, by whom and after how
// long. What was searched for is marked, and the lines are counted.
func TestHistoryIsATable(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.decide(h.shell("make build"), "always")
	h.shell("make build") // of one moment with the decision that made its rule, it is the later one
	ruled := time.Now().UnixMilli()
	eventually.Holds(t, "what comes next is of another moment", func() bool { return time.Now().UnixMilli() > ruled })
	h.decideBecause(h.shell("make releases <now>").Form, "deny", "not on a Friday, <b>make</b> it later")
	h.ask(parley.Form{Description: "Which port?", Fields: []events.Field{{Name: "port"}}})
	if _, err := h.node.Host().Decline(t.Context(), capabilities.FormNumber(2), 0, "ask the planner"); err != nil {
		t.Fatal(err)
	}
	h.ask(parley.Form{Description: "Which vendor?", Fields: []events.Field{{Name: "vendor"}}, Deadline: capabilities.At(time.Now().Add(300 * time.Millisecond))})
	eventually.Holds(t, "the form expires", func() bool {
		m, err := h.node.Host().Message(t.Context(), capabilities.FormNumber(3))
		return err == nil && m.Outcome != nil
	})
	cells := regexp.MustCompile(`(?s)<tr class="entry".*?</tr>`)
	tags := regexp.MustCompile(`(?s)<svg.*?</svg>|<[^>]*>|\s+`)
	read := func(path string) (lines []string, body string) {
		_, _, body = h.get(path, "text/html")
		for _, line := range cells.FindAllString(body, -1) {
			var parts []string
			for _, cell := range regexp.MustCompile(`(?s)<t[dh] role="(?:cell|rowheader)".*?</t[dh]>`).FindAllString(line, -1)[1:4] {
				cell = strings.NewReplacer("</a>", "|", "</span><span", "</span>|<span").Replace(cell)
				parts = append(parts, strings.TrimSpace(html.UnescapeString(tags.ReplaceAllString(cell, " "))))
			}
			lines = append(lines, regexp.MustCompile(` +`).ReplaceAllString(strings.Join(parts, " || "), " "))
		}
		return lines, body
	}
	got, body := read("/history")
	want := []string{
		"Which vendor? | fae || Expired | Nobody answered in time || Nobody", "Which port? | fae || Declined | ask the planner || You",
		"make releases <now> | fae · shop || Denied | not on a Friday, <b>make</b> it later || You", "make build | fae · shop || Allowed by rule | exactly: make build, in /srv/shop || Rule",
		"make build | fae · shop || Always allowed | exactly this call, in /srv/shop || You",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nand not\n%q", got, want)
	}
	if !strings.Contains(body, ">5 decisions<") || !regexp.MustCompile(`data-l="Took">\d+ s<`).MatchString(body) {
		t.Error("the lines are not counted, or have no time")
	}
	got, body = read("/history?q=mak")
	if len(got) != 3 || !strings.Contains(body, "<mark>mak</mark>e releases &lt;now&gt;") || !strings.Contains(body, "&lt;b&gt;<mark>mak</mark>e&lt;/b&gt; it later") || !strings.Contains(body, "3 decisions with “mak” in the call") {
		t.Errorf("%q: %s", got, body)
	}
	if _, body = read("/history?by=rules"); !strings.Contains(body, ">1 decision<") {
		t.Error("calls that a rule decided are not counted")
	}
}

// TestHistoryIsReadByPage pages through more than a part has, and finds each decision once.
func TestHistoryIsReadByPage(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	for i := range 70 {
		h.decide(h.shell(fmt.Sprint("echo ", i)), "once")
	}
	older := regexp.MustCompile(`id="older" href="[^"]*(/history[^"]*)"`)
	entry := regexp.MustCompile(`<tr class="entry"[^>]*data-number="(\d+)"`)
	seen := map[string]bool{}
	parts := 0
	for at := "/history?decision=allowed"; at != ""; parts++ {
		_, _, body := h.get(at, "text/html")
		for _, m := range entry.FindAllStringSubmatch(body, -1) {
			if seen[m[1]] {
				t.Errorf("%s is there twice", m[1])
			}
			seen[m[1]] = true
		}
		at = ""
		if m := older.FindStringSubmatch(body); m != nil {
			at = strings.ReplaceAll(m[1], "&amp;", "&")
		}
	}
	if len(seen) != 70 || parts != 2 {
		t.Errorf("%d decisions in %d parts", len(seen), parts)
	}
}

// TestHistoryIsExported downloads what is shown in both formats. A cell that a spreadsheet would compute is text, and an answer is not in it.
func TestHistoryIsExported(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.decideBecause(h.shell("make").Form, "deny", `=HYPERLINK("http://x"), "no"`)
	h.decide(h.shell("git push origin next"), "once")
	h.ask(parley.Form{Title: "Token?", Fields: []events.Field{{Name: "t", Type: events.Secret}}})
	if _, err := h.node.Host().Answer(t.Context(), capabilities.FormNumber(2), parley.Answer{Texts: []events.FieldText{{Name: "t", Text: "hunter2"}}}); err != nil {
		t.Fatal(err)
	}
	status, head, body := h.get("/history?export=csv", "text/html")
	if status != 200 || !strings.HasPrefix(head.Get("Content-Type"), "text/csv") || !strings.Contains(head.Get("Content-Disposition"), "attachment") {
		t.Fatalf("%d %v", status, head)
	}
	rows, err := csv.NewReader(strings.NewReader(body)).ReadAll()
	if err != nil || len(rows) != 4 {
		t.Fatal(err, body)
	}
	if got := rows[3]; got[3] != "fae" || got[5] != "Bash" || got[6] != "/srv/shop" || got[8] != "denied" || got[10] != "you" || got[11] != `'=HYPERLINK("http://x"), "no"` {
		t.Errorf("%q", got)
	}
	if strings.Contains(body, "hunter2") || rows[1][8] != "answered" {
		t.Errorf("%q", rows[1])
	}
	_, _, body = h.get("/history?"+url.Values{"export": {"jsonl"}, "decision": {"allowed"}}.Encode(), "text/html")
	var line struct{ Agent, Tool, What, Decision, By string }
	if err := json.Unmarshal([]byte(body), &line); err != nil || line.What != `{"command":"git push origin next"}` || line.Decision != "allowed" || line.By != "you" {
		t.Errorf("%v: %s", err, body)
	}
}

// TestHistoryHasWhatWasDecidedWithoutAsking has calls decided by a person, a rule and a policy. History has all in the order of their times,
// each once in its parts, and picks those without a question by their filter.
func TestHistoryHasWhatWasDecidedWithoutAsking(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.decide(h.shell("make first"), "always")
	for range 30 {
		if c := h.shell("make first"); !c.Allowed {
			t.Fatal("the rule does not decide")
		}
	}
	h.decide(h.shell("make second"), "once")
	for range 40 {
		h.shell("make first")
	}
	h.decideBecause(h.shell("make third").Form, "never", "")
	if c := h.shell("make third"); c.Allowed {
		t.Fatal("the rule does not decide")
	}
	entry := regexp.MustCompile(`(?s)<tr class="entry" role="row" id="row-([^"]*)".*?<span class="state">(?:<svg.*?</svg>)?([^<]*)</span>.*?</tr>`)
	older := regexp.MustCompile(`id="older" href="[^"]*(/history[^"]*)"`)
	read := func(at string) (states []string, parts int) {
		seen := map[string]bool{}
		for ; at != ""; parts++ {
			status, _, body := h.get(at, "text/html")
			if status != 200 {
				t.Fatal(at, status)
			}
			for _, m := range entry.FindAllStringSubmatch(body, -1) {
				if seen[m[1]] {
					t.Errorf("%s is there twice", m[1])
				}
				seen[m[1]] = true
				states = append(states, html.UnescapeString(m[2]))
			}
			at = ""
			if m := older.FindStringSubmatch(body); m != nil {
				at = strings.ReplaceAll(m[1], "&amp;", "&")
			}
		}
		return states, parts
	}
	states, parts := read("/history")
	if len(states) != 74 || parts != 2 {
		t.Fatalf("%d entries in %d parts: %q", len(states), parts, states)
	}
	for i, want := range map[int]string{10: "Allowed by rule", 25: "Allowed by rule", 55: "Allowed by rule"} {
		if states[i] != want {
			t.Errorf("entry %d: %q and not %q", i, states[i], want)
		}
	}
	if !slices.Contains(states[:3], "Denied by rule") || !slices.Contains(states[:3], "Never allowed") {
		t.Errorf("the newest are %q", states[:3])
	}
	if at := slices.Index(states, "Always allowed"); at < 70 { // calls within a millisecond may change places
		t.Errorf("entry %d was always allowed", at)
	}
	if at := slices.Index(states, "Allowed once"); at < 30 || at > 43 { // calls within a millisecond may change places
		t.Errorf("entry %d was allowed once", at)
	}
	for query, want := range map[string]int{
		"by=rules": 71, "by=rules&decision=denied": 1, "by=rules&decision=declined": 0, "by=rules&q=thir": 1, "by=rules&tool=Edit": 0, "by=rules&kind=form": 0, "by=" + h.node.Host().ID().String(): 3,
		"by=rules&days=1": 71, "by=rules&agent=" + h.node.Host().ID().String(): 0, "decision=denied": 2, "kind=approval&q=second": 1,
	} {
		if got, _ := read("/history?" + query); len(got) != want {
			t.Errorf("%s: %d and not %d: %q", query, len(got), want, got)
		}
	}
	if got, _ := read("/history?before=1"); len(got) < 15 || len(got) > 31 { // of those within the millisecond of the second, some are after it
		t.Errorf("%d before the second", len(got))
	}
	_, _, body := h.get("/history?by=rules&decision=denied&export=csv", "text/html")
	rows, err := csv.NewReader(strings.NewReader(body)).ReadAll()
	if err != nil || len(rows) != 2 || rows[1][3] != "fae" || rows[1][5] != "Bash" || rows[1][8] != "denied" || rows[1][9] != "exactly: make third, in /srv/shop" || rows[1][10] != "rule" {
		t.Errorf("%v %q", err, rows)
	}
	for _, at := range []string{"1.x.2", "1.2.x", "x.1.2"} {
		if status, _, _ := h.get("/history?before="+at, "text/html"); status != 400 {
			t.Errorf("%s: %d", at, status)
		}
	}
}
