package gateway

import (
	"context"
	"reflect"

	"parley/actors"
	"parley/capabilities"
	"parley/gateway/api"
)

// operation is one thing that the world may ask of a node. Every edge walks the table of them.
type operation struct {
	name     string
	scope    api.Scope
	ofNode   bool // it is about the whole node, and so for its host
	waits    bool // a call may take long without doing anything; it is counted apart
	lists    bool // its response may be large
	request  reflect.Type
	response reflect.Type
	call     func(ctx context.Context, s *Server, body []byte) (any, error)
}

type acting interface{ Actor() string }

// op is an operation of one agent's.
func op[Req acting, Resp any](name string, needs api.Scope, handle func(context.Context, *actors.Agent, Req) (Resp, error)) operation {
	return serverOp(name, needs, func(ctx context.Context, s *Server, req Req) (resp Resp, err error) {
		agent, err := s.agent(ctx, req.Actor())
		if err != nil {
			return resp, err
		}
		return handle(ctx, agent, req)
	})
}

// nodeOp is an operation of the whole node's.
func nodeOp[Req acting, Resp any](name string, needs api.Scope, handle func(context.Context, *Server, Req) (Resp, error)) operation {
	o := serverOp(name, needs, handle)
	o.ofNode = true
	return o
}

// serverOp is an operation that the server itself has a part in.
func serverOp[Req acting, Resp any](name string, needs api.Scope, handle func(context.Context, *Server, Req) (Resp, error)) operation {
	return operation{
		name:     name,
		scope:    needs,
		request:  reflect.TypeFor[Req](),
		response: reflect.TypeFor[Resp](),
		call: func(ctx context.Context, s *Server, body []byte) (any, error) {
			var req Req
			if err := decode(body, &req); err != nil {
				return nil, err
			}
			resp, err := handle(ctx, s, req)
			if err != nil {
				return nil, err
			}
			return resp, nil
		},
	}
}

// waiting marks an operation whose calls may wait.
func waiting(o operation) operation {
	o.waits = true
	return o
}

// listing marks an operation whose response may be large. Few of them are built at once.
func listing(o operation) operation {
	o.lists = true
	return o
}

// kind returns what a call of the operation takes a place of.
func (o operation) kind() kind {
	if o.waits {
		return kindWaits
	}
	return kindCalls
}

// operations is the table. Adding an operation is one line here and one function.
func operations() []operation {
	return []operation{
		op("make_agent", api.ScopeAdmin, makeAgent),
		listing(op("list_names", api.ScopeRead, listNames)),
		op("lookup", api.ScopeRead, lookup),
		op("locate", api.ScopeRead, locate),
		op("store_name", api.ScopeAdmin, storeName),
		op("rename_name", api.ScopeAdmin, renameName),
		op("remove_name", api.ScopeAdmin, removeName),
		op("copy_name", api.ScopeAdmin, copyName),
		listing(op("list_grants", api.ScopeRead, listGrants)),
		op("revoke", api.ScopeAdmin, revoke),

		op("form", api.ScopeAsk, requestForm),
		op("request", api.ScopeAsk, request),
		op("approve", api.ScopeAsk, approve),
		listing(serverOp("list_rules", api.ScopeRead, listRules)),
		serverOp("remove_rule", api.ScopeAdmin, removeRule),
		serverOp("limit_rule", api.ScopeAdmin, limitRule),
		waiting(op("await", api.ScopeRead, await)),
		op("cancel_form", api.ScopeAsk, cancelForm),
		op("respond_form", api.ScopeAnswer, respondForm),
		op("decline_form", api.ScopeAnswer, declineForm),
		op("forward_form", api.ScopeAnswer, forwardForm),
		op("resolve", api.ScopeAnswer, resolve),
		op("reject", api.ScopeAnswer, reject),
		op("send", api.ScopeAsk, send),
		op("reply", api.ScopeAsk, reply),
		op("adopt", api.ScopeAdmin, adopt),
		op("dismiss", api.ScopeAnswer, dismiss),
		op("get_message", api.ScopeRead, getMessage),
		listing(op("list_messages", api.ScopeRead, listMessages)),
		waiting(listing(op("follow_messages", api.ScopeRead, followMessages))),
		listing(op("read_log", api.ScopeRead, readLog)),
		op("complete", api.ScopeRead, complete),

		listing(op("fetch_agents", api.ScopeRead, fetchAgents)),
		op("fetch_agent", api.ScopeRead, fetchAgent),
		op("send_agent_message", api.ScopeAsk, sendAgentMessage),
		waiting(op("wait_for_finish", api.ScopeRead, waitForFinish)),
		op("stop_agent", api.ScopeAsk, stopAgent),
		op("archive_agent", api.ScopeAdmin, archiveAgent),
		op("set_status", api.ScopeAsk, setStatus),
		op("describe_agent", api.ScopeAdmin, describeAgent),
		op("set_policy", api.ScopeAdmin, setPolicy),
		op("run_agent", api.ScopeAdmin, runAgent),
		waiting(listing(op("read_output", api.ScopeRead, readOutput))),

		op("invite", api.ScopeAdmin, invite),
		op("uninvite", api.ScopeAdmin, uninvite),
		listing(op("list_invitations", api.ScopeRead, listInvitations)),
		op("accept", api.ScopeAdmin, accept),
		op("create_token", api.ScopeAdmin, createToken),
		listing(op("list_tokens", api.ScopeRead, listTokens)),
		op("revoke_token", api.ScopeAdmin, revokeToken),
		serverOp("open_link", api.ScopeAdmin, openLink),

		listing(nodeOp("list_nodes", api.ScopeRead, listNodes)),
		nodeOp("limit_peer", api.ScopeAdmin, limitPeer),
		nodeOp("drop_peer", api.ScopeAdmin, dropPeer),
		op("get_quota", api.ScopeRead, getQuota),
		op("set_quota", api.ScopeAdmin, setQuota),

		nodeOp("status", api.ScopeRead, status),
		nodeOp("start_programs", api.ScopeAdmin, startPrograms),
		waiting(nodeOp("verify", api.ScopeRead, verify)),
		nodeOp("stop", api.ScopeAdmin, stop),
	}
}

// table indexes the operations by name.
func table(ops []operation) map[string]operation {
	byName := make(map[string]operation, len(ops))
	for _, o := range ops {
		byName[o.name] = o
	}
	return byName
}

// agent gives the agent that a request is made for.
func (s *Server) agent(ctx context.Context, as string) (*actors.Agent, error) {
	if capabilities.Special(as) == capabilities.NameSelf {
		as = ""
	}
	return s.actingAs(ctx, caller(ctx), as)
}
