package gateway

import (
	"cmp"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/bridge"
	"parley/gateway/bridge/bridgetest"
	"parley/gateway/bridge/slack"
	"parley/internal/eventually"
	"parley/mailbox"
)

// slackNode is a node with a bridge to Slack.
type slackNode struct {
	*bridged
	slack *bridgetest.SlackServer
}

// Restart implements bridgetest.Node. It waits until the node knows its messages: Slack takes the same message twice.
func (n slackNode) Restart() {
	n.t.Helper()
	file := BridgeFile(filepath.Join(n.folder, "bridges.json"), "team")
	eventually.Holds(n.t, "the node knows its messages", func() bool {
		b, err := os.ReadFile(file)
		return !slices.ContainsFunc(n.slack.Open(), func(mark string) bool { return err != nil || !strings.Contains(string(b), `"`+mark+`"`) })
	})
	n.bridged.Restart()
}

func openSlack(t *testing.T, users ...string) (slackNode, *bridgetest.SlackServer) {
	t.Helper()
	s := bridgetest.NewSlackServer(t)
	b := openBridged(t, bridge.Config{
		Name: "team", Kind: "slack", URL: s.URL + "/archives/C1", Network: "machine", Token: bridgetest.SlackBot + "\n" + bridgetest.SlackApp,
		Key: slack.NewKey(), Users: users,
	})
	return slackNode{b, s}, s
}

func TestSlackKeepsPromises(t *testing.T) {
	bridgetest.Run(t, func(t *testing.T) (bridgetest.Node, bridgetest.Place) { return openSlack(t) })
}

// awaitSlack blocks until a form was told so often, and returns the last telling.
func awaitSlack(t *testing.T, s *bridgetest.SlackServer, form string, times int) bridgetest.Telling {
	t.Helper()
	eventually.Holds(t, "the channel is told", func() bool { return len(s.Told(form)) == times })
	return s.Told(form)[times-1]
}

// TestSlackButtonWorksAfterRestart checks that a button outlives the process that made it, and needs no address of the node.
func TestSlackButtonWorksAfterRestart(t *testing.T) {
	n, s := openSlack(t)
	n.listen = Off
	n.Restart()
	form := n.Approve(`{"command":"ls"}`)
	allow := awaitSlack(t, s, form, 1).Buttons["Allow once"]
	n.Restart()
	if answered, text := s.Press(allow); !answered {
		t.Errorf("not answered: %s", text)
	}
	if told := awaitSlack(t, s, form, 2); !strings.Contains(told.Text, "it was answered") {
		t.Errorf("told %+v", told)
	}
}

func TestSlackAnswersItsUsersAlone(t *testing.T) {
	n, s := openSlack(t, "U1", "W2")
	form := n.Approve(`{"command":"ls"}`)
	buttons := awaitSlack(t, s, form, 1).Buttons
	s.User = "U3"
	if answered, text := s.Press(buttons["Allow once"]); answered || !strings.Contains(text, "you may not") {
		t.Errorf("a press of a stranger: %t %q", answered, text)
	}
	if said := s.Said(); len(said) != 1 || said[0].Get("user") != "U3" || said[0].Get("channel") != "C1" {
		t.Errorf("said %v", said)
	}
	s.User = "W2"
	if answered, text := s.Press(buttons["Deny"]); !answered {
		t.Errorf("a press of a user: %q", text)
	}
}

// TestForgedSlackButtonAnswersNothing checks values that the bridge has not made.
func TestForgedSlackButtonAnswersNothing(t *testing.T) {
	n, s := openSlack(t)
	form, other := n.Approve(`{"command":"ls"}`), n.Approve(`{"command":"rm"}`)
	allow := awaitSlack(t, s, form, 1).Buttons["Allow once"]
	if strings.Contains(s.Told(form)[0].Text, "pla_") {
		t.Errorf("the secret is in the message: %s", s.Told(form)[0].Text)
	}
	for name, forged := range map[string]string{
		"of another form": strings.Replace(allow, form, other, 1),
		"unsealed":        strings.Replace(allow, form+" ", form+" AAAA", 1),
		"none":            strings.Replace(allow, form+" ", " ", 1),
	} {
		if answered, text := s.Press(forged); answered || !strings.Contains(text, "button is not good") {
			t.Errorf("a button %s: %t %q", name, answered, text)
		}
	}
	grants, err := n.node.Host().Names().Grants(t.Context(), view.GrantFilter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range grants {
		if len(g.Outcomes) > 0 {
			if err := n.node.Host().Names().Revoke(t.Context(), g.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	if answered, text := s.Press(allow); answered || text == "" {
		t.Errorf("a button that was revoked: %t %q", answered, text)
	}
}

// TestSlackDialogAnswersForm checks a form with a field of each type that Slack can show.
func TestSlackDialogAnswersForm(t *testing.T) {
	n, s := openSlack(t)
	asked, err := n.agent().Ask(t.Context(), parley.Form{To: "@host", Title: "Deploy <!channel> & more", Description: "Where?", Fields: []events.Field{
		{Name: "note", Label: "A note", Help: "short"}, {Name: "size", Type: events.Number, Required: true}, {Name: "sure", Type: events.Checkbox},
		{Name: "where", Type: events.Select, Options: []events.Option{{Value: "eu", Label: "Europe"}, {Value: "us"}}},
		{Name: "also", Type: events.Multiselect, Options: []events.Option{{Value: "web"}, {Value: "db"}, {Value: "mail"}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	form := asked.Form.String()
	told := awaitSlack(t, s, form, 1)
	if labels := slices.Sorted(maps.Keys(told.Buttons)); !slices.Equal(labels, []string{"Answer…", "Decline"}) {
		t.Fatalf("the buttons are %v", labels)
	}
	if fallback, _, _ := strings.Cut(told.Text, "\n"); fallback != "Question from fae: Deploy &lt;!channel&gt; &amp; more" {
		t.Errorf("the text is %q", fallback)
	}
	s.Press(told.Buttons["Answer…"])
	var dialog struct {
		Metadata string `json:"private_metadata"`
		Blocks   []struct {
			ID       string `json:"block_id"`
			Optional bool
			Element  struct{ Type string }
		}
	}
	if err := json.Unmarshal(s.Dialog(), &dialog); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, b := range dialog.Blocks[1:] {
		kinds = append(kinds, b.Element.Type)
	}
	if want := []string{"plain_text_input", "number_input", "static_select", "static_select", "multi_static_select"}; !slices.Equal(kinds, want) || dialog.Blocks[2].Optional {
		t.Errorf("the dialog has %v, want %v: %s", kinds, want, s.Dialog())
	}
	submit := func(size string) string {
		option := func(value string) map[string]any { return map[string]any{"value": value} }
		return string(s.Send(map[string]any{"type": "view_submission", "user": map[string]string{"id": "U1"}, "view": map[string]any{
			"private_metadata": dialog.Metadata, "state": map[string]any{"values": map[string]any{
				"f0": map[string]any{"v": map[string]any{"type": "plain_text_input", "value": "hello"}},
				"f1": map[string]any{"v": map[string]any{"type": "number_input", "value": size}},
				"f2": map[string]any{"v": map[string]any{"type": "static_select", "selected_option": option("0")}},
				"f3": map[string]any{"v": map[string]any{"type": "static_select", "selected_option": option("1")}},
				"f4": map[string]any{"v": map[string]any{"type": "multi_static_select", "selected_options": []any{option("0"), option("2")}}},
			}},
		}}))
	}
	if got := submit("many"); got != `{"response_action":"errors","errors":{"f1":"want a number"}}` {
		t.Errorf("a wrong answer is acknowledged with %s", got)
	}
	if got := submit("3"); got != "" {
		t.Errorf("an answer is acknowledged with %s", got)
	}
	got, err := n.agent().Await(t.Context(), n.ref(form))
	if err != nil {
		t.Fatal(err)
	}
	if b, err := json.Marshal(got.Values); err != nil || string(b) != `{"also":["web","mail"],"note":"hello","size":3,"sure":true,"where":"us"}` {
		t.Errorf("answered %s: %v", b, err)
	}
	eventually.Holds(t, "the message is updated", func() bool { return len(s.Told(form)) == 2 })
	if late := submit("4"); !strings.Contains(late, "was answered by") || !strings.Contains(late, `"response_action":"update"`) {
		t.Errorf("a late answer is acknowledged with %s", late)
	}
	if answered, text := s.Press(told.Buttons["Answer…"]); answered || !strings.Contains(text, "it was answered by") {
		t.Errorf("a late press: %q", text)
	}
}

// TestSlackSignsNothing tells a channel of a call and of forms that need a passkey. There are no buttons to allow or to answer, the text says
// where they are decided, and a press that Slack has not offered does nothing. The call can be denied.
func TestSlackSignsNothing(t *testing.T) {
	n, s := openSlack(t)
	forged := func(button, outcome string) string {
		t.Helper()
		var pressed map[string]any
		if err := json.Unmarshal([]byte(button), &pressed); err != nil {
			t.Fatal(err)
		}
		pressed["action_id"] = "parley-" + outcome
		b, err := json.Marshal(pressed)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	open := func(form string) {
		t.Helper()
		if m, err := n.node.Host().Message(t.Context(), n.ref(form)); err != nil || m.Outcome != nil || !m.Passkey {
			t.Errorf("%v, outcome %+v", err, m.Outcome)
		}
	}
	told := func(form string, buttons ...string) map[string]string {
		t.Helper()
		told := awaitSlack(t, s, form, 1)
		if labels := slices.Sorted(maps.Keys(told.Buttons)); !slices.Equal(labels, buttons) || !strings.Contains(told.Text, "It needs a passkey: decide on the page.") {
			t.Errorf("buttons %v, told %s", labels, told.Text)
		}
		return told.Buttons
	}
	call, err := n.agent().Approve(t.Context(), mailbox.RequestApproval{Permission: parley.Permission{Tool: "Bash", Input: `{"command":"ls"}`, Passkey: true}})
	if err != nil {
		t.Fatal(err)
	}
	form := call.Form.String()
	deny := told(form, "Deny")["Deny"]
	for _, outcome := range []string{"once", "always", "answer"} {
		if answered, text := s.Press(forged(deny, outcome)); answered || text == "" {
			t.Errorf("a press of %s: %t %q", outcome, answered, text)
		}
		open(form)
	}
	if answered, text := s.Press(deny); !answered {
		t.Errorf("a press of Deny: %q", text)
	}

	asked, err := n.agent().Ask(t.Context(), parley.Form{To: "@host", Description: "Where?", Fields: []events.Field{{Name: "note"}}, Passkey: true})
	if err != nil {
		t.Fatal(err)
	}
	requested, err := n.agent().Requests().Send(t.Context(), parley.Request{To: "@host", Text: "whom?", Passkey: true})
	if err != nil {
		t.Fatal(err)
	}
	var pass struct{ Value string }
	if err := json.Unmarshal([]byte(deny), &pass); err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{asked.Form.String(), requested.Form.String()} {
		told(form)
		got := string(s.Send(map[string]any{"type": "view_submission", "user": map[string]string{"id": "U1"}, "view": map[string]any{
			"private_metadata": strings.Replace(pass.Value, call.Form.String(), form, 1), "state": map[string]any{"values": map[string]any{"f0": map[string]any{"v": map[string]any{"type": "plain_text_input", "value": "hello"}}}},
		}}))
		if !strings.Contains(got, `"response_action":"update"`) || !strings.Contains(got, "Not answered") {
			t.Errorf("a dialog that was not opened is acknowledged with %s", got)
		}
		open(form)
	}
}

// TestSlackLinksToThePageForOtherForms checks forms that Slack cannot show whole, or should not.
func TestSlackLinksToThePageForOtherForms(t *testing.T) {
	n, s := openSlack(t)
	many := make([]events.Field, 41)
	for i := range many {
		many[i] = events.Field{Name: "f" + strings.Repeat("x", i)}
	}
	for name, a := range map[string]parley.Form{
		"a secret":     {Title: "secret form", Fields: []events.Field{{Name: "a", Type: events.Secret}}},
		"hidden text":  {Title: "hidden form", Fields: []events.Field{{Name: "a", Label: "a\u202eb"}}},
		"long text":    {Title: "long form", Description: strings.Repeat("x", 2000), Fields: []events.Field{{Name: "a"}}},
		"a default":    {Title: "default form", Fields: []events.Field{{Name: "a", Default: capabilities.String("b")}}},
		"long options": {Title: "option form", Fields: []events.Field{{Name: "a", Type: events.Select, Options: []events.Option{{Value: strings.Repeat("x", 76)}}}}},
		"many fields":  {Title: "wide form", Fields: many},
	} {
		a.To, a.Description = "@host", cmp.Or(a.Description, "What?")
		if _, err := n.agent().Ask(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		eventually.Holds(t, name+" is told", func() bool { return len(s.ToldWith(a.Title)) == 1 })
		if told := s.ToldWith(a.Title)[0]; len(told.Buttons) > 0 || !strings.Contains(told.Text, n.server.Address()) {
			t.Errorf("a form with %s: %+v", name, told)
		}
	}
}
