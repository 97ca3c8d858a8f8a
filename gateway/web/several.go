package web

import (
	"net/http"
	"net/url"
	"strings"

	"parley"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/mailbox"
)

// picks are messages that the reader has picked in a list, of one agent's mail.
type picks struct {
	as    api.Acting
	ids   []capabilities.ID
	calls []string // the open calls of them, each by its ID and digest
}

// several performs the operation of a button on the picked messages of a list. Calls are decided in one operation for each
// agent's mail, each by its digest.
func (p *page) several(l listQuery) error {
	p.r.Body = http.MaxBytesReader(p.w, p.r.Body, maxPlainForm)
	if err := p.r.ParseForm(); err != nil {
		return parley.Refuse(parley.InvalidArgument, "the form cannot be read")
	}
	button := p.r.PostForm.Get("do")
	of, err := readPicks(p.r.PostForm["pick"])
	if err != nil {
		return err
	}
	for _, m := range of {
		if button == mailbox.Once || button == mailbox.Deny {
			err = p.perform(button, "decide_many", decisionsOf(m.as, url.Values{"of": m.calls, "decision": {button}}))
		} else {
			err = p.onEach(button, m)
		}
		if err != nil {
			return err
		}
	}
	http.Redirect(p.w, p.r, p.base+l.Address(), http.StatusSeeOther)
	return nil
}

// onEach performs the operation of a button on each of the picked messages.
func (p *page) onEach(button string, m *picks) error {
	for _, id := range m.ids {
		name, request := operationOf(button, m.as, api.RefTo(id.String()), nil, nil)
		switch {
		case button == "dismiss", button == "restore", button == "wake", strings.HasPrefix(button, "snooze-"):
		default:
			name = "" // it needs more than a message
		}
		if err := p.perform(button, name, request); err != nil {
			return err
		}
	}
	return nil
}

// readPicks reads the values of the checkboxes of rows: see row.Pick.
func readPicks(values []string) ([]*picks, error) {
	var all []*picks
	byAgent := map[string]*picks{}
	count := 0
	for _, text := range values {
		q, err := url.ParseQuery(text)
		if err != nil {
			return nil, parley.Refuse(parley.InvalidArgument, "the picked messages cannot be read")
		}
		as := q.Get("as")
		m := byAgent[as]
		if m == nil {
			m = &picks{as: api.Acting{As: as}}
			byAgent[as] = m
			all = append(all, m)
		}
		m.calls = append(m.calls, q["of"]...)
		for _, id := range q["id"] {
			parsed, err := capabilities.ParseID(id)
			if err != nil {
				return nil, parley.Refuse(parley.InvalidArgument, "%.40q is no message", id)
			}
			m.ids = append(m.ids, parsed)
		}
		count += len(q["id"])
	}
	switch {
	case count == 0:
		return nil, parley.Refuse(parley.InvalidArgument, "no message was picked")
	case count > api.MaxDecisions:
		return nil, parley.Refuse(parley.TooLarge, "%d messages are over the limit of %d", count, api.MaxDecisions)
	}
	return all, nil
}
