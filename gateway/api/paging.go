package api

import (
	"encoding/json"
	"slices"

	"parley"
)

// Bounds of one page.
const (
	MaxPage      = 1000      // items
	MaxPageBytes = 512 << 10 // or one item, however large
	maxAfter     = 1024
)

// PageOf returns the items of a page, at most so many and of so many bytes. The key of an item is what the next page
// begins after. Items are in the order of their keys, or never go away.
func PageOf[T any](all []T, p Paging, key func(T) string) ([]T, Paged, error) {
	if err := p.Check(); err != nil {
		return nil, Paged{}, err
	}
	if p.After != "" {
		all = all[afterKey(all, p.After, key):]
	}
	limit := p.Most()
	var room PageRoom
	for i, item := range all {
		full, err := room.IsFull(item)
		if err != nil {
			return nil, Paged{}, err
		}
		if i == limit || full {
			return all[:i], Paged{Next: key(all[i-1])}, nil
		}
	}
	if all == nil {
		all = []T{}
	}
	return all, Paged{}, nil
}

// Check refuses with INVALID_ARGUMENT what cannot be behind a page.
func (p Paging) Check() error {
	if len(p.After) > maxAfter {
		return parley.Refuse(parley.InvalidArgument, "%.40q… is no \"next\" of a page", p.After)
	}
	return nil
}

// Most returns the largest number of items of the page.
func (p Paging) Most() int {
	if p.Limit <= 0 || p.Limit > MaxPage {
		return MaxPage
	}
	return p.Limit
}

// afterKey returns the index of the first item after a key. If the item of that has gone, it is the first with a larger one.
func afterKey[T any](all []T, after string, key func(T) string) int {
	if i := slices.IndexFunc(all, func(item T) bool { return key(item) == after }); i >= 0 {
		return i + 1
	}
	if i := slices.IndexFunc(all, func(item T) bool { return key(item) > after }); i >= 0 {
		return i
	}
	return len(all)
}

// NewestFitting returns the last of some items, as many as one page has room for.
func NewestFitting[T any](items []T) ([]T, error) {
	var room PageRoom
	for i := len(items) - 1; i >= 0; i-- {
		if full, err := room.IsFull(items[i]); full || err != nil {
			return items[i+1:], err
		}
	}
	if items == nil {
		items = []T{}
	}
	return items, nil
}

// PageRoom counts the bytes of a page.
type PageRoom struct {
	bytes int
	any   bool
}

// IsFull reports whether a page has no room for an item. It always has room for the first.
func (r *PageRoom) IsFull(item any) (bool, error) {
	text, err := json.Marshal(item)
	if err != nil {
		return false, err
	}
	if r.any && r.bytes+len(text) > MaxPageBytes {
		return true, nil
	}
	r.any = true
	r.bytes += len(text)
	return false, nil
}
