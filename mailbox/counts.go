package mailbox

import (
	"slices"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/index"
)

// A group counts with how many of its members a message has come how far, and tells its sender. The counts are of all members, also where
// the list of them is cut, and go on when one member has replied for the group: "read by 3 of 5". Of a group in the group its own counts
// are added in place of it, so each level sums at most as many as it has members. For example, "all" has the members bob and ops, and ops
// has ann and carl:
//
//	bob has read it      all counts 2: bob, and ops as one            1 of 2
//	ops says 2, 0 read   all counts 3: bob, and the two that ops has  1 of 3
//	ann has read it      ops says 1 of 2                              2 of 3
//
// A message to many would cost its sender an event for each member and state. So counts of more than countSteps are noted in steps of a
// countSteps-th, and when a state is reached with all.

const (
	countSteps = 64
	maxCounted = 1 << 20 // far above what groups of groups can have that one node holds
)

// counting is what happens to a copy that a group has passed on, or what the group that got it counts. The state does not have it yet.
type counting struct {
	number  uint64
	receipt Receipt
	refused bool

	by     capabilities.ID
	counts events.MemberCounts
}

// countMembers returns the event of what a group counts by something that happens; none where nothing worth noting has changed, and for a
// message that was passed on before groups counted. It fails with PagedOut.
func countMembers(s *State, m *Message, by counting) ([]events.Event, error) {
	before := m.countsBy(s.ID)
	if before.Passed == 0 {
		return nil, nil
	}
	var now events.MemberCounts
	err := eachPassed(s, m, func(one *Message, entry *index.Entry) bool {
		happens := one.Number == by.number
		of := m.countsBy(one.To())
		if one.To() == by.by {
			of = by.counts
		}
		switch {
		case one.Refused != "" || happens && by.refused:
			of = events.MemberCounts{Passed: 1, Missed: 1}
		case of.Passed == 0:
			stage, acknowledged := entry.Stage(), entry.Is(index.Acknowledged)
			if happens {
				stage, acknowledged = max(stage, by.receipt.State.Rank()), acknowledged || by.receipt.acknowledges()
			}
			of = countOne(stage, acknowledged)
		}
		now = sumCounts(now, of)
		return true
	})
	if err != nil {
		return nil, err
	}
	return noteCounts(m, s.ID, before, now), nil
}

// countOne returns the counts of one agent.
func countOne(stage uint8, acknowledged bool) events.MemberCounts {
	is := func(so bool) uint32 {
		if so {
			return 1
		}
		return 0
	}
	return events.MemberCounts{
		Passed: 1, Offered: is(stage >= events.Offered.Rank()), Shown: is(stage >= events.Shown.Rank()),
		Handled: is(stage >= events.Handled.Rank()), Acknowledged: is(acknowledged),
	}
}

// countPassed returns the event with which a group begins to count what it passes on of a message.
func countPassed(s *State, e *events.MessagePosted, passed []events.Event) []events.Event {
	var n uint32
	for _, one := range passed {
		if _, isCopy := one.(*events.MessagePosted); isCopy {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return []events.Event{&events.MembersCounted{Message: e.Message, By: s.ID, Counts: events.MemberCounts{Passed: n}}}
}

// recordCounts returns the events of what a group counts that a message went to, and of what this mailbox counts by that if it is a group.
func recordCounts(s *State, m *Message, by capabilities.ID, now events.MemberCounts) ([]events.Event, error) {
	evs := noteCounts(m, by, m.countsBy(by), now)
	if len(evs) == 0 || m.From() == s.ID {
		return evs, nil
	}
	own, err := countMembers(s, m, counting{by: by, counts: evs[0].(*events.MembersCounted).Counts})
	return append(evs, own...), err
}

// noteCounts returns the event of new counts, if there is one. None falls, so one who reports on end is noted a bounded number of times.
func noteCounts(m *Message, by capabilities.ID, before, now events.MemberCounts) []events.Event {
	now = mergeCounts(before, now, func(a, b uint32) uint32 { return max(a, b) })
	step, reached := max(1, now.Passed/countSteps), now.Passed-min(now.Missed, now.Passed)
	worth := func(before, now uint32) bool { return now >= before+step || before < reached && now >= reached }
	if !worth(before.Passed, now.Passed) && !worth(before.Missed, now.Missed) && !worth(before.Offered, now.Offered) &&
		!worth(before.Shown, now.Shown) && !worth(before.Handled, now.Handled) && !worth(before.Acknowledged, now.Acknowledged) {
		return nil
	}
	return []events.Event{&events.MembersCounted{Message: m.ID(), By: by, Counts: now}}
}

func sumCounts(a, b events.MemberCounts) events.MemberCounts {
	return mergeCounts(a, b, func(a, b uint32) uint32 { return min(a+b, maxCounted) })
}

func mergeCounts(a, b events.MemberCounts, merge func(a, b uint32) uint32) events.MemberCounts {
	return events.MemberCounts{
		Passed: merge(a.Passed, b.Passed), Missed: merge(a.Missed, b.Missed), Offered: merge(a.Offered, b.Offered),
		Shown: merge(a.Shown, b.Shown), Handled: merge(a.Handled, b.Handled), Acknowledged: merge(a.Acknowledged, b.Acknowledged),
	}
}

// checkCounts refuses counts of another node that cannot be.
func checkCounts(c events.MemberCounts) error {
	if c.Passed > maxCounted || c.Missed > c.Passed || c.Offered > c.Passed || c.Shown > c.Offered || c.Handled > c.Shown || c.Acknowledged > c.Passed {
		return parley.Refuse(parley.InvalidArgument, "a report counts members as there can be none")
	}
	return nil
}

// countsBy returns what a group counts; zero if it has said nothing.
func (m *Message) countsBy(group capabilities.ID) events.MemberCounts {
	if i := slices.IndexFunc(m.Counts, func(e events.MembersCounted) bool { return e.By == group }); i >= 0 {
		return m.Counts[i].Counts
	}
	return events.MemberCounts{}
}

// addCounts notes what a group counts.
func (m *Message) addCounts(e *events.MembersCounted) {
	m.Counts = slices.Clone(m.Counts) // others hold the slice
	if i := slices.IndexFunc(m.Counts, func(o events.MembersCounted) bool { return o.By == e.By }); i >= 0 {
		m.Counts[i] = *e
		return
	}
	m.Counts = append(m.Counts, *e)
}

// membersCounted notes what a group counts, and has the sender of the message told if the mailbox is the group's.
func membersCounted(f fold, e *events.MembersCounted) error {
	m, err := f.Mail.byOwnID(e.Message)
	if err != nil {
		return err
	}
	if m.addCounts(e); m.toSeveral(f.ID) {
		f.noted(m)
		return nil
	}
	f.Mail.Index.entries.Note(m.Number, f.Version)
	f.Mail.touch(m, f.Version)
	if m.From() != f.ID && e.By == f.ID {
		f.tell(m, events.OutboxMembers)
	}
	f.retire(m)
	return nil
}

// CameToAll reports whether a message that the agent sent has come to a state with all whom it reached, also with each of those to whom
// groups have passed it on: with none of them it has not. Who refused it, was not reached. It fails with PagedOut.
func CameToAll(s *State, m *Message, state events.MessageState) (bool, error) {
	entry, err := s.Mail.Index.entry(m.Number)
	if err != nil || state.Rank() == 0 {
		return false, err
	}
	reached := uint32(0)
	for _, to := range m.Recipients() {
		if m.missed(to) {
			continue
		}
		c := m.countsBy(to)
		if c.Passed == 0 { // no group, or one that is not heard of yet
			stage := entry.Stage()
			if m.toSeveral(s.ID) {
				stage = 0
				for _, r := range m.Receipts {
					if r.By == to {
						stage = max(stage, r.State.Rank())
					}
				}
			}
			c = countOne(stage, false)
		}
		all := c.Passed - min(c.Missed, c.Passed)
		reached += all
		if so := [...]uint32{c.Passed, c.Offered, c.Shown, c.Handled}[state.Rank()]; so < all {
			return false, nil
		}
	}
	return reached > 0, nil
}
