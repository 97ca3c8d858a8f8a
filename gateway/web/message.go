package web

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"html/template"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
	"parley/gateway/people"
	"parley/gateway/queue"
	"parley/gateway/sanitize"
	"parley/mailbox/form"
)

// shownAnswer is a field of a settled form.
type shownAnswer struct {
	Label  string
	Value  string
	Given  bool
	Secret bool
}

// answers returns the answer to a settled form, in the order of its fields.
func answers(e view.Message, name func(capabilities.Ref) string) []shownAnswer {
	values, ok := e.Outcome.Values.AsRecord()
	if !ok {
		return nil // the form is between other agents
	}
	shown := make([]shownAnswer, 0, len(e.Fields))
	for _, f := range e.Fields {
		v, given := values[f.Name]
		shown = append(shown, shownAnswer{
			Label: cmp.Or(f.Label, f.Name), Value: view.ShowValue(v, f.Options, name), Given: given, Secret: form.ControlOf(&f) == form.Secret || v.IsSealed(),
		})
	}
	return shown
}

// card is one message as the page draws it.
type card struct {
	view.Message
	Own        capabilities.ID // the agent that has the message; zero for what is drawn before it is sent
	Base       string          // the beginning of the addresses of pages
	As         string          // the reader's name for the agent that has the message; "" for the reader
	Key        string          // the beginning of element IDs
	MorePath   string          // of the page of the agent that sent it; "" if the reader may not see that
	Brief      string          // the message in a line, as lists have it
	Status     view.FormStatus
	Widgets    []widget
	Answers    []shownAnswer
	Carried    []carried
	Approval   *approval       // the call of an approval; nil for any other message
	Offers     []choice        // the rules that may be made of a decided call; nil for none
	Group      *group          // the similar calls that are decided with it; nil if it is shown alone
	Discussion []card          // of a form: what was asked back about it and replied, oldest first
	Unsaid     string          // why some of that is missing; "" for nothing
	Thread     []card          // the messages of the thread, oldest first; nil if it is shown alone
	Root       capabilities.ID // of the thread
	ReplyState string          // what who gets a reply does now, in words; "" if that is not known
	Opened     bool            // it is the message of a thread that was opened
	Decision   decision        // of an approval that was answered
	Signed     bool            // who decided signed that with a passkey
	NoPasskey  bool            // it needs a passkey, and the reader has none
	Wrong      string          // the message of a refused answer
	Tools      bool            // it has buttons that snooze it or put it away
	VotedIn    string          // the reader's name for the agent as whom it has voted, of a second vote
	InPast     bool            // it is beside the lines of History
	Near       steps           // from it to others of the list beside it; zero where there is none
}

// steps lead from a message to those before and after it in a list.
type steps struct {
	IsListed      bool
	At            int    // its place, from 1
	Of            string // how many there are, as atLeast has them; "" if that is not known
	Before, After string // addresses; "" for none
}

// String returns the place of the message in its list, in words; "" if that is not known.
func (s steps) String() string {
	if s.Of == "" {
		return ""
	}
	return fmt.Sprintf("%d of %s", s.At, s.Of)
}

// stepsIn returns the steps from the message of a card.
func (l mailList) stepsIn(key string) (s steps) {
	at := slices.IndexFunc(l.Rows, func(r row) bool { return r.Has(key) })
	if at < 0 {
		return s
	}
	if s.IsListed = true; l.Newest && l.Total > 0 {
		s.At, s.Of = at+1, atLeast(l.Total, l.More)
	}
	opens := func(r row) bool { return r.Ruled == nil }
	if i := slices.IndexFunc(l.Rows[at+1:], opens); i >= 0 {
		s.After = l.Rows[at+1+i].Address()
	}
	for _, r := range slices.Backward(l.Rows[:at]) {
		if opens(r) {
			s.Before = r.Address()
			break
		}
	}
	return s
}

// carried is a value that a message brings.
type carried struct{ Edge, Value string }

// maxProgress is how many members of a group a line names with how far a message has come.
const maxProgress = 12

// Progress returns how far a message has come that the reader sent, in words; "" for others, and for a form that has ended.
func (c card) Progress() string {
	if !c.Sent || c.Received || c.Outcome != nil || c.Message.Refused != "" || c.Archived != nil {
		return ""
	}
	if c.Promised != nil {
		return "Not sent yet: it " + c.Promised.Words()
	}
	if c.State == "" {
		return "Not delivered yet"
	}
	if len(c.Receipts)+len(c.Members)+len(c.Counts) == 0 {
		return "Delivered"
	}
	party := func(id capabilities.ID, name string) string { return cmp.Or(name, view.ShortID(id)) }
	var all []string
	for _, n := range c.Counts {
		all = append(all, n.Words(party))
	}
	for _, r := range c.Receipts {
		all = append(all, c.ReceiptWords(r, party))
	}
	for i, m := range c.Members {
		if i == maxProgress {
			all = append(all, fmt.Sprintf("and %d more", len(c.Members)-i))
			break
		}
		all = append(all, m.Words(func(r view.Recipient) string { return recipients([]view.Recipient{r}, 1) }, party))
	}
	words := strings.Join(all, "; ")
	return strings.ToUpper(words[:1]) + words[1:]
}

// recipients returns recipients in words, at most so many by name. What another calls one is in quotation marks.
func recipients(all []view.Recipient, most int) string {
	return view.RecipientWords(all, most, func(r view.Recipient) string {
		switch {
		case r.Name == self:
			return people.You
		case r.Name == "" && r.Said != "":
			return "“" + r.Said + "”"
		}
		return r.Name
	})
}

// ToAll returns the recipients of a message to several, in words.
func (c card) ToAll() string { return recipients(c.Recipients, 6) }

// LateWords returns who has not acknowledged a message that was escalated, in words.
func (c card) LateWords() string { return recipients(c.Late, len(c.Late)) }

// EscalateWords returns who gets a message that is not acknowledged.
func (c card) EscalateWords() string { return recipients([]view.Recipient{*c.Escalate}, 1) }

// Missed returns whom a message to several or to a group did not reach, in words.
func (c card) Missed() (lines []string) {
	for _, u := range c.Unreached {
		line := "Did not reach " + recipients([]view.Recipient{u.Recipient}, 1) + " (" + u.Why + ")"
		if u.ByName != self {
			line += ", " + cmp.Or(u.ByName, view.ShortID(u.By)) + " says"
		}
		lines = append(lines, line)
	}
	return lines
}

// refusedAnswer is an answer that the node refused, with the reasons.
type refusedAnswer struct {
	Texts  []events.FieldText
	Wrong  string
	Fields map[string]string
	Sent   url.Values // all that was sent
}

// newCard returns the card of a message in the mail of an agent. As is the reader's name for the agent. Name returns
// the agent's name for a reference. t is a refused answer to the message, or nil.
func newCard(base, as string, e view.Message, t *refusedAnswer, name func(capabilities.Ref) string) card {
	c := card{Message: e, Base: base, As: as, Key: ElementKey(as, e.Number), Status: statusOf(e)}
	if t != nil {
		c.Wrong = t.Wrong
	}
	for _, edge := range slices.Sorted(maps.Keys(e.Edges)) {
		c.Carried = append(c.Carried, carried{Edge: edge, Value: view.ShowValue(e.Edges[edge], nil, name)})
	}
	if c.IsApproval() {
		c.Approval = newApproval(e)
	}
	switch {
	case e.AnswerNeeded:
		if c.Widgets = drawFields(c.Key, e.Fields, t); c.IsApproval() {
			c.Approval.decisions(c.Widgets)
			if edit := c.Approval.Edit; t != nil && edit != nil && edit.Text() != "" && edit.Text() != e.Permission.Input {
				c.Approval.Edited = newEdited(e, edit.Text())
			}
		}
	case e.Outcome != nil:
		if c.Decision = decisionOf(e); c.Decision == (decision{}) {
			c.Answers = answers(e, name)
		}
	}
	return c
}

// card returns the card of a message in an agent's mail. A reference is named as that agent names it.
func (p *page) card(ctx context.Context, l local, e view.Message, t *refusedAnswer) card {
	p.name(&e)
	c := newCard(p.base, l.name, e, t, namer(ctx, l.agent))
	c.Own = l.agent.ID()
	c.MorePath = pathOf(p, e.From)
	c.Brief = newRow("", l, e, p.site.readings.Of(&e)).Line
	for i := range c.Widgets {
		if g := c.Widgets[i].Give; g != nil && len(g.Sent) > 0 {
			g.Given = givenBy(p, e, g.Control, g.Sent)
		}
	}
	c.InPast = p.r.URL.Path == string(pastMail) || queryIn(p.r.URL.Query().Get("in"), "").View == pastMail
	if c.IsSecondVote() {
		c.VotedIn = heldNames(ctx, p.agent)[c.Votes.VotedAs.ID]
	}
	c.Offers = offersAfter(p, &c)
	if c.Approval != nil && c.Approval.Decision != nil {
		c.Approval.Key, c.Approval.Opened = c.Key, openedBy(p.r.URL.Query().Get("do"))
		c.Approval.together(e, p.waitingIn(ctx, l))
		if c.Approval.MayRule() && p.principal.IsHost() && l.name == "" {
			var sent url.Values
			if t != nil {
				sent = t.Sent
			}
			c.Approval.Leave = newLeave(c.Approval, sent)
		}
	}
	return c
}

// addSigned has a card say whether its decision was signed with a passkey, or whether the reader has none where it needs one. Of the last
// vote of several, of which the copies of others do not have it, a proof tells: so this is for a message that is shown by itself.
func addSigned(p *page, ctx context.Context, l local, c *card) {
	if c.Waits() && c.Passkey {
		all, err := api.ListPasskeys.Do(ctx, p, api.ListPasskeysRequest{Acting: api.Acting{As: l.name}})
		c.NoPasskey = err == nil && len(all.Passkeys) == 0
	}
	if c.Signed = c.Outcome != nil && c.Outcome.Signed; c.Signed || c.Votes == nil || c.Decision.Words == "" || c.Decision.Denied || !c.Received {
		return
	}
	made, err := api.ProveForm.Do(ctx, p, api.ProofRequest{Acting: api.Acting{As: l.name}, FormRef: api.RefTo(c.MessageID.String()), DigestOnly: true})
	c.Signed = err == nil && made.Signed // what cannot be proved is not said
}

// addSimilar has a card show the similar calls, of which its message is one. It stays as it is if that is a row of its own.
func addSimilar(p *page, ctx context.Context, l local, c *card) {
	members := p.similarTo(ctx, l, c.Message)
	if members == nil || c.Approval.Decision == nil {
		return
	}
	c.Group, c.Approval.Leave = groupOf(p, l, c.Key, members), nil
	c.Approval.Same, c.Approval.Whole = nil, nil
	c.Approval.onlyShared(members)
	c.Approval.describe()
}

// Digests returns the digests of the calls that the card shows, each of which its decision names.
func (c card) Digests() string {
	if c.Group != nil {
		return c.Group.Digests()
	}
	return c.Digest
}

// waitingIn returns the forms that wait in an agent's mail, as far as they can be read: what is not known is not offered to be decided
// together.
func (p *page) waitingIn(ctx context.Context, l local) []view.Message {
	all, _ := allWaitingIn(p, ctx, l)
	return all
}

// allWaitingIn returns the forms that wait in an agent's mail, or those before one that cannot be read. The page looks once, unless that
// fails.
func allWaitingIn(p *page, ctx context.Context, l local) ([]view.Message, error) {
	if known, ok := p.waiting[l.name]; ok {
		return known, nil
	}
	var all []view.Message
	for e, err := range l.agent.Mail().All(ctx, view.MessageFilter{Pending: true}) {
		if err != nil {
			return all, err
		}
		if len(all) >= maxQuestions {
			break
		}
		all = append(all, e)
	}
	if p.waiting == nil {
		p.waiting = map[string][]view.Message{}
	}
	p.waiting[l.name] = all
	return all, nil
}

// waitingBy returns what waits in the mail of agents by their names, so that the item beside a list needs no other look.
func waitingBy(who []local, waiting []question) map[string][]view.Message {
	by := make(map[string][]view.Message, len(who))
	for _, l := range who {
		by[l.name] = nil
	}
	for _, w := range waiting {
		by[w.name] = append(by[w.name], w.Message)
	}
	return by
}

// unnamed returns a reference in words, for an agent that has no name for it.
func unnamed(r capabilities.Ref) string { return string(r.Kind) + " " + view.ShortID(r.Target) }

// Speaker returns the agent at the other end, whose initials lead the message.
func (c card) Speaker() party {
	if c.Sent && !c.Received {
		return partyOf(c.To, c.ToName)
	}
	return senderOf(&c.Message)
}

// Voice returns whose words the message has: those of who wrote to a group stay theirs where it has passed them on.
func (c card) Voice() party {
	if c.Sent && !c.Received && !c.Author.IsZero() {
		return authorOf(&c.Message)
	}
	return c.Speaker()
}

// statusOf returns the status of a form; "" for a message.
func statusOf(e view.Message) view.FormStatus {
	switch {
	case e.Type == "message", e.Archived != nil:
		return ""
	case e.Outcome != nil:
		return e.Outcome.Status
	case e.Answering:
		return view.StatusAnswering
	case e.Votes != nil && e.Votes.Own == view.VoteStands:
		return view.StatusVoted
	}
	return view.StatusOpen
}

// ElementKey returns a prefix for the IDs of the elements of one message. It is unique on a page.
func ElementKey(as string, number uint64) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(as)) // never fails
	return fmt.Sprintf("m%x-%d", h.Sum32(), number)
}

// AnswerRevision returns the revision of the question that the card shows.
func (c card) AnswerRevision() uint64 { return c.Message.AnswerRevision() }

// EndedAs returns how a form has ended for the agent, in few words with their sign, as lists have it.
func (c card) EndedAs() string {
	return row{Message: c.Message, Status: c.Status, Decision: c.Decision}.State()
}

// ClaimMark returns a text that is another for each claim on the form, for the script.
func (c card) ClaimMark() string { return claimMark(&c.Message) }

// Waits reports whether the agent can answer the form.
func (c card) Waits() bool { return c.AnswerNeeded && !c.IsSecondVote() }

// MayCancel reports whether the agent asked the form and may cancel it.
func (c card) MayCancel() bool { return c.Sent && c.Status == view.StatusOpen }

// ClaimVerb returns what the agent may do about being on the form, as view.Message has it.
func (c card) ClaimVerb() string { return c.Message.ClaimVerb() }

// MayAmend reports whether the agent asked the form and may change its question. That of a capability has nothing to change.
func (c card) MayAmend() bool { return c.MayCancel() && c.Type == "form" }

// FieldsText returns the fields of the form as JSON, for the script that changes their labels.
func (c card) FieldsText() (string, error) {
	b, err := json.Marshal(c.Fields)
	return string(b), err
}

// HasVoted reports whether the reader has voted as another agent, so that a vote here would be a second one.
func (c card) HasVoted() bool { return c.IsSecondVote() }

// Voted returns as whom the reader has voted, where another vote of the same person is refused here, and the address of that vote.
func (c card) Voted() (v struct{ As, Address string }) {
	before := partyOf(c.Votes.VotedAs.ID, c.Votes.VotedAs.Name)
	v.As, v.Address = before.Name, c.Base+FormsPath+c.MessageID.String()
	if c.Votes.VotedAs.Name == self {
		v.As = yourself
	} else {
		v.Address += "?" + url.Values{"as": {c.VotedIn}}.Encode()
	}
	return v
}

// VotesAs returns as whom the reader votes, where several are asked; "" where one answer is all.
func (c card) VotesAs() string {
	if c.Votes == nil || c.Votes.Need < 2 {
		return ""
	}
	return cmp.Or(c.As, yourself)
}

// yourself is what the node's host, who alone stands for other agents, is called where it votes.
const yourself = "yourself"

// Lone reports whether the form is answered by one press of a button.
func (c card) Lone() bool {
	return slices.ContainsFunc(c.Widgets, func(w widget) bool { return w.Lone })
}

// HasRequired reports whether the mark of required fields needs an explanation.
func (c card) HasRequired() bool {
	return slices.ContainsFunc(c.Widgets, func(w widget) bool { return w.Required && !w.Lone })
}

// HasSecret reports whether the form asks for a secret, which no draft keeps.
func (c card) HasSecret() bool {
	return slices.ContainsFunc(c.Widgets, func(w widget) bool { return w.Kind == "secret" })
}

// DueSoon reports whether a form is soon due.
func (c card) DueSoon() bool {
	return c.Deadline != 0 && time.Until(c.Deadline.Std()) < time.Hour
}

// GivesUp reports whether who asks waits for the answer until the deadline, and goes on without one then.
func (c card) GivesUp() bool { return queue.GivesUp(&c.Message) }

// Heading returns the subject of the message in a line.
func (c card) Heading() string {
	switch {
	case c.IsApproval():
		return c.Approval.Line
	case c.Title != "":
		return c.Title
	case c.Type == "message":
		return c.Subject
	}
	subject, _ := c.subject()
	return subject
}

// headlineOf returns the heading of a message as that shows it: a title of one line without the marks of Markdown, and else all of it as it was typed.
func headlineOf(c card) string {
	h := c.Heading()
	if c.IsApproval() || len(h) > maxRead || strings.Contains(h, "\n") {
		return h
	}
	return words(h)
}

// Context returns the text below the heading.
func (c card) Context() string {
	if c.IsApproval() {
		return ""
	}
	if c.Title == "" {
		_, more := c.subject()
		return more
	}
	return c.Description
}

// subject divides a description into its first line and the text behind an empty line.
func (c card) subject() (line, more string) {
	line, more, parted := strings.Cut(strings.ReplaceAll(c.Description, "\r\n", "\n"), "\n\n")
	if !parted || c.Type == "message" || line == "" || strings.ContainsAny(line[:1], "\n`~>|") || strings.Contains(line, "\n") {
		return c.Description, ""
	}
	return line, more
}

// Reading returns the context as HTML. An approval has none: its call is shown exactly.
func (c card) Reading() template.HTML { return markdown(c.Context()) }

// party is an agent as a page names it.
type party struct {
	Name string // shown
	ID   string
	Own  bool // the name is one that the reader gave
}

// partyOf returns a party by the reader's name for it, or by its ID.
func partyOf(id capabilities.ID, name string) party {
	switch name {
	case self:
		name = people.You
	case "":
		return party{Name: view.ShortID(id), ID: id.String()}
	}
	return party{Name: name, ID: id.String(), Own: true}
}

// Bounds of a name in a list, in characters.
const (
	maxWhole = 24 // a longer one is in two parts
	nameEnd  = 10 // of the second part
)

// endsOf returns the parts of a long name, of which the second stays where there is too little room for both; nil for a short one. Names often differ at their ends alone.
func endsOf(name string) []string {
	letters := []rune(sanitize.Line(name))
	if len(letters) <= maxWhole {
		return nil
	}
	at := len(letters) - nameEnd
	return []string{string(letters[:at]), string(letters[at:])}
}

// senderOf returns who sent a message, by what that calls itself where the reader has no name for it.
func senderOf(m *view.Message) party {
	p := partyOf(m.From, m.Sender())
	p.Own = p.Own && m.FromSaid == ""
	return p
}

// authorOf returns who wrote what a group has passed on, as senderOf does.
func authorOf(m *view.Message) party {
	p := partyOf(m.Author, m.Writer())
	p.Own = p.Own && m.AuthorSaid == ""
	return p
}

// readable returns a time in words, for browsers without scripts.
func readable(t capabilities.Time) string { return t.Std().Format("2 Jan 2006, 15:04 UTC") }

// said returns the texts that were sent for a field; none for a secret.
func (t *refusedAnswer) said(f events.Field) []string {
	var values []string
	for _, text := range t.Texts {
		if text.Name == f.Name && form.ControlOf(&f) != form.Secret {
			values = append(values, text.Text)
		}
	}
	return values
}
