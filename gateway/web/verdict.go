package web

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/people"
	"parley/mailbox"
)

// verdict is how a line of History ended.
type verdict struct {
	Icon  string
	Tone  string // good, bad or rule; "" for what nobody decided
	Words string
	Why   string // the reason, the rule or the answer's note; "" for none
}

// outcomes are how a message may end without a decision on a call. What its asker or time ended has no tone.
var outcomes = map[view.FormStatus]verdict{
	view.StatusAnswered: {Icon: "check", Tone: "good", Words: "Answered"}, view.StatusDeclined: {Icon: "x", Tone: "bad", Words: "Declined"},
	view.StatusExpired: {Icon: "clock", Words: "Expired", Why: "Nobody answered in time"}, view.StatusSuperseded: {Icon: "undo", Words: "Replaced"}, view.StatusCancelled: {Icon: "undo", Words: "Cancelled"},
}

// Verdict returns how the line ended. It is zero for what is in an archive elsewhere.
func (r row) Verdict() verdict {
	switch o := r.Outcome; {
	case r.Ruled != nil:
		v := verdict{Icon: "shield", Tone: "rule", Words: r.Decision.Words, Why: r.Ruled.Words}
		if r.Decision.Denied {
			v.Icon, v.Tone = "x", "bad"
		}
		return v
	case o == nil:
		return verdict{}
	case r.Decision.Words != "":
		return decided(r.Message, r.Decision)
	default:
		v := outcomes[o.Status]
		v.Why = cmp.Or(o.Note, v.Why)
		return v
	}
}

// decided returns how a call ended that someone decided.
func decided(m view.Message, d decision) verdict {
	v := verdict{Icon: "check", Tone: "good", Words: d.Words, Why: d.Reason}
	if d.Denied {
		v.Icon, v.Tone = "x", "bad"
	}
	switch made, _ := mailbox.ReadDecision(m.Outcome.Values); {
	case made == mailbox.Always && !d.Denied:
		v.Icon, v.Tone, v.Words = "shield", "rule", "Always allowed"
	case made == mailbox.Never:
		v.Words = "Never allowed"
	case d.Input != "":
		v.Words, v.Why = "Allowed, edited", cmp.Or(v.Why, "Ran with another input")
		return v
	default:
		return v
	}
	v.Why = strings.Join(nonEmpty(mailbox.RuleWords(m.Permission, m.Outcome.Values), d.Reason), " · ")
	return v
}

func nonEmpty(all ...string) (some []string) {
	for _, s := range all {
		if s != "" {
			some = append(some, s)
		}
	}
	return some
}

// DecidedBy returns who decided or ended the line, in words that begin a cell.
func (r row) DecidedBy() string {
	switch o := r.Outcome; {
	case r.Ruled != nil:
		return capital(decidedBy(r.Ruled))
	case o == nil:
		return ""
	case o.Status == view.StatusExpired, o.By.IsZero():
		return "Nobody"
	default:
		name := partyOf(o.By, o.ByName).Name
		if r.ByReviewer() {
			return "Reviewer " + name
		}
		if name == people.You {
			return capital(name)
		}
		return name
	}
}

// Ended returns when the line was decided, or ended otherwise.
func (r row) Ended() capabilities.Time { return endedAt(&r.Message) }

func capital(s string) string {
	first, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(first)) + s[n:]
}

// Took returns the time from the question to its end, as in "8 m 02 s"; "" if it has not ended.
func (r row) Took() string {
	switch {
	case r.Ruled != nil:
		return "0 s"
	case r.Outcome == nil:
		return ""
	}
	return lasted(r.Outcome.At.Std().Sub(r.Date.Std()))
}

// lasted returns a span in its two largest units.
func lasted(d time.Duration) string {
	d = max(d, 0).Round(time.Second)
	switch seconds := int(d.Seconds()); {
	case d < time.Minute:
		return fmt.Sprintf("%d s", seconds)
	case d < time.Hour:
		return fmt.Sprintf("%d m %02d s", seconds/60, seconds%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h %02d m", seconds/3600, seconds/60%60)
	default:
		return fmt.Sprintf("%d d %d h", seconds/86400, seconds/3600%24)
	}
}

// Hits returns a text of the line in parts. Those that begin as a word of the search are changed.
func (r row) Hits(text string) []piece {
	words := strings.Fields(strings.ToLower(strings.Map(func(c rune) rune {
		if c == '"' || c == '*' {
			return ' '
		}
		return c
	}, r.Sought)))
	if len(words) == 0 {
		return []piece{{Text: text}}
	}
	var all []piece
	rest, inWord := 0, false
	for at := 0; at < len(text); {
		c, n := utf8.DecodeRuneInString(text[at:])
		isWord := unicode.IsLetter(c) || unicode.IsNumber(c)
		if size := 0; isWord && !inWord {
			for _, w := range words {
				size = max(size, beginsWith(text[at:], w))
			}
			if size > 0 {
				all = append(all, piece{Text: text[rest:at]}, piece{Text: text[at : at+size], Changed: true})
				at += size
				rest, inWord = at, true
				continue
			}
		}
		inWord = isWord
		at += n
	}
	return append(all, piece{Text: text[rest:]})
}

// beginsWith returns the length of the beginning of a text that is a word in lower case; 0 if it does not begin with it.
func beginsWith(text, word string) int {
	at := 0
	for _, want := range word {
		c, n := utf8.DecodeRuneInString(text[at:])
		if n == 0 || unicode.ToLower(c) != want {
			return 0
		}
		at += n
	}
	return at
}

// pastMenu is a filter of History: a menu of addresses, one for each value.
type pastMenu struct {
	Title, Value string // such as Agent and any
	Choices      []viewLink
	Part         string // of the address, where a value may be typed too; "" for none
}

// PastMenus returns the filters of History.
func (l layout) PastMenus() []pastMenu {
	list := l.List
	of := func(title, anything, value string, part func(*listQuery) *string, all []choice) pastMenu {
		m := pastMenu{Title: title, Value: anything}
		for _, c := range append([]choice{{Label: anything}}, all...) {
			other := list.listQuery
			*part(&other) = c.Value
			m.Choices = append(m.Choices, viewLink{Text: c.Label, Address: other.Address(), Current: c.Value == value})
			if c.Value == value {
				m.Value = c.Label
			}
		}
		return m
	}
	var agents, deciders, tools []choice
	deciders = []choice{{Value: l.Reader.String(), Label: people.You}, {Value: byRules, Label: "a rule, without asking"}}
	if l.Left != nil {
		for _, a := range l.Left.Agents {
			agents = append(agents, choice{Value: a.ID, Label: a.Name})
		}
	}
	deciders = append(deciders, agents...)
	for _, tool := range list.Tools() {
		tools = append(tools, choice{Value: tool, Label: tool})
	}
	if list.Tool != "" && labelOf(tools, list.Tool) == "" {
		tools = append(tools, choice{Value: list.Tool, Label: list.Tool})
	}
	if list.Agent != "" && labelOf(agents, list.Agent) == "" {
		agents = append(agents, choice{Value: list.Agent, Label: cmp.Or(list.AgentName, "one agent")})
	}
	if list.Decider != "" && labelOf(deciders, list.Decider) == "" {
		deciders = append(deciders, choice{Value: list.Decider, Label: "one agent"})
	}
	menus := []pastMenu{
		of("Agent", "any", list.Agent, func(q *listQuery) *string { return &q.Agent }, agents),
		of("Kind", "any", list.Kind, func(q *listQuery) *string { return &q.Kind }, pastKinds),
		of("Tool", "any", list.Tool, func(q *listQuery) *string { return &q.Tool }, tools),
		of("Decision", "any", list.Verdict, func(q *listQuery) *string { return &q.Verdict }, verdicts),
		of("By", "anyone", list.Decider, func(q *listQuery) *string { return &q.Decider }, deciders),
		of("Asked", "any time", list.Days, func(q *listQuery) *string { return &q.Days }, list.Periods()),
	}
	menus[2].Part = "tool"
	return menus
}

// pastKinds are the kinds of what History has.
var pastKinds = []choice{{Value: "approval", Label: "Calls"}, {Value: "form", Label: "Questions"}, {Value: "request", Label: "Requests"}}
