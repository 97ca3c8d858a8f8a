package gateway

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/actors/connlimit"
	"parley/gateway/api"
	"parley/gateway/api/openapi"
	"parley/gateway/httpd"
)

// ServeHTTP answers a request on the node's own socket. The caller is the node's host, or the agent of the token that the
// request has.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header()["Date"] = nil // no cache on a socket needs it
	if r.ContentLength == 0 {
		httpd.SetUse(r, connlimit.Busy)
	}
	if token := tokenOf(r); token != "" || r.Header.Get("Authorization") != "" {
		p, err := s.backend.Identify(r.Context(), token)
		if err != nil {
			challenge(w.Header(), token, err)
			httpd.Refuse(w, err, 0)
			return
		}
		s.serveTo(w, r.WithContext(as(r.Context(), p)))
		return
	}
	r, err := s.coders.identify(r)
	if err != nil {
		httpd.Refuse(w, err, http.StatusForbidden)
		return
	}
	name, isCall := strings.CutPrefix(r.URL.Path, api.CallPath)
	switch {
	case !isCall && r.URL.Path == api.HealthPath:
		healthz(w)
	case !isCall && r.URL.Path == api.WebSocketPath:
		s.ws.Serve(w, r, s.caller(r.Context()), s.coders.hold(r))
	case !isCall && r.URL.Path == metricsPath:
		s.serveMetrics(w, r)
	case !isCall && r.URL.Path == api.OpenAPIPath:
		s.serveOpenAPI(w, r)
	case !isCall && (r.URL.Path == api.HoldPath || r.URL.Path == api.HeldAskPath):
		s.holds.serve(w, r)
	case !isCall && r.URL.Path == api.RegisterPath:
		s.coders.serve(w, r)
	case !isCall && r.URL.Path == api.WakePath:
		s.coders.serveWake(w, r)
	case r.URL.Path == TreePath || isCall && name == backupName:
		s.serveHost(w, r, name)
	case !isCall:
		httpd.Refuse(w, parley.Refuse(parley.InvalidArgument, "there is nothing at %.80q", r.URL.Path), http.StatusNotFound)
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		httpd.Refuse(w, parley.Refuse(parley.InvalidArgument, "operations are called with POST"), http.StatusMethodNotAllowed)
	default:
		s.serveCall(w, r, name)
	}
}

// serveHost answers what is for the node's host alone, and no operation.
func (s *Server) serveHost(w http.ResponseWriter, r *http.Request, name string) {
	err := s.caller(r.Context()).May(api.Operation{Name: name, Scope: api.ScopeAdmin, OfNode: true})
	switch {
	case err != nil:
		httpd.Refuse(w, err, 0)
	case name == backupName && r.Method == http.MethodPost:
		s.serveBackup(w, r)
	case name != backupName && r.Method == http.MethodGet:
		s.serveTree(w)
	default:
		httpd.Refuse(w, parley.Refuse(parley.InvalidArgument, "there is nothing to %s at %.80q", r.Method, r.URL.Path), http.StatusMethodNotAllowed)
	}
}

func healthz(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("ok\n")) // the error is that of a client that has gone away
}

// serveOpenAPI writes the OpenAPI document of the operations.
func (s *Server) serveOpenAPI(w http.ResponseWriter, r *http.Request) {
	end, ok := s.beginRead(w, r, "the description is read with GET")
	if !ok {
		return
	}
	defer end()
	buf := s.bodies.Get()
	defer s.bodies.Put(buf)
	if err := httpd.Encode(buf, openapi.Describe(s.version)); err != nil {
		s.fail(w, r, "openapi", err)
		return
	}
	s.respond(w, buf.Bytes())
}

// beginRead takes a place for a request that only reads, until the caller calls end. It refuses other methods with a text,
// and requests beyond the caller's places. It reports whether the request may go on.
func (s *Server) beginRead(w http.ResponseWriter, r *http.Request, refusal string) (end func(), ok bool) {
	if !isRead(r.Method) {
		w.Header().Set("Allow", "GET, HEAD")
		httpd.Refuse(w, parley.Refuse(parley.InvalidArgument, "%s", refusal), http.StatusMethodNotAllowed)
		return nil, false
	}
	account := s.account(r.Context())
	if err := account.Take(api.KindCalls, 1); err != nil {
		httpd.Refuse(w, err, 0)
		return nil, false
	}
	return func() { account.Give(api.KindCalls, 1) }, true
}

// serveCall answers one call.
func (s *Server) serveCall(w http.ResponseWriter, r *http.Request, name string) {
	o, known := s.backend.Operations()[name]
	if !known {
		httpd.Refuse(w, parley.Refuse(parley.InvalidArgument, "there is no operation %.80q", name), http.StatusNotFound)
		return
	}
	started := time.Now()
	defer httpd.Survive(w, s.monitor, name)

	p := s.caller(r.Context())
	err := p.May(o)
	if err == nil {
		err = s.call(w, r, p, o)
	}
	if err != nil {
		s.fail(w, r, name, err)
	}
	s.monitor.Ended(r.Context(), name, err, started)
}

// call reads the request, performs the operation and writes the response.
func (s *Server) call(w http.ResponseWriter, r *http.Request, p api.Principal, o api.Operation) error {
	account := p.Account()
	if err := account.Pace(); err != nil {
		return err
	}
	held := api.ChargeOf(account)
	defer held.Release()
	buf := s.bodies.Get()
	defer s.bodies.Put(buf)
	if err := s.bodies.ReadJSON(w, r, buf, held); err != nil {
		return err
	}
	ctx := httpd.CallContext(r)
	if o.Waits { // the call ends when its client goes away
		var cancel context.CancelFunc
		ctx, cancel = api.UntilStopping(r.Context(), s.draining)
		defer cancel()
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // the deadline of the body would end the wait
	}
	if o.Long {
		control := http.NewResponseController(w)
		_ = control.SetReadDeadline(time.Time{})
		_ = control.SetWriteDeadline(time.Time{})
		defer func() { _ = control.SetWriteDeadline(time.Now().Add(s.bodies.Slowest)) }() // for what is not written yet
	}
	out := s.bodies.Get()
	defer s.bodies.Put(out)
	if err := api.Serve(ctx, s.edges, p, o, api.JSON(buf.Bytes()), held, httpd.EncodeInto(out)); err != nil {
		return err
	}
	if out.Len() <= api.PieceSize {
		httpd.SetUse(r, connlimit.Coming) // a client that does not read it is evicted like one that does not send
	}
	s.respond(w, out.Bytes())
	return nil
}

// respond writes an encoded response.
func (s *Server) respond(w http.ResponseWriter, body []byte) {
	h := w.Header()
	h["Content-Type"] = jsonType
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	s.bodies.Write(w, body)
}

// jsonType is the header of all responses. It must not be changed.
var jsonType = []string{"application/json"}

// fail logs an error, and writes it as the response.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, name string, err error) {
	s.monitor.Failed(r.Context(), name, err)
	httpd.Refuse(w, err, 0)
}
