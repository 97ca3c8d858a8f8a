package actors

import (
	"slices"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// scribe writes down events, over and over in the same room.
type scribe struct {
	body     []byte
	recorded []events.Recorded
}

// scribeRoom bounds, in bytes, the room that a scribe keeps.
const scribeRoom = 16 << 10

// section writes down the events that follow a state. What it returns as recorded is good until the next.
func (w *scribe) section(s *mailbox.State, now capabilities.Time, evs ...[]events.Event) (events.Section, []events.Recorded, error) {
	clear(w.recorded)
	w.recorded = w.recorded[:0]
	for _, some := range evs {
		for _, e := range some {
			w.recorded = append(w.recorded, events.Recorded{At: now, Event: e})
		}
	}
	body, err := events.Append(w.body[:0], w.recorded...)
	if err != nil {
		return events.Section{}, nil, err
	}
	if len(body) > maxSectionBytes {
		return events.Section{}, nil, parley.Refuse(parley.TooLarge, "%d bytes at once are over the limit of %d", len(body), maxSectionBytes)
	}
	if w.body = body; cap(body) > scribeRoom {
		w.body = nil
	}
	return events.Section{
		Mailbox: s.ID, First: s.Version + 1, Count: uint32(len(w.recorded)), Body: slices.Clone(body),
	}, w.recorded, nil
}

// firstSection writes down the first events of a new mailbox.
func firstSection(s *mailbox.State, now capabilities.Time, genesis ...events.Event) (events.Section, error) {
	var w scribe
	section, _, err := w.section(s, now, genesis)
	return section, err
}
