package mailboxtest

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/oklog/ulid/v2"
	"pgregory.net/rapid"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/quota"
)

// Harness holds the mailboxes of agents and delivers their mail. An agent "fae@A" is on node A; names without a node
// are all on one.
type Harness struct {
	TB     rapid.TB
	Agents []string
	States map[string]*mailbox.State
	NameOf map[capabilities.ID]string
	Logs   map[string][]events.Recorded
	Now    capabilities.Time

	Offline       map[string]bool            // nodes that cannot be reached
	OnRefusal     func(to, from, why string) // called for each refused item; if nil, a refusal fails the test
	SkipChecksums bool                       // do not check that Decide changes nothing

	ReadTerms func(text string) *parley.MandateTerms // of a mandate that an answer gives, for transcripts

	old     map[string]map[uint64]*mailbox.Message // by agent, all messages that are not in the mailbox's memory
	pages   map[mailbox.PageSum][]byte             // stored pages of indexes
	hold    bool                                   // items stay in the outboxes
	next    uint16
	made    []capabilities.ID
	decided int                        // commands so far
	taken   map[string]map[string]bool // by agent, the keys of calls that its run has taken
	checked map[string]checkedState    // by agent, what CheckReplay saw last
}

// pageLength is short, so that few messages make several pages of the index.
const pageLength = 3

// New returns a harness without agents.
func New(tb rapid.TB) *Harness {
	return &Harness{
		TB: tb, States: map[string]*mailbox.State{}, NameOf: map[capabilities.ID]string{}, Logs: map[string][]events.Recorded{}, Now: 1,
		taken: map[string]map[string]bool{}, old: map[string]map[uint64]*mailbox.Message{}, pages: map[mailbox.PageSum][]byte{}, checked: map[string]checkedState{},
	}
}

// NthID returns the nth ID that a Harness makes.
func NthID(n uint16) capabilities.ID {
	return capabilities.ID{ULID: ulid.ULID{14: byte(n >> 8), 15: byte(n)}, Node: capabilities.NodeOf([32]byte{31: 1})}
}

// NewID returns a new ID of the node without a name.
func (v *Harness) NewID() capabilities.ID { return v.IDsOf("")() }

// IDsOf returns a source of IDs of an agent's node.
func (v *Harness) IDsOf(agent string) mailbox.IDs {
	return func() capabilities.ID {
		v.next++
		id := NthID(v.next)
		if node := NodeOf(agent); node != "" {
			id.Node = capabilities.NodeOf([32]byte{31: node[0]})
		}
		v.made = append(v.made, id)
		return id
	}
}

// NodeOf returns the node in an agent's name; "" if there is none.
func NodeOf(agent string) string {
	_, node, _ := strings.Cut(agent, "@")
	return node
}

// hostOf returns the first agent of an agent's node.
func (v *Harness) hostOf(agent string) string {
	return v.Agents[slices.IndexFunc(v.Agents, func(a string) bool { return NodeOf(a) == NodeOf(agent) })]
}

// Add makes an agent. The first of a node is the host of all others there. With the name of another agent, it is a session of
// that.
func (v *Harness) Add(name string, of ...string) {
	id := v.IDsOf(name)()
	s := mailbox.New(id)
	s.Mail.SetPageLength(pageLength)
	s.Names.SetPageLength(pageLength)
	v.NameOf[id] = name
	v.SetState(name, s)
	v.Agents = append(v.Agents, name)
	e := &events.AgentCreated{Agent: id, Kind: events.Guest, Name: name, Host: v.States[v.hostOf(name)].ID}
	if e.Host == id {
		e.Kind = events.Host
	}
	if len(of) > 0 {
		e.Of = v.States[of[0]].ID
	}
	v.Apply(name, e)
}

// Apply records events in a mailbox. It fails the test if they cannot be encoded or applied.
func (v *Harness) Apply(name string, evs ...events.Event) {
	v.TB.Helper()
	for _, e := range evs {
		r := events.Recorded{At: v.Now, Event: e}
		body, err := events.Append(nil, r)
		if err != nil {
			v.TB.Fatal(err)
		}
		stored, err := events.Decode(body, 1)
		if err != nil {
			v.TB.Fatal(err)
		}
		v.Logs[name] = append(v.Logs[name], stored[0])
		if err := v.recalling(name, v.States[name], func() error { return v.States[name].Apply(r) }); err != nil {
			v.TB.Fatalf("%s: %v", name, err)
		}
	}
}

// SetState replaces the state of an agent, and lends it all messages that it has let go of.
func (v *Harness) SetState(name string, s *mailbox.State) {
	v.TB.Helper()
	v.States[name] = s
	v.old[name] = v.recallAll(name, s)
	s.Mail.UseOld(v.old[name])
}

// Messages returns all messages of an agent by number.
func (v *Harness) Messages(name string) []*mailbox.Message {
	v.TB.Helper()
	numbers := make([]uint64, v.States[name].Mail.Index.Len())
	for i := range numbers {
		numbers[i] = uint64(i)
	}
	all, err := v.States[name].Mail.Messages(numbers)
	if err != nil {
		v.TB.Fatal(err)
	}
	return all
}

// recallAll returns the messages that a state has let go of, made from the agent's log.
func (v *Harness) recallAll(name string, s *mailbox.State) map[uint64]*mailbox.Message {
	v.TB.Helper()
	old := map[uint64]*mailbox.Message{}
	for n := range s.Mail.Index.Len() {
		_, err := s.Mail.Messages([]uint64{n})
		if a, absent := errors.AsType[*mailbox.PagedOut](err); absent {
			v.recall(name, s, a, old)
		}
	}
	return old
}

// recall makes absent messages from the agent's log.
func (v *Harness) recall(name string, s *mailbox.State, a *mailbox.PagedOut, old map[uint64]*mailbox.Message) {
	v.TB.Helper()
	for _, p := range append(s.Mail.Index.PagesOf(a.Numbers), a.Pages...) {
		if err := s.Mail.Index.PageIn(p, v.pages[p.Sum]); err != nil {
			v.TB.Fatalf("%s: %v", name, err)
		}
	}
	for _, sum := range a.Tables {
		if err := s.Tables().PageIn(sum, v.pages[mailbox.PageSum(sum)]); err != nil {
			v.TB.Fatalf("%s: %v", name, err)
		}
	}
	for _, n := range a.Numbers {
		var evs []events.Recorded
		for _, version := range s.Mail.Index.Versions(n) {
			evs = append(evs, v.Logs[name][version-1])
		}
		m, err := s.Mail.Rebuild(n, evs)
		if err != nil {
			v.TB.Fatalf("%s, message %d: %v", name, n, err)
		}
		old[n] = m
	}
}

// shed lets a state's index go out of memory, as far as it can be stored.
func (v *Harness) shed(s *mailbox.State) {
	v.TB.Helper()
	parts, err := s.Part(1<<20, v.Now+1)
	if err != nil {
		v.TB.Fatal(err)
	}
	for i, p := range parts.Pages {
		v.pages[p.Sum] = parts.Data[i]
	}
	for _, p := range parts.Tables {
		v.pages[mailbox.PageSum(p.Sum)] = p.Data
	}
	s.Mail.Index.Stored(parts.Pages...)
	s.Mail.Index.PageOut(0)
	s.Tables().Stored(parts.Tables)
	s.Tables().PageOut(0)
}

// recalling calls fn with none but the messages that it needs of those that the state has let go of.
func (v *Harness) recalling(name string, s *mailbox.State, fn func() error) error {
	v.TB.Helper()
	lent := map[uint64]*mailbox.Message{}
	s.Mail.UseOld(lent)
	if v.decided%3 == 0 {
		v.shed(s)
	}
	defer func() {
		v.recall(name, s, &mailbox.PagedOut{Pages: s.Mail.Index.PagedOutPages(), Tables: s.Tables().PagedOut()}, nil)
		old := v.old[name]
		maps.Copy(old, lent)
		s.Mail.UseOld(old)
		for first := uint64(0); first < s.Mail.Index.Len(); {
			some, err := s.Mail.Index.List(first)
			if err != nil {
				v.TB.Fatal(err)
			}
			for _, l := range some { // a message may change without being lent
				if m := old[l.Number]; m != nil && m.Changed != l.Changed {
					v.recall(name, s, &mailbox.PagedOut{Numbers: []uint64{l.Number}}, old)
				}
			}
			first += uint64(len(some))
		}
	}()
	for {
		err := fn()
		a, absent := errors.AsType[*mailbox.PagedOut](err)
		if !absent {
			return err
		}
		v.recall(name, s, a, lent)
	}
}

// Decide runs a command on a mailbox and applies its events. It fails the test if deciding changes the state.
func (v *Harness) Decide(name string, c mailbox.Command) ([]events.Event, error) {
	v.TB.Helper()
	v.decided++
	look := !v.SkipChecksums && v.decided%7 == 0 // a checksum takes longer than all the rest
	s := v.States[name]
	var evs []events.Event
	err := v.recalling(name, s, func() (err error) {
		var before uint64
		if look {
			before = Checksum(s)
		}
		evs, err = s.Decide(c, v.Now, v.IDsOf(name))
		if look && Checksum(s) != before {
			v.TB.Fatalf("%T changed the state by deciding", c)
		}
		return err
	})
	if err == nil {
		v.Apply(name, evs...)
	}
	return evs, err
}

// DecideWithin is Decide within quotas.
func (v *Harness) DecideWithin(name string, l *quota.Limits, c mailbox.Command) error {
	v.TB.Helper()
	before := v.Snapshot(name)
	var evs []events.Event
	err := v.recalling(name, v.States[name], func() (err error) {
		evs, err = v.States[name].DecideWithin(l, c, v.Now, v.IDsOf(name))
		return err
	})
	if v.Snapshot(name) != before {
		v.TB.Fatalf("%T changed the state by deciding", c)
	}
	if err == nil {
		v.Apply(name, evs...)
	}
	return err
}

// Must is Decide for a command that is not refused.
func (v *Harness) Must(name string, c mailbox.Command) []events.Event {
	v.TB.Helper()
	evs, err := v.Decide(name, c)
	if err != nil {
		v.TB.Fatalf("%s, %+v: %v", name, c, err)
	}
	return evs
}

// Snapshot returns the snapshot of a mailbox.
func (v *Harness) Snapshot(name string) string {
	v.TB.Helper()
	b, err := v.States[name].Snapshot()
	if err != nil {
		v.TB.Fatal(err)
	}
	return string(b)
}

// Deliver delivers items until none is left that can be delivered. With twice, each is delivered twice.
func (v *Harness) Deliver(twice bool) {
	v.TB.Helper()
	for again := true; again; {
		again = false
		for _, from := range v.Agents {
			for _, p := range v.Outgoing(from) {
				again = true
				if twice {
					v.DeliverItem(from, p)
				}
				if _, err := v.Decide(from, mailbox.RecordDelivery{Items: []mailbox.OutboxItem{p}, Refused: v.DeliverItem(from, p)}); err != nil {
					v.TB.Fatal(err)
				}
			}
		}
	}
}

// Outgoing returns the items of an agent that can be delivered now.
func (v *Harness) Outgoing(from string) (all []mailbox.OutboxItem) {
	s := v.States[from]
	for _, p := range s.Outbox.Items() {
		to := NodeOf(v.NameOf[p.To])
		switch {
		case p.To.Node == s.ID.Node:
			all = append(all, p)
		case v.Offline[to] || v.Offline[NodeOf(from)]:
		case slices.Contains(slices.Collect(s.Outgoing(p.To.Node)), p):
			all = append(all, p)
		}
	}
	return all
}

// DeliverItem delivers an item to its mailbox. It returns why the mailbox refused it, or "".
func (v *Harness) DeliverItem(from string, p mailbox.OutboxItem) (refused string) {
	v.TB.Helper()
	var c mailbox.Command
	err := v.recalling(from, v.States[from], func() (err error) {
		c, err = v.States[from].CommandFor(p)
		return err
	})
	if err != nil {
		v.TB.Fatal(err)
	}
	if p.To.Node != v.States[from].ID.Node {
		c = v.confirmed(v.NameOf[p.To], v.ToRemote(from, p, c))
	}
	if _, err := v.Decide(v.NameOf[p.To], c); err != nil {
		if v.OnRefusal == nil {
			v.TB.Fatalf("%s refused %v: %v", v.NameOf[p.To], p, err)
		}
		e := parley.AsError(err)
		refused = string(e.Code) + ": " + e.Message
		v.OnRefusal(v.NameOf[p.To], from, refused)
	}
	return refused
}

// isBehind reports whether a mailbox's copy of a form is of an earlier revision than the form at its home.
func (v *Harness) isBehind(name string, form capabilities.ID) bool {
	copied, err := v.States[name].Mail.FindFormID(form)
	if err != nil {
		return false
	}
	home, err := v.States[v.NameOf[copied.Form.From]].Mail.FindFormID(form)
	return err == nil && home.Form.Revision() > copied.Form.Revision()
}

// confirmed fails the test if a delivery says what an agent's log does not confirm. The agent is of the receiver's node.
func (v *Harness) confirmed(to string, c mailbox.Command) mailbox.Command {
	v.TB.Helper()
	s := v.States[to]
	var standing []events.VoteCast
	if votes, ok := c.(mailbox.RemoteVotes); ok {
		if m, err := s.Mail.FindFormID(votes.Form); err == nil {
			standing = m.Form.Votes().Standing
		}
	}
	c, err := mailbox.Confirmed(c, s.ID, standing, func(r mailbox.Report) (ok bool, err error) {
		name := v.NameOf[r.Agent]
		err = v.recalling(name, v.States[name], func() error {
			ok, err = v.States[name].Confirms(r)
			return err
		})
		if w, withdrawn := r.Event.(*events.VoteWithdrawn); withdrawn && err == nil && !ok && v.isBehind(to, w.Form) {
			return false, nil // amended twice since: the copy keeps the vote until it is told of the amendments
		}
		if err != nil || !ok {
			v.TB.Fatalf("%s is told of %s: %#v, which is not so: %v", to, name, r.Event, err)
		}
		return ok, err
	})
	if err != nil {
		v.TB.Fatal(err)
	}
	return c
}

// ToRemote returns a command as another node receives it.
func (v *Harness) ToRemote(from string, p mailbox.OutboxItem, c mailbox.Command) mailbox.Command {
	v.TB.Helper()
	var recorded []events.Recorded
	for _, e := range mailbox.Pack(c) {
		recorded = append(recorded, events.Recorded{Event: e})
	}
	body, err := events.Append(nil, recorded...)
	if err != nil {
		v.TB.Fatal(err)
	}
	if recorded, err = events.Decode(body, len(recorded)); err != nil {
		v.TB.Fatal(err)
	}
	evs := make([]events.Event, len(recorded))
	for i, r := range recorded {
		evs[i] = r.Event
	}
	if c, err = mailbox.Unpack(p.Kind, v.States[from].ID, evs); err != nil {
		v.TB.Fatal(err)
	}
	return c
}

// CheckReplay fails the test if a state is not the fold of its events, or differs after a snapshot.
func (v *Harness) CheckReplay() {
	v.TB.Helper()
	for _, name := range v.Agents {
		now := checkedState{len(v.Logs[name]), v.Snapshot(name), v.States[name].Summary()}
		if v.checked[name] == now {
			continue
		}
		v.checked[name] = now
		again := v.Replay(name)
		encoded, err := again.Snapshot()
		if err != nil {
			v.TB.Fatal(err)
		}
		if string(encoded) != now.snapshot {
			v.TB.Fatalf("the state of %s is not the fold of its events", name)
		}
		restored, err := mailbox.Restore(again.ID, encoded)
		if err != nil {
			v.TB.Fatal(err)
		}
		v.checkOld(name, restored)
		v.checkUsage(name, restored)
		second, err := restored.Snapshot()
		if err != nil {
			v.TB.Fatal(err)
		}
		v.checkParts(name, string(encoded))
		if string(second) != string(encoded) || restored.Summary() != now.summary {
			v.TB.Fatalf("the snapshot of %s does not restore its state", name)
		}
	}
}

// checkParts fails the test if a snapshot in parts does not restore a state with the given snapshot.
func (v *Harness) checkParts(name, want string) {
	v.TB.Helper()
	s := v.Replay(name)
	v.shed(s)
	parts, err := s.Part(0, 0)
	if err != nil {
		v.TB.Fatal(err)
	}
	if s, err = mailbox.Restore(s.ID, parts.Head); err != nil {
		v.TB.Fatal(err)
	}
	v.recall(name, s, &mailbox.PagedOut{Pages: s.Mail.Index.PagedOutPages(), Tables: s.Tables().PagedOut()}, nil)
	got, err := s.Snapshot()
	if err != nil {
		v.TB.Fatal(err)
	}
	if string(got) != want {
		v.TB.Fatalf("the snapshot of %s in parts does not restore its state", name)
	}
}

// Replay returns the fold of an agent's events. It holds no more than it has to.
func (v *Harness) Replay(name string) *mailbox.State {
	v.TB.Helper()
	s := mailbox.New(v.States[name].ID)
	s.Mail.SetPageLength(pageLength)
	s.Names.SetPageLength(pageLength)
	for i, r := range v.Logs[name] {
		lent := map[uint64]*mailbox.Message{}
		s.Mail.UseOld(lent)
		if i%7 == 0 {
			v.shed(s)
		}
		err := s.Apply(r)
		for absent := new(mailbox.PagedOut); errors.As(err, &absent); {
			v.recall(name, s, absent, lent)
			err = s.Apply(r)
		}
		if err != nil {
			v.TB.Fatal(err)
		}
	}
	s.Mail.UseOld(nil)
	v.recall(name, s, &mailbox.PagedOut{Pages: s.Mail.Index.PagedOutPages(), Tables: s.Tables().PagedOut()}, nil)
	return s
}

// checkOld fails the test if a message that is made from the log differs. It compares with the one that the events
// made.
func (v *Harness) checkOld(name string, s *mailbox.State) {
	v.TB.Helper()
	live := v.Messages(name)
	for n, m := range v.recallAll(name, s) {
		if sumOf(reflect.ValueOf(m)) != sumOf(reflect.ValueOf(live[n])) {
			v.TB.Fatalf("message %d of %s is made as\n%s\nand was\n%s", n, name, v.describe(s, m), v.describe(s, live[n]))
		}
	}
}

// checkUsage fails the test if a restored usage differs from the live one.
func (v *Harness) checkUsage(name string, restored *mailbox.State) {
	v.TB.Helper()
	live := v.States[name]
	if a, b := live.Account.Own(v.Now), restored.Account.Own(v.Now); a != b {
		v.TB.Fatalf("%s uses %v, and restored %v", name, a, b)
	}
	if a, b := live.Account.Senders(v.Now), restored.Account.Senders(v.Now); !maps.Equal(a, b) {
		v.TB.Fatalf("%s holds for others %v, and restored %v", name, a, b)
	}
	for by, a := range live.Account.Senders(v.Now) {
		for q, n := range a {
			if n < 0 {
				v.TB.Fatalf("%s holds %d %s for %s", name, n, quota.Quota(q), by)
			}
		}
	}
}
