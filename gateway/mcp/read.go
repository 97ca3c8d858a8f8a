package mcp

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"parley"
	"parley/gateway/api"
	"parley/gateway/sanitize"
)

// readMail returns the mail that the agent has not read.
func readMail(ctx context.Context, c *call) (any, error) {
	var arguments struct {
		Message api.RefText `json:"message"`
		From    int         `json:"from"`
	}
	if err := c.read(&arguments); err != nil {
		return nil, err
	}
	return c.readMail(ctx, api.ReadMailRequest{Message: arguments.Message, From: arguments.From})
}

// waitForMail returns the mail that the agent has not read. If there is none, it waits for some.
func waitForMail(ctx context.Context, c *call) (any, error) {
	var arguments waiting
	if err := c.read(&arguments); err != nil {
		return nil, err
	}
	wait, err := arguments.duration()
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(wait); ; { // a node that restarts ends a wait
		got, err := c.readMail(ctx, api.ReadMailRequest{WaitMs: max(1, time.Until(end).Milliseconds())})
		if err != nil || len(got.Mail) > 0 || !time.Now().Add(pause).Before(end) || !rest(ctx) {
			return got, err
		}
	}
}

// mail is what read_mail returns. Rules are the node's own words, and there where calls to review are among the mail.
type mail struct {
	api.ReadMailResponse
	Rules string   `json:"rules,omitempty"`
	Mail  []letter `json:"mail"`
}

// letter is a message of the mail, with what is said of a call that the agent reviews: whether it may allow it, and the folder that it is in.
type letter struct {
	api.ReadMail
	MayAllow *bool  `json:"mayAllow,omitempty"`
	Folder   string `json:"folder,omitempty"`
}

const (
	mailRules = reviewRules + " You may allow one with mayAllow (answer_form with the decision once); of another that answer goes to the host as an opinion."
	maxFolder = 200 // characters of the folder: a result is bounded
)

// readMail reads mail through a restart of the node, with what others wrote escaped.
func (c *call) readMail(ctx context.Context, r api.ReadMailRequest) (got mail, err error) {
	if got.ReadMailResponse, err = api.ReadUnread.Do(ctx, steady{c.agent}, r); err != nil {
		return got, err
	}
	got.Mail = []letter{}
	for _, m := range got.ReadMailResponse.Mail {
		for i := range m.Files {
			m.Files[i] = sanitize.Line(m.Files[i])
		}
		m.From, m.Subject, m.Text = sanitize.Line(m.From), sanitize.Line(m.Subject), sanitize.Lines(m.Text)
		m.AlsoTo, m.Author = sanitize.Line(m.AlsoTo), sanitize.Line(m.Author)
		l := letter{ReadMail: m}
		if m.Type == "approval" && m.Wanted {
			if whole, err := c.message(ctx, m.Number); err == nil { // else it is read as any other
				if review := reviewOf(whole); review != nil {
					got.Rules, l.MayAllow, l.Folder = mailRules, &review.MayAllow, parley.Shown(review.Folder, maxFolder)
				}
			}
		}
		got.Mail = append(got.Mail, l)
	}
	return got, nil
}

// unread returns the line that a client without hooks reads at the end of what a tool returns; "" without new mail. It has words
// of Parley alone.
func (s *Server) unread(ctx context.Context, a Agent) string {
	if a.May("read_mail") != nil {
		return ""
	}
	got, err := api.ReadUnread.Do(ctx, a, api.ReadMailRequest{Count: true})
	if err != nil {
		s.options.Log.Debug("what is unread is not known", slog.Any("error", err)) // the next result says it
		return ""
	}
	switch {
	case got.Hooked || got.Quiet || got.Unread == 0:
		return ""
	case got.Unread == 1:
		return "Parley: 1 unread message. Call read_mail."
	}
	return fmt.Sprintf("Parley: %d unread messages. Call read_mail.", got.Unread)
}
