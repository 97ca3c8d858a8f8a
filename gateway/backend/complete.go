package backend

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
	"parley/mailbox/form"
)

const (
	maxCandidates = 200
	maxGist       = 200 // characters of a message beside its number
)

func complete(ctx context.Context, a *actors.Agent, r api.CompleteRequest) (api.CompleteResponse, error) {
	found, err := candidates(ctx, a, r)
	if err != nil {
		return api.CompleteResponse{}, err
	}
	fitting := []api.Candidate{}
	for _, c := range found {
		if strings.HasPrefix(c.Word, r.Prefix) && len(fitting) < maxCandidates {
			fitting = append(fitting, c)
		}
	}
	return api.CompleteResponse{Candidates: fitting}, nil
}

func candidates(ctx context.Context, a *actors.Agent, r api.CompleteRequest) ([]api.Candidate, error) {
	switch r.Of {
	case api.CompleteNames:
		return nameCandidates(ctx, a, r.Prefix)
	case api.CompletePending:
		return messageCandidates(ctx, a, view.MessageFilter{Pending: true}, func(view.Message) bool { return true })
	case api.CompleteRequests:
		return messageCandidates(ctx, a, view.MessageFilter{Pending: true}, func(e view.Message) bool { return e.Type == string(events.Request) })
	case api.CompleteMessages:
		return messageCandidates(ctx, a, view.MessageFilter{}, func(view.Message) bool { return true })
	case api.CompleteCarriers:
		return messageCandidates(ctx, a, view.MessageFilter{}, func(e view.Message) bool { return len(e.Edges) > 0 })
	case api.CompleteMail:
		return messageCandidates(ctx, a, view.MessageFilter{All: true}, func(view.Message) bool { return true })
	case api.CompleteOpen:
		return messageCandidates(ctx, a, view.MessageFilter{All: true}, func(e view.Message) bool {
			return e.Sent && e.Type != "message" && e.Outcome == nil
		})
	case api.CompleteFields:
		return fieldCandidates(ctx, a, r)
	case api.CompleteEdges:
		return edgeCandidates(ctx, a, r)
	case api.CompleteGrants:
		return grantCandidates(ctx, a)
	case api.CompleteInvitations:
		return invitationCandidates(ctx, a)
	}
	return nil, parley.Refuse(parley.InvalidArgument, "nothing is known of %.40q to complete", r.Of)
}

// nameCandidates returns the agent's names, or those below the path typed so far.
func nameCandidates(ctx context.Context, a *actors.Agent, prefix string) ([]api.Candidate, error) {
	folder := ""
	if i := strings.LastIndexByte(prefix, '/'); i >= 0 {
		folder = prefix[:i]
	}
	names, err := a.Names().List(ctx, folder, "", 0)
	if err != nil {
		return nil, err
	}
	if folder != "" {
		folder += "/"
	}
	found := make([]api.Candidate, 0, len(names)+2)
	for _, n := range names {
		found = append(found, api.Candidate{Word: folder + n})
	}
	if folder == "" {
		found = append(found, api.Candidate{Word: "HOST", Description: "the agent's host"}, api.Candidate{Word: "SELF", Description: "the agent itself"})
	}
	return found, nil
}

func messageCandidates(ctx context.Context, a *actors.Agent, v view.MessageFilter, wanted func(view.Message) bool) ([]api.Candidate, error) {
	var found []api.Candidate
	for e, err := range a.Mail().All(ctx, v) {
		if err != nil {
			return nil, err
		}
		if wanted(e) {
			found = append(found, api.Candidate{Word: strconv.FormatUint(e.Number, 10), Description: gist(e)})
		}
	}
	slices.Reverse(found) // the newest first
	return found, nil
}

// gist returns a few words that tell a message from others.
func gist(e view.Message) string {
	words := e.Description
	if e.Type == "message" {
		words = e.Text
	}
	party := e.Sender()
	if e.Sent {
		party = "to " + e.ToName
	}
	gist := []rune(strings.TrimSpace(party + ": " + words[:min(len(words), 4*maxGist)]))
	return string(gist[:min(len(gist), maxGist)])
}

func grantCandidates(ctx context.Context, a *actors.Agent) ([]api.Candidate, error) {
	grants, err := a.Names().Grants(ctx, view.GrantFilter{Live: true})
	if err != nil {
		return nil, err
	}
	found := make([]api.Candidate, len(grants))
	for i, g := range grants {
		found[i] = api.Candidate{Word: g.ID.String(), Description: g.Name + " to " + g.ToName}
	}
	return found, nil
}

func invitationCandidates(ctx context.Context, a *actors.Agent) ([]api.Candidate, error) {
	open, err := a.Peers().Invitations(ctx)
	if err != nil {
		return nil, err
	}
	found := make([]api.Candidate, len(open))
	for i, v := range open {
		found[i] = api.Candidate{Word: v.Name, Description: "until " + v.Until.String()}
	}
	return found, nil
}

// fieldCandidates returns the fields of a form. Once a field's name and a colon are typed, it returns the values that
// the field may have. A field for free text has none.
func fieldCandidates(ctx context.Context, a *actors.Agent, r api.CompleteRequest) ([]api.Candidate, error) {
	e, err := chosen(ctx, a, r)
	if err != nil {
		return nil, err
	}
	name, typed, isNamed := strings.Cut(r.Prefix, ":")
	if !isNamed {
		found := make([]api.Candidate, len(e.Fields))
		for i, f := range e.Fields {
			found[i] = api.Candidate{Word: f.Name + ":", Description: describeField(f)}
		}
		return found, nil
	}
	i := slices.IndexFunc(e.Fields, func(f events.Field) bool { return f.Name == name })
	if i < 0 {
		return nil, nil
	}
	found, err := valueCandidates(ctx, a, e.Fields[i], typed)
	for i := range found {
		found[i].Word = name + ":" + found[i].Word
	}
	return found, err
}

func chosen(ctx context.Context, a *actors.Agent, r api.CompleteRequest) (view.Message, error) {
	ref, err := r.FormRef.Parse()
	if err != nil {
		return view.Message{}, err
	}
	return a.Message(ctx, ref)
}

// describeField describes a field in a few words.
func describeField(f events.Field) string {
	parts := []string{cmp.Or(f.Label, f.Name), cmp.Or(string(f.Type), string(events.Text))}
	if f.Required {
		parts = append(parts, "required")
	}
	return strings.Join(parts, ", ")
}

// valueCandidates returns the values of a field with a choice of them.
func valueCandidates(ctx context.Context, a *actors.Agent, f events.Field, typed string) ([]api.Candidate, error) {
	switch form.ControlOf(&f) {
	case form.Reference:
		return nameCandidates(ctx, a, typed)
	case form.YesNo:
		return []api.Candidate{{Word: "true"}, {Word: "false"}}, nil
	}
	found := make([]api.Candidate, len(f.Options))
	for i, o := range f.Options {
		found[i] = api.Candidate{Word: o.Value, Description: strings.TrimSpace(o.Label + " " + o.Description)}
	}
	return found, nil
}

// edgeCandidates returns the edges of a message, each with its value.
func edgeCandidates(ctx context.Context, a *actors.Agent, r api.CompleteRequest) ([]api.Candidate, error) {
	e, err := chosen(ctx, a, r)
	if err != nil {
		return nil, err
	}
	var found []api.Candidate
	for _, edge := range slices.Sorted(maps.Keys(e.Edges)) {
		found = append(found, api.Candidate{Word: edge, Description: view.ShowValue(e.Edges[edge], nil, kindOf)})
	}
	return found, nil
}

func kindOf(r capabilities.Ref) string { return string(r.Kind) + " " + view.ShortID(r.Target) }
