package web

import (
	"net/url"

	"parley"
	"parley/actors/view"
	"parley/events"
	"parley/gateway/api"
	"parley/gateway/people"
)

// attentionOf returns how mail reaches the sessions of a coding agent; nil for any other agent.
func attentionOf(p *page, d *agentPage) (*view.Attention, error) {
	if kind := d.Labels[people.LabelKind]; kind != people.CodingAgent && kind != people.CodingSession {
		return nil, nil
	}
	set, err := api.GetAttention.Do(p.ctx(), p, api.GetAttentionRequest{Acting: api.Acting{As: d.Name}})
	if err != nil {
		return nil, err
	}
	return &set, nil
}

// attentionChange returns the request for what the page's form says.
func attentionChange(as api.Acting, sent url.Values) api.SetAttentionRequest {
	all, quiet, zone, interruptions := sent.Has("all-sessions"), sent.Get("quiet"), sent.Get("zone"), sent.Get("interruptions")
	if quiet == "" {
		quiet = parley.QuietNever
	}
	if quiet == parley.QuietNever || quiet == parley.QuietAlways {
		zone = "" // it is one of hours
	}
	return api.SetAttentionRequest{Acting: as, AllSessions: &all, Quiet: &quiet, Zone: &zone, Interruptions: &interruptions}
}

// Interruptions are the least priorities to choose from that come in the middle of a turn.
func (d agentPage) Interruptions() []choice {
	all := []choice{
		{Value: string(events.Urgent), Label: "what is urgent"}, {Value: string(events.Normal), Label: "what is normal or urgent"},
		{Value: string(events.Low), Label: "all mail"}, {Value: parley.NoInterruptions, Label: "nothing"},
	}
	for i := range all {
		all[i].Chosen = d.Attention != nil && (all[i].Value == d.Attention.Interruptions || i == 0 && d.Attention.Interruptions == "")
	}
	return all
}
