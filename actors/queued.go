package actors

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"parley"
	"parley/actors/resource"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// queuedAgain is the time until a queued use is tried again that could not go on: its resource's node could not be reached.
const queuedAgain = 2 * time.Second

// sendQueued has go on what waited for the answers of requests that have ended. It runs before and behind every message: so what was
// queued goes before all that comes later, and what a crash left behind goes on when the mailbox is read again.
func sendQueued(b *mailboxActor) {
	for number, due := b.state.Mail.NextQueued(); due; number, due = b.state.Mail.NextQueued() {
		evs, err := b.decide(mailbox.SendQueued{Number: number})
		if err != nil || len(evs) == 0 {
			b.node.log.Warn("queued message not sent", "mailbox", b.reg.id.String(), "message", number, "error", err)
			return
		}
	}
	for _, u := range b.state.Mail.DueUses() {
		b.node.resources.goOn(&Agent{node: b.node, id: b.reg.id}, u, b.release)
	}
}

// promised returns the form for whose answer a message waits; nil if it does not wait.
func (v *viewer) promised(m *mailbox.Message) *view.Promised {
	if !m.IsQueued() {
		return nil
	}
	p := &view.Promised{Form: m.Behind.Request, Name: m.Behind.Path}
	number, _, err := v.state.Mail.Index.NumberOf(p.Form)
	if p.Number = number; err != nil {
		v.absent = err
	}
	return p
}

// promisedOf returns the form for whose answer a message waits that was just sent, or found; nil if it does not wait.
func promisedOf(b *mailboxActor, message capabilities.ID) (*view.Promised, error) {
	m, err := recalled(b.old, func() (*mailbox.Message, error) { return b.state.Mail.FindID(message) })
	if err != nil {
		return nil, err
	}
	return b.viewer().promised(m), nil
}

// maxFollowing bounds the words of what waits for an answer, in characters.
const maxFollowing = 120

// toFollow returns what waits for the answer of a form.
func (v *viewer) toFollow(m *mailbox.Message) (all []view.Following) {
	if m.Form == nil || m.Form.From != v.state.ID {
		return nil
	}
	for _, w := range v.state.Mail.Behind(m.ID()) {
		f := view.Following{ID: w.ID(), Number: &w.Number, Type: w.Type(), Name: w.Behind.Path, At: w.Behind.Date}
		if w.Form != nil {
			f.Words = parley.Shown(w.Form.Description, maxFollowing)
		} else {
			f.Words = parley.Shown(mailbox.ShowText(w.Posted.Text), maxFollowing)
		}
		all = append(all, f)
	}
	for _, u := range v.state.Mail.QueuedUses() {
		if u.Request == m.ID() && u.Ended == nil {
			all = append(all, view.Following{ID: u.Use, Type: "use", Name: u.Path, Words: useWords(u), At: u.Date})
		}
	}
	return all
}

// useWords returns what a queued use is to do: its verb and its input.
func useWords(u mailbox.QueuedUse) string {
	input, err := json.Marshal(u.Input)
	if err != nil || string(input) == "{}" {
		return u.Verb
	}
	return parley.Shown(u.Verb+" "+string(input), maxFollowing)
}

// cancelQueued ends a message or a use that waits for the answer of a form. It returns err if there is none.
func cancelQueued(b *mailboxActor, c mailbox.CancelForm, err error) (view.Outcome, error) {
	evs, refused := b.decide(mailbox.CancelQueued{Message: c.Form, Reason: c.Reason})
	if refused != nil && parley.CodeOf(refused) != parley.NotAForm {
		return view.Outcome{}, refused
	}
	if len(evs) == 0 {
		return view.Outcome{}, err
	}
	o := view.Outcome{Status: view.StatusCancelled, By: b.reg.id, ByName: "SELF", At: b.node.now(), Note: c.Reason}
	switch e := evs[0].(type) {
	case *events.QueuedEnded:
		o.Form = e.Message
	case *events.QueuedUseEnded:
		o.Form = e.Use
	}
	return o, nil
}

// heldOrQueued is how an agent holds a resource, or the use of it that the agent has queued.
type heldOrQueued struct {
	ref    capabilities.Ref
	queued *mailbox.QueuedUse // a copy; nil if there is none
}

// find returns how the agent holds what it uses. It refuses with UNKNOWN_NAME the name of an answer that is not there yet, with a hint,
// unless a use of it is queued.
func (rs Resources) find(ctx context.Context, r Used) (heldOrQueued, error) {
	return query(ctx, rs.agent, func(s *mailbox.State, now capabilities.Time) (h heldOrQueued, err error) {
		if !r.Use.IsZero() || r.Key != "" {
			if u := s.Mail.FindQueuedUse(r.Use, r.Key); u != nil && capabilities.Normal(u.Path) == capabilities.Normal(r.Name) {
				found := *u
				h.queued = &found
				return h, nil
			}
		}
		h.ref, err = s.Namespace().ResourceAt(r.Name, now)
		return h, err
	})
}

// queueUse queues a use of what a request will be answered with.
type queueUse struct{ command mailbox.QueueUse }

func (m queueUse) handle(b *mailboxActor) (mailbox.QueuedUse, error) {
	if _, err := b.decide(m.command); err != nil {
		return mailbox.QueuedUse{}, err
	}
	return *b.state.Mail.FindQueuedUse(m.command.Use, m.command.Key), nil
}

// describePromised returns what may become of a use of what a request will be answered with: the verbs of all kinds, and the uses that
// wait. Of a name whose answer did not come it has the uses that ended with that. It is nil for any other name.
func (rs Resources) describePromised(ctx context.Context, name string) *view.Holding {
	h, err := query(ctx, rs.agent, func(s *mailbox.State, _ capabilities.Time) (*view.Holding, error) {
		h := &view.Holding{Words: "it stands for nothing that can be used: these uses have ended", Verbs: []view.Verb{}, Uses: []view.UseBy{}}
		request, err := mailbox.PromisedAt(s, name)
		isOf := func(u mailbox.QueuedUse) bool {
			return u.Ended != nil && capabilities.Normal(u.Path) == capabilities.Normal(name)
		}
		if err == nil {
			p := view.Promised{Form: request.ID(), Number: request.Number, Name: name}
			h.Words = "it " + p.Words() + ": uses go on, or end, with that"
			isOf = func(u mailbox.QueuedUse) bool { return u.Request == request.ID() }
		}
		for _, u := range slices.Backward(s.Mail.QueuedUses()) {
			if isOf(u) && len(h.Uses) < listedUses {
				one := view.UseBy{By: s.ID, ByName: "SELF", Words: useWords(u), State: view.UseQueued, Begun: u.Date}
				if e := u.Ended; e != nil { // it was cancelled
					one.State, one.Ended, one.Error = string(e.How), e.Date, parley.Refuse(parley.Code(e.Code), "%s", e.Text)
				}
				h.Uses = append(h.Uses, one)
			}
		}
		if len(h.Uses) == 0 {
			return h, err
		}
		return h, nil
	})
	if err != nil {
		return nil
	}
	kinds := rs.agent.node.resources.kinds
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		for _, v := range kinds[kind].Describe(resource.Resource{Made: &events.ResourceMade{Kind: kind}}, capabilities.Facet{}) {
			verb := verbOf(v)
			at := slices.IndexFunc(h.Verbs, func(o view.Verb) bool { return o.Name == verb.Name })
			switch {
			case at < 0:
				h.Verbs = append(h.Verbs, verb)
			case len(verb.Takes) > len(h.Verbs[at].Takes):
				verb.Needs = min(verb.Needs, h.Verbs[at].Needs)
				h.Verbs[at] = verb
			}
		}
	}
	return h
}

// keyOfQueued returns the key by which a queued use is known at its resource's home. One without a key of its agent's own has one too: so
// it is the same use however often it is tried, and nobody has to wait for it.
func keyOfQueued(u mailbox.QueuedUse) string {
	if u.Key != "" {
		return u.Key
	}
	return "queued " + u.Use.ULID.String()
}

// useQueued returns a queued use when it has ended, or as it is after a time.
func (rs Resources) useQueued(ctx context.Context, u mailbox.QueuedUse, wait time.Duration) (view.Use, error) {
	n := rs.agent.node
	if u.Ended == nil {
		ended := make(chan error, 1)
		defer n.remoteAcks.drop(n.remoteAcks.wait(formKey{rs.agent.id, u.Use}, ended))
		now, err := rs.find(ctx, Used{Name: u.Path, Use: u.Use}) // it may have ended just then
		if err != nil {
			return view.Use{}, err
		}
		if now.queued != nil && now.queued.Ended == nil {
			after := time.NewTimer(wait)
			defer after.Stop()
			select {
			case err = <-ended:
			case <-after.C:
				return view.Use{Use: u.Use, State: view.UseQueued, Words: useWords(u)}, nil
			case <-ctx.Done():
				return view.Use{}, errEnded(ctx, n)
			case <-n.life.Done():
				return view.Use{}, errClosing()
			}
			if err == nil {
				now, err = rs.find(ctx, Used{Name: u.Path, Use: u.Use})
			}
			if err != nil {
				return view.Use{}, err
			}
		}
		if now.queued != nil {
			u = *now.queued
		}
	}
	return rs.endedQueued(ctx, u)
}

// endedQueued returns a queued use that has ended: with its result, if its resource's home still has that.
func (rs Resources) endedQueued(ctx context.Context, u mailbox.QueuedUse) (view.Use, error) {
	e := u.Ended
	shown := view.Use{Use: u.Use, State: string(e.How), Words: useWords(u)}
	if e.How != events.UseDone {
		shown.Error = parley.Refuse(parley.Code(e.Code), "%s", e.Text)
		return shown, nil
	}
	ref, err := query(ctx, rs.agent, func(s *mailbox.State, now capabilities.Time) (capabilities.Ref, error) {
		return s.Namespace().ResourceAt(u.Path, now)
	})
	if err != nil {
		return shown, nil // it is done, and may not be read any more
	}
	if got, err := rs.attempt(ctx, ref, u, true, 0); err == nil {
		return got, nil
	}
	return shown, nil
}

// attempt comes to the home of a resource with a queued use. With again it begins none.
func (rs Resources) attempt(ctx context.Context, ref capabilities.Ref, u mailbox.QueuedUse, again bool, wait time.Duration) (view.Use, error) {
	input, _ := u.Input.AsRecord()
	c := use{
		Used: Used{Name: u.Path, Verb: u.Verb, Input: input, Key: keyOfQueued(u), Use: u.Use, Wait: wait},
		by:   rs.agent.id, resource: ref.Target, grant: ref.Grant, facet: ref.Facet, again: again,
	}
	if ref.Target.Node != rs.agent.node.id {
		return rs.useElsewhere(ctx, c)
	}
	return rs.agent.node.resources.use(ctx, c)
}

// goOn has a queued use go on, once the answer of its request is on disk, if this process does not do that already.
func (rs *resources) goOn(a *Agent, u mailbox.QueuedUse, release func(func(error))) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.going[u.Use] {
		return
	}
	rs.going[u.Use] = true
	done := func() {
		rs.mu.Lock()
		defer rs.mu.Unlock()
		delete(rs.going, u.Use)
	}
	release(func(lost error) {
		if lost != nil || !rs.node.run(func() { defer done(); rs.doQueued(a, u) }) {
			done()
		}
	})
}

// doQueued does a queued use, and records how it ended. One that cannot go on for now is tried again.
func (rs *resources) doQueued(a *Agent, u mailbox.QueuedUse) {
	ctx := rs.node.life
	for ctx.Err() == nil {
		ref, err := query(ctx, a, func(s *mailbox.State, now capabilities.Time) (capabilities.Ref, error) {
			return s.Namespace().UseOf(u, now)
		})
		var got view.Use
		if err == nil {
			got, err = ResourcesOf(a).attempt(ctx, ref, u, false, longestUseWait)
		}
		end := mailbox.EndQueuedUse{Use: u.Use, How: events.UseEnd(got.State), Err: got.Error}
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && !got.HasEnded(): // it is asked about, or under way
			continue
		case parley.Passes(err):
			if !sleep(ctx, queuedAgain) {
				return
			}
			continue
		case err != nil:
			end.How, end.Err = events.UseDenied, parley.AsError(err)
		}
		if err := a.do(ctx, end); err != nil {
			rs.node.log.Warn("how a queued use ended is not recorded", "mailbox", a.id.String(), "use", u.Use.String(), "error", err)
			if !sleep(ctx, queuedAgain) {
				return
			}
			continue
		}
		return
	}
}

// sleep waits for a time. It reports false if the context has ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
