package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/gateway/sanitize"
)

// agentsPath, with a name behind it, is an agent's own page: what it holds, what it gave, what is decided for it
// beforehand, and what has happened to it.
const agentsPath = "/agents/"

const (
	newestEvents = 100   // of the log, that the page shows at once
	newestMail   = 10    // messages
	shownGrants  = 200   // the newest
	maxPayload   = 4_000 // characters of an event that the page shows
	newestPieces = 100   // of what its program has put out
	maxOutput    = 8_000 // bytes of it that the page shows
)

// agentPage is what the page of an agent shows.
type agentPage struct {
	Name   string // "" is who is signed in
	ID     capabilities.ID
	Mail   []card         // newest first
	Output string         // the end of it
	Names  []named        // sorted
	Grants []view.Granted // newest first
	Rules  []view.Rule    // oldest first
	Log    history
	MayAct bool // the session may take back, remove and end
	MayEnd bool // and the reader is the node's host, who ends rules
	standing
}

// history is a part of an agent's log.
type history struct {
	Events []logged // newest first
	Older  uint64   // there is more before this version; 0 if there is none
	Newest bool     // it is the end of the log
}

// named is what stands under one of the agent's names.
type named struct{ Name, Value string }

// Special reports whether it is a name that nobody gave, and nobody removes.
func (n named) Special() bool { return strings.HasPrefix(n.Name, "@") }

// logged is an event of the agent's log.
type logged struct {
	view.Entry
	Text string // the event as JSON
	Cut  int    // how many characters more it has
}

// self is how an agent's page is asked for by who is signed in.
const self = "SELF"

// agentPage is the address of the page of an agent that is held under a name; "" is who is signed in.
func agentPagePath(name string) string {
	if name == "" {
		name = self
	}
	return agentsPath + url.PathEscape(name)
}

// ofAgent shows an agent's page.
func (v *viewing) ofAgent() error {
	if err := v.readsOnly(); err != nil {
		return err
	}
	ctx := v.r.Context()
	name := strings.TrimPrefix(v.r.URL.Path, agentsPath)
	agent, err := v.s.agent(ctx, name)
	if err != nil {
		return err
	}
	reader, err := v.s.agent(ctx, "")
	if err != nil {
		return err
	}
	d := agentPage{Name: name, ID: agent.ID(), MayAct: caller(ctx).may(api.Operation{Name: "the page", Scope: api.ScopeAdmin}) == nil}
	d.MayEnd = d.MayAct && reader.IsHost()
	if agent.ID() == reader.ID() {
		d.Name = ""
	}
	if err := v.fill(&d, agent); err != nil {
		return err
	}
	title := "You"
	if d.Name != "" {
		title = sanitize.Line(d.Name)
	}
	return v.show(200, "agent.html", layout{Title: title, Main: d})
}

// fill looks up what the page shows.
func (v *viewing) fill(d *agentPage, agent *actors.Agent) (err error) {
	ctx := v.r.Context()
	if d.standing, err = standingOf(ctx, agent); err != nil {
		return err
	}
	if d.Mail, err = v.newestMail(local{d.Name, agent}); err != nil {
		return err
	}
	if d.Names, err = v.named(agent); err != nil {
		return err
	}
	if d.Grants, err = agent.Grants(ctx); err != nil {
		return err
	}
	slices.Reverse(d.Grants)
	d.Grants = d.Grants[:min(len(d.Grants), shownGrants)]
	if d.Rules, err = agent.Rules(ctx); err != nil {
		return err
	}
	if d.Output, err = newestOutput(ctx, agent); err != nil {
		return err
	}
	d.Log, err = v.history(agent)
	return err
}

// newestOutput gives the end of what an agent's program has put out, in whole lines if there are some.
func newestOutput(ctx context.Context, agent *actors.Agent) (string, error) {
	pieces, _, err := agent.OutputEnd(ctx, newestPieces)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, p := range pieces {
		if p.Stream != "notice" {
			b.WriteString(p.Text)
		}
	}
	text := b.String()
	if over := len(text) - maxOutput; over > 0 {
		text = strings.ToValidUTF8(text[over:], "")
		if _, whole, ok := strings.Cut(text, "\n"); ok {
			text = whole
		}
	}
	return strings.TrimRight(text, "\n"), nil
}

// newestMail gives the end of an agent's mail, newest first.
func (v *viewing) newestMail(l local) ([]card, error) {
	ctx := v.r.Context()
	end, _, err := endOfMail(ctx, l.agent)
	if err != nil {
		return nil, err
	}
	messages, _, err := window(ctx, l.agent, end, newestMail)
	if err != nil {
		return nil, err
	}
	var cards []card
	for _, e := range slices.Backward(messages[len(messages)-min(len(messages), newestMail):]) {
		cards = append(cards, card{Message: e, Base: pagePrefix(ctx), As: l.name, Status: statusOf(e)})
	}
	return cards, nil
}

// named gives what an agent holds, by name.
func (v *viewing) named(agent *actors.Agent) ([]named, error) {
	ctx := v.r.Context()
	names, err := agent.Names(ctx, "")
	if err != nil {
		return nil, err
	}
	plain := func(r capabilities.Ref) string { return string(r.Kind) + " " + shortID(r.Target) + limits(r.Facet) }
	var list []named
	for _, name := range names[:min(len(names), maxNamed)] {
		value, err := agent.Show(ctx, name, false)
		if parley.CodeOf(err) == parley.NotPermitted {
			list = append(list, named{Name: name, Value: "revoked"})
			continue
		}
		if err != nil {
			continue // it has gone meanwhile, or is no value: the mail
		}
		list = append(list, named{Name: name, Value: showValue(value, nil, plain)})
	}
	return list, nil
}

// limits says what is held back of something held.
func limits(f capabilities.Facet) string {
	var b strings.Builder
	if f.Mode != capabilities.Full {
		fmt.Fprintf(&b, ", %s only", f.Mode)
	}
	if f.Uses != 0 {
		fmt.Fprintf(&b, ", %d uses", f.Uses)
	}
	if f.Until != 0 {
		fmt.Fprintf(&b, ", until %s", readable(f.Until))
	}
	return b.String()
}

// history gives the end of an agent's log, or what is before a version of it.
func (v *viewing) history(agent *actors.Agent) (history, error) {
	ctx := v.r.Context()
	end, err := agent.Version(ctx)
	if err != nil {
		return history{}, err
	}
	h := history{Newest: true}
	if text := v.r.URL.Query().Get("before"); text != "" {
		before, err := strconv.ParseUint(text, 10, 64)
		if err != nil || before == 0 {
			return h, parley.Refuse(parley.InvalidArgument, "%.40q is no version", text)
		}
		end, h.Newest = min(end, before-1), false
	}
	first := end - min(end, newestEvents)
	if first > 0 {
		h.Older = first + 1
	}
	entries, err := agent.Log(ctx, first, int(end-first))
	if err != nil {
		return h, err
	}
	h.Events, err = written(entries)
	return h, err
}

// written gives events as they are read, the last first.
func written(entries []view.Entry) ([]logged, error) {
	list := make([]logged, 0, len(entries))
	for _, e := range slices.Backward(entries) {
		raw, err := json.MarshalIndent(e.Payload, "", "  ")
		if err != nil {
			return nil, err
		}
		text := []rune(string(raw))
		whole := len(text)
		text = text[:min(whole, maxPayload)]
		list = append(list, logged{Entry: e, Text: string(text), Cut: whole - len(text)})
	}
	return list, nil
}

// Limits says what is held back of what was given.
func (d agentPage) Limits(f capabilities.Facet) string { return limits(f) }

// Page is the address of the agent's page.
func (d agentPage) Page() string { return agentPagePath(d.Name) }

// Inbox is the address of the agent's mail.
func (d agentPage) Inbox() string {
	if d.Name == "" {
		return "/"
	}
	return "/?" + url.Values{"as": {d.Name}}.Encode()
}
