package mailbox

import (
	"parley"
	"parley/capabilities"
	"parley/events"
)

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
		return []events.Event{e}
	case ForwardForm:
		return []events.Event{&events.FormForwarded{Form: c.Form, By: c.By, To: c.To, Via: c.Via}}
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
	if len(evs) == 0 || len(evs) > 1 && kind != events.OutboxForwarded {
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
	case *events.FormForwarded:
		if kind == events.OutboxForward {
			return RemoteForward{ForwardForm{Form: e.Form, By: e.By, To: e.To, Via: e.Via}}, e.By, true
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
		return unpackAnswer(e, from, kind)
	}
	return nil, from, false
}

func unpackAnswer(e *events.AnswerQueued, from capabilities.ID, kind events.OutboxKind) (Command, capabilities.ID, bool) {
	c := RemoteAnswer{SettleForm: SettleForm{Form: e.Form, By: from, Reason: e.Reason, Note: e.Note, Grants: e.Grants, Answer: e.Answer, Revision: e.Revision}}
	if e.Reason == "" {
		values, isRecord := e.Values.AsRecord()
		if !isRecord {
			return nil, from, false
		}
		c.Values = values
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
