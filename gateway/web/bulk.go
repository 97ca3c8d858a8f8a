package web

import (
	"net/http"
	"net/url"

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
	if button == mailbox.Once {
		return errNotShown
	}
	of, err := readPicks(p.r.PostForm["pick"])
	if err != nil {
		return err
	}
	for _, m := range of {
		if button == mailbox.Deny {
			err = decideMany(p.ctx(), p, decisionsOf(m.as, url.Values{"of": m.calls, "decision": {button}, "reason": {p.r.PostForm.Get("reason")}}))
		} else {
			err = p.move(button, m)
		}
		if err != nil {
			return err
		}
	}
	http.Redirect(p.w, p.r, p.base+l.Address(), http.StatusSeeOther)
	return nil
}

// move performs the operation of a button on the picked messages, in one call.
func (p *page) move(button string, m *picks) error {
	r := api.MoveMessagesRequest{Acting: m.as, Do: button}
	until, snoozes := snoozeOf(button)
	switch {
	case snoozes, button == "wake": // which has no time
		r.Do, r.Until = "snooze", until
	case button != "dismiss" && button != "restore": // it needs more than a message
		return errNoButton(button)
	}
	for _, id := range m.ids {
		r.Messages = append(r.Messages, api.RefTo(id.String()))
	}
	got, err := api.MoveMessages.Do(p.ctx(), p, r)
	if err != nil {
		return err
	}
	return unmoved(got)
}

// unmoved returns an error for the messages of several that were refused; nil if none was.
func unmoved(r api.MoveMessagesResponse) error {
	if len(r.Refused) == 0 {
		return nil
	}
	first := r.Refused[0].Error
	return parley.Refuse(first.Code, "%d of %d messages were refused, the first because %s", len(r.Refused), len(r.Refused)+r.Moved, first.Message)
}

// readPicks reads the values of the checkboxes of rows: see row.Pick.
func readPicks(values []string) ([]*picks, error) {
	var all []*picks
	byAgent := map[string]*picks{}
	count := 0
	for _, text := range values {
		q, err := url.ParseQuery(text)
		if err != nil {
			return nil, parley.Refuse(parley.InvalidArgument, "the selected messages cannot be read")
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
		return nil, parley.Refuse(parley.InvalidArgument, "no message is selected")
	case count > api.MaxDecisions:
		return nil, parley.Refuse(parley.TooLarge, "%d messages are over the limit of %d", count, api.MaxDecisions)
	}
	return all, nil
}
