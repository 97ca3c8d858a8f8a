package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/actors/connlimit"
	"parley/gateway/api"
	"parley/gateway/api/openapi"
	"parley/gateway/httpd"
)

// ServeHTTP answers for the node's host: it is for the node's own socket.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header()["Date"] = nil // nobody caches on a socket
	if r.ContentLength == 0 {
		httpd.SetUse(r, connlimit.Busy)
	}
	name, isCall := strings.CutPrefix(r.URL.Path, api.CallPath)
	switch {
	case !isCall && r.URL.Path == api.HealthPath:
		healthz(w)
	case !isCall && r.URL.Path == metricsPath:
		s.serveMetrics(w, r)
	case !isCall && r.URL.Path == api.OpenAPIPath:
		s.serveOpenAPI(w, r)
	case !isCall && r.URL.Path == TreePath && r.Method == http.MethodGet:
		s.serveTree(w)
	case !isCall:
		refuse(w, parley.Refuse(parley.InvalidArgument, "there is nothing at %.80q", r.URL.Path), http.StatusNotFound)
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		refuse(w, parley.Refuse(parley.InvalidArgument, "operations are called with POST"), http.StatusMethodNotAllowed)
	case name == backupName:
		s.serveBackup(w, r)
	default:
		s.serveCall(w, r, name)
	}
}

func healthz(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("ok\n")) // who has gone away does not miss it
}

// serveOpenAPI writes the OpenAPI document of the operations.
func (s *Server) serveOpenAPI(w http.ResponseWriter, r *http.Request) {
	if !isRead(r.Method) {
		w.Header().Set("Allow", "GET, HEAD")
		refuse(w, parley.Refuse(parley.InvalidArgument, "the description is read with GET"), http.StatusMethodNotAllowed)
		return
	}
	account := s.account(r.Context())
	if err := account.take(api.KindCalls, 1); err != nil {
		refuse(w, err, 0)
		return
	}
	defer account.give(api.KindCalls, 1)
	buf := s.bodies.get()
	defer s.bodies.put(buf)
	if err := encode(buf, openapi.Describe(s.version)); err != nil {
		s.fail(w, r, "openapi", err)
		return
	}
	s.respond(w, buf.Bytes())
}

// serveCall takes one call through: read, admit, call, answer.
func (s *Server) serveCall(w http.ResponseWriter, r *http.Request, name string) {
	o, known := s.operations[name]
	if !known {
		refuse(w, parley.Refuse(parley.InvalidArgument, "there is no operation %.80q", name), http.StatusNotFound)
		return
	}
	started := time.Now()
	defer s.survive(w, name)

	err := caller(r.Context()).may(o.Operation)
	if err == nil {
		err = s.call(w, r, o)
	}
	if err != nil {
		s.fail(w, r, name, err)
	}
	s.access(r.Context(), name, err, started)
}

// call reads the request, performs the operation and writes the response.
func (s *Server) call(w http.ResponseWriter, r *http.Request, o operation) error {
	account := s.account(r.Context())
	if err := account.pace(); err != nil {
		return err
	}
	held := &charge{account: account}
	defer held.release()
	buf := s.bodies.get()
	defer s.bodies.put(buf)
	if err := s.readBody(w, r, buf, held); err != nil {
		return err
	}
	ctx := callContext(r)
	if o.Waits { // it ends when its client goes away
		var cancel context.CancelFunc
		ctx, cancel = s.untilDraining(r.Context())
		defer cancel()
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // else it would end the wait
	}
	out := s.bodies.get()
	defer s.bodies.put(out)
	if err := s.produce(ctx, held, o, body(buf.Bytes()), encodeInto(out)); err != nil {
		return err
	}
	if out.Len() <= pieceSize {
		httpd.SetUse(r, connlimit.Coming) // a client that does not read it is evicted like one that does not send
	}
	s.respond(w, out.Bytes())
	return nil
}

// callContext returns the context of a call that goes on when its client goes away: what it asks for may have happened.
func callContext(r *http.Request) context.Context {
	ctx := httpd.CallContext(r)
	if p := caller(r.Context()); p != nil {
		ctx = p.as(ctx)
	}
	return ctx
}

// respond writes a response that is whole: it was encoded before its first byte goes out.
func (s *Server) respond(w http.ResponseWriter, body []byte) {
	h := w.Header()
	h["Content-Type"] = jsonType
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	s.send(w, body)
}

// jsonType is shared by all responses and never written to.
var jsonType = []string{"application/json"}

func encode(buf *bytes.Buffer, resp any) error {
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	return enc.Encode(resp)
}

// fail answers with an error.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, name string, err error) {
	s.note(r.Context(), name, err)
	refuse(w, err, 0)
}

// note takes to the log what is nobody's business outside.
func (s *Server) note(ctx context.Context, name string, err error) {
	if err != nil && parley.CodeOf(err) == parley.Internal && !isContextEnd(err) {
		s.log.LogAttrs(ctx, slog.LevelError, "operation failed", slog.String("operation", name), slog.Any("error", err))
	}
}

// survive turns a panic of one call into its INTERNAL error. It is a bug, but not everyone's.
func (s *Server) survive(w http.ResponseWriter, name string) {
	p := recover()
	if p == nil {
		return
	}
	if p == http.ErrAbortHandler { // net/http's own way of cutting a response off
		panic(p)
	}
	err := s.panicked(name, p)
	refuse(w, err, 0)
	s.metrics.called(name, err)
}

// panicked takes a panic of one call to the log and gives the error that its caller is told.
func (s *Server) panicked(name string, p any) error {
	s.log.Error("operation panicked", "operation", name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	return parley.Refuse(parley.Internal, "internal error").WithHint("the node's log has the details")
}

// access counts a call and notes it, never what was in it.
func (s *Server) access(ctx context.Context, name string, err error, started time.Time) {
	s.metrics.called(name, err)
	if !s.log.Enabled(ctx, slog.LevelDebug) {
		return
	}
	s.log.LogAttrs(ctx, slog.LevelDebug, "call", slog.String("operation", name),
		slog.String("code", string(parley.CodeOf(err))), slog.Duration("took", time.Since(started)))
}
