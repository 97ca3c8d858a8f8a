package mailbox

import (
	"slices"

	"github.com/oklog/ulid/v2"
	"pgregory.net/rapid"

	"parley/capabilities"
	"parley/events"
)

// village is some mailboxes that are next to each other.
type village struct {
	tb     rapid.TB
	agents []string
	states map[string]*State
	names  map[capabilities.ID]string // for the transcript only
	now    capabilities.Time
	next   uint16
	held   bool // parcels stay in the outboxes
	quick  bool // Decide is trusted to change nothing
	logs   map[string][]events.Recorded
}

func newVillage(tb rapid.TB) *village {
	return &village{tb: tb, states: map[string]*State{}, names: map[capabilities.ID]string{}, logs: map[string][]events.Recorded{}, now: 1}
}

// villageID is the nth ID that a village makes.
func villageID(n uint16) capabilities.ID {
	return capabilities.ID{ULID: ulid.ULID{14: byte(n >> 8), 15: byte(n)}, Node: capabilities.NodeID{31: 1}}
}

func (v *village) id() capabilities.ID {
	v.next++
	return villageID(v.next)
}

// add makes an agent. The first is the host of all others, and each knows those before it by name.
func (v *village) add(name string) {
	id := v.id()
	s := New(id)
	e := &events.AgentCreated{Agent: id, Kind: events.Guest, Name: name}
	if len(v.agents) == 0 {
		e.Kind, e.Host = events.Host, id
	} else {
		e.Host = v.states[v.agents[0]].ID
	}
	v.states[name], v.names[id] = s, name
	v.agents = append(v.agents, name)
	v.apply(name, e)
}

func (v *village) apply(name string, evs ...events.Event) {
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

// decide runs a command on a mailbox and checks that a refusal leaves no trace.
func (v *village) decide(name string, c Command) ([]events.Event, error) {
	v.tb.Helper()
	before := ""
	if !v.quick {
		before = v.snapshot(name)
	}
	evs, err := v.states[name].Decide(c, v.now, v.id)
	if !v.quick && v.snapshot(name) != before {
		v.tb.Fatalf("%T changed the state by deciding", c)
	}
	if err == nil {
		v.apply(name, evs...)
	}
	return evs, err
}

// must is decide for what is not refused.
func (v *village) must(name string, c Command) []events.Event {
	v.tb.Helper()
	evs, err := v.decide(name, c)
	if err != nil {
		v.tb.Fatalf("%s, %+v: %v", name, c, err)
	}
	return evs
}

func (v *village) snapshot(name string) string {
	v.tb.Helper()
	b, err := v.states[name].Snapshot()
	if err != nil {
		v.tb.Fatal(err)
	}
	return string(b)
}

// deliver takes all parcels where they belong, until nobody owes anything. With twice, each goes twice.
func (v *village) deliver(twice bool) {
	v.tb.Helper()
	for again := true; again; {
		again = false
		for _, from := range v.agents {
			for _, p := range slices.Clone(v.states[from].Outbox()) {
				again = true
				v.carry(from, p)
				if twice {
					v.carry(from, p)
				}
				if _, err := v.decide(from, Delivered{Parcels: []Parcel{p}}); err != nil {
					v.tb.Fatal(err)
				}
			}
		}
	}
}

func (v *village) carry(from string, p Parcel) {
	v.tb.Helper()
	c, err := v.states[from].Open(p)
	if err != nil {
		v.tb.Fatal(err)
	}
	if _, err := v.decide(v.names[p.To], c); err != nil {
		v.tb.Fatalf("%s would not have %v: %v", v.names[p.To], p, err)
	}
}

// checkReplay fails if a state is not the fold of its events, or does not survive a snapshot.
func (v *village) checkReplay() {
	v.tb.Helper()
	for _, name := range v.agents {
		again := New(v.states[name].ID)
		for _, r := range v.logs[name] {
			if err := again.Apply(r); err != nil {
				v.tb.Fatal(err)
			}
		}
		image, err := again.Snapshot()
		if err != nil {
			v.tb.Fatal(err)
		}
		if string(image) != v.snapshot(name) {
			v.tb.Fatalf("the state of %s is not the fold of its events", name)
		}
		restored, err := Restore(again.ID, image)
		if err != nil {
			v.tb.Fatal(err)
		}
		second, err := restored.Snapshot()
		if err != nil {
			v.tb.Fatal(err)
		}
		if string(second) != string(image) || restored.Summary() != v.states[name].Summary() {
			v.tb.Fatalf("the snapshot of %s does not restore its state", name)
		}
	}
}
