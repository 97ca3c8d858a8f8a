package gateway

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"parley"
	"parley/actors"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

func TestEachSlashCommand(t *testing.T) {
	h := openParlour(t)
	joe := h.guest("joe dee")
	field := []events.Field{{Name: "a"}}
	for range 3 {
		h.ask(actors.Ask{Fields: field}) // 0, 1, 2
	}
	for range 2 { // 3, 4
		if _, err := h.fae.Request(t.Context(), actors.Request{To: "HOST", Text: "a helper"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.fae.Send(t.Context(), "HOST", "take @me:@self"); err != nil { // 5
		t.Fatal(err)
	}
	b := h.openBrowser()
	b.open("/")
	for _, c := range []struct{ line, says string }{
		{`/respond-form 0 a:b:c`, "Done."},
		{`/decline 1 not today`, "Done."},
		{`/forward 2 "joe dee"`, "Done."},
		{`/resolve 3 fae`, "Done."},
		{`/reject 4`, "Done."},
		{`/adopt 5 me friend`, "Done."},
		{`/reply 5 thank you`, "Done."},
		{`/send fae it's "done"`, "Done."},
		{`/form fae "What is it?" a:A b:B:C`, "Asked, as number 8."},
		{`/cancel 8 changed my mind`, "Done."},
		{`/request fae a reviewer`, "Asked, as number 9."},
		{`/names`, "friend"},
		{`/dismiss 5`, "Done."},
		{`/help`, "/respond-form NUMBER FIELD:VALUE …"},
		{`/fly`, "There is no /fly"},
		{`hello`, "Begin with a command"},
		{`/send`, "It goes: /send NAME TEXT"},
		{`/send nobody hi`, "nobody"},
	} {
		b.text(`document.querySelector('.said').textContent = ''`)
		b.fill("#line", c.line)
		b.press(kb.Escape)
		b.press(kb.Enter)
		b.reads(".said", c.says)
	}
	b.isFine()
	in, err := h.node.Host().Inbox(t.Context(), actors.View{All: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []actors.Status{actors.StatusAnswered, actors.StatusDeclined, "", actors.StatusAnswered, actors.StatusDeclined, "", "", "", actors.StatusCancelled, ""} {
		got := actors.Status("")
		if o := in.Messages[i].Outcome; o != nil {
			got = o.Status
		}
		if got != want {
			t.Errorf("message %d is %q, want %q", i, got, want)
		}
	}
	if text := in.Messages[7].Text; text != `it's "done"` {
		t.Errorf("sent %q", text)
	}
	if mail, err := joe.Inbox(t.Context(), actors.View{Pending: true}); err != nil || len(mail.Messages) != 1 {
		t.Errorf("forwarded: %v %v", mail, err)
	}
}

func TestCommandsAreCompleted(t *testing.T) {
	h := openParlour(t)
	h.guest("joe dee")
	h.ask(actors.Ask{Fields: []events.Field{{Name: "a"}}})
	b := h.openBrowser()
	b.open("/")
	b.fill("#line", "/forw")
	b.reads(".suggestions", "hand a form on")
	b.press(kb.Tab)
	b.reads(".suggestions", "Configure the project")
	b.press(kb.ArrowDown)
	b.enter()
	b.reads(".suggestions", "joe dee")
	b.press("jo")
	b.until(`document.querySelectorAll('.suggestions li').length === 1`)
	b.press(kb.Tab)
	b.until(`document.getElementById('line').value === '/forward 0 "joe dee" '`)
	b.isFine()
}

// TestThePageChecksAsTheNodeDoes holds the page's check to the node's own.
func TestThePageChecksAsTheNodeDoes(t *testing.T) {
	options := []events.Option{{Value: "a"}, {Value: "b"}, {Value: strings.Repeat("x", 50)}}
	fields := []events.Field{
		{Name: "t", Type: events.Text, Required: true}, {Name: "d", Required: true, Default: capabilities.String("x")}, {Name: "n", Type: events.Number},
		{Name: "c", Type: events.Checkbox}, {Name: "cs", Type: events.Checkbox, Options: options}, {Name: "s", Type: events.Select, Options: options},
		{Name: "m", Type: events.Multiselect, Options: options, Required: true}, {Name: "r", Type: events.Radio, Options: options},
		{Name: "y", Type: events.Confirm}, {Name: "day", Type: events.Date}, {Name: "k", Type: events.Secret}, {Name: "p", Pattern: []byte(`{}`)},
	}
	answers := []string{
		`{}`, `{"t":"x","m":["a"]}`, `{"t":"","d":"","m":[]}`, `{"t":5,"d":null,"n":"5","c":"yes","cs":"a","s":"z","m":"a","r":["a"],"y":"Maybe","k":1,"p":[1]}`,
		`{"t":"x","n":1.5,"c":false,"cs":["a","b"],"s":"b","m":["a","a"],"r":"","y":"No","day":"2024-02-29","zz":1}`,
		`{"t":"x","m":["q"],"day":"2023-02-29"}`, `{"t":"x","m":["a"],"day":"31.1.2026"}`, `{"t":"x","m":["a"],"day":"2026-1-031"}`, `{"t":"x","m":["a"],"day":"2026-04-31","n":true}`,
		`{"t":"x","m":["a"],"day":"0000-01-01"}`, `{"t":"x","m":["a"],"day":"1900-02-29"}`,
	}
	contract, err := mailbox.Compile(fields)
	if err != nil {
		t.Fatal(err)
	}
	specs := make([]string, len(fields))
	for i, f := range contract.Fields() {
		specs[i] = spec(f)
	}
	h := openParlour(t)
	b := h.openBrowser()
	b.open("/")
	b.text(fmt.Sprintf(`import(%q).then((m) => { window.check = m.validateValues })`, h.server.page.assets.url("validate.js")))
	b.until(`window.check`)
	for _, a := range answers {
		var values map[string]capabilities.Value
		if err := json.Unmarshal([]byte(a), &values); err != nil {
			t.Fatal(err)
		}
		_, err := contract.Check(values)
		want := map[string]string{}
		if err != nil {
			want = parley.AsError(err).Fields
		}
		var got map[string]string
		if err := json.Unmarshal([]byte(b.text(fmt.Sprintf(`JSON.stringify(check([%s], %s))`, strings.Join(specs, ","), a))), &got); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s\npage: %v\nnode: %v", a, got, want)
		}
	}
}
