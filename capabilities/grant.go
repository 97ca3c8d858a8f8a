package capabilities

import (
	"slices"
)

// Grant records who gave what to whom, and by which message. Parent is the grant by which the giver
// held it; zero if nobody gave it to the giver.
type Grant struct {
	ID      ID     `json:"grant"`
	Parent  ID     `json:"parent,omitzero"`
	Target  ID     `json:"target"`
	Kind    Kind   `json:"kind"`
	Facet   Facet  `json:"facet,omitzero"`
	Name    string `json:"name"` // the giver's name for it, or the field or edge it was given in
	To      ID     `json:"to"`
	By      ID     `json:"by"`
	Message ID     `json:"message,omitzero"`
	At      Time   `json:"at"`
	Revoked Time   `json:"revoked,omitzero"`
}

// Ref is what the receiver of the grant holds by it.
func (g Grant) Ref() Ref {
	return Ref{Target: g.Target, Kind: g.Kind, Facet: g.Facet, Grant: g.ID}
}

// Ledger is a list of grants, oldest first. The zero Ledger is empty. It has one owner.
type Ledger struct {
	grants []Grant
	byID   map[ID]int
}

// Add enters a grant. One that stands there already is left as it is.
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

// Any reports whether a grant is as wanted.
func (l *Ledger) Any(wanted func(Grant) bool) bool { return slices.ContainsFunc(l.grants, wanted) }

// Len returns the number of grants.
func (l *Ledger) Len() int { return len(l.grants) }

// Mark notes that a grant is revoked. The first time stands.
func (l *Ledger) Mark(id ID, at Time) {
	if i, ok := l.byID[id]; ok && l.grants[i].Revoked == 0 {
		l.grants[i].Revoked = at
	}
}

// Cut returns the live grants that fall with the given one: itself if it is here, and all derived from
// it, to any depth, oldest first. The given grant need not be here: an agent that was given it has in its
// ledger only what it gave on.
func (l *Ledger) Cut(id ID) []Grant {
	fallen := map[ID]bool{id: true}
	var cut []Grant
	for _, g := range l.grants { // a grant is always younger than its parent
		if !fallen[g.ID] && !fallen[g.Parent] {
			continue
		}
		fallen[g.ID] = true
		if g.Revoked == 0 {
			cut = append(cut, g)
		}
	}
	return cut
}
