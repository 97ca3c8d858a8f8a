package editor

import (
	"strconv"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/gateway/client"
)

// retryPause is the time between attempts to reach a node that is away.
const retryPause = 500 * time.Millisecond

// follow asks what waits for the mailbox, and what comes, until the connection ends.
func (s *server) follow() {
	for s.ctx.Err() == nil {
		err := s.read()
		switch code := parley.CodeOf(err); {
		case err == nil, s.ctx.Err() != nil:
			return
		case code == parley.NotRunning || code == parley.Internal || code == parley.NodeUnreachable:
		default:
			s.mu.Lock()
			session := s.session
			s.mu.Unlock()
			s.say(session, "The mailbox cannot be read: "+parley.AsError(err).Message+"\n")
			return
		}
		select {
		case <-s.ctx.Done():
		case <-time.After(retryPause):
		}
	}
}

// read asks what waits, and then what changes, until an error. It begins anew after each error, since asking again is
// free.
func (s *server) read() error {
	pending, at, err := s.begin()
	if err != nil {
		return err
	}
	s.mu.Lock()
	clear(s.waiting)
	s.mu.Unlock()
	there := map[capabilities.ID]bool{}
	for _, e := range pending {
		there[e.MessageID] = true
		s.note(e)
	}
	s.withdrawOthers(there)
	for m, err := range s.Node.Follow(s.ctx, client.View{}, at) {
		if err != nil {
			return err
		}
		s.note(m.Message)
	}
	return s.ctx.Err()
}

// begin returns the messages that wait, and the cursor of what changes after.
func (s *server) begin() (all []view.Message, at client.Cursor, err error) {
	for r := (api.ListMessagesRequest{MessageFilter: client.View{Pending: true}}); ; {
		page, err := api.ListMessages.Do(s.ctx, s.Node, r)
		if err != nil {
			return nil, "", err
		}
		if at == "" {
			at = client.Cursor(strconv.FormatUint(max(page.Cursor, 1), 10))
		}
		all = append(all, page.Messages...)
		if r.First = page.Next; page.Next == 0 {
			return all, at, nil
		}
	}
}

// note takes a message that is new or has changed: it asks it if it waits, and withdraws it if it does not any more.
func (s *server) note(e view.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
	if e.AnswerNeeded && !e.Dismissed {
		s.waiting[e.Number] = e
		if !s.left[e.MessageID] {
			s.askLocked(e)
		}
		return
	}
	delete(s.waiting, e.Number)
	delete(s.left, e.MessageID)
	if q := s.open[e.MessageID]; q != nil {
		q.end(e.Outcome)
	}
}

// withdrawOthers withdraws the questions that do not wait any more.
func (s *server) withdrawOthers(there map[capabilities.ID]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, q := range s.open {
		if !there[id] {
			q.end(nil)
		}
	}
}

// changes returns a channel that is closed at the next change of the mailbox.
func (s *server) changes() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}
