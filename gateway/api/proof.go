package api

// ProofRequest has a proof made of the decision on a form that has ended: of one that the agent asked or received.
type ProofRequest struct {
	Acting
	FormRef
	DigestOnly bool `json:"digestOnly,omitempty"` // it does not tell what was shown, but the digest of that
}
