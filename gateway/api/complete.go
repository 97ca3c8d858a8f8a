package api

// CompleteRequest asks how a word that someone is typing may go on. Fields and edges are those of the message that
// Subject names.
type CompleteRequest struct {
	Acting
	Subject
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
