package capabilities

import (
	"slices"

	"parley/internal/fault"
)

// Mode limits the ways in which a holder may use the target of a reference.
type Mode string

// The modes, from most to least. The zero Mode is Full.
const (
	Full     Mode = ""     // everything its kind allows
	AskOnly  Mode = "ask"  // forms and requests, but no messages
	ReadOnly Mode = "read" // reading, but no mail
)

// Use is a way to use a reference.
type Use string

// The uses.
const (
	UseRead Use = "read"
	UseAsk  Use = "ask"
	UseSend Use = "send"
	UseGive Use = "give"
)

// Facet is the part of a target's authority that a reference carries. The zero Facet is all of it.
type Facet struct {
	Mode  Mode   `json:"mode,omitempty"`
	Until Time   `json:"until,omitzero"` // zero: without end
	Uses  uint32 `json:"uses,omitempty"` // zero: without limit
}

// IsFull reports whether the facet permits every use.
func (f Facet) IsFull() bool { return f == Facet{} }

// Check refuses with INVALID_ARGUMENT a facet whose mode is unknown.
func (f Facet) Check() error {
	switch f.Mode {
	case Full, AskOnly, ReadOnly:
		return nil
	}
	return fault.Refuse(fault.InvalidArgument, "unknown facet %.40q", f.Mode).WithHint("facets are ask and read")
}

// Narrow returns the facet of the uses that both f and g permit.
func (f Facet) Narrow(g Facet) Facet {
	if rank(g.Mode) > rank(f.Mode) {
		f.Mode = g.Mode
	}
	if g.Until != 0 && (f.Until == 0 || g.Until < f.Until) {
		f.Until = g.Until
	}
	if g.Uses != 0 && (f.Uses == 0 || g.Uses < f.Uses) {
		f.Uses = g.Uses
	}
	return f
}

func rank(m Mode) int {
	switch m {
	case Full:
		return 0
	case AskOnly:
		return 1
	case ReadOnly:
		return 2
	}
	return 3 // a mode of a newer program, which permits nothing here
}

// Wider reports whether f is preferred to g if both are held. It compares the modes, then the uses, then the ends. Uses
// already made are not considered.
func (f Facet) Wider(g Facet) bool {
	if f.Mode != g.Mode {
		return rank(f.Mode) < rank(g.Mode)
	}
	if f.Uses != g.Uses {
		return f.Uses-1 > g.Uses-1 // 0 is without limit, and wraps round to the largest
	}
	return uint64(f.Until)-1 > uint64(g.Until)-1
}

// Permits refuses with NOT_PERMITTED a use that the facet does not permit at a time, after so many uses before. A
// facet of an unknown mode permits nothing.
func (f Facet) Permits(use Use, at Time, used uint32) error {
	switch {
	case f.Check() != nil:
		return fault.Refuse(fault.NotPermitted, "the reference is of an unknown facet %.40q", f.Mode)
	case f.Until != 0 && at >= f.Until:
		return fault.Refuse(fault.NotPermitted, "the reference was good until %s", f.Until)
	case f.Uses != 0 && used >= f.Uses && use != UseRead:
		return fault.Refuse(fault.NotPermitted, "the reference was good for %d uses", f.Uses)
	case f.Mode == ReadOnly && (use == UseAsk || use == UseSend):
		return fault.Refuse(fault.NotPermitted, "the reference is for reading only")
	case f.Mode == AskOnly && use == UseSend:
		return fault.Refuse(fault.NotPermitted, "the reference is for asking only")
	}
	return nil
}

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
	var cut []Grant
	for _, g := range l.grants { // a grant comes after its parent
		if !ended[g.ID] && !ended[g.Parent] {
			continue
		}
		ended[g.ID] = true
		if g.Revoked == 0 {
			cut = append(cut, g)
		}
	}
	return cut
}
