package api

// The subjects of completion.
const (
	CompleteNames    = "names"    // what the agent holds
	CompletePending  = "pending"  // numbers of the messages that wait for the agent's answer
	CompleteRequests = "requests" // of these, the requests for a capability
	CompleteMessages = "messages" // numbers of the messages that the agent received
	CompleteCarriers = "carriers" // of these, those that carry a value
	CompleteMail     = "mail"     // numbers of all messages
	CompleteOpen     = "open"     // numbers of the open forms that the agent asked
	CompleteGrants   = "grants"   // IDs of the references that the agent gave out
	CompleteFields   = "fields"   // of one form, as "name:", with the options behind the colon
	CompleteEdges    = "edges"    // of the values that one message carries

	CompleteInvitations = "invitations" // names of the open invitations
)

// CompleteRequest asks for the completions of a word. Fields and edges are those of the message that FormRef names.
type CompleteRequest struct {
	Acting
	FormRef
	Of     string `json:"of"`
	Prefix string `json:"prefix,omitempty"`
}

// CompleteResponse has the candidates.
type CompleteResponse struct {
	Candidates []Candidate `json:"candidates"`
}

// Candidate is a whole word, with a description.
type Candidate struct {
	Word        string `json:"word"`
	Description string `json:"description,omitempty"`
}
