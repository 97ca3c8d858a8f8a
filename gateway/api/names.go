package api

import (
	"encoding/json"

	"parley/actors/view"
	"parley/capabilities"
)

// ListNamesRequest lists the names that an agent holds, or those below a path.
type ListNamesRequest struct {
	Acting
	Paging
	Path string `json:"path,omitempty"`
}

// ListNamesResponse has the names, sorted.
type ListNamesResponse struct {
	Names   []string `json:"names"`
	Revoked []string `json:"revoked,omitempty"` // those of them whose reference was revoked
	Paged
}

// LookupRequest asks for the value under a name. Reveal opens sealed values.
type LookupRequest struct {
	Acting
	Name   string `json:"name"`
	Reveal bool   `json:"reveal,omitempty"`
}

// LookupResponse has the value.
type LookupResponse struct {
	Value capabilities.Value `json:"value"`
}

// UnmarshalJSON reads a value as it is shown, masked if it is a secret.
func (r *LookupResponse) UnmarshalJSON(b []byte) error {
	var shown struct {
		Value json.RawMessage `json:"value"`
	}
	err := json.Unmarshal(b, &shown)
	if err == nil && shown.Value != nil {
		r.Value, err = capabilities.ParseShown(shown.Value)
	}
	return err
}

// NameRequest has one name.
type NameRequest struct {
	Acting
	Name string `json:"name"`
}

// LocateResponse has the address of a name's target.
type LocateResponse struct {
	Locator string            `json:"locator"`
	ID      capabilities.ID   `json:"id"`
	Kind    capabilities.Kind `json:"kind,omitempty"`
}

// StoreNameRequest stores a value under a name. A string is a locator or the text of a JSON document. Any other JSON is
// the value itself.
type StoreNameRequest struct {
	Acting
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
}

// RenameNameRequest moves the value of the name Old to the name New. With Force it replaces what stands there.
type RenameNameRequest struct {
	Acting
	Old   string `json:"old"`
	New   string `json:"new"`
	Force bool   `json:"force,omitempty"`
}

// CopyNameRequest stores the value of the name Old under the name New too, narrowed to a facet.
type CopyNameRequest struct {
	Acting
	Old   string            `json:"old"`
	New   string            `json:"new"`
	Facet capabilities.Mode `json:"facet,omitempty"` // ask or read; default everything
	Until capabilities.Time `json:"until,omitzero"`
	Uses  uint32            `json:"uses,omitempty"`

	Narrow capabilities.Facet `json:"narrow,omitzero"` // as Facet, Until and Uses, and what only resources can be narrowed to
}

// ListGrantsRequest lists the references that the agent gave out, oldest first.
type ListGrantsRequest struct {
	Acting
	Paging
}

// ListGrantsResponse has the grants.
type ListGrantsResponse struct {
	Grants []view.Granted `json:"grants"`
	Paged
}

// RevokeRequest revokes a grant, and all references that were derived from it.
type RevokeRequest struct {
	Acting
	Grant string `json:"grant"`
}
