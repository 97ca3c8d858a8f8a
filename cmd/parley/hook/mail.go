package hook

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"parley/gateway/api"
)

// The events on which a hook carries a notice of mail into the session, beside Stop and SessionEnd. None of them ever holds a
// person or a call up: without a node, and for whatever fails, they say nothing.
const (
	SessionStart     = "SessionStart"
	UserPromptSubmit = "UserPromptSubmit"
	PostToolBatch    = "PostToolBatch"
	FileChanged      = "FileChanged" // of the wake file, which the node changes when an idle session has mail
)

// mailTime bounds all exchanges of a hook that carries mail.
const mailTime = 4 * time.Second

// readTool is the tool that reads mail.
const readTool = "mcp__" + ServerName + "__read_mail"

// maxSaid bounds a notice, in bytes: Claude Code takes 9,000 characters whole.
const maxSaid = 4 << 10

// moment returns what the mail of a session is asked for on an event; nil if the event carries none. A subagent is told of none.
func (a Agent) moment(call toolCall, o Options) *api.MailMoment {
	kind, ok := a.moments[call.event]
	if !ok || call.part != "" {
		return nil
	}
	m := &api.MailMoment{Moment: kind, Source: call.source}
	switch kind {
	case api.MomentStart:
		m.Wakes = a.wakes != nil && a.wakes(o.Env)
	case api.MomentIdle:
		if a.wakes == nil || !a.wakes(o.Env) { // what would wait for it, or loses its words
			return nil
		}
		m.Idle = isIdle(call.transcript)
	}
	return m
}

// carry returns the response on an event of mail, a notice or nil, and the name that other requests give: "" if the event
// carries none, or nothing could be asked.
func (a Agent) carry(ctx context.Context, call toolCall, o Options) (response *Response, as string) {
	m := a.moment(call, o)
	if m == nil {
		return nil, ""
	}
	ctx, cancel := context.WithTimeout(ctx, mailTime)
	defer cancel()
	done, err := a.enter(ctx, call, o, m, api.Proof{})
	if err != nil || done.Mail == nil {
		return nil, done.Name
	}
	as = done.Name
	got := *done.Mail
	if len(got.Offers) > 0 {
		if proof := awaitProof(ctx, call, got.Offers); proof.Read || got.Again {
			next := *m
			next.Looked = true
			if !got.Again {
				next.Moment = api.MomentProof
			}
			if done, err = a.enter(ctx, call, o, &next, proof); err == nil && done.Mail != nil && got.Again {
				got.Notice = done.Mail.Notice
			}
		}
	}
	if m.Moment == api.MomentEnd || len(got.Notice) > maxSaid || strings.ContainsAny(got.Notice, "\r\n") {
		return nil, as
	}
	r := &Response{}
	if call.event == FileChanged {
		r.Wake = got.Notice
	} else if got.Notice != "" || got.Wake != "" {
		r.Specific = &specific{Event: call.event, Context: got.Notice}
		if got.Wake != "" {
			r.Specific.Watch = []string{got.Wake}
		}
	}
	if r.Wake == "" && r.Specific == nil {
		return nil, as
	}
	return r, as
}

// The time that a hook gives the transcript, which is written behind: at the end of a turn the answer is there that shows what
// was read in it, and no hook may come after.
const (
	writtenIn  = time.Second
	writtenFor = 50 * time.Millisecond
)

// awaitProof is readProof. At the end of a turn it waits a moment for the answer after a text.
func awaitProof(ctx context.Context, call toolCall, offers []api.Offer) (p api.Proof) {
	for end := time.Now().Add(writtenIn); ; {
		p = readProof(call.transcript, offers, call.last)
		if call.event != Stop && call.event != SessionEnd || len(p.Kept) == 0 || time.Now().After(end) {
			return p
		}
		select {
		case <-ctx.Done():
			return p
		case <-time.After(writtenFor):
		}
	}
}

// prove tells the node what the transcript shows, before a tool reads mail again.
func (a Agent) prove(ctx context.Context, call toolCall, o Options, offers []api.Offer) {
	if proof := readProof(call.transcript, offers, ""); proof.Read {
		_, _ = a.enter(ctx, call, o, &api.MailMoment{Moment: api.MomentProof}, proof) // the next hook does it again
	}
}

// enter registers the session, with what the hook asks of its mail.
func (a Agent) enter(ctx context.Context, call toolCall, o Options, m *api.MailMoment, p api.Proof) (done api.Registered, err error) {
	wanted := a.registration(call, o)
	wanted.Mail, wanted.Proof = m, p
	text, err := o.exchange(ctx, "POST", api.RegisterPath, wanted)
	if err == nil {
		err = json.Unmarshal(text, &done)
	}
	return done, err
}
