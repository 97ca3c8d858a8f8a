package gateway

import (
	"context"
	"reflect"

	"parley/actors"
	"parley/capabilities"
)

// scope is the part of an agent's authority that an operation needs. A caller on the node's own socket
// has all of them.
type scope string

const (
	scopeRead   scope = "read"   // looks, changes nothing
	scopeAsk    scope = "ask"    // sends mail, and ends what the agent asked itself
	scopeAnswer scope = "answer" // settles what others asked
	scopeAdmin  scope = "admin"  // changes what the agent holds or gave, and the node
)

// operation is one thing that the world may ask of a node. Every edge walks the table of them.
type operation struct {
	name     string
	scope    scope
	ofNode   bool // it is about the whole node, and so for its host
	waits    bool // a call may take long without doing anything; it is counted apart
	lists    bool // its response may be large
	request  reflect.Type
	response reflect.Type
	call     func(ctx context.Context, s *Server, body []byte) (any, error)
}

// Acting is part of every request: it says for which agent the request is made.
type Acting struct {
	As string `json:"as,omitempty"` // the name under which the node's host holds it; "" is the host
}

func (a Acting) actor() string { return a.As }

type acting interface{ actor() string }

// op is an operation of one agent's.
func op[Req acting, Resp any](name string, needs scope, handle func(context.Context, *actors.Agent, Req) (Resp, error)) operation {
	return serverOp(name, needs, func(ctx context.Context, s *Server, req Req) (resp Resp, err error) {
		agent, err := s.agent(ctx, req.actor())
		if err != nil {
			return resp, err
		}
		return handle(ctx, agent, req)
	})
}

// nodeOp is an operation of the whole node's.
func nodeOp[Req acting, Resp any](name string, needs scope, handle func(context.Context, *Server, Req) (Resp, error)) operation {
	o := serverOp(name, needs, handle)
	o.ofNode = true
	return o
}

// serverOp is an operation that the server itself has a part in.
func serverOp[Req acting, Resp any](name string, needs scope, handle func(context.Context, *Server, Req) (Resp, error)) operation {
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
		op("make_agent", scopeAdmin, makeAgent),
		listing(op("list_names", scopeRead, listNames)),
		op("lookup", scopeRead, lookup),
		op("locate", scopeRead, locate),
		op("store_name", scopeAdmin, storeName),
		op("rename_name", scopeAdmin, renameName),
		op("remove_name", scopeAdmin, removeName),
		op("copy_name", scopeAdmin, copyName),
		listing(op("list_grants", scopeRead, listGrants)),
		op("revoke", scopeAdmin, revoke),

		op("form", scopeAsk, requestForm),
		op("request", scopeAsk, request),
		op("approve", scopeAsk, approve),
		listing(serverOp("list_rules", scopeRead, listRules)),
		serverOp("remove_rule", scopeAdmin, removeRule),
		serverOp("limit_rule", scopeAdmin, limitRule),
		waiting(op("await", scopeRead, await)),
		op("cancel_form", scopeAsk, cancelForm),
		op("respond_form", scopeAnswer, respondForm),
		op("decline_form", scopeAnswer, declineForm),
		op("forward_form", scopeAnswer, forwardForm),
		op("resolve", scopeAnswer, resolve),
		op("reject", scopeAnswer, reject),
		op("send", scopeAsk, send),
		op("reply", scopeAsk, reply),
		op("adopt", scopeAdmin, adopt),
		op("dismiss", scopeAnswer, dismiss),
		op("get_message", scopeRead, getMessage),
		listing(op("list_messages", scopeRead, listMessages)),
		waiting(listing(op("follow_messages", scopeRead, followMessages))),
		listing(op("read_log", scopeRead, readLog)),
		op("complete", scopeRead, complete),

		listing(op("fetch_agents", scopeRead, fetchAgents)),
		op("fetch_agent", scopeRead, fetchAgent),
		op("send_agent_message", scopeAsk, sendAgentMessage),
		waiting(op("wait_for_finish", scopeRead, waitForFinish)),
		op("stop_agent", scopeAsk, stopAgent),
		op("archive_agent", scopeAdmin, archiveAgent),
		op("set_status", scopeAsk, setStatus),
		op("describe_agent", scopeAdmin, describeAgent),
		op("set_policy", scopeAdmin, setPolicy),
		op("run_agent", scopeAdmin, runAgent),
		waiting(listing(op("read_output", scopeRead, readOutput))),

		op("invite", scopeAdmin, invite),
		op("uninvite", scopeAdmin, uninvite),
		listing(op("list_invitations", scopeRead, listInvitations)),
		op("accept", scopeAdmin, accept),
		op("create_token", scopeAdmin, createToken),
		listing(op("list_tokens", scopeRead, listTokens)),
		op("revoke_token", scopeAdmin, revokeToken),
		serverOp("open_link", scopeAdmin, openLink),

		listing(nodeOp("list_nodes", scopeRead, listNodes)),
		nodeOp("limit_peer", scopeAdmin, limitPeer),
		nodeOp("drop_peer", scopeAdmin, dropPeer),
		op("get_quota", scopeRead, getQuota),
		op("set_quota", scopeAdmin, setQuota),

		nodeOp("status", scopeRead, status),
		nodeOp("start_programs", scopeAdmin, startPrograms),
		waiting(nodeOp("verify", scopeRead, verify)),
		nodeOp("stop", scopeAdmin, stop),
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
