package gateway

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// waitingCalls returns the number of forms that wait for the host.
func (h *pageServer) waitingCalls() int {
	h.t.Helper()
	in, err := h.node.Host().Mail().Inbox(h.t.Context(), view.MessageFilter{Pending: true})
	if err != nil {
		h.t.Fatal(err)
	}
	return len(in.Messages)
}

// approveEditable asks about a call of an agent that makes it with the input that is allowed.
func (h *pageServer) approveEditable(input string) view.Permitted {
	h.t.Helper()
	p, err := h.fae.Approve(h.t.Context(), mailbox.RequestApproval{Permission: parley.Permission{Tool: "shell", Input: input, Folder: "/srv/shop"}, Editable: true})
	if err != nil {
		h.t.Fatal(err)
	}
	return p
}

// asked returns an approval of fae as its asker sees it.
func (h *pageServer) asked(p view.Permitted) view.Message {
	h.t.Helper()
	m, err := h.fae.Message(h.t.Context(), capabilities.FormID(p.Form))
	if err != nil {
		h.t.Fatal(err)
	}
	return m
}

// digest returns the digest of such an approval.
func (h *pageServer) digest(p view.Permitted) string { return h.asked(p).Digest }

// TestInputIsEditedOnPage allows a call with another input, of which the page shows the digest before.
func TestInputIsEditedOnPage(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	const shown, allowed = `{"timeout": 5, "command":"git push"}`, `{"timeout": 5, "command":"git push --dry-run"}`
	p := h.approveEditable(shown)
	asked := *h.asked(p).Permission
	asked.Input = allowed
	edited := asked.Digest()
	b := h.openBrowser()
	b.open("/questions")
	b.until(`document.activeElement.matches("li.message[data-keys]")`)
	b.press("e")
	b.until(`document.activeElement.matches(".edit-card textarea") && document.activeElement.value === "git push"`)
	b.until(`document.querySelector("#alone [data-edited]").disabled`)
	b.fill(".edit-card textarea", "git push --dry-run")
	b.reads(".change", "git push --dry-run")
	b.holds(".edited code", edited)

	b.until(`!document.querySelector("#alone .choices > [value=always]").checkVisibility()`) // no rule follows from it
	b.until(`!document.querySelector("#alone [data-edited]").disabled`)
	b.shotIfWanted("edit")
	b.press("\r", chromedp.ModifierCtrl)
	b.reads(asking(p)+" .state", "✓ Allowed once, with another input")
	b.reads(asking(p)+" .outcome", allowed)
	b.reads(asking(p)+" .outcome", edited)
	ok, o, err := h.fae.AwaitApproval(t.Context(), capabilities.FormID(p.Form))
	if err != nil || !ok || o.EditedInput != allowed || o.EditedDigest != edited || o.Digest != h.digest(p) {
		t.Errorf("%v %+v %v", ok, o, err)
	}
	plain := h.approve("shell", shown)
	b.reads(asking(plain)+" .heading", "git push")
	if got := b.text(`document.querySelectorAll(".edit").length`); got != "0" {
		t.Error("a call is edited whose agent cannot take another input")
	}
	b.checkNoFaults()
}

// TestRuleEndsOnPage gives a rule an end, in words before and after.
func TestRuleEndsOnPage(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	p := h.approveIn("/srv/shop", "shell", `{"command":"ls"}`)
	b := h.openBrowser()
	b.open("/questions")
	b.choose(asking(p)+" .rules [data-kind=select] select[id$='-3']", "8h")
	b.reads(asking(p)+" button[value=always]", "until ")
	b.click(asking(p) + " button[value=always]")
	b.reads(asking(p)+" .state", "✓ Always: ")
	b.reads(asking(p)+" .state", ", until ")
	rules, err := h.fae.Rules().List(t.Context())
	if err != nil || len(rules) != 1 || rules[0].Until == 0 {
		t.Fatalf("%+v %v", rules, err)
	}
	b.open("/agents/fae?tab=rules")
	b.live()
	b.click("#rules summary")
	b.choose("#rules select", "168h")
	b.click("#rules [name=limit]")
	b.reads("#news", "The rule has an end")
	id := rules[0].Rule.String()
	for until, want := range map[string]int{"never": http.StatusBadRequest, "720h": http.StatusSeeOther} { // as a plain HTML form
		if status, _, body := h.postForm("/agents/fae?tab=rules", url.Values{"limit": {id}, "until/" + id: {until}}); status != want {
			t.Errorf("%s: %d %s", until, status, body)
		}
	}
	limited, err := h.fae.Rules().List(t.Context())
	if err != nil || len(limited) != 1 || limited[0].Until < rules[0].Until+700*3_600_000 {
		t.Errorf("%+v %v", limited, err)
	}
	b.checkNoFaults()
}

// TestSameCallsAreDecidedTogether decides on identical calls, which are one row, and not on one that came later. Then it picks
// rows and denies them by keys.
func TestSameCallsAreDecidedTogether(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	const same = `{"command":"make"}`
	var shown []view.Permitted
	for range 2 {
		shown = append(shown, h.approve("shell", same))
	}
	h.approve("shell", `{"command":"make install"}`)
	b := h.openBrowser()
	b.open("/mail")
	b.live()
	b.reads(".entry .what", "2 × identical")
	shown = append(shown, h.approve("shell", same))
	b.reads(".entry .what", "3 × identical") // in all mail, as it comes
	b.until(`document.querySelectorAll(".entry").length === 2`)
	b.open("/agents/fae")
	b.reads("#activity .same", "3 × identical")
	b.until(`document.querySelectorAll("#activity [data-keep]").length === 2`)
	b.open("/questions")
	b.live()
	b.reads(".entry .what", "3 × identical")
	b.reads(".same", "3 × identical")
	b.reads(".together", "Deny all 4 of fae")
	later := h.approve("shell", same)
	b.reads(".entry .what", "4 × identical") // and the card decides what it showed
	b.until(`document.activeElement.matches("li.message[data-keys]")`)
	b.press("a")
	b.reads(".toast", "3 ×")
	for _, p := range shown {
		if !h.permitted(p) {
			t.Error("it is not allowed")
		}
	}
	if n := h.waitingCalls(); n != 2 {
		t.Errorf("%d wait, want the other call and the later one", n)
	}
	b.until(`document.activeElement.matches("#alone > .message[data-waits][data-keys]")`) // the next card has taken the focus
	b.until(`document.querySelectorAll(".entry").length === 2 && !document.querySelector(".entry[data-decided]")`)
	b.run(`document.querySelector(".entry > a").focus()`)
	b.press("x")
	b.reads(".bulk .picked", "1 selected")
	b.press("jx")
	b.reads(".bulk .picked", "2 selected")
	b.press("d")
	b.until(`document.activeElement.matches("#bulk-reason")`)
	b.press("a day off\r") // these letters are no keys
	if h.permitted(later) {
		t.Error("it is allowed")
	}
	b.reads("#empty", "Nothing needs you")
	b.checkNoFaults()
}

// TestPickedMessagesMoveInOneCall snoozes two forms and takes it back. Each is one call and one commit.
func TestPickedMessagesMoveInOneCall(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	for range 3 {
		h.ask(parley.Form{Fields: []events.Field{{Name: "a", Label: "A"}, {Name: "b", Label: "B"}}})
	}
	b := h.openBrowser()
	b.open("/questions")
	b.live()
	b.until(`document.querySelectorAll(".entry").length === 3`)
	b.run(`const ask = fetch;
		window.calls = [];
		window.fetch = (to, ...more) => { if (/rpc.(snooze|move_messages|dismiss)/.test(to)) calls.push(to.split('/').pop()); return ask(to, ...more); };`)
	b.run(`document.querySelector(".entry > a").focus()`)
	b.press("xjx")
	b.reads(".bulk .picked", "2 selected")
	b.run(`document.querySelector('.bulk button[value^="snooze-"]').click()`)
	b.reads("#news", "Snoozed, 2: Configure the project")
	b.until(`document.querySelectorAll(".entry").length === 1 && calls.join() === 'move_messages'`)
	b.click(".toast p button")
	b.until(`document.querySelectorAll(".entry").length === 3 && calls.join() === 'move_messages,move_messages'`)
	b.checkNoFaults()
}

// TestEqualCallsWithOtherReasonsAreOne decides three equal calls as one, by the digest of each. What the agent says of each is
// on the page, and a call that is no equal one is not decided with them.
func TestEqualCallsWithOtherReasonsAreOne(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	ask := func(input, reason, part string) view.Permitted {
		t.Helper()
		p, err := h.fae.Approve(t.Context(), mailbox.RequestApproval{Permission: parley.Permission{Tool: "shell", Input: input, Folder: "/srv/shop", Reason: reason, Part: part}})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	const input = `{"command":"make"}`
	calls := []view.Permitted{ask(input, "to ship <it>", ""), ask(input, "to try it", "worker 1"), ask(input, "", "worker 2")}
	other := ask(`{"command":"make clean"}`, "to ship <it>", "")
	path := "/forms/" + calls[0].Form.String()
	_, _, body := h.get(path, "text/html")
	for _, want := range []string{"says why: “to ship &lt;it&gt;”", "calls its part “worker 1”, says why: “to try it”", "calls its part “worker 2”", `<details class="same" open>`, "<span data-many>3</span> × identical"} {
		if !strings.Contains(body, want) {
			t.Errorf("there is no %s in\n%s", want, body)
		}
	}
	of := func(asked ...view.Permitted) (names []string) {
		for _, p := range asked {
			names = append(names, p.Form.String()+" "+h.digest(p))
		}
		return names
	}
	if status, _, body := h.postForm(path, url.Values{"f0": {"once"}, "of": of(calls[0], other)}); status != http.StatusBadRequest {
		t.Errorf("another call: %d\n%s", status, body)
	}
	swapped := []string{of(calls[0])[0], calls[1].Form.String() + " " + h.digest(calls[0])}
	if status, _, body := h.postForm(path, url.Values{"f0": {"deny"}, "of": swapped}); status != http.StatusBadRequest || !strings.Contains(body, "1 of 2 calls were not decided") {
		t.Errorf("the digest of another: %d\n%s", status, body)
	}
	if status, _, body := h.postForm("/forms/"+calls[1].Form.String(), url.Values{"f0": {"once"}, "of": of(calls[1], calls[2])}); status != http.StatusSeeOther {
		t.Errorf("%d\n%s", status, body)
	}
	if !h.permitted(calls[1]) || !h.permitted(calls[2]) {
		t.Error("an equal call is not allowed")
	}
}

// TestTogetherWithoutScript sends plain HTML forms.
func TestTogetherWithoutScript(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	const input = `{"command":"make"}`
	first, second := h.approveEditable(input), h.approveEditable(input)
	_, _, body := h.get("/forms/"+first.Form.String(), "text/html")
	digest := h.digest(first)
	for _, want := range []string{"× identical</strong>", fmt.Sprintf(`name="of" value="%s %s"`, second.Form, digest), "Edit…"} {
		if !strings.Contains(body, want) {
			t.Errorf("there is no %s in\n%s", want, body)
		}
	}
	sent := url.Values{"do": {"together"}, "decision": {"deny"}, "of": {first.Form.String() + " " + digest, second.Form.String() + " " + strings.Repeat("0", 64)}}
	if status, _, body := h.postForm("/forms/"+first.Form.String(), sent); status != http.StatusBadRequest || !strings.Contains(body, "1 of 2 calls were not decided") {
		t.Errorf("%d\n%s", status, body)
	}
	if h.permitted(first) {
		t.Error("the other one stopped it")
	}
	same := []view.Permitted{h.approveEditable(input), h.approveEditable(input)}
	of := []string{same[0].Form.String() + " " + digest, same[1].Form.String() + " " + digest}
	if status, _, body := h.postForm("/forms/"+same[0].Form.String(), url.Values{"f0": {"always"}, "f2": {"call"}, "f4": {input}, "of": of}); status != http.StatusSeeOther {
		t.Errorf("%d\n%s", status, body)
	}
	if !h.permitted(same[0]) || !h.permitted(same[1]) {
		t.Error("an identical call is not allowed")
	}
	if rules, err := h.fae.Rules().List(t.Context()); err != nil || len(rules) != 1 {
		t.Errorf("%+v %v, want one rule", rules, err)
	} else if err := h.node.Host().Rules().Remove(t.Context(), h.fae, rules[0].Rule); err != nil {
		t.Error(err)
	}
	picked := h.approveEditable(`{"command":"make clean"}`)
	_, _, body = h.get("/questions", "text/html")
	pick := url.Values{"id": {picked.Form.String()}, "of": {picked.Form.String() + " " + h.digest(picked)}}.Encode()
	if !strings.Contains(html.UnescapeString(body), `name="pick" value="`+pick+`"`) {
		t.Errorf("there is no %s in\n%s", pick, body)
	}
	for _, c := range []struct {
		do, pick string
		status   int
	}{{"once", "", 400}, {"cancel", pick, 400}, {"snooze-1", pick, 303}, {"wake", pick, 303}, {"deny", pick, 303}} {
		if status, _, body := h.postForm("/questions", url.Values{"do": {c.do}, "pick": {c.pick}}); status != c.status {
			t.Errorf("%s: %d\n%s", c.do, status, body)
		}
	}
	if h.permitted(picked) {
		t.Error("it is allowed")
	}
	fields := url.Values{"f0": {"deny"}, "f1": {"no"}, "f2": {""}, "f3": {"8h"}, "f4": {`{"command":"rm"}`}}
	if status, _, body := h.postForm("/forms/"+second.Form.String(), fields); status != http.StatusSeeOther || h.permitted(second) {
		t.Errorf("denied with another input: %d\n%s", status, body)
	}
	third := h.approveEditable(input)
	if status, _, body := h.postForm("/forms/"+third.Form.String(), url.Values{"f0": {"once"}, "f1": {""}, "f2": {""}, "f3": {""}, "f4": {input}}); status != http.StatusSeeOther {
		t.Errorf("%d\n%s", status, body)
	}
	if _, o, err := h.fae.AwaitApproval(t.Context(), capabilities.FormID(third.Form)); err != nil || o.EditedInput != "" {
		t.Errorf("the input that was shown is another one: %+v %v", o, err)
	}
}
