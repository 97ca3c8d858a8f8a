package gateway

import (
	"fmt"
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"parley/internal/eventually"
	"parley/mailbox/proof"
)

// TestOfferedRulesSayWhatTheyWouldHaveDecided shows an open call after others that its rules cover, alone and as the first that waits.
func TestOfferedRulesSayWhatTheyWouldHaveDecided(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	first := h.approveIn("/srv/shop", "shell", `{"command":"git push origin main"}`)
	for _, at := range []string{"/", "/forms/" + first.Form.String()} {
		if _, _, body := h.get(at, "text/html"); strings.Contains(body, "past call") || !strings.Contains(body, "git push to origin") {
			t.Errorf("%s: the first call has a past, or no rules:\n%s", at, body)
		}
	}
	h.decide(first, "once")
	h.decide(h.approveIn("/srv/shop", "shell", `{"command":"git push origin v1"}`), "deny")
	h.decide(h.approveIn("/srv/shop", "shell", `{"command":"make"}`), "deny")
	open := h.approveIn("/srv/shop", "shell", `{"command":"git push origin main"}`)
	for _, at := range []string{"/", "/forms/" + open.Form.String()} {
		for _, want := range []string{"1 past call: 1 allowed, 0 denied", "2 past calls: 1 allowed, 1 denied"} {
			eventually.Holds(t, at+" has "+want, func() bool {
				_, _, body := h.get(at, "text/html")
				return strings.Contains(body, want)
			})
		}
	}
	h.decide(open, "once")
	make := h.approveIn("/srv/shop", "shell", `{"command":"make"}`) // which has one rule: the button says it
	eventually.Holds(t, "the rule says it", func() bool {
		_, _, body := h.get("/forms/"+make.Form.String(), "text/html")
		return strings.Contains(body, "1 past call: 0 allowed, 1 denied")
	})
	h.decide(make, "once")
	high := h.approveIn("/srv/shop", "shell", `{"command":"sudo rm -rf /"}`)
	if _, _, body := h.get("/forms/"+high.Form.String(), "text/html"); strings.Contains(body, "past call") {
		t.Error("a call of high risk has rules")
	}
}

// TestRuleOfThePastSaysWhatItWouldHaveDecided shows a decided call, of which a rule may be made, beside what that would have decided of the agent's
// past calls: how many of all, and those that the person decided otherwise, with the reason.
func TestRuleOfThePastSaysWhatItWouldHaveDecided(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	for i := range 3 {
		h.decide(h.approveIn("/srv/shop", "shell", fmt.Sprintf(`{"command":"git push origin v%d"}`, i)), "once")
	}
	h.decide(h.approveIn("/srv/shop", "shell", `{"command":"make"}`), "once")
	h.decideBecause(h.approveIn("/srv/shop", "shell", `{"command":"git push origin rc-1"}`).Form, "deny", "not on a Friday")
	last := h.approveIn("/srv/shop", "shell", `{"command":"git push origin main"}`)
	h.decide(last, "once")
	text := func(form string) string {
		_, _, body := h.get("/forms/"+form+"?in=history", "text/html")
		return strings.Join(strings.Fields(html.UnescapeString(tags.ReplaceAllString(body, " "))), " ")
	}
	want := "5 of 6 past calls would have been decided without you 1 against your decision git push origin rc-1 You denied it "
	eventually.Holds(t, "the rule says it", func() bool { return strings.Contains(text(last.Form.String()), want) })
	if got := text(last.Form.String()); !strings.Contains(got, ": “ not on a Friday ”") || !strings.Contains(got, "1 of 6 past calls would have been decided without you") {
		t.Errorf("the page has %s", got)
	}
}

// TestProofIsSavedFromThePage saves the proof of a decision, which the node's key alone verifies.
func TestProofIsSavedFromThePage(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	asked := h.approve("deploy", `{"to":"production"}`)
	at := "/forms/" + asked.Form.String()
	if status, _, body := h.get(at+"?proof=yes", "text/html"); status != 400 || !strings.Contains(body, "is open") {
		t.Errorf("of an open call: %d %s", status, body)
	}
	if _, _, body := h.get(at, "text/html"); strings.Contains(body, "proof") {
		t.Error("an open call has a proof")
	}
	h.decide(asked, "once")
	if _, _, body := h.get(at, "text/html"); !strings.Contains(body, at+"?proof=yes") {
		t.Errorf("the page lacks the proof:\n%s", body)
	}
	status, head, text := h.get(at+"?proof=yes", "text/html")
	if status != 200 || !strings.HasPrefix(head.Get("Content-Disposition"), "attachment;") {
		t.Errorf("%d %v", status, head)
	}
	p, err := proof.Read([]byte(text), h.node.Host().ID().Node)
	if err != nil || p.Form != asked.Form || !p.Outcome.Allowed {
		t.Errorf("%v: %+v", err, p)
	}
}

// TestProposedRuleIsMadeOnThePage shows a rule that follows from five decisions, and makes it by a plain HTML form.
func TestProposedRuleIsMadeOnThePage(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	const rules = "/agents/fae?tab=rules"
	if _, _, body := h.get(rules, "text/html"); strings.Contains(body, "Always decided alike") {
		t.Error("there are proposals without a past")
	}
	for i := range 5 {
		h.decide(h.approveIn("/srv/<b>shop", "shell", fmt.Sprintf(`{"command":"git push origin v%d"}`, i)), "once")
	}
	var body string
	var found []string
	eventually.Holds(t, "a rule is proposed", func() bool { // a page does not wait for long for the index
		_, _, body = h.get(rules, "text/html")
		found = regexp.MustCompile(`name="add" value="(always-commands-[0-9a-f]+)"`).FindStringSubmatch(body)
		return found != nil
	})
	if !strings.Contains(body, "5 past calls: 5 allowed, 0 denied") || !strings.Contains(body, "/srv/&lt;b&gt;shop") {
		t.Fatalf("another rule is proposed:\n%s", body)
	}
	if status, _, text := h.postForm(rules, url.Values{"add": {"always-commands-0"}}); status != 400 || !strings.Contains(text, "is not proposed") {
		t.Errorf("another rule: %d %s", status, text)
	}
	if status, _, text := h.postForm(rules, url.Values{"add": {found[1]}, "until/" + found[1]: {"8h"}}); status != 303 && status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	if p := h.approveIn("/srv/<b>shop", "shell", `{"command":"git push origin v9"}`); !p.Decided || !p.Allowed {
		t.Errorf("the rule decides nothing: %+v", p)
	}
	if _, _, body := h.get(rules, "text/html"); strings.Contains(body, "Always decided alike") || !strings.Contains(body, "used 1 time") || !strings.Contains(body, "ends <time") {
		t.Errorf("the rule is not there, or proposed again:\n%s", body)
	}
}
