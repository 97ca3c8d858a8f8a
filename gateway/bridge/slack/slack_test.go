package slack

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"parley"
	"parley/capabilities"
	"parley/gateway/bridge"
)

func settings() Options {
	return Options{URL: "https://team.slack.com/archives/C0123", Tokens: "xoxb-2\nxapp-1\n", Key: NewKey(), Users: []string{"U1"}, Client: &http.Client{Transport: http.DefaultTransport}}
}

func TestSettingsAreChecked(t *testing.T) {
	t.Parallel()
	if s, err := New(settings()); err != nil || s.channel != "C0123" {
		t.Fatalf("%+v: %v", s, err)
	}
	for name, change := range map[string]func(*Options){
		"no channel":    func(o *Options) { o.URL = "https://team.slack.com/archives/" },
		"a message":     func(o *Options) { o.URL = "https://team.slack.com/archives/C0123/p1" },
		"a user":        func(o *Options) { o.URL = "https://me@team.slack.com/archives/C0123" },
		"one token":     func(o *Options) { o.Tokens = "xoxb-2" },
		"equal tokens":  func(o *Options) { o.Tokens = "xoxb-2 xoxb-1" },
		"another token": func(o *Options) { o.Tokens = "xapp-1 xoxp-2" },
		"no key":        func(o *Options) { o.Key = "" },
		"a short key":   func(o *Options) { o.Key = "AAAA" },
		"a name":        func(o *Options) { o.Users = []string{"bob"} },
	} {
		o := settings()
		change(&o)
		if _, err := New(o); parley.CodeOf(err) != parley.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		} else if strings.Contains(err.Error(), "xox") && name != "one token" && !strings.Contains(err.Error(), "begins with") {
			t.Errorf("%s: the refusal has a token: %v", name, err)
		}
	}
	for link, want := range map[string]string{
		"https://team.slack.com/archives/C1": "https://slack.com/api/", "https://team.enterprise.slack.com/archives/C1": "https://slack.com/api/",
		"https://team.slack-gov.com/archives/G1": "https://slack-gov.com/api/", "http://127.0.0.1:1/archives/D1": "http://127.0.0.1:1/api/",
		"https://notslack.com/archives/C1": "https://notslack.com/api/",
	} {
		if api, _, err := parseChannel(link); err != nil || api != want {
			t.Errorf("the calls of %s go to %s, want %s: %v", link, api, want, err)
		}
	}
}

func TestSealedRightIsOfItsFormAndBridge(t *testing.T) {
	t.Parallel()
	s, err := New(settings())
	if err != nil {
		t.Fatal(err)
	}
	other, err := New(settings())
	if err != nil {
		t.Fatal(err)
	}
	pass := s.passOf("form@node", "secret")
	if form, secret, err := s.open(pass); err != nil || form != "form@node" || secret != "secret" || strings.Contains(pass, "secret") {
		t.Errorf("%s has %s, %s: %v", pass, form, secret, err)
	}
	if _, _, err := other.open(pass); parley.CodeOf(err) != parley.Unauthenticated {
		t.Errorf("another bridge opens it: %v", err)
	}
	for _, forged := range []string{"", "form@node", "form@node ", "form2@node" + strings.TrimPrefix(pass, "form@node"), pass[:len(pass)-1], pass + "A", "form@node ???"} {
		if form, secret, err := s.open(forged); parley.CodeOf(err) != parley.Unauthenticated {
			t.Errorf("%q has %s, %s: %v", forged, form, secret, err)
		}
	}
}

// TestTextIsShownLiterally checks that what others wrote is nowhere where Slack parses text.
func TestTextIsShownLiterally(t *testing.T) {
	t.Parallel()
	s, err := New(settings())
	if err != nil {
		t.Fatal(err)
	}
	const trick = "<!channel> <@U1> *b* & <https://evil.example|Page>"
	n := bridge.Notice{
		Title: trick, Text: trick, From: trick, By: trick, Status: "answered", Page: "https://node.example/", Deadline: capabilities.Time(1),
		Buttons: []bridge.Button{{Label: "Deny", Outcome: "deny", Secret: "pla_secret"}},
	}
	for _, build := range []func(bridge.Notice) (string, any){
		func(n bridge.Notice) (string, any) { return build(s.opened(n)) },
		func(n bridge.Notice) (string, any) { return build(ended(n)) },
	} {
		fallback, blocks := build(n)
		if strings.ContainsAny(fallback, "<>") || !strings.Contains(fallback, "&lt;!channel&gt; &lt;@U1&gt; *b* &amp; ") {
			t.Errorf("the fallback is %q", fallback)
		}
		b, err := json.Marshal(blocks)
		if err != nil {
			t.Fatal(err)
		}
		var all any
		if err := json.Unmarshal(b, &all); err != nil {
			t.Fatal(err)
		}
		literals := 0
		eachText(all, func(kind, text string) {
			switch {
			case kind == "text" && strings.Contains(text, trick):
				literals++
			case strings.Contains(text, "channel") || strings.Contains(text, "evil") || strings.Contains(text, "pla_"):
				t.Errorf("an element of type %s has %q", kind, text)
			}
		})
		if literals != 2 {
			t.Errorf("the text is shown %d times in %s", literals, b)
		}
	}
}

func build[B any](fallback string, blocks B) (string, any) { return fallback, blocks }

// eachText calls f with the type and text of each element of a JSON value.
func eachText(v any, f func(kind, text string)) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			eachText(e, f)
		}
	case map[string]any:
		kind, _ := v["type"].(string)
		if text, ok := v["text"].(string); ok {
			f(kind, text)
		}
		if value, ok := v["value"].(string); ok {
			f("value", value)
		}
		for _, e := range v {
			eachText(e, f)
		}
	}
}
