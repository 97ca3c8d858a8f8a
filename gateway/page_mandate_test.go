package gateway

import (
	"net/url"
	"strings"
	"testing"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// TestPageShowsWhatIsLeftOfMandates shows a mandate on the agent's own page and on that of all access, and ends it there.
func TestPageShowsWhatIsLeftOfMandates(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	plan := h.approveIn("/srv/shop", "plan", `{"plan":"pay"}`)
	terms := &parley.MandateTerms{Rules: []parley.MandateRule{{Tool: "<pay>"}, {Command: "make test"}}, Calls: 5, Until: "2h", Sums: []parley.MandateSum{{Tool: "<pay>", Member: "amount", Most: "100"}}}
	answer := parley.Answer{Mandate: terms, Texts: []events.FieldText{{Name: "decision", Text: mailbox.Once}}}
	if _, err := h.node.Host().Answer(t.Context(), capabilities.FormID(plan.Form), answer); err != nil {
		t.Fatal(err)
	}
	paid := h.approveIn("/srv/shop", "<pay>", `{"amount":12.5,"to":"<b>"}`)
	if !paid.Allowed || paid.Mandate.IsZero() {
		t.Fatalf("%+v", paid)
	}
	if p := h.approveIn("/srv/shop", "Bash", `{"command":"make test"}`); p.Mandate != paid.Mandate {
		t.Fatalf("%+v", p)
	}
	_, _, rules := h.get("/agents/fae?tab=rules", "text/html")
	for _, want := range []string{
		"3 of 5 calls left", "87.5 of 100 left of <bdi>amount</bdi> of", "&lt;pay&gt;: any input", "make test, without options", "2 calls so far", "What it covered",
		"&#34;to&#34;:&#34;&lt;b&gt;&#34;", `name="mandate" value="` + paid.Mandate.String(),
	} {
		if !strings.Contains(rules, want) {
			t.Errorf("there is no %q in\n%s", want, rules)
		}
	}
	if _, _, access := h.get("/access", "text/html"); !strings.Contains(access, "1 mandate lasts.") || !strings.Contains(access, "3 of 5 calls left · 87.5 of 100 left of <bdi>amount</bdi> of") {
		t.Errorf("all access:\n%s", access)
	}
	if status, _, _ := h.postForm("/agents/fae?tab=rules", url.Values{"mandate": {paid.Mandate.String()}}); status != 303 {
		t.Fatalf("status %d", status)
	}
	if _, _, rules := h.get("/agents/fae?tab=rules", "text/html"); !strings.Contains(rules, "Ended: revoked") || strings.Contains(rules, `name="mandate"`) {
		t.Errorf("after its end:\n%s", rules)
	}
	if p := h.approveIn("/srv/shop", "Bash", `{"command":"make test"}`); p.Decided {
		t.Errorf("after its end: %+v", p)
	}
}
