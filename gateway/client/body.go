package client

import (
	"bytes"
	"encoding/json"

	"parley"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/gateway/mux"
	"parley/internal/pack"
)

// request encodes a request as the body of a frame, for the client's agent unless it names another.
func (c *Client) request(in any) ([]byte, error) {
	b, err := make([]byte, 0, 512), error(nil)
	switch in := in.(type) {
	case nil:
		b = pack.AppendMap(b, 0)
	case json.RawMessage:
		b, err = mux.FromJSON(in)
	default:
		b, err = mux.Append(b, in)
	}
	if err != nil {
		return nil, unwritable(err)
	}
	r := mux.NewReader(b)
	if r.IsMap() {
		named := c.options.As == ""
		n := r.Map()
		pairs := r.Rest()
		for range n {
			named = string(r.Text()) == "as" || named
			r.Raw()
		}
		if !named {
			whole := pack.AppendMap(make([]byte, 0, len(b)+len(c.options.As)+16), n+1)
			b = append(pack.AppendString(pack.AppendString(whole, "as"), c.options.As), pairs...)
		}
	}
	switch {
	case r.Err() != nil: // a node would take it for a malformed frame
		return nil, api.TooDeep()
	case len(b) > MaxBody:
		return nil, parley.Refuse(parley.TooLarge, "a request may have %d bytes at most", MaxBody)
	}
	return b, nil
}

// decode reads the response to an operation. A *json.RawMessage takes it as JSON, in the node's words.
func (a answer) decode(operation string, out any) (err error) {
	if raw, ok := out.(*json.RawMessage); ok {
		*raw, err = a.json()
	} else if a.plain != nil {
		err = mux.Read(a.plain, out)
	} else {
		err = json.Unmarshal(a.body, out)
	}
	if err != nil {
		return unreadable(operation, err)
	}
	return nil
}

// json returns the response as JSON.
func (a answer) json() ([]byte, error) {
	if a.plain != nil {
		return mux.ToJSON(a.plain)
	}
	return bytes.TrimSpace(a.body), nil
}

// recordOf returns the values of an answer.
func recordOf(values any) (map[string]capabilities.Value, error) {
	if record, ok := values.(map[string]capabilities.Value); ok {
		return record, nil
	}
	written, err := json.Marshal(values)
	if err != nil {
		return nil, unwritable(err)
	}
	var each map[string]json.RawMessage
	if err := json.Unmarshal(written, &each); err != nil {
		return nil, parley.Refuse(parley.InvalidArgument, "the values of an answer are a record, not %.80s", written)
	}
	record := make(map[string]capabilities.Value, len(each))
	for name, v := range each {
		if record[name], err = capabilities.ParseJSON(v); err != nil {
			return nil, err
		}
	}
	return record, nil
}
