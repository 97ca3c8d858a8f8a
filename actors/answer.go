package actors

import (
	"parley/capabilities"
	"parley/mailbox"
)

// Answer is what an agent says to a form. Values are typed; a string for a capability field is a path of
// the answerer's names. Texts are read by their fields' types, as on a command line. A field stands in one
// of the two. Digest, if it is not "", is of the call that was shown: an approval of another call is not answered.
type Answer struct {
	Which  Which                         `json:"which"`
	Digest string                        `json:"digest,omitempty"`
	Values map[string]capabilities.Value `json:"values,omitempty"`
	Texts  []mailbox.Text                `json:"texts,omitempty"`
}
