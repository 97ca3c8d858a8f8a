package bridgetest

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// MailServer is a mail server on this machine that keeps what it takes. Its certificate is for 127.0.0.1, and signed by
// nobody whom the system knows.
type MailServer struct {
	Address string         // host and port
	Secure  string         // host and port at which TLS is spoken from the beginning
	Roots   *x509.CertPool // that know its certificate

	mu      sync.Mutex
	mails   []Mail
	refuse  bool
	refused int
}

// Mail is a mail as the server has it.
type Mail struct {
	From  string
	To    []string
	Text  string // with its header
	TLS   bool
	Login string
}

// NewMailServer runs a server until the test ends. StartTLS has it offer that.
func NewMailServer(t *testing.T, startTLS bool) *MailServer {
	t.Helper()
	certified := httptest.NewTLSServer(nil)
	t.Cleanup(certified.Close)
	roots := x509.NewCertPool()
	roots.AddCert(certified.Certificate())
	m := &MailServer{Roots: roots}
	certificate := &tls.Config{Certificates: certified.TLS.Certificates}
	m.Address = m.serve(t, startTLS, certificate, nil)
	m.Secure = m.serve(t, false, certificate, certificate)
	return m
}

func (m *MailServer) serve(t *testing.T, startTLS bool, certificate, listen *tls.Config) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) { return &mailSession{server: m, conn: c}, nil }))
	s.Domain, s.AllowInsecureAuth, s.EnableSMTPUTF8, s.ErrorLog = "mail.example", true, true, log.New(io.Discard, "", 0)
	if startTLS {
		s.TLSConfig = certificate
	}
	address = l.Addr().String()
	if listen != nil {
		l = tls.NewListener(l, listen)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l) // it ends with its listener
	}()
	t.Cleanup(func() {
		_ = l.Close() // Close does not end a Serve that begins after it
		_ = s.Close()
		<-done
	})
	return address
}

// Mails returns what the server has taken, oldest first.
func (m *MailServer) Mails() []Mail {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]Mail(nil), m.mails...)
}

// Refuse has the server take nothing, or take again.
func (m *MailServer) Refuse(on bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refuse = on
}

// Refused returns how many mails the server has refused.
func (m *MailServer) Refused() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.refused
}

// mailSession is a conversation with a client.
type mailSession struct {
	server *MailServer
	conn   *smtp.Conn
	mail   Mail
}

func (s *mailSession) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *mailSession) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, login, password string) error {
		if password != "good" {
			return errors.New("the password is wrong")
		}
		s.mail.Login = login
		return nil
	}), nil
}

func (s *mailSession) Reset()        { s.mail = Mail{Login: s.mail.Login} }
func (s *mailSession) Logout() error { return nil }

func (s *mailSession) Mail(from string, _ *smtp.MailOptions) error {
	s.mail.From = from
	return nil
}

func (s *mailSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.mail.To = append(s.mail.To, to)
	return nil
}

func (s *mailSession) Data(r io.Reader) error {
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	if s.server.refuse {
		s.server.refused++
		return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 0}, Message: "come again"}
	}
	_, s.mail.TLS = s.conn.TLSConnectionState()
	s.mail.Text = string(b)
	s.server.mails = append(s.server.mails, s.mail)
	return nil
}
