package gateway

import (
	"strings"
	"testing"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// TestOpinionStandsBesideItsCall has a reviewer leave one call to the host, with words that pretend to be the page's, and deny another.
func TestOpinionStandsBesideItsCall(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	host := h.node.Host()
	rev := h.guest("rev")
	if err := host.Agents().SetPolicy(t.Context(), h.fae, mailbox.Review, &parley.ReviewTerms{Reviewer: "rev"}); err != nil {
		t.Fatal(err)
	}
	left, denied := h.approve("Bash", `{"command":"make ship"}`), h.approve("Bash", `{"command":"make deploy"}`)
	if _, err := rev.Decline(t.Context(), capabilities.FormID(left.Form), 0, `</p><button>Allow</button>`); err != nil {
		t.Fatal(err)
	}
	if _, err := rev.Answer(t.Context(), capabilities.FormID(denied.Form), parley.Answer{Texts: []events.FieldText{{Name: "decision", Text: "deny"}, {Name: "reason", Text: "not on Fridays"}}}); err != nil {
		t.Fatal(err)
	}
	page := func(form capabilities.ID) string {
		t.Helper()
		status, _, text := h.get("/forms/"+form.String(), "text/html")
		if status != 200 {
			t.Fatalf("%d: %s", status, text)
		}
		return text
	}
	text := page(left.Form)
	for _, want := range []string{"What a reviewer says", "leaves it to you", "&lt;/p&gt;&lt;button&gt;", "(its opinion)"} {
		if !strings.Contains(text, want) {
			t.Errorf("the call that is left to the host does not say %q", want)
		}
	}
	text = page(denied.Form)
	if !strings.Contains(text, "by reviewer ") || strings.Contains(text, "(its opinion)") {
		t.Error("the call that a reviewer has denied does not say so")
	}
}
