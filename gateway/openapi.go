package gateway

import (
	"bytes"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"parley"
	"parley/gateway/api"
)

const openAPIPath = "/openapi.json"

// serveOpenAPI describes the operations to programs that make clients.
func (s *Server) serveOpenAPI(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		refuse(w, parley.Refuse(parley.InvalidArgument, "the description is read with GET"), http.StatusMethodNotAllowed)
		return
	}
	account := s.account(r.Context())
	if err := account.take(api.KindCalls, 1); err != nil {
		refuse(w, err, 0)
		return
	}
	defer account.give(api.KindCalls, 1)
	buf := s.bodies.get()
	defer s.bodies.put(buf)
	if err := encode(buf, document(s.operations, s.version)); err != nil {
		s.fail(w, r, "openapi", err)
		return
	}
	s.respond(w, buf.Bytes())
}

// The parts of an OpenAPI 3.1 document that Parley's has.
type (
	apiDocument struct {
		OpenAPI    string             `json:"openapi"`
		Info       apiInfo            `json:"info"`
		Security   []map[string][]any `json:"security"`
		Tags       []apiTag           `json:"tags"`
		Paths      map[string]apiPath `json:"paths"`
		Components apiComponents      `json:"components"`
	}
	apiInfo struct {
		Title       string `json:"title"`
		Version     string `json:"version"`
		Description string `json:"description"`
	}
	apiTag struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	}
	apiPath struct {
		Get  *apiCall `json:"get,omitempty"`
		Post *apiCall `json:"post,omitempty"`
	}
	apiCall struct {
		OperationID string                 `json:"operationId"`
		Summary     string                 `json:"summary,omitempty"`
		Tags        []string               `json:"tags,omitempty"`
		Scope       api.Scope              `json:"x-parley-scope,omitempty"`
		OfNode      bool                   `json:"x-parley-host-only,omitempty"`
		Waits       bool                   `json:"x-parley-waits,omitempty"`
		Security    []map[string][]any     `json:"security,omitempty"`
		Request     *apiContent            `json:"requestBody,omitempty"`
		Responses   map[string]apiResponse `json:"responses"`
	}
	apiResponse struct {
		Description string              `json:"description"`
		Content     map[string]apiMedia `json:"content,omitempty"`
	}
	apiContent struct {
		Content map[string]apiMedia `json:"content"`
	}
	apiMedia struct {
		Schema *schema `json:"schema"`
	}
	apiComponents struct {
		Schemas  schemas                   `json:"schemas"`
		Security map[string]map[string]any `json:"securitySchemes"`
	}
)

// scopeTags say what the scopes are, by which operations are grouped.
func scopeTags() []apiTag {
	return []apiTag{
		{string(api.ScopeRead), "Looks, and changes nothing."},
		{string(api.ScopeAsk), "Sends mail, and ends what the agent asked itself."},
		{string(api.ScopeAnswer), "Settles what others asked."},
		{string(api.ScopeAdmin), "Changes what the agent holds or gave, and the node."},
	}
}

// document makes the document: all of it from the table.
func document(operations map[string]operation, version string) apiDocument {
	made := schemas{}
	doc := apiDocument{
		OpenAPI: "3.1.0",
		Info: apiInfo{
			Title: "Parley", Version: version,
			Description: "Durable mail and forms for agents. Each operation is also a WebSocket frame at /ws: " +
				`{"type":"NAME_request","requestId":R,…} with the request's members, answered by {"type":"NAME_response","requestId":R,…}.`,
		},
		Security: []map[string][]any{{"bearer": {}}},
		Tags:     scopeTags(),
		Paths:    map[string]apiPath{},
		Components: apiComponents{Schemas: made, Security: map[string]map[string]any{
			"bearer": {"type": "http", "scheme": "bearer", "description": "A token, as parley token create makes them."},
		}},
	}
	failures := made.content(reflect.TypeFor[api.Failure]())
	for _, name := range slices.Sorted(maps.Keys(operations)) {
		o := operations[name]
		doc.Paths[rpcPath+name] = apiPath{Post: &apiCall{
			OperationID: name, Summary: summary(name), Tags: []string{string(o.Scope)}, Scope: o.Scope, OfNode: o.OfNode, Waits: o.Waits,
			Request: &apiContent{made.content(o.Request)},
			Responses: map[string]apiResponse{
				"200":     {Description: "It is done, and what it changed is on disk.", Content: made.content(o.Response)},
				"default": {Description: "It was refused, or failed: the code says why.", Content: failures},
			},
		}}
	}
	doc.Paths["/healthz"] = apiPath{Get: &apiCall{
		OperationID: "healthz", Summary: "Says that the server is there. It asks for no token.", Security: []map[string][]any{{}},
		Responses: map[string]apiResponse{strconv.Itoa(http.StatusOK): {Description: "It is there."}},
	}}
	doc.Paths[webSocketPath] = apiPath{Get: &apiCall{
		OperationID: "ws", Summary: "Opens a WebSocket for frames of JSON text.",
		Responses: map[string]apiResponse{strconv.Itoa(http.StatusSwitchingProtocols): {Description: "It is open."}},
	}}
	return doc
}

// content is a body of a type.
func (s schemas) content(t reflect.Type) map[string]apiMedia {
	return map[string]apiMedia{jsonType[0]: {Schema: s.of(t)}}
}

// summary is an operation's name in words.
func summary(name string) string {
	words := []byte(strings.ReplaceAll(name, "_", " "))
	copy(words, bytes.ToUpper(words[:1]))
	return string(words)
}
