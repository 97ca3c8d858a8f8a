package capabilities

import (
	"maps"
	"slices"
)

// Grant records that one agent gave a reference to another, with a message. Parent is the grant by which the giver held
// it; zero if the giver holds it by no grant.
type Grant struct {
	ID      ID     `json:"grant"`
	Parent  ID     `json:"parent,omitzero"`
	Target  ID     `json:"target"`
	Kind    Kind   `json:"kind"`
	Facet   Facet  `json:"facet,omitzero"`
	Name    string `json:"name"` // the giver's name for the target, or the field or edge of the reference
	To      ID     `json:"to"`
	By      ID     `json:"by"`
	Message ID     `json:"message,omitzero"`
	At      Time   `json:"at"`
	Revoked Time   `json:"revoked,omitzero"`
}

// Ref returns the reference that the receiver of the grant holds.
func (g Grant) Ref() Ref {
	return Ref{Target: g.Target, Kind: g.Kind, Facet: g.Facet, Grant: g.ID}
}

// Ledger is a list of grants, oldest first. The zero Ledger is empty. It is not safe for concurrent use.
type Ledger struct {
	grants []Grant
	byID   map[ID]int
}

// Add adds a grant. A grant that is in the ledger already stays as it is.
func (l *Ledger) Add(g Grant) {
	if _, ok := l.byID[g.ID]; ok {
		return
	}
	if l.byID == nil {
		l.byID = map[ID]int{}
	}
	l.byID[g.ID] = len(l.grants)
	l.grants = append(l.grants, g)
}

// Get returns a grant.
func (l *Ledger) Get(id ID) (Grant, bool) {
	i, ok := l.byID[id]
	if !ok {
		return Grant{}, false
	}
	return l.grants[i], true
}

// All returns the grants, oldest first. The slice is the caller's.
func (l *Ledger) All() []Grant { return slices.Clone(l.grants) }

// Grants returns the grants, oldest first. The slice is the ledger's: it may only be read, and only while the ledger stays as it is.
func (l *Ledger) Grants() []Grant { return l.grants }

// Any reports whether wanted returns true for a grant.
func (l *Ledger) Any(wanted func(Grant) bool) bool { return slices.ContainsFunc(l.grants, wanted) }

// Len returns the number of grants.
func (l *Ledger) Len() int { return len(l.grants) }

// Mark records that a grant is revoked at a time. A grant that is revoked already keeps its time.
func (l *Ledger) Mark(id ID, at Time) {
	if i, ok := l.byID[id]; ok && l.grants[i].Revoked == 0 {
		l.grants[i].Revoked = at
	}
}

// Cut returns the live grants that end with a grant: itself if it is in the ledger, and all derived from it, to any
// depth, oldest first. The grant need not be in the ledger: an agent's ledger has the grants that it gave, and not
// those that it was given.
func (l *Ledger) Cut(id ID) []Grant {
	ended := map[ID]bool{id: true}
	end := func() (news bool) {
		for i := range l.grants {
			if g := &l.grants[i]; ended[g.Parent] && !ended[g.ID] {
				ended[g.ID], news = true, true
			}
		}
		return news
	}
	end()
	if end() { // seldom: some come before their parent, in whatever order another node likes
		l.endAll(ended)
	}
	var cut []Grant
	for _, g := range l.grants {
		if ended[g.ID] && g.Revoked == 0 {
			cut = append(cut, g)
		}
	}
	return cut
}

// endAll adds to the grants that have ended all that derive from them.
func (l *Ledger) endAll(ended map[ID]bool) {
	derived := map[ID][]ID{}
	for _, g := range l.grants {
		derived[g.Parent] = append(derived[g.Parent], g.ID)
	}
	next := slices.Collect(maps.Keys(ended))
	for len(next) > 0 {
		last := len(next) - 1
		of := derived[next[last]]
		next = next[:last]
		for _, id := range of {
			if !ended[id] {
				ended[id], next = true, append(next, id)
			}
		}
	}
}
