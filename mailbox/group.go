package mailbox

import (
	"crypto/sha256"
	"errors"
	"slices"

	"github.com/oklog/ulid/v2"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// A group passes a message on to its members, as messages of its own with their author. A member may be a group, which passes it on
// again. Each copy says which message it is of, and which groups have passed that on. So it never goes back to one of them, and ends
// after MaxPassed groups.
//
// Two ways can lead to one agent: the author wrote to two groups that it is in, or to the agent too. The ID of a copy follows from
// the original message and the member, and a mailbox takes a message with an ID once. So groups of one node bring it once.

// MaxPassed bounds the groups that pass a message on, one after another.
const MaxPassed = 8

// passedID returns the ID of the copy of a message that a group on a node passes on to a member.
func passedID(original, member capabilities.ID, node capabilities.NodeID) capabilities.ID {
	digest := sha256.Sum256(member.AppendMsgpack(original.AppendMsgpack(nil)))
	id := capabilities.ID{ULID: ulid.ULID(digest[:len(ulid.ULID{})]), Node: node}
	copy(id.ULID[:6], original.ULID[:6]) // the time
	return id
}

// takenID returns the ID under which a group of this mailbox got what it has passed on by an event.
func takenID(e *events.MessagePosted) capabilities.ID {
	if len(e.Passed) < 2 {
		return e.Original
	}
	return passedID(e.Original, e.From, e.Passed[len(e.Passed)-2].Node)
}

// checkPassed refuses a message that no group can have passed on so.
func checkPassed(e *events.MessagePosted) error {
	if err := checkText("what the author calls itself", e.AuthorSaid, maxTitle); err != nil {
		return err
	}
	if e.AuthorSaid != "" && e.Author.IsZero() {
		return parley.Refuse(parley.InvalidArgument, "the message says what its author calls itself, and has none")
	}
	if len(e.Passed) == 0 && e.Original.IsZero() {
		return nil
	}
	if len(e.Passed) == 0 || len(e.Passed) > MaxPassed || e.Original.IsZero() || e.Author.IsZero() || e.Passed[len(e.Passed)-1] != e.From {
		return parley.Refuse(parley.InvalidArgument, "the message was passed on by groups as none can be")
	}
	return nil
}

// passMessage returns the messages with which a group passes one on: to its members, and of a reply also to where that came from
// which it replies to, and to who wrote that. They are the group's own, so that a reply to one comes to the group, and is passed on
// in turn. What a message hands over is for the group alone. Members whom the group cannot reach are noted, and the sender is told.
func passMessage(s *State, e *events.MessagePosted, now capabilities.Time, ids IDs) (evs []events.Event, err error) {
	members := s.StandIns.members
	if len(members) == 0 || len(e.Passed) >= MaxPassed || slices.Contains(e.Passed, s.ID) {
		return nil, nil
	}
	original, author, said, thread := e.Message, e.From, e.Sender, e.Thread
	if !e.Original.IsZero() {
		if original = e.Original; e.Author != e.From { // else its node cannot speak for who wrote it
			author, said = e.Author, e.AuthorSaid
		}
	}
	if thread.IsZero() {
		thread = e.Message
	}
	to := slices.Clone(members)
	back, replyTo, err := s.wayBack(e)
	if err != nil {
		return nil, err
	}
	if !back.IsZero() && !slices.Contains(to, back) {
		to = append(to, back)
	}
	header := e.Header
	header.AckBy = 0 // the group acknowledges it
	isKnown := func(id capabilities.ID) bool {
		return id == e.From || id == s.ID || id == author || slices.Contains(e.Passed, id) || slices.ContainsFunc(e.Recipients, func(r events.Recipient) bool { return r.Agent == id })
	}
	number := e.Number
	for _, id := range to {
		if isKnown(id) {
			continue
		}
		ref, err := s.holder(capabilities.UseSend, now).reach(id.String())
		if _, absent := errors.AsType[*PagedOut](err); absent {
			return nil, err
		}
		if err != nil { // it was revoked: the group cannot reach it any more
			missed, err := s.unreached(e.Message, id, string(parley.CodeOf(err))+": "+parley.AsError(err).Message, now)
			if err != nil {
				return nil, err
			}
			evs = append(evs, missed)
			continue
		}
		number++
		passed := &events.MessagePosted{
			Number: number, Message: passedID(original, id, s.ID.Node), From: s.ID, To: ref.Target, Via: ref.Grant, Facet: ref.Facet, Header: header,
			Text: []events.Span{{Words: ShowText(e.Text)}}, Thread: thread, Author: author, Date: now, Sender: s.Profile.called(),
			Recipients: e.Recipients, Original: original, Passed: append(slices.Clone(e.Passed), s.ID), AuthorSaid: parley.Shown(said, parley.MaxCalled),
		}
		if passed.ReplyTo, err = repliedAs(s, e, id); err != nil {
			return nil, err
		}
		if id == back {
			passed.ReplyTo = replyTo
		}
		evs = append(evs, passed)
	}
	return evs, nil
}

// repliedAs returns, for a reply that is passed on to a member, the copy which that got of the message that it replies to; zero if the group
// passed it none. Without it a member would read an answer and not to what.
func repliedAs(s *State, e *events.MessagePosted, member capabilities.ID) (none capabilities.ID, err error) {
	if e.ReplyTo.IsZero() {
		return none, nil
	}
	parent, err := s.Mail.Find(capabilities.FormID(e.ReplyTo))
	if _, absent := errors.AsType[*PagedOut](err); absent {
		return none, err
	}
	if err != nil || parent.Posted == nil {
		return none, nil
	}
	original := parent.Posted.Original
	if original.IsZero() {
		original = parent.Posted.Message
	}
	copied := passedID(original, member, s.ID.Node)
	if there, err := s.Mail.Index.Has(copied); err != nil || !there {
		return none, err
	}
	return copied, nil
}

// wayBack returns, for a reply to what a group has passed on, from whom the group had that, and what it was there; zero for anything
// else.
func (s *State) wayBack(e *events.MessagePosted) (back, replyTo capabilities.ID, err error) {
	if e.ReplyTo.IsZero() {
		return back, replyTo, nil
	}
	parent, err := s.Mail.Find(capabilities.FormID(e.ReplyTo))
	if _, absent := errors.AsType[*PagedOut](err); absent {
		return back, replyTo, err
	}
	if err != nil || parent.Posted == nil || parent.Posted.From != s.ID || parent.Posted.Original.IsZero() {
		return back, replyTo, nil
	}
	if n := len(parent.Posted.Passed); n > 1 {
		return parent.Posted.Passed[n-2], takenID(parent.Posted), nil
	}
	return parent.Posted.Author, parent.Posted.Original, nil
}
