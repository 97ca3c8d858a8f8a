package gateway

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"parley/gateway/api"
	"parley/gateway/ws"
)

func TestEveryOperationIsARequest(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	h.guest("fae")
	k := h.dial("host")
	for _, o := range api.Operations() {
		if o.Name == "stop" {
			continue
		}
		k.send(fmt.Sprintf(`{"type":"%s_request","requestId":"r-%s","waitMs":50}`, o.Name, o.Name))
		f := k.receiveMembers()
		if f["requestId"] != "r-"+o.Name || f["type"] != o.Name+"_response" && f["type"] != "error" {
			t.Errorf("%s: got %v", o.Name, f)
		}
		if f["code"] == "INVALID_ARGUMENT" && strings.Contains(f["message"].(string), "no type of frame") {
			t.Errorf("%s is unknown", o.Name)
		}
	}
}

func TestResponseMembersAreInline(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	h.guest("fae")
	k := h.dial("host")
	k.send(`{"type":"form_request","requestId":7,"as":"fae","recipient":"@host","description":"D<&>","fields":[{"name":"a"}]}`)
	asked := k.receiveMembers()
	if asked["type"] != "form_response" || asked["requestId"] != 7.0 || asked["form"] == nil {
		t.Fatalf("got %v", asked)
	}
	k.send(`{"type":"get_message_request","requestId":"m","number":0}`)
	want(t, k.receive(), `{"type":"get_message_response","requestId":"m","message":{"number":0,"type":"form"`, `"D<&>"`)
	k.send(`{"type":"dismiss_request","requestId":"d","number":0}`)
	if got := k.receive(); got != `{"type":"dismiss_response","requestId":"d"}` {
		t.Errorf("got %s", got)
	}
	k.send(`{"type":"respond_form_request","requestId":"x","number":0,"values":{"b":1}}`)
	want(t, k.receive(), `{"type":"error","requestId":"x","code":"INVALID_ANSWER"`, `"fields":{"b":"no such field"}`, `"ts":"20`)
}

func TestMalformedFramesKeepTheConnection(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	k := h.dial("host")
	for name, c := range map[string]struct{ frame, code, requestID string }{
		"not JSON":           {`{"type"`, "PARSE_ERROR", ""},
		"nothing":            {``, "PARSE_ERROR", ""},
		"two documents":      {`{} {}`, "PARSE_ERROR", ""},
		"a list":             {`[]`, "INVALID_ARGUMENT", ""},
		"null":               {`null`, "INVALID_ARGUMENT", ""},
		"no type":            {`{"requestId":"r"}`, "INVALID_ARGUMENT", `"r"`},
		"a number as type":   {`{"type":1}`, "INVALID_ARGUMENT", ""},
		"an unknown type":    {`{"type":"fly_request","requestId":"r"}`, "INVALID_ARGUMENT", `"r"`},
		"no request":         {`{"type":"list_names","requestId":"r"}`, "INVALID_ARGUMENT", `"r"`},
		"a response":         {`{"type":"list_names_response","requestId":"r"}`, "INVALID_ARGUMENT", `"r"`},
		"too deep":           {`{"type":` + strings.Repeat(`[`, 64) + strings.Repeat(`]`, 64) + `}`, "TOO_LARGE", ""},
		"a list as ID":       {`{"type":"list_names_request","requestId":[1]}`, "INVALID_ARGUMENT", ""},
		"a long ID":          {`{"type":"list_names_request","requestId":"` + strings.Repeat("x", 300) + `"}`, "INVALID_ARGUMENT", ""},
		"a wrong member":     {`{"type":"form_request","requestId":"r","recipient":5}`, "INVALID_ARGUMENT", `"r"`},
		"no cursor":          {`{"type":"follow_messages","subscriptionId":"s","cursor":"1.2"}`, "INVALID_ARGUMENT", ""},
		"no subscription ID": {`{"type":"follow_messages"}`, "INVALID_ARGUMENT", ""},
		"unknown subscriber": {`{"type":"unsubscribe","subscriptionId":"s"}`, "INVALID_ARGUMENT", ""},
	} {
		k.send(c.frame)
		got := k.receive()
		want(t, got, `"type":"error"`, `"code":"`+c.code+`"`, `"ts":"`)
		if c.requestID != "" {
			want(t, got, `"requestId":`+c.requestID)
		} else if strings.Contains(got, "requestId\":") {
			t.Errorf("%s: a requestId in %s", name, got)
		}
	}
	if err := k.conn.Write(t.Context(), websocket.MessageBinary, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	want(t, k.receive(), "INVALID_ARGUMENT")
	k.send(`{"type":"list_names_request","requestId":"r"}`)
	want(t, k.receive(), `"list_names_response"`)
	k.send(`{"type":"` + strings.Repeat("x", api.MaxBody) + `"}`)
	if got := k.closeStatus(); got != websocket.StatusMessageTooBig {
		t.Errorf("a frame too large: %v", got)
	}
}

func TestWaitsDelayNoCalls(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	h.guest("fae")
	k := h.dial("host")
	k.send(`{"type":"form_request","as":"fae","recipient":"@host","description":"D","fields":[{"name":"a"}]}`)
	form := k.receiveMembers()["form"]
	for i := range ws.MaxWaits {
		k.send(fmt.Sprintf(`{"type":"await_request","requestId":%d,"as":"fae","id":%q}`, i, form))
	}
	k.send(`{"type":"await_request","requestId":"more","id":"0"}`)
	want(t, k.receive(), `"requestId":"more"`, "RATE_LIMITED")
	k.send(`{"type":"respond_form_request","requestId":"a","number":0,"values":{"a":"x"}}`)
	answers := map[any]int{}
	for range ws.MaxWaits + 1 {
		answers[k.receiveMembers()["requestId"]]++
	}
	if len(answers) != ws.MaxWaits+1 {
		t.Errorf("%d were answered", len(answers))
	}
}

func TestCallsBeyondASessionsBoundAreRefused(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	inside, leave := make(chan bool), make(chan bool)
	nodeOp(h.server, "hold", api.ScopeRead, func(context.Context, api.NodeRequest) (api.Done, error) {
		inside <- true
		<-leave
		return api.Done{}, nil
	})
	nodeOp(h.server, "panic", api.ScopeRead, func(context.Context, api.NodeRequest) (api.Done, error) { panic("secret") })
	k, other := h.dial("host"), h.dial("host")
	for range ws.MaxCalls {
		k.send(`{"type":"hold_request"}`)
		<-inside
	}
	k.send(`{"type":"list_names_request","requestId":"more"}`)
	want(t, k.receive(), `"requestId":"more"`, "RATE_LIMITED")
	other.send(`{"type":"list_names_request"}`)
	want(t, other.receive(), "list_names_response")
	close(leave)
	for range ws.MaxCalls {
		want(t, k.receive(), "hold_response")
	}
	k.send(`{"type":"panic_request","requestId":"p"}`)
	if got := k.receive(); !strings.Contains(got, "INTERNAL") || strings.Contains(got, "secret") {
		t.Errorf("got %s", got)
	}
}
