package gateway

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"parley/actors/view"
)

// shell asks about a command in the folder of the shop.
func (h *pageServer) shell(command string) view.Permitted {
	h.t.Helper()
	return h.approveIn("/srv/shop", "Bash", fmt.Sprintf(`{"command":%q}`, command))
}

// TestSimilarCallsAreOneItem opens calls that are alike, takes one of them out, and denies the others with one reason. One that comes
// meanwhile is not decided.
func TestSimilarCallsAreOneItem(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	var all []view.Permitted
	for i := range 4 {
		all = append(all, h.shell(fmt.Sprintf("go test ./p%d -v", i)))
	}
	b := h.openBrowser()
	b.open("/questions")
	b.live()
	b.reads(".entry .what", "4 × go test ./p0 … ./p3 -v")
	b.until(`document.querySelectorAll(".entry").length === 1`)
	b.reads("#alone .heading", "Run go test 4 times")
	b.reads("#alone .same-in", "go test … -v")
	b.until(`[...document.querySelectorAll("#alone .member th")].map((e) => e.innerText.trim()).join() === "./p0,./p1,./p2,./p3"`)
	b.reads("#alone .of-all", "4 of 4 selected")
	b.click("#alone .member:nth-child(2) th")
	b.reads("#alone .of-all", "3 of 4 selected")
	b.reads("#alone button[value=once]", "Allow 3")
	later := h.shell("go test ./p4 -v")
	b.reads("#alone .come", "+1 new")
	b.click("#alone .come")
	b.reads("#alone .of-all", "3 of 5 selected")
	b.until(`document.querySelector("#alone > .message[data-keys]")`)
	b.press("d")
	b.until(`document.activeElement.matches(".why textarea")`)
	b.press("wait for the backup")
	b.press("\r")
	b.reads(".toast", "✕ Denied, 3 calls")
	for i, p := range all {
		if i == 1 {
			continue
		}
		if o := h.outcomeOf(p.Form); !strings.Contains(o, "wait for the backup") {
			t.Errorf("call %d: %s", i, o)
		}
	}
	if n := h.waitingCalls(); n != 2 {
		t.Errorf("%d wait, want the one that was taken out and the one that came later", n)
	}
	b.until(`document.querySelectorAll(".entry:not([data-decided])").length === 2`) // two are not folded
	b.until(`!document.querySelector("#alone [data-group]")`)
	h.decide(later, "deny")
	b.checkNoFaults()
}

// TestGroupKeepsWhatStillWaits ends one call of an open group elsewhere, and allows the rest by a key.
func TestGroupKeepsWhatStillWaits(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	var all []view.Permitted
	for i := range 3 {
		all = append(all, h.shell(fmt.Sprintf("go vet ./p%d", i)))
	}
	b := h.openBrowser()
	b.open("/questions")
	b.live()
	b.reads("#alone .of-all", "3 of 3 selected")
	h.decide(all[0], "deny") // that by which the row is called
	b.reads("#alone .of-all", "2 of 2 selected")
	b.until(`document.querySelector("#alone .member[data-gone] input").disabled`)
	b.until(`document.querySelector("#alone > .message[data-keys]")`)
	b.press("a")
	b.reads(".toast", "✓ Allowed once, 2 calls")
	for _, p := range all[1:] {
		if !h.permitted(p) {
			t.Error("it is denied")
		}
	}
	b.reads("#empty", "Nothing needs you")
	b.checkNoFaults()
}

// TestGroupIsAllowedOnceItsEndWasShown opens more calls than fit the window.
func TestGroupIsAllowedOnceItsEndWasShown(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	for i := range 60 {
		h.shell(fmt.Sprintf("go vet ./p%d", i))
	}
	b := h.openBrowser()
	b.open("/questions")
	b.live()
	b.reads("#alone button[value=once]", "Scroll to the end to allow")
	b.until(`document.querySelector("#alone > .message[data-keys]")`)
	b.press("a")
	if n := h.waitingCalls(); n != 60 {
		t.Fatalf("%d wait: what was not shown was decided", n)
	}
	b.run(`document.querySelector("#item").scrollTop = 1e6`)
	b.reads("#alone button[value=once]", "Allow 60")
	b.until(`document.querySelector("#alone > .message[data-keys]")`)
	b.press("a")
	b.reads(".toast", "✓ Allowed once, 60 calls")
	if n := h.waitingCalls(); n != 0 {
		t.Errorf("%d wait", n)
	}
	b.checkNoFaults()
}

// TestGroupIsDecidedWithoutScript sends the plain form of a group.
func TestGroupIsDecidedWithoutScript(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	var all []view.Permitted
	for i := range 3 {
		all = append(all, h.shell(fmt.Sprintf("go vet ./p%d", i)))
	}
	other := h.shell("make")
	at := "/forms/" + all[0].Form.String() + "?like=yes"
	of := func(p view.Permitted) string { return p.Form.String() + " " + h.digest(p) }
	if _, _, body := h.get(at, "text/html"); strings.Count(body, `name="of"`) != 3 || !strings.Contains(body, "Run go vet 3 times") {
		t.Fatalf("the page does not show them: %s", body)
	}
	for name, sent := range map[string]url.Values{
		"a call that is not shown": {"f0": {"once"}, "of": {of(all[1]), of(other)}},
		"no call":                  {"f0": {"once"}},
	} {
		if status, _, _ := h.postForm(at, sent); status < 400 {
			t.Errorf("%s: %d", name, status)
		}
	}
	if n := h.waitingCalls(); n != 4 {
		t.Fatalf("%d wait", n)
	}
	if status, _, body := h.postForm(at, url.Values{"f0": {"once"}, "of": {of(all[1]), of(all[2])}}); status != http.StatusSeeOther {
		t.Fatalf("%d %s", status, body)
	}
	if !h.permitted(all[1]) || !h.permitted(all[2]) {
		t.Error("it is denied")
	}
	if n := h.waitingCalls(); n != 2 {
		t.Errorf("%d wait", n)
	}
}

// TestMixedCallsNeedFewKeys decides twenty calls of five kinds by keys, and counts these, with those that scroll.
func TestMixedCallsNeedFewKeys(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	for i := range 5 {
		h.shell(fmt.Sprintf("go test ./p%d", i))
	}
	for i := range 4 {
		h.approveIn("/srv/shop", "Edit", fmt.Sprintf(`{"file_path":"/srv/shop/f%d.go","old_string":"a","new_string":"b"}`, i))
	}
	for i := range 3 {
		h.approveIn("/srv/shop", "mcp__db__query", fmt.Sprintf(`{"sql":"select %d"}`, i))
	}
	for range 3 {
		h.shell("make release")
	}
	for _, one := range []string{"ls -l", "rm -rf build", "git push origin main", "cat ../notes", "npm run build"} {
		h.shell(one)
	}
	b := h.openBrowser()
	b.open("/questions")
	b.live()
	keys := 0
	for h.waitingCalls() > 0 {
		if keys++; keys > 25 {
			t.Fatalf("%d keys, and %d calls wait", keys, h.waitingCalls())
		}
		b.until(`document.querySelector("#alone > .message[data-waits][data-keys]")`)
		card := b.text(`document.querySelector("#alone > .message").id`)
		if b.text(`Boolean(document.querySelector("#alone button[data-unseen]:not([data-edited])"))`) == "true" { // a key scrolls
			b.press("a")
			b.until(`!document.querySelector("#alone button[data-unseen]:not([data-edited])")`)
			continue
		}
		if keys == 3 { // one of them is denied
			b.press("d")
			b.until(`document.activeElement.matches(".why textarea")`)
			b.press("\r")
			keys++
		} else {
			b.press("a")
		}
		b.until(fmt.Sprintf(`document.querySelector("#alone > .message")?.id !== %q || !document.querySelector("#alone > .message[data-waits]")`, card))
	}
	t.Logf("%d keys for 20 calls", keys)
	b.checkNoFaults()
}
