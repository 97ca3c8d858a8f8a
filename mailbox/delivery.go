package mailbox

import (
	"strings"
	"unicode/utf8"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/form"
)

// The commands here and in learn.go come from other mailboxes, perhaps of other nodes. Nothing in them is
// taken on trust but who brought them, which is for the rooms outside to know.

// AcceptDelivery takes in a copy of a form or message from its sender: one of the two is there. Its number is of
// no account. A copy that is here already changes nothing, however often and late it comes. What is in it is
// held to the rules of what is asked and sent here, but that its deadline may have passed on the way.
type AcceptDelivery struct {
	Form   *events.FormRequested
	Posted *events.MessagePosted

	Schema *form.Schema // of the form's fields, if they were compiled before
	Quotas *Amounts     // the sender's; nil for none

	own     bool // from a mailbox next door: Form is a copy for this delivery alone, with fields that were compiled there
	outside bool // from another node
}

// notAhead returns when something was done on another node, as far as this one can have it: what is ahead of the clock
// here, or has no time, is done now.
func notAhead(at, now capabilities.Time) capabilities.Time {
	if at <= 0 || at > now {
		return now
	}
	return at
}

func (c AcceptDelivery) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	switch {
	case (c.Form == nil) == (c.Posted == nil):
		return nil, parley.Refuse(parley.InvalidArgument, "a delivery brings a form or a message, and one of them")
	case c.Form != nil:
		return c.form(s, now)
	}
	return c.posted(s, now)
}

func (c AcceptDelivery) form(s *State, now capabilities.Time) ([]events.Event, error) {
	e := c.Form
	if !c.own {
		e = new(*c.Form)
	}
	if err := s.checkSender(e.From, e.ID, e.Promise, e.Resolver); err != nil {
		return nil, err
	}
	if s.byID.has(e.ID) {
		return nil, nil
	}
	if err := s.checkForm(e, !c.outside); err != nil {
		return nil, err
	}
	via, err := c.letIn(s, e.From, e.Via, capabilities.UseAsk, now)
	if err != nil {
		return nil, err
	}
	if e.Fields, err = c.fields(); err != nil {
		return nil, err
	}
	if c.outside {
		e.Date = notAhead(e.Date, now)
	}
	e.Number = uint64(len(s.messages))
	strip(e)
	e.Via = via
	if err := s.checkRoom(c.Quotas, e, now); err != nil {
		return nil, err
	}
	return []events.Event{e}, nil
}

// fields gives the form's fields as they are to be written down.
func (c AcceptDelivery) fields() ([]events.Field, error) {
	if c.own {
		return c.Form.Fields, nil
	}
	if c.Schema != nil {
		return c.Schema.Fields(), nil
	}
	contract, err := form.Compile(c.Form.Fields)
	if err != nil {
		return nil, err
	}
	return contract.Fields(), nil
}

// letIn checks mail that comes from another node, or by what was given there. It returns the grant whose uses
// the mail counts among, if there is one.
func (c AcceptDelivery) letIn(s *State, from, via capabilities.ID, use capabilities.Use, now capabilities.Time) (capabilities.ID, error) {
	if !c.outside && !s.isOutside(via) {
		return capabilities.ID{}, nil
	}
	if _, err := s.admit(from, via, use, now); err != nil {
		return capabilities.ID{}, err
	}
	if g, minted := s.minted.Get(via); !minted || g.To.Node != from.Node { // the uses of another are not its to count
		return capabilities.ID{}, nil
	}
	return via, nil
}

// checkSender refuses what its sender cannot have sent. An ID is of the node that made it, so nobody can
// take those of another's mail for its own.
func (s *State) checkSender(from capabilities.ID, made ...capabilities.ID) error {
	if from == s.ID {
		return parley.Refuse(parley.NotPermitted, "the delivery claims to come from the agent that it came to")
	}
	if from.IsZero() {
		return parley.Refuse(parley.InvalidArgument, "the delivery comes from nobody")
	}
	for _, id := range made {
		if id.IsZero() || id.Node != from.Node {
			return parley.Refuse(parley.NotPermitted, "the delivery has an ID that its sender's node did not make")
		}
	}
	return nil
}

func (s *State) checkForm(e *events.FormRequested, here bool) error {
	if e.ID == e.Promise || e.ID == e.Resolver || e.Promise == e.Resolver {
		return parley.Refuse(parley.InvalidArgument, "the form shares an ID with something else")
	}
	if err := s.checkWay(e); err != nil {
		return err
	}
	if err := checkKind(e.Kind, e.Fields, here); err != nil {
		return err
	}
	if e.Kind == events.Approval {
		if err := checkInput(e.Title, e.Description); err != nil {
			return err
		}
	}
	return checkFormWords(e.Description, e.Title)
}

// checkWay refuses a form that did not come here: it was put to this agent, or its chain says who handed it
// on, from the one it was put to.
func (s *State) checkWay(e *events.FormRequested) error {
	if len(e.Chain) > MaxHolders {
		return parley.Refuse(parley.TooLarge, "the form was handed on %d times", len(e.Chain))
	}
	direct := e.To == s.ID && len(e.Chain) == 0 && e.Forwarder.IsZero()
	handed := e.To != s.ID && len(e.Chain) > 0 && e.Chain[0] == e.To && e.Chain[len(e.Chain)-1] == e.Forwarder
	if !direct && !handed {
		return parley.Refuse(parley.NotPermitted, "the form was neither put to this agent nor handed on to it")
	}
	return nil
}

func (c AcceptDelivery) posted(s *State, now capabilities.Time) ([]events.Event, error) {
	e := *c.Posted
	if err := s.checkSender(e.From, e.Message); err != nil {
		return nil, err
	}
	if s.byID.has(e.Message) {
		return nil, nil
	}
	if e.To != s.ID {
		return nil, parley.Refuse(parley.NotPermitted, "the message was not sent to this agent")
	}
	if err := checkSpans(e.Text); err != nil {
		return nil, err
	}
	for _, sp := range e.Text {
		if c.outside && !isGift(sp.Value, e.From.Node) {
			return nil, parley.Refuse(parley.NotPermitted, "the message brings what its sender's node has not given")
		}
	}
	via, err := c.letIn(s, e.From, e.Via, capabilities.UseSend, now)
	if err != nil {
		return nil, err
	}
	if c.outside {
		e.Date = notAhead(e.Date, now)
	}
	e.Number, e.Via, e.Facet, e.Key = uint64(len(s.messages)), via, capabilities.Facet{}, ""
	if err := s.checkRoom(c.Quotas, &e, now); err != nil {
		return nil, err
	}
	return []events.Event{&e}, nil
}

// checkSpans holds a message that came in to what Post makes.
func checkSpans(spans []events.Span) error {
	var (
		all   tally
		words int
		edges = map[string]capabilities.Value{}
	)
	for _, sp := range spans {
		if err := all.add(sp); err != nil {
			return err
		}
		words += len(sp.Words) + len(sp.Edge)
		if why := wrongSpan(sp); why != "" {
			return parley.Refuse(parley.InvalidArgument, "the message %s", why)
		}
		if sp.Edge == "" {
			continue
		}
		if v, again := edges[sp.Edge]; again && !v.Equal(sp.Value) {
			return parley.Refuse(parley.InvalidArgument, "the message has two values under %s", parley.Quoted("@"+sp.Edge, 80))
		}
		edges[sp.Edge] = sp.Value
	}
	if words > maxText || len(edges) > maxEdges {
		return parley.Refuse(parley.TooLarge, "a message of %d bytes with %d values is over the limits of %d and %d", words, len(edges), maxText, maxEdges)
	}
	return nil
}

// wrongSpan says why a span is none, or "": it is words, or a value under an edge. An edge that starts with
// "@" would pass for one of the message's own.
func wrongSpan(sp events.Span) string {
	switch {
	case !utf8.ValidString(sp.Words) || !utf8.ValidString(sp.Edge):
		return "is not valid UTF-8"
	case sp.Edge == "":
		if sp.Value.IsNull() {
			return ""
		}
		return "has a value under no edge"
	case sp.Words != "":
		return "has words and a value in one"
	case strings.HasPrefix(sp.Edge, "@") || strings.Contains(sp.Edge, "/"):
		return "has an edge that cannot be one"
	}
	if !carriesGrants(sp.Value) {
		return "has a reference that nobody gave"
	}
	return ""
}

// carriesGrants reports whether each reference in a value is by a grant, as all that is given is.
func carriesGrants(v capabilities.Value) bool {
	return eachRef(v, func(r capabilities.Ref) bool { return !r.Grant.IsZero() })
}

// isGift reports whether all in a value is a node's to give to another: each reference is by a grant that it has
// made, and not by one that the receiver's own node knows, or is said to know; and nothing is sealed, which only
// the node that did it could open.
func isGift(v capabilities.Value, of capabilities.NodeID) bool {
	return !v.Has(capabilities.Value.IsSealed) && eachRef(v, func(r capabilities.Ref) bool { return r.Root.IsZero() && r.Grant.Node == of })
}
