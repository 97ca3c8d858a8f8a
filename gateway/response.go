package gateway

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	freeWrite = 16 << 10  // what is written without a deadline: to set one takes longer than to write so much
	flushSize = 64 << 10  // how much of a response is kept back until it is known to be all
	maxUnread = 256 << 10 // how much of a body that nobody wanted is read to keep its connection
)

// responseWriter is the response to a visit's request. A small one goes out in one piece with its length; one that
// is larger, or has a trailer, goes out in chunks. Nobody caches on a socket: there is no Date.
type responseWriter struct {
	visit   *visit
	request *http.Request // nil: what came was none
	unasked bool          // the request's body is kept back until it is asked for
	header  http.Header
	status  int    // 0: not said yet
	kept    []byte // of the body, not sent yet
	out     []byte // as it is sent
	begun   bool   // the header is sent
	chunked bool
	last    bool // the connection ends with it
	err     error
}

// begin makes the reply ready for a request.
func (w *responseWriter) begin(v *visit, r *http.Request) {
	if w.header == nil {
		w.header = make(http.Header)
	}
	clear(w.header)
	*w = responseWriter{visit: v, request: r, header: w.header, kept: w.kept[:0], out: w.out[:0]}
	if cap(w.kept)+cap(w.out) > flushSize { // large ones should not stay for ever
		w.kept, w.out = nil, nil
	}
	if r == nil {
		w.last = true
		return
	}
	modern := r.ProtoAtLeast(1, 1)
	w.last = r.Close || !modern
	if modern && r.ContentLength != 0 && strings.EqualFold(r.Header.Get("Expect"), "100-continue") {
		w.unasked = true
		r.Body = expected{r.Body, w}
	}
}

// expected is a body that its sender keeps back until it is asked for.
type expected struct {
	io.ReadCloser
	w *responseWriter
}

func (e expected) Read(p []byte) (int, error) {
	if e.w.unasked {
		e.w.unasked = false
		if _, err := io.WriteString(e.w.visit, "HTTP/1.1 100 Continue\r\n\r\n"); err != nil {
			return 0, err
		}
	}
	return e.ReadCloser.Read(p)
}

func (w *responseWriter) Header() http.Header { return w.header }

// SetReadDeadline and SetWriteDeadline are what http.ResponseController calls. Each large piece that is sent has a deadline anyway.
func (w *responseWriter) SetReadDeadline(t time.Time) error { return w.visit.SetReadDeadline(t) }
func (w *responseWriter) SetWriteDeadline(time.Time) error  { return nil }

func (w *responseWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

func (w *responseWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.err == nil {
		w.kept = append(w.kept, p...)
	}
	if len(w.kept) >= flushSize {
		w.flush(false)
	}
	return len(p), w.err
}

// finish sends what is left, and says whether the connection is good for another request.
func (w *responseWriter) finish() bool {
	if w.request != nil && !w.skipped() {
		w.last = true
	}
	w.WriteHeader(http.StatusOK)
	w.flush(true)
	return w.err == nil && !w.last
}

// skipped reads what is left of the request's body, before the response: most clients look at that only
// once they have sent everything. It reports whether that was all.
func (w *responseWriter) skipped() bool {
	if w.unasked { // whether it comes is not known
		return false
	}
	if w.request.Body == http.NoBody {
		return true
	}
	_, err := io.CopyN(io.Discard, w.request.Body, maxUnread)
	return err == io.EOF
}

// flush sends what was kept, in one write with all that goes before and after it.
func (w *responseWriter) flush(whole bool) {
	if w.err != nil {
		return
	}
	w.out = w.out[:0]
	if !w.begun {
		w.begun = true
		w.sendHeader(whole)
	}
	if w.request != nil && w.request.Method == http.MethodHead {
		w.kept = w.kept[:0]
	}
	if w.chunked && len(w.kept) > 0 {
		w.out = strconv.AppendInt(w.out, int64(len(w.kept)), 16)
		w.out = append(append(append(w.out, "\r\n"...), w.kept...), "\r\n"...)
	} else {
		w.out = append(w.out, w.kept...)
	}
	if w.chunked && whole {
		w.out = append(w.out, "0\r\n"...)
		w.sendFields(func(name string) bool { return name == w.header.Get("Trailer") })
	}
	w.kept = w.kept[:0]
	if len(w.out) <= freeWrite {
		_, w.err = w.visit.Write(w.out)
		return
	}
	_ = w.visit.SetWriteDeadline(time.Now().Add(w.visit.door.writeTime)) // else writing fails too
	_, w.err = w.visit.Write(w.out)
	_ = w.visit.SetWriteDeadline(time.Time{})
}

func (w *responseWriter) sendHeader(whole bool) {
	trailer := w.header.Get("Trailer")
	switch {
	case w.header["Content-Length"] != nil:
	case whole && trailer == "":
		w.header["Content-Length"] = []string{strconv.Itoa(len(w.kept))}
	case w.request.ProtoAtLeast(1, 1):
		w.chunked = true
		w.header["Transfer-Encoding"] = []string{"chunked"}
	}
	w.last = w.last || w.visit.door.closing.Load()
	if w.last {
		w.header["Connection"] = []string{"close"}
	}
	w.out = append(w.out, "HTTP/1.1 "...)
	w.out = strconv.AppendInt(w.out, int64(w.status), 10)
	w.out = append(append(append(w.out, ' '), http.StatusText(w.status)...), "\r\n"...)
	w.sendFields(func(name string) bool { return name != trailer })
}

var oneLine = strings.NewReplacer("\n", " ", "\r", " ")

// sendFields sends those of the header that are wanted, and an empty line.
func (w *responseWriter) sendFields(wanted func(name string) bool) {
	for name, values := range w.header {
		if !wanted(name) {
			continue
		}
		for _, value := range values {
			w.out = append(append(w.out, name...), ": "...)
			w.out = append(append(w.out, oneLine.Replace(value)...), "\r\n"...)
		}
	}
	w.out = append(w.out, "\r\n"...)
}
