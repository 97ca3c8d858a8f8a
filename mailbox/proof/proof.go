package proof

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/passkey"
)

// MaxSize bounds a proof, in bytes.
const MaxSize = 4 << 20

// maxEvents bounds the events of a form that a proof is about.
const maxEvents = 1024

// Proof says what was decided on a form.
type Proof struct {
	Node    capabilities.NodeID `json:"node"`    // whose log it is, and who signs
	Mailbox capabilities.ID     `json:"mailbox"` // whose events they are: the asker's, at the form's home, or those of a copy
	Form    capabilities.ID     `json:"form"`
	Kind    events.FormKind     `json:"kind,omitempty"`
	From    capabilities.ID     `json:"from"`
	To      capabilities.ID     `json:"to"` // who was asked first
	Asked   capabilities.Time   `json:"asked"`

	Revision uint64          `json:"revision"`           // of the question that was answered: 1 as it was asked
	Digest   events.Hash     `json:"digest"`             // of the question that was answered, or of the call
	Question json.RawMessage `json:"question,omitempty"` // a Question; none if only its digest is told

	Votes   []Vote  `json:"votes,omitempty"` // that stood at the end, of a form that several decide
	Outcome Outcome `json:"outcome"`

	Signed []events.DecisionSigned `json:"signed,omitempty"` // with passkeys: of the outcome, and of votes that stood

	Names  map[string]string `json:"names,omitempty"` // by IDs: what the agent that had the proof made calls the agents of it
	Events []Event           `json:"events"`          // of the form, in their order
	Log    []events.Excerpt  `json:"log"`             // the commits with these events, in their order
	Head   events.Mark       `json:"head"`            // the last commit of the log when the proof was made
	Made   capabilities.Time `json:"made"`
}

// Question is what was shown: the call of an approval, or the parts of another form.
type Question struct {
	Permission  *parley.Permission `json:"permission,omitempty"`
	Title       string             `json:"title,omitempty"`
	Description string             `json:"description,omitempty"`
	Fields      []events.Field     `json:"fields,omitempty"`
	Passkey     bool               `json:"passkey,omitempty"` // answers had to be signed with one
}

// Vote is the vote of one of several.
type Vote struct {
	By      capabilities.ID    `json:"by"`
	Person  capabilities.ID    `json:"person,omitzero"` // who voted as By, if that is another agent
	Outcome events.VoteOutcome `json:"outcome"`
	Digest  events.Hash        `json:"digest"` // of the question that was shown
	At      capabilities.Time  `json:"at"`
	Note    string             `json:"note,omitempty"`
}

// Outcome is the end of a form.
type Outcome struct {
	Status   string            `json:"status"` // answered, declined, cancelled, expired or superseded
	By       capabilities.ID   `json:"by,omitzero"`
	At       capabilities.Time `json:"at"`
	Decision string            `json:"decision,omitempty"` // of an approval: once, always, deny or never
	Reason   string            `json:"reason,omitempty"`   // of that decision, or of an end without an answer
	Allowed  bool              `json:"allowed,omitempty"`  // the call of an approval may be made
	Values   json.RawMessage   `json:"values,omitempty"`   // of an answer; of a secret one that there was one
	Withheld bool              `json:"withheld,omitempty"` // the answer was not told to the agent whose copy it is
}

// Event is an event of the form in the log.
type Event struct {
	Type    string `json:"type"`
	Version uint64 `json:"version"` // of the mailbox
	Commit  uint64 `json:"commit"`
	Section int    `json:"section"`         // of that commit
	Shown   bool   `json:"shown,omitempty"` // the commit shows it
}

// Placed is an event of a form with its place in the log.
type Placed struct {
	Version uint64
	events.Recorded
}

// IsOf reports whether an event belongs to what a proof of a form says.
func IsOf(e events.Event, form capabilities.ID) bool {
	switch e := e.(type) {
	case *events.FormRequested:
		return e.ID == form
	case *events.QueuedSent:
		return e.Message == form
	case *events.FormAmended:
		return e.Form == form
	case *events.FormForwarded:
		return e.Form == form
	case *events.FormRouted:
		return e.Form == form
	case *events.ReviewAsked:
		return e.Form == form
	case *events.ReviewEnded:
		return e.Form == form
	case *events.VoteCast:
		return e.Form == form
	case *events.VoteWithdrawn:
		return e.Form == form
	case *events.FormAnswered:
		return e.Form == form
	case *events.FormCancelled:
		return e.Form == form
	case *events.DecisionSigned:
		return e.Form == form
	}
	return false
}

// MayShow reports whether a section may be shown in a proof of a form: it has events of that form alone, beside acknowledgements of
// mail, the session that asked, and the rule or mandate that the answer made or resumed, and no secret.
func MayShow(s *events.Section, form capabilities.ID) bool {
	evs, err := s.Events()
	if err != nil {
		return false
	}
	for _, r := range evs {
		switch e := r.Event.(type) {
		case *events.MessageDelivered:
			continue
		case *events.RuleAdded:
			if e.Form == form {
				continue
			}
		case *events.MandateGiven:
			if e.Form == form {
				continue
			}
		case *events.RulePaused:
			if e.Form == form {
				continue
			}
		case *events.CallerNamed:
			if e.Form == form {
				continue
			}
		case *events.FormAnswered:
			if e.Values.Has(capabilities.Value.IsSealed) {
				return false
			}
		}
		if !IsOf(r.Event, form) {
			return false
		}
	}
	return true
}

// Tell says what the events of a form mean, all of them and in their order. Self is the mailbox that has them. It refuses with
// INVALID_ARGUMENT a form that has not ended.
func Tell(self capabilities.ID, evs []Placed) (*Proof, error) {
	recorded := make([]events.Recorded, len(evs))
	for i, e := range evs {
		recorded[i] = e.Recorded
	}
	f, err := mailbox.FormOf(self, recorded)
	if err != nil {
		return nil, err
	}
	if f.IsOpen() {
		return nil, parley.Refuse(parley.InvalidArgument, "form %s is open: there is no decision to prove yet", f.ID).WithHint("parley await waits for it")
	}
	p := &Proof{Node: self.Node, Mailbox: self, Form: f.ID, Kind: f.Kind, From: f.From, To: f.To, Asked: f.Date, Revision: f.Revision(), Digest: f.QuestionDigest()}
	if p.Question, err = questionOf(f); err != nil {
		return nil, err
	}
	for _, v := range f.Votes().Standing {
		p.Votes = append(p.Votes, Vote{By: v.By, Person: v.Person, Outcome: v.Outcome, Digest: v.Digest, At: v.Date, Note: v.Note})
	}
	end := evs[len(evs)-1].Event
	if p.Outcome, err = outcomeOf(f.Kind, end); err != nil {
		return nil, err
	}
	p.Outcome.Allowed = f.Allowed()
	for i := range slices.Backward(evs) {
		e, ok := evs[i].Event.(*events.DecisionSigned)
		if !ok || slices.ContainsFunc(p.Signed, func(o events.DecisionSigned) bool { return o.By == e.By }) || p.checkSigned(e) != nil {
			continue // a vote that was withdrawn, or of an earlier question, is none of the decision
		}
		p.Signed = append(p.Signed, *e)
	}
	slices.Reverse(p.Signed)
	return p, nil
}

// checkSigned checks what a passkey has signed: that it signed the outcome of the proof, or a vote in it.
func (p *Proof) checkSigned(e *events.DecisionSigned) error {
	if _, err := passkey.Of(e).Check(); err != nil {
		return refuse("%s", parley.AsError(err).Message)
	}
	s, err := passkey.Read(e.Statement)
	if err != nil || s.Form != p.Form || e.Form != p.Form || s.Act != "" {
		return refuse("a passkey has signed something else")
	}
	for _, v := range p.Votes {
		if v.By == e.By && v.Digest == s.Digest && (p.Kind != events.Approval || string(v.Outcome) == s.Decision) {
			return nil
		}
	}
	o := &p.Outcome
	if o.Status != "answered" || o.By != e.By || s.Digest != p.Digest || s.Decision != o.Decision {
		return refuse("a passkey of %s has signed another decision", e.By)
	}
	if o.Withheld {
		return nil
	}
	if same, err := passkey.IsAnswered(s.Answer, o.Values, p.Kind == events.Approval); err != nil || !same {
		return refuse("a passkey has signed another answer")
	}
	return nil
}

func questionOf(f *mailbox.Form) (json.RawMessage, error) {
	q := Question{Permission: f.Permission()}
	if q.Permission == nil {
		q.Title, q.Description, q.Fields, q.Passkey = f.Title, f.Description, f.Fields, f.AsksPasskey()
	}
	return json.Marshal(q)
}

// outcomeOf returns what the last event of a form says by itself: all but whether a call is allowed.
func outcomeOf(kind events.FormKind, end events.Event) (o Outcome, err error) {
	switch e := end.(type) {
	case *events.FormAnswered:
		o = Outcome{Status: "answered", By: e.By, At: e.Date, Withheld: e.Withheld}
		if kind == events.Approval {
			o.Decision, o.Reason = mailbox.ReadDecision(e.Values)
		}
		if e.Withheld {
			return o, nil
		}
		o.Values, err = json.Marshal(e.Values)
		return o, err
	case *events.FormCancelled:
		return Outcome{Status: string(e.Reason), By: e.By, At: e.Date, Reason: e.Note}, nil
	}
	return o, fmt.Errorf("a form ends with a %T", end)
}

// magic begins each proof, and what is signed. With the key of a node other things are signed too, which begin otherwise.
const magic = "parley proof 1 "

var signature64 = base64.RawStdEncoding.Strict()

// Encode returns the proof as a file: a line with the magic and the node, one with the proof as JSON, and one with the signature
// of both. Sign signs with the node's key. It refuses with TOO_LARGE what is over MaxSize.
func (p *Proof) Encode(sign func([]byte) ([]byte, error)) ([]byte, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	b := append([]byte(magic+p.Node.String()+"\n"), text...)
	b = append(b, '\n')
	signature, err := sign(b)
	if err != nil {
		return nil, fmt.Errorf("sign a proof: %w", err)
	}
	b = append(signature64.AppendEncode(b, signature), '\n')
	if len(b) > MaxSize || len(p.Events) > maxEvents {
		return nil, parley.Refuse(parley.TooLarge, "the proof has %d bytes and %d events, over the limit of %d and %d", len(b), len(p.Events), MaxSize, maxEvents).
			WithHint("parley proof --digest leaves out what was shown")
	}
	return b, nil
}

// refuse returns the error for a file that is no proof, or was changed.
func refuse(format string, args ...any) error {
	return parley.Refuse(parley.FileDamaged, "no valid proof: "+format, args...).WithHint("have it made again, by parley proof")
}

// Read reads a proof and verifies it. It refuses with FILE_DAMAGED what is none, was changed, or says other than the events that it
// shows; and with NOT_PERMITTED the proof of another node than key, unless that is zero.
func Read(file []byte, key capabilities.NodeID) (*Proof, error) {
	if len(file) > MaxSize {
		return nil, parley.Refuse(parley.TooLarge, "a proof has %d bytes at most", MaxSize)
	}
	head, rest, _ := bytes.Cut(file, []byte("\n"))
	text, end, _ := bytes.Cut(rest, []byte("\n"))
	named, ok := strings.CutPrefix(string(head[:min(len(head), 200)]), magic)
	if !ok {
		return nil, refuse("it does not begin with %q", magic)
	}
	node, err := capabilities.ParseNodeID(named)
	if err != nil {
		return nil, refuse("it names no node")
	}
	signature := make([]byte, ed25519.SignatureSize)
	encoded, ended := bytes.CutSuffix(end, []byte("\n"))
	if !ended || len(encoded) != signature64.EncodedLen(len(signature)) || bytes.ContainsAny(encoded, "\r\n") { // a decoder would skip these
		return nil, refuse("its signature is cut short, or none")
	}
	if _, err := signature64.Decode(signature, encoded); err != nil {
		return nil, refuse("its signature is cut short, or none")
	}
	if key != (capabilities.NodeID{}) && node != key {
		return nil, parley.Refuse(parley.NotPermitted, "the proof is of the node %s, and not of %s", node, key).WithHint("ask who made it for the key of the node: parley node key shows it")
	}
	public := node.Key()
	if !ed25519.Verify(public[:], file[:len(head)+len(text)+2], signature) {
		return nil, refuse("the signature of node %s does not fit", node)
	}
	p := &Proof{}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(p); err != nil {
		return nil, refuse("%v", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, refuse("there is something behind it")
	}
	if p.Node != node {
		return nil, refuse("it is of another node than its first line says")
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	return p, nil
}

// check checks that the proof says what the events that it shows mean, and that these are where it says.
func (p *Proof) check() error {
	if p.Mailbox.Node != p.Node || len(p.Events) < 2 || len(p.Events) > maxEvents || len(p.Signed) > len(p.Events) {
		return refuse("it has %d events of the mailbox %s", len(p.Events), p.Mailbox)
	}
	commits, err := p.commits()
	if err != nil {
		return err
	}
	shown := make([]Placed, 0, len(p.Events))
	var first, last events.Event
	for i, e := range p.Events {
		if i > 0 && e.Version <= p.Events[i-1].Version {
			return refuse("its events are out of order")
		}
		at, ok := commits[e.Commit]
		if !ok || e.Section < 0 || e.Section >= len(at.of.Hashes) {
			return refuse("event %d is in no commit", i)
		}
		if !e.Shown {
			continue
		}
		delete(at.unused, e.Section)
		r, err := at.event(p.Mailbox, e)
		if err != nil {
			return err
		}
		if !IsOf(r.Event, p.Form) {
			return refuse("event %d is not of form %s", i, p.Form)
		}
		shown = append(shown, Placed{e.Version, r})
		if i == 0 {
			first = r.Event
		}
		last = r.Event
		if i < len(p.Events)-1 {
			last = nil
		}
	}
	for number, at := range commits {
		if len(at.unused) > 0 {
			return refuse("commit %d shows a section of nothing", number)
		}
	}
	return p.agree(shown, first, last)
}

// agree checks what the proof says against the events that it shows. First and last are nil where they are not shown.
func (p *Proof) agree(shown []Placed, first, last events.Event) error {
	if asked, ok := first.(*events.FormRequested); first != nil && (!ok || asked.From != p.From || !p.wasPutTo(asked, shown) || asked.Kind != p.Kind || asked.Date != p.Asked) {
		return refuse("it was asked otherwise")
	}
	if last != nil {
		o, err := outcomeOf(p.Kind, last)
		if err != nil {
			return refuse("%v", err)
		}
		o.Allowed = p.Outcome.Allowed // it follows from the other events too
		if !same(o, p.Outcome) {
			return refuse("it ended otherwise")
		}
	}
	for i := range p.Signed {
		if err := p.checkSigned(&p.Signed[i]); err != nil {
			return err
		}
	}
	q, err := p.Reading()
	if err != nil {
		return err
	}
	if q != nil && (q.Permission != nil) != (p.Kind == events.Approval) || q != nil && q.Permission != nil && q.Permission.Hash() != p.Digest {
		return refuse("its question has another digest")
	}
	if len(shown) < len(p.Events) {
		return nil
	}
	told, err := Tell(p.Mailbox, shown)
	if err != nil {
		return refuse("%v", err)
	}
	if p.Question == nil {
		told.Question = nil
	}
	if told.Revision != p.Revision || told.Digest != p.Digest || !same(told.Question, p.Question) || !same(told.Votes, p.Votes) || !same(told.Signed, p.Signed) || !same(told.Outcome, p.Outcome) {
		return refuse("its events say otherwise")
	}
	return nil
}

// wasPutTo reports whether the form was asked of the agent that the proof says, or went on to it, as far as the events are shown.
func (p *Proof) wasPutTo(asked *events.FormRequested, shown []Placed) bool {
	for _, e := range shown {
		if sent, ok := e.Event.(*events.QueuedSent); ok {
			return sent.To == p.To
		}
	}
	return asked.To == p.To || slices.ContainsFunc(p.Events, func(e Event) bool { return e.Type == "QueuedSent" })
}

// same reports whether two values are the same JSON.
func same(a, b any) bool {
	x, err := json.Marshal(a)
	y, other := json.Marshal(b)
	return err == nil && other == nil && bytes.Equal(x, y)
}

// placed is a commit of a proof.
type placed struct {
	of     *events.Excerpt
	commit *events.Commit
	unused map[int]bool              // sections that are shown, and of no event
	read   map[int][]events.Recorded // the events of sections that were read
}

// commits decodes the commits, by their numbers.
func (p *Proof) commits() (map[uint64]*placed, error) {
	all := map[uint64]*placed{}
	var before *events.Commit
	var mark events.Mark
	for i := range p.Log {
		x := &p.Log[i]
		c, hash, err := x.Decode()
		if err != nil {
			return nil, refuse("%v", err)
		}
		switch {
		case c.Node != p.Node:
			return nil, refuse("commit %d is of another node", c.Number)
		case before != nil && c.Number <= before.Number, before != nil && c.Number == before.Number+1 && c.Prev != mark.Hash:
			return nil, refuse("commit %d does not follow commit %d", c.Number, before.Number)
		}
		at := &placed{of: x, commit: c, unused: map[int]bool{}, read: map[int][]events.Recorded{}}
		for _, part := range x.Shown {
			at.unused[part.Index] = true
		}
		all[c.Number], before, mark = at, c, events.Mark{Number: c.Number, Hash: hash}
	}
	if p.Head.Number < mark.Number || p.Head.Number == mark.Number && p.Head.Hash != mark.Hash {
		return nil, refuse("its log ends before commit %d", mark.Number)
	}
	return all, nil
}

// event returns an event that the commit shows.
func (c *placed) event(self capabilities.ID, e Event) (r events.Recorded, err error) {
	n := slices.IndexFunc(c.of.Shown, func(part events.ExcerptedPart) bool { return part.Index == e.Section })
	if n < 0 {
		return r, refuse("commit %d does not show its event", e.Commit)
	}
	s := &c.commit.Sections[n]
	if s.Mailbox != self || e.Version < s.First || e.Version-s.First >= uint64(s.Count) {
		return r, refuse("commit %d has no version %d of the mailbox", e.Commit, e.Version)
	}
	evs, ok := c.read[n]
	if !ok {
		if evs, err = s.Events(); err != nil {
			return r, refuse("commit %d: %v", e.Commit, err)
		}
		c.read[n] = evs
	}
	r = evs[e.Version-s.First]
	if name := events.Name(r.Event); name != e.Type {
		return r, refuse("version %d is a %s, and no %s", e.Version, name, cmp.Or(e.Type, "event"))
	}
	return r, nil
}

// Add adds a commit that has events of the form, as evs has them, with what may be shown of it.
func (p *Proof) Add(frame []byte, evs []Placed, show func(s *events.Section) bool) error {
	wanted := map[int]bool{}
	var places []Event
	x, err := events.Extract(frame, func(nth int, s *events.Section) bool {
		if s.Mailbox != p.Mailbox || s.Count == 0 {
			return false
		}
		for _, e := range evs {
			if e.Version >= s.First && e.Version-s.First < uint64(s.Count) {
				wanted[nth] = show(s)
				places = append(places, Event{Type: events.Name(e.Event), Version: e.Version, Section: nth, Shown: wanted[nth]})
			}
		}
		return wanted[nth]
	})
	if err != nil {
		return err
	}
	c, _, err := events.DecodeHead(frame)
	if err != nil {
		return err
	}
	for i := range places {
		places[i].Commit = c.Number
	}
	if len(places) == 0 {
		return nil
	}
	p.Events, p.Log = append(p.Events, places...), append(p.Log, *x)
	return nil
}

// Reading returns the question that the proof has; nil if it has the digest alone.
func (p *Proof) Reading() (*Question, error) {
	if p.Question == nil {
		return nil, nil
	}
	q := &Question{}
	if err := json.Unmarshal(p.Question, q); err != nil {
		return nil, refuse("%v", err)
	}
	return q, nil
}
