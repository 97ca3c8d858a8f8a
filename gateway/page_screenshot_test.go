package gateway

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"parley"
	"parley/actors"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

var screenshots = flag.String("screenshots", "", "folder to write pictures of the page to: go test ./gateway -run Screenshots -screenshots DIR")

func TestScreenshots(t *testing.T) {
	if *screenshots == "" {
		t.Skip("no folder was given with -screenshots")
	}
	h := openPageServer(t)
	h.fillScene()
	h.fillCalls()
	b := h.openBrowser()
	for _, width := range []int64{1280, 390, 768} {
		for _, scheme := range []string{"light", "dark"} {
			b.do(chromedp.EmulateViewport(width, 900))
			b.prefer(scheme)
			for name, path := range map[string]string{
				"all": "/mail", "needs": "/questions", "by-agent": "/questions?group=agent", "settled": "/forms/0", "form": "/forms/8", "approval": "/forms/7", "agents": "/agents", "agent": "/agents/fae",
				"nothing-found": "/mail?q=nowhere", "calls": "/forms/12?in=questions", "edit": "/forms/11?in=questions", "filtered": "/mail?kind=approval&state=open&group=agent", "rules": "/agents/fae?tab=rules",
			} {
				name = fmt.Sprintf("%s-%d-%s", name, width, scheme)
				b.open(path)
				b.live()
				if path == "/questions?group=agent" {
					b.run(`document.querySelectorAll(".pick").forEach((p, i) => { if (i < 2) p.click() })`)
					b.reads(".bulk .picked", "selected")
				}
				b.shot(name)
				if wide := b.text(`document.documentElement.scrollWidth > innerWidth`); wide != "false" {
					t.Errorf("%s is wider than its window", name)
				}
			}
		}
	}
	b.prefer("light")
	b.open("/mail")
	b.live()
	if _, err := h.fae.Approve(t.Context(), mailbox.RequestApproval{Permission: parley.Permission{Tool: "shell", Input: `{"command": "rm -rf build", "cwd": "site"}`}}); err != nil {
		t.Fatal(err)
	}
	b.reads(".toast", "rm -rf build")
	b.shot("toast")
	b.press("k", chromedp.ModifierCtrl)
	b.until(`document.querySelector("dialog.palette[open]")`)
	b.shot("palette")
	b.press(kb.Escape)
	b.until(`!document.querySelector("dialog")`)
	b.buildScene()
	b.shot("builder")
}

// shoot takes a picture of the whole page.
func (b *tab) shoot(name string) {
	b.t.Helper()
	b.grow() // a window as high as the page: hidden parts are not drawn
	b.shot(name)
}

// shotIfWanted takes a picture of the visible part if a folder for them was given.
func (b *tab) shotIfWanted(name string) {
	b.t.Helper()
	if *screenshots != "" {
		b.shot(name)
	}
}

// shot takes a picture of the visible part.
func (b *tab) shot(name string) {
	b.t.Helper()
	picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(*screenshots, name+".png"), picture, 0o600)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *tab) grow() {
	b.t.Helper()
	size, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]int64](`[innerWidth, Math.max(document.body.scrollHeight, document.querySelector('#item, main')?.scrollHeight ?? 0) + 100]`))
	if err != nil {
		b.t.Fatal(err)
	}
	b.do(chromedp.EmulateViewport(size[0], size[1]))
	b.until(`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`)
}

// fillCalls adds calls that wait: identical ones, and a long one.
func (h *pageServer) fillCalls() {
	h.t.Helper()
	h.decide(h.approveIn("/srv/shop", "Bash", `{"command":"go vet ./..."}`), "always")
	var old, changed strings.Builder
	for i := range 60 {
		fmt.Fprintf(&old, "line %d of the checkout\n", i)
		fmt.Fprintf(&changed, "line %d of the new checkout\n", i)
	}
	edit, err := json.Marshal(map[string]string{"file_path": "/srv/shop/checkout.go", "old_string": old.String(), "new_string": changed.String()})
	if err != nil {
		h.t.Fatal(err)
	}
	h.approveIn("/srv/shop", "Edit", string(edit))
	for range 3 {
		h.approveIn("/srv/shop", "Bash", `{"command":"go test ./... | tail -n 20","description":"Run the tests"}`)
	}
}

// fillScene fills the inbox with a day's mail.
func (h *pageServer) fillScene() {
	h.t.Helper()
	must := func(err error) {
		h.t.Helper()
		if err != nil {
			h.t.Fatal(err)
		}
	}
	ctx := h.t.Context()
	host := h.node.Host()
	_, err := host.Make(ctx, actors.NewAgent{Kind: events.Guest, Name: "joe", Title: "Looks after the database", Labels: map[string]string{"team": "site", "shift": "night"}})
	must(err)
	h.ask(parley.Form{Description: "Configure project settings", Fields: []events.Field{{Name: "projectName", Label: "Project name", Required: true}, {Name: "apiKey", Label: "API key", Type: events.Secret}, {Name: "tags", Label: "Tags", Type: events.Multiselect, Options: []events.Option{{Value: "web", Label: "Web"}, {Value: "cli", Label: "Command line"}}}, {Name: "due", Label: "Due", Type: events.Date}}})
	_, err = host.Answer(ctx, capabilities.FormNumber(0), parley.Answer{Texts: []events.FieldText{{Name: "projectName", Text: "my-app"}, {Name: "apiKey", Text: "sk-1"}, {Name: "tags", Text: "web"}, {Name: "tags", Text: "cli"}}})
	must(err)
	h.ask(parley.Form{Description: "May I delete the old branches?", Fields: []events.Field{{Name: "ok", Type: events.Confirm}}})
	_, err = host.Decline(ctx, capabilities.FormNumber(1), 0, "Two of them are still in use.")
	must(err)
	old := h.ask(parley.Form{Description: "Which port should the server use?", Fields: []events.Field{{Name: "port", Type: events.Number}}})
	_, err = h.fae.Cancel(ctx, capabilities.FormID(old.Form), "")
	must(err)
	_, err = h.fae.Send(ctx, "HOST", "The build is green again.\nI will go on with the release notes, and ask when something is unclear.")
	must(err)
	_, err = host.Ask(ctx, parley.Form{To: "joe", Description: "How long will the migration take?", Fields: []events.Field{{Name: "hours", Label: "Hours", Type: events.Number}}})
	must(err)
	_, err = h.fae.Requests().Send(ctx, parley.Request{To: "HOST", Text: "a reference to the agent that reviews my changes"})
	must(err)
	h.ask(parley.Form{Title: "Deploy to production?", Description: "Version 1.4.2 has passed all checks on staging.\nThe database migration takes about two minutes, during which the site is read-only.",
		Deadline: capabilities.At(time.Now().Add(40 * time.Minute)), Fields: []events.Field{{Name: "go", Label: "How shall I go on?", Type: events.Buttons, Options: []events.Option{{Value: "now", Label: "Deploy now"}, {Value: "tonight", Label: "Tonight at 22:00"}, {Value: "stop", Label: "Not yet"}}}}})
	_, err = h.fae.Approve(ctx, mailbox.RequestApproval{Permission: parley.Permission{Tool: "shell", Input: `{"command": "git push --force origin main", "cwd": "site"}`}})
	must(err)
	must(h.fae.Names().Store(ctx, "branch", `"release-1.4"`))
	h.ask(parley.Form{Title: "Set up the project", Description: "A few things I cannot know myself.", Fields: everyType()})
	h.give()
}
