package outbox

import "sync/atomic"

// Line carries items from one mailbox to another of the same node, in the order of the outbox. When the receiver cannot
// accept one, it accepts none after it. Then the sender begins another line, with all items for that mailbox. So items
// arrive in order, whatever fails.
//
// A failure of the journal ends all lines, because what the receivers accepted last may be lost.
//
// It is safe for concurrent use.
type Line struct {
	failures uint64      // of the journal, when the line began
	refused  atomic.Bool // the receiver has refused a copy
	broken   atomic.Bool
}

// NewLine returns a line that begins after so many failures of the journal.
func NewLine(failures uint64) *Line { return &Line{failures: failures} }

// IsBroken reports whether the line has ended.
func (l *Line) IsBroken() bool { return l.broken.Load() }

// HasRefused reports whether the receiver has refused a copy.
func (l *Line) HasRefused() bool { return l.refused.Load() }

// Takes reports whether a receiver that knows of so many failures looks at an item of the line.
func (l *Line) Takes(failures uint64) bool { return !l.broken.Load() && l.failures == failures }

// Refuse records that the receiver has refused a copy.
func (l *Line) Refuse() { l.refused.Store(true) }

// Break ends the line, and reports whether it had not ended before.
func (l *Line) Break() bool { return !l.broken.Swap(true) }

// Retries reports whether the sender of a line that has just ended begins another one, after so many failures. After a
// failure of the journal that is not the line's part: all items are delivered again.
func (l *Line) Retries(failures uint64) bool { return l.failures == failures }

// Turn says how a mailbox takes an item.
type Turn uint8

// The turns of an item.
const (
	Decide Turn = iota // it is decided on
	Refuse             // it may only be refused: what would be accepted is delayed
	Delay              // it comes again
)

// TurnOf returns the turn of an item that follows a refused copy, or follows none. One that follows is not accepted before
// the refusal is in its sender's log: after a crash the copy would come again, and might be accepted after the item.
func TurnOf(follows, isCopy bool) Turn {
	switch {
	case !follows:
		return Decide
	case isCopy:
		return Refuse
	}
	return Delay
}
