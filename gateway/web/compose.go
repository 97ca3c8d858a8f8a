package web

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"parley"
	"parley/actors/view"
	"parley/events"
	"parley/gateway/api"
)

// ComposePath is the address at which a message is written.
const ComposePath = "/new"

// composePage is a message that is being written.
type composePage struct {
	To, Subject, Text string
	Key               string // under which it is sent once, however often the form is
	Files             []events.File
	FileTexts         []string // as the form sends them
	Wrong             string   // why it was not sent
}

// compose shows the page on which a message is written, and sends it by POST.
func compose(p *page) error {
	d := composePage{To: p.r.URL.Query().Get("to"), Key: rand.Text()}
	if p.r.Method == http.MethodPost {
		p.r.Body = http.MaxBytesReader(p.w, p.r.Body, maxPlainForm)
		if err := p.r.ParseForm(); err != nil {
			return parley.Refuse(parley.InvalidArgument, "the form cannot be read")
		}
		sent, err := d.send(p)
		if err == nil {
			q := url.Values{"in": {"mail"}}
			if p.as != "" {
				q.Set("as", p.as)
			}
			http.Redirect(p.w, p.r, p.base+FormsPath+sent.Message.String()+suffix(q, ""), http.StatusSeeOther)
			return nil
		}
		shown := api.Shown(err)
		d.Wrong = shown.Message
		return p.show(api.HTTPStatus(shown.Code), "compose.html", layout{Title: "New message", Main: d})
	}
	if err := p.readsOnly(); err != nil {
		return err
	}
	return p.show(http.StatusOK, "compose.html", layout{Title: "New message", Main: d})
}

// send reads the form into the message, and sends that.
func (d *composePage) send(p *page) (sent view.Sent, err error) {
	form := p.r.PostForm
	d.To, d.Subject, d.Key = form.Get("to"), form.Get("subject"), form.Get("key")
	d.Text, d.FileTexts = strings.ReplaceAll(form.Get("text"), "\r\n", "\n"), form["files"]
	if d.Files, err = filesOf(d.FileTexts); err != nil {
		return sent, err
	}
	to := slices.DeleteFunc(strings.FieldsFunc(d.To, func(r rune) bool { return r == ',' || r == '\n' }), func(name string) bool { return strings.TrimSpace(name) == "" })
	for i := range to {
		to[i] = strings.TrimSpace(to[i])
	}
	switch {
	case len(to) == 0:
		return sent, parley.Refuse(parley.InvalidArgument, "say to whom it goes")
	case strings.TrimSpace(d.Text) == "" && len(d.Files) == 0:
		return sent, parley.Refuse(parley.InvalidArgument, "there is nothing to send")
	}
	r := api.SendRequest{Acting: api.Acting{As: p.as}, Recipient: to[0], Recipients: to[1:], Post: parley.Post{Header: parley.Header{Subject: d.Subject, Files: d.Files}, Text: d.Text, Key: d.Key}}
	return api.Send.Do(p.ctx(), p, r)
}

// filesOf returns the stored files that a plain HTML form names.
func filesOf(texts []string) (files []events.File, err error) {
	for _, text := range texts {
		var f events.File
		if err := json.Unmarshal([]byte(text), &f); err != nil {
			return nil, parley.Refuse(parley.InvalidArgument, "a file cannot be read from the form")
		}
		files = append(files, f)
	}
	return files, nil
}
