package mail

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	netmail "net/mail"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"text/template"
	"time"

	gomail "github.com/wneessen/go-mail"

	"parley"
	"parley/gateway/bridge"
)

// patience bounds one conversation with the server.
const patience = 30 * time.Second

// Mail is a receiver. It implements bridge.Receiver.
type Mail struct {
	Server Server
	From   *netmail.Address
	To     *netmail.Address
	Login  string // the name at the server; "" for none
	Secret string // the password
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
	Roots  *x509.CertPool // the authorities for the server's certificate; nil for those of the system
}

// Server is a mail server that takes mail.
type Server struct {
	Host string
	Port int
	TLS  bool // from the beginning, not by STARTTLS
}

// ParseServer parses an address such as smtps://mail.example or smtp://mail.example:587.
func ParseServer(address string) (Server, error) {
	refusal := parley.Refuse(parley.InvalidArgument, "%s is no address of a mail server", parley.Quoted(address, 80)).
		WithHint("it looks like smtps://mail.example:465, or smtp://mail.example:587 for STARTTLS")
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		return Server{}, refusal
	}
	port, ok := map[string]int{"smtp": 587, "smtps": 465}[u.Scheme]
	if given := u.Port(); given != "" && ok {
		port, err = strconv.Atoi(given)
	}
	if err != nil || !ok || port < 1 || port > 65535 {
		return Server{}, refusal
	}
	return Server{Host: u.Hostname(), Port: port, TLS: u.Scheme == "smtps"}, nil
}

// ParseAddress parses a mail address, as of a sender or recipient. What says whose it is.
func ParseAddress(what, text string) (*netmail.Address, error) {
	a, err := netmail.ParseAddress(text)
	if err != nil {
		return nil, parley.Refuse(parley.InvalidArgument, "%s is no mail address of a %s", parley.Quoted(text, 80), what).WithHint("--from and --to have one address each")
	}
	return a, nil
}

// body is the text of a mail. What others wrote is quoted, below the links, so that it cannot pass for them.
var body = template.Must(template.New("body").Parse(`{{if .Buttons}}{{range .Buttons}}{{.Label}}:
{{.URL}}

{{end}}A link asks before it answers, and the first answer counts.
{{end}}{{with .Page}}The question is also on {{.}}
{{else}}{{if .Open}}Answer it on the page of the node.
{{end}}{{end}}{{with .Until}}It waits until {{.}}.
{{end}}{{with .Ended}}{{.}}
{{end}}{{with .Quoted}}
{{.}}
{{end}}`))

type content struct {
	Buttons []bridge.Button
	Open    bool
	Page    string
	Until   string
	Ended   string
	Quoted  string
}

// Tell implements bridge.Receiver. The mark is the ID of the first mail of a form.
func (m *Mail) Tell(ctx context.Context, n bridge.Notice) (mark string, err error) {
	title := n.Title
	if n.Kind == "approval" {
		title = "tool: " + title // whose name is not to begin a line
	}
	c := content{Buttons: n.Buttons, Open: true, Page: n.Page, Quoted: quote(title + "\n" + n.Text)}
	if n.Deadline != 0 {
		c.Until = n.Deadline.String()
	}
	id := n.Key + "@" + domain(m.From)
	if err := m.send(ctx, n, id, c); err != nil {
		return "", err
	}
	if n.Mark != "" {
		return n.Mark, nil
	}
	return id, nil
}

// Withdraw implements bridge.Receiver.
func (m *Mail) Withdraw(ctx context.Context, n bridge.Notice) error { return m.end(ctx, n) }

// Settle implements bridge.Receiver. A mail cannot be taken back, so none says that a form waits for others.
func (m *Mail) Settle(ctx context.Context, n bridge.Notice) error {
	if n.Waits() {
		return nil
	}
	return m.end(ctx, n)
}

// end tells how a form has ended, to who was told that it was open.
func (m *Mail) end(ctx context.Context, n bridge.Notice) error {
	if n.Mark == "" {
		return nil
	}
	_, text := n.Done()
	return m.send(ctx, n, n.Key+"@"+domain(m.From), content{Ended: line(text) + "."})
}

// send sends a mail of a form. Its ID is the same for each try, so that a server or reader can drop a second copy.
func (m *Mail) send(ctx context.Context, n bridge.Notice, id string, c content) error {
	subject := "Question from " + n.From
	if n.Title != "" {
		subject += ": " + n.Title
	}
	subject = line(subject)
	msg := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	msg.FromMailAddress(m.From)
	msg.ToMailAddress(m.To)
	msg.SetDate()
	msg.SetMessageIDWithValue(id)
	msg.SetGenHeader("Auto-Submitted", "auto-generated")
	if n.Mark != "" {
		subject = "Re: " + subject
		msg.SetGenHeader(gomail.HeaderInReplyTo, "<"+n.Mark+">")
		msg.SetGenHeader(gomail.HeaderReferences, "<"+n.Mark+">")
	}
	msg.Subject(subject)
	var text bytes.Buffer
	if err := body.Execute(&text, c); err != nil {
		return err
	}
	msg.SetBodyString(gomail.TypeTextPlain, text.String())
	return m.deliver(ctx, msg)
}

// deliver hands a mail to the server. It ends with ctx, whatever the server does.
func (m *Mail) deliver(ctx context.Context, msg *gomail.Msg) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, err := m.Dial(ctx, "tcp", net.JoinHostPort(m.Server.Host, strconv.Itoa(m.Server.Port)))
	if err != nil {
		return err
	}
	defer conn.Close()                                          //nolint:errcheck // what counts has been said by then
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })() //nolint:errcheck // it ends what is under way
	client, err := m.client(ctx, conn)
	if err != nil {
		return err
	}
	if err := client.DialWithContext(ctx); err != nil {
		return err
	}
	err = client.Send(msg)
	_ = client.Close() // the server has taken the mail, or not
	return err
}

// client returns a client on a connection.
func (m *Mail) client(ctx context.Context, conn net.Conn) (*gomail.Client, error) {
	config := &tls.Config{ServerName: m.Server.Host, MinVersion: tls.VersionTLS12, RootCAs: m.Roots}
	policy := gomail.TLSMandatory
	switch {
	case m.Server.TLS:
		secure := tls.Client(conn, config)
		if err := secure.HandshakeContext(ctx); err != nil {
			return nil, err
		}
		conn = secure
	case isHere(conn):
		policy = gomail.NoTLS
	}
	options := []gomail.Option{
		gomail.WithTLSPolicy(policy), gomail.WithTLSConfig(config), gomail.WithTimeout(patience),
		gomail.WithDialContextFunc(func(context.Context, string, string) (net.Conn, error) { return conn, nil }),
	}
	if m.Server.TLS {
		options = append(options, gomail.WithSSL())
	}
	if m.Login != "" {
		options = append(options, gomail.WithUsername(m.Login), gomail.WithPassword(m.Secret),
			gomail.WithOpportunisticSMTPAuth(gomail.SMTPAuthSCRAMSHA256, gomail.SMTPAuthSCRAMSHA1, gomail.SMTPAuthPlain, gomail.SMTPAuthLogin))
	}
	return gomail.NewClient(m.Server.Host, options...)
}

// isHere reports whether a connection stays on this machine.
func isHere(conn net.Conn) bool {
	at, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	return err == nil && at.Addr().Unmap().IsLoopback()
}

// domain returns the part of an address after the @.
func domain(a *netmail.Address) string { return a.Address[strings.LastIndex(a.Address, "@")+1:] }

// line puts a text on one line, as headers need.
func line(text string) string { return strings.Join(strings.Fields(text), " ") }

// quote marks each line of a text as another's.
func quote(text string) string {
	return "> " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n> ")
}
