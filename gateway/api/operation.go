package api

// Scope is the part of an agent's authority that an operation needs. A caller on the node's own socket
// has all of them.
type Scope string

// The scopes.
const (
	ScopeRead   Scope = "read"   // looks, changes nothing
	ScopeAsk    Scope = "ask"    // sends mail, and ends what the agent asked itself
	ScopeAnswer Scope = "answer" // settles what others asked
	ScopeAdmin  Scope = "admin"  // changes what the agent holds or gave, and the node
)

// Acting is part of every request: it says for which agent the request is made.
type Acting struct {
	As string `json:"as,omitempty"` // the name under which the node's host holds it; "" is the host
}

// Actor returns the name of that agent.
func (a Acting) Actor() string { return a.As }

// Done is the response of an operation that has nothing to tell.
type Done struct{}

// Paging is part of requests that list. Without it the first page is listed.
type Paging struct {
	After string `json:"after,omitempty"` // the "next" of the page before
	Limit int    `json:"limit,omitempty"` // default 1,000, which is the most
}

// Paged is part of their responses.
type Paged struct {
	Next string `json:"next,omitempty"` // there is more: the "after" of the next page
}
