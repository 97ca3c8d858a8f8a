package mailbox

import (
	"parley"
	"parley/capabilities"
)

// Two times.
//
// A clock that ran ahead and was put right is behind the newest time in the log. Nobody can tell from inside whether it was wrong before or
// is wrong now, as on a machine that has just started without one. So each thing goes by the time by which an error costs least:
//
//   - The node's time is the newest of the log and the clock. It never goes back. What is logged has it, IDs have it, and leave ends by
//     it: tokens, rules, mandates, grants, invitations. So what has ended never comes back with a clock that is put back. It stands still
//     until the clock has caught up.
//   - The clock's time is that of people. By it deadlines, reminders, escalations, snoozes, series, absences, claims, leases and reviews
//     are due, and the dates of what is asked and sent are of it. So all these go on at once, neither refused as passed nor early.
//
// An example: the clock was a day ahead until noon. At noon the node's time is tomorrow noon. A form asked now with a reminder after 10 minutes
// and a deadline at one is dated noon, reminded of at ten past and expires at one. Its event in the log has tomorrow noon, behind all
// events before it. A rule that ended meanwhile stays ended. One for eight hours from now is refused: it would be over already by the node's
// time, and would be good for a day longer if it were counted from there.
//
// What was begun in the wrong day was counted from there. It is due when the clock gets there: no earlier than its date says.
//
// A clock that was ahead by years leaves a node that can give no leave with an end before that: it goes on in a backup from before. To judge leave by the
// clock if it was given for an end before the node's time would do, and needs the time of giving wherever an end is looked at.
//
// The second time is an input to Decide, as the first is, and no part of the fold.

// SetClock says the node's time, and how far the clock is behind it: before Decide, where the two differ.
func SetClock(s *State, latest, behind capabilities.Time) { s.latest, s.behind = latest, behind }

// reached returns the time by which leave ends, for a time by either of the two.
func reached(s *State, now capabilities.Time) capabilities.Time { return max(now, s.latest) }

// isByClock reports whether a command is decided by the clock's time.
func isByClock(c Command) bool {
	switch c.(type) {
	case RequestForm, RequestApproval, AmendForm, RemoteAmendment, SettleForm, RemoteAnswer, QueueAnswer, WithdrawVote,
		ExpireForms, RemindForms, EscalateForms, EndReviews, WakeMessages, NoteOverdue, SnoozeMessage,
		PostMessage, ScheduleMessage, FireSchedule, PostDigests, SetAway, ForwardForm, RemoteForward, QueueForward,
		ClaimForm, RemoteClaimForm, RemoteClaim, QueueClaim, AskLease, RenewLease, EndLease, EndLeasesOf, ExpireLeases:
		return true
	}
	return false
}

// checkEnd refuses leave that would be over at once, at the node's time.
func checkEnd(until, now capabilities.Time) error {
	if until == 0 || until > now {
		return nil
	}
	return parley.Refuse(parley.InvalidArgument, "the time %s has passed", until).
		WithHint("give a time after %s: that is the newest in the log, and where the clock is behind it leave ends by that", now)
}
