package gateway

import (
	"strings"
	"testing"

	"parley/actors"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

func TestFormsShowMarkdown(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	fields := []events.Field{{Name: "a", Help: "as in `x`, see [y](https://b.example)"}}
	h.ask(actors.Ask{Description: "Deploy *now*?\n\nIt is **ready**.", Fields: fields})
	_, _, body := h.get("/forms/0", "text/html")
	for _, want := range []string{
		"Deploy *now*?</bdi></h2>", `<div class="context markdown">It is <strong>ready</strong>.</div>`,
		"as in <code>x</code>", `<bdi>(b.example)</bdi>`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// TestAskersPageShowsPermission checks that a decision of another agent than the host is shown as no permission.
func TestAskersPageShowsPermission(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	fae := h.fae
	for to, want := range map[string]string{"@self": "Not allowed: only the agent’s host can", "": "Allowed once"} {
		p, err := fae.Approve(t.Context(), actors.Approval{To: to, Tool: "shell", Input: `{"command":"ls"}`})
		if err != nil {
			t.Fatal(err)
		}
		by := fae
		if to == "" {
			by = h.node.Host()
		}
		form := capabilities.FormID(p.Form)
		if _, err := by.Answer(t.Context(), actors.Answer{Form: form, Values: map[string]capabilities.Value{"decision": capabilities.String(mailbox.Once)}}); err != nil {
			t.Fatal(err)
		}
		if _, _, body := h.get("/forms/"+p.Form.String()+"?as=fae", "text/html"); !strings.Contains(body, want) {
			t.Errorf("asked of %q: the page lacks %q\n%s", to, want, body)
		}
	}
}
