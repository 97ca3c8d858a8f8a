package queue

import (
	"parley/actors/view"
	"parley/capabilities"
)

// Asker is what waits for a person of one agent that asks.
type Asker struct {
	Rows     int  // of the queue: what a person is told of, in each count
	Calls    int  // of these rows, those with calls
	Messages int  // in these rows
	Place    int  // of the first of them in the queue, from 1; 0 if there is none
	Stopped  bool // it does nothing else until one of them is decided

	Since capabilities.Time // it is stopped since then; 0 if it is not
}

// Askers returns what waits of each agent that asks, in messages that wait for a person. Each place that counts what an agent asks, or
// names its state, takes it from here.
func Askers(all []view.Message, r *Readings, now capabilities.Time) map[capabilities.ID]Asker {
	of := map[capabilities.ID]Asker{}
	for i, row := range Rank(all, r, now) {
		first := &all[row.Members[0]]
		a := of[first.From]
		if a.Rows == 0 {
			a.Place = i + 1
		}
		a.Rows, a.Messages, a.Stopped = a.Rows+1, a.Messages+len(row.Members), a.Stopped || row.Stopped
		if row.Stopped && (a.Since == 0 || row.Since < a.Since) {
			a.Since = row.Since
		}
		if first.Permission != nil {
			a.Calls++
		}
		of[first.From] = a
	}
	return of
}

// State returns the state of an agent for the person: it waits for them only if they may decide what stops it. What stops it and is
// for others to decide leaves it in the state that it has besides.
func (a Asker) State(s view.AgentStatus) view.AgentState {
	switch {
	case s.State == view.AgentEnded || s.State == view.AgentUnreachable:
		return s.State
	case a.Stopped:
		return view.AgentWaiting
	case s.State == view.AgentWaiting:
		s.Pending, s.More = nil, 0
		s.Settle()
	}
	return s.State
}
