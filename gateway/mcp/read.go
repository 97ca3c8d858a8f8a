package mcp

import (
	"context"

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
	var got api.ReadMailResponse
	if err := steadily(ctx, c.agent, "read_mail", api.ReadMailRequest{Message: arguments.Message, From: arguments.From}, &got); err != nil {
		return nil, err
	}
	for i := range got.Mail {
		m := &got.Mail[i]
		m.From, m.Subject, m.Text = sanitize.Line(m.From), sanitize.Line(m.Subject), sanitize.Lines(m.Text)
	}
	if got.Mail == nil {
		got.Mail = []api.ReadMail{}
	}
	return got, nil
}
