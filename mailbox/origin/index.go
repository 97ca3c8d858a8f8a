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
type Index struct {
	dialects map[string]map[key][]uint64 // without empty ones: what is of one dialect costs nothing for the others
}

// keep has a key stand for some numbers, or for nothing.
func (x *Index) keep(k key, numbers []uint64) {
	of := x.dialects[k.dialect]
	switch {
	case len(numbers) == 0:
		if delete(of, k); len(of) == 0 {
			delete(x.dialects, k.dialect)
		}
		return
	case x.dialects == nil:
		x.dialects = map[string]map[key][]uint64{}
	}
	if of == nil {
		of = map[key][]uint64{}
		x.dialects[k.dialect] = of
	}
	of[k] = numbers
}

// Add enters a form. It has no effect for a number that is listed.
func (x *Index) Add(o *events.Origin, n uint64) {
	k := keyOf(o)
	numbers := x.dialects[k.dialect][k]
	if i, found := slices.BinarySearch(numbers, n); !found {
		x.keep(k, slices.Insert(numbers, i, n))
	}
}

// Remove removes a form. It has no effect for a number that is not listed.
func (x *Index) Remove(o *events.Origin, n uint64) {
	k := keyOf(o)
	numbers := x.dialects[k.dialect][k]
	if i, found := slices.BinarySearch(numbers, n); found {
		x.keep(k, slices.Delete(numbers, i, i+1))
	}
}

// Of returns the numbers of the forms of an origin, in order: those of the same session, of the same run and agent, or
// with the same ID. Of a dialect alone it returns all. The caller owns the result.
func (x *Index) Of(o *events.Origin) []uint64 {
	k := keyOf(o)
	if k != (key{dialect: k.dialect}) {
		return slices.Clone(x.dialects[k.dialect][k])
	}
	var all []uint64
	for _, numbers := range x.dialects[k.dialect] {
		all = append(all, numbers...)
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
	for _, of := range x.dialects {
		for k, numbers := range of {
			all = append(all, Entry{k.dialect, k.session, k.run, k.agent, k.id, numbers})
		}
	}
	slices.SortFunc(all, func(a, b Entry) int { return slices.Compare(a.Numbers, b.Numbers) })
	return all
}

// Restore enters an entry, whose numbers the index owns from then on.
func (x *Index) Restore(e Entry) {
	x.keep(key{e.Dialect, e.Session, e.Run, e.Agent, e.ID}, e.Numbers)
}
