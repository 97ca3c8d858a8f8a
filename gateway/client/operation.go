package client

import (
	"encoding/json"
	"reflect"
	"slices"
)

// Operation is one of the node's that a Client has a method for: the types of what it sends and of what it reads.
// Request is without "as", which every request may have.
type Operation struct {
	Name              string
	Request, Response reflect.Type
}

// Operations lists them. It is for who checks the client against a node.
func Operations() []Operation {
	return []Operation{
		operation[Form, accepted]("form"),
		operation[Request, accepted]("request"),
		operation[Approval, permitted]("approve"),
		operation[awaiting, Outcome]("await"),
		operation[answering, Outcome]("respond_form"),
		operation[ending, Outcome]("decline_form"),
		operation[ending, Outcome]("cancel_form"),
		operation[ending, Outcome]("reject"),
		operation[handing, done]("forward_form"),
		operation[giving, Outcome]("resolve"),
		operation[sending, Sent]("send"),
		operation[replying, Sent]("reply"),
		operation[adopting, done]("adopt"),
		operation[subject, done]("dismiss"),
		operation[subject, Message]("get_message"),
		operation[listing, listed]("list_messages"),
		operation[following, listed]("follow_messages"),
		operation[naming, names]("list_names"),
		operation[lookingUp, lookedUp]("lookup"),
		operation[nameRequest, Located]("locate"),
		operation[storing, done]("store_name"),
		operation[nameRequest, done]("remove_name"),
		operation[NewAgent, Made]("make_agent"),
		operation[fetchingAgents, fetchedAgents]("fetch_agents"),
		operation[ofAgent, fetchedAgent]("fetch_agent"),
		operation[Prompt, prompted]("send_agent_message"),
		operation[waitingForAgent, finished]("wait_for_finish"),
		operation[ofAgent, agentID]("stop_agent"),
		operation[ofAgent, agentID]("archive_agent"),
		operation[reporting, done]("set_status"),
		operation[Description, done]("describe_agent"),
		operation[settingPolicy, agentID]("set_policy"),
		operation[readingOutput, readOutput]("read_output"),
	}
}

func operation[Req, Resp any](name string) Operation {
	return Operation{name, reflect.TypeFor[Req](), reflect.TypeFor[Resp]()}
}

// done is the answer of an operation that has nothing to tell.
type done struct{}

// Looks lists the operations that change nothing, and so can be called again.
func Looks() []string {
	return []string{
		"await", "complete", "follow_messages", "get_message", "list_grants", "list_invitations", "list_messages", "list_names",
		"list_nodes", "list_rules", "list_tokens", "locate", "lookup", "read_log", "read_output", "status", "verify",
		"fetch_agents", "fetch_agent", "wait_for_finish", "get_quota",
	}
}

// repeats reports whether to make a call twice is to make it once.
func repeats(operation string, body []byte) bool {
	if slices.Contains(Looks(), operation) {
		return true
	}
	var keyed struct {
		Key       string `json:"key"`
		MessageID string `json:"messageId"`
	}
	switch operation {
	case "form", "request", "approve":
		return json.Unmarshal(body, &keyed) == nil && keyed.Key != ""
	case "send_agent_message":
		return json.Unmarshal(body, &keyed) == nil && keyed.MessageID != ""
	}
	return false
}
