package backend

import (
	"context"

	"parley/actors"
	"parley/gateway/api"
)

// handler performs the calls of one operation.
type handler struct {
	operation string
	perform   func(ctx context.Context, b *Backend, p *principal, r api.Request) (any, error)
}

// acting is a request that names the agent that is to perform it.
type acting interface{ Actor() string }

// ofAgent returns the handler of an operation of one agent.
func ofAgent[Req acting, Resp any](o api.Op[Req, Resp], handle func(context.Context, *actors.Agent, Req) (Resp, error)) handler {
	return ofBackend(o, func(ctx context.Context, b *Backend, p *principal, req Req) (resp Resp, err error) {
		agent, err := actorOf(ctx, b, p, &req, req.Actor())
		if err != nil {
			return resp, err
		}
		return handle(ctx, agent, req)
	})
}

// ofBackend returns the handler of an operation of the node, or of one that looks at its principal.
func ofBackend[Req acting, Resp any](o api.Op[Req, Resp], handle func(context.Context, *Backend, *principal, Req) (Resp, error)) handler {
	return handler{
		operation: string(o),
		perform: func(ctx context.Context, b *Backend, p *principal, r api.Request) (any, error) {
			var req Req
			if err := r.Read(&req); err != nil {
				return nil, err
			}
			resp, err := handle(ctx, b, p, req)
			if err != nil {
				return nil, err
			}
			return resp, nil
		},
	}
}

// handlers returns the handlers of the operations. A new operation is a name and a line in the table of package api, a line
// here, and a function.
func handlers() []handler {
	return []handler{
		ofAgent(api.MakeAgent, makeAgent),
		ofAgent(api.ListNames, listNames),
		ofAgent(api.Lookup, lookup),
		ofAgent(api.Locate, locate),
		ofAgent(api.StoreName, storeName),
		ofAgent(api.RenameName, renameName),
		ofAgent(api.RemoveName, removeName),
		ofAgent(api.CopyName, copyName),
		ofAgent(api.MakeResource, makeResource),
		ofAgent(api.EndResource, endResource),
		ofAgent(api.Invoke, invoke),
		ofAgent(api.ListGrants, listGrants),
		ofAgent(api.Revoke, revoke),

		ofAgent(api.Form, requestForm),
		ofAgent(api.RequestCapability, requestCapability),
		ofBackend(api.Approve, approve),
		ofBackend(api.ListRules, listRules),
		ofBackend(api.TryRules, tryRules),
		ofBackend(api.ProposeRules, proposeRules),
		ofBackend(api.MakeRule, makeRule),
		ofBackend(api.RemoveRule, removeRule),
		ofBackend(api.LimitRule, limitRule),
		ofBackend(api.PauseRule, pauseRule),
		ofBackend(api.ListMandates, listMandates),
		ofBackend(api.GetMandate, getMandate),
		ofBackend(api.EndMandate, endMandate),
		ofAgent(api.ListPasskeys, listPasskeys),
		ofBackend(api.BeginPasskey, beginPasskey),
		ofBackend(api.AddPasskey, addPasskey),
		ofBackend(api.RemovePasskey, removePasskey),
		ofBackend(api.RequirePasskey, requirePasskey),
		ofBackend(api.AskPasskey, askPasskey),
		ofAgent(api.Await, await),
		ofBackend(api.CancelForm, cancelForm),
		ofBackend(api.AmendForm, amendForm),
		ofAgent(api.WithdrawVote, withdrawVote),
		ofAgent(api.ClaimForm, claimForm),
		ofAgent(api.RespondForm, respondForm),
		ofAgent(api.DecideMany, decideMany),
		ofAgent(api.DeclineForm, declineForm),
		ofBackend(api.GrantAnswer, grantAnswer),
		ofBackend(api.AnswerWith, answerWith),
		ofAgent(api.ForwardForm, forwardForm),
		ofAgent(api.ProveForm, prove),
		ofAgent(api.SetAway, setAway),
		ofAgent(api.SetMember, setMember),
		ofAgent(api.ListStandIns, listStandIns),
		ofAgent(api.SetAttention, setAttention),
		ofAgent(api.GetAttention, getAttention),
		ofAgent(api.Resolve, resolve),
		ofAgent(api.Reject, reject),
		ofAgent(api.Send, send),
		ofAgent(api.Reply, reply),
		ofAgent(api.Schedule, schedule),
		ofAgent(api.ListSchedules, listSchedules),
		ofAgent(api.EndSchedule, endSchedule),
		ofAgent(api.StoreFile, storeFile),
		ofAgent(api.FetchFile, fetchFile),
		ofAgent(api.Lease, askLease),
		ofAgent(api.AwaitLease, awaitLease),
		ofAgent(api.RenewLease, renewLease),
		ofAgent(api.ReleaseLease, releaseLease),
		ofAgent(api.ListLeases, listLeases),
		ofBackend(api.SetTeam, setTeam),
		ofAgent(api.EndTeam, endTeam),
		ofAgent(api.ListTeams, listTeams),
		ofAgent(api.MakeTopic, makeTopic),
		ofAgent(api.EndTopic, endTopic),
		ofAgent(api.ListTopics, listTopics),
		ofAgent(api.Subscribe, subscribe),
		ofAgent(api.Post, post),
		ofAgent(api.ListPosts, listPosts),
		ofAgent(api.Acknowledge, acknowledge),
		ofAgent(api.Adopt, adopt),
		ofAgent(api.Dismiss, dismiss),
		ofAgent(api.RestoreMessage, restoreMessage),
		ofAgent(api.Snooze, snooze),
		ofAgent(api.MarkRead, markRead),
		ofAgent(api.CountMessages, countMessages),
		ofAgent(api.MoveMessages, moveMessages),
		ofAgent(api.SaveDraft, saveDraft),
		ofAgent(api.FetchDraft, fetchDraft),
		ofAgent(api.GetMessage, getMessage),
		ofBackend(api.ReadUnread, readMail),
		ofAgent(api.ListMessages, listMessages),
		ofAgent(api.Search, search),
		ofAgent(api.FollowMessages, followMessages),
		ofAgent(api.ReadLog, readLog),
		ofAgent(api.Complete, complete),

		ofAgent(api.FetchAgents, fetchAgents),
		ofAgent(api.FetchAgent, fetchAgent),
		ofAgent(api.SendAgentMessage, sendAgentMessage),
		ofAgent(api.WaitForFinish, waitForFinish),
		ofAgent(api.StopAgent, stopAgent),
		ofAgent(api.HoldAgent, holdAgent),
		ofAgent(api.ArchiveAgent, archiveAgent),
		ofAgent(api.SetStatus, setStatus),
		ofAgent(api.DescribeAgent, describeAgent),
		ofBackend(api.SetPolicy, setPolicy),
		ofBackend(api.RunAgent, runAgent),
		ofAgent(api.ReadOutput, readOutput),

		ofAgent(api.Invite, invite),
		ofAgent(api.Uninvite, uninvite),
		ofAgent(api.ListInvitations, listInvitations),
		ofAgent(api.Accept, accept),
		ofAgent(api.CreateToken, createToken),
		ofAgent(api.ListTokens, listTokens),
		ofBackend(api.RevokeToken, revokeToken),
		ofBackend(api.OpenLink, openLink),

		ofBackend(api.ListNodes, listNodes),
		ofBackend(api.LimitPeer, limitPeer),
		ofBackend(api.DropPeer, dropPeer),
		ofAgent(api.GetQuota, getQuota),
		ofAgent(api.SetQuota, setQuota),

		ofBackend(api.Status, status),
		ofBackend(api.StartPrograms, startPrograms),
		ofBackend(api.Verify, verify),
		ofBackend(api.Stop, stop),

		ofBackend(api.ArchiveJournal, archiveJournal),
		ofBackend(api.ListArchive, listArchive),
		ofBackend(api.MoveSegments, moveSegments),
		ofBackend(api.FetchSegments, fetchSegments),
	}
}
