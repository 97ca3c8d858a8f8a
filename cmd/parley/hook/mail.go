package hook

import (
	"context"
	"encoding/json"
	"slices"
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
	DirectoryAdded   = "DirectoryAdded"
	FileChanged      = "FileChanged" // of the wake file, which the node changes when an idle session has mail
)

// mailTime bounds all exchanges of a hook that carries mail.
const mailTime = 4 * time.Second

// readTools are the tools whose results have mail.
var readTools = []string{"read_mail", "wait_for_mail"}

// isReadTool reports whether a tool, as hooks and Claude Code's transcript name it, is one of those.
func isReadTool(name string) bool {
	tool, own := strings.CutPrefix(name, "mcp__"+ServerName+"__")
	return own && slices.Contains(readTools, tool)
}

// maxSaid bounds a notice, in bytes: Claude Code takes 9,000 characters whole.
const maxSaid = 4 << 10

// moment returns what the mail of a session is asked for on an event; nil if the event carries none. A subagent is told of none.
func (a Agent) moment(call toolCall, o Options) *api.MailMoment {
	kind, ok := a.moments[call.event]
	if !ok || call.part != "" {
		return nil
	}
	m := &api.MailMoment{Moment: kind, Source: call.source}
	if call.isNudge() {
		m.Moment, m.Idle = api.MomentIdle, true
		return m
	}
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
	if call.isNudge() && call.part == "" {
		defer func() {
			if response == nil { // it came too late, and would cost a turn
				response = &Response{Decision: block, Reason: "Parley: the mail has been read meanwhile."}
			}
		}()
	}
	m := a.moment(call, o)
	if m == nil {
		return nil, ""
	}
	ctx, cancel := context.WithTimeout(ctx, mailTime)
	defer cancel()
	first := a.registration(call, o)
	first.Mail, first.Leases = m, a.tellsLeases(call)
	done, err := a.enter(ctx, first, o)
	if err != nil || done.Mail == nil {
		return nil, done.Name
	}
	as = done.Name
	got, leases := *done.Mail, ""
	if done.News != nil {
		leases = leaseNotice(a.workFolder(call, o.Env), *done.News)
	}
	if len(got.Offers) > 0 {
		if proof := a.awaitProof(ctx, call, got.Offers); proof.Read || got.Again {
			next := *m
			next.Looked = true
			if !got.Again {
				next.Moment = api.MomentProof
			}
			second := a.registration(call, o)
			second.Mail, second.Proof = &next, proof
			if done, err = a.enter(ctx, second, o); err == nil && done.Mail != nil && got.Again {
				got.Notice = done.Mail.Notice
			}
		}
	}
	if m.Moment == api.MomentEnd || len(got.Notice) > maxSaid || strings.ContainsAny(got.Notice, "\r\n") {
		return nil, as
	}
	if leases != "" {
		got.Notice = strings.TrimPrefix(got.Notice+"\n"+leases, "\n")
	}
	return a.carried(call, got), as
}

// carried returns the response with what a hook carries; nil for nothing.
func (a Agent) carried(call toolCall, got api.Carried) *Response {
	switch {
	case call.event == FileChanged && !a.watches:
		if got.Notice == "" {
			return nil
		}
		return &Response{Wake: got.Notice}
	case got.Notice == "" && got.Wake == "":
		return nil
	case call.event == Stop && a.blocksStop:
		return &Response{Decision: block, Reason: got.Notice}
	}
	s := &specific{Event: call.event, Context: got.Notice}
	if got.Wake != "" {
		s.Watch = []string{got.Wake}
	}
	return &Response{Specific: s}
}

// The time that a hook gives the transcript, which is written behind: at the end of a turn the answer is there that shows what
// was read in it, and no hook may come after.
const (
	writtenIn  = time.Second
	writtenFor = 50 * time.Millisecond
)

// awaitProof is readProof. At the end of a turn it waits a moment for the answer after a text.
func (a Agent) awaitProof(ctx context.Context, call toolCall, offers []api.Offer) (p api.Proof) {
	for end := time.Now().Add(writtenIn); ; {
		p = readProof(a.reads, call.conversation(), offers, call.last)
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
	if proof := readProof(a.reads, call.conversation(), offers, ""); proof.Read {
		wanted := a.registration(call, o)
		wanted.Mail, wanted.Proof = &api.MailMoment{Moment: api.MomentProof}, proof
		_, _ = a.enter(ctx, wanted, o) // the next hook does it again
	}
}

// enter registers the session, with what the hook asks of its mail.
func (a Agent) enter(ctx context.Context, wanted api.Register, o Options) (done api.Registered, err error) {
	text, err := o.exchange(ctx, "POST", api.RegisterPath, wanted)
	if err == nil {
		err = json.Unmarshal(text, &done)
	}
	return done, err
}
