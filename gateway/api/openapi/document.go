package openapi

import (
	"bytes"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"parley/gateway/api"
)

// The parts of an OpenAPI 3.1 document that Parley uses.
type (
	// Document is the whole document.
	Document struct {
		OpenAPI    string             `json:"openapi"`
		Info       Info               `json:"info"`
		Security   []map[string][]any `json:"security"`
		Tags       []Tag              `json:"tags"`
		Paths      map[string]Path    `json:"paths"`
		Components Components         `json:"components"`
	}
	// Info names the API and its version.
	Info struct {
		Title       string `json:"title"`
		Version     string `json:"version"`
		Description string `json:"description"`
	}
	// Tag is a group of operations.
	Tag struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	}
	// Path has the calls at one address.
	Path struct {
		Get  *Call `json:"get,omitempty"`
		Post *Call `json:"post,omitempty"`
	}
	// Call is one operation as HTTP calls it.
	Call struct {
		OperationID string              `json:"operationId"`
		Summary     string              `json:"summary,omitempty"`
		Tags        []string            `json:"tags,omitempty"`
		Scope       api.Scope           `json:"x-parley-scope,omitempty"`
		OfNode      bool                `json:"x-parley-host-only,omitempty"`
		Waits       bool                `json:"x-parley-waits,omitempty"`
		Security    []map[string][]any  `json:"security,omitempty"`
		Request     *Body               `json:"requestBody,omitempty"`
		Responses   map[string]Response `json:"responses"`
	}
	// Response is a response with one status.
	Response struct {
		Description string           `json:"description"`
		Content     map[string]Media `json:"content,omitempty"`
	}
	// Body is the body of a request, by media type.
	Body struct {
		Content map[string]Media `json:"content"`
	}
	// Media is a body of one media type.
	Media struct {
		Schema *Schema `json:"schema"`
	}
	// Components has the schemas that others refer to.
	Components struct {
		Schemas  Schemas                   `json:"schemas"`
		Security map[string]map[string]any `json:"securitySchemes"`
	}
)

// JSON is the media type of all requests and responses.
const JSON = "application/json"

// scopeTags returns the tags that group operations, one for each scope.
func scopeTags() []Tag {
	return []Tag{
		{string(api.ScopeRead), "Looks, and changes nothing."},
		{string(api.ScopeAsk), "Sends mail, and ends what the agent asked itself."},
		{string(api.ScopeAnswer), "Settles what others asked."},
		{string(api.ScopeAdmin), "Changes what the agent holds or gave, and the node."},
	}
}

// Describe returns the document of all operations. Version is that of the node.
func Describe(version string) Document {
	schemas := Schemas{}
	doc := Document{
		OpenAPI: "3.1.0",
		Info: Info{
			Title: "Parley", Version: version,
			Description: "Durable mail and forms for agents. Each operation is also a WebSocket frame at /ws: " +
				`{"type":"NAME_request","requestId":R,…} with the request's members, answered by {"type":"NAME_response","requestId":R,…}.`,
		},
		Security: []map[string][]any{{"bearer": {}}},
		Tags:     scopeTags(),
		Paths:    map[string]Path{},
		Components: Components{Schemas: schemas, Security: map[string]map[string]any{
			"bearer": {"type": "http", "scheme": "bearer", "description": "A token, as parley token create makes them."},
		}},
	}
	failures := schemas.content(reflect.TypeFor[api.Failure]())
	for _, o := range api.Operations() {
		doc.Paths[api.CallPath+o.Name] = Path{Post: &Call{
			OperationID: o.Name, Summary: summary(o.Name), Tags: []string{string(o.Scope)}, Scope: o.Scope, OfNode: o.OfNode, Waits: o.Waits,
			Request: &Body{schemas.content(o.Request)},
			Responses: map[string]Response{
				"200":     {Description: "It is done, and what it changed is on disk.", Content: schemas.content(o.Response)},
				"default": {Description: "It was refused, or failed: the code says why.", Content: failures},
			},
		}}
	}
	doc.Paths[api.HealthPath] = Path{Get: &Call{
		OperationID: "healthz", Summary: "Says that the server is there. It asks for no token.", Security: []map[string][]any{{}},
		Responses: map[string]Response{strconv.Itoa(http.StatusOK): {Description: "It is there."}},
	}}
	doc.Paths[api.WebSocketPath] = Path{Get: &Call{
		OperationID: "ws", Summary: "Opens a WebSocket for frames of JSON text.",
		Responses: map[string]Response{strconv.Itoa(http.StatusSwitchingProtocols): {Description: "It is open."}},
	}}
	return doc
}

// content returns a body of a type.
func (s Schemas) content(t reflect.Type) map[string]Media {
	return map[string]Media{JSON: {Schema: s.Of(t)}}
}

// summary returns the name of an operation in words.
func summary(name string) string {
	words := []byte(strings.ReplaceAll(name, "_", " "))
	copy(words, bytes.ToUpper(words[:1]))
	return string(words)
}
