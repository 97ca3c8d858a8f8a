package view

import "parley/capabilities"

// Proof is what shows a decision on a form to somebody who has no access to the node: a file, as docs/proofs.md describes it.
type Proof struct {
	Form  capabilities.ID `json:"form"`
	Proof string          `json:"proof"` // three lines of text, 4 MiB at most

	Signed bool `json:"signed,omitempty"` // who decided signed it with a passkey
}
