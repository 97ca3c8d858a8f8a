package backend

import (
	"context"

	"parley"
	"parley/actors/view"
	"parley/gateway/api"
	"parley/persistence/archive/store"
)

func archiveJournal(ctx context.Context, b *Backend, _ *principal, r api.ArchiveJournalRequest) (view.Archive, error) {
	if r.Before <= 0 {
		return view.Archive{}, parley.Refuse(parley.InvalidArgument, `"before" is missing`)
	}
	var to store.Store
	if r.To != "" {
		var err error
		if to, err = store.Open(r.To); err != nil {
			return view.Archive{}, err
		}
	}
	archived, err := b.node.Archive().MoveBefore(ctx, r.Before)
	if err != nil || to == nil {
		return archived, err
	}
	moved, err := b.node.Archive().Move(ctx, to, nil)
	moved.New = archived.New
	return moved, err
}

func listArchive(_ context.Context, b *Backend, _ *principal, _ api.NodeRequest) (view.Archive, error) {
	return b.node.Archive().List(), nil
}

func moveSegments(ctx context.Context, b *Backend, _ *principal, r api.MoveSegmentsRequest) (view.Archive, error) {
	to, err := store.Open(r.Place)
	if err != nil {
		return view.Archive{}, err
	}
	return b.node.Archive().Move(ctx, to, r.Segments)
}

func fetchSegments(ctx context.Context, b *Backend, _ *principal, r api.MoveSegmentsRequest) (view.Archive, error) {
	if r.Place == "" {
		return b.node.Archive().Fetch(ctx, nil, r.Segments)
	}
	from, err := store.Open(r.Place)
	if err != nil {
		return view.Archive{}, err
	}
	return b.node.Archive().Fetch(ctx, from, r.Segments)
}
