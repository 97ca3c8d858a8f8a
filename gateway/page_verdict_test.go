package gateway

import (
	"strings"
	"testing"

	"parley/actors"
	"parley/capabilities"
	"parley/mailbox"
)

// TestTheAskersPageSaysWhetherItIsAllowed: what another than the host decided is no permission, and does not look like one.
func TestTheAskersPageSaysWhetherItIsAllowed(t *testing.T) {
	h := openTestServer(t)
	fae := h.guest("fae")
	for to, want := range map[string]string{"@self": "Not allowed: only the agent’s host can", "": "Allowed once"} {
		p, err := fae.Approve(t.Context(), actors.Approval{To: to, Tool: "shell", Input: `{"command":"ls"}`})
		if err != nil {
			t.Fatal(err)
		}
		by := fae
		if to == "" {
			by = h.node.Host()
		}
		form := actors.Which(p.Form.String())
		if _, err := by.Answer(t.Context(), actors.Answer{Which: form, Values: map[string]capabilities.Value{"decision": capabilities.String(mailbox.Once)}}); err != nil {
			t.Fatal(err)
		}
		e, err := fae.Message(t.Context(), form)
		if err != nil {
			t.Fatal(err)
		}
		if got := verdictOf(e); !strings.Contains(got.Words, want) {
			t.Errorf("asked of %q: %+v", to, got)
		}
	}
}
