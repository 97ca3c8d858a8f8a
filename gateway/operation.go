package gateway

import (
	"context"
	"fmt"
	"reflect"

	"parley/actors"
	"parley/capabilities"
	"parley/gateway/api"
)

// operation is an operation of the table, and its handler. Every edge walks the table of them.
type operation struct {
	api.Operation
	call call
}

// call performs an operation with a request.
type call func(ctx context.Context, s *Server, r request) (any, error)

// request is a request before its operation has read it.
type request interface {
	// read stores the request in a value of the operation's request type.
	read(into any) error
}

// body is a request as JSON.
type body []byte

func (b body) read(into any) error { return decode(b, into) }

// typed is a request or response within the process, of the operation's type.
type typed struct{ value any }

func (t typed) read(into any) error {
	to, from := reflect.ValueOf(into).Elem(), reflect.ValueOf(t.value)
	if from.Type() != to.Type() {
		return fmt.Errorf("a %s was given for a %s", from.Type(), to.Type())
	}
	to.Set(from)
	return nil
}

// handler performs the calls of one operation.
type handler struct {
	request, response reflect.Type
	call              call
}

type acting interface{ Actor() string }

// ofAgent returns the handler of an operation of one agent.
func ofAgent[Req acting, Resp any](handle func(context.Context, *actors.Agent, Req) (Resp, error)) handler {
	return ofServer(func(ctx context.Context, s *Server, req Req) (resp Resp, err error) {
		agent, err := s.agent(ctx, req.Actor())
		if err != nil {
			return resp, err
		}
		return handle(ctx, agent, req)
	})
}

// ofServer returns the handler of an operation that the server itself has a part in.
func ofServer[Req acting, Resp any](handle func(context.Context, *Server, Req) (Resp, error)) handler {
	return handler{
		request:  reflect.TypeFor[Req](),
		response: reflect.TypeFor[Resp](),
		call: func(ctx context.Context, s *Server, r request) (any, error) {
			var req Req
			if err := r.read(&req); err != nil {
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

// kind returns what a call of the operation takes a place of.
func (o operation) kind() api.Kind {
	if o.Waits {
		return api.KindWaits
	}
	return api.KindCalls
}

// handlers has the handlers of the operations by name. Another operation is one line in the table of package api, one
// here, and one function.
func handlers() map[string]handler {
	return map[string]handler{
		"make_agent":  ofAgent(makeAgent),
		"list_names":  ofAgent(listNames),
		"lookup":      ofAgent(lookup),
		"locate":      ofAgent(locate),
		"store_name":  ofAgent(storeName),
		"rename_name": ofAgent(renameName),
		"remove_name": ofAgent(removeName),
		"copy_name":   ofAgent(copyName),
		"list_grants": ofAgent(listGrants),
		"revoke":      ofAgent(revoke),

		"form":            ofAgent(requestForm),
		"request":         ofAgent(requestCapability),
		"approve":         ofAgent(approve),
		"list_rules":      ofServer(listRules),
		"remove_rule":     ofServer(removeRule),
		"limit_rule":      ofServer(limitRule),
		"await":           ofAgent(await),
		"cancel_form":     ofAgent(cancelForm),
		"respond_form":    ofAgent(respondForm),
		"decline_form":    ofAgent(declineForm),
		"forward_form":    ofAgent(forwardForm),
		"resolve":         ofAgent(resolve),
		"reject":          ofAgent(reject),
		"send":            ofAgent(send),
		"reply":           ofAgent(reply),
		"adopt":           ofAgent(adopt),
		"dismiss":         ofAgent(dismiss),
		"get_message":     ofAgent(getMessage),
		"list_messages":   ofAgent(listMessages),
		"follow_messages": ofAgent(followMessages),
		"read_log":        ofAgent(readLog),
		"complete":        ofAgent(complete),

		"fetch_agents":       ofAgent(fetchAgents),
		"fetch_agent":        ofAgent(fetchAgent),
		"send_agent_message": ofAgent(sendAgentMessage),
		"wait_for_finish":    ofAgent(waitForFinish),
		"stop_agent":         ofAgent(stopAgent),
		"archive_agent":      ofAgent(archiveAgent),
		"set_status":         ofAgent(setStatus),
		"describe_agent":     ofAgent(describeAgent),
		"set_policy":         ofAgent(setPolicy),
		"run_agent":          ofAgent(runAgent),
		"read_output":        ofAgent(readOutput),

		"invite":           ofAgent(invite),
		"uninvite":         ofAgent(uninvite),
		"list_invitations": ofAgent(listInvitations),
		"accept":           ofAgent(accept),
		"create_token":     ofAgent(createToken),
		"list_tokens":      ofAgent(listTokens),
		"revoke_token":     ofAgent(revokeToken),
		"open_link":        ofServer(openLink),

		"list_nodes": ofServer(listNodes),
		"limit_peer": ofServer(limitPeer),
		"drop_peer":  ofServer(dropPeer),
		"get_quota":  ofAgent(getQuota),
		"set_quota":  ofAgent(setQuota),

		"status":         ofServer(status),
		"start_programs": ofServer(startPrograms),
		"verify":         ofServer(verify),
		"stop":           ofServer(stop),
	}
}

// table indexes the operations by name.
func table() map[string]operation {
	handlers := handlers()
	byName := make(map[string]operation, len(handlers))
	for _, o := range api.Operations() {
		byName[o.Name] = operation{o, handlers[o.Name].call}
	}
	return byName
}

// agent returns the agent that a request is made for.
func (s *Server) agent(ctx context.Context, as string) (*actors.Agent, error) {
	if capabilities.Special(as) == capabilities.NameSelf {
		as = ""
	}
	return s.actingAs(ctx, caller(ctx), as)
}
