package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"time"

	"parley"
	"parley/gateway/api"
	"parley/gateway/mux"
)

const (
	maxAnswer    = 512 << 20       // bytes of one response
	longestTurn  = 2 * time.Minute // until a response begins, unless its operation is Long: longer than any wait
	idleOverHTTP = time.Minute     // less than in the server
)

// web is the transport to a node's URL.
type web struct {
	base   *url.URL
	token  string
	client http.Client
	turn   time.Duration   // longestTurn
	long   map[string]bool // the operations whose responses may take longer
}

var errNoTurn = errors.New("the node does not answer")

func newWeb(o Options) (*web, error) {
	base, err := url.Parse(o.URL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, parley.Refuse(parley.InvalidArgument, "%.200q is not a node's URL: want http://host:port", o.URL)
	}
	if strings.ContainsFunc(o.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, parley.Refuse(parley.InvalidArgument, "the token has characters that no token has")
	}
	base.Path, base.RawQuery, base.Fragment = strings.TrimSuffix(base.Path, "/"), "", ""
	w := &web{base: base, token: o.Token, turn: longestTurn, long: map[string]bool{}}
	for _, op := range api.Operations() {
		w.long[op.Name] = op.Long
	}
	w.client.Transport = o.Transport
	if o.Transport == nil {
		w.client.Transport = &http.Transport{
			Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true,
			MaxIdleConnsPerHost: 64, IdleConnTimeout: idleOverHTTP, TLSHandshakeTimeout: 10 * time.Second,
		}
	}
	w.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // the token is for this node
	return w, nil
}

func (w *web) absence() string { return "no node answers at " + w.base.Redacted() }
func (w *web) close()          { w.client.CloseIdleConnections() }

func (w *web) exchange(ctx context.Context, operation string, body []byte) (answer, error) {
	text, err := mux.ToJSON(body)
	if err != nil {
		return answer{}, err
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	begins := time.AfterFunc(w.turn, func() { end(errNoTurn) })
	defer begins.Stop()
	if w.long[operation] {
		begins.Stop()
	}
	sent := false
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent = true }})
	r, err := http.NewRequestWithContext(traced, http.MethodPost, w.base.JoinPath(api.CallPath, operation).String(), bytes.NewReader(text))
	if err != nil {
		return answer{}, parley.Refuse(parley.InvalidArgument, "%.80q is no operation", operation)
	}
	r.Header.Set("Content-Type", "application/json")
	if w.token != "" {
		r.Header.Set("Authorization", "Bearer "+w.token)
	}
	resp, err := w.client.Do(r)
	if err != nil {
		if context.Cause(ctx) == errNoTurn {
			err = errNoTurn // and not a cancellation, which would be the caller's
		}
		return answer{}, w.failure(err, sent)
	}
	begins.Stop()
	defer resp.Body.Close() //nolint:errcheck // read to its end or given up
	got, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return answer{}, &lost{sent: true, cause: err}
	case len(got) > maxAnswer:
		return answer{}, parley.Refuse(parley.TooLarge, "the answer to %s has more than %d bytes", operation, maxAnswer)
	}
	return answer{status: resp.StatusCode, body: got}, nil
}

// failure returns the error for a missing response.
func (w *web) failure(err error, sent bool) error {
	if e, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return parley.Refuse(parley.NodeUnreachable, "what answers at %s cannot show that it is the node: %v", w.base.Host, e.Err)
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok && e.IsNotFound {
		return parley.Refuse(parley.NodeUnreachable, "there is no host %s", w.base.Hostname())
	}
	return &lost{sent: sent, cause: err}
}
