package mailbox

import (
	"maps"
	"slices"
	"strings"

	"github.com/oklog/ulid/v2"
	"pgregory.net/rapid"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// harness is some mailboxes that are next to each other, or on several nodes: fae@A is one of node A.
type harness struct {
	tb      rapid.TB
	agents  []string
	states  map[string]*State
	names   map[capabilities.ID]string // for the transcript only
	now     capabilities.Time
	next    uint16
	made    []capabilities.ID
	off     map[string]bool            // nodes that are out of reach
	refuse  func(to, from, why string) // is told of a item that was refused; nil if none may be
	held    bool                       // items stay in the outboxes
	quick   bool                       // Decide is trusted to change nothing
	decided int                        // commands so far
	logs    map[string][]events.Recorded
	taken   map[string]map[string]bool // by agent, the keys of calls that its run has taken
}

func newHarness(tb rapid.TB) *harness {
	return &harness{tb: tb, states: map[string]*State{}, names: map[capabilities.ID]string{}, logs: map[string][]events.Recorded{}, taken: map[string]map[string]bool{}, now: 1}
}

// harnessID is the nth ID that a harness makes.
func harnessID(n uint16) capabilities.ID {
	return capabilities.ID{ULID: ulid.ULID{14: byte(n >> 8), 15: byte(n)}, Node: capabilities.NodeID{31: 1}}
}

func (v *harness) id() capabilities.ID { return v.idOf("")() }

// idOf makes the IDs of an agent's node.
func (v *harness) idOf(agent string) IDs {
	return func() capabilities.ID {
		v.next++
		id := harnessID(v.next)
		if node := nodeOf(agent); node != "" {
			id.Node[31] = node[0]
		}
		v.made = append(v.made, id)
		return id
	}
}

// nodeOf gives the node in an agent's name, "" if there is none.
func nodeOf(agent string) string {
	_, node, _ := strings.Cut(agent, "@")
	return node
}

// hostOf gives the first agent of another's node.
func (v *harness) hostOf(agent string) string {
	return v.agents[slices.IndexFunc(v.agents, func(a string) bool { return nodeOf(a) == nodeOf(agent) })]
}

// add makes an agent. The first of a node is the host of all others there.
func (v *harness) add(name string) {
	id := v.idOf(name)()
	s := New(id)
	v.states[name], v.names[id] = s, name
	v.agents = append(v.agents, name)
	e := &events.AgentCreated{Agent: id, Kind: events.Guest, Name: name, Host: v.states[v.hostOf(name)].ID}
	if e.Host == id {
		e.Kind = events.Host
	}
	v.apply(name, e)
}

func (v *harness) apply(name string, evs ...events.Event) {
	v.tb.Helper()
	for _, e := range evs {
		r := events.Recorded{At: v.now, Event: e}
		body, err := events.Append(nil, r)
		if err != nil {
			v.tb.Fatal(err)
		}
		stored, err := events.Decode(body, 1)
		if err != nil {
			v.tb.Fatal(err)
		}
		v.logs[name] = append(v.logs[name], stored[0])
		if err := v.states[name].Apply(r); err != nil {
			v.tb.Fatalf("%s: %v", name, err)
		}
	}
}

// decide runs a command on a mailbox and fails if Decide changes anything in the state, be it a cache.
func (v *harness) decide(name string, c Command) ([]events.Event, error) {
	v.tb.Helper()
	v.decided++
	look := !v.quick && v.decided%7 == 0 // a sum of all that a state holds takes more than all else
	var before uint64
	if look {
		before = checksum(v.states[name])
	}
	evs, err := v.states[name].Decide(c, v.now, v.idOf(name))
	if look && checksum(v.states[name]) != before {
		v.tb.Fatalf("%T changed the state by deciding", c)
	}
	if err == nil {
		v.apply(name, evs...)
	}
	return evs, err
}

// must is decide for what is not refused.
func (v *harness) must(name string, c Command) []events.Event {
	v.tb.Helper()
	evs, err := v.decide(name, c)
	if err != nil {
		v.tb.Fatalf("%s, %+v: %v", name, c, err)
	}
	return evs
}

func (v *harness) snapshot(name string) string {
	v.tb.Helper()
	b, err := v.states[name].Snapshot()
	if err != nil {
		v.tb.Fatal(err)
	}
	return string(b)
}

// deliver takes all items where they belong, until nobody owes anything that can go. With twice, each goes twice.
func (v *harness) deliver(twice bool) {
	v.tb.Helper()
	for again := true; again; {
		again = false
		for _, from := range v.agents {
			for _, p := range v.outgoing(from) {
				again = true
				if twice {
					v.carry(from, p)
				}
				if _, err := v.decide(from, RecordDelivery{Items: []OutboxItem{p}, Refused: v.carry(from, p)}); err != nil {
					v.tb.Fatal(err)
				}
			}
		}
	}
}

// outgoing gives what an agent owes and can go now.
func (v *harness) outgoing(from string) (all []OutboxItem) {
	s := v.states[from]
	for _, p := range s.Outbox.Items() {
		to := nodeOf(v.names[p.To])
		switch {
		case p.To.Node == s.ID.Node:
			all = append(all, p)
		case v.off[to] || v.off[nodeOf(from)]:
		case slices.Contains(slices.Collect(s.Outgoing(p.To.Node)), p):
			all = append(all, p)
		}
	}
	return all
}

// carry takes a item to its mailbox, and gives why that would not have it.
func (v *harness) carry(from string, p OutboxItem) (refused string) {
	v.tb.Helper()
	c, err := v.states[from].CommandFor(p)
	if err != nil {
		v.tb.Fatal(err)
	}
	if p.To.Node != v.states[from].ID.Node {
		c = v.abroad(from, p, c)
	}
	if _, err := v.decide(v.names[p.To], c); err != nil {
		if v.refuse == nil {
			v.tb.Fatalf("%s would not have %v: %v", v.names[p.To], p, err)
		}
		e := parley.AsError(err)
		refused = string(e.Code) + ": " + e.Message
		v.refuse(v.names[p.To], from, refused)
	}
	return refused
}

// abroad gives what comes out on another node of what goes in here.
func (v *harness) abroad(from string, p OutboxItem, c Command) Command {
	v.tb.Helper()
	var recorded []events.Recorded
	for _, e := range Pack(c) {
		recorded = append(recorded, events.Recorded{Event: e})
	}
	body, err := events.Append(nil, recorded...)
	if err != nil {
		v.tb.Fatal(err)
	}
	if recorded, err = events.Decode(body, len(recorded)); err != nil {
		v.tb.Fatal(err)
	}
	evs := make([]events.Event, len(recorded))
	for i, r := range recorded {
		evs[i] = r.Event
	}
	if c, err = Unpack(p.Kind, v.states[from].ID, evs); err != nil {
		v.tb.Fatal(err)
	}
	return c
}

// checkReplay fails if a state is not the fold of its events, or does not survive a snapshot.
func (v *harness) checkReplay() {
	v.tb.Helper()
	for _, name := range v.agents {
		again := New(v.states[name].ID)
		for _, r := range v.logs[name] {
			if err := again.Apply(r); err != nil {
				v.tb.Fatal(err)
			}
		}
		encoded, err := again.Snapshot()
		if err != nil {
			v.tb.Fatal(err)
		}
		if string(encoded) != v.snapshot(name) {
			v.tb.Fatalf("the state of %s is not the fold of its events", name)
		}
		restored, err := Restore(again.ID, encoded)
		if err != nil {
			v.tb.Fatal(err)
		}
		v.checkUse(name, restored)
		second, err := restored.Snapshot()
		if err != nil {
			v.tb.Fatal(err)
		}
		if string(second) != string(encoded) || restored.Summary() != v.states[name].Summary() {
			v.tb.Fatalf("the snapshot of %s does not restore its state", name)
		}
	}
}

// checkUse fails if what was counted event by event is not what is there to be counted, which Restore counts anew.
func (v *harness) checkUse(name string, restored *State) {
	v.tb.Helper()
	live := v.states[name]
	if a, b := live.Account.Own(v.now), restored.Account.Own(v.now); a != b {
		v.tb.Fatalf("%s uses %v, and counted anew %v", name, a, b)
	}
	if a, b := live.Account.Senders(v.now), restored.Account.Senders(v.now); !maps.Equal(a, b) {
		v.tb.Fatalf("%s holds for others %v, and counted anew %v", name, a, b)
	}
	for by, a := range live.Account.Senders(v.now) {
		for q, n := range a {
			if n < 0 {
				v.tb.Fatalf("%s holds %d %s for %s", name, n, Quota(q), by)
			}
		}
	}
}
