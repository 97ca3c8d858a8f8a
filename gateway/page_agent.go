package gateway

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/gateway/sanitize"
	"parley/gateway/web"
)

const (
	newestEvents = 100   // of the log, that the page shows at once
	newestMail   = 10    // messages
	shownGrants  = 200   // the newest
	maxPayload   = 4_000 // characters of an event that the page shows
	newestPieces = 100   // of what its program has put out
	maxOutput    = 8_000 // bytes of it that the page shows
)

// ofAgent shows an agent's page.
func (v *viewing) ofAgent() error {
	if err := v.readsOnly(); err != nil {
		return err
	}
	ctx := v.r.Context()
	name := strings.TrimPrefix(v.r.URL.Path, web.AgentsPath)
	agent, err := v.s.agent(ctx, name)
	if err != nil {
		return err
	}
	reader, err := v.s.agent(ctx, "")
	if err != nil {
		return err
	}
	d := web.AgentPage{Name: name, ID: agent.ID(), MayAct: v.s.caller(ctx).May(api.Operation{Name: "the page", Scope: api.ScopeAdmin}) == nil}
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
	return v.show(200, "agent.html", web.Layout{Title: title, Main: d})
}

// fill looks up what the page shows.
func (v *viewing) fill(d *web.AgentPage, agent api.Agent) (err error) {
	ctx := v.r.Context()
	if d.Standing, err = standingOf(ctx, agent); err != nil {
		return err
	}
	if d.Mail, err = v.newestMail(local{d.Name, agent}); err != nil {
		return err
	}
	if d.Names, err = v.named(agent); err != nil {
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
	d.Log, err = v.history(agent)
	return err
}

// newestOutput gives the end of what an agent's program has put out, in whole lines if there are some.
func newestOutput(ctx context.Context, agent api.Agent) (string, error) {
	pieces, _, err := agent.Output().Latest(ctx, newestPieces)
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
func (v *viewing) newestMail(l local) ([]web.Card, error) {
	ctx := v.r.Context()
	end, _, err := endOfMail(ctx, l.agent)
	if err != nil {
		return nil, err
	}
	messages, _, err := window(ctx, l.agent, end, newestMail)
	if err != nil {
		return nil, err
	}
	var cards []web.Card
	for _, e := range slices.Backward(messages[len(messages)-min(len(messages), newestMail):]) {
		cards = append(cards, web.Card{Message: e, Base: v.s.pagePrefix(ctx), As: l.name, Status: web.StatusOf(e)})
	}
	return cards, nil
}

// named gives what an agent holds, by name.
func (v *viewing) named(agent api.Agent) ([]web.Named, error) {
	ctx := v.r.Context()
	names, err := agent.Names().List(ctx, "")
	if err != nil {
		return nil, err
	}
	plain := func(r capabilities.Ref) string {
		return string(r.Kind) + " " + view.ShortID(r.Target) + web.FacetLimits(r.Facet)
	}
	var list []web.Named
	for _, name := range names[:min(len(names), maxNamed)] {
		value, err := agent.Names().Show(ctx, name, false)
		if parley.CodeOf(err) == parley.NotPermitted {
			list = append(list, web.Named{Name: name, Value: "revoked"})
			continue
		}
		if err != nil {
			continue // it has gone meanwhile, or is no value: the mail
		}
		list = append(list, web.Named{Name: name, Value: view.ShowValue(value, nil, plain)})
	}
	return list, nil
}

// history gives the end of an agent's log, or what is before a version of it.
func (v *viewing) history(agent api.Agent) (web.History, error) {
	ctx := v.r.Context()
	end, err := agent.Version(ctx)
	if err != nil {
		return web.History{}, err
	}
	h := web.History{Newest: true}
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
func written(entries []view.Entry) ([]web.Logged, error) {
	list := make([]web.Logged, 0, len(entries))
	for _, e := range slices.Backward(entries) {
		raw, err := json.MarshalIndent(e.Payload, "", "  ")
		if err != nil {
			return nil, err
		}
		text := []rune(string(raw))
		whole := len(text)
		text = text[:min(whole, maxPayload)]
		list = append(list, web.Logged{Entry: e, Text: string(text), Cut: whole - len(text)})
	}
	return list, nil
}
