package mailbox_test

import (
	"testing"

	"github.com/cockroachdb/datadriven"

	"parley/mailbox/mailboxtest"
)

// TestTranscripts runs the conversations in testdata, which are the specification of a mailbox. Agents are
// made by "agents", on several nodes if so named (fae@A); time starts at 0 and moves by "wait"; mail is delivered
// by "deliver", or at once unless "hold" is on, or the node is "away" until it is "back".
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) {
		v := mailboxtest.New(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			return v.RunCommand(d)
		})
	})
}
