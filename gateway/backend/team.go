package backend

import (
	"context"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/gateway/api"
)

// maxJoining bounds the agents that one request adds to a team or removes.
const maxJoining = 64

func setTeam(ctx context.Context, b *Backend, p *principal, r api.SetTeamRequest) (none view.Teams, err error) {
	host, err := b.agent(ctx, p, r.As)
	if err != nil {
		return none, err
	}
	if len(r.Add)+len(r.Remove) > maxJoining {
		return none, parley.Refuse(parley.TooLarge, "more than %d agents at once", maxJoining)
	}
	var both [2][]*actors.Agent
	teams := actors.TeamsOf(host)
	for i, names := range [][]string{r.Add, r.Remove} {
		for _, name := range names {
			one, err := teams.Joining(ctx, name)
			if err != nil {
				return none, err
			}
			both[i] = append(both[i], one)
		}
	}
	if r.Coder != nil {
		if host.ID() != b.node.Host().ID() {
			return none, parley.Refuse(parley.NotPermitted, "the agents of folders are the node's host's")
		}
		one, err := b.FolderGuest(ctx, api.Register{Program: r.Coder.Program, Title: r.Coder.Title, Folder: r.Coder.Folder}, "")
		if err != nil {
			return none, err
		}
		both[0] = append(both[0], one)
	}
	if err := teams.Set(ctx, r.Team, both[0], both[1]); err != nil {
		return none, err
	}
	return teams.List(ctx, r.Team)
}

func endTeam(ctx context.Context, a *actors.Agent, r api.EndTeamRequest) (api.Done, error) {
	return api.Done{}, actors.TeamsOf(a).End(ctx, r.Team)
}

func listTeams(ctx context.Context, a *actors.Agent, r api.ListTeamsRequest) (view.Teams, error) {
	return actors.TeamsOf(a).List(ctx, r.Team)
}
