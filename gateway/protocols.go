package gateway

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/events"
	"parley/gateway/a2a"
	"parley/gateway/api"
	"parley/gateway/bridge"
	"parley/gateway/httpd"
)

// serveProtocol serves a request of a protocol of agents, which may be answered by a stream.
func (s *Server) serveProtocol(w http.ResponseWriter, r *http.Request, name string, serve func(http.ResponseWriter, *http.Request, *toolUser)) {
	leave, admitted := s.admit(w, r)
	if !admitted {
		return
	}
	defer leave()
	defer httpd.Survive(w, s.monitor, name)
	p := s.caller(r.Context())
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // the deadline of the body would end a stream
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer s.backend.WhileGood(p, cancel)()
	defer context.AfterFunc(s.draining, cancel)()
	serve(&paced{w, s.bodies.Slowest}, r.WithContext(ctx), &toolUser{s, p})
}

// admit admits a request of a client that must have a token: a browser's session is for pages only. The request has its whole body then,
// checked and bounded, and one of the waits of its account, until leave is called. What is not admitted has been refused.
func (s *Server) admit(w http.ResponseWriter, r *http.Request) (leave func(), admitted bool) {
	if !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ") {
		challenge(w.Header(), "", nil)
		httpd.Refuse(w, parley.Refuse(parley.Unauthenticated, "this is for who shows a token in the Authorization header").
			WithHint("parley token create makes one"), 0)
		return nil, false
	}
	account := s.account(r.Context())
	held := api.ChargeOf(account)
	buf := s.bodies.Get()
	free := func() {
		s.bodies.Put(buf)
		held.Release()
	}
	err := account.Pace()
	if err == nil {
		err = s.bodies.ReadJSON(w, r, buf, held)
	}
	if err == nil {
		err = account.Take(api.KindWaits, 1)
	}
	if err != nil {
		free()
		httpd.Refuse(w, err, 0)
		return nil, false
	}
	r.Body = io.NopCloser(bytes.NewReader(buf.Bytes()))
	return func() {
		account.Give(api.KindWaits, 1)
		free()
	}, true
}

// paced is a ResponseWriter that gives a reader some time for each write, and then cuts it off.
type paced struct {
	http.ResponseWriter
	slowest time.Duration
}

// Write implements http.ResponseWriter.
func (p *paced) Write(b []byte) (int, error) {
	_ = http.NewResponseController(p.ResponseWriter).SetWriteDeadline(time.Now().Add(p.slowest)) // else the server's own bound holds
	return p.ResponseWriter.Write(b)
}

// Flush implements http.Flusher.
func (p *paced) Flush() { _ = http.NewResponseController(p.ResponseWriter).Flush() }

// Unwrap returns the writer for http.ResponseController.
func (p *paced) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// baseOf returns the address by which a request reached this server.
func (s *Server) baseOf(r *http.Request) string { return s.tls.scheme() + "://" + r.Host }

// newA2A creates the server of the Agent2Agent protocol.
func (s *Server) newA2A(o Options) error {
	network, err := bridge.ParseNetwork(string(o.PushNetwork))
	if err != nil {
		return err
	}
	s.a2a, err = a2a.New(a2a.Options{
		Version: o.Version, Pushes: o.Pushes, Network: network, Log: o.Log, Now: time.Now,
		Resume: func(ctx context.Context, of events.TokenRef) (a2a.Client, error) {
			p, err := s.backend.Resume(ctx, of)
			return &toolUser{s, p}, err
		},
	})
	return err
}

// serveCard serves the node's card of the Agent2Agent protocol to anybody.
func (s *Server) serveCard(w http.ResponseWriter, r *http.Request) {
	if !isRead(r.Method) {
		w.Header().Set("Allow", "GET, HEAD")
		httpd.Refuse(w, parley.Refuse(parley.InvalidArgument, "a card is read with GET"), http.StatusMethodNotAllowed)
		return
	}
	card, err := s.a2a.Card(s.baseOf(r))
	if err != nil {
		s.fail(w, r, "card", err)
		return
	}
	sum := sha256.Sum256(card)
	h := w.Header()
	h["Content-Type"] = jsonType
	h.Set("Cache-Control", "max-age="+strconv.Itoa(int(cardTime.Seconds())))
	h.Set("ETag", `"`+hex.EncodeToString(sum[:8])+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(card))
}

// cardTime is how long a client may keep the node's card without a look.
const cardTime = 5 * time.Minute
