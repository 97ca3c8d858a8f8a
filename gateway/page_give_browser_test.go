package gateway

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley"
	"parley/actors"
	"parley/capabilities"
	"parley/events"
)

// TestAnAnswerGivesWhatItsSentenceSays narrows a folder in an answer, act by act. The page says all that is given after each, and gives that.
func TestAnAnswerGivesWhatItsSentenceSays(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "docs"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "docs", "plan.md"), []byte("ship"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := actors.ResourcesOf(h.node.Host()).Make(t.Context(), actors.NewResource{Name: "notes", Made: events.ResourceMade{Kind: capabilities.KindFolder, Folder: dir}}, false); err != nil {
		t.Fatal(err)
	}
	field := []events.Field{{Name: "what", Label: "Which notes?", Type: events.Capability, Required: true}}
	asked := h.ask(parley.Form{Title: "Notes", Description: "To plan the release.", Fields: field})
	axe := ""
	if path := os.Getenv("PARLEY_AXE"); path != "" {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		axe = string(b)
	}
	b := h.openBrowser()
	if _, err := h.fae.Requests().Send(t.Context(), parley.Request{To: "HOST", Text: "a helper"}); err != nil {
		t.Fatal(err)
	}
	b.open("/mail")
	b.reads("#alone .field label", "What you give")
	b.open("/forms/" + asked.Form.String())
	said := func(words string) {
		t.Helper()
		b.reads(".give .given", words)
		if wide := b.text(`document.documentElement.scrollWidth > innerWidth`); wide != "false" {
			t.Errorf("after %q the page is wider than its window", words)
		}
		if axe != "" {
			if wrong := b.violations(axe); wrong != "" {
				t.Errorf("after %q: %s", words, wrong)
			}
		}
		b.checkNoFaults()
	}
	shown := func(name string) string {
		return b.text(`String(!document.querySelector('[name="f0-` + name + `"]').closest('[hidden]'))`)
	}
	if got := b.text(`String(document.querySelector('.give').hidden)`); got != "true" {
		t.Errorf("before anything is named, the limits are hidden: %s", got)
	}
	b.fill(fieldAt(0)+" input", "nothing")
	said(`You have nothing called "nothing"`)
	b.fill(`.give [name="f0-folder"]`, "docs")
	b.click(".give .makes button")
	said("is no absolute path")
	b.fill(fieldAt(0)+" input", "plans")
	said(`You have nothing called "plans"`)
	b.fill(`.give [name="f0-folder"]`, filepath.Join(dir, "docs"))
	b.shootIfAsked("make")
	b.click(".give .makes button")
	said("fae gets the folder plans: list, read and write. You can revoke it under Rules and access.")
	if got := b.text(`String(document.querySelector('.give .makes').checkVisibility())`); got != "false" {
		t.Errorf("what is there already can be made: %s", got)
	}
	b.fill(fieldAt(0)+" input", "notes")
	said("fae gets the folder notes: list, read and write. You can revoke it under Rules and access.")
	if shown("below") != "true" || shown("methods") != "false" || shown("only") != "false" {
		t.Error("the limits are not those of a folder")
	}
	b.click(`.give [name="f0-read"]`)
	said("notes: list and read. You")
	b.fill(`.give [name="f0-below"]`, "docs")
	said("list and read, only below docs. You")
	b.fill(`.give [name="f0-uses"]`, "none")
	said("not a number of uses")
	b.click(answerButton)
	b.reads(fieldAt(0)+" .wrong", "not a number of uses")
	b.until(`!document.querySelector(".give .given[data-wrong]").checkVisibility()`) // the field says it
	b.fill(`.give [name="f0-uses"]`, "2")
	said("only below docs, 2 uses. You")
	b.fill(`.give [name="f0-rate"]`, "1")
	said("2 uses, at most 1 in 1m. You")
	b.set(`.give [name="f0-until"]`, "8h")
	said("at most 1 in 1m, until ")
	b.click(`.give [name="f0-ask"]`)
	said("and the giver decides each use. You")
	b.shootIfAsked("give")
	b.click(answerButton)
	b.reads(".state", "Answered by")
	b.checkNoFaults()

	values, _ := h.outcome(asked).Values.AsRecord()
	ref, ok := values["what"].AsRef()
	f := ref.Facet
	if !ok || f.Mode != capabilities.ReadOnly || f.Below != "docs" || f.Uses != 2 || f.Rate != (capabilities.Rate{Uses: 1, Seconds: 60}) || !f.Ask || f.Until == 0 {
		t.Errorf("fae got %+v", ref)
	}
}

// TestAnAnswerIsNarrowedWithoutScript gives less of a name by a plain HTML form, which shows what is given before.
func TestAnAnswerIsNarrowedWithoutScript(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	if _, err := actors.ResourcesOf(h.node.Host()).Make(t.Context(), actors.NewResource{Name: "notes", Made: events.ResourceMade{Kind: capabilities.KindFolder, Folder: t.TempDir()}}, false); err != nil {
		t.Fatal(err)
	}
	asked := h.ask(parley.Form{Title: "Notes", Description: "d", Fields: []events.Field{{Name: "what", Type: events.Capability}}})
	at := "/forms/" + asked.Form.String()
	spot := url.Values{"f0": {"spot"}, "f0-folder": {"nowhere"}, "do": {"make"}}
	if _, _, body := h.postForm(at, spot); !strings.Contains(body, "is no absolute path") || !strings.Contains(body, " data-makes") {
		t.Errorf("a folder that cannot be made: %s", body)
	}
	spot.Set("f0-folder", t.TempDir())
	if _, _, body := h.postForm(at, spot); !strings.Contains(body, "fae gets the folder spot: list, read and write.") {
		t.Errorf("a folder that is made: %s", body)
	}
	sent := url.Values{"f0": {"notes"}, "f0-read": {"yes"}, "f0-uses": {"3"}}
	if status, _, body := h.postForm(at+"?do=give", sent); status != http.StatusOK || !strings.Contains(body, "fae gets the folder notes: list and read, 3 uses. You can revoke it") || !strings.Contains(body, `name="f0-read" value="yes" checked`) {
		t.Errorf("before it is sent: %d\n%s", status, body)
	}
	for name, wrong := range map[string]string{"f0-methods": "GET", "f0-uses": "0", "f0-below": "/", "f0-until": "soon"} {
		if status, _, body := h.postForm(at, url.Values{"f0": {"notes"}, name: {wrong}}); status != http.StatusUnprocessableEntity && status != http.StatusBadRequest {
			t.Errorf("%s=%s: %d\n%s", name, wrong, status, body)
		}
	}
	if status, _, body := h.postForm(at, sent); status != http.StatusSeeOther {
		t.Fatalf("%d\n%s", status, body)
	}
	values, _ := h.outcome(asked).Values.AsRecord()
	if ref, _ := values["what"].AsRef(); ref.Facet != (capabilities.Facet{Mode: capabilities.ReadOnly, Uses: 3}) {
		t.Errorf("fae got %+v", ref)
	}
}
