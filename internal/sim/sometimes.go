package sim

// state is a rare state that schedules have to meet.
type state int

const (
	twoTakers state = iota
	revokeMeetsForward
	forwardRefused
	crashUndurable
	crashStored
	crashed
	answerDoubled
	answerAfterDeadline
	answerAfterCancel
	snapshotLost
	snapshotUsed
	doubtfulCommit
	diskFull
	ackLost
	lineBroken
	packetLost
	packetLate
	packetEarly
	heldForMint
	quotaMet
	peerQuotaMet
	copyRefused
	followsRefusal
	mailboxCrashed
	forgeryRefused
	clockBack
	deadlinePassed
	answerAmended
	amendmentMeetsAnswer
	amendmentTooLate
	amendedSettled
	copyReminded
	escalated
	escalationUnreachable
	deadlineWins
	queuedBehindFull
	crashAtRefusal
	voteCast
	voteWithdrawn
	votesSettle
	states int = iota
)

var stateNames = [states]string{
	"two agents take one form",
	"a revocation meets a forward under way",
	"a home refuses a forward",
	"a crash between a decision and its commit",
	"a crash after a commit that nobody was told of",
	"a crash",
	"an answer arrives again after it has settled its form",
	"an answer arrives after the deadline",
	"an answer arrives after a cancellation",
	"a snapshot meets a crash or a full disk",
	"a mailbox is made from a snapshot",
	"a commit is stored although the journal has failed",
	"a disk is full",
	"an ack is dropped with the append that it follows",
	"mail within a node is interrupted",
	"a packet is lost",
	"a packet of an earlier epoch or number arrives",
	"a packet arrives before its turn",
	"an item waits for the ack of a grant",
	"an agent meets its quota",
	"another node meets its quota",
	"a mailbox refuses a copy",
	"mail that would be accepted waits for a refusal before it",
	"a mailbox crashes",
	"a node sends mail that it has no grant for",
	"a clock steps back",
	"a form expires",
	"an answer to an old revision meets an amendment",
	"an amendment meets an answer under way",
	"an amendment comes after the settlement",
	"an amended form is settled",
	"a copy is reminded of",
	"a form is escalated",
	"a form cannot be escalated",
	"a deadline wins over a reminder or an escalation",
	"appends wait behind a commit that meets a full disk",
	"a node crashes in a window in which it has refused a copy",
	"an answer is a vote",
	"a vote is withdrawn",
	"several votes settle a form",
}

// String returns the state in words.
func (s state) String() string { return stateNames[s] }

// sometimes notes that a schedule has met a rare state.
func (w *world) sometimes(s state) {
	w.seen[s]++
	if w.log {
		w.trace("    %s", s)
	}
}
