package watch

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/cmd/parley/show"
	"parley/events"
	"parley/mailbox/form"
	"parley/mailbox/form/formtest"
)

// newModel returns a model of a terminal of 80 by 20 cells.
func newModel() *model {
	m := &model{ctx: nil, list: list{items: map[uint64]*view.Message{}}, as: "HOST", marked: map[uint64]bool{}, seen: map[string]bool{}, said: map[capabilities.ID][]show.Line{}}
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 20})
	return m
}

// approval returns a call that waits.
func approval(number uint64, command string) view.Message {
	asks := parley.Permission{Tool: "Bash", Input: fmt.Sprintf(`{"command":%q}`, command)}
	return view.Message{
		Permission: &asks, Number: number, MessageID: capabilities.ID{ULID: [16]byte{byte(number + 1)}}, Type: string(events.Approval), Title: "Bash", AnswerNeeded: true,
		Description: fmt.Sprintf(`{"command":%q}`, command), Digest: asks.Digest(),
		Fields: []events.Field{{Name: "decision", Type: events.Buttons, Options: []events.Option{{Value: "deny"}, {Value: "once"}, {Value: "always"}, {Value: "never"}}}},
	}
}

// types presses keys, and draws the screen after each.
func (m *model) types(keys string) (last tea.Cmd) {
	for _, k := range keys {
		last = m.press(tea.KeyPressMsg{Code: k, Text: string(k)})
		m.View()
	}
	return last
}

// rest ends the time in which keys decide nothing.
func (m *model) rest() { m.Update(released(m.held)) }

func screenOf(m *model) string { return fmt.Sprint(m.View().Content) }

func TestCallIsAllowedOnceItsEndWasOnScreen(t *testing.T) {
	var lines []string
	for i := range 60 {
		lines = append(lines, fmt.Sprintf("echo step %d", i))
	}
	long := strings.Join(append(lines, "python3 wipe.py --all"), "\n")
	m := newModel()
	m.Update(arrived{approval(0, long), approval(1, "make")})
	m.rest()
	m.types("k")
	m.choose(0)
	m.rest()
	if s := screenOf(m); strings.Contains(s, "wipe.py") || !strings.Contains(s, "more lines, then allows") || strings.Contains(s, "a allow ·") {
		t.Fatalf("the screen:\n%s", s)
	}
	presses := 0
	for ; !strings.Contains(screenOf(m), "wipe.py"); presses++ {
		for _, key := range []string{"A", "a"} {
			m.types(key)
			if m.busy || m.prompt != nil {
				t.Fatal("a call is allowed that was not shown")
			}
		}
	}
	if presses == 0 {
		t.Fatal("all of it was shown")
	}
	if m.types("a"); m.busy {
		t.Error("a key allows what has just come into view")
	}
	m.rest()
	if m.types("a"); !m.busy {
		t.Error("the whole call was shown, and A allows nothing")
	}
}

func TestUnseenCallIsDenied(t *testing.T) {
	m := newModel()
	m.Update(arrived{approval(0, strings.Repeat("make\n", 100))})
	m.rest()
	screenOf(m)
	if m.types("d"); m.prompt == nil {
		t.Error("a call that was not shown cannot be denied")
	}
}

// TestMarkedCallsAreShown marks two calls of which one was not on the screen.
func TestMarkedCallsAreShown(t *testing.T) {
	m := newModel()
	m.Update(arrived{approval(0, "make"), approval(1, "make install")})
	m.rest()
	screenOf(m)
	m.marked = map[uint64]bool{0: true, 1: true}
	if s := screenOf(m); !strings.Contains(s, "a shows the selected calls") {
		t.Errorf("the screen:\n%s", s)
	}
	if m.types("a"); m.busy || m.chosen != 1 {
		t.Errorf("%d is selected, busy %t: want the call that was not shown", m.chosen, m.busy)
	}
	m.rest()
	if m.types("a"); !m.busy {
		t.Error("both were shown, and A allows nothing")
	}
}

// TestWhatWaitsIsOnTop decides all, and sees the cursor go to what comes then.
func TestWhatWaitsIsOnTop(t *testing.T) {
	m := newModel()
	var all arrived
	for i := range uint64(12) {
		e := approval(i, fmt.Sprint("make ", i))
		all = append(all, e)
	}
	m.Update(all)
	screenOf(m)
	var numbers []uint64
	for i := range all {
		all[i].AnswerNeeded = false
		all[i].Outcome = &view.Outcome{Status: view.StatusAnswered}
		numbers = append(numbers, all[i].Number)
	}
	m.Update(done{numbers: numbers, settled: numbers})
	m.Update(all)
	var news arrived
	for i := range uint64(9) {
		news = append(news, approval(20+i, fmt.Sprint("make new ", i)))
	}
	m.Update(news)
	if s := screenOf(m); m.chosen != 20 || m.held == 0 || !strings.Contains(s, "▸ 20.") || !strings.Contains(s, "9 × alike") {
		t.Errorf("%d is selected:\n%s", m.chosen, s)
	}
	m.types("G") // the person looks at what was decided, and stays there
	at := m.chosen
	m.Update(arrived{approval(40, "make more")})
	if m.chosen != at {
		t.Errorf("%d is selected, want %d", m.chosen, at)
	}
}

// TestBackspaceTakesWholeCharacter removes a joined emoji from a line that is typed.
func TestBackspaceTakesWholeCharacter(t *testing.T) {
	m := newModel()
	m.Update(arrived{approval(0, "make")})
	m.rest()
	screenOf(m)
	m.types("d")
	m.Update(tea.PasteMsg{Content: "ok👩‍💻"})
	if m.press(tea.KeyPressMsg{Code: tea.KeyBackspace}); m.prompt.text != "ok" {
		t.Errorf("%q is left", m.prompt.text)
	}
}

// TestOpinionIsShownBesideItsCall shows a call that its reviewer has left to the host.
func TestOpinionIsShownBesideItsCall(t *testing.T) {
	e := approval(0, "make")
	e.Review = &view.Review{By: capabilities.ID{ULID: [16]byte{9}}, ByName: "bob", How: events.ReviewHandedOn, Note: "never run it"}
	m := newModel()
	m.Update(arrived{e})
	m.rest()
	if s := screenOf(m); !strings.Contains(s, `reviewer "bob" leaves it to you: "never run it" (its opinion)`) {
		t.Errorf("the screen:\n%s", s)
	}
}

// TestKeysFitTheScreen draws calls on a narrow screen: the key that shows all keys is there.
func TestKeysFitTheScreen(t *testing.T) {
	m := newModel()
	m.Update(arrived{approval(0, "git push --force origin main")})
	m.rest()
	lines := strings.Split(strings.TrimRight(screenOf(m), "\n"), "\n")
	if last := lines[len(lines)-1]; !strings.Contains(last, "a allow") || !strings.HasSuffix(strings.TrimSpace(ansi.Strip(last)), "? keys · q quit") || ansi.StringWidth(last) > 80 {
		t.Errorf("the keys: %q", last)
	}
}

// TestClaimIsTakenOverInTwoSteps presses C on a form of a group: free, of another, of the person, and on one that nobody else can answer.
func TestClaimIsTakenOverInTwoSteps(t *testing.T) {
	e := approval(0, "make")
	e.Chain = []view.Party{{ID: capabilities.ID{ULID: [16]byte{9}}, Name: "ops"}}
	bob := view.Claim{By: capabilities.ID{ULID: [16]byte{8}}, ByName: "bob", Until: capabilities.At(time.Now().Add(time.Hour))}
	mine := bob
	mine.ByName = "SELF"
	for _, c := range []struct {
		claim      *view.Claim
		key, shows string
		presses    int
	}{{nil, "c be on it", "", 1}, {&mine, "c not be on it", "you are on it", 1}, {&bob, "c take it over", "bob is on it", 2}} {
		e.Claim = c.claim
		m := newModel()
		m.Update(arrived{e})
		m.rest()
		s := screenOf(m)
		if row := strings.Split(s, "\n")[1]; !strings.Contains(keysOf(m), c.key) || !strings.Contains(row, c.shows) {
			t.Errorf("the screen:\n%s", s)
		}
		for press := 1; press <= c.presses; press++ {
			if m.busy {
				t.Errorf("%s: press %d of %d claims it", c.key, press-1, c.presses)
			}
			m.types("c")
			m.rest()
		}
		if !m.busy {
			t.Errorf("%s: nothing is claimed", c.key)
		}
	}
	e.Claim, e.Chain = nil, nil
	m := newModel()
	m.Update(arrived{e})
	m.rest()
	if m.types("c"); m.busy || !strings.Contains(m.state, "nobody else") {
		t.Errorf("claimed: %q", m.state)
	}
}

// TestOnePersonHasOneVote decides on a call, and answers a form, on which the person has voted as another agent. No key votes again, also not
// together with a call that waits for a vote.
func TestOnePersonHasOneVote(t *testing.T) {
	second := func(e view.Message) view.Message {
		e.Votes = &view.Votes{Need: 2, Have: 1, VotedAs: &view.Party{ID: capabilities.ID{ULID: [16]byte{9}}, Name: "ops"}}
		return e
	}
	form := second(approval(0, ""))
	form.Type, form.Fields = "form", []events.Field{{Name: "a"}}
	for name, e := range map[string]view.Message{"call": second(approval(0, "make")), "form": form} {
		m := newModel()
		m.Update(arrived{e})
		m.rest()
		if s := screenOf(m); !strings.Contains(s, `! you have voted as "ops", and one person has one vote`) || strings.Contains(s, "a allow ·") || strings.Contains(s, "a answer ·") {
			t.Fatalf("%s: the screen:\n%s", name, s)
		}
		for _, key := range []string{"a", "A", "d", "r", "v", "a"} {
			if m.types(key); m.busy || m.prompt != nil {
				t.Fatalf("%s: %s votes a second time", name, key)
			}
		}
		if s := screenOf(m); !strings.Contains(m.state, `"ops"`) || !strings.Contains(s, m.state) {
			t.Errorf("%s: the refusal: %q", name, m.state)
		}
	}
	m := newModel()
	m.Update(arrived{second(approval(0, "make")), approval(1, "make install")})
	m.rest()
	for _, number := range []uint64{0, 1} {
		m.choose(number)
		screenOf(m)
	}
	m.marked = map[uint64]bool{0: true, 1: true}
	if m.types("a"); m.busy {
		t.Fatal("a decides both")
	}
	delete(m.marked, 0)
	if m.types("a"); !m.busy {
		t.Error("the other alone is not decided")
	}
}

// The question for a field of each type says what it takes, and several choices are given with commas.
func TestEachFieldTypeIsAskedFor(t *testing.T) {
	for _, f := range formtest.EachType() {
		m, asks := newModel(), form.ControlOf(&f)
		m.askField(view.Message{Fields: []events.Field{f, {Name: "next"}}}, 0, nil)
		says := m.prompt.label
		for _, o := range f.Options {
			if !strings.Contains(says, o.Value) {
				t.Errorf("%s: %q", f.Name, says)
			}
		}
		if several, either := strings.Contains(says, "commas"), strings.Contains(says, "(yes, no)"); several != (asks == form.Choices) || either != (asks == form.YesNo) {
			t.Errorf("%s: %q", f.Name, says)
		}
		if m.prompt.secret != (asks == form.Secret) {
			t.Errorf("%s is hidden: %v", f.Name, m.prompt.secret)
		}
	}
}

// TestWholeViewDecidesWhatItShows marks a call, opens another in full, and presses each key that decides.
func TestWholeViewDecidesWhatItShows(t *testing.T) {
	open := func() *model {
		m := newModel()
		m.Update(arrived{approval(51, "rm -rf AAA"), approval(52, "make BBB"), approval(53, "ls CCC")})
		m.rest()
		for _, n := range []uint64{51, 52, 53} {
			m.choose(n)
			screenOf(m)
		}
		m.choose(51)
		m.types("x")
		m.choose(53)
		if s := screenOf(m); !strings.Contains(s, "decides 1 selected: 51 rm -rf AAA") {
			t.Fatalf("the list does not name what keys decide:\n%s", s)
		}
		m.press(tea.KeyPressMsg{Code: tea.KeyEnter})
		if s := screenOf(m); strings.Contains(s, "rm -rf AAA") || strings.Contains(s, "select") {
			t.Fatalf("the screen of one message:\n%s", s)
		}
		return m
	}
	for _, key := range []string{"a", "A", "d"} {
		m := open()
		switch m.types(key); {
		case key == "a" && (!m.busy || !strings.Contains(m.decided(t), "53")):
			t.Errorf("%s decides something else than what is shown", key)
		case key != "a" && (m.prompt == nil || m.prompt.about.Number != 53):
			t.Errorf("%s asks about something else than what is shown", key)
		}
	}
	m := open()
	m.press(tea.KeyPressMsg{Code: tea.KeyEscape})
	screenOf(m)
	if m.types("d"); m.prompt == nil || m.prompt.about.Number != 51 {
		t.Error("the list does not decide the marked call")
	}
}

// decided returns the numbers of the calls that the last key has settled.
func (m *model) decided(t *testing.T) string {
	t.Helper()
	var all []string
	for _, e := range m.targets(*m.selected()) {
		all = append(all, fmt.Sprint(e.Number))
	}
	return strings.Join(all, " ")
}

// TestMarkedCallsAreNamed marks more calls than the screen can name. No key decides them.
func TestMarkedCallsAreNamed(t *testing.T) {
	m := newModel()
	var all arrived
	for n := range uint64(20) {
		all = append(all, approval(n, fmt.Sprintf("make target-%d, 99 ls", n)))
	}
	m.Update(all)
	m.rest()
	for n := range uint64(20) {
		m.choose(n)
		screenOf(m)
	}
	m.marked = map[uint64]bool{3: true, 4: true}
	if s := screenOf(m); !strings.Contains(s, `decides 2 selected: 3 "make target-3, 99 ls", 4 "make target-4, 99 ls"`) || strings.Count(s, "\n") != 19 {
		t.Errorf("the screen:\n%s", s)
	}
	for n := range uint64(20) {
		m.marked[n] = true
	}
	if s := screenOf(m); !strings.Contains(s, "more") || strings.Count(s, "\n") != 19 {
		t.Errorf("the screen:\n%s", s)
	}
	for _, key := range []string{"a", "A", "d"} {
		if m.types(key); m.busy || m.prompt != nil {
			t.Fatalf("%s decides calls that are not named", key)
		}
	}
	settled := approval(3, "make target-3, 99 ls")
	settled.AnswerNeeded = false
	if m.Update(arrived{settled}); m.marked[3] {
		t.Error("a call that was settled is still marked")
	}
}

// TestEqualCallsAreShownWithAllThatIsSaid allows two equal calls as one, of which the agent says other things. Both are shown.
func TestEqualCallsAreShownWithAllThatIsSaid(t *testing.T) {
	saying := func(number uint64, reason string) view.Message {
		e := approval(number, "make")
		e.Permission.Reason = reason
		e.Digest = e.Permission.Digest()
		return e
	}
	m := newModel()
	m.Update(arrived{saying(1, "to ship it"), saying(2, "to try it")})
	m.rest()
	screen := screenOf(m)
	if len(m.order) != 1 || !strings.Contains(screen, "to ship it") || !strings.Contains(screen, "2 says why: “to try it”") {
		t.Fatalf("%d rows, and shown is\n%s", len(m.order), screen)
	}
	if unseen := m.unseen([]view.Message{saying(1, "to ship it"), saying(2, "to try it")}); unseen != nil {
		t.Errorf("%+v counts as not shown", unseen)
	}
}

// edits sets the field by which an approval takes an edited input.
func edits(e view.Message) view.Message {
	e.Fields = append(e.Fields, events.Field{Name: "input", Type: events.Text})
	return e
}

func TestHighRiskNeedsTwoSteps(t *testing.T) {
	m := newModel()
	m.screen.Now = time.Unix(1_800_000_000, 0)
	m.Update(arrived{approval(1, "sudo ls"), approval(2, "make")})
	m.rest()
	if s := screenOf(m); m.chosen != 1 || !strings.Contains(s, "Runs as root") || strings.Contains(s, "A always") {
		t.Fatalf("%d is selected:\n%s", m.chosen, s)
	}
	if m.types("A"); m.prompt != nil {
		t.Fatal("a rule is offered for a call of high risk")
	}
	if m.types("a"); m.busy || !strings.Contains(m.state, "Runs as root: a again allows it") {
		t.Fatalf("the first press: busy %t, %q", m.busy, m.state)
	}
	if m.types("a"); m.busy {
		t.Fatal("the second press counts at once")
	}
	m.rest()
	m.screen.Now = m.screen.Now.Add(armedFor + time.Second)
	if m.types("a"); m.busy {
		t.Fatal("the first press is remembered for too long")
	}
	m.rest()
	m.types("x") // another key forgets it
	m.types("x")
	if m.types("a"); m.busy {
		t.Fatal("another key between the two presses")
	}
	m.rest()
	if m.types("a"); !m.busy {
		t.Error("the second press allows nothing")
	}
}

// TestSelectedHighRiskNeedsTwoSteps selects two calls, of which one is of high risk.
func TestSelectedHighRiskNeedsTwoSteps(t *testing.T) {
	m := newModel()
	m.Update(arrived{approval(1, "sudo ls"), approval(2, "make")})
	for _, n := range []uint64{1, 2} {
		m.choose(n)
		screenOf(m)
	}
	m.rest()
	m.marked = map[uint64]bool{1: true, 2: true}
	m.View()
	if m.types("a"); m.busy {
		t.Error("one press allows a call of high risk")
	}
}

func TestKeysOfACallWaitUntilItWasShown(t *testing.T) {
	m := newModel()
	m.Update(arrived{approval(1, "make a"), approval(2, "ls b")})
	m.rest()
	screenOf(m)
	m.types("j")
	if m.types("a"); m.busy {
		t.Error("a key decides what has just come into view")
	}
	m.rest()
	if m.types("a"); !m.busy {
		t.Error("nothing is decided")
	}
}

func TestRowsStayUnderAHand(t *testing.T) {
	m := newModel()
	m.screen.Now = time.Unix(1_800_000_000, 0)
	m.Update(arrived{approval(5, "make")})
	m.types("?")
	m.pressed = m.screen.Now
	m.Update(arrived{approval(6, "sudo ls")})
	if m.order[0] != 5 {
		t.Error("a row came above the selected one")
	}
	m.Update(ticked(m.screen.Now.Add(restless + time.Second)))
	if m.order[0] != 6 {
		t.Error("the rows are not ranked when nobody presses a key")
	}
}

func TestEditedCommandIsShownBeforeItIsAllowed(t *testing.T) {
	for text, want := range map[string]string{"": "is empty", "  \n": "is empty", "make\n": "nothing was changed"} {
		m := newModel()
		e := edits(approval(1, "make"))
		m.Update(arrived{e})
		m.rest()
		m.Update(edited{about: e, text: text})
		if m.edited != nil || !strings.Contains(m.state, want) || m.busy {
			t.Errorf("%q: %q", text, m.state)
		}
	}
	m := newModel()
	e := edits(approval(1, "make"))
	m.Update(arrived{e})
	m.rest()
	screenOf(m) // which keeps the lines of the call
	m.Update(edited{about: e, text: "sudo make\n"})
	if s := screenOf(m); !strings.Contains(s, "Edited command") || !strings.Contains(s, "$ sudo make") || !strings.Contains(s, "Runs as root") {
		t.Fatalf("the screen:\n%s", s)
	}
	if m.types("a"); m.busy {
		t.Fatal("the edited call is allowed as it comes into view")
	}
	m.rest()
	if m.types("d"); m.prompt != nil {
		t.Fatal("a key decides something else than what is shown")
	}
	m.types("a")
	m.rest()
	if m.types("a"); !m.busy || m.edited != nil {
		t.Error("the edited call is not allowed")
	}
}

func TestEditedInputKeepsTheRest(t *testing.T) {
	for _, c := range []struct{ input, want string }{
		{`{"command":"a"}`, `{"command":"b <c>\n"}`},
		{`{ "x": {"command": 1}, "command" : "a" , "timeout":5.0}`, `{ "x": {"command": 1}, "command" : "b <c>\n" , "timeout":5.0}`},
	} {
		if got, err := withCommand(c.input, "b <c>\n"); err != nil || got != c.want {
			t.Errorf("%s, %v, want %s", got, err, c.want)
		}
	}
}

func TestQuestionIsNoEmptyDenial(t *testing.T) {
	m := newModel()
	m.Update(arrived{approval(1, "make")})
	m.rest()
	screenOf(m)
	m.types("r")
	if m.press(tea.KeyPressMsg{Code: tea.KeyEnter}); m.busy {
		t.Error("an empty question denies the call")
	}
	m.types("rwhy")
	if m.press(tea.KeyPressMsg{Code: tea.KeyEnter}); !m.busy {
		t.Error("nothing is asked")
	}
}

func TestListIsFilteredAndSearched(t *testing.T) {
	m := newModel()
	write := approval(3, "")
	write.Permission = &parley.Permission{Tool: "Write", Input: `{"file_path":"a.go","content":"x"}`}
	write.Digest = write.Permission.Digest()
	form := approval(4, "")
	form.Type, form.Permission, form.Description, form.Fields = "form", nil, "Which port?", nil
	m.Update(arrived{approval(1, "make"), approval(2, "sudo ls"), write, form})
	for want := range strings.SplitSeq("[2 1],[3],[4],[],[2 1 3 4]", ",") {
		m.types("f")
		if got := fmt.Sprint(m.order); got != want {
			t.Errorf("%s shows %s, want %s", m.only, got, want)
		}
	}
	m.types("/port")
	m.press(tea.KeyPressMsg{Code: tea.KeyEnter})
	if s := screenOf(m); fmt.Sprint(m.order) != "[4]" || !strings.Contains(s, `with "port"`) {
		t.Errorf("%v:\n%s", m.order, s)
	}
	if m.press(tea.KeyPressMsg{Code: tea.KeyEscape}); len(m.order) != 4 {
		t.Error("esc does not show all again")
	}
}

// TestChoiceOfARuleSaysItsPast has the choice of a rule tell what was decided of the calls that it covers. What comes late, or for another
// call, changes nothing.
func TestChoiceOfARuleSaysItsPast(t *testing.T) {
	m := newModel()
	m.Update(arrived{approval(0, "git push origin main"), approval(1, "make")})
	m.rest()
	m.choose(0)
	screenOf(m)
	m.rest()
	first, other := m.items[0].MessageID, m.items[1].MessageID
	past := view.Trial{Rules: []view.TriedRule{{Offer: "call", Covered: 7, Allowed: 5, Denied: 1}}}
	m.Update(tried{first, past})
	if cmd := m.types("A"); cmd == nil || m.prompt == nil {
		t.Fatalf("no rule is chosen, or not tried:\n%s", screenOf(m))
	}
	m.Update(tried{other, past})
	if s := screenOf(m); strings.Contains(s, "past") {
		t.Errorf("the past of another call:\n%s", s)
	}
	m.Update(tried{first, past})
	if s := screenOf(m); !strings.Contains(s, "(7 past: 5 allowed, 1 denied)") {
		t.Errorf("it lacks the past:\n%s", s)
	}
}

// TestMandateIsSaidBeforeItIsGiven gives a mandate with a call: which rules, then limits, then a sentence with all of it. Esc gives nothing.
func TestMandateIsSaidBeforeItIsGiven(t *testing.T) {
	m := newModel()
	m.screen.Now = time.Unix(1_800_000_000, 0)
	e := approval(0, "git push origin main")
	e.FromName, e.Permission.Folder = "fae", "/srv/shop"
	e.Digest = e.Permission.Digest()
	m.Update(arrived{e, approval(1, "sudo ls")})
	m.rest()
	enter := func() tea.Cmd {
		cmd := m.press(tea.KeyPressMsg{Code: tea.KeyEnter})
		m.View()
		return cmd
	}
	m.choose(1)
	m.View()
	m.rest()
	if m.types("m"); m.prompt != nil || !strings.Contains(m.state, "no mandate is given with a call of high risk") {
		t.Fatalf("of a high risk: %q", m.state)
	}
	m.choose(0)
	m.View()
	m.rest()
	if m.types("m"); m.prompt == nil {
		t.Fatalf("nothing is asked:\n%s", screenOf(m))
	}
	m.types("7")
	if enter(); m.prompt != nil || !strings.Contains(m.state, `"7" is no number of a rule`) {
		t.Fatalf("%q", m.state)
	}
	m.types("m1")
	enter()
	m.types("5 soon")
	if enter(); m.prompt != nil || !strings.Contains(m.state, `"soon" is neither`) {
		t.Fatalf("%q", m.state)
	}
	m.types("m1")
	enter()
	m.types("5 8h")
	enter()
	if s := strings.ReplaceAll(screenOf(m), "\n", ""); m.busy || !strings.Contains(s, "fae may do without asking: Bash: exactly: git push origin main, in /srv/shop.") || !strings.Contains(s, "5 calls at most, until ") {
		t.Fatalf("it is not said:\n%s", screenOf(m))
	}
	if m.press(tea.KeyPressMsg{Code: tea.KeyEscape}); m.busy || m.prompt != nil {
		t.Fatal("esc gives it")
	}
	m.types("m1")
	enter()
	enter()
	if cmd := enter(); cmd == nil || !m.busy {
		t.Fatalf("it is not given:\n%s", screenOf(m))
	}
}

// TestHelpHasEachKeyOnANarrowTerminal has as many lines as fit 20 rows, each with one key and what it does.
func TestHelpHasEachKeyOnANarrowTerminal(t *testing.T) {
	lines := helpIn(40)
	if len(lines) > 18 {
		t.Errorf("%d lines", len(lines))
	}
	for _, want := range []string{"a       allow once, answer", "A       always, by a rule", "e       edit the command in $EDITOR", "m       allow, and more within limits", "enter   the whole message, and back", "space b a screen on, back", "q       quit"} {
		if !slices.Contains(lines, want) {
			t.Errorf("no line %q in\n%s", want, strings.Join(lines, "\n"))
		}
	}
}
