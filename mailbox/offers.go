package mailbox

import (
	"fmt"
	"maps"
	"slices"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/index"
)

// A mailbox offers its messages to readers: the sessions of an agent, or the agent itself. A notice of a message reaches one
// reader, with a token. When a request to a model was seen to hold the text, the message is shown. What a reader was offered
// and not shown returns when the reader ends.

// Bounds of offers.
const (
	maxOffers    = 4096 // of a mailbox, without proof
	maxOwnOffers = 256  // of them to the mailbox's own agent, which are kept
	maxToken     = 64   // bytes of a token, and of the name of a moment
	maxProof     = 256  // bytes
)

// Offer is a notice of messages that reached a reader. Its numbers are those that the reader was not shown.
type Offer struct {
	Reader  capabilities.ID
	Token   string
	Numbers []uint64
	Moment  string
	At      capabilities.Time
	Version uint64 // of the mailbox, after the event
	Repeats uint8  // notices after the first, at most MaxRepeats
	Fetched []Fetched
}

// Fetched says when the text of a message that was offered was returned to the reader last.
type Fetched struct {
	Number uint64
	At     capabilities.Time
}

// FetchedAt returns when the text of a message was returned to the reader; zero if it was not.
func (o *Offer) FetchedAt(n uint64) capabilities.Time {
	for _, f := range o.Fetched {
		if f.Number == n {
			return f.At
		}
	}
	return 0
}

// MaxRepeats bounds how often a notice that came to nothing is given again.
const MaxRepeats = 2

// unoffered has the messages that no reader was offered. With Each, readers have a list of their own. It is kept from the
// first offer on: a mailbox that offers nothing keeps none.
type unoffered struct {
	shared map[uint64]bool
	each   map[capabilities.ID]map[uint64]bool
}

// isOfferable reports whether a message may be offered that no reader was offered.
func isOfferable(e *index.Entry) bool { return isUnread(e) && e.Stage() == 0 && !e.Is(index.Snoozed) }

// note notes how a message is now.
func (u *unoffered) note(n uint64, e *index.Entry) {
	if u == nil {
		return
	}
	if isOfferable(e) {
		u.shared[n] = true
	} else {
		delete(u.shared, n)
	}
	for _, own := range u.each {
		if isDone(e) {
			delete(own, n)
		}
	}
}

// add adds a new message.
func (u *unoffered) add(n uint64, e *index.Entry) {
	if u == nil || !isOfferable(e) {
		return
	}
	u.shared[n] = true
	for _, own := range u.each {
		own[n] = true
	}
}

// of returns the list of a reader.
func (u *unoffered) of(reader capabilities.ID) map[uint64]bool {
	if own, ok := u.each[reader]; ok {
		return own
	}
	return u.shared
}

// startOffers begins the lists of messages that no reader was offered. All pages have to be in memory.
func (x *Index) startOffers() {
	if x.unoffered != nil {
		return
	}
	x.unoffered = &unoffered{shared: map[uint64]bool{}, each: map[capabilities.ID]map[uint64]bool{}}
	for n := range x.Len() {
		x.unoffered.add(n, x.entries.At(n))
	}
}

// Unoffered returns the messages that a reader may be offered: the urgent first, those of low priority last, and else the
// oldest first. It reports false if they are not known, because the mailbox never offered anything: then they are those of
// Listed with Unoffered.
func (x *Index) Unoffered(reader capabilities.ID) ([]uint64, bool) {
	u := x.unoffered
	if u == nil {
		return nil, false
	}
	numbers := slices.DeleteFunc(slices.Sorted(maps.Keys(u.of(reader))), func(n uint64) bool {
		return x.entries.Has(n) && x.entries.At(n).Is(index.Snoozed)
	})
	return numbers, true
}

// ByPriority orders messages by their priority, and keeps the order of those with the same. It fails with PagedOut.
func (x *Index) ByPriority(numbers []uint64) error {
	if err := x.needPages(numbers...); err != nil {
		return err
	}
	rank := func(n uint64) int {
		switch e := x.entries.At(n); {
		case e.Is(index.Urgent):
			return -1
		case e.Is(index.Low):
			return 1
		}
		return 0
	}
	slices.SortStableFunc(numbers, func(a, b uint64) int { return rank(a) - rank(b) })
	return nil
}

// Offers are the offers of a mailbox without proof, oldest first.
type Offers struct{ all []Offer }

// Of returns the offers of a reader. They are the caller's.
func (l *Offers) Of(reader capabilities.ID) []Offer {
	var all []Offer
	for _, o := range l.all {
		if o.Reader == reader {
			o.Numbers, o.Fetched = slices.Clone(o.Numbers), slices.Clone(o.Fetched)
			all = append(all, o)
		}
	}
	return all
}

// keepNewest forgets the oldest offers to an agent in its own mailbox, beyond the most that are kept: such an agent reads its mail
// without a session, so most are never proven. Their messages stay offered.
func (l *Offers) keepNewest(own capabilities.ID) {
	count := 0
	for _, o := range l.all {
		if o.Reader == own {
			count++
		}
	}
	l.all = slices.DeleteFunc(slices.Clone(l.all), func(o Offer) bool {
		drop := o.Reader == own && count > maxOwnOffers
		if drop {
			count--
		}
		return drop
	})
}

// newest returns the newest offer of a message; nil if there is none.
func (l *Offers) newest(n uint64) *Offer {
	for i, o := range slices.Backward(l.all) {
		if slices.Contains(o.Numbers, n) {
			return &l.all[i]
		}
	}
	return nil
}

// end takes messages out of the offers that fit. Offers without messages are dropped.
func (l *Offers) end(numbers []uint64, fits func(*Offer) bool) {
	if len(l.all) == 0 {
		return
	}
	left := make([]Offer, 0, len(l.all))
	for _, o := range l.all {
		if fits(&o) {
			o.Numbers = slices.DeleteFunc(slices.Clone(o.Numbers), func(n uint64) bool { return slices.Contains(numbers, n) })
			o.Fetched = slices.DeleteFunc(slices.Clone(o.Fetched), func(f Fetched) bool { return slices.Contains(numbers, f.Number) })
		}
		if len(o.Numbers) > 0 {
			left = append(left, o)
		}
	}
	l.all = left
}

// endOffersOf takes a message out of all offers, but of those to readers of which each is offered all mail.
func endOffersOf(l *Mail, n uint64) {
	if l.Index.unoffered == nil {
		return
	}
	l.Offers.end([]uint64{n}, func(o *Offer) bool { return l.Index.unoffered.each[o.Reader] == nil })
}

// OfferMessages records that a notice of messages, with a token, reaches a reader at a moment of its program. Messages that
// may not be offered to it any more are left out: another reader has them, or they are done. If none is left, it has no
// effect. With All, each reader that is so offered to has all mail, and not only what no other had; the first such offer of a
// reader may be of no messages, and begins that.
type OfferMessages struct {
	Reader  capabilities.ID
	Numbers []uint64
	Token   string
	Moment  string
	All     bool
}

func (c OfferMessages) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	if err := s.Profile.checkActive(); err != nil {
		return nil, err
	}
	l := &s.Mail
	if err := c.check(l); err != nil {
		return nil, err
	}
	if l.Index.unoffered == nil {
		if absent := l.Index.entries.PagedOut(); len(absent) > 0 {
			return nil, &PagedOut{Pages: absent}
		}
	}
	begins := c.All && (l.Index.unoffered == nil || l.Index.unoffered.each[c.Reader] == nil)
	numbers := slices.Compact(slices.Sorted(slices.Values(c.Numbers)))
	numbers = slices.DeleteFunc(numbers, func(n uint64) bool { return !l.Index.mayOffer(c.Reader, n) })
	if len(numbers) == 0 && !begins {
		return nil, nil
	}
	if len(numbers) > 0 && len(l.Offers.all) >= maxOffers && c.Reader != s.ID {
		return nil, parley.Refuse(parley.TooLarge, "%d offers of the mailbox have no proof", len(l.Offers.all)).
			WithHint("readers that ended have not returned theirs")
	}
	return []events.Event{&events.MessagesOffered{Reader: c.Reader, Token: c.Token, Numbers: numbers, Moment: c.Moment, Each: c.All}}, nil
}

// OfferToEach has each of some readers be offered all mail from now on, and not only what no other was. For those of which that holds
// it has no effect.
type OfferToEach struct{ Readers []capabilities.ID }

func (c OfferToEach) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	if err := s.Profile.checkActive(); err != nil {
		return nil, err
	}
	l := &s.Mail
	var evs []events.Event
	for _, reader := range slices.SortedFunc(slices.Values(c.Readers), capabilities.ID.Compare) {
		if reader.IsZero() || reader.Node != l.self.Node {
			return nil, parley.Refuse(parley.InvalidArgument, "messages are offered to an agent of this node")
		}
		if l.Index.unoffered == nil || l.Index.unoffered.each[reader] == nil {
			evs = append(evs, &events.MessagesOffered{Reader: reader, Each: true})
		}
	}
	return evs, nil
}

// mayOffer reports whether a message may be offered to a reader. Its page has to be in memory.
func (x *Index) mayOffer(reader capabilities.ID, n uint64) bool {
	e := x.entries.At(n)
	if x.unoffered == nil {
		return isOfferable(e)
	}
	return x.unoffered.of(reader)[n] && !e.Is(index.Snoozed)
}

func (c OfferMessages) check(l *Mail) error {
	if c.Reader.IsZero() || c.Reader.Node != l.self.Node {
		return parley.Refuse(parley.InvalidArgument, "messages are offered to an agent of this node")
	}
	if c.Token == "" {
		return parley.Refuse(parley.InvalidArgument, "an offer needs a token")
	}
	if slices.ContainsFunc(l.Offers.all, func(o Offer) bool { return o.Token == c.Token }) {
		return parley.Refuse(parley.InvalidArgument, "there is an offer with the token %s", parley.Quoted(c.Token, maxToken))
	}
	if err := checkText("a token", c.Token, maxToken); err != nil {
		return err
	}
	if err := checkText("a moment", c.Moment, maxToken); err != nil {
		return err
	}
	return l.Index.checkNumbers(c.Numbers)
}

// checkNumbers refuses too many messages at once, and numbers of none. It fails with PagedOut if pages are not in memory.
func (x *Index) checkNumbers(numbers []uint64) error {
	if len(numbers) > MaxMarked {
		return parley.Refuse(parley.TooLarge, "%d messages: there are %d at once at most", len(numbers), MaxMarked)
	}
	for _, n := range numbers {
		if n >= x.Len() {
			return noNumber(n)
		}
	}
	return x.needPages(numbers...)
}

// ShowMessages records that a request to the reader's model held the text of messages. Proof says how that was seen. They
// have to be in offers to the reader: in the one with Token, if that is set. No numbers are all of that offer. What was shown
// before has no effect, nor has a token of an offer that has ended.
type ShowMessages struct {
	Reader  capabilities.ID
	Token   string
	Numbers []uint64
	Proof   string
}

func (c ShowMessages) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	l := &s.Mail
	if err := checkText("a proof", c.Proof, maxProof); err != nil {
		return nil, err
	}
	if c.Proof == "" {
		return nil, parley.Refuse(parley.InvalidArgument, "nothing is shown without a proof")
	}
	if err := l.Index.checkNumbers(c.Numbers); err != nil {
		return nil, err
	}
	var open []uint64
	for _, o := range l.Offers.all {
		if o.Reader == c.Reader && (c.Token == "" || o.Token == c.Token) {
			open = append(open, o.Numbers...)
		}
	}
	numbers := open
	if len(c.Numbers) > 0 {
		numbers = nil
		for _, n := range c.Numbers {
			switch {
			case slices.Contains(open, n):
				numbers = append(numbers, n)
			case l.Index.entries.At(n).Stage() < events.Shown.Rank():
				return nil, parley.Refuse(parley.NotPermitted, "message %d was not offered to that reader", n)
			}
		}
	}
	numbers = slices.Compact(slices.Sorted(slices.Values(numbers)))
	if len(numbers) == 0 {
		return nil, nil
	}
	return []events.Event{&events.MessagesShown{Reader: c.Reader, Token: c.Token, Numbers: numbers, Proof: c.Proof}}, nil
}

// FetchMessages records that the texts of messages, at least one, are returned to a reader. They have to be in offers to it.
// What was shown or handled meanwhile has no effect: its text went to where it came from, and the others are not held up.
type FetchMessages struct {
	Reader  capabilities.ID
	Numbers []uint64
}

func (c FetchMessages) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	l := &s.Mail
	if len(c.Numbers) == 0 {
		return nil, parley.Refuse(parley.InvalidArgument, "no message is fetched")
	}
	if err := l.Index.checkNumbers(c.Numbers); err != nil {
		return nil, err
	}
	var numbers []uint64
	for _, n := range slices.Compact(slices.Sorted(slices.Values(c.Numbers))) {
		switch {
		case slices.ContainsFunc(l.Offers.all, func(o Offer) bool { return o.Reader == c.Reader && slices.Contains(o.Numbers, n) }):
			numbers = append(numbers, n)
		case !l.Index.entries.At(n).Is(index.Received) || l.Index.entries.At(n).Stage() < events.Shown.Rank():
			return nil, parley.Refuse(parley.NotPermitted, "message %d was not offered to that reader", n)
		}
	}
	if len(numbers) == 0 {
		return nil, nil
	}
	return []events.Event{&events.MessagesFetched{Reader: c.Reader, Numbers: numbers}}, nil
}

func messagesFetched(f fold, e *events.MessagesFetched) error {
	l := &f.Mail.Offers
	l.all = slices.Clone(l.all) // others hold the slice
	for i, o := range l.all {
		if o.Reader != e.Reader {
			continue
		}
		fetched := slices.DeleteFunc(slices.Clone(o.Fetched), func(f Fetched) bool { return slices.Contains(e.Numbers, f.Number) })
		for _, n := range o.Numbers {
			if slices.Contains(e.Numbers, n) {
				fetched = append(fetched, Fetched{Number: n, At: f.at})
			}
		}
		l.all[i].Fetched = fetched
	}
	return nil
}

// HandleMessages records what a reader did with messages that the agent received. What was handled before has no effect.
type HandleMessages struct {
	Reader  capabilities.ID
	Numbers []uint64
	How     events.Handling
}

func (c HandleMessages) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	switch c.How {
	case events.WasRead, events.WasReplied, events.WasAcknowledged, events.WasDismissed:
	default:
		return nil, parley.Refuse(parley.InvalidArgument, "%s is no way of handling a message", parley.Quoted(string(c.How), 40))
	}
	l := &s.Mail
	if err := l.Index.checkNumbers(c.Numbers); err != nil {
		return nil, err
	}
	numbers := slices.Compact(slices.Sorted(slices.Values(c.Numbers)))
	for _, n := range numbers {
		if e := l.Index.entries.At(n); !e.Is(index.Received) {
			return nil, parley.Refuse(parley.InvalidArgument, "message %d was sent: only what was received is handled", n)
		}
	}
	r := Receipt{State: events.Handled, How: string(c.How)}
	numbers = slices.DeleteFunc(numbers, func(n uint64) bool { return !r.isFurther(l.Index.entries.At(n)) })
	if len(numbers) == 0 {
		return nil, nil
	}
	return []events.Event{&events.MessagesHandled{Reader: c.Reader, Numbers: numbers, How: c.How}}, nil
}

// ReturnOffers ends offers of a reader without proof: their messages are offered again. No tokens are all of its offers, and
// the reader is gone.
type ReturnOffers struct {
	Reader capabilities.ID
	Tokens []string
}

func (c ReturnOffers) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	l := &s.Mail
	e := &events.OffersReturned{Reader: c.Reader}
	var numbers []uint64
	for _, o := range l.Offers.all {
		if o.Reader == c.Reader && (len(c.Tokens) == 0 || slices.Contains(c.Tokens, o.Token)) {
			e.Tokens, numbers = append(e.Tokens, o.Token), append(numbers, o.Numbers...)
		}
	}
	if err := l.Index.needPages(numbers...); err != nil {
		return nil, err
	}
	isEach := l.Index.unoffered != nil && l.Index.unoffered.each[c.Reader] != nil
	if len(c.Tokens) > 0 && len(e.Tokens) == 0 || len(e.Tokens) == 0 && !isEach {
		return nil, nil
	}
	if len(c.Tokens) == 0 {
		e.Tokens = nil
	}
	return []events.Event{e}, nil
}

// RepeatNotice records that the notice of an offer without proof reaches its reader again. It has no effect once that has ended, or
// has been repeated MaxRepeats times.
type RepeatNotice struct {
	Reader capabilities.ID
	Token  string
	Moment string
}

func (c RepeatNotice) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	if err := checkText("a moment", c.Moment, maxToken); err != nil {
		return nil, err
	}
	i := s.Mail.Offers.find(c.Reader, c.Token)
	if i < 0 || s.Mail.Offers.all[i].Repeats >= MaxRepeats {
		return nil, nil
	}
	return []events.Event{&events.NoticeRepeated{Reader: c.Reader, Token: c.Token, Moment: c.Moment}}, nil
}

// find returns the place of an offer, or -1.
func (l *Offers) find(reader capabilities.ID, token string) int {
	return slices.IndexFunc(l.all, func(o Offer) bool { return o.Reader == reader && o.Token == token })
}

func noticeRepeated(f fold, e *events.NoticeRepeated) error {
	l := &f.Mail.Offers
	i := l.find(e.Reader, e.Token)
	if i < 0 {
		return fmt.Errorf("%w: no offer %.80q", ErrNonsense, e.Token)
	}
	l.all = slices.Clone(l.all) // others hold the slice
	l.all[i].Repeats++
	return nil
}

func messagesOffered(f fold, e *events.MessagesOffered) error {
	l := &f.Mail
	if err := l.Index.hasAll(e.Numbers); err != nil {
		return err
	}
	l.Index.startOffers()
	u := l.Index.unoffered
	if e.Each && u.each[e.Reader] == nil {
		u.each[e.Reader] = maps.Clone(u.shared)
	}
	if len(e.Numbers) == 0 {
		return nil
	}
	l.Offers.all = append(slices.Clip(l.Offers.all), Offer{Reader: e.Reader, Token: e.Token, Numbers: slices.Clone(e.Numbers), Moment: e.Moment, At: f.at, Version: f.Version})
	if e.Reader == f.ID {
		l.Offers.keepNewest(f.ID)
	}
	for _, n := range e.Numbers {
		delete(u.each[e.Reader], n)
		f.advance(n, Receipt{Reader: e.Reader, State: events.Offered, At: f.at, How: e.Moment})
	}
	return nil
}

// hasAll fails with ErrNonsense for a number of no message.
func (x *Index) hasAll(numbers []uint64) error {
	for _, n := range numbers {
		if n >= x.Len() {
			return missing(n)
		}
	}
	return nil
}

func messagesShown(f fold, e *events.MessagesShown) error {
	ends := func(o *Offer) bool { return o.Reader == e.Reader && (e.Token == "" || o.Token == e.Token) }
	return readerHad(f, e.Numbers, ends, Receipt{Reader: e.Reader, State: events.Shown, At: f.at, How: e.Proof})
}

func messagesHandled(f fold, e *events.MessagesHandled) error {
	ends := func(o *Offer) bool { return o.Reader == e.Reader }
	return readerHad(f, e.Numbers, ends, Receipt{Reader: e.Reader, State: events.Handled, At: f.at, How: string(e.How)})
}

// readerHad notes that a reader had messages, which ends the part of its offers that they are in.
func readerHad(f fold, numbers []uint64, ends func(*Offer) bool, r Receipt) error {
	if err := f.Mail.Index.hasAll(numbers); err != nil {
		return err
	}
	f.Mail.Offers.end(numbers, ends)
	for _, n := range numbers {
		f.advance(n, r)
		f.Mail.Index.setRead(n, true)
	}
	f.Mail.marked = true
	return nil
}

// offersReturned ends offers. A message that no other reader has an offer of is delivered, and nothing more.
func offersReturned(f fold, e *events.OffersReturned) error {
	l := &f.Mail
	var numbers []uint64
	left := make([]Offer, 0, len(l.Offers.all))
	for _, o := range l.Offers.all {
		if o.Reader == e.Reader && (len(e.Tokens) == 0 || slices.Contains(e.Tokens, o.Token)) {
			numbers = append(numbers, o.Numbers...)
		} else {
			left = append(left, o)
		}
	}
	if l.Offers.all = left; l.Index.unoffered == nil {
		return nil
	}
	own := l.Index.unoffered.each[e.Reader]
	if len(e.Tokens) == 0 {
		delete(l.Index.unoffered.each, e.Reader)
	}
	for _, n := range numbers {
		if own != nil && !isDone(l.Index.entries.At(n)) {
			own[n] = true
		}
		if l.Index.entries.At(n).Stage() != events.Offered.Rank() {
			continue
		}
		other := l.Offers.newest(n)
		l.Index.change(n, func(e *index.Entry) {
			if e.SetReceipt(events.Offered.Rank(), 0); other == nil {
				e.SetStage(0)
			} else {
				e.SetReceipt(events.Offered.Rank(), uint32(other.Version))
			}
		})
		if m, err := l.at(n); err == nil {
			m.Receipts = slices.DeleteFunc(slices.Clone(m.Receipts), func(r Receipt) bool { return r.State == events.Offered })
			if other != nil {
				m.addReceipt(Receipt{Reader: other.Reader, State: events.Offered, At: other.At, How: other.Moment})
			}
		}
		l.touchEntry(n, f.Version)
	}
	return nil
}
