package gateway

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/actors"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
	"parley/gateway/web"
	"parley/internal/eventually"
	"parley/mailbox"
)

// listed returns the names of the agents on a page, and the address of the next.
func (h *pageServer) listed(address string) (names []string, more string) {
	h.t.Helper()
	status, _, body := h.get(address, "text/html")
	if status != 200 {
		h.t.Fatalf("%s: %d %s", address, status, body)
	}
	for _, m := range regexp.MustCompile(`<h2>(?:<a [^>]*>)?<bdi>([^<]*)`).FindAllStringSubmatch(body, -1) {
		names = append(names, html.UnescapeString(m[1]))
	}
	if m := regexp.MustCompile(`href="(/agents\?after=[^"]*)">More`).FindStringSubmatch(body); m != nil {
		more = html.UnescapeString(m[1])
	}
	return names, more
}

func TestAgentListIsPaged(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	const many = 2*shownAgents + 20
	want := []string{"You"}
	for i := range many {
		name := fmt.Sprintf("agent+%03d &", i)
		h.guest(name)
		want = append(want, name)
	}
	want = append(want, "fae")
	if err := h.node.Host().Names().Store(t.Context(), "no-agent", `"a text"`); err != nil {
		t.Fatal(err)
	}
	var got []string
	for address, parts := "/agents", 1; address != ""; parts++ {
		names, more := h.listed(address)
		if len(names) > shownAgents || parts > 3 {
			t.Fatalf("part %d has %d agents", parts, len(names))
		}
		got, address = append(got, names...), more
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d agents, want %d: %q", len(got), len(want), got)
	}
}

func TestAgentListShowsStatus(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	_, err := h.node.Host().Make(t.Context(), actors.NewAgent{
		Kind: events.Guest, Name: "joe", Title: "Mends <b>things</b>\u202e", Labels: map[string]string{"team": "site", "host": "<i>"},
	})
	if err != nil {
		t.Fatal(err)
	}
	h.ask(parley.Form{To: "HOST", Fields: []events.Field{{Name: "a"}}})
	h.ask(parley.Form{To: "HOST", Fields: []events.Field{{Name: "a"}}})
	for _, path := range []string{"/agents", "/agents/joe"} {
		_, _, body := h.get(path, "text/html")
		for _, want := range []string{`Mends &lt;b&gt;things&lt;/b&gt;\u{202e}`, "team=site", "host=&lt;i&gt;", `data-standing="idle"`} {
			if !strings.Contains(body, want) {
				t.Errorf("%s has no %q:\n%s", path, want, body)
			}
		}
	}
	_, _, body := h.get("/agents", "text/html")
	for _, want := range []string{"<strong>2</strong> waiting for an answer", "<strong>2</strong> questions open"} {
		if !strings.Contains(body, want) {
			t.Errorf("the list has no %q:\n%s", want, body)
		}
	}
	if _, _, body := h.get("/agents/fae", "text/html"); !strings.Contains(body, "2 questions open") || !strings.Contains(body, "Configure the project") {
		t.Errorf("its page: %s", body)
	}
}

// TestAbsenceNeedsNoScript sets and ends absences by plain forms, and reads them where agents are listed.
func TestAbsenceNeedsNoScript(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.guest("joe")
	for _, c := range []struct {
		path   string
		values url.Values
		status int
		want   map[string]string
	}{
		{"/agents/SELF", url.Values{"away": {"1"}, "for": {"72h"}, "delegate": {"joe"}}, 303, map[string]string{"/agents/SELF": " You are away until ", "/agents": " You are away until "}},
		{"/agents/SELF", url.Values{"away": {"1"}, "for": {"72h"}, "delegate": {"nobody"}}, 404, map[string]string{"/agents/SELF": ": forms go to joe "}},
		{"/agents/SELF", url.Values{"away": {"1"}, "for": {"-1h"}}, 400, map[string]string{"/agents/SELF": ": forms go to joe "}},
		{"/agents/SELF", url.Values{"away": {"1"}, "for": {"99999999h"}}, 400, nil},
		{"/agents/joe", url.Values{"away": {"1"}, "for": {"4h"}}, 303, map[string]string{"/agents/joe": " Away until ", "/agents": " joe away ", "/agents/SELF": ": forms go to joe "}},
		{"/agents/joe", url.Values{"back": {"1"}}, 303, map[string]string{"/agents/joe": " Away… "}},
		{"/agents/SELF", url.Values{"back": {"1"}}, 303, map[string]string{"/agents/SELF": " Away… "}},
	} {
		if status, _, body := h.postForm(c.path, c.values); status != c.status {
			t.Errorf("%s %v: %d %s", c.path, c.values, status, body)
		}
		for path, want := range c.want {
			if _, _, body := h.get(path, "text/html"); !strings.Contains(tags.ReplaceAllString(body, " "), want) {
				t.Errorf("after %v, %s lacks %q:\n%s", c.values, path, want, tags.ReplaceAllString(body, " "))
			}
		}
	}
	if _, _, body := h.get("/agents", "text/html"); strings.Contains(strings.ToLower(tags.ReplaceAllString(body, " ")), " away ") {
		t.Errorf("somebody is away: %s", body)
	}
	far := capabilities.At(time.Date(2099, 1, 2, 15, 4, 0, 0, time.UTC))
	if _, err := h.fae.SetAway(t.Context(), mailbox.SetAway{From: far.Add(-time.Hour), Until: far}); err != nil {
		t.Fatal(err)
	}
	_, _, body := h.get("/agents/fae", "text/html")
	if text := tags.ReplaceAllString(body, " "); !strings.Contains(text, " Away from 2 Jan 2099, 14:04 UTC until 2 Jan 2099, 15:04 UTC ") || strings.Contains(text, "fae idle · away") {
		t.Errorf("an absence that is to come: %s", text)
	}
	reader := makeToken(t, h.node.Host(), "read")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.url+"/agents/fae", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, body := h.send(r, reader); !strings.Contains(body, "Away from") || strings.Contains(body, `name="back"`) {
		t.Errorf("without the scope to answer: %s", body)
	}
}

func TestAgentListShowsGuestWhatItHolds(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.guest("joe")
	if _, err := h.node.Host().Send(t.Context(), "fae", "meet @joe"); err != nil {
		t.Fatal(err)
	}
	if err := h.fae.Adopt(t.Context(), capabilities.FormNumber(0), "joe", "joe"); err != nil {
		t.Fatal(err)
	}
	h.token = makeToken(t, h.fae, "read")
	names, _ := h.listed("/agents")
	_, _, body := h.get("/agents", "text/html")
	if !slices.Equal(names, []string{"You", "joe"}) || strings.Contains(body, "on another node") || strings.Contains(body, `href="/agents/joe"`) {
		t.Errorf("%q\n%s", names, body)
	}
}

func TestAgentLogIsReadToItsBeginning(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	for range newestEvents + 30 {
		if err := h.fae.Names().Store(t.Context(), "note", `"more"`); err != nil {
			t.Fatal(err)
		}
		if err := h.fae.Names().Remove(t.Context(), "note"); err != nil {
			t.Fatal(err)
		}
	}
	version, err := h.fae.Version(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	next := version
	for address := "/agents/fae?tab=events"; address != ""; {
		_, _, body := h.get(address, "text/html")
		_, log, _ := strings.Cut(body, `id="log"`)
		for _, m := range regexp.MustCompile(`<li data-part="(\d+)">`).FindAllStringSubmatch(log, -1) {
			if m[1] != fmt.Sprint(next) {
				t.Fatalf("version %s, want %d", m[1], next)
			}
			next--
		}
		address = ""
		if m := regexp.MustCompile(`href="([^"#]*)#log-head">Older`).FindStringSubmatch(log); m != nil {
			address = html.UnescapeString(m[1])
		}
	}
	if next != 0 {
		t.Errorf("the log ends at version %d", next+1)
	}
	for _, bad := range []string{"0", "x", "-1"} {
		if status, _, _ := h.get("/agents/fae?tab=events&before="+bad, "text/html"); status != http.StatusBadRequest {
			t.Errorf("before %s: %d", bad, status)
		}
	}
}

func TestButtonsNeedTheirScope(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.give()
	h.decide(h.approve("shell", `{"command":"ls"}`), "always")
	buttons := regexp.MustCompile(`name="(revoke|remove|end)"`)
	for _, c := range []struct {
		who    *actors.Agent
		path   string
		scopes []string
		want   int
	}{
		{h.node.Host(), "/agents/fae", []string{"read", "admin"}, 2}, // its grant and its rule: it has no names
		{h.node.Host(), "/agents/fae", []string{"read", "ask", "answer"}, 0},
		{h.node.Host(), "/agents/SELF", []string{"read", "admin"}, 1}, // the name fae
		{h.fae, "/agents/SELF", []string{"read", "admin"}, 1},
		{h.fae, "/agents/SELF", []string{"read"}, 0},
	} {
		h.token = makeToken(t, c.who, c.scopes...)
		status, _, rules := h.get(c.path+"?tab=rules", "text/html")
		_, _, access := h.get(c.path+"?tab=access", "text/html")
		if got := buttons.FindAllString(rules+access, -1); status != 200 || len(got) != c.want {
			t.Errorf("%s with %v: %d, %q, want %d", c.path, c.scopes, status, got, c.want)
		}
	}
}

// TestEndOfGrantIsATime has the end of a grant as a time, which the page shows by the clock of the browser.
func TestEndOfGrantIsATime(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	ctx, host := t.Context(), h.node.Host()
	until := capabilities.At(time.Now().Add(time.Hour))
	if err := host.Names().Copy(ctx, "fae", "short", capabilities.Facet{Mode: capabilities.AskOnly, Until: until}); err != nil {
		t.Fatal(err)
	}
	h.guest("bob")
	if _, err := host.Send(ctx, "bob", "meet @short"); err != nil {
		t.Fatal(err)
	}
	_, _, body := h.get("/agents/SELF?tab=access", "text/html")
	if want := `, until <time datetime="` + until.String() + `">`; !strings.Contains(body, want) {
		t.Errorf("there is no %s in\n%s", want, body)
	}
}

// TestAgentOfUnreachedNodeSaysSo stops the node of an agent that the host holds.
func TestAgentOfUnreachedNodeSaysSo(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	other, err := actors.Open(t.Context(), actors.Options{Folder: t.TempDir(), Name: "other", Peers: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	stopped := false
	stop := func() {
		if !stopped {
			stopped = true
			if err := other.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(stop)
	invited, err := other.Host().Peers().Invite(t.Context(), actors.NewInvitation{Name: "page"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.node.Host().Peers().Accept(t.Context(), "other", invited.Locator); err != nil {
		t.Fatal(err)
	}
	if _, _, body := h.get("/agents", "text/html"); !strings.Contains(body, "on another node") || strings.Contains(body, "Not reachable") {
		t.Errorf("while it is reached:\n%s", body)
	}
	stop()
	eventually.Holds(t, "it is not reachable", func() bool {
		_, _, body := h.get("/agents", "text/html")
		return strings.Contains(body, "Not reachable")
	})
}

// TestAllRulesPause pauses all rules where there are many agents: those of the last one pause too, which the page says that it does not
// show.
func TestAllRulesPause(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	for i := range 510 {
		h.guest(fmt.Sprintf("a%03d", i))
	}
	h.decide(h.shell("make"), "always") // of fae, the last by name
	if p := h.shell("make"); !p.Form.IsZero() {
		t.Fatal("the rule does not decide")
	}
	if _, _, body := h.get(web.AccessPath, "text/html"); !strings.Contains(body, "The rules of more agents are on their own pages.") || !strings.Contains(body, "Pause all rules") {
		t.Error("the page does not say that there are more")
	}
	if status, _, body := h.postForm(web.AccessPath, url.Values{"pause-all": {"yes"}}); status != http.StatusSeeOther {
		t.Fatalf("%d %s", status, body)
	}
	if p := h.shell("make"); p.Form.IsZero() {
		t.Error("a rule decides while all are paused")
	}
}

// TestAgentsAreInTheOrderOfTheQueue has agents ask in another order than that of their names, and compares rail and table with the queue.
// A coding agent is called by its program and folder in both, and on the page of rules and access.
func TestAgentsAreInTheOrderOfTheQueue(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	coder, err := register(t, h.server, api.Register{Program: "codex", Title: "Codex", Folder: "/srv/shop"})
	if err != nil {
		t.Fatal(err)
	}
	codex, err := h.node.ActAs(t.Context(), coder.Name)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		by      *actors.Agent
		command string
	}{{h.guest("ada"), "make"}, {h.guest("bob"), "git push"}, {codex, "make install"}, {h.guest("zoe"), "sudo make"}} {
		if _, err := c.by.Approve(t.Context(), mailbox.RequestApproval{Permission: parley.Permission{Tool: "Bash", Folder: "/srv/shop", Input: fmt.Sprintf(`{"command":%q}`, c.command)}}); err != nil {
			t.Fatal(err)
		}
	}
	_, _, body := h.get("/agents", "text/html")
	rail := strings.Split(body, `id="left-agents"`)[1]
	var named []string
	for _, m := range regexp.MustCompile(`data-state="wait"[^>]*><span class="name"><bdi>([^<]*)`).FindAllStringSubmatch(rail, -1) {
		named = append(named, m[1])
	}
	want := []string{"zoe", "bob", "ada", "Codex · shop"}
	if !slices.Equal(named, want) {
		t.Errorf("rail: %q, want %q", named, want)
	}
	if names, _ := h.listed("/agents"); !slices.Equal(names, append([]string{"You"}, append(want, "fae")...)) {
		t.Errorf("table: %q", names)
	}
	_, _, body = h.get(web.AccessPath, "text/html")
	if body = strings.Split(body, `<main`)[1]; strings.Contains(body, ">"+coder.Name+"<") || strings.Count(body, ">Codex · shop<") != 2 {
		t.Error("Rules and access call it by another name")
	}
}

// rowOf returns the words of an agent's row in the list, by column.
func (h *pageServer) rowOf(address, name string) []string {
	h.t.Helper()
	_, _, body := h.get(address, "text/html")
	for row := range strings.SplitSeq(body, `<tr class="agent"`) {
		row, _, _ = strings.Cut(row, "</tr>")
		if !strings.Contains(row, "<bdi>"+name+"</bdi></a></h2>") {
			continue
		}
		var cells []string
		for _, m := range regexp.MustCompile(`(?s)<t[hd] [^>]*>(.*?)</t[hd]>`).FindAllStringSubmatch(row, -1) {
			cells = append(cells, strings.Join(strings.Fields(html.UnescapeString(tags.ReplaceAllString(m[1], " "))), " "))
		}
		return cells
	}
	return nil
}

// TestAgentListHasColumns looks at the state, the mail and the rules of an agent that waits, of one that asks about every call, and of
// one that has stopped in an error.
func TestAgentListHasColumns(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	ctx, host := t.Context(), h.node.Host()
	h.decide(h.shell("make"), "always")
	h.shell("git push")
	for range 2 {
		if _, err := host.Send(ctx, "fae", "Go on"); err != nil {
			t.Fatal(err)
		}
	}
	careful, broken := h.guest("careful"), h.guest("broken")
	if err := host.Agents().SetPolicy(ctx, careful, "always", nil); err != nil {
		t.Fatal(err)
	}
	if err := broken.Report(ctx, "error", "exit 1: duplicate key"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][3]string{
		"fae":     {`^Waiting for you since .* git push 1 question open$`, `^2 unread$`, `^1 rule$`},
		"careful": {`^Idle since `, `^None$`, `^Always asks$`},
		"broken":  {`^Error since .* exit 1: duplicate key$`, `^None$`, `^No rules$`},
	} {
		cells := h.rowOf("/agents", name)
		for i, pattern := range want {
			if len(cells) < 6 || !regexp.MustCompile(pattern).MatchString(cells[i+1]) {
				t.Errorf("%s: %q, want %s", name, cells, pattern)
			}
		}
	}
}

// TestAgentListCountsDecisionsOfToday has calls decided by a person, by rules and by votes, and counts them from when the reader's day began.
// Questions that are no calls, and the reader, have no number.
func TestAgentListCountsDecisionsOfToday(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.decide(h.shell("make first"), "always")
	for range 3 {
		h.shell("make first")
	}
	h.decide(h.shell("make second"), "deny")
	h.decideBecause(h.shell("make third").Form, "never", "")
	h.shell("make third")
	h.shell("make open")
	h.guest("joe")
	today := func(address, name string) string {
		cells := h.rowOf(address, name)
		if len(cells) != 6 {
			t.Fatalf("%s has the columns %q", name, cells)
		}
		return cells[4]
	}
	// The node counts what it has read, which is all that it is asked for here but for the moments after a call.
	eventually.Holds(t, "the calls are counted", func() bool { return today("/agents", "fae") == "4 / 3" })
	if got := today("/agents", "joe"); got != "0 / 0" {
		t.Errorf("who asked nothing has %q", got)
	}
	if got := today("/agents", "You"); got != "–" {
		t.Errorf("the reader has %q", got)
	}
	nextMillisecond() // times are in these
	begins := url.QueryEscape(time.Now().UTC().Format(time.RFC3339Nano))
	if got := today("/agents?today="+begins, "fae"); got != "0 / 0" {
		t.Errorf("a day that has just begun has %q", got)
	}
	for _, far := range []string{"2001-02-03T00:00:00Z", "2301-02-03T00:00:00Z"} { // of a clock that is wrong
		if got := today("/agents?today="+far, "fae"); got != "4 / 3" {
			t.Errorf("%s: %q", far, got)
		}
	}
	if status, _, body := h.get("/agents?today=noon", "text/html"); status != http.StatusBadRequest {
		t.Errorf("no time: %d %s", status, body)
	}
}

// TestAgentsAreFilteredByState lists the agents in each state that one is in, with how many are, and goes on from part to part in one state.
func TestAgentsAreFilteredByState(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.shell("git push")
	broken := h.guest("broken")
	if err := broken.Report(t.Context(), "error", "exit 1"); err != nil {
		t.Fatal(err)
	}
	h.guest("joe")
	if _, err := actors.TopicsOf(h.node.Host()).Make(t.Context(), "news", ""); err != nil {
		t.Fatal(err)
	}
	filters := func(address string) string {
		_, _, body := h.get(address, "text/html")
		_, body, _ = strings.Cut(body, `aria-label="Show">`)
		body, _, _ = strings.Cut(body, "</nav>")
		return strings.Join(strings.Fields(tags.ReplaceAllString(body, " ")), " ")
	}
	if got := filters("/agents"); got != "All 3 Waiting for you 1 Error 1 Idle 1" {
		t.Errorf("filters: %s", got)
	}
	for state, want := range map[string][]string{"waiting": {"fae"}, "error": {"broken"}, "idle": {"joe"}, "stopped": nil} {
		if got, _ := h.listed("/agents?state=" + state); !slices.Equal(got, want) {
			t.Errorf("%s: %q", state, got)
		}
	}
	if got := filters("/agents?state=stopped"); got != "All 3 Waiting for you 1 Error 1 Idle 1 Stopped 0" {
		t.Errorf("filters of a state without agents: %s", got)
	}
	if status, _, body := h.get("/agents?state=asleep", "text/html"); status != http.StatusBadRequest {
		t.Errorf("a state that there is not: %d %s", status, body)
	}
	for i := range shownAgents + 20 {
		h.guest(fmt.Sprintf("k%03d", i))
	}
	if got := filters("/agents"); got != "All Waiting for you Running Error Idle Stopped" {
		t.Errorf("filters of a part: %s", got)
	}
	if got, more := h.listed("/agents?state=waiting"); !slices.Equal(got, []string{"fae"}) || more != "" {
		t.Errorf("of many: %q, more %q", got, more)
	}
	first, more := h.listed("/agents?state=idle")
	rest, none := h.listed(more)
	if len(first) != shownAgents || len(rest) != 21 || none != "" || slices.Contains(first, rest[0]) {
		t.Errorf("%d idle ones at first, and then %d, more %q", len(first), len(rest), none)
	}
}
