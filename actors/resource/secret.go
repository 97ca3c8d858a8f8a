package resource

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/capabilities"
	"parley/mailbox"
)

// secret is a secret that is used, and never seen: the node makes the request with it.
//
// It goes out by HTTPS to the hosts that are named, in one header, and into no redirect: the answer to that is given back as it is. It
// is struck out of all that comes back. So that no request has a server give it back piece by piece, or takes another method
// than the one that was allowed, the holder chooses few headers.
type secret struct{}

// Bounds of secrets and their requests.
const (
	leastSecret  = 8       // bytes: a shorter one would be struck out of what has nothing to do with it
	mostSecret   = 4 << 10 // bytes
	longestCall  = time.Minute
	maxAddress   = 4 << 10 // bytes
	maxFields    = 40      // headers of an answer that are given back
	maxFieldSize = 1 << 10 // bytes of one
)

// chosen are the headers that the holder of a secret may set.
var chosen = []string{"Accept", "Accept-Language", "Content-Type", "Idempotency-Key", "If-Match", "If-Modified-Since", "If-None-Match", "If-Unmodified-Since", "Prefer"}

// CheckSecret refuses with INVALID_ARGUMENT a value that cannot be kept as a secret.
func CheckSecret(value string) error {
	switch {
	case len(value) < leastSecret:
		return parley.Refuse(parley.InvalidArgument, "a secret of fewer than %d bytes cannot be struck out of what comes back", leastSecret)
	case len(value) > mostSecret:
		return parley.Refuse(parley.TooLarge, "a secret has %d KiB at most", mostSecret>>10)
	case strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' && r != ' ' || r > '~' }) || strings.TrimSpace(value) != value:
		return parley.Refuse(parley.InvalidArgument, "a secret is one line of ASCII, which a header can have")
	}
	return nil
}

// CheckAuthority refuses with INVALID_ARGUMENT certificates that cannot be read.
func CheckAuthority(pem []byte) error {
	if pem != nil && !x509.NewCertPool().AppendCertsFromPEM(pem) {
		return parley.Refuse(parley.InvalidArgument, "there is no certificate in the file").WithHint("it has them in PEM")
	}
	return nil
}

func (secret) verbs(Resource) []Verb {
	return []Verb{{Name: "request", Words: "makes a request with the secret in it", Takes: []Take{{"url", "text"}, {"method", "text"}, {"headers", "record"}, {"body", "content"}}, Needs: 1}}
}

// Describe implements Kind.
func (k secret) Describe(r Resource, f capabilities.Facet) []Verb { return permitted(f, k.verbs(r)...) }

// Narrow implements Kind.
func (secret) Narrow(f capabilities.Facet) error { return f.CheckFor(capabilities.KindSecret) }

// Revoke implements Kind. The node removes the value.
func (secret) Revoke(Resource) error { return nil }

// Read implements Kind.
func (k secret) Read(r Resource, verb string, in Input) (Call, error) {
	if _, err := find(k.verbs(r), verb, in); err != nil {
		return Call{}, err
	}
	address, err := textIn(in, "url")
	if err != nil {
		return Call{}, err
	}
	u, err := readAddress(address)
	if err != nil {
		return Call{}, err
	}
	method, err := textIn(in, "method")
	if err != nil {
		return Call{}, err
	}
	if method == "" {
		method = http.MethodGet
	}
	if !slices.Contains(mailbox.Methods, method) {
		return Call{}, parley.Refuse(parley.InvalidArgument, "%s is no method: they are %s", parley.Quoted(method, 40), strings.Join(mailbox.Methods, ", "))
	}
	if _, err := headersIn(in); err != nil {
		return Call{}, err
	}
	body, err := contentIn(in, "body")
	if err != nil {
		return Call{}, err
	}
	if len(body) > maxPiece {
		return Call{}, parley.Refuse(parley.TooLarge, "the body of a request has %d KiB at most", maxPiece>>10)
	}
	c := Call{
		Action: capabilities.Action{Verb: verb, Writes: !capabilities.IsReading(method), Path: strings.Trim(u.Path, "/"), Word: u.Host, Method: method},
		Words:  method + " " + u.String(), Input: in,
	}
	if len(body) > 0 {
		c.Words += fmt.Sprintf(" (%d bytes)", len(body))
	}
	return c, nil
}

// readAddress reads an address that has one meaning, for the node and for the server.
func readAddress(text string) (*url.URL, error) {
	wrong := func(why string) (*url.URL, error) {
		return nil, parley.Refuse(parley.InvalidArgument, "%s is no address of a request: %s", parley.Quoted(text, 200), why).WithHint("as in https://api.example/v1/items?page=2")
	}
	u, err := url.Parse(text)
	switch {
	case len(text) > maxAddress:
		return wrong("it is too long")
	case err != nil || u.Opaque != "" || u.Host == "":
		return wrong("it is malformed")
	case u.Scheme != "https":
		return wrong("it does not begin with https://")
	case u.User != nil:
		return wrong("it has a user")
	case strings.ContainsAny(text, "\\ \t\r\n#"):
		return wrong("it has a backslash, a space or a fragment")
	case u.Host != strings.ToLower(u.Host) || strings.HasSuffix(u.Hostname(), "."):
		return wrong("its host is in lower case, without a dot at the end")
	}
	if u.Path == "" {
		u.Path = "/"
	}
	if clean := path.Clean(u.Path); clean != u.Path && clean+"/" != u.Path {
		return wrong("its path has . or .. or an empty part")
	}
	if raw := strings.ToLower(u.EscapedPath()); strings.Contains(raw, "%2f") || strings.Contains(raw, "%5c") || strings.Contains(raw, "%2e") || strings.Contains(raw, "%00") || strings.Contains(u.Path, ";") {
		return wrong("its path has an escaped slash or dot, or a semicolon")
	}
	if u.Port() == "443" {
		u.Host = u.Hostname()
	}
	return u, nil
}

func headersIn(in Input) (http.Header, error) {
	h := http.Header{}
	v, ok := in["headers"]
	if !ok {
		return h, nil
	}
	all, ok := v.AsRecord()
	if !ok {
		return nil, parley.Refuse(parley.InvalidArgument, "headers are a record of texts")
	}
	for name, value := range all {
		s, ok := value.AsString()
		name = http.CanonicalHeaderKey(name)
		switch {
		case !slices.Contains(chosen, name):
			return nil, parley.Refuse(parley.InvalidArgument, "the header %s cannot be set", parley.Quoted(name, 80)).WithHint("these can be: %s", strings.Join(chosen, ", "))
		case !ok || len(s) > maxFieldSize || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }):
			return nil, parley.Refuse(parley.InvalidArgument, "the header %s is no line of ASCII", name)
		}
		h.Set(name, s)
	}
	return h, nil
}

// Invoke implements Kind.
func (secret) Invoke(ctx context.Context, r Resource, c Call, _ capabilities.Facet) (capabilities.Value, error) {
	value, err := r.Secret()
	if err != nil {
		return capabilities.Value{}, err
	}
	u, err := readAddress(must(textIn(c.Input, "url")))
	if err != nil {
		return capabilities.Value{}, err
	}
	headers, err := headersIn(c.Input)
	if err != nil {
		return capabilities.Value{}, err
	}
	body, err := contentIn(c.Input, "body")
	if err != nil {
		return capabilities.Value{}, err
	}
	strike := newStrike(value)
	ctx, cancel := context.WithTimeout(ctx, longestCall)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, c.Action.Method, u.String(), strings.NewReader(string(body)))
	if err != nil {
		return capabilities.Value{}, parley.Refuse(parley.InvalidArgument, "the request is malformed")
	}
	req.Header = headers
	req.Header.Set("User-Agent", "parley")
	req.Header.Set("Accept-Encoding", "identity") // what is compressed cannot be read for the secret
	name, template, _ := strings.Cut(r.Made.Header, ":")
	req.Header.Set(name, strings.Replace(strings.TrimSpace(template), "{}", value, 1))
	client, err := clientFor(r.Made.Authority)
	if err != nil {
		return capabilities.Value{}, err
	}
	defer client.CloseIdleConnections()
	answer, err := client.Do(req)
	if err != nil {
		return capabilities.Value{}, unanswered(err, u.Host)
	}
	defer answer.Body.Close()
	return answerOf(answer, strike)
}

// must returns a text that Read has read already.
func must(s string, _ error) string { return s }

// clientFor returns a client that follows no redirect, keeps no connection and trusts the given certificates alone; nil is those
// of the system.
func clientFor(authority []byte) (*http.Client, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if authority != nil {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(authority) {
			return nil, parley.Refuse(parley.InvalidArgument, "the certificates of the secret's hosts cannot be read")
		}
	}
	return &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: 20 * time.Second}).DialContext, TLSClientConfig: config,
			DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// unanswered says why there is no answer. It has nothing of the request in it.
func unanswered(err error, host string) error {
	why := "it cannot be reached"
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		why = "it does not answer in time"
	case isCertificate(err):
		why = "its certificate is not trusted"
	}
	return parley.Refuse(parley.NodeUnreachable, "%s did not answer: %s", parley.Quoted(host, 200), why)
}

func isCertificate(err error) bool {
	_, failed := errors.AsType[*tls.CertificateVerificationError](err)
	return failed
}

// answerOf returns an answer without the secret.
func answerOf(answer *http.Response, strike *strike) (capabilities.Value, error) {
	result := Input{"status": capabilities.Int(int64(answer.StatusCode))}
	headers := Input{}
	for _, name := range slices.Sorted(keysOf(answer.Header)) {
		if name == "Set-Cookie" || name == "Set-Cookie2" || len(headers) == maxFields { // a cookie may be as good as the secret
			continue
		}
		value := strings.Join(answer.Header[name], ", ")
		name, value = string(strike.out([]byte(name))), string(strike.out([]byte(value)))
		headers[strings.ToLower(parley.Shown(name, 100))] = capabilities.String(parley.Shown(value, maxFieldSize))
	}
	result["headers"] = capabilities.Record(headers)
	for _, coding := range answer.Header["Content-Encoding"] { // there may be several
		if coding != "" && coding != "identity" {
			return capabilities.Value{}, parley.Refuse(parley.NotPermitted, "the answer is compressed against what was asked for: the secret cannot be struck out of it")
		}
	}
	data, err := io.ReadAll(io.LimitReader(answer.Body, int64(maxPiece+strike.longest())))
	if err != nil && len(data) == 0 {
		return capabilities.Value{}, parley.Refuse(parley.NodeUnreachable, "the answer broke off")
	}
	if strike.isPacked(data, maxPacked) {
		return capabilities.Value{}, parley.Refuse(parley.NotPermitted, "the answer is compressed, and has the secret in it or more than is looked into: it cannot be struck out")
	}
	data = strike.out(data)
	result["more"] = capabilities.Bool(len(data) > maxPiece || err != nil)
	if len(data) > maxPiece { // a part of the secret could stand at the end of what was read
		data = whole(data[:maxPiece])
	}
	addContent(result, data)
	return capabilities.Record(result), nil
}

func keysOf(h http.Header) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for name := range h {
			if !yield(name) {
				return
			}
		}
	}
}
