package mail

import (
	"context"
	"crypto/x509"
	"io"
	"maps"
	"mime"
	"mime/quotedprintable"
	"net"
	netmail "net/mail"
	"slices"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/capabilities"
	"parley/gateway/bridge"
	"parley/gateway/bridge/bridgetest"
)

// farConn is a connection that is not of this machine, by its address.
type farConn struct{ net.Conn }

func (farConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 25} }

func dialFar(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := bridge.Dialer(bridge.Machine).DialContext(ctx, network, address)
	return farConn{conn}, err
}

// newMail returns a receiver that sends to a server.
func newMail(t *testing.T, scheme, address string, roots *x509.CertPool) *Mail {
	t.Helper()
	server, err := ParseServer(scheme + "://" + address)
	if err != nil {
		t.Fatal(err)
	}
	from, err := ParseAddress("sender", "Parley <parley@example.org>")
	if err != nil {
		t.Fatal(err)
	}
	to, err := ParseAddress("recipient", "me@example.org")
	if err != nil {
		t.Fatal(err)
	}
	return &Mail{Server: server, From: from, To: to, Roots: roots, Dial: bridge.Dialer(bridge.Machine).DialContext}
}

func notice(key string) bridge.Notice {
	return bridge.Notice{Key: key, Title: "Bash", Text: "ls", From: "fae", Status: "open"}
}

// read parses the last mail of a server.
func read(t *testing.T, s *bridgetest.MailServer) (header netmail.Header, text string) {
	t.Helper()
	mails := s.Mails()
	if len(mails) == 0 {
		t.Fatal("no mail was taken")
	}
	m, err := netmail.ReadMessage(strings.NewReader(mails[len(mails)-1].Text))
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(quotedprintable.NewReader(m.Body))
	if err != nil {
		t.Fatal(err)
	}
	return m.Header, strings.ReplaceAll(string(b), "\r\n", "\n")
}

func TestMailNeedsTLSOverANetwork(t *testing.T) {
	t.Parallel()
	plain, secure := bridgetest.NewMailServer(t, false), bridgetest.NewMailServer(t, true)
	for name, c := range map[string]struct {
		scheme, address string
		server          *bridgetest.MailServer
		roots           *x509.CertPool
		near            bool
		encrypted, sent bool
	}{
		"STARTTLS":                      {"smtp", secure.Address, secure, secure.Roots, false, true, true},
		"TLS":                           {"smtps", secure.Secure, secure, secure.Roots, false, true, true},
		"no STARTTLS":                   {"smtp", plain.Address, plain, plain.Roots, false, false, false},
		"STARTTLS, unknown certificate": {"smtp", secure.Address, secure, nil, false, true, false},
		"TLS, unknown certificate":      {"smtps", secure.Secure, secure, nil, false, true, false},
		"this machine":                  {"smtp", plain.Address, plain, nil, true, false, true},
		"this machine, TLS":             {"smtps", plain.Secure, plain, nil, true, true, false},
	} {
		m := newMail(t, c.scheme, c.address, c.roots)
		m.Login, m.Secret = "me", "good"
		if !c.near {
			m.Dial = dialFar
		}
		before := len(c.server.Mails())
		_, err := m.Tell(t.Context(), notice("a"))
		if sent := c.server.Mails()[before:]; (err == nil) != c.sent || (len(sent) == 1) != c.sent {
			t.Errorf("%s: %v, %d mails", name, err, len(sent))
		} else if c.sent && (sent[0].TLS != c.encrypted || sent[0].Login != "me" || sent[0].From != "parley@example.org" || !slices.Equal(sent[0].To, []string{"me@example.org"})) {
			t.Errorf("%s: %+v", name, sent[0])
		}
	}
	m := newMail(t, "smtps", secure.Secure, secure.Roots)
	m.Login, m.Secret = "me", "bad"
	if _, err := m.Tell(t.Context(), notice("a")); err == nil || strings.Contains(err.Error(), "bad") {
		t.Errorf("with a wrong password: %v", err)
	}
}

func TestTextOfStrangersStaysInItsPlace(t *testing.T) {
	t.Parallel()
	s := bridgetest.NewMailServer(t, false)
	m := newMail(t, "smtp", s.Address, nil)
	n := notice("a")
	n.Title = "x\r\nBcc: evil@example.org\r\n\r\nAllow once:\nhttps://evil.example/"
	n.From = "fae\nTo: evil@example.org\n ü"
	n.Text = "first\n.\nDeny:\nhttps://evil.example/\nQUIT"
	n.Buttons = []bridge.Button{{Label: "Allow once", Outcome: "once", URL: "https://node.example/answer/secret/once"}}
	if _, err := m.Tell(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	header, text := read(t, s)
	want := []string{"Auto-Submitted", "Content-Transfer-Encoding", "Content-Type", "Date", "From", "Message-Id", "Mime-Version", "Subject", "To"}
	if got := slices.Sorted(maps.Keys(header)); !slices.Equal(got, want) {
		t.Errorf("the header has %q, want %q", got, want)
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(header.Get("Subject"))
	if want := "Question from fae To: evil@example.org ü: x Bcc: evil@example.org Allow once: https://evil.example/"; err != nil || subject != want {
		t.Errorf("the subject is %q, want %q: %v", subject, want, err)
	}
	links := 0
	for l := range strings.Lines(text) {
		if strings.Contains(l, "evil") && !strings.HasPrefix(l, "> ") {
			t.Errorf("a line of another is not quoted: %q", l)
		}
		if strings.HasPrefix(l, "https://") {
			links++
		}
	}
	if links != 1 || !strings.Contains(text, "\n> QUIT") {
		t.Errorf("the text is %q", text)
	}
	if mails := s.Mails(); len(mails) != 1 || len(mails[0].To) != 1 {
		t.Errorf("the server has %+v", mails)
	}
}

func TestMailsOfAFormAreOneThread(t *testing.T) {
	t.Parallel()
	s := bridgetest.NewMailServer(t, false)
	m := newMail(t, "smtp", s.Address, nil)
	mark, err := m.Tell(t.Context(), notice("f.0.open"))
	if err != nil {
		t.Fatal(err)
	}
	header, _ := read(t, s)
	if header.Get("Message-Id") != "<f.0.open@example.org>" || header.Get("References") != "" {
		t.Errorf("the first has the header %v", header)
	}
	amended := notice("f.1.open")
	amended.Mark = mark
	again, err := m.Tell(t.Context(), amended)
	if err != nil || again != mark {
		t.Fatalf("the mark is %q, then %q: %v", mark, again, err)
	}
	ended := notice("f.1.ended")
	ended.Mark, ended.Status, ended.By, ended.Ended = mark, "answered", "bob\nBcc: evil@example.org", capabilities.At(time.Unix(1, 0))
	if err := m.Settle(t.Context(), ended); err != nil {
		t.Fatal(err)
	}
	header, text := read(t, s)
	if header.Get("Message-Id") != "<f.1.ended@example.org>" || header.Get("In-Reply-To") != "<f.0.open@example.org>" ||
		header.Get("References") != "<f.0.open@example.org>" || header.Get("Subject") != "Re: Question from fae: Bash" {
		t.Errorf("the last has the header %v", header)
	}
	if want := "No answer is needed any more: it was answered by bob Bcc: evil@example.org.\n"; text != want {
		t.Errorf("the last says %q, want %q", text, want)
	}
	before := len(s.Mails())
	ended.Mark = ""
	if err := m.Withdraw(t.Context(), ended); err != nil || len(s.Mails()) != before {
		t.Errorf("the end of a form that was never told was sent: %v", err)
	}
}

// TestSilentServerHoldsNobody checks that the end of the bridge needs no word of the server.
func TestSilentServerHoldsNobody(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // nothing is left to say
	for _, scheme := range []string{"smtp", "smtps"} {
		m := newMail(t, scheme, l.Addr().String(), nil)
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error)
		go func() {
			_, err := m.Tell(ctx, notice("a"))
			failed <- err
		}()
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := <-failed; err == nil {
			t.Errorf("%s: a silent server took a mail", scheme)
		}
		_ = conn.Close()
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]Server{
		"smtp://mail.example": {"mail.example", 587, false}, "smtps://mail.example": {"mail.example", 465, true},
		"smtp://mail.example:25/": {"mail.example", 25, false}, "smtps://[::1]:4650": {"::1", 4650, true},
	} {
		if got, err := ParseServer(address); err != nil || got != want {
			t.Errorf("%s is %+v, %v", address, got, err)
		}
	}
	for _, address := range []string{"", "https://mail.example", "smtp://", "smtp://me:pw@mail.example", "smtp://mail.example:0", "smtp://mail.example/x", "smtp://mail.example:99999"} {
		if got, err := ParseServer(address); parley.CodeOf(err) != parley.InvalidArgument {
			t.Errorf("%s is %+v, %v", address, got, err)
		}
	}
	for _, text := range []string{"", "me", "me@example.org, you@example.org", "me@example.org\nBcc: you@example.org"} {
		if got, err := ParseAddress("sender", text); parley.CodeOf(err) != parley.InvalidArgument {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
}
