package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
	"parley/gateway/sanitize"
	"parley/mailbox"
)

// leave is how the page of a call has a mandate be given with it: which later calls, within which limits, and a sentence with all that.
type leave struct {
	Key     string
	Offers  []choice // the rules that the call offers
	Tool    string   // all of whose calls may be chosen; "" if those run commands or use files
	Members []string // of the input, that are numbers: what they add up to may be bounded
	Sent    url.Values
	Given   *leaveGiven // nil before anything was chosen
}

// leaveGiven is what a mandate gives, before it is given.
type leaveGiven struct {
	Says  string // in a sentence
	Terms string // as JSON
	Wrong string // why it cannot be given
}

// The names of the controls of a leave. That of a sum ends with the member.
const (
	leaveOffer    = "leave-offer"
	leaveTool     = "leave-tool"
	leaveCommands = "leave-commands"
	leaveFiles    = "leave-files"
	leaveRead     = "leave-read"
	leaveCalls    = "leave-calls"
	leaveUntil    = "leave-until"
	leaveSum      = "leave-sum-"
)

// maxLeaveSums bounds the members of an input of which a page offers sums.
const maxLeaveSums = 4

// newLeave returns the leave that may be given with a call, with what was sent of it.
func newLeave(a *approval, sent url.Values) *leave {
	l := &leave{Key: a.Key + "-leave", Sent: sent, Offers: offered(&a.Permission, &widget{ID: a.Key + "-leave-offer"})}
	for i := range l.Offers {
		l.Offers[i].Chosen = slices.Contains(sent[leaveOffer], l.Offers[i].Value)
	}
	ofTool := parley.MandateTerms{Rules: []parley.MandateRule{{Tool: a.Tool}}}
	if _, err := mailbox.MandateOf(&a.Permission, &ofTool, 0); err == nil {
		l.Tool, l.Members = a.Tool, numbersIn(a.Input)
	}
	if sent.Get("do") == "leave" || slices.ContainsFunc([]string{leaveOffer, leaveTool, leaveCommands, leaveFiles}, func(name string) bool { return sent.Get(name) != "" }) {
		l.Given = leaveOf(a, sent)
	}
	return l
}

// numbersIn returns the members of a call's input that are numbers.
func numbersIn(input string) (names []string) {
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(input), &members) != nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if v := bytes.TrimSpace(members[name]); len(v) > 0 && (v[0] == '-' || v[0] >= '0' && v[0] <= '9') && len(names) < maxLeaveSums {
			names = append(names, name)
		}
	}
	return names
}

// Typed returns what was sent of a control, and Sum of that of a member's sum.
func (l *leave) Typed(name string) string { return l.Sent.Get(name) }
func (l *leave) Sum(member string) string { return l.Typed(leaveSum + member) }

// Has reports whether a control was chosen.
func (l *leave) Has(name string) bool { return l.Sent.Has(name) }

// Untils returns the ends to choose from.
func (l *leave) Untils() []choice {
	all := endings(l.Typed(leaveUntil))
	all[0].Label = "its session ends"
	return all
}

// leaveTerms returns the terms of the mandate that was chosen, from now on. It refuses with INVALID_ANSWER what cannot be read.
func leaveTerms(p *parley.Permission, sent url.Values, now time.Time) (*parley.MandateTerms, error) {
	t := &parley.MandateTerms{}
	for _, offer := range sent[leaveOffer] {
		t.Rules = append(t.Rules, parley.MandateRule{Offer: offer})
	}
	if sent.Has(leaveTool) {
		t.Rules = append(t.Rules, parley.MandateRule{Tool: p.Tool})
	}
	for line := range strings.Lines(sent.Get(leaveCommands)) {
		if line = strings.TrimSpace(line); line != "" {
			t.Rules = append(t.Rules, parley.MandateRule{Command: line})
		}
	}
	for _, glob := range strings.Fields(sent.Get(leaveFiles)) {
		t.Rules = append(t.Rules, parley.MandateRule{Files: glob, Read: sent.Has(leaveRead)})
	}
	if len(t.Rules) == 0 {
		return nil, parley.Refuse(parley.InvalidAnswer, "choose which calls it may make")
	}
	if text := strings.TrimSpace(sent.Get(leaveCalls)); text != "" {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil || n == 0 {
			return nil, parley.Refuse(parley.InvalidAnswer, "%s is not a number of calls", parley.Quoted(text, 20))
		}
		t.Calls = uint32(n)
	}
	if text := sent.Get(leaveUntil); text != "" {
		after, err := time.ParseDuration(text)
		if err != nil || after <= 0 || after > maxLimit {
			return nil, parley.Refuse(parley.InvalidAnswer, "%s is no time until which it can be given", parley.Quoted(text, 20))
		}
		t.Until = capabilities.At(now.Add(after)).String()
	}
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		member, isSum := strings.CutPrefix(name, leaveSum)
		if most := strings.TrimSpace(sent.Get(name)); isSum && most != "" {
			t.Sums = append(t.Sums, parley.MandateSum{Member: member, Most: most})
		}
	}
	return t, nil
}

// leaveOf returns what the mandate that was chosen would give to who asks.
func leaveOf(a *approval, sent url.Values) *leaveGiven {
	now := time.Now()
	terms, err := leaveTerms(&a.Permission, sent, now)
	var m *mailbox.Mandate
	if err == nil {
		m, err = mailbox.MandateOf(&a.Permission, terms, capabilities.At(now))
	}
	if err != nil {
		return &leaveGiven{Wrong: sanitize.Line(api.Shown(err).Message)}
	}
	text, err := json.Marshal(terms)
	if err != nil {
		return &leaveGiven{Wrong: "this cannot be given"}
	}
	return &leaveGiven{Says: m.Sentence(a.Agent, readable), Terms: string(text)}
}

// showLeave draws what a mandate would give: the sentence for a script, or the page.
func showLeave(p *page, e view.Message, sent url.Values, show func(*refusedAnswer) error) error {
	if e.Permission == nil || !e.AnswerNeeded {
		return parley.Refuse(parley.InvalidArgument, "there is no open call")
	}
	if p.pane() != "leave" {
		return show(&refusedAnswer{Texts: readTexts(e.Fields, sent), Sent: sent})
	}
	p.name(&e)
	return p.render(http.StatusOK, "leave-given", leaveOf(newApproval(e), sent))
}

// leaveAnswer returns the answer that allows a call once and gives the mandate that a plain HTML form has shown.
func leaveAnswer(e view.Message, r api.RespondFormRequest, sent url.Values) (api.RespondFormRequest, error) {
	if e.Permission == nil {
		return r, parley.Refuse(parley.InvalidArgument, "a mandate is given with a call")
	}
	terms := &parley.MandateTerms{}
	if err := json.Unmarshal([]byte(sent.Get("terms")), terms); err != nil {
		return r, parley.Refuse(parley.InvalidAnswer, "show what it gives, and allow it then")
	}
	if now, err := leaveTerms(e.Permission, sent, time.Now()); err != nil || !sameTerms(now, terms) {
		return r, parley.Refuse(parley.InvalidAnswer, "what was chosen has changed: show what it gives, and allow it then")
	}
	r.Texts, r.Digest, r.Mandate = nil, e.Digest, terms
	for _, f := range e.Fields {
		if f.Name == "decision" {
			r.Texts = append(r.Texts, events.FieldText{Name: f.Name, Text: mailbox.Once})
		}
	}
	return r, nil
}

// sameTerms reports whether two terms say the same, but for the moment of their ends.
func sameTerms(a, b *parley.MandateTerms) bool {
	x, y := *a, *b
	if (x.Until == "") != (y.Until == "") {
		return false
	}
	x.Until, y.Until = "", ""
	return fmt.Sprintf("%+v", x) == fmt.Sprintf("%+v", y)
}
