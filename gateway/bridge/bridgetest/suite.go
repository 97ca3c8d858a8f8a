package bridgetest

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"parley/gateway/call/calltest"
	"parley/gateway/sanitize"
	"parley/internal/eventually"
)

// Node is a node with a bridge to a Place. It has another bridge of the same kind whose receiver never answers.
type Node interface {
	// Approve asks the host to approve a call with an input, and returns the form.
	Approve(input string) (form string)
	// ApproveIn asks the host to approve a call of a tool in a folder.
	ApproveIn(folder, tool, input string) (form string)
	// ApproveByTwo is Approve for a call that needs the host and another.
	ApproveByTwo(input string) (form string)
	// Decide answers an approval as the host, elsewhere.
	Decide(form, decision string)
	// Cancel takes a form back.
	Cancel(form string)
	// Restart ends the node, and runs it again on the same state.
	Restart()
}

// Place is where people are told. It takes the same telling once, as a receiver does.
type Place interface {
	// Told returns what it was told of a form, oldest first.
	Told(form string) []Telling
	// Refuse has it take nothing, or take again.
	Refuse(bool)
	// Refused returns how many tries it has refused.
	Refused() int
}

// Telling is what a receiver was told of a form. Text is all that it has, as it came.
type Telling struct {
	Text    string
	Open    bool
	Buttons map[string]string // addresses by labels
}

// Presser is a Place whose buttons are not addresses to which something is posted.
type Presser interface {
	// Press presses a button. It reports whether that answered the form, and what the receiver shows else.
	Press(button string) (answered bool, text string)
}

// Keeper is a Place that keeps what it was told as it was: nothing replaces it.
type Keeper interface{ Keeps() }

// Run runs the suite.
func Run(t *testing.T, open func(*testing.T) (Node, Place)) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Node, Place){
		"told once":                  toldOnce,
		"withdrawn when it ends":     withdrawn,
		"a late press learns":        latePress,
		"a vote takes the buttons":   vote,
		"only a post answers":        onlyPost,
		"a restart loses nothing":    restart,
		"nothing is allowed unseen":  unseen,
		"what is shown cannot trick": tricks,
		"a folder is shown":          folder,
	} {
		t.Run(name, func(t *testing.T) {
			node, place := open(t)
			test(t, node, place)
		})
	}
}

// awaitTold blocks until a place was told so often of a form, and returns the last telling.
func awaitTold(t *testing.T, p Place, form string, times int) Telling {
	t.Helper()
	eventually.Holds(t, "the receiver is told", func() bool { return len(p.Told(form)) >= times })
	told := p.Told(form)
	if len(told) != times {
		t.Fatalf("told %d times, want %d: %+v", len(told), times, told)
	}
	return told[times-1]
}

func toldOnce(t *testing.T, n Node, p Place) {
	form := n.Approve(`{"command":"ls"}`)
	first := awaitTold(t, p, form, 1)
	if !first.Open || len(first.Buttons) != 2 || !strings.Contains(first.Text, "ls") {
		t.Fatalf("told %+v", first)
	}
	n.Restart()
	awaitTold(t, p, n.Approve(`{"command":"later"}`), 1) // by then the first was looked at
	awaitTold(t, p, form, 1)
}

func withdrawn(t *testing.T, n Node, p Place) {
	answered, cancelled := n.Approve(`{"command":"ls"}`), n.Approve(`{"command":"rm"}`)
	awaitTold(t, p, answered, 1)
	awaitTold(t, p, cancelled, 1)
	n.Decide(answered, "once")
	n.Cancel(cancelled)
	for form, status := range map[string]string{answered: "answered", cancelled: "cancelled"} {
		if last := awaitTold(t, p, form, 2); last.Open || len(last.Buttons) > 0 || !strings.Contains(last.Text, status) {
			t.Errorf("told %+v, want that it was %s", last, status)
		}
	}
}

func latePress(t *testing.T, n Node, p Place) {
	form := n.Approve(`{"command":"ls"}`)
	buttons := awaitTold(t, p, form, 1).Buttons
	if answered, text := pressed(t, p, buttons["Deny"]); !answered {
		t.Fatalf("the first press: %s", text)
	}
	awaitTold(t, p, form, 2)
	for _, label := range []string{"Allow once", "Deny"} {
		if answered, text := pressed(t, p, buttons[label]); answered || !strings.Contains(text, "was answered by") {
			t.Errorf("a late press of %s: %t %s", label, answered, text)
		}
	}
}

// vote presses a button of a call that needs two, which waits for the other then.
func vote(t *testing.T, n Node, p Place) {
	form := n.ApproveByTwo(`{"command":"ls"}`)
	buttons := awaitTold(t, p, form, 1).Buttons
	answered, text := pressed(t, p, buttons["Allow once"])
	_, isPresser := p.(Presser)
	if !answered && !isPresser || strings.Contains(text, "Answered") || !isPresser && !strings.Contains(text, "Your vote counts, 1 of 2") {
		t.Fatalf("the first vote: %t, %s", answered, text)
	}
	if _, keeps := p.(Keeper); keeps {
		awaitTold(t, p, n.Approve(`{"command":"later"}`), 1)
		awaitTold(t, p, n.Approve(`{"command":"later still"}`), 1) // in a round after that which saw the vote
		awaitTold(t, p, form, 1)
		return
	}
	if now := awaitTold(t, p, form, 2); now.Open || len(now.Buttons) > 0 || !strings.Contains(now.Text, "1 of 2") {
		t.Errorf("after a vote: %+v", now)
	}
	n.Cancel(form)
	if last := awaitTold(t, p, form, 3); last.Open || len(last.Buttons) > 0 || !strings.Contains(last.Text, "cancelled") {
		t.Errorf("after the end: %+v", last)
	}
}

func onlyPost(t *testing.T, n Node, p Place) {
	if _, ok := p.(Presser); ok {
		t.Skip("its buttons are no addresses")
	}
	form := n.Approve(`{"command":"ls"}`)
	allow := awaitTold(t, p, form, 1).Buttons["Allow once"]
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut} {
		press(t, method, allow)
	}
	guessed := allow[:strings.LastIndex(allow, "/")-1] + "x/once"
	if status, _ := press(t, http.MethodPost, guessed); status != http.StatusUnauthorized {
		t.Errorf("a guessed address: %d", status)
	}
	if status, _ := press(t, http.MethodPost, strings.TrimSuffix(allow, "once")+"always"); status != http.StatusNotFound {
		t.Errorf("an outcome that no button has: %d", status)
	}
	if status, text := press(t, http.MethodPost, allow); status != http.StatusOK {
		t.Errorf("the form was answered before: %d %s", status, text)
	}
}

func restart(t *testing.T, n Node, p Place) {
	p.Refuse(true)
	form := n.Approve(`{"command":"ls"}`)
	eventually.Holds(t, "the receiver refuses", func() bool { return p.Refused() > 0 })
	n.Restart()
	p.Refuse(false)
	buttons := awaitTold(t, p, form, 1).Buttons
	if answered, text := pressed(t, p, buttons["Allow once"]); !answered {
		t.Errorf("a button after a restart: %s", text)
	}
	awaitTold(t, p, form, 2)
}

func unseen(t *testing.T, n Node, p Place) {
	form := n.Approve(`{"command":"ls ` + strings.Repeat("x", 5000) + ` && rm -r /"}`)
	told := awaitTold(t, p, form, 1)
	if _, allows := told.Buttons["Allow once"]; allows || len(told.Buttons) != 1 || len(told.Text) > 4000 {
		t.Errorf("a call that is cut has the buttons %v in %d bytes", told.Buttons, len(told.Text))
	}
}

// tricks asks about calls that hide what they do. Whoever is offered to allow one is shown it, and not far below.
func tricks(t *testing.T, n Node, p Place) {
	for _, c := range calltest.Hostile() {
		told := awaitTold(t, p, n.ApproveIn("/srv", c.Tool, c.Input), 1)
		_, denies := told.Buttons["Deny"]
		_, allows := told.Buttons["Allow once"]
		if !denies || allows && (c.Hidden || c.Long) {
			t.Errorf("%s: the buttons are %v, under\n%.2000s", c.Name, told.Buttons, told.Text)
		}
		for _, text := range c.Shows {
			if allows && !strings.Contains(told.Text, text) {
				t.Errorf("%s: it may be allowed, and %q is not shown:\n%.2000s", c.Name, text, told.Text)
			}
		}
		if forged := calltest.Forged(told.Text, "> "); c.Forges && forged != "" {
			t.Errorf("%s: %q is shown as if Parley said it:\n%.2000s", c.Name, forged, told.Text)
		}
		lines := strings.Count(told.Text, "\n") + strings.Count(told.Text, `\n`)
		if strings.ContainsFunc(told.Text, func(r rune) bool { return r != '\n' && r != '\t' && r != '\r' && sanitize.Hides(r) }) || lines > 60 || len(told.Text) > 6000 {
			t.Errorf("%s: %d lines and %d bytes are shown:\n%.2000s", c.Name, lines, len(told.Text), told.Text)
		}
	}
}

// folder asks about equal calls in two folders.
func folder(t *testing.T, n Node, p Place) {
	for _, folder := range []string{"/", "/tmp/scratch"} {
		if told := awaitTold(t, p, n.ApproveIn(folder, "Bash", `{"command":"rm -rf ."}`), 1); !strings.Contains(told.Text, "in "+folder) {
			t.Errorf("the folder %s is not shown: %s", folder, told.Text)
		}
	}
}

// pressed presses a button.
func pressed(t *testing.T, p Place, button string) (answered bool, text string) {
	t.Helper()
	if presser, ok := p.(Presser); ok {
		return presser.Press(button)
	}
	status, text := press(t, http.MethodPost, button)
	if status != http.StatusOK && status != http.StatusConflict {
		t.Errorf("a press has the status %d", status)
	}
	return status == http.StatusOK, text
}

// press sends a request as a button does.
func press(t *testing.T, method, address string) (status int, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it is read
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}
