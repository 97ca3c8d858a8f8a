package actors

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/internal/fair"
	"parley/mailbox"
	"parley/persistence"
)

// A mailbox holds what is open. Its actor reads other messages back from the journal when they are needed, and lends
// them to the state.

const (
	maxOld       = 16      // old messages that are kept between two messages to the actor
	maxOldReplay = 512     // and while the state is made from the log
	maxOldBytes  = 2 << 20 // of old messages that are kept
	readAtOnce   = 16      // old messages that are read together for a list
)

// oldMail reads back what a mailbox's state does not have in memory, and lends it to the state.
type oldMail struct {
	node         *Node
	reg          *registration
	state        *mailbox.State
	awaitDurable func() error // blocks until the state is durable
	block        func(wait func() error) error
	lent         map[uint64]*mailbox.Message
	detached     bool                         // it is no actor's, and takes no turns
	turn         *fair.Place[capabilities.ID] // that the mailbox has; nil for none
}

// lendTo returns the old mail of a mailbox whose state is new.
func lendTo(b *mailboxActor) *oldMail {
	o := &oldMail{node: b.node, reg: b.reg, state: b.state, awaitDurable: b.awaitDurable, block: b.node.registry.dispatcher.block, lent: map[uint64]*mailbox.Message{}}
	o.state.Mail.UseOld(o.lent)
	return o
}

// recalled calls fn until it has all the old messages that it needs. Fn has to change nothing before it fails with
// mailbox.PagedOut.
func recalled[T any](o *oldMail, fn func() (T, error)) (T, error) {
	for {
		v, err := fn()
		absent, ok := errors.AsType[*mailbox.PagedOut](err)
		if !ok {
			return v, err
		}
		if err := o.recall(absent); err != nil {
			return v, unread{err}
		}
	}
}

// unread is the error of old messages that cannot be read now.
type unread struct{ error }

func (e unread) Unwrap() error { return e.error }

// unrepeatable returns the error of a request that has had an effect. Such a request must not be handled again for an
// old message. Requests find what they need before they change anything, so there is none.
func unrepeatable(b *mailboxActor, err error) error {
	if _, absent := errors.AsType[*mailbox.PagedOut](err); absent {
		b.node.log.Error("a request needs an old message too late", "mailbox", b.reg.id.String(), "error", err)
		return parley.Refuse(parley.Internal, "what was asked for is done, and its result cannot be shown")
	}
	return err
}

// recall reads messages back from the journal, and pages from the snapshot, for the state. It waits for those that are not
// durable yet, and for nothing else: reads go on while the journal has failed.
func (o *oldMail) recall(absent *mailbox.PagedOut) error {
	return o.block(func() error {
		err := recallInto(o.node.life, o.node.journal, o.state, absent, o.lent)
		if _, lost := errors.AsType[lostPage](err); lost {
			if err = o.remake(err); err == nil {
				err = recallInto(o.node.life, o.node.journal, o.state, absent, o.lent)
			}
		}
		if parley.CodeOf(err) != parley.InvalidArgument { // the code for a version that is not durable
			return err
		}
		if err := o.pause(o.awaitDurable); err != nil {
			return err
		}
		return recallInto(o.node.life, o.node.journal, o.state, absent, o.lent)
	})
}

// awaitDurable blocks until all that the mailbox has appended is durable.
func (b *mailboxActor) awaitDurable() error {
	if b.node.journal.Durable(b.last) {
		return nil
	}
	stored := make(chan error, 1)
	b.node.journal.Release(b.last, func(err error) { stored <- err })
	return <-stored
}

// recallInto adds old messages of a state to a map, and pages to the state.
func recallInto(ctx context.Context, j *persistence.Journal, s *mailbox.State, absent *mailbox.PagedOut, old map[uint64]*mailbox.Message) error {
	numbers := absent.Numbers
	if err := pageIn(ctx, j, s, append(s.Mail.Index.PagesOf(numbers), absent.Pages...), absent.Tables); err != nil {
		return err
	}
	var versions []uint64
	for _, number := range numbers {
		versions = append(versions, s.Mail.Index.Versions(number)...)
	}
	slices.Sort(versions)
	versions = slices.Compact(versions)
	read := map[uint64]events.Recorded{}
	for some := range slices.Chunk(versions, 4*readAtOnce) {
		entries, err := j.EventsAt(ctx, s.ID, some)
		if err != nil {
			return err
		}
		for _, e := range entries {
			read[e.Version] = e.Recorded
		}
	}
	for _, number := range numbers {
		var evs []events.Recorded
		for _, v := range s.Mail.Index.Versions(number) {
			evs = append(evs, read[v])
		}
		m, err := s.Mail.Rebuild(number, evs)
		if err != nil {
			return err
		}
		old[number] = m
	}
	return nil
}

// applyRecalling folds an event into a state that is made from the log.
func applyRecalling(ctx context.Context, j *persistence.Journal, s *mailbox.State, e events.Recorded, old map[uint64]*mailbox.Message) error {
	for {
		err := s.Apply(e)
		absent, ok := errors.AsType[*mailbox.PagedOut](err)
		if !ok {
			return err
		}
		if err := recallInto(ctx, j, s, absent, old); err != nil {
			return err
		}
	}
}

// trim drops old messages if there are too many. Each mailbox in use keeps some, so they are few: 64 for each of 1,000
// mailboxes took half of the heap, and as much of the collector's time.
func (o *oldMail) trim() {
	if len(o.lent) > maxOld {
		trimOld(o.lent, maxOld)
	}
}

// trimOld drops old messages if there are too many, or too many bytes of them. It keeps half as many, the newest.
func trimOld(old map[uint64]*mailbox.Message, most int) {
	bytes := int64(0)
	for _, m := range old {
		bytes += m.Size()
	}
	if len(old) <= most && bytes <= maxOldBytes {
		return
	}
	numbers := slices.Sorted(maps.Keys(old))
	kept := 0
	bytes = 0
	for _, n := range slices.Backward(numbers) {
		bytes += old[n].Size()
		if kept++; kept > most/2 || bytes > maxOldBytes/2 {
			delete(old, n)
		}
	}
}

// list yields messages as they are shown, in the order of their numbers in the list. It reads old ones back, at most
// most at once. One that is in a segment of the archive that is elsewhere is yielded as the index knows it.
func (o *oldMail) list(all iter.Seq2[mailbox.Listed, error], most int) iter.Seq2[view.Message, error] {
	return func(yield func(view.Message, error) bool) {
		some := make([]mailbox.Listed, 0, most)
		flush := func() bool {
			shown, err := inTurn(o, func() ([]view.Message, error) { return o.listedViews(some) })
			for _, e := range shown {
				if !yield(e, nil) {
					return false
				}
			}
			if err != nil {
				yield(view.Message{}, err)
			}
			some = some[:0]
			trimOld(o.lent, maxOld)
			return err == nil
		}
		for l, err := range all {
			if err != nil {
				yield(view.Message{}, err)
				return
			}
			if some = append(some, l); len(some) == most && !flush() {
				return
			}
		}
		if len(some) > 0 {
			flush()
		}
	}
}

// listedViews returns messages as they are shown, or as the index knows them. An error comes with those before it.
func (o *oldMail) listedViews(some []mailbox.Listed) ([]view.Message, error) {
	numbers := make([]uint64, len(some))
	for i, l := range some {
		numbers[i] = l.Number
	}
	shown, err := o.views(numbers)
	if _, away := errors.AsType[*persistence.Elsewhere](err); !away {
		return shown, err
	}
	shown = shown[:0]
	for _, l := range some {
		one, err := o.views([]uint64{l.Number})
		if away, ok := errors.AsType[*persistence.Elsewhere](err); ok {
			one = make([]view.Message, 1)
			one[0], err = o.archivedMessage(l.Number, away)
		}
		if err != nil {
			return shown, err
		}
		shown = append(shown, one...)
	}
	return shown, nil
}

// views returns messages as they are shown. It fails with persistence.Elsewhere if one cannot be read.
func (o *oldMail) views(numbers []uint64) ([]view.Message, error) {
	messages, err := recalled(o, func() ([]*mailbox.Message, error) { return o.state.Mail.Messages(numbers) })
	if err != nil {
		return nil, err
	}
	show := newViewer(o.state, o.node)
	all := make([]view.Message, 0, len(messages))
	for _, m := range messages {
		e, err := recalled(o, func() (view.Message, error) { return show.envelope(m) })
		if err != nil {
			return all, err
		}
		all = append(all, e)
	}
	return all, nil
}

// archivedMessage returns what the index knows of a message that is elsewhere.
func (o *oldMail) archivedMessage(number uint64, e *persistence.Elsewhere) (view.Message, error) {
	l, err := recalled(o, func() (mailbox.Listed, error) { return o.state.Mail.Index.Listed(number) })
	return view.Message{
		Number: number, Type: view.TypeArchived, Changed: l.Changed, Date: e.Segment.From,
		Sent: l.Sent, Received: l.Received, Dismissed: l.Dismissed, Unread: l.Unread, SnoozedUntil: o.state.Mail.Snoozed.Until(number),
		Archived: &view.Archived{Form: l.Form, Elsewhere: shownElsewhere(e)},
	}, err
}

func shownElsewhere(e *persistence.Elsewhere) view.Elsewhere {
	return view.Elsewhere{
		Segment: e.Segment.First, From: e.Segment.From, To: e.Segment.To, Place: e.Place, Hint: parley.AsError(e).Hint,
	}
}

// listedBy yields those of some messages that a filter may pick.
func listedBy(f view.MessageFilter, all iter.Seq2[mailbox.Listed, error]) iter.Seq2[mailbox.Listed, error] {
	return func(yield func(mailbox.Listed, error) bool) {
		for l, err := range all {
			if (err != nil || mayShow(f, l)) && !yield(l, err) {
				return
			}
		}
	}
}

// counted yields messages of a listing until there are no others that the filter picks. So it reads no index where nothing is
// unread, or done. The counts are made if they are not known.
func (o *oldMail) counted(f view.MessageFilter, all iter.Seq2[mailbox.Listed, error]) iter.Seq2[mailbox.Listed, error] {
	if f.Pending || f.Snoozed || !f.Done && !f.Unread {
		return all
	}
	return func(yield func(mailbox.Listed, error) bool) {
		if err := o.count(); err != nil {
			yield(mailbox.Listed{}, err)
			return
		}
		left := o.state.Mail.Index.Picked(f.Done)
		if left == 0 {
			return
		}
		for l, err := range all {
			if !yield(l, err) || err != nil {
				return
			}
			if left--; left == 0 {
				return
			}
		}
	}
}

// count counts the messages if the counts are not known.
func (o *oldMail) count() error {
	if o.state.Mail.Index.Counted() {
		return nil
	}
	return o.state.Mail.Index.Recount(o.all(0))
}

// walk yields messages page by page of the index. Next returns the messages of a page that come after one, if there is
// one.
func (o *oldMail) walk(next func(after *mailbox.Listed) ([]mailbox.Listed, error)) iter.Seq2[mailbox.Listed, error] {
	return func(yield func(mailbox.Listed, error) bool) {
		for after := (*mailbox.Listed)(nil); ; {
			some, err := inTurn(o, func() ([]mailbox.Listed, error) { return next(after) })
			if err != nil {
				yield(mailbox.Listed{}, err)
				return
			}
			if len(some) == 0 {
				return
			}
			for _, l := range some {
				if !yield(l, nil) {
					return
				}
			}
			after = &some[len(some)-1]
			o.trimPages()
		}
	}
}

// all yields all messages from a number on.
func (o *oldMail) all(first uint64) iter.Seq2[mailbox.Listed, error] {
	return o.walk(func(after *mailbox.Listed) ([]mailbox.Listed, error) {
		if after == nil {
			return o.state.Mail.Index.List(first)
		}
		return o.state.Mail.Index.List(after.Number + 1)
	})
}

// back yields the messages before a number, the newest first.
func (o *oldMail) back(before uint64) iter.Seq2[mailbox.Listed, error] {
	return o.walk(func(after *mailbox.Listed) ([]mailbox.Listed, error) {
		if after == nil {
			return o.state.Mail.Index.ListBack(before)
		}
		return o.state.Mail.Index.ListBack(after.Number)
	})
}

// newest yields the messages before a number that a filter may pick, the newest first.
func (o *oldMail) newest(f view.MessageFilter, before uint64) iter.Seq2[mailbox.Listed, error] {
	var known []mailbox.Listed
	switch {
	case f.Pending:
		known = slices.Collect(o.state.Mail.ListOpen(0))
	case f.Snoozed:
		known = slices.AppendSeq(known, numbered(o.state.Mail.Snoozed.From(0)))
	case f.Overdue:
		known = slices.AppendSeq(known, numbered(o.state.Mail.Overdue()))
	case f.Open:
		known = slices.Collect(o.state.Mail.ListForms(0))
	default:
		return o.counted(f, listedBy(f, o.back(before)))
	}
	known = slices.DeleteFunc(known, func(l mailbox.Listed) bool { return l.Number >= before })
	slices.Reverse(known)
	return listedBy(f, these(slices.Values(known)))
}

// numbered yields messages by their numbers, which are snoozed or overdue, without what else the index knows.
func numbered(numbers []uint64) iter.Seq[mailbox.Listed] {
	return func(yield func(mailbox.Listed) bool) {
		for _, n := range numbers {
			if !yield(mailbox.Listed{Number: n, Snoozed: true}) {
				return
			}
		}
	}
}

// these yields messages that are known.
func these(all iter.Seq[mailbox.Listed]) iter.Seq2[mailbox.Listed, error] {
	return func(yield func(mailbox.Listed, error) bool) {
		for l := range all {
			if !yield(l, nil) {
				return
			}
		}
	}
}

// mayShow reports whether a filter may pick a message. It picks no others.
func mayShow(f view.MessageFilter, l mailbox.Listed) bool {
	switch {
	case f.Snoozed:
		return l.Snoozed // no more is known of it
	case f.Overdue:
		return !l.Form
	case f.Open && !l.Open, f.Notes && l.Form, f.Forms && !l.Form, f.Settled && (!l.Form || l.Open):
		return false
	case f.Pending:
		return l.Open && l.Received && (f.All || !l.Dismissed && !l.Snoozed)
	case f.Done:
		return l.Done
	case f.Unread:
		return l.Unread
	case f.Sent:
		return l.Sent
	case f.All:
		return true
	}
	return l.Received && !l.Dismissed
}

// listed yields the messages that a filter may pick, from a number on.
func (o *oldMail) listed(f view.MessageFilter, first uint64) iter.Seq2[mailbox.Listed, error] {
	switch {
	case f.Pending:
		return listedBy(f, these(o.state.Mail.ListOpen(first)))
	case f.Snoozed:
		return these(numbered(o.state.Mail.Snoozed.From(first)))
	case f.Overdue:
		return these(numbered(slices.DeleteFunc(o.state.Mail.Overdue(), func(n uint64) bool { return n < first })))
	case f.Open:
		return listedBy(f, these(o.state.Mail.ListForms(first)))
	}
	return o.counted(f, listedBy(f, o.all(first)))
}

// formOf returns a form with an ID.
func (b *mailboxActor) formOf(id capabilities.ID) (*mailbox.Message, error) {
	return recalled(b.old, func() (*mailbox.Message, error) { return b.state.Mail.FindFormID(id) })
}

// Log returns events of the agent's mailbox after a version, oldest first, at most limit. It goes on past events that
// are elsewhere, and names them.
func (a *Agent) Log(ctx context.Context, after uint64, limit int) (view.Log, error) {
	l := view.Log{Entries: []view.Entry{}, Archived: a.node.journal.ArchivedVersion(a.id)}
	for want := limit; want > 0; {
		var logged []persistence.Entry
		err := a.Mail().InTurn(ctx, func() (err error) {
			logged, err = a.node.journal.Events(ctx, a.id, after, want)
			return err
		})
		if away, ok := errors.AsType[*persistence.Elsewhere](err); ok {
			first, last := a.node.journal.VersionsIn(a.id, away.Segment)
			if first > after+1 { // read those before
				want = min(want, int(first-1-after))
				continue
			}
			l.Missing = append(l.Missing, view.MissingEvents{First: after + 1, Last: last, Elsewhere: shownElsewhere(away)})
			after, want = last, limit-len(l.Entries)
			continue
		}
		if err != nil {
			return l, err
		}
		for _, e := range logged {
			l.Entries = append(l.Entries, view.Entry{
				Commit: e.Commit, Version: e.Version, Type: events.Name(e.Event), Schema: events.Version(e.Event),
				At: e.At, Payload: e.Event,
			})
		}
		if len(logged) < want {
			break
		}
		after += uint64(len(logged))
		want = limit - len(l.Entries)
	}
	return l, nil
}

// outcomeOf returns the outcome of a form as the agent sees it.
func (b *mailboxActor) outcomeOf(f *mailbox.Form, reveal bool) (view.Outcome, error) {
	return recalled(b.old, func() (view.Outcome, error) { return b.viewer().outcome(f, reveal) })
}
