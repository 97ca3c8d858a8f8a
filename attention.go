package parley

import (
	"strconv"
	"strings"

	"parley/events"
)

// Attention is what an agent has set of how mail reaches the sessions of its coding agent: which of them get it, when nothing comes by
// itself, and what may come in the middle of a turn.
type Attention = events.Attention

// What Attention says beside hours and priorities.
const (
	QuietAlways     = "always"
	QuietNever      = "never" // as a setting; it is kept as ""
	NoInterruptions = "none"
)

// minutesOfDay are those of a day without a change of the clock.
const minutesOfDay = 24 * 60

// QuietHours returns the minutes of a day from which on and until which nothing comes by itself. It refuses with INVALID_ARGUMENT
// what is none; a day has them past midnight if the second is not after the first.
func QuietHours(quiet string) (from, until int, err error) {
	begin, end, ok := strings.Cut(quiet, "-")
	if ok {
		if from, ok = minuteOf(begin); ok {
			until, ok = minuteOf(end)
		}
	}
	if !ok || from == until {
		return 0, 0, Refuse(InvalidArgument, "%s is no time of quiet", Quoted(quiet, 40)).WithHint("as in 22:00-07:00, always or never")
	}
	return from, until, nil
}

// minuteOf returns the minute of the day of a time as 22:00.
func minuteOf(text string) (int, bool) {
	hour, minute, ok := strings.Cut(text, ":")
	if !ok || len(hour) != 2 || len(minute) != 2 {
		return 0, false
	}
	h, errHour := strconv.ParseUint(hour, 10, 8)
	m, errMinute := strconv.ParseUint(minute, 10, 8)
	return int(h*60 + m), errHour == nil && errMinute == nil && h < 24 && m < 60
}

// QuietFor returns how many minutes a time of quiet goes on at a minute of the day: 0 if there is none then, and -1 if it has no end.
// What is set is valid.
func QuietFor(quiet string, minute int) int {
	switch quiet {
	case "":
		return 0
	case QuietAlways:
		return -1
	}
	from, until, err := QuietHours(quiet)
	if err != nil {
		return 0
	}
	since, lasts := (minute-from+minutesOfDay)%minutesOfDay, (until-from+minutesOfDay)%minutesOfDay
	return max(0, lasts-since)
}

// MayInterrupt reports whether a message of a priority may come in the middle of a turn, by what is set as Interruptions.
func MayInterrupt(interruptions string, p Priority) bool {
	switch interruptions {
	case NoInterruptions:
		return false
	case "":
		return p == events.Urgent
	}
	return p.Rank() <= Priority(interruptions).Rank()
}
