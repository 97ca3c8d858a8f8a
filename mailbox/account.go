package mailbox

import (
	"time"

	"parley/capabilities"
	"parley/events"
)

// Usage is an amount in use of each quota. The daily amount is of one day.
type Usage struct {
	Amounts
	day int64 // since 1970
}

const dayLength = capabilities.Time(24 * time.Hour / time.Millisecond)

func dayOf(t capabilities.Time) int64 { return int64(t / dayLength) }

// On returns the amounts on the day of a time.
func (u Usage) On(now capabilities.Time) Amounts {
	if dayOf(now) != u.day {
		u.Amounts[QuotaDaily] = 0
	}
	return u.Amounts
}

// add adds the change of an event at a time. Amounts that can shrink never fall below zero.
func (u *Usage) add(change Amounts, at capabilities.Time) {
	u.Amounts = u.On(at)
	u.day = dayOf(at)
	for q := range change {
		u.Amounts[q] += change[q]
	}
}

// isEmpty reports whether nothing is in use on the day of a time.
func (u Usage) isEmpty(now capabilities.Time) bool { return u.On(now) == Amounts{} }

// Account counts what is held for the agent, and what its mailbox holds for the senders of mail. Every mailbox counts
// for itself: the agent's own counts its forms, names and agents, and the recipient's counts the mail that is there.
// Only Decide refuses by these counts, never Apply.
type Account struct {
	self    capabilities.ID
	own     Usage
	senders map[capabilities.ID]Usage // by accountOf
	made    map[capabilities.ID]bool  // agents that the agent made
}

// Own returns the usage of the agent itself at a time.
func (a *Account) Own(now capabilities.Time) Amounts { return a.own.On(now) }

// Usage returns the usage of the agent itself.
func (a *Account) Usage() Usage { return a.own }

// Senders returns the usage of all senders at a time: of agents of the node by their IDs, of other nodes by an ID with
// the node alone.
func (a *Account) Senders(now capabilities.Time) map[capabilities.ID]Amounts {
	all := make(map[capabilities.ID]Amounts, len(a.senders))
	for by, u := range a.senders {
		if amounts := u.On(now); amounts != (Amounts{}) {
			all[by] = amounts
		}
	}
	return all
}

// Sender returns the usage of one sender at a time.
func (a *Account) Sender(sender capabilities.ID, now capabilities.Time) Amounts {
	return a.senders[a.of(sender)].On(now)
}

// Made returns the agents that this one has made and has or had a name for.
func (a *Account) Made() []capabilities.ID { return sortedIDs(a.made) }

// of returns the account of an agent's mail: its node as a whole if that is another, or else the agent itself.
func (a *Account) of(from capabilities.ID) capabilities.ID {
	if isRemote(from, a.self.Node) {
		return capabilities.ID{Node: from.Node}
	}
	return from
}

// addSender adds the change of an event to a sender's usage.
func (a *Account) addSender(by capabilities.ID, change Amounts, at capabilities.Time) {
	u := a.senders[by]
	u.add(change, at)
	if u.isEmpty(at) {
		delete(a.senders, by)
		return
	}
	a.putSender(by, u)
}

func (a *Account) putSender(by capabilities.ID, u Usage) {
	if a.senders == nil {
		a.senders = map[capabilities.ID]Usage{}
	}
	a.senders[by] = u
}

// addMade adds an agent that this one made.
func (a *Account) addMade(id capabilities.ID) {
	if a.made[id] {
		return
	}
	if a.made == nil {
		a.made = map[capabilities.ID]bool{}
	}
	a.made[id] = true
	a.own.Amounts[QuotaAgents]++
}

type usageSnapshot struct {
	By      capabilities.ID // zero for the agent itself
	Amounts Amounts
	Day     int64
}

func (a *Account) snapshots() []usageSnapshot {
	all := []usageSnapshot{{Amounts: a.own.Amounts, Day: a.own.day}}
	for _, by := range sortedIDs(a.senders) {
		all = append(all, usageSnapshot{By: by, Amounts: a.senders[by].Amounts, Day: a.senders[by].day})
	}
	return all
}

// restore restores the account from a snapshot.
func (a *Account) restore(images []usageSnapshot, made []capabilities.ID) {
	for _, id := range made {
		a.addMade(id)
	}
	for _, i := range images {
		u := Usage{Amounts: i.Amounts, day: i.Day}
		if i.By.IsZero() {
			a.own = u
		} else {
			a.putSender(i.By, u)
		}
	}
}

// CheckAnswer refuses with QUOTA_EXCEEDED an answer that exceeds the answerer's quotas. It is for answers to forms of
// this node, which another mailbox decides.
func (s *State) CheckAnswer(l *Limits, c SettleForm, now capabilities.Time) error {
	var growth Amounts
	growth[QuotaDaily] = int64(capabilities.Record(c.Values).Extent().Bytes + len(c.Note))
	return l.check(s.Account.Own(now), growth)
}

// CheckForward is CheckAnswer for a forward, which makes another copy of the form.
func (s *State) CheckForward(l *Limits, form capabilities.ID, now capabilities.Time) error {
	m, err := s.Mail.form(form)
	if err != nil {
		return nil // the command is refused for it
	}
	var growth Amounts
	growth[QuotaDaily] = sizeOfForm(m.Form.FormRequested)
	return l.check(s.Account.Own(now), growth)
}

// countUse counts the change of an event. It is called before the event is folded in.
func countUse(s *State, r events.Recorded) {
	if c := ownChange(s, r.Event); c != (Amounts{}) {
		s.Account.own.add(c, r.At)
	}
	if by, c := senderChange(s, r.Event); c != (Amounts{}) {
		s.Account.addSender(by, c, r.At)
	}
	if e, ok := r.Event.(*events.NameBound); ok && namesMade(s, e.Value) {
		ref, _ := e.Value.AsRef()
		s.Account.addMade(ref.Target)
	}
}
