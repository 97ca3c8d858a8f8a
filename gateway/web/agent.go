package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/gateway/sanitize"
)

// AgentsPath, with a name behind it, is the address of an agent's own page.
const AgentsPath = "/agents/"

// agentPage is the data of an agent's page.
type agentPage struct {
	Name   string // "" is the reader
	ID     capabilities.ID
	Mail   []card         // newest first
	Output string         // the end of the program's output
	Names  []namedValue   // sorted
	Grants []view.Granted // newest first
	Rules  []view.Rule    // oldest first
	Log    logPart
	MayAct bool // the session may revoke and remove
	MayEnd bool // the session may end rules too: the reader is the node's host
	Standing
}

// logPart is a part of an agent's log.
type logPart struct {
	Events []loggedEvent // newest first
	Older  uint64        // there is more before this version; 0 if there is none
	Newest bool          // it is the end of the log

	Missing []view.MissingEvents // events of the part that are in the archive, in segments elsewhere
}

// namedValue is a value under one of the agent's names.
type namedValue struct{ Name, Value string }

// Special reports whether the name is built in, and cannot be removed.
func (n namedValue) Special() bool { return strings.HasPrefix(n.Name, "@") }

// loggedEvent is an event of the agent's log.
type loggedEvent struct {
	view.Entry
	Text string // the event as JSON
	Cut  int    // number of characters left out
}

// self is the name of the agent that is signed in, in the address of its own page.
const self = "SELF"

// AgentPath returns the address of the page of an agent by its name; "" is the agent that is signed in.
func AgentPath(name string) string {
	if name == "" {
		name = self
	}
	return AgentsPath + url.PathEscape(name)
}

// facetLimits returns the limits of a facet in words; "" if it has none.
func facetLimits(f capabilities.Facet) string {
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

// Limits returns the limits of a facet in words.
func (d agentPage) Limits(f capabilities.Facet) string { return facetLimits(f) }

// Page returns the address of the agent's page.
func (d agentPage) Page() string { return AgentPath(d.Name) }

// Inbox returns the address of the agent's mail.
func (d agentPage) Inbox() string {
	if d.Name == "" {
		return "/"
	}
	return "/?" + url.Values{"as": {d.Name}}.Encode()
}

// Bounds of the parts of an agent's page.
const (
	newestEvents = 100   // of the log, shown at once
	newestMail   = 10    // messages
	shownGrants  = 200   // the newest
	maxPayload   = 4_000 // characters of an event
	newestPieces = 100   // of the program's output
	maxOutput    = 8_000 // bytes of the program's output
)

// ofAgent shows the page of an agent.
func (p *page) ofAgent() error {
	if err := p.readsOnly(); err != nil {
		return err
	}
	name := strings.TrimPrefix(p.r.URL.Path, AgentsPath)
	agent, err := p.agentOf(name)
	if err != nil {
		return err
	}
	d := agentPage{Name: name, ID: agent.ID(), MayAct: p.principal.May(pageOperation(api.ScopeAdmin)) == nil}
	d.MayEnd = d.MayAct && p.principal.IsHost()
	if agent.ID() == p.principal.ID() {
		d.Name = ""
	}
	if err := p.fill(&d, agent); err != nil {
		return err
	}
	title := "You"
	if d.Name != "" {
		title = sanitize.Line(d.Name)
	}
	return p.show(http.StatusOK, "agent.html", layout{Title: title, Main: d})
}

// fill looks up the parts of an agent's page.
func (p *page) fill(d *agentPage, agent api.Agent) (err error) {
	ctx := p.ctx()
	if d.Standing, err = standingOf(ctx, agent); err != nil {
		return err
	}
	if d.Mail, err = p.newestMail(local{d.Name, agent}); err != nil {
		return err
	}
	if d.Names, err = namedValues(ctx, agent); err != nil {
		return err
	}
	if d.Grants, err = agent.Names().Grants(ctx); err != nil {
		return err
	}
	slices.Reverse(d.Grants)
	d.Grants = d.Grants[:min(len(d.Grants), shownGrants)]
	if d.Rules, err = agent.Rules().List(ctx); err != nil {
		return err
	}
	if d.Output, err = newestOutput(ctx, agent); err != nil {
		return err
	}
	d.Log, err = history(ctx, agent, p.r.URL.Query().Get("before"))
	return err
}

// newestOutput returns the end of the output of an agent's program, in whole lines if there are some.
func newestOutput(ctx context.Context, agent api.Agent) (string, error) {
	pieces, _, err := agent.Output().Latest(ctx, newestPieces)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, p := range pieces {
		if p.Stream != "notice" {
			b.WriteString(p.Text)
		} else if line, _ := p.CallLine(); line != "" {
			if text := b.String(); text != "" && !strings.HasSuffix(text, "\n") {
				b.WriteByte('\n')
			}
			b.WriteString("▸ " + line + "\n")
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

// newestMail returns the end of an agent's mail, newest first.
func (p *page) newestMail(l local) ([]card, error) {
	end, _, err := endOfMail(p.ctx(), l.agent)
	if err != nil {
		return nil, err
	}
	messages, _, err := window(p.ctx(), l.agent, end, newestMail, listQuery{}.keeps)
	if err != nil {
		return nil, err
	}
	var cards []card
	for _, e := range slices.Backward(messages[len(messages)-min(len(messages), newestMail):]) {
		c := card{Message: e, Base: p.base, As: l.name, Status: statusOf(e)}
		if c.IsApproval() {
			c.Approval = newApproval(e)
		}
		cards = append(cards, c)
	}
	return cards, nil
}

// namedValues returns the values that an agent holds, by name.
func namedValues(ctx context.Context, agent api.Agent) ([]namedValue, error) {
	names, err := agent.Names().List(ctx, "")
	if err != nil {
		return nil, err
	}
	inWords := func(r capabilities.Ref) string { return unnamed(r) + facetLimits(r.Facet) }
	var list []namedValue
	for _, name := range names[:min(len(names), maxNamed)] {
		value, err := agent.Names().Show(ctx, name, false)
		if parley.CodeOf(err) == parley.NotPermitted {
			list = append(list, namedValue{Name: name, Value: "revoked"})
			continue
		}
		if err != nil {
			continue // it was removed meanwhile, or is no value: the mail
		}
		list = append(list, namedValue{Name: name, Value: view.ShowValue(value, nil, inWords)})
	}
	return list, nil
}

// history returns the end of an agent's log or, if before is not "", the part before that version.
func history(ctx context.Context, agent api.Agent, before string) (logPart, error) {
	end, err := agent.Version(ctx)
	if err != nil {
		return logPart{}, err
	}
	h := logPart{Newest: true}
	if before != "" {
		version, err := strconv.ParseUint(before, 10, 64)
		if err != nil || version == 0 {
			return h, parley.Refuse(parley.InvalidArgument, "%.40q is no version", before)
		}
		end, h.Newest = min(end, version-1), false
	}
	first := end - min(end, newestEvents)
	if first > 0 {
		h.Older = first + 1
	}
	l, err := agent.Log(ctx, first, int(end-first))
	if err != nil {
		return h, err
	}
	h.Missing = l.Missing
	h.Events, err = logged(l.Entries)
	return h, err
}

// logged returns events as JSON, the last first.
func logged(entries []view.Entry) ([]loggedEvent, error) {
	list := make([]loggedEvent, 0, len(entries))
	for _, e := range slices.Backward(entries) {
		raw, err := json.MarshalIndent(e.Payload, "", "  ")
		if err != nil {
			return nil, err
		}
		text := []rune(string(raw))
		whole := len(text)
		text = text[:min(whole, maxPayload)]
		list = append(list, loggedEvent{Entry: e, Text: string(text), Cut: whole - len(text)})
	}
	return list, nil
}
