package backend

import (
	"context"
	"encoding/base64"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/gateway/api"
)

func storeFile(ctx context.Context, a *actors.Agent, r api.StoreFileRequest) (view.StoredFile, error) {
	data, err := base64.StdEncoding.DecodeString(r.Data)
	if err != nil {
		return view.StoredFile{}, parley.Refuse(parley.InvalidArgument, "the data of a file is in base64, with padding")
	}
	return a.Mail().Files().Store(ctx, actors.FilePart{Upload: r.Upload, Size: r.Size, Offset: r.Offset, Data: data})
}

func fetchFile(ctx context.Context, a *actors.Agent, r api.FetchFileRequest) (view.FilePart, error) {
	ref, err := r.FormRef.Parse()
	if err != nil {
		return view.FilePart{}, err
	}
	return a.Mail().Files().Fetch(ctx, ref, r.File, r.Offset)
}
