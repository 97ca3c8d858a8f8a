package mailbox_test

import (
	"encoding/json"
	"testing"

	"github.com/cockroachdb/datadriven"

	"parley"
	"parley/mailbox/mailboxtest"
)

// TestTranscripts runs the transcripts in testdata, which specify a mailbox. "agents" makes agents; fae@A is on node A.
// Time begins at 0 and advances by "wait". Mail is delivered at once, except between "hold" and "deliver", and for a
// node between "disconnect" and "reconnect".
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) {
		v := newTranscript(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			return v.RunCommand(d)
		})
	})
}

// newTranscript returns a harness that runs transcripts.
func newTranscript(t *testing.T) *mailboxtest.Harness {
	v := mailboxtest.New(t)
	v.ReadTerms = func(text string) *parley.MandateTerms {
		terms := new(parley.MandateTerms)
		if err := json.Unmarshal([]byte(text), terms); err != nil {
			t.Fatal(err)
		}
		return terms
	}
	return v
}
