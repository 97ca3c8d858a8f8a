package main

import (
	"context"

	"parley/gateway/api"
)

// listAll calls a listing page by page and returns the items of all pages, and no nil.
func listAll[R, T any](ctx context.Context, p *program, operation string, request func(api.Paging) any, page func(R) ([]T, api.Paged)) ([]T, error) {
	c := p.client()
	defer c.Close()
	all := []T{}
	for at := (api.Paging{}); ; {
		var got R
		if err := c.Call(ctx, operation, request(at), &got); err != nil {
			return nil, err
		}
		items, paged := page(got)
		all = append(all, items...)
		if at.After = paged.Next; at.After == "" {
			return all, nil
		}
	}
}
