package mailbox

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/form"
	"parley/mailbox/quota"
	"parley/mailbox/text"
)

// AcceptDelivery records a copy of a form or message from a mailbox of this node. Exactly one of Form and Posted is
// set. The command owns Form, which becomes the event; its fields were compiled when it was asked. The number is
// ignored. A copy that is here already has no effect. The deadline of a form may have passed on the way.
type AcceptDelivery struct {
	Form   *events.FormRequested
	Posted *events.MessagePosted

	Quotas *quota.Amounts // the sender's; nil for none

	with []events.Event // of a form: what is known of its review, and its answer if that has ended it
}

// RemoteDelivery is an AcceptDelivery from another node. The fields of a form are compiled again, and the sender needs
// a grant of this agent.
type RemoteDelivery struct {
	AcceptDelivery

	Schema *form.Schema // of the form's fields, if they were compiled before
}

// clampDate returns a time from another node, or now if that time is missing or in the future.
func clampDate(at, now capabilities.Time) capabilities.Time {
	if at <= 0 || at > now {
		return now
	}
	return at
}

func (c AcceptDelivery) decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	if err := c.checkOne(); err != nil {
		return nil, err
	}
	if c.Form != nil {
		return c.acceptForm(s, now, ids)
	}
	return c.acceptMessage(s, now, ids)
}

func (c RemoteDelivery) decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	if err := c.checkOne(); err != nil {
		return nil, err
	}
	if c.Form != nil {
		return c.acceptForm(s, now, ids)
	}
	return c.acceptMessage(s, now, ids)
}

// checkOne refuses with INVALID_ARGUMENT a delivery that has not exactly one of Form and Posted.
func (c AcceptDelivery) checkOne() error {
	if (c.Form == nil) == (c.Posted == nil) {
		return parley.Refuse(parley.InvalidArgument, "a delivery brings a form or a message, and one of them")
	}
	return nil
}

func (c AcceptDelivery) acceptForm(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	e := c.Form
	if known, err := checkCopy(s, e, true); known || err != nil {
		return nil, err
	}
	via, err := admitLocal(s, e.From, e.Via, capabilities.UseAsk, now)
	if err != nil {
		return nil, err
	}
	return c.enterForm(s, e, via, now, ids)
}

func (c RemoteDelivery) acceptForm(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	e := new(*c.Form)
	if known, err := checkCopy(s, e, false); known || err != nil {
		return nil, err
	}
	via, err := admitRemote(s, e.From, e.Via, capabilities.UseAsk, now)
	if err != nil {
		return nil, err
	}
	schema := c.Schema
	if schema == nil {
		if schema, err = form.Compile(e.Fields); err != nil {
			return nil, err
		}
	}
	e.Fields, e.Date = schema.Fields(), clampDate(e.Date, now)
	if e.Steps != nil {
		steps := slices.Clone(*e.Steps)
		for i := range steps {
			steps[i].Date = clampDate(steps[i].Date, now)
		}
		e.Steps = &steps
	}
	return c.enterForm(s, e, via, now, ids)
}

// checkCopy refuses a form that its sender cannot have asked, and reports whether the form is here already.
func checkCopy(s *State, e *events.FormRequested, here bool) (known bool, err error) {
	if err := checkSender(s, e.From, e.ID, e.Promise, e.Resolver); err != nil {
		return false, err
	}
	if known, err := s.Mail.Index.Has(e.ID); known || err != nil {
		return known, err
	}
	if err := s.Profile.checkActive(); err != nil {
		return false, err
	}
	if s.Topic != nil {
		return false, parley.Refuse(parley.NotPermitted, "a topic answers nothing: it takes messages alone")
	}
	return false, checkForm(s, e, here)
}

// enterForm returns the events of a copy, if its sender has room for it here. It forwards the form to stand-ins.
func (c AcceptDelivery) enterForm(s *State, e *events.FormRequested, via capabilities.ID, now capabilities.Time, ids IDs) ([]events.Event, error) {
	strip(e)
	e.Number, e.Via = s.Mail.Index.Len(), via
	if err := checkRoom(s, c.Quotas, e, now); err != nil {
		return nil, err
	}
	passed, err := forwarding{s, now, ids}.passOn(e, s.StandIns.at(now-s.behind))
	return append(append([]events.Event{e}, c.with...), passed...), err
}

// admitLocal checks mail from this node. Mail that was sent by a reference from another node is checked as remote mail.
func admitLocal(s *State, from, via capabilities.ID, use capabilities.Use, now capabilities.Time) (capabilities.ID, error) {
	if !s.isRemote(via) {
		return capabilities.ID{}, nil
	}
	return admitRemote(s, from, via, use, now)
}

// admitRemote checks mail from another node, or by a reference from there. It returns the grant whose uses the mail
// counts as; zero if there is none.
func admitRemote(s *State, from, via capabilities.ID, use capabilities.Use, now capabilities.Time) (capabilities.ID, error) {
	if _, err := s.Grants.admit(from, via, use, reached(s, now)); err != nil {
		return capabilities.ID{}, err
	}
	if g, minted := s.Grants.minted.Get(via); !minted || g.To.Node != from.Node { // uses by another node are counted there
		return capabilities.ID{}, nil
	}
	return via, nil
}

// checkSender refuses mail that its sender cannot have sent. An ID belongs to the node that made it, so a sender cannot
// use the IDs of another node's mail.
func checkSender(s *State, from capabilities.ID, made ...capabilities.ID) error {
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

// checkForm refuses a form that is malformed or was not put to this agent.
func checkForm(s *State, e *events.FormRequested, here bool) error {
	if e.ID == e.Promise || e.ID == e.Resolver || e.Promise == e.Resolver {
		return parley.Refuse(parley.InvalidArgument, "the form shares an ID with something else")
	}
	if err := checkRoute(s, e); err != nil {
		return err
	}
	if err := checkVotes(e.Kind, e.Route, e.Fields, false); err != nil {
		return err
	}
	if err := checkKind(e.Kind, e.Fields, here); err != nil {
		return err
	}
	if e.Kind == events.Approval {
		if err := checkCall(e, here); err != nil {
			return err
		}
	} else if e.Call != nil {
		return parley.Refuse(parley.InvalidForm, "only an approval has a call")
	}
	if err := checkOrigin(e.Origin); err != nil {
		return err
	}
	if err := checkText("what the asker calls itself", e.Asker, maxTitle); err != nil {
		return err
	}
	return checkFormWords(e.Kind, e.Description, e.Title)
}

// checkRoute refuses a form that was neither put to this agent nor forwarded to it.
func checkRoute(s *State, e *events.FormRequested) error {
	if len(e.Chain) > MaxHolders {
		return parley.Refuse(parley.TooLarge, "the form was handed on %d times", len(e.Chain))
	}
	direct := e.To == s.ID && len(e.Chain) == 0 && e.Forwarder.IsZero()
	handed := e.To != s.ID && len(e.Chain) > 0 && e.Chain[0] == e.To && e.Chain[len(e.Chain)-1] == e.Forwarder
	if !direct && !handed {
		return parley.Refuse(parley.NotPermitted, "the form was neither put to this agent nor handed on to it")
	}
	return checkSteps(e)
}

// checkSteps refuses a form whose steps are not those of its chain, after at most one escalation.
func checkSteps(e *events.FormRequested) error {
	steps := e.Steps.List()
	wrong := parley.Refuse(parley.InvalidArgument, "the form came by steps that cannot be")
	if len(steps) > 0 && steps[0].Cause == events.Escalated {
		if s := steps[0]; s.By.IsZero() || s.By == e.To || s.Until != 0 || s.After <= 0 || s.After > maxDelay {
			return wrong
		}
		steps = steps[1:]
	} else if len(steps) == 0 {
		return nil
	}
	if len(steps) != len(e.Chain) {
		return wrong
	}
	for i, s := range steps {
		if s.By != e.Chain[i] || s.After != 0 || checkCause(events.ForwardCause{Cause: s.Cause, Until: s.Until}) != nil {
			return wrong
		}
	}
	return nil
}

func (c AcceptDelivery) acceptMessage(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	e := *c.Posted
	if known, err := checkMessage(s, &e); known || err != nil {
		return repeated(s, &e, err, func() (capabilities.ID, error) { return admitLocal(s, e.From, e.Via, capabilities.UseSend, now) })
	}
	via, err := admitLocal(s, e.From, e.Via, capabilities.UseSend, now)
	if err != nil {
		return nil, err
	}
	return c.enterMessage(s, &e, via, now, ids)
}

func (c RemoteDelivery) acceptMessage(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	e := *c.Posted
	if known, err := checkMessage(s, &e); known || err != nil {
		return repeated(s, &e, err, func() (capabilities.ID, error) { return admitRemote(s, e.From, e.Via, capabilities.UseSend, now) })
	}
	for _, sp := range e.Text {
		if !isGivenBy(sp.Value, e.From.Node) {
			return nil, parley.Refuse(parley.NotPermitted, "the message brings what its sender's node has not given")
		}
	}
	via, err := admitRemote(s, e.From, e.Via, capabilities.UseSend, now)
	if err != nil {
		return nil, err
	}
	e.Date = clampDate(e.Date, now)
	if isRemote(e.Author, e.From.Node) { // a node speaks for its own agents alone
		e.Author, e.AuthorSaid = e.From, ""
	}
	return c.enterMessage(s, &e, via, now, ids)
}

// checkMessage refuses a message that its sender cannot have sent to this agent. It reports whether the message is here
// already.
func checkMessage(s *State, e *events.MessagePosted) (known bool, err error) {
	if err := checkSender(s, e.From, e.Message); err != nil {
		return false, err
	}
	if known, err := s.Mail.Index.Has(e.Message); known || err != nil {
		return known, err
	}
	if err := s.Profile.checkActive(); err != nil {
		return false, err
	}
	if e.To != s.ID {
		return false, parley.Refuse(parley.NotPermitted, "the message was not sent to this agent")
	}
	return false, cmp.Or(checkText("what the sender calls itself", e.Sender, maxTitle), checkHeader(e.Header), checkSpans(e.Text), checkRecipients(e), checkPassed(e))
}

// enterMessage returns the event of a copy, if its sender has room for it here. A group passes it on.
func (c AcceptDelivery) enterMessage(s *State, e *events.MessagePosted, via capabilities.ID, now capabilities.Time, ids IDs) ([]events.Event, error) {
	e.Number, e.Via, e.Facet, e.Key = s.Mail.Index.Len(), via, capabilities.Facet{}, ""
	if err := checkRoom(s, c.Quotas, e, now); err != nil {
		return nil, err
	}
	replied, err := memberReplied(s, e, now)
	if err != nil {
		return nil, err
	}
	passed, err := passMessage(s, e, now, ids)
	passed = append(passed, countPassed(s, e, passed)...)
	return append(append(append([]events.Event{e}, replied...), passed...), surplusPost(s, payerOf(e))...), err
}

// checkSpans checks the text of a received message by the rules of PostMessage.
func checkSpans(spans []events.Span) error {
	var (
		all   messageSize
		words int
		edges = map[string]capabilities.Value{}
	)
	for _, sp := range spans {
		if err := all.add(sp); err != nil {
			return err
		}
		words += len(sp.Words) + len(sp.Edge)
		if why := checkSpan(sp); why != "" {
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
	if words > maxText || len(edges) > text.MaxEdges {
		return parley.Refuse(parley.TooLarge, "a message of %d bytes with %d values is over the limits of %d and %d", words, len(edges), maxText, text.MaxEdges)
	}
	return nil
}

// checkSpan returns why a span is invalid, or "". A span is words, or a value under an edge. Edges that begin with "@"
// are standard edges of every message.
func checkSpan(sp events.Span) string {
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

// carriesGrants reports whether each reference in a value has a grant, as all references in mail do.
func carriesGrants(v capabilities.Value) bool {
	return visitRefs(v, func(r capabilities.Ref) bool { return !r.Grant.IsZero() })
}

// isGivenBy reports whether a node may give a value to another. Each reference has to be by a grant that the node made,
// without a root. Nothing may be sealed, because only the sealing node can open it.
func isGivenBy(v capabilities.Value, node capabilities.NodeID) bool {
	return !v.Has(capabilities.Value.IsSealed) && visitRefs(v, func(r capabilities.Ref) bool { return r.Root.IsZero() && r.Grant.Node == node })
}

// Pack returns a command to a mailbox of another node as the events that the receiver would record.
func Pack(c Command) []events.Event {
	switch c := c.(type) {
	case AcceptDelivery:
		if c.Form != nil {
			return []events.Event{c.Form}
		}
		return []events.Event{c.Posted}
	case RecordOutcome:
		return c.events()
	case RecordAmendment:
		return []events.Event{c.Amendment}
	case RecordReminder:
		return []events.Event{c.Reminder}
	case RecordClaim:
		return []events.Event{&c.Claim}
	case ClaimForm:
		return []events.Event{&events.ClaimQueued{Form: c.Form, Until: c.Until, TakeOver: c.TakeOver}}
	case RecordReceipt:
		return []events.Event{&c.Report}
	case RecordUnreached:
		return c.events()
	case RecordMembers:
		return c.events()
	case RecordVotes:
		return c.events()
	case WithdrawVote:
		return []events.Event{&events.VoteWithdrawn{Form: c.Form, By: c.By, Answer: c.Answer}}
	case RecordRevocation:
		return []events.Event{&events.CapabilityRevoked{Grant: c.Grant, By: c.By, Date: c.Date}}
	case MintCapability:
		g := c.Grant
		g.Parent = c.Via
		return []events.Event{&events.CapabilityMinted{Grant: g}}
	case SettleForm:
		e := &events.AnswerQueued{Form: c.Form, Reason: c.Reason, Note: c.Note, Grants: c.Grants, Answer: c.Answer, Revision: c.Revision}
		if c.Reason == "" {
			e.Values = capabilities.Record(c.Values)
		}
		if c.Signed != nil {
			return []events.Event{e, c.Signed}
		}
		return []events.Event{e}
	case ForwardForm:
		return []events.Event{&events.FormForwarded{Form: c.Form, By: c.By, To: c.To, Via: c.Via, Because: c.Because}}
	}
	return nil
}

// events returns the events of the outcome.
func (c RecordOutcome) events() []events.Event {
	switch {
	case c.Answered != nil:
		return []events.Event{c.Answered}
	case c.Cancelled != nil:
		return []events.Event{c.Cancelled}
	}
	evs := make([]events.Event, len(c.Forwarded))
	for i := range c.Forwarded {
		evs[i] = &c.Forwarded[i]
	}
	return evs
}

// Unpack returns the command of a delivery from another node. From is the sender, which its node's signature has
// proved. Unpack refuses with NOT_PERMITTED a command that the sender may not give, and with INVALID_ARGUMENT a
// malformed delivery. Deciding the command checks it further.
func Unpack(kind events.OutboxKind, from capabilities.ID, evs []events.Event) (Command, error) {
	if len(evs) == 0 || len(evs) > 1 && kind != events.OutboxForwarded && kind != events.OutboxVotes && kind != events.OutboxUnreached && kind != events.OutboxMembers && !isSignedAnswer(kind, evs) {
		return nil, parley.Refuse(parley.InvalidArgument, "a delivery of %d events", len(evs))
	}
	c, by, ok := unpack(kind, from, evs)
	if !ok {
		return nil, parley.Refuse(parley.InvalidArgument, "a delivery of kind %d with %s in it", kind, events.Name(evs[0]))
	}
	if by != from {
		return nil, parley.Refuse(parley.NotPermitted, "the delivery is not of the one that it came from")
	}
	return c, nil
}

// unpack returns the command, and the agent that may give it.
func unpack(kind events.OutboxKind, from capabilities.ID, evs []events.Event) (c Command, by capabilities.ID, ok bool) {
	switch e := evs[0].(type) {
	case *events.FormRequested:
		return RemoteDelivery{AcceptDelivery: AcceptDelivery{Form: e}}, e.From, kind == events.OutboxCopy
	case *events.MessagePosted:
		return RemoteDelivery{AcceptDelivery: AcceptDelivery{Posted: e}}, e.From, kind == events.OutboxCopy
	case *events.FormAnswered:
		return RemoteOutcome{RecordOutcome: RecordOutcome{Form: e.Form, Answered: e}, Home: from}, from, kind == events.OutboxOutcome
	case *events.FormCancelled:
		return RemoteOutcome{RecordOutcome: RecordOutcome{Form: e.Form, Cancelled: e}, Home: from}, from, kind == events.OutboxOutcome
	case *events.FormAmended:
		return RemoteAmendment{RecordAmendment: RecordAmendment{Amendment: e}, Home: from}, from, kind == events.OutboxAmendment
	case *events.FormReminded:
		return RemoteReminder{RecordReminder: RecordReminder{Reminder: e}, Home: from}, from, kind == events.OutboxReminder
	case *events.FormClaimed:
		return RemoteClaim{RecordClaim: RecordClaim{*e}, Home: from}, from, kind == events.OutboxClaim
	case *events.ClaimQueued:
		return RemoteClaimForm{ClaimForm{Form: e.Form, By: from, Until: e.Until, TakeOver: e.TakeOver}}, from, kind == events.OutboxClaiming
	case *events.ReceiptReported:
		return RemoteReceipt{RecordReceipt{*e}}, e.By, kind == events.OutboxReceipt
	case *events.MessageUnreached:
		c, ok := unpackUnreached(evs, from)
		return c, from, ok && kind == events.OutboxUnreached
	case *events.MemberReported, *events.MembersCounted:
		c, ok := unpackMembers(evs, from)
		return c, from, ok && kind == events.OutboxMembers
	case *events.VoteCast, *events.VoteWithdrawn:
		return unpackVotes(evs, from, kind)
	case *events.FormForwarded:
		if kind == events.OutboxForward {
			return RemoteForward{ForwardForm{Form: e.Form, By: e.By, To: e.To, Via: e.Via, Because: e.Because}}, e.By, true
		}
		l := RemoteOutcome{RecordOutcome: RecordOutcome{Form: e.Form}, Home: from}
		for _, h := range evs {
			f, same := h.(*events.FormForwarded)
			if !same {
				return nil, from, false
			}
			l.Forwarded = append(l.Forwarded, *f)
		}
		return l, from, kind == events.OutboxForwarded
	case *events.CapabilityRevoked:
		c := RemoteRevocation{RecordRevocation{Grant: e.Grant, By: e.By, Date: e.Date}}
		if e.Grant.Node != from.Node { // another node made the grant
			return nil, capabilities.ID{}, kind == events.OutboxRevocation
		}
		return c, e.By, kind == events.OutboxRevocation
	case *events.CapabilityMinted:
		return MintCapability{Grant: e.Grant, Via: e.Grant.Parent}, e.Grant.By, kind == events.OutboxMint
	case *events.AnswerQueued:
		return unpackAnswer(e, evs[1:], from, kind)
	}
	return nil, from, false
}

// isSignedAnswer reports whether a delivery is of an answer and of what a passkey has signed of it.
func isSignedAnswer(kind events.OutboxKind, evs []events.Event) bool {
	if kind != events.OutboxAnswer || len(evs) != 2 {
		return false
	}
	e, isAnswer := evs[0].(*events.AnswerQueued)
	_, isSigned := evs[1].(*events.DecisionSigned)
	return isAnswer && isSigned && e.Reason == ""
}

func unpackAnswer(e *events.AnswerQueued, with []events.Event, from capabilities.ID, kind events.OutboxKind) (Command, capabilities.ID, bool) {
	c := RemoteAnswer{SettleForm: SettleForm{Form: e.Form, By: from, Reason: e.Reason, Note: e.Note, Grants: e.Grants, Answer: e.Answer, Revision: e.Revision}}
	if e.Reason == "" {
		values, isRecord := e.Values.AsRecord()
		if !isRecord {
			return nil, from, false
		}
		c.Values = values
	}
	if len(with) > 0 {
		c.Signed, _ = with[0].(*events.DecisionSigned)
	}
	return c, from, kind == events.OutboxAnswer
}

// Introduces returns the nodes, beside the two ends, that the receiver of events needs to know: those of the references
// in them, and of the agents that they admit.
func Introduces(evs []events.Event) []capabilities.NodeID {
	var all []capabilities.NodeID
	refs := func(v capabilities.Value) {
		visitRefs(v, func(r capabilities.Ref) bool {
			all = append(all, r.Target.Node)
			return true
		})
	}
	for _, e := range evs {
		switch e := e.(type) {
		case *events.MessagePosted:
			for _, sp := range e.Text {
				refs(sp.Value)
			}
		case *events.AnswerQueued:
			refs(e.Values)
		case *events.CapabilityMinted:
			all = append(all, e.Grant.To.Node)
		case *events.FormForwarded:
			all = append(all, e.To.Node)
		}
	}
	return all
}
