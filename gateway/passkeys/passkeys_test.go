package passkeys

import (
	"testing"
	"time"

	"parley/capabilities"
	"parley/mailbox/passkey"
)

// TestChallengesAreGoodOnce signs what was asked for once and again, as another agent, and too late. One agent that asks without end loses
// its own oldest challenge, and takes none of another.
func TestChallengesAreGoodOnce(t *testing.T) {
	t.Parallel()
	now := time.Now()
	c := &Challenges{now: func() time.Time { return now }}
	fae, bob := capabilities.ID{ULID: [16]byte{1}}, capabilities.ID{ULID: [16]byte{2}}
	first, own := c.Ask(bob, passkey.Statement{Act: "add"}), c.Ask(fae, passkey.Statement{Act: "add"})
	for range 3 * maxChallenges {
		c.Ask(bob, passkey.Statement{Act: "add"})
	}
	last := c.Ask(bob, passkey.Statement{Act: "add"})
	check := func(what string, of capabilities.ID, statement string, good bool) {
		t.Helper()
		if err := c.Answer(of, statement); (err == nil) != good {
			t.Errorf("%s: %v", what, err)
		}
	}
	check("the oldest of one that asks without end", bob, first, false)
	check("that of another, by it", bob, own, false)
	check("that of another", fae, own, true)
	check("the same again", fae, own, false)
	late := c.Ask(fae, passkey.Statement{Act: "add"})
	now = now.Add(challengeTime)
	check("one that is too old", fae, late, false)
	check("another that is too old", bob, last, false)
	c.Ask(fae, passkey.Statement{Act: "add"})
	if len(c.open) != 1 {
		t.Errorf("%d agents have challenges, want 1", len(c.open))
	}
}
