package backend

import (
	"context"
	"reflect"

	"parley/actors"
	"parley/gateway/api"
)

// handler performs the calls of one operation.
type handler struct {
	request, response reflect.Type
	perform           func(ctx context.Context, b *Backend, p *principal, r api.Request) (any, error)
}

// acting is a request that names the agent that is to perform it.
type acting interface{ Actor() string }

// ofAgent returns the handler of an operation of one agent.
func ofAgent[Req acting, Resp any](handle func(context.Context, *actors.Agent, Req) (Resp, error)) handler {
	return ofBackend(func(ctx context.Context, b *Backend, p *principal, req Req) (resp Resp, err error) {
		agent, err := actorOf(ctx, b, p, &req, req.Actor())
		if err != nil {
			return resp, err
		}
		return handle(ctx, agent, req)
	})
}

// ofBackend returns the handler of an operation of the node, or of one that looks at its principal.
func ofBackend[Req acting, Resp any](handle func(context.Context, *Backend, *principal, Req) (Resp, error)) handler {
	return handler{
		request:  reflect.TypeFor[Req](),
		response: reflect.TypeFor[Resp](),
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

// handlers returns the handlers of the operations by name. A new operation is a line in the table of package api, a line
// here, and a function.
func handlers() map[string]handler {
	return map[string]handler{
		"make_agent":    ofAgent(makeAgent),
		"list_names":    ofAgent(listNames),
		"lookup":        ofAgent(lookup),
		"locate":        ofAgent(locate),
		"store_name":    ofAgent(storeName),
		"rename_name":   ofAgent(renameName),
		"remove_name":   ofAgent(removeName),
		"copy_name":     ofAgent(copyName),
		"make_resource": ofAgent(makeResource),
		"end_resource":  ofAgent(endResource),
		"invoke":        ofAgent(invoke),
		"list_grants":   ofAgent(listGrants),
		"revoke":        ofAgent(revoke),

		"form":            ofAgent(requestForm),
		"request":         ofAgent(requestCapability),
		"approve":         ofBackend(approve),
		"list_rules":      ofBackend(listRules),
		"try_rules":       ofBackend(tryRules),
		"propose_rules":   ofBackend(proposeRules),
		"make_rule":       ofBackend(makeRule),
		"remove_rule":     ofBackend(removeRule),
		"limit_rule":      ofBackend(limitRule),
		"pause_rule":      ofBackend(pauseRule),
		"list_mandates":   ofBackend(listMandates),
		"get_mandate":     ofBackend(getMandate),
		"end_mandate":     ofBackend(endMandate),
		"await":           ofAgent(await),
		"cancel_form":     ofBackend(cancelForm),
		"amend_form":      ofAgent(amendForm),
		"withdraw_vote":   ofAgent(withdrawVote),
		"respond_form":    ofAgent(respondForm),
		"decide_many":     ofAgent(decideMany),
		"decline_form":    ofAgent(declineForm),
		"grant_answer":    ofBackend(grantAnswer),
		"answer_with":     ofBackend(answerWith),
		"forward_form":    ofAgent(forwardForm),
		"proof":           ofAgent(prove),
		"set_away":        ofAgent(setAway),
		"set_member":      ofAgent(setMember),
		"list_stand_ins":  ofAgent(listStandIns),
		"set_attention":   ofAgent(setAttention),
		"get_attention":   ofAgent(getAttention),
		"resolve":         ofAgent(resolve),
		"reject":          ofAgent(reject),
		"send":            ofAgent(send),
		"reply":           ofAgent(reply),
		"schedule":        ofAgent(schedule),
		"list_schedules":  ofAgent(listSchedules),
		"end_schedule":    ofAgent(endSchedule),
		"store_file":      ofAgent(storeFile),
		"fetch_file":      ofAgent(fetchFile),
		"lease":           ofAgent(askLease),
		"await_lease":     ofAgent(awaitLease),
		"renew_lease":     ofAgent(renewLease),
		"release_lease":   ofAgent(releaseLease),
		"list_leases":     ofAgent(listLeases),
		"set_team":        ofBackend(setTeam),
		"end_team":        ofAgent(endTeam),
		"list_teams":      ofAgent(listTeams),
		"make_topic":      ofAgent(makeTopic),
		"end_topic":       ofAgent(endTopic),
		"list_topics":     ofAgent(listTopics),
		"subscribe":       ofAgent(subscribe),
		"post":            ofAgent(post),
		"list_posts":      ofAgent(listPosts),
		"acknowledge":     ofAgent(acknowledge),
		"adopt":           ofAgent(adopt),
		"dismiss":         ofAgent(dismiss),
		"restore_message": ofAgent(restoreMessage),
		"snooze":          ofAgent(snooze),
		"mark_read":       ofAgent(markRead),
		"count_messages":  ofAgent(countMessages),
		"move_messages":   ofAgent(moveMessages),
		"save_draft":      ofAgent(saveDraft),
		"fetch_draft":     ofAgent(fetchDraft),
		"get_message":     ofAgent(getMessage),
		"read_mail":       ofBackend(readMail),
		"list_messages":   ofAgent(listMessages),
		"search":          ofAgent(search),
		"follow_messages": ofAgent(followMessages),
		"read_log":        ofAgent(readLog),
		"complete":        ofAgent(complete),

		"fetch_agents":       ofAgent(fetchAgents),
		"fetch_agent":        ofAgent(fetchAgent),
		"send_agent_message": ofAgent(sendAgentMessage),
		"wait_for_finish":    ofAgent(waitForFinish),
		"stop_agent":         ofAgent(stopAgent),
		"hold_agent":         ofAgent(holdAgent),
		"archive_agent":      ofAgent(archiveAgent),
		"set_status":         ofAgent(setStatus),
		"describe_agent":     ofAgent(describeAgent),
		"set_policy":         ofAgent(setPolicy),
		"run_agent":          ofBackend(runAgent),
		"read_output":        ofAgent(readOutput),

		"invite":           ofAgent(invite),
		"uninvite":         ofAgent(uninvite),
		"list_invitations": ofAgent(listInvitations),
		"accept":           ofAgent(accept),
		"create_token":     ofAgent(createToken),
		"list_tokens":      ofAgent(listTokens),
		"revoke_token":     ofBackend(revokeToken),
		"open_link":        ofBackend(openLink),

		"list_nodes": ofBackend(listNodes),
		"limit_peer": ofBackend(limitPeer),
		"drop_peer":  ofBackend(dropPeer),
		"get_quota":  ofAgent(getQuota),
		"set_quota":  ofAgent(setQuota),

		"status":         ofBackend(status),
		"start_programs": ofBackend(startPrograms),
		"verify":         ofBackend(verify),
		"stop":           ofBackend(stop),

		"archive_journal": ofBackend(archiveJournal),
		"list_archive":    ofBackend(listArchive),
		"move_segments":   ofBackend(moveSegments),
		"fetch_segments":  ofBackend(fetchSegments),
	}
}
