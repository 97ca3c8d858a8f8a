package origin

import (
	"slices"

	"parley/events"
)

// key is the key of a dialect's form: its session or its run, or else the asker's ID for it.
type key struct{ dialect, session, run, agent, id string }

func keyOf(o *events.Origin) key {
	k := key{dialect: o.Dialect, session: o.Session, run: o.Run, agent: o.Agent}
	if o.Session == "" && o.Run == "" {
		k.id = o.ID
	}
	return k
}

// Index lists the numbers of forms by their origins. The zero value is empty.
type Index struct{ numbers map[key][]uint64 }

// Add enters a form. It has no effect for a number that is listed.
func (x *Index) Add(o *events.Origin, n uint64) {
	if x.numbers == nil {
		x.numbers = map[key][]uint64{}
	}
	k := keyOf(o)
	if i, found := slices.BinarySearch(x.numbers[k], n); !found {
		x.numbers[k] = slices.Insert(x.numbers[k], i, n)
	}
}

// Remove removes a form. It has no effect for a number that is not listed.
func (x *Index) Remove(o *events.Origin, n uint64) {
	k := keyOf(o)
	i, found := slices.BinarySearch(x.numbers[k], n)
	if !found {
		return
	}
	if x.numbers[k] = slices.Delete(x.numbers[k], i, i+1); len(x.numbers[k]) == 0 {
		delete(x.numbers, k)
	}
}

// Of returns the numbers of the forms of an origin, in order: those of the same session, of the same run and agent, or
// with the same ID. Of a dialect alone it returns all. The caller owns the result.
func (x *Index) Of(o *events.Origin) []uint64 {
	k := keyOf(o)
	if k != (key{dialect: k.dialect}) {
		return slices.Clone(x.numbers[k])
	}
	var all []uint64
	for of, numbers := range x.numbers {
		if of.dialect == k.dialect {
			all = append(all, numbers...)
		}
	}
	slices.Sort(all)
	return all
}

// Entry is what an Index has under one key, as it is stored.
type Entry struct {
	Dialect, Session, Run, Agent, ID string
	Numbers                          []uint64
}

// Entries returns what the index has, ordered by the first numbers.
func (x *Index) Entries() []Entry {
	var all []Entry
	for k, numbers := range x.numbers {
		all = append(all, Entry{k.dialect, k.session, k.run, k.agent, k.id, numbers})
	}
	slices.SortFunc(all, func(a, b Entry) int { return slices.Compare(a.Numbers, b.Numbers) })
	return all
}

// Restore enters an entry, whose numbers the index owns from then on.
func (x *Index) Restore(e Entry) {
	if x.numbers == nil {
		x.numbers = map[key][]uint64{}
	}
	x.numbers[key{e.Dialect, e.Session, e.Run, e.Agent, e.ID}] = e.Numbers
}
