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
		Servers    []Server           `json:"servers"`
		Security   []map[string][]any `json:"security"`
		Tags       []Tag              `json:"tags"`
		Paths      map[string]Path    `json:"paths"`
		Components Components         `json:"components"`
	}
	// Info names the API and its version.
	Info struct {
		Title       string            `json:"title"`
		Version     string            `json:"version"`
		Description string            `json:"description"`
		Contact     map[string]string `json:"contact"`
		License     map[string]string `json:"license"`
	}
	// Server is where the API is.
	Server struct {
		URL         string `json:"url"`
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
		Description string              `json:"description,omitempty"`
		Tags        []string            `json:"tags,omitempty"`
		Scope       api.Scope           `json:"x-parley-scope,omitempty"`
		OfNode      bool                `json:"x-parley-host-only,omitempty"`
		Waits       bool                `json:"x-parley-waits,omitempty"`
		Security    []map[string][]any  `json:"security,omitempty"`
		Request     *Body               `json:"requestBody,omitempty"`
		Responses   map[string]Response `json:"responses"`
	}
	// Response is a response with one status, or with those of a class. It is a reference alone where Ref is set.
	Response struct {
		Ref         string           `json:"$ref,omitempty"`
		Description string           `json:"description,omitempty"`
		Content     map[string]Media `json:"content,omitempty"`
	}
	// Body is the body of a request, by media type.
	Body struct {
		Required bool             `json:"required"`
		Content  map[string]Media `json:"content"`
	}
	// Media is a body of one media type.
	Media struct {
		Schema *Schema `json:"schema"`
	}
	// Components has what others refer to.
	Components struct {
		Schemas   Schemas                   `json:"schemas"`
		Responses map[string]Response       `json:"responses"`
		Security  map[string]map[string]any `json:"securitySchemes"`
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

// The names of the responses that have errors.
const (
	refused = "Refused"
	failed  = "Failed"
)

// responsePrefix is the beginning of a Response's Ref. The name of a response follows it.
const responsePrefix = "#/components/responses/"

// Describe returns the document of all operations. Version is that of the node.
func Describe(version string) Document {
	schemas := Schemas{}
	failure := schemas.content(reflect.TypeFor[api.Failure]())
	doc := Document{
		OpenAPI: "3.1.0",
		Info: Info{
			Title: "Parley", Version: version,
			Description: "Durable mail and forms for agents. Each operation is also a WebSocket frame at " + api.WebSocketPath + ": " +
				`{"type":"NAME_request","requestId":R,…} with the request's members, answered by {"type":"NAME_response","requestId":R,…}.`,
			Contact: map[string]string{"name": "The host of this node"},
			License: map[string]string{"name": "Apache-2.0", "identifier": "Apache-2.0"},
		},
		Servers:  []Server{{"/", "The node that serves this document."}},
		Security: []map[string][]any{{"bearer": {}}},
		Tags:     scopeTags(),
		Paths:    map[string]Path{},
		Components: Components{
			Schemas: schemas,
			Responses: map[string]Response{
				refused: {Description: "It was refused, and nothing has changed: the code says why.", Content: failure},
				failed:  {Description: "It failed, or a wait has run out: the code says why.", Content: failure},
			},
			Security: map[string]map[string]any{
				"bearer": {"type": "http", "scheme": "bearer", "description": "A token, as parley token create makes them."},
			},
		},
	}
	for _, o := range api.Operations() {
		doc.Paths[api.CallPath+o.Name] = Path{Post: &Call{
			OperationID: o.Name, Summary: summary(o.Name), Description: description(o), Tags: []string{string(o.Scope)},
			Scope: o.Scope, OfNode: o.OfNode, Waits: o.Waits,
			Request: &Body{Required: true, Content: schemas.content(o.Request)},
			Responses: withErrors(http.StatusOK, Response{
				Description: "It is done, and what it changed is on disk.", Content: schemas.content(o.Response),
			}),
		}}
	}
	doc.Paths[api.HealthPath] = Path{Get: &Call{
		OperationID: "healthz", Summary: "Says that the server is there.", Description: "Needs no token.",
		Tags: []string{string(api.ScopeRead)}, Security: []map[string][]any{{}},
		Responses: withErrors(http.StatusOK, Response{Description: "It is there."}),
	}}
	return doc
}

// withErrors returns the responses of a call: one for success, and those that have errors.
func withErrors(status int, done Response) map[string]Response {
	return map[string]Response{
		strconv.Itoa(status): done,
		"4XX":                {Ref: responsePrefix + refused},
		"5XX":                {Ref: responsePrefix + failed},
		"default":            {Ref: responsePrefix + failed},
	}
}

// description returns the conditions of an operation in words.
func description(o api.Operation) string {
	said := "Needs a token with the scope " + string(o.Scope) + "."
	if o.OfNode {
		said += " Only the node's host may call it."
	}
	if o.Waits {
		said += " It may wait before it responds."
	}
	return said
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
