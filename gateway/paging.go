package gateway

import (
	"encoding/json"
	"slices"

	"parley"
	"parley/gateway/api"
)

// Bounds of one page.
const (
	maxPage      = 1000
	maxPageBytes = 512 << 10 // and one item, however large
	maxAfter     = 1024
)

// pageOf returns the items of a page, at most so many and of so many bytes. The key of an item is what the next page
// begins after. Items are in the order of their keys, or never go away.
func pageOf[T any](all []T, p api.Paging, key func(T) string) ([]T, api.Paged, error) {
	if len(p.After) > maxAfter {
		return nil, api.Paged{}, parley.Refuse(parley.InvalidArgument, "%.40q… is no \"next\" of a page", p.After)
	}
	if p.After != "" {
		all = all[afterKey(all, p.After, key):]
	}
	limit := p.Limit
	if limit <= 0 || limit > maxPage {
		limit = maxPage
	}
	var room pageRoom
	for i, item := range all {
		full, err := room.isFull(item)
		if err != nil {
			return nil, api.Paged{}, err
		}
		if i == limit || full {
			return all[:i], api.Paged{Next: key(all[i-1])}, nil
		}
	}
	if all == nil {
		all = []T{}
	}
	return all, api.Paged{}, nil
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

// newestFitting returns the last of some items, as many as one page has room for.
func newestFitting[T any](items []T) ([]T, error) {
	var room pageRoom
	for i := len(items) - 1; i >= 0; i-- {
		if full, err := room.isFull(items[i]); full || err != nil {
			return items[i+1:], err
		}
	}
	if items == nil {
		items = []T{}
	}
	return items, nil
}

// oldestFitting returns the first of some items, as many as one page has room for.
func oldestFitting[T any](items []T) ([]T, error) {
	var room pageRoom
	for i, item := range items {
		if full, err := room.isFull(item); full || err != nil {
			return items[:i], err
		}
	}
	return items, nil
}

// pageRoom counts the bytes of a page.
type pageRoom struct {
	bytes int
	any   bool
}

// isFull reports whether there is no room for an item. There always is for the first.
func (r *pageRoom) isFull(item any) (bool, error) {
	text, err := json.Marshal(item)
	if err != nil {
		return false, err
	}
	if r.any && r.bytes+len(text) > maxPageBytes {
		return true, nil
	}
	r.any = true
	r.bytes += len(text)
	return false, nil
}
