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

// request encodes the request of an operation as the body of a frame, for the client's agent unless it names another. What can be
// asked for or sent once under a key gets one, unless it has one, so that a call whose response was lost can be made again.
func (c *Client) request(operation string, in any) ([]byte, error) {
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
		key := keyOf[operation]
		named, keyed := c.options.As == "", key == ""
		n := r.Map()
		pairs := r.Rest()
		for range n {
			name := string(r.Text())
			named, keyed = named || name == "as", keyed || name == key
			r.Raw()
		}
		var more []byte
		if !named {
			more, n = pack.AppendString(pack.AppendString(more, "as"), c.options.As), n+1
		}
		if !keyed {
			more, n = pack.AppendString(pack.AppendString(more, key), NewKey()), n+1
		}
		if more != nil {
			whole := pack.AppendMap(make([]byte, 0, len(b)+len(more)+8), n)
			b = append(append(whole, more...), pairs...)
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
