package actors

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/internal/fair"
	"parley/mailbox"
	"parley/persistence"
	"parley/persistence/projection"
)

const (
	indexFile   = "search.db"
	indexAtOnce = 500              // events that are added to the index at once
	indexStart  = 10 * time.Second // after the node's start, which has more urgent work
	indexAfter  = time.Second      // how long an event waits for others of its mailbox
	indexShare  = 39               // times as long as it works, the index rests
	wantedShare = 9                // the same, while somebody looks at what it lacks
	wantedFor   = 30 * time.Second // that this counts: who looks does so again before
	searchTime  = 5 * time.Second  // that a search takes to add what the index lacks
	stuckTime   = 2 * time.Second  // that it waits for the index's file where a flush hangs
	maxSearches = 64               // that wait for the file at once
)

// searches keeps the index for searching. It reads what mailboxes have logged, some time later, and rests for most of the
// time: who writes never waits for it. A search adds what is missing of its own mailbox first.
type searches struct {
	node   *Node
	places chan struct{} // of the searches that use the file: a disk that hangs keeps them
	wakes  chan struct{} // ends a rest between two rounds
	wanted atomic.Int64  // until when somebody looks at what the index lacks, in nanoseconds since 1970

	opening sync.Mutex
	index   *projection.Index // nil until it is first used
	closed  bool

	mu     sync.Mutex
	behind []*registration // mailboxes with events that the index lacks
	others []capabilities.ID
}

func newSearches(n *Node) *searches {
	return &searches{node: n, places: make(chan struct{}, maxSearches), wakes: make(chan struct{}, 1)}
}

// note notes that a mailbox has new events. It is cheap.
func (s *searches) note(reg *registration) {
	if reg.unindexed.Load() || reg.unindexed.Swap(true) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behind = append(s.behind, reg)
}

// want has the index follow at once, and with a larger share: somebody looks at what it lacks.
func (s *searches) want() {
	s.wanted.Store(time.Now().Add(wantedFor).UnixNano())
	select {
	case s.wakes <- struct{}{}:
	default:
	}
}

// share returns how many times as long as it works the index rests now.
func (s *searches) share() time.Duration {
	if time.Now().UnixNano() < s.wanted.Load() {
		return wantedShare
	}
	return indexShare
}

// take returns the mailboxes that are behind.
func (s *searches) take() (all []capabilities.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, reg := range s.behind {
		reg.unindexed.Store(false) // what comes from now on is noted again
		all = append(all, reg.id)
	}
	all = append(all, s.others...)
	s.behind, s.others = nil, nil
	return all
}

// putBack has mailboxes tried again later.
func (s *searches) putBack(some ...capabilities.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.others = append(s.others, some...)
}

// opened returns the index, which the first call opens.
func (s *searches) opened(ctx context.Context) (*projection.Index, error) {
	s.opening.Lock()
	defer s.opening.Unlock()
	if s.closed {
		return nil, errClosing()
	}
	if s.index == nil {
		x, err := projection.Open(ctx, filepath.Join(s.node.o.Folder, indexFile))
		if err != nil {
			return nil, err
		}
		s.index = x
	}
	return s.index, nil
}

func (s *searches) close() error {
	s.opening.Lock()
	defer s.opening.Unlock()
	s.closed = true
	if s.index == nil {
		return nil
	}
	return s.index.Close()
}

// run follows the log until the node ends.
func (s *searches) run() {
	ctx := s.node.life
	failing, looked := false, false
	for rest := indexStart; s.restOrWake(ctx, rest); rest = indexAfter {
		if s.node.journal.Err() != nil || s.node.journal.Flushing() > slowDisk { // the log needs what the disk has left
			continue
		}
		err := error(nil)
		if !looked {
			if err = s.look(ctx); err == nil {
				looked = true
			}
		}
		all := s.take()
		for i, id := range all {
			if err == nil {
				err = s.follow(ctx, id)
			}
			if err != nil {
				s.putBack(all[i:]...)
				break
			}
		}
		if err != nil && ctx.Err() == nil && !failing {
			s.node.log.Warn("the index for searching cannot be written now; searches find what it has", "error", err)
		}
		failing = err != nil
	}
}

// rest waits, and reports whether the node goes on.
func (s *searches) rest(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// restOrWake rests, unless somebody wants the index, and reports whether the node goes on.
func (s *searches) restOrWake(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-s.wakes:
	case <-time.After(d):
	}
	return true
}

// look finds the mailboxes that have grown while the index was not kept, such as before this program had one.
func (s *searches) look(ctx context.Context) error {
	x, err := s.opened(ctx)
	if err != nil {
		return err
	}
	marks, err := x.Marks(ctx)
	if err != nil {
		return err
	}
	var behind []capabilities.ID
	for id, m := range s.node.journal.Mailboxes() {
		if marks[projection.Key(id)] != m.Version {
			behind = append(behind, id)
		}
	}
	s.putBack(behind...)
	return nil
}

// follow adds all that the index lacks of a mailbox, and rests in between.
func (s *searches) follow(ctx context.Context, id capabilities.ID) error {
	for {
		began := time.Now()
		left, err := s.add(ctx, id)
		if !s.rest(ctx, time.Since(began)*s.share()) {
			return ctx.Err()
		}
		if err != nil || left == 0 {
			return err
		}
	}
}

// add adds the next events of a mailbox, and returns how many are left.
func (s *searches) add(ctx context.Context, id capabilities.ID) (left uint64, err error) {
	x, err := s.opened(ctx)
	if err != nil {
		return 0, err
	}
	at, err := x.At(ctx, id)
	if err != nil {
		return 0, err
	}
	next, err := s.next(ctx, id, at)
	if away, ok := errors.AsType[*persistence.Elsewhere](err); ok {
		_, last := s.node.journal.VersionsIn(id, away.Segment)
		return 1, x.Skip(ctx, id, projection.Mark{Version: last})
	}
	if errors.Is(err, errOtherLog) {
		return 1, x.Forget(ctx, id)
	}
	if err != nil || len(next) == 0 {
		return 0, err
	}
	if err := x.Add(ctx, id, at.Version+1, next); errors.Is(err, projection.ErrOrder) { // another added them, or the file was made again
		return 1, nil
	} else if err != nil {
		return 0, err
	}
	return s.lacks(id, at.Version+uint64(len(next))), nil
}

// lacks returns how many events a mailbox has behind a version.
func (s *searches) lacks(id capabilities.ID, version uint64) uint64 {
	m, _ := s.node.journal.Mailbox(id)
	return m.Version - min(version, m.Version)
}

// errOtherLog reports that the index has a mailbox of another log, such as from before a backup was restored.
var errOtherLog = errors.New("the index is of another log")

// next returns the events of a mailbox behind those in the index. It reads the last of these again, to see that the log is the
// same. It fails with errOtherLog, or with Elsewhere if the first event cannot be read.
func (s *searches) next(ctx context.Context, id capabilities.ID, at projection.Mark) (next []events.Recorded, err error) {
	j := s.node.journal
	if m, _ := j.Mailbox(id); m.Version < at.Version {
		return nil, errOtherLog
	}
	read := func(after uint64, limit int) (logged []persistence.Entry, err error) {
		logged, err = j.Events(ctx, id, after, limit)
		if away, ok := errors.AsType[*persistence.Elsewhere](err); ok {
			if first, _ := j.VersionsIn(id, away.Segment); first > after+1 { // those before
				return j.Events(ctx, id, after, min(limit, int(first-1-after)))
			}
		}
		return logged, err
	}
	after := at.Version
	if at.At != 0 {
		after--
	}
	logged, err := read(after, indexAtOnce+1)
	if away, ok := errors.AsType[*persistence.Elsewhere](err); ok && at.At != 0 {
		if _, last := j.VersionsIn(id, away.Segment); last == at.Version { // only what is in the index is elsewhere
			at.At = 0
			logged, err = read(at.Version, indexAtOnce)
		}
	}
	if err != nil {
		return nil, err
	}
	if at.At != 0 {
		if len(logged) == 0 || logged[0].At != at.At {
			return nil, errOtherLog
		}
		logged = logged[1:]
	}
	for _, e := range logged {
		next = append(next, e.Recorded)
	}
	return next, nil
}

// Search says what Mail.Search looks for. Parties are agents as the caller names them; "" is any.
type Search struct {
	view.Search
	From, To, DecidedBy string
	Thread              capabilities.FormRef // a message of the thread; zero for any
	Filter              view.MessageFilter   // what the messages are now
	Before              uint64               // only messages with a lower number, or in the order of their ends only what ended before that one; 0 for all
	Skip, Limit         int
}

// orders are the orders by their names.
var orders = map[string]projection.Order{
	"": projection.Newest, "newest": projection.Newest, "oldest": projection.Oldest, "relevance": projection.Relevance, "urgency": projection.Urgency, "subject": projection.BySubject, "ended": projection.Ended,
}

// query returns the query of a search.
func (q Search) query(ctx context.Context, a *Agent) (p projection.Query, err error) {
	order, ok := orders[q.Order]
	switch {
	case !ok:
		return p, parley.Refuse(parley.InvalidArgument, "unknown order %s", parley.Quoted(q.Order, 40)).WithHint("the orders are newest, oldest, relevance, urgency, subject and ended")
	case q.Verdict != "" && q.Verdict != projection.Allowed && q.Verdict != projection.Denied:
		return p, parley.Refuse(parley.InvalidArgument, "unknown verdict %s", parley.Quoted(q.Verdict, 40)).WithHint("the verdicts are allowed and denied")
	case len(q.Text) > projection.MaxText || len(q.Subject) > projection.MaxText || len(q.Tool) > projection.MaxText:
		return p, parley.Refuse(parley.TooLarge, "a search has %d bytes of words at most", projection.MaxText)
	case len(projection.Terms(q.Text)) > projection.MaxWords || len(projection.Terms(q.Subject)) > projection.MaxWords:
		return p, parley.Refuse(parley.TooLarge, "a search is for %d words at most", projection.MaxWords).WithHint("leave some out, or put what stands in a row in quotation marks")
	case q.Skip < 0 || q.Limit < 0 || q.Skip > projection.MaxFound:
		return p, parley.Refuse(parley.InvalidArgument, "a search leaves out from 0 to %d messages", projection.MaxFound).WithHint("narrow it by a time or a sender")
	}
	for _, t := range q.Types {
		if !slices.Contains([]string{"message", "form", "request", "approval"}, t) {
			return p, parley.Refuse(parley.InvalidArgument, "unknown type %s", parley.Quoted(t, 40)).WithHint("the types are message, form, request and approval")
		}
	}
	for _, o := range q.Outcomes {
		if !slices.Contains([]string{"answered", "declined", "cancelled", "expired", "superseded"}, o) {
			return p, parley.Refuse(parley.InvalidArgument, "unknown outcome %s", parley.Quoted(o, 40)).WithHint("the outcomes are answered, declined, cancelled, expired and superseded")
		}
	}
	p = projection.Query{
		Words: q.Text, Subject: q.Subject, Kinds: q.Types, Outcomes: q.Outcomes, Verdict: q.Verdict, Tool: q.Tool, Since: q.Since, Until: q.Until, Before: q.Before, Order: order,
	}
	for _, party := range []struct {
		name string
		id   *capabilities.ID
	}{{q.To, &p.Recipient}, {q.DecidedBy, &p.Decider}} {
		if party.name != "" {
			if *party.id, err = partyOf(ctx, a, party.name); err != nil {
				return p, err
			}
		}
	}
	if q.From != "" {
		from, err := partyOf(ctx, a, q.From)
		if err != nil {
			return p, err
		}
		p.Sender = []capabilities.ID{from}
	}
	if !q.Thread.IsZero() {
		m, err := a.Message(ctx, q.Thread)
		if err != nil {
			return p, err
		}
		p.Thread = m.MessageID
	}
	return p, nil
}

// partyOf returns the agent that a name, a title or an ID stands for.
func partyOf(ctx context.Context, a *Agent, name string) (capabilities.ID, error) {
	v, err := a.Names().Show(ctx, name, false)
	if ref, ok := v.AsRef(); err == nil && ok {
		return ref.Target, nil
	}
	if id, err := capabilities.ParseID(name); err == nil { // of an agent that has no name here
		return id, nil
	}
	found, err := a.Agents().Find(ctx, name)
	if err != nil {
		return capabilities.ID{}, err
	}
	return found.ID(), nil
}

const (
	defaultFound = 100
	findAtOnce   = 100
)

// Search returns messages of the agent by what is in them. Those that Filter leaves out are not counted.
func (m Mail) Search(ctx context.Context, q Search) (found view.Found, err error) {
	p, err := q.query(ctx, m.agent)
	if err != nil {
		return found, err
	}
	return m.agent.node.searches.within(ctx, func(ctx context.Context) (view.Found, error) { return m.searchIndex(ctx, q, p) })
}

// Count returns how many messages a search finds, of those from an agent and decided by one, "" for all: up to view.MaxCounted and one more.
// What the index lacks is not counted.
func (m Mail) Count(ctx context.Context, s view.Search, from, decidedBy string) (n int, err error) {
	p, err := Search{Search: s, From: from, DecidedBy: decidedBy}.query(ctx, m.agent)
	if err != nil {
		return 0, err
	}
	x, err := m.agent.node.searches.opened(ctx)
	if err != nil {
		return 0, parley.Refuse(parley.ReadOnly, "the index for searching cannot be opened: %v", err)
	}
	p.Limit = view.MaxCounted
	err = m.InTurn(ctx, func() error {
		found, more, err := x.Find(ctx, m.agent.id, p)
		if n = len(found); more {
			n++
		}
		return err
	})
	return n, err
}

// within returns what a search returns. It does not wait for a disk that hangs, since neither a call to open a file nor one to
// read it can be cancelled: the search goes on in a goroutine, which ends when the disk goes on.
func (s *searches) within(ctx context.Context, search func(context.Context) (view.Found, error)) (view.Found, error) {
	hangs := func() error {
		if err := s.node.journal.StuckError(); err != nil {
			return err
		}
		return parley.Refuse(parley.Timeout, "the index for searching does not answer").WithHint("parley inbox lists what there is; try again in a moment")
	}
	select {
	case s.places <- struct{}{}:
	default:
		return view.Found{}, hangs()
	}
	type result struct {
		found view.Found
		err   error
	}
	done := make(chan result, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer func() { <-s.places }()
		found, err := search(ctx)
		done <- result{found, err}
	}()
	bound := time.NewTimer(stuckTime)
	defer bound.Stop()
	for waited := stuckTime; ; waited += stuckTime {
		select {
		case r := <-done:
			return r.found, r.err
		case <-ctx.Done():
			return view.Found{}, errEnded(ctx, s.node)
		case <-bound.C:
		}
		if s.node.journal.StuckError() != nil || waited > searchTime+stuckTime {
			return view.Found{}, hangs()
		}
		bound.Reset(stuckTime)
	}
}

// searchIndex is Search with its query.
func (m Mail) searchIndex(ctx context.Context, q Search, p projection.Query) (found view.Found, err error) {
	x, err := m.agent.node.searches.opened(ctx)
	if err != nil {
		return found, parley.Refuse(parley.ReadOnly, "the index for searching cannot be opened: %v", err)
	}
	for again := false; ; again = true {
		left, err := m.addMissing(ctx)
		if err != nil {
			return found, err
		}
		found, err = m.find(ctx, x, q, p)
		if again || !errors.Is(err, projection.ErrOrder) { // else it was damaged, and is empty now
			found.Behind = left
			return found, err
		}
	}
}

// find returns what the index has found.
func (m Mail) find(ctx context.Context, x *projection.Index, q Search, p projection.Query) (found view.Found, err error) {
	found.Messages = []view.Message{}
	limit := q.Limit
	if limit == 0 || limit > defaultFound {
		limit = defaultFound
	}
	size := 0
	for p.Skip, p.Limit = q.Skip, findAtOnce; p.Skip <= projection.MaxFound; {
		var numbers []uint64
		more := false
		err := m.InTurn(ctx, func() (err error) {
			numbers, more, err = x.Find(ctx, m.agent.id, p)
			return err
		})
		if err != nil {
			return found, err
		}
		shown, err := readPiece(ctx, m.agent, ofLists, queryNumbers{numbers})
		if err != nil {
			return found, err
		}
		for i := range shown {
			if !q.Filter.Matches(&shown[i]) {
				continue
			}
			if size += sizeOf(&shown[i]); len(found.Messages) == limit || size > maxListed && len(found.Messages) > 0 {
				found.Next = p.Skip + i
				return found, tellVoted(ctx, m.agent, found.Messages)
			}
			found.Messages = append(found.Messages, shown[i])
		}
		if p.Skip += len(numbers); !more {
			return found, tellVoted(ctx, m.agent, found.Messages)
		}
	}
	found.Next = p.Skip // which is refused: the search has to be narrowed
	return found, tellVoted(ctx, m.agent, found.Messages)
}

// addMissing adds what the index lacks of the agent's mailbox, for as long as a search may take and fair.Until allows, and the next
// events in any case. It returns how many events are left: all, where the index cannot be written.
func (m Mail) addMissing(ctx context.Context) (left uint64, err error) {
	s, id := m.agent.node.searches, m.agent.id
	for end := fair.EndOf(ctx, searchTime); ; {
		var failed error
		err := m.InTurn(ctx, func() error {
			left, failed = s.add(ctx, id)
			return nil
		})
		if err == nil {
			err = ctx.Err()
		}
		switch {
		case err != nil:
			return left, errEnded(ctx, m.agent.node)
		case failed != nil:
			m.agent.node.log.Warn("a search cannot bring its index up to date", "mailbox", id.String(), "error", failed)
			x, err := s.opened(ctx)
			if err != nil {
				return 0, err
			}
			at, err := x.At(ctx, id)
			if err != nil {
				return 0, parley.Refuse(parley.ReadOnly, "the index for searching cannot be read: %v", err)
			}
			return s.lacks(id, at.Version), nil
		case left == 0 || time.Now().After(end):
			return left, nil
		}
	}
}

// queryNumbers returns messages by their numbers, in that order.
type queryNumbers struct{ numbers []uint64 }

func (q queryNumbers) handle(b *mailboxActor) ([]view.Message, error) {
	b.recordAcksToShow()
	all := make([]view.Message, 0, len(q.numbers))
	listed := func(yield func(mailbox.Listed) bool) {
		for _, n := range q.numbers {
			if !yield(mailbox.Listed{Number: n}) {
				return
			}
		}
	}
	for e, err := range b.old.list(these(listed), readAtOnce) {
		if err != nil {
			return all, err
		}
		all = append(all, e)
	}
	return all, nil
}
