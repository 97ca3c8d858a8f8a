package httpd

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"parley"
	"parley/actors/connlimit"
	"parley/gateway/api"
)

const (
	// BodyStep is how many bytes of a request are charged at once.
	BodyStep = 64 << 10

	keptSize = 64 << 10 // of a buffer that is used again
)

// Bodies reads the bodies of requests and writes those of responses, within limits of time and of an account. It keeps
// the buffers for them. Nothing of a body outlives its call: what is decoded from it is copied.
type Bodies struct {
	Within  time.Duration // in which a request's body comes
	Slowest time.Duration // longest time for a reader to take a piece of a response

	pool sync.Pool
}

// Get returns an empty buffer.
func (b *Bodies) Get() *bytes.Buffer {
	if buf, ok := b.pool.Get().(*bytes.Buffer); ok {
		return buf
	}
	return new(bytes.Buffer)
}

// Put takes a buffer back that is used no more.
func (b *Bodies) Put(buf *bytes.Buffer) {
	if buf.Cap() > keptSize { // a few large ones should not stay for ever
		return
	}
	buf.Reset()
	b.pool.Put(buf)
}

// ReadJSON reads a whole body into buf, with checks beyond those of encoding/json.
func (b *Bodies) ReadJSON(w http.ResponseWriter, r *http.Request, buf *bytes.Buffer, held *api.Charge) error {
	if err := b.Read(w, r, buf, held, api.MaxBody); err != nil {
		return err
	}
	return api.CheckBody(buf.Bytes())
}

// Read reads a whole body of at most so many bytes into buf. While it comes it counts as one of the account's bodies, and
// what is large of it is charged. It refuses a body that does not come in time.
func (b *Bodies) Read(w http.ResponseWriter, r *http.Request, buf *bytes.Buffer, held *api.Charge, most int64) error {
	account := held.Account()
	if err := account.Take(api.KindBodies, 1); err != nil {
		return err
	}
	defer account.Give(api.KindBodies, 1)
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(b.Within)) // else the server's own bound holds
	if r.ContentLength > most {
		return overflow(r)
	}
	for step := int64(api.BodyFree); ; step = BodyStep {
		n, err := buf.ReadFrom(io.LimitReader(r.Body, step))
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return parley.Refuse(parley.InvalidArgument, "the request's body did not come within %v", b.Within)
		case err != nil:
			return parley.Refuse(parley.InvalidArgument, "the request's body could not be read")
		case int64(buf.Len()) > most:
			return overflow(r)
		case n < step:
			SetUse(r, connlimit.Busy)
			return nil
		}
		if err := held.Add(BodyStep); err != nil {
			return err
		}
	}
}

// overflow reads on for a while: most clients look at the response only once they have sent everything.
func overflow(r *http.Request) error {
	_, _ = io.CopyN(io.Discard, r.Body, 16*api.MaxBody) // it is refused in any case
	return api.TooLarge()
}

// Write writes a response's body that is whole. It cuts off a reader that takes none of it for some time.
func (b *Bodies) Write(w http.ResponseWriter, body []byte) {
	if len(body) > api.PieceSize {
		rc := http.NewResponseController(w)
		for ; len(body) > api.PieceSize; body = body[api.PieceSize:] {
			if rc.SetWriteDeadline(time.Now().Add(b.Slowest)) != nil {
				break
			}
			if _, err := w.Write(body[:api.PieceSize]); err != nil {
				return
			}
		}
		_ = rc.SetWriteDeadline(time.Now().Add(b.Slowest)) // else the server's own bound holds
	}
	_, _ = w.Write(body) // the client may have gone away
}

// Encode writes a response as JSON.
func Encode(buf *bytes.Buffer, resp any) error {
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	return enc.Encode(resp)
}

// EncodeInto returns a function that writes a response as JSON into buf, and returns how large that is then.
func EncodeInto(buf *bytes.Buffer) func(resp any) (int, error) {
	return func(resp any) (int, error) {
		err := Encode(buf, resp)
		return buf.Cap(), err
	}
}

// Refuse writes an error as the response, with the status of its code if the status is 0. Nothing of a response may have
// been written before.
func Refuse(w http.ResponseWriter, err error, status int) {
	e := api.Shown(err)
	if status == 0 {
		status = api.HTTPStatus(e.Code)
	}
	body, err := json.Marshal(api.Failure{Error: e})
	if err != nil {
		body = []byte(`{"error":{"code":"INTERNAL","message":"internal error"}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the client may have gone away
}

// Survive turns a panic of one call into its INTERNAL error. It is a bug, but not everyone's. It must be deferred
// directly.
func Survive(w http.ResponseWriter, m api.Monitor, name string) {
	p := recover()
	if p == nil {
		return
	}
	if p == http.ErrAbortHandler { // net/http's own way of cutting a response off
		panic(p)
	}
	err := m.Panicked(name, p)
	Refuse(w, err, 0)
	m.Count(name, err)
}
