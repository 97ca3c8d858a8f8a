package gateway

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"parley/actors"
	"parley/capabilities"
	"parley/gateway/legible"
)

// agentsPath, with a name behind it, is an agent's own page: what it holds, what it gave, what is decided for it
// beforehand, and what has happened to it.
const agentsPath = "/agents/"

const (
	newestEvents = 100   // of the log, that the page shows
	shownGrants  = 200   // the newest
	maxPayload   = 4_000 // characters of an event that the page shows
)

// dossier is what the page of an agent shows.
type dossier struct {
	Name   string // "" is who is signed in
	ID     capabilities.ID
	Names  []named
	Grants []actors.Granted // newest first
	Rules  []actors.Rule    // oldest first
	Log    []logged         // newest first
	MayEnd bool             // the reader is the node's host, who ends rules
}

// named is what stands under one of the agent's names.
type named struct{ Name, Value string }

// logged is an event of the agent's log.
type logged struct {
	actors.Entry
	Text string // the event as JSON
	Cut  int    // how many characters more it has
}

// self is how an agent's page is asked for by who is signed in.
const self = "SELF"

// agentPage is the address of the page of an agent that is held under a name; "" is who is signed in.
func agentPage(name string) string {
	if name == "" {
		name = self
	}
	return agentsPath + url.PathEscape(name)
}

// Page is where more is told of it.
func (h held) Page() string { return agentPage(h.Name) }

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
	d := dossier{Name: name, ID: agent.ID(), MayEnd: reader.IsHost()}
	if agent.ID() == reader.ID() {
		d.Name = ""
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
	if d.Log, err = v.newest(agent); err != nil {
		return err
	}
	waiting, err := v.s.allQuestions(ctx)
	if err != nil {
		return err
	}
	title := "You"
	if d.Name != "" {
		title = legible.Line(d.Name)
	}
	return v.show(200, "agent.html", layout{Title: title, Count: len(waiting), Main: d})
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

// newest gives the end of an agent's log, newest first.
func (v *viewing) newest(agent *actors.Agent) ([]logged, error) {
	ctx := v.r.Context()
	in, err := agent.Page(ctx, actors.View{All: true}, 0, 0)
	if err != nil {
		return nil, err
	}
	entries, err := agent.Log(ctx, in.Cursor-min(in.Cursor, newestEvents), newestEvents)
	if err != nil {
		return nil, err
	}
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
func (d dossier) Limits(f capabilities.Facet) string { return limits(f) }

// Inbox is the address of the agent's mail.
func (d dossier) Inbox() string {
	if d.Name == "" {
		return "/"
	}
	return "/?" + url.Values{"as": {d.Name}}.Encode()
}
