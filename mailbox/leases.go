package mailbox

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/lease"
)

// Bounds of leases.
const (
	maxLeases      = 1024 // of all guests of a host, waiting ones too
	maxHeldLeases  = 32   // of one agent, waiting ones too; of the host itself, maxLeases
	maxDailyLeases = 2000 // that one guest asks for, and renews, since midnight UTC
	maxPurpose     = 200  // bytes of what a lease is for

	leastLease  = time.Second
	longestHeld = 24 * time.Hour
	longestWait = 24 * time.Hour
)

// Lease is a lease that has not ended: one that is held, or one that waits for others to end.
type Lease struct {
	Asked *events.LeaseAsked
	Held  bool
	Until capabilities.Time // it ends, or waits no longer
}

// Number returns the number of the lease at its home.
func (l *Lease) Number() uint64 { return l.Asked.Lease }

// binds reports whether a lease binds the agents of a team; zero for those that are in none. One of the host's own binds all, unless
// it is of a team.
func (ls *Leases) binds(l *Lease, team capabilities.ID) bool {
	return l.Asked.Team == team || l.Asked.Holder == ls.self && l.Asked.Team.IsZero()
}

// conflict reports whether two leases cannot be held at the same time.
func (ls *Leases) conflict(l, o *Lease) bool {
	if l.Asked.Holder == o.Asked.Holder || l.Asked.Shared && o.Asked.Shared || !ls.binds(l, o.Asked.Team) && !ls.binds(o, l.Asked.Team) {
		return false
	}
	return l.overlaps(o)
}

// overlaps reports whether there is something that both leases are on.
func (l *Lease) overlaps(o *Lease) bool {
	fold := l.Asked.Fold || o.Asked.Fold
	return slices.ContainsFunc(l.Asked.Patterns, func(a string) bool {
		return slices.ContainsFunc(o.Asked.Patterns, func(b string) bool { return lease.Pattern(a).Overlaps(lease.Pattern(b), fold) })
	})
}

// covers reports whether the lease is on a file or name.
func (l *Lease) covers(file string) bool {
	return slices.ContainsFunc(l.Asked.Patterns, func(p string) bool { return lease.Pattern(p).Covers(file, l.Asked.Fold) })
}

// meets reports whether the lease is on something that a pattern covers.
func (l *Lease) meets(tree lease.Pattern) bool {
	return slices.ContainsFunc(l.Asked.Patterns, func(p string) bool { return lease.Pattern(p).Overlaps(tree, l.Asked.Fold) })
}

// Leases are the leases of which the mailbox is the home: those of the host and of the agents that have it as their host. Those
// that have ended are in the log alone, so nothing grows with them.
type Leases struct {
	self capabilities.ID
	all  []Lease           // by number
	made uint64            // that were ever asked for
	next capabilities.Time // the earliest Until; 0 if there is none

	day   int64                      // of the counts
	asked map[capabilities.ID]uint32 // how often each guest has asked on that day
}

// All returns the leases that are held or wait, by number. The slice belongs to the state.
func (l *Leases) All() []Lease { return l.all }

// Of returns a lease, and whether it has not ended.
func (l *Leases) Of(number uint64) (Lease, bool) {
	i, ok := l.find(number)
	if !ok {
		return Lease{}, false
	}
	return l.all[i], true
}

func (l *Leases) find(number uint64) (int, bool) {
	return slices.BinarySearchFunc(l.all, number, func(one Lease, n uint64) int { return cmp.Compare(one.Number(), n) })
}

// Ahead returns the leases that one that waits is behind: those that it conflicts with and that are held or wait since longer.
func (l *Leases) Ahead(number uint64) (ahead []uint64) {
	i, ok := l.find(number)
	if !ok || l.all[i].Held {
		return nil
	}
	for k := range l.all {
		if o := &l.all[k]; (o.Held || o.Number() < number) && l.conflict(o, &l.all[i]) {
			ahead = append(ahead, o.Number())
		}
	}
	return ahead
}

// askedToday returns how often a guest has asked on the day of a time.
func (l *Leases) askedToday(holder capabilities.ID, now capabilities.Time) uint32 {
	if l.day != dayOf(now) {
		return 0
	}
	return l.asked[holder]
}

// count counts a request of a guest.
func (l *Leases) count(holder capabilities.ID, at capabilities.Time) {
	if today := dayOf(at); l.day != today || l.asked == nil {
		l.day, l.asked = today, map[capabilities.ID]uint32{}
	}
	l.asked[holder]++
}

// changed notes the earliest end.
func (l *Leases) changed() {
	l.next = 0
	for _, one := range l.all {
		if l.next == 0 || one.Until < l.next {
			l.next = one.Until
		}
	}
}

// Blocking returns the first lease by which an agent may not write one of some files, and that file; nil if there is none. It is
// held by another: of the host, of agents that are in no team, or of members of one of the agent's teams. Of is the address of an
// agent that is a session. A shared lease lets nobody write that has none itself. Trees are paths that are changed with all that is
// below them, as lease.Tree reads them.
func Blocking(s *State, agent, of capabilities.ID, files, trees []string) (*Lease, string) {
	if len(s.Leases.all) == 0 {
		return nil, ""
	}
	for i := range s.Leases.all {
		one := &s.Leases.all[i]
		if !one.Held || one.Asked.Holder == agent || !Binds(s, one, agent, of) {
			continue
		}
		for _, file := range files {
			if one.covers(file) && !(one.Asked.Shared && s.Leases.shares(agent, one, file)) {
				return one, file
			}
		}
		for _, tree := range trees {
			if one.meets(lease.Tree(tree)) && !(one.Asked.Shared && s.Leases.shares(agent, one, tree)) {
				return one, tree
			}
		}
	}
	return nil, ""
}

// Binds reports whether a lease is of the host, or counts where an agent is: among the members of one of its teams, or among the
// agents that are in none. Of is the address of an agent that is a session.
func Binds(s *State, one *Lease, agent, of capabilities.ID) bool {
	return slices.ContainsFunc(s.Teams.scopes(agent, of), func(team capabilities.ID) bool { return s.Leases.binds(one, team) })
}

// shares reports whether an agent has itself a lease on a file beside a shared one.
func (l *Leases) shares(agent capabilities.ID, beside *Lease, file string) bool {
	return slices.ContainsFunc(l.all, func(o Lease) bool {
		return o.Held && o.Asked.Holder == agent && o.Asked.Team == beside.Asked.Team && o.covers(file)
	})
}

// AskLease asks for a lease at its home, which is the mailbox of the holder's host. Patterns are as lease.Parse returns them. One
// that cannot be held now waits, if Wait is not 0, behind those that are there. The same request again renews the lease. It
// refuses with LEASED, and with QUOTA_EXCEEDED.
type AskLease struct {
	Holder   capabilities.ID
	Of       capabilities.ID // the address of a holder that is a session
	Team     string          // its name; "" for the one that the holder is in, or none
	Patterns []string
	Fold     bool
	Shared   bool
	For      string
	Length   time.Duration // for which it is held
	Wait     time.Duration // for which it waits at most; 0 for not at all
}

// same reports whether a lease is what is asked for.
func (c AskLease) same(l *Lease, team capabilities.ID) bool {
	a := l.Asked
	return a.Holder == c.Holder && a.Team == team && a.Shared == c.Shared && slices.Equal(a.Patterns, c.Patterns)
}

// Existing returns the lease that the holder has for the same.
func (c AskLease) Existing(s *State) (Lease, bool) {
	team, err := s.Teams.chosen(s.ID, c)
	if err != nil {
		return Lease{}, false
	}
	for i := range s.Leases.all {
		if c.same(&s.Leases.all[i], team) {
			return s.Leases.all[i], true
		}
	}
	return Lease{}, false
}

func (c AskLease) check() error {
	switch {
	case len(c.Patterns) == 0:
		return parley.Refuse(parley.InvalidArgument, "a lease on what? give files, or a name with its kind").WithHint("as in src/checkout/** or port:3000")
	case len(c.Patterns) > lease.MaxPatterns:
		return parley.Refuse(parley.TooLarge, "%d patterns are over the limit of %d", len(c.Patterns), lease.MaxPatterns).WithHint("ask for several leases")
	case len(c.For) > maxPurpose || strings.ContainsFunc(c.For, parley.IsInvisible):
		return parley.Refuse(parley.InvalidArgument, "what a lease is for is one line of %d bytes at most", maxPurpose)
	case c.Wait < 0 || c.Wait > longestWait:
		return parley.Refuse(parley.InvalidArgument, "nobody waits for a lease longer than %s", capabilities.Span(longestWait))
	}
	for _, p := range c.Patterns {
		if again, err := lease.Parse(p, ""); err != nil {
			return err
		} else if string(again) != p {
			return parley.Refuse(parley.InvalidArgument, "the pattern %s is not in its normal form, %s", parley.Quoted(p, 80), parley.Quoted(string(again), 80))
		}
	}
	return checkLength(c.Length)
}

func checkLength(length time.Duration) error {
	if length < leastLease || length > longestHeld {
		return parley.Refuse(parley.InvalidArgument, "a lease of %s: it is held for 1s to %s", length, longestHeld).WithHint("renew it while it is needed")
	}
	return nil
}

func (c AskLease) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	if err := checkLeaseHome(s); err != nil {
		return nil, err
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	team, err := s.Teams.chosen(s.ID, c)
	if err != nil {
		return nil, err
	}
	if err := checkAsked(s, c.Holder, now); err != nil {
		return nil, err
	}
	for i := range s.Leases.all {
		if one := &s.Leases.all[i]; c.same(one, team) {
			if !one.Held {
				return nil, nil
			}
			return []events.Event{&events.LeaseRenewed{Lease: one.Number(), Until: after(now, c.Length)}}, nil
		}
	}
	if err := checkLeases(s, c.Holder); err != nil {
		return nil, err
	}
	e := &events.LeaseAsked{
		Lease: s.Leases.made + 1, Holder: c.Holder, Of: c.Of, Team: team, Patterns: slices.Clone(c.Patterns), Fold: c.Fold, Shared: c.Shared, For: c.For,
		Length: uint64(c.Length / time.Millisecond), Until: after(now, c.Length),
	}
	asked := Lease{Asked: e}
	for i := range s.Leases.all { // else it would be held under a number that is greater than that of what the holder waits for
		if own := &s.Leases.all[i]; own.Asked.Holder == c.Holder && !own.Held && own.overlaps(&asked) {
			return nil, parley.Refuse(parley.Leased, "lease %d waits for the same already", own.Number()).WithHint("wait for that, or release it first")
		}
	}
	before := slices.IndexFunc(s.Leases.all, func(o Lease) bool { return s.Leases.conflict(&o, &asked) })
	if before < 0 {
		return []events.Event{e}, nil
	}
	if c.Wait == 0 {
		return nil, &Leased{Lease: s.Leases.all[before]}
	}
	if s.Leases.waitsFor(c.Holder, &asked) {
		return nil, parley.Refuse(parley.Leased, "whoever holds it waits for a lease of yours").WithHint("release that first, or both wait until the time is over")
	}
	e.Waits, e.Until = true, after(now, c.Wait)
	return []events.Event{e}, nil
}

// Leased refuses what another agent's lease is on. Who makes an error for people of it names the holder.
type Leased struct {
	Lease Lease
	File  string // that was to be written; "" for a lease that was asked for
}

// Error implements error.
func (e *Leased) Error() string { return "leased by " + e.Lease.Asked.Holder.String() }

func after(now capabilities.Time, d time.Duration) capabilities.Time {
	return now + capabilities.Time(d/time.Millisecond)
}

// checkLeaseHome refuses a mailbox that is no home of leases.
func checkLeaseHome(s *State) error {
	if s.Profile.Host != s.ID {
		return parley.Refuse(parley.NotPermitted, "leases and teams are kept by a host")
	}
	return s.Profile.checkActive()
}

// checkAsked refuses a guest that has asked too often today.
func checkAsked(s *State, holder capabilities.ID, now capabilities.Time) error {
	if holder != s.ID && s.Leases.askedToday(holder, reached(s, now)) >= maxDailyLeases {
		return parley.Refuse(parley.QuotaExceeded, "%d leases asked for or renewed today: an agent has no more", maxDailyLeases).WithHint("from midnight UTC on it has again; a longer --ttl needs fewer")
	}
	return nil
}

// checkLeases refuses a lease too many. The host's own and those of its guests are counted apart.
func checkLeases(s *State, holder capabilities.ID) error {
	own, guests := 0, 0
	for _, o := range s.Leases.all {
		if o.Asked.Holder == holder {
			own++
		}
		if o.Asked.Holder != s.ID {
			guests++
		}
	}
	switch {
	case holder == s.ID && own >= maxLeases, holder != s.ID && guests >= maxLeases:
		return parley.Refuse(parley.QuotaExceeded, "%d leases are as many as there may be", maxLeases).WithHint("parley lease ls lists them, parley lease break ends one")
	case holder != s.ID && own >= maxHeldLeases:
		return parley.Refuse(parley.QuotaExceeded, "%d leases are as many as an agent has at once", maxHeldLeases).WithHint("release some, or have one with several patterns")
	}
	return nil
}

// waitsFor reports whether one of those that a lease would wait for waits itself, at the end, for what its holder has.
func (l *Leases) waitsFor(holder capabilities.ID, asked *Lease) bool {
	seen := map[capabilities.ID]bool{}
	var leads func(to *Lease) bool
	leads = func(to *Lease) bool {
		for i := range l.all {
			o := &l.all[i]
			if !l.conflict(o, to) || !o.Held && !to.Held && o.Number() > to.Number() {
				continue
			}
			who := o.Asked.Holder
			if who == holder {
				return true
			}
			if seen[who] {
				continue
			}
			seen[who] = true
			for k := range l.all {
				if w := &l.all[k]; w.Asked.Holder == who && !w.Held && leads(w) {
					return true
				}
			}
		}
		return false
	}
	return leads(asked)
}

// ending returns the events that end leases, and those that grant the ones which waited for them, in the order of their numbers.
func (l *Leases) ending(ends []*events.LeaseEnded, now capabilities.Time) []events.Event {
	if len(ends) == 0 {
		return nil
	}
	var evs []events.Event
	ended := map[uint64]bool{}
	for _, e := range ends {
		evs = append(evs, e)
		ended[e.Lease] = true
	}
	granted := map[uint64]bool{}
	for i := range l.all {
		w := &l.all[i]
		if w.Held || ended[w.Number()] {
			continue
		}
		waited, blocked := false, false
		for k := range l.all {
			o := &l.all[k]
			if k == i || !ended[o.Number()] && !o.Held && !granted[o.Number()] && k > i || !l.conflict(o, w) {
				continue
			}
			if ended[o.Number()] {
				waited = true
			} else {
				blocked = true
				break
			}
		}
		if waited && !blocked {
			granted[w.Number()] = true
			evs = append(evs, &events.LeaseGranted{Lease: w.Number(), Until: after(now, time.Duration(w.Asked.Length)*time.Millisecond)})
		}
	}
	return evs
}

// RenewLease has a lease that is held end after another time from now. By is its holder.
type RenewLease struct {
	Lease  uint64
	By     capabilities.ID
	Length time.Duration
}

func (c RenewLease) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	one, err := leaseOf(s, c.Lease, c.By)
	if err != nil {
		return nil, err
	}
	if err := cmp.Or(checkLength(c.Length), checkAsked(s, c.By, now)); err != nil {
		return nil, err
	}
	if !one.Held {
		return nil, parley.Refuse(parley.Leased, "lease %d is not held yet", c.Lease)
	}
	return []events.Event{&events.LeaseRenewed{Lease: c.Lease, Until: after(now, c.Length)}}, nil
}

// leaseOf returns a lease for its holder, or for the host. It refuses with UNKNOWN_NAME one that has ended, and with NOT_PERMITTED
// another agent.
func leaseOf(s *State, number uint64, by capabilities.ID) (Lease, error) {
	one, ok := s.Leases.Of(number)
	switch {
	case !ok:
		return one, parley.Refuse(parley.UnknownName, "there is no lease %d: it has ended, or never was", number).WithHint("parley lease ls lists them")
	case by != one.Asked.Holder && by != s.ID:
		return one, parley.Refuse(parley.NotPermitted, "lease %d is another's", number).WithHint("ask its holder to release it, or wait for it; only the host breaks it")
	}
	return one, nil
}

// EndLease ends a lease, or the wait for it. By is its holder, or the host, which breaks it.
type EndLease struct {
	Lease uint64
	By    capabilities.ID
}

func (c EndLease) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	one, err := leaseOf(s, c.Lease, c.By)
	if err != nil {
		return nil, err
	}
	why := events.LeaseReleased
	if one.Asked.Holder != c.By {
		why = events.LeaseBroken
	}
	return s.Leases.ending([]*events.LeaseEnded{{Lease: c.Lease, Why: why, By: c.By}}, now), nil
}

// EndLeasesOf ends all leases of an agent that is there no more. Gone reports whether another agent is.
type EndLeasesOf struct {
	Holder capabilities.ID
	Gone   func(capabilities.ID) bool // in place of a holder; nil for none
}

func (c EndLeasesOf) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	return s.Leases.left(now, func(l *events.LeaseAsked) bool {
		return l.Holder == c.Holder || c.Gone != nil && c.Gone(l.Holder)
	}), nil
}

// left returns the events that end the leases of those who have left.
func (l *Leases) left(now capabilities.Time, has func(*events.LeaseAsked) bool) []events.Event {
	var ends []*events.LeaseEnded
	for _, one := range l.all {
		if has(one.Asked) {
			ends = append(ends, &events.LeaseEnded{Lease: one.Number(), Why: events.LeaseLeft})
		}
	}
	return l.ending(ends, now)
}

// ExpireLeases ends all leases, and all waits for one, whose time has come.
type ExpireLeases struct{}

func (ExpireLeases) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	if s.Leases.next == 0 || s.Leases.next > now {
		return nil, nil
	}
	var ends []*events.LeaseEnded
	for _, one := range s.Leases.all {
		if one.Until <= now {
			ends = append(ends, &events.LeaseEnded{Lease: one.Number(), Why: events.LeaseExpired})
		}
	}
	return s.Leases.ending(ends, now), nil
}

func leaseAsked(f fold, e *events.LeaseAsked) error {
	l := &f.Leases
	if e.Lease != l.made+1 {
		return missing(e.Lease)
	}
	l.made = e.Lease
	l.all = append(l.all, Lease{Asked: e, Held: !e.Waits, Until: e.Until})
	if e.Holder != f.ID {
		l.count(e.Holder, f.at)
	}
	l.changed()
	return nil
}

// leaseHeld applies a grant of a lease that waited, or a renewal.
func leaseHeld(f fold, number uint64, until capabilities.Time, renewed bool) error {
	l := &f.Leases
	i, ok := l.find(number)
	if !ok || l.all[i].Held != renewed {
		return missing(number)
	}
	l.all[i].Held, l.all[i].Until = true, until
	if holder := l.all[i].Asked.Holder; renewed && holder != f.ID {
		l.count(holder, f.at)
	}
	l.changed()
	return nil
}

func leaseEnded(f fold, e *events.LeaseEnded) error {
	l := &f.Leases
	i, ok := l.find(e.Lease)
	if !ok {
		return missing(e.Lease)
	}
	if l.all = slices.Delete(l.all, i, i+1); len(l.all) == 0 {
		l.all = nil // which is encoded otherwise
	}
	l.changed()
	return nil
}

// leasesSnapshot is the encoded form of Leases.
type leasesSnapshot struct {
	All   []Lease
	Made  uint64
	Day   int64
	Asked []askedSnapshot
}

type askedSnapshot struct {
	Holder capabilities.ID
	Asked  uint32
}

// snapshot returns nil for a mailbox that never had a lease.
func (l *Leases) snapshot() *leasesSnapshot {
	if l.made == 0 {
		return nil
	}
	img := &leasesSnapshot{All: l.all, Made: l.made, Day: l.day}
	for _, id := range sortedIDs(l.asked) {
		img.Asked = append(img.Asked, askedSnapshot{id, l.asked[id]})
	}
	return img
}

// restore refuses leases that are in no order.
func (img *leasesSnapshot) restore(l *Leases) error {
	if img == nil {
		return nil
	}
	*l = Leases{self: l.self, all: img.All, made: img.Made, day: img.Day}
	last := uint64(0)
	for _, one := range l.all {
		if one.Asked == nil || one.Number() <= last || one.Number() > l.made {
			return missing(last)
		}
		last = one.Number()
	}
	for _, a := range img.Asked {
		if l.asked == nil {
			l.asked = map[capabilities.ID]uint32{}
		}
		l.asked[a.Holder] = a.Asked
	}
	l.changed()
	return nil
}
