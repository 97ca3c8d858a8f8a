package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"time"
	"unicode/utf8"

	"parley"
	"parley/actors/connlimit"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/gateway/client"
	"parley/gateway/httpd"
)

// Bounds of a request.
const (
	MaxBody  = client.MaxBody
	maxDepth = 48 // objects and lists within each other: those of a value, and of what it stands in

	bodyTime = 30 * time.Second // in which a body comes
	bodyFree = 16 << 10         // bytes of one that are charged to nobody
	bodyStep = 64 << 10         // bytes that are charged at once
)

// bodies keeps the buffers that request bodies are read into. Nothing of a body outlives its call: what
// is decoded from it is copied.
type bodies struct{ pool sync.Pool }

func (b *bodies) get() *bytes.Buffer {
	if buf, ok := b.pool.Get().(*bytes.Buffer); ok {
		return buf
	}
	return new(bytes.Buffer)
}

func (b *bodies) put(buf *bytes.Buffer) {
	if buf.Cap() > 64<<10 { // a few large ones should not stay for ever
		return
	}
	buf.Reset()
	b.pool.Put(buf)
}

// readBody reads a whole body into buf and checks what encoding/json does not: that it is valid UTF-8,
// where the package would quietly put replacement characters, and that it is not nested too deeply.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request, buf *bytes.Buffer, held *charge) error {
	if err := s.fetchBody(w, r, buf, held, MaxBody); err != nil {
		return err
	}
	return checkBody(buf.Bytes())
}

// fetchBody reads a whole body of at most so many bytes into buf. While it comes it counts as one of the account's bodies, and what is large of
// it is charged to the account. A body that does not come in time is given up.
func (s *Server) fetchBody(w http.ResponseWriter, r *http.Request, buf *bytes.Buffer, held *charge, most int64) error {
	if err := held.account.take(api.KindBodies, 1); err != nil {
		return err
	}
	defer held.account.give(api.KindBodies, 1)
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.bodyTime)) // else the server's own bound holds
	if r.ContentLength > most {
		return overflow(r)
	}
	for step := int64(bodyFree); ; step = bodyStep {
		n, err := buf.ReadFrom(io.LimitReader(r.Body, step))
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return parley.Refuse(parley.InvalidArgument, "the request's body did not come within %v", s.bodyTime)
		case err != nil:
			return parley.Refuse(parley.InvalidArgument, "the request's body could not be read")
		case int64(buf.Len()) > most:
			return overflow(r)
		case n < step:
			httpd.SetUse(r, connlimit.Busy)
			return nil
		}
		if err := held.add(bodyStep); err != nil {
			return err
		}
	}
}

// overflow reads on for a while: most clients look at the response only once they have sent everything.
func overflow(r *http.Request) error {
	_, _ = io.CopyN(io.Discard, r.Body, 16*MaxBody) // it is refused in any case
	return tooLarge()
}

func tooLarge() error {
	return parley.Refuse(parley.TooLarge, "a request may have %d bytes at most", MaxBody)
}

func checkBody(body []byte) error {
	if !utf8.Valid(body) {
		return parley.Refuse(parley.InvalidArgument, "the request is not valid UTF-8")
	}
	if capabilities.Nesting(body) > maxDepth {
		return parley.Refuse(parley.TooLarge, "a request may be nested %d deep at most", maxDepth)
	}
	return nil
}

// decode reads a request. No body is the empty request.
func decode(body []byte, req any) error {
	if len(body) == 0 {
		return nil
	}
	err := json.Unmarshal(body, req)
	if err == nil {
		return nil
	}
	if parley.CodeOf(err) != parley.Internal { // what a type of Parley's own found wrong with its text
		return err
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return parley.Refuse(parley.InvalidArgument, "%s: a %s does not belong there", wrong.Field, wrong.Value)
	}
	return parley.Refuse(parley.InvalidArgument, "the request is not JSON: %v", err)
}
