package mux

import (
	"bytes"
	"strconv"

	"parley/gateway/api"
)

// Request is the body of a call. It implements api.Request.
type Request struct {
	text  []byte // JSON; nil if the body is a map that was not converted
	plain []byte // that map
}

// plainSize bounds, in bytes, the bodies that are read without a conversion to JSON. The JSON of such a body has less than
// api.MaxBody bytes.
const plainSize = 64 << 10

// ReadRequest returns the request of a body. It converts a large map to JSON.
func ReadRequest(body []byte) (Request, error) {
	if len(body) <= plainSize && !NewReader(body).IsJSON() {
		return Request{plain: body}, nil
	}
	text, err := textOf(body)
	return Request{text: text}, err
}

// textOf returns the JSON of a body, within the bounds of requests.
func textOf(body []byte) ([]byte, error) {
	text, err := ToJSON(body)
	if err == nil && len(text) > api.MaxBody {
		err = api.TooLarge()
	}
	if err == nil {
		err = api.CheckBody(text)
	}
	return text, err
}

// Size returns the bytes of the request.
func (q Request) Size() int { return len(q.text) + len(q.plain) }

// Clone returns a copy that is not part of a message.
func (q Request) Clone() Request { return Request{bytes.Clone(q.text), bytes.Clone(q.plain)} }

// Read implements api.Request. A map in another than the plain spelling is read, or refused, as its JSON.
func (q Request) Read(into any) error {
	if q.plain == nil {
		return api.Decode(q.text, into)
	}
	if readPlain(NewReader(q.plain), into) {
		return nil
	}
	text, err := textOf(q.plain)
	if err != nil {
		return err
	}
	return api.Decode(text, into)
}

// refText reads a number or an ID.
func (r *Reader) refText() string {
	if kindOf(r.next()) == aString {
		return r.String()
	}
	return strconv.FormatUint(r.Uint(), 10)
}
