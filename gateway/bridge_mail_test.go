package gateway

import (
	"io"
	"mime/quotedprintable"
	netmail "net/mail"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley"
	"parley/events"
	"parley/gateway/bridge"
	"parley/gateway/bridge/bridgetest"
	"parley/internal/eventually"
)

// mailPlace is what a person has been told by mail.
type mailPlace struct {
	*bridgetest.MailServer
	t *testing.T
}

// Keeps implements bridgetest.Keeper.
func (mailPlace) Keeps() {}

// Told implements bridgetest.Place. Mail with the same ID is the same.
func (m mailPlace) Told(form string) (told []bridgetest.Telling) {
	seen := map[string]bool{}
	for _, sent := range m.Mails() {
		header, text := m.read(sent)
		id := header.Get("Message-Id")
		if !strings.HasPrefix(id, "<"+strings.Split(form, "@")[0]+".") || seen[id] {
			continue
		}
		seen[id] = true
		one := bridgetest.Telling{Text: header.Get("Subject") + "\n" + text, Open: strings.Contains(id, ".open@"), Buttons: map[string]string{}}
		label := ""
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "http") {
				one.Buttons[strings.TrimSuffix(label, ":")] = line
			}
			label = line
		}
		told = append(told, one)
	}
	return told
}

func (m mailPlace) read(sent bridgetest.Mail) (netmail.Header, string) {
	m.t.Helper()
	msg, err := netmail.ReadMessage(strings.NewReader(sent.Text))
	if err != nil {
		m.t.Fatal(err)
	}
	b, err := io.ReadAll(quotedprintable.NewReader(msg.Body))
	if err != nil {
		m.t.Fatal(err)
	}
	return msg.Header, string(b)
}

func openMail(t *testing.T) (*bridged, mailPlace) {
	t.Helper()
	m := mailPlace{bridgetest.NewMailServer(t, false), t}
	return openBridged(t, bridge.Config{
		Name: "mail", Kind: "mail", URL: "smtp://" + m.Address, Network: "machine", From: "parley@example.org", To: "me@example.org", Login: "me", Token: "good",
	}), m
}

func TestMailKeepsPromises(t *testing.T) {
	bridgetest.Run(t, func(t *testing.T) (bridgetest.Node, bridgetest.Place) { return openMail(t) })
}

// TestMailNeverToldIsNotFollowedUp checks a form that ends before the server has taken a mail of it.
func TestMailNeverToldIsNotFollowedUp(t *testing.T) {
	n, m := openMail(t)
	m.Refuse(true)
	form := n.Approve(`{"command":"ls"}`)
	eventually.Holds(t, "the server refuses", func() bool { return m.Refused() > 0 })
	n.Cancel(form)
	m.Refuse(false)
	for range 2 { // the second is told in a later round than that which sees the end
		later := n.Approve(`{"command":"later"}`)
		eventually.Holds(t, "the later form is told", func() bool { return len(m.Told(later)) == 1 })
	}
	if told := m.Told(form); len(told) > 0 {
		t.Errorf("told %+v", told)
	}
}

// TestMailOfAmendedFormStaysInThread checks that the mark is kept over an amendment and a restart.
func TestMailOfAmendedFormStaysInThread(t *testing.T) {
	n, m := openMail(t)
	asked, err := n.agent().Ask(t.Context(), parley.Form{To: "@host", Title: "Deploy", Description: "Now?", Fields: []events.Field{{Name: "ok"}}})
	if err != nil {
		t.Fatal(err)
	}
	form := asked.Form.String()
	eventually.Holds(t, "the form is told", func() bool { return len(m.Told(form)) == 1 })
	eventually.Holds(t, "the node knows the mail", func() bool {
		b, err := os.ReadFile(BridgeFile(filepath.Join(n.folder, "bridges.json"), "mail"))
		return err == nil && strings.Contains(string(b), ".open")
	})
	n.Restart()
	later := "Tomorrow?"
	if _, err := n.agent().Amend(t.Context(), n.ref(form), parley.Amendment{Description: &later}); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the amended form is told", func() bool { return len(m.Told(form)) == 2 })
	n.Restart()
	n.Cancel(form)
	eventually.Holds(t, "the end is told", func() bool { return len(m.Told(form)) == 3 })
	first := ""
	for i, sent := range m.Mails() {
		header, _ := m.read(sent)
		if i == 0 {
			first = header.Get("Message-Id")
		} else if got := header.Get("References"); got != first || header.Get("In-Reply-To") != first {
			t.Errorf("mail %d refers to %q, want %q", i, got, first)
		}
	}
}
