package api

// The subjects of completion.
const (
	CompleteNames    = "names"    // what the agent holds
	CompletePending  = "pending"  // numbers of what waits for the agent's answer
	CompleteRequests = "requests" // and of these, those that ask for a capability in words
	CompleteMessages = "messages" // numbers of what the agent received
	CompleteCarriers = "carriers" // and of these, those that bring a value to keep
	CompleteMail     = "mail"     // numbers of what the agent received or sent
	CompleteOpen     = "open"     // numbers of what the agent asked and is still open
	CompleteGrants   = "grants"   // IDs of what the agent gave out
	CompleteFields   = "fields"   // of one form, as "name:", and behind the colon the values that there are to choose from
	CompleteEdges    = "edges"    // of the values that one message brings

	CompleteInvitations = "invitations" // names for which one is open
)

// CompleteRequest asks how a word that someone is typing may go on. Fields and edges are those of the message that
// FormRef names.
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

// Candidate is a whole word, and what it stands for.
type Candidate struct {
	Word        string `json:"word"`
	Description string `json:"description,omitempty"`
}
