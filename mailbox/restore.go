package mailbox

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/vmihailenco/msgpack/v5"

	"parley"
	"parley/capabilities"
	"parley/mailbox/index"
	"parley/mailbox/origin"
)

// Restore decodes a state from a whole snapshot or a head. It fails for another format, with NEWER_LOG for a later one, and
// for malformed data. The mailbox has to be replayed from its first event then.
func Restore(id capabilities.ID, encoded []byte) (*State, error) {
	var img snapshot
	format, err := formatOf(encoded)
	if err == nil && format > snapshotFormat {
		err = parley.Refuse(parley.NewerLog, "it has format %d: this program knows format %d", format, snapshotFormat).
			WithHint("start the version that wrote it, or a newer one (parley --version shows this one's); nothing was changed")
	}
	if err == nil && format != snapshotFormat {
		err = fmt.Errorf("format %d", format)
	}
	if err == nil {
		err = decode(encoded, &img)
	}
	if err == nil && img.ID != id {
		err = fmt.Errorf("it is of %s", img.ID)
	}
	s := New(id)
	if err == nil && img.Head != nil {
		err = img.Head.restore(s)
	} else if err == nil {
		err = s.Mail.Index.entries.Decode(img.Index.Entries)
	}
	if err == nil {
		err = img.restore(s)
	}
	if err != nil {
		return nil, fmt.Errorf("snapshot of %s: %w", id, err)
	}
	s.Mail.Index.countAll()
	return s, nil
}

// formatOf returns the first member of a snapshot, which is its format.
func formatOf(encoded []byte) (int, error) {
	d := msgpack.NewDecoder(bytes.NewReader(encoded))
	if _, err := d.DecodeArrayLen(); err != nil {
		return 0, err
	}
	return d.DecodeInt()
}

func decode(encoded []byte, v any) error {
	err := msgpack.NewDecoder(bytes.NewReader(encoded)).Skip() // the library allocates the claimed length of a list
	if err == nil {
		err = msgpack.Unmarshal(encoded, v)
	}
	return err
}

// restore fills a new state that has its index.
func (img *snapshot) restore(s *State) error {
	s.Version, s.Profile, s.profileVersion = img.Version, img.Profile, img.Version
	if err := img.Index.restore(s); err != nil {
		return err
	}
	for _, mi := range img.Messages {
		if err := mi.restore(s); err != nil {
			return err
		}
	}
	for _, n := range img.Names {
		s.Names.bind(n.Name, n.Value)
	}
	for _, r := range img.Rules {
		s.Rules.byID[r.Rule] = &r
	}
	s.Rules.policy, s.Rules.reviewer = img.Policy, img.Reviewer
	s.Mail.questioned = img.Questioned
	s.Passkeys = Passkeys{all: img.Passkeys, needs: img.Needs}
	for _, m := range img.Mandates {
		if len(m.Spent) != len(m.Sums) {
			return ErrNonsense
		}
		s.Rules.mandates = append(s.Rules.mandates, &m)
	}
	for _, c := range img.Callers {
		if s.Rules.callers == nil {
			s.Rules.callers = map[capabilities.ID]capabilities.ID{}
		}
		s.Rules.callers[c.Form] = c.Session
	}
	s.Tokens.all = img.Tokens
	s.Outbox.restore(img.Outbox, img.LastSeq)
	img.restoreGrants(&s.Grants)
	s.Peers.invitations, s.Peers.nodes, s.Peers.quotas, s.Peers.dropped = img.Invitations, img.Peers, img.Quotas, img.Dropped
	s.Peers.index()
	s.Runs = Runs{program: img.Program, run: img.Run, ended: img.Ended, attempt: img.Attempt, retries: img.Lost, held: img.Held}
	var err error
	if s.Runs.prompts, err = restored(&s.Mail, img.Prompts); err != nil {
		return err
	}
	if s.Runs.interrupted, err = restored(&s.Mail, img.Cut); err != nil {
		return err
	}
	if r := s.Runs.run; r != nil && !r.Prompt.IsZero() {
		if n, ok := s.Mail.Index.entries.FindOpen(r.Prompt); ok {
			s.Runs.prompt = s.Mail.live[n]
		}
	}
	for _, id := range img.Made {
		s.Names.addMade(id)
	}
	s.Account.restore(img.Uses)
	for _, r := range img.Rights {
		s.Grants.Answers.Restore(r)
	}
	s.StandIns = StandIns{away: img.Away, members: img.Members}
	s.Sessions.all = img.Sessions
	s.Files.restore(img.Files)
	s.Teams.all, s.Attention, s.Topic = img.Teams, img.Attention, img.Topic
	if err := img.Leases.restore(&s.Leases); err != nil {
		return err
	}
	if err := img.Resource.restore(&s.Resource); err != nil {
		return err
	}
	return img.restoreInbox(&s.Mail)
}

// restoreInbox adds the marks of the inbox. The messages have their drafts.
func (img *snapshot) restoreInbox(l *Mail) error {
	l.Texts, l.marked, l.Index.tally = img.Texts, img.Marked, img.Tally
	l.Schedules = Schedules{all: img.Scheduled, made: img.Schedules}
	if err := l.queue.restore(l, img.Queued); err != nil {
		return err
	}
	for _, s := range img.Scheduled {
		if s.MessageScheduled == nil || s.Schedule > img.Schedules {
			return fmt.Errorf("%w: a schedule without a message", ErrNonsense)
		}
		if s.Next != 0 {
			l.timers.addSchedule(s.Schedule, s.Next)
		}
	}
	for _, z := range img.Snoozed {
		if z.Number >= l.Index.Len() {
			return missing(z.Number)
		}
		l.wakeAt(z.Number, z.Until)
	}
	return img.restoreOffers(l)
}

// restoreOffers adds the offers, and what may be offered.
func (img *snapshot) restoreOffers(l *Mail) error {
	for _, a := range img.Acks {
		if a.Number >= l.Index.Len() {
			return missing(a.Number)
		}
		wantAck(l, a.Number, a.wantedAck)
	}
	l.Offers.all = img.Offers
	for _, o := range l.Offers.all {
		if err := l.Index.hasAll(o.Numbers); err != nil {
			return err
		}
	}
	if img.Unoffered == nil {
		return nil
	}
	u := &unoffered{each: map[capabilities.ID]map[uint64]bool{}}
	u.shared = setOf(img.Unoffered.Shared)
	err := l.Index.hasAll(img.Unoffered.Shared)
	for _, r := range img.Unoffered.Each {
		u.each[r.Reader] = setOf(r.Numbers)
		err = cmp.Or(err, l.Index.hasAll(r.Numbers))
	}
	l.Index.unoffered = u
	return err
}

func setOf(numbers []uint64) map[uint64]bool {
	set := make(map[uint64]bool, len(numbers))
	for _, n := range numbers {
		set[n] = true
	}
	return set
}

func (x *indexSnapshot) restore(s *State) error {
	l := &s.Mail
	for _, o := range x.Other {
		if o.Number >= l.Index.Len() || !l.Index.entries.Has(o.Number) {
			return fmt.Errorf("%w: no message %d", ErrNonsense, o.Number)
		}
		for _, v := range o.Versions {
			l.Index.entries.Note(o.Number, uint64(v))
		}
	}
	for _, r := range x.Reached {
		l.reached.put(r.Number, r.Ref)
	}
	for _, k := range x.Asked {
		l.Keys.asked.Put(k.Digest, k.Number)
	}
	for _, k := range x.Posted {
		l.Keys.posted.Put(k.Digest, k.Number)
	}
	for _, o := range x.Origins {
		l.Origins.Restore(o)
	}
	for _, p := range x.Plain {
		l.refs.plain[p.Agent] = p.Place
		l.refs.count = max(l.refs.count, p.Place+1)
	}
	for _, g := range x.Given {
		l.refs.put(g)
		l.refs.count = max(l.refs.count, g.Place+1)
	}
	for _, r := range x.Roots {
		s.Grants.setRoot(r.Grant, r.Root)
	}
	l.Index.recent.Restart(s.Version)
	return x.check(l)
}

// check refuses numbers of messages that are not there.
func (x *indexSnapshot) check(l *Mail) error {
	missing := func(n uint64) bool { return n >= l.Index.Len() }
	ofOrigin := func(o origin.Entry) bool { return slices.ContainsFunc(o.Numbers, missing) }
	keyed := slices.AppendSeq(slices.Collect(l.Keys.asked.Fresh()), l.Keys.posted.Fresh())
	if slices.ContainsFunc(keyed, missing) || slices.ContainsFunc(x.Origins, ofOrigin) {
		return fmt.Errorf("%w: the index has messages that are not there", ErrNonsense)
	}
	return nil
}

func (img *snapshot) restoreGrants(l *Grants) {
	for _, g := range img.Given {
		l.given.Add(g)
	}
	for _, g := range img.Minted {
		l.minted.Add(g)
	}
	for _, r := range img.Revoked {
		l.revoked[r.Grant] = r.At
	}
	for _, u := range img.Used {
		l.uses[u.Grant] = u.Uses
	}
	for _, g := range img.ReplyGrants {
		g.Revoked = 0 // it is among the revoked
		l.putReply(g)
	}
}

// restore holds the message in a state that has its index entry.
func (mi *messageSnapshot) restore(s *State) error {
	n := mi.Number
	if n >= s.Mail.Index.Len() || !s.Mail.Index.entries.Has(n) || (mi.Posted == nil) == (mi.Requested == nil) {
		return fmt.Errorf("%w: message %d is both or neither, or not there", ErrNonsense, n)
	}
	m := &Message{
		Number: n, Changed: mi.Changed, Dismissed: mi.Dismissed, Posted: mi.Posted, Refused: mi.Refused, Receipts: mi.Receipts, Unreached: mi.Unreached, Members: mi.Members, Repeats: mi.Repeats, Behind: mi.Behind, Counts: mi.Counts, reached: s.Mail.reached.of(n),
	}
	if e := mi.Requested; e != nil {
		m.Refused = ""
		m.Form = newForm(e)
		m.Form.Holders = mi.Holders
		if mi.Forwarded != nil {
			m.Form.passed.edit().Forwarded = mi.Forwarded
		}
		m.Form.Outcome = Outcome{Answered: mi.Answered, Ended: mi.Ended, Settled: mi.Settled}
		if mi.Signed != nil {
			noteSigned(m.Form, mi.Signed)
		}
		if mi.QueuedAnswer != nil || mi.QueuedForwards != nil || mi.Refused != "" || mi.Said != nil || mi.QueuedClaim != nil {
			*m.Form.queued.edit() = Queued{Answer: mi.QueuedAnswer, Forwards: mi.QueuedForwards, Refused: mi.Refused, Said: mi.Said, Claim: mi.QueuedClaim}
		}
		if a := mi.Amended; a != nil {
			if a.Last == nil || a.Asked == nil || a.Before == nil || a.Last.Form != e.ID {
				return missing(n)
			}
			m.Form.amended.part = &amended{last: a.Last, asked: a.Asked, before: a.Before}
		}
		if mi.Reminded != nil || mi.Routed != nil {
			passed := m.Form.passed.edit()
			passed.Reminded, passed.Routed = mi.Reminded, mi.Routed
		}
		if len(mi.Questions) > 0 {
			*m.Form.questions.edit() = mi.Questions
		}
		m.Form.review.part = mi.Review
		if mi.Claims != nil {
			m.Form.passed.edit().Claims = *mi.Claims
		}
		if mi.Votes != nil {
			*m.Form.votes.edit() = *mi.Votes
		}
	}
	if e := s.Mail.Index.entries.At(n); e.ID != s.Mail.Index.entries.Digest(m.ID()) || e.Is(index.Form) != (m.Form != nil) || m.Form != nil && e.IsOpen() != m.Form.IsOpen() {
		return fmt.Errorf("%w: message %d is not that of the index", ErrNonsense, n)
	}
	s.Mail.live[n] = m
	if m.Form == nil || !m.Form.IsOpen() {
		return nil
	}
	if s.Mail.Received(m) {
		s.Mail.waiting.Add(n)
		if m.Form.Draft = mi.Draft; mi.Draft != nil {
			s.Mail.drafts++
		}
	}
	if s.Mail.Sent(m) {
		s.Mail.indexOpen(m)
	}
	return nil
}

// restored returns the messages for the result of numbersOf.
func restored(l *Mail, numbers []uint64) ([]*Message, error) {
	if numbers == nil {
		return nil, nil
	}
	messages := make([]*Message, len(numbers))
	for i, n := range numbers {
		if messages[i] = l.live[n]; messages[i] == nil || messages[i].Posted == nil {
			return nil, fmt.Errorf("%w: no message %d", ErrNonsense, n)
		}
	}
	return messages, nil
}

// restore fills an outbox from a snapshot.
func (o *Outbox) restore(items []OutboxItem, lastSeq uint64) {
	o.items, o.lastSeq = items, lastSeq
	for _, p := range items {
		o.count(p, 1)
	}
}
