package gateway

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/web"
	"parley/internal/eventually"
	"parley/mailbox"
)

// approve requests permission to call a tool from the guest.
func (h *pageServer) approve(tool, input string) view.Permitted {
	h.t.Helper()
	return h.approveIn("", tool, input)
}

// approveIn requests permission for a call in a folder from fae.
func (h *pageServer) approveIn(folder, tool, input string) view.Permitted {
	h.t.Helper()
	p, err := h.fae.Approve(h.t.Context(), mailbox.RequestApproval{Permission: parley.Permission{Tool: tool, Input: input, Folder: folder}})
	if err != nil {
		h.t.Fatal(err)
	}
	return p
}

// decide answers an approval as the host.
func (h *pageServer) decide(p view.Permitted, decision string) {
	h.t.Helper()
	texts := []events.FieldText{{Name: "decision", Text: decision}}
	if _, err := h.node.Host().Answer(h.t.Context(), capabilities.FormID(p.Form), parley.Answer{Texts: texts}); err != nil {
		h.t.Fatal(err)
	}
	if _, _, err := h.fae.AwaitApproval(h.t.Context(), capabilities.FormID(p.Form)); err != nil {
		h.t.Fatal(err)
	}
}

// give sends a reference to the guest itself to the host.
func (h *pageServer) give() {
	h.t.Helper()
	asked, err := h.node.Host().Ask(h.t.Context(), parley.Form{
		To: "fae", Description: "Who helps?", Fields: []events.Field{{Name: "helper", Type: events.Capability}},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	ref, answer := capabilities.FormID(asked.Form), parley.Answer{Texts: []events.FieldText{{Name: "helper", Text: "SELF"}}}
	if _, err := h.fae.Answer(h.t.Context(), ref, answer); err != nil {
		h.t.Fatal(err)
	}
}

func TestAgentPageWorksWithoutScript(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.decide(h.approve("shell", `{"command":"git push"}`), "always")
	h.decide(h.approve("<script>alert(1)</script>\u202e", "{\"path\":\"<img src=x>\u202e\"}"), "never")
	if p := h.approve("shell", `{"command":"git push","description":"Push it"}`); !p.Decided || !p.Allowed {
		t.Fatalf("%+v", p)
	}
	h.give()
	eventually.Holds(t, "the index has what the rule decided", func() bool { // a page does not wait long for it
		_, _, part := h.get("/agents/fae?tab=activity", "text/html")
		return strings.Contains(part, "Allowed by rule")
	})
	var body string
	for _, c := range []struct {
		tab  string
		want []string
	}{
		{"activity", []string{`href="/agents/fae?tab=access"`, `aria-current="page">Activity`, "When no rule applies: ask", `<span class="state">Always allowed</span>`, `<span class="state">Allowed by rule</span>`, ">git push</bdi>", `name="text"`}},
		{"access", []string{h.fae.ID().String(), "@host", "<strong>SELF</strong></bdi> to <bdi", `>you</bdi> <span class="muted">got a reference`, "its host"}},
		{"rules", []string{
			"Always</strong>", "exactly: git push<", "used 1 time, last", "Never</strong>", "not used yet", "until removed",
			"&lt;script&gt;alert(1)&lt;/script&gt;\\u{202e}", "&lt;img src=x&gt;\\u{202e}",
		}},
		{"events", []string{"<code>RuleUsed</code>", "<code>RuleAdded</code>", "&#34;tool&#34;"}},
	} {
		status, head, part := h.get("/agents/fae?tab="+c.tab, "text/html")
		if status != 200 || head.Get("Content-Security-Policy") != pagePolicy {
			t.Fatalf("%d %v\n%s", status, head, part)
		}
		for _, want := range c.want {
			if !strings.Contains(part, want) {
				t.Errorf("%s: there is no %q in\n%s", c.tab, want, part)
			}
		}
		body += part
	}
	if bad := regexp.MustCompile(`(?i)<style|\sstyle=|\son[a-z]+=|<script[^>]*>[^<]|https?://|<img src=x|\x{202e}`).FindString(body); bad != "" {
		t.Errorf("it has %q in it", bad)
	}
	if _, _, list := h.get("/agents", "text/html"); !strings.Contains(list, `href="/agents/fae"`) || !strings.Contains(list, `href="/agents/SELF"`) {
		t.Errorf("the list does not lead there:\n%s", list)
	}
}

func TestAgentPageShowsNewestEvents(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	for range newestEvents + 5 {
		if err := h.fae.Names().Store(t.Context(), "note", `"more"`); err != nil {
			t.Fatal(err)
		}
		if err := h.fae.Names().Remove(t.Context(), "note"); err != nil {
			t.Fatal(err)
		}
	}
	long := strings.Repeat("long", maxPayload)
	if err := h.fae.Names().Store(t.Context(), "last", `"`+long+`"`); err != nil {
		t.Fatal(err)
	}
	_, _, body := h.get("/agents/fae?tab=events", "text/html")
	_, log, _ := strings.Cut(body, `id="log"`)
	if got := strings.Count(log, "<details>"); got != newestEvents {
		t.Errorf("%d events", got)
	}
	newest, _, _ := strings.Cut(log, "</details>")
	if !strings.Contains(newest, "longlong") || !strings.Contains(newest, "characters more") || len(newest) > 2*maxPayload {
		t.Errorf("the newest is first, and cut: %d bytes, %.200s", len(newest), newest)
	}
}

func TestAgentPageIsForHostAndAgent(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.guest("joe")
	odd := "what? #1 100%"
	h.guest(odd)
	if status, _, body := h.get(web.AgentPath(odd), "text/html"); status != 200 || !strings.Contains(body, "what? #1") {
		t.Errorf("a name of odd characters: %d\n%s", status, body)
	}
	if _, _, list := h.get("/agents", "text/html"); !strings.Contains(list, `href="`+web.AgentPath(odd)+`"`) {
		t.Errorf("the list does not lead to %s:\n%s", web.AgentPath(odd), list)
	}
	if status, _, _ := h.get("/agents/nobody", "text/html"); status == 200 {
		t.Error("there is a page of nobody")
	}
	guest := makeToken(t, h.fae, "read")
	for _, c := range []struct {
		path, token string
		want        int
	}{{"/agents/joe", guest, 403}, {"/agents/fae", guest, 403}, {"/agents/SELF", guest, 200}, {"/agents/fae", "", 401}} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.url+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", "text/html")
		if status, _, body := h.send(r, c.token); status != c.want {
			t.Errorf("%s with token %.8q: %d, want %d\n%s", c.path, c.token, status, c.want, body)
		}
	}
}

// TestUnknownAddressIsAPage tells a browser on a page that there is nothing at an address, and a program as JSON.
func TestUnknownAddressIsAPage(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	status, head, body := h.get("/nowhere/<b>", "text/html,*/*")
	if status != 404 || !strings.HasPrefix(head.Get("Content-Type"), "text/html") || !strings.Contains(body, "There is nothing here") || strings.Contains(body, "/<b>") {
		t.Errorf("%d %v\n%s", status, head, body)
	}
	if head.Get("Content-Security-Policy") != pagePolicy {
		t.Errorf("the policy is %q", head.Get("Content-Security-Policy"))
	}
	if status, head, body = h.get("/nowhere", "*/*"); status != 404 || head.Get("Content-Type") != "application/json" || !strings.Contains(body, "INVALID_ARGUMENT") {
		t.Errorf("%d %v\n%s", status, head, body)
	}
}
