package gateway

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/mailbox"
)

// TestRuleIsMadeOfPastCall decides a call once, and makes a rule of it in History, which decides the next calls until its end.
func TestRuleIsMadeOfPastCall(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	past := h.shell("git push origin next")
	h.decide(past, "once")
	b := h.openBrowser()
	b.open("/history")
	b.live()
	b.until(`document.querySelectorAll("#alone .make-rule input[type=radio]").length === 2`)
	b.reads("#alone .make-rule label .past", "1 past call: 1 allowed, 0 denied")
	b.until(`[...document.querySelectorAll("#alone .make-rule .past")].every((p) => p.offsetWidth > 100)`) // the words are not one letter a line
	b.click("#alone .make-rule label:nth-of-type(2)")
	b.choose("#alone .make-rule select", "8h")
	b.click("#alone .make-rule button[value=rule]")
	b.reads(".toast", "The rule is made")
	if p := h.shell("git push origin main"); !p.Decided || !p.Allowed {
		t.Errorf("the next call is asked about: %+v", p)
	}
	rules, err := h.fae.Rules().List(t.Context())
	if err != nil || len(rules) != 1 || rules[0].Form != past.Form || rules[0].Until == 0 || !rules[0].Allow {
		t.Fatalf("%+v %v", rules, err)
	}
	denied := h.shell("make release")
	h.decide(denied, "deny")
	at := "/forms/" + denied.Form.String()
	for range 2 { // the same rule is made once
		if status, _, body := h.postForm(at, url.Values{"do": {"rule"}, "agent": {h.fae.ID().String()}, "form": {denied.Form.String()}, "offer": {"call"}, "never": {"yes"}}); status != http.StatusSeeOther {
			t.Fatalf("%d %s", status, body)
		}
	}
	if p := h.shell("make release"); !p.Decided || p.Allowed {
		t.Errorf("a call that is never allowed: %+v", p)
	}
	if rules, err := h.fae.Rules().List(t.Context()); err != nil || len(rules) != 2 {
		t.Errorf("%+v %v", rules, err)
	}
	b.checkNoFaults()
}

// TestRuleIsNotMadeOfEveryCall refuses rules of calls that are open, that several decide, that offer another rule, or of whom
// another is the host.
func TestRuleIsNotMadeOfEveryCall(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	open, done := h.shell("ls"), h.shell("make")
	h.decide(done, "once")
	both, err := h.fae.Approve(t.Context(), mailbox.RequestApproval{Permission: parley.Permission{Tool: "Bash", Input: `{"command":"make"}`, Folder: "/srv/shop"}, Need: 2})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.fae.Cancel(t.Context(), capabilities.FormID(both.Form), ""); err != nil {
		t.Fatal(err)
	}
	host := h.node.Host().Rules()
	for name, c := range map[string]struct {
		form  view.Permitted
		offer string
		until time.Duration
		by    bool
	}{
		"open": {form: open, by: true}, "decided by several": {form: both, by: true}, "another rule": {form: done, offer: "commands-0", by: true},
		"in the past": {form: done, until: -time.Hour, by: true}, "by the agent itself": {form: done},
	} {
		until := capabilities.Time(0)
		if c.until != 0 {
			until = capabilities.At(time.Now().Add(c.until))
		}
		who := h.fae.Rules()
		if c.by {
			who = host
		}
		if _, err := who.Make(t.Context(), h.fae, c.form.Form, c.offer, true, until, func(*parley.Permission) bool { return false }); err == nil {
			t.Errorf("%s: a rule is made", name)
		}
	}
	if rules, err := h.fae.Rules().List(t.Context()); err != nil || len(rules) != 0 {
		t.Errorf("%+v %v", rules, err)
	}
	risky := h.shell("sudo make install")
	h.decide(risky, "once")
	for form, want := range map[capabilities.ID]bool{done.Form: true, risky.Form: false} {
		_, _, body := h.get("/forms/"+form.String()+"?pane=item", "text/html")
		if strings.Contains(body, "Make this a rule") != want {
			t.Errorf("%s offers a rule: %t", form, !want)
		}
	}
}
