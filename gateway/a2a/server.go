package a2a

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"

	"parley"
	"parley/events"
	"parley/gateway/api"
	"parley/gateway/bridge"
	"parley/gateway/sanitize"
)

// The paths of the protocol on a node.
const (
	Path     = "/a2a"                        // JSON-RPC
	RESTPath = "/a2a/rest"                   // HTTP+JSON, perhaps followed by a tenant
	CardPath = a2asrv.WellKnownAgentCardPath // needs no token
)

// Extension is the URI of two things: metadata of an answer that names its form, and the schema of a form.
const Extension = "urn:parley:a2a:form:1"

const (
	keepAlive = 15 * time.Second
	maxWait   = 50 * time.Second // of a response that waits for a task
)

// Client is the caller of a request.
type Client interface {
	api.Client // within the caller's rights and limits
	// Identity returns the ID of the caller.
	Identity() string
	// Credential returns the caller and the token by which it acts; no token on the node's own socket.
	Credential() events.TokenRef
	// May refuses with NOT_PERMITTED an operation that the token is not good for.
	May(operation string) error
}

// Options configure a Server.
type Options struct {
	Version string // of the node
	Pushes  string // folder with the push configurations; "" for none
	Network bridge.Network
	Log     *slog.Logger
	Now     func() time.Time

	// Resume returns the client of a token again. It refuses with UNAUTHENTICATED once the token has ended.
	Resume func(context.Context, events.TokenRef) (Client, error)
}

// Server serves the protocol.
type Server struct {
	handler            *handler
	rpc, rest, tenants http.Handler
}

// New makes a Server with the push configurations that its folder has.
func New(o Options) (*Server, error) {
	h := &handler{version: o.Version, answered: recent{all: map[string]bool{}}}
	if o.Pushes != "" {
		var err error
		if h.pushes, err = readPushes(o); err != nil {
			return nil, err
		}
	}
	alive := a2asrv.WithTransportKeepAlive(keepAlive)
	return &Server{
		handler: h, rpc: a2asrv.NewJSONRPCHandler(h, alive), rest: a2asrv.NewRESTHandler(h, alive),
		tenants: a2asrv.NewTenantRESTHandler("/{*}", h, alive),
	}, nil
}

// Network returns the nearest network in which receivers may be, if that is not the public one.
func (s *Server) Network() bridge.Network {
	if s.handler.pushes == nil || s.handler.pushes.Network == bridge.Public {
		return ""
	}
	return s.handler.pushes.Network
}

// Push tells the receivers of push configurations of the changes of tasks, until ctx ends.
func (s *Server) Push(ctx context.Context) {
	if s.handler.pushes != nil {
		s.handler.pushes.run(ctx)
	}
}

type callKey struct{}

// caller is the client of a request, and the address by which it reached the node.
type caller struct {
	Client
	base string
}

// Has reports whether a path is one of the protocol, but not that of the card. Some clients put a slash behind that of
// JSON-RPC.
func Has(path string) bool {
	return path == Path || path == Path+"/" || strings.HasPrefix(path, RESTPath+"/")
}

// Serve serves a request of a client. Base is the address of the node, as in https://host:port. The body of the request has
// been checked and bounded.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, c Client, base string) {
	r = r.WithContext(context.WithValue(r.Context(), callKey{}, &caller{c, base}))
	if r.URL.Path == Path || r.URL.Path == Path+"/" {
		s.rpc.ServeHTTP(w, r)
		return
	}
	u := *r.URL
	u.Path, u.RawPath = strings.TrimPrefix(u.Path, RESTPath), ""
	r.URL = &u
	first, _, _ := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	if slices.Contains([]string{"message:send", "message:stream", "tasks", "extendedAgentCard"}, first) {
		s.rest.ServeHTTP(w, r)
		return
	}
	s.tenants.ServeHTTP(w, r)
}

// callerOf returns the client of a request. It refuses versions of the protocol that this package does not speak.
func callerOf(ctx context.Context) (*caller, error) {
	c, ok := ctx.Value(callKey{}).(*caller)
	if !ok {
		return nil, a2a.ErrUnauthenticated
	}
	call, ok := a2asrv.CallContextFrom(ctx)
	if !ok {
		return c, nil
	}
	versions, _ := call.ServiceParams().Get(a2a.SvcParamVersion)
	for _, v := range versions {
		if v != "" && v != string(a2a.Version) && !strings.HasPrefix(v, string(a2a.Version)+".") {
			return nil, a2a.ErrVersionNotSupported
		}
	}
	return c, nil
}

// Card returns the public card of the node at an address. It tells nothing of the node's agents.
func (s *Server) Card(base string) ([]byte, error) { return json.Marshal(s.handler.card(base, "")) }

func (h *handler) card(base, tenant string) *a2a.AgentCard {
	rpc := a2a.NewAgentInterface(base+Path, a2a.TransportProtocolJSONRPC)
	rest := a2a.NewAgentInterface(base+RESTPath, a2a.TransportProtocolHTTPJSON)
	rpc.Tenant, rest.Tenant = tenant, tenant
	modes := []string{"text/plain", "application/json"}
	return &a2a.AgentCard{
		Name: "Parley", Version: h.version,
		Description:         "Durable mail and forms for agents and people. All requests but this card need a bearer token of the node.",
		SupportedInterfaces: []*a2a.AgentInterface{rpc, rest},
		Capabilities: a2a.AgentCapabilities{
			Streaming: true, ExtendedAgentCard: true, PushNotifications: h.pushes != nil,
			Extensions: []a2a.AgentExtension{{URI: Extension, Description: "The form that a task waits for, with its JSON Schema, and which form a message answers."}},
		},
		DefaultInputModes: modes, DefaultOutputModes: modes,
		SecuritySchemes: a2a.NamedSecuritySchemes{
			"bearer": a2a.HTTPAuthSecurityScheme{Scheme: "Bearer", Description: "A token of an agent of the node, from parley token create."},
		},
		SecurityRequirements: a2a.SecurityRequirementsOptions{{"bearer": {}}},
		Skills: []a2a.AgentSkill{{
			ID: "ask", Name: "Ask", Tags: []string{"ask", "forms"},
			Description: "Asks an agent or a person, named by the tenant, and returns the answer. What they ask meanwhile requires input.",
		}},
	}
}

// refusal returns an error as one of the protocol, with its code in the metadata.
func refusal(err error) error {
	e := parley.AsError(err)
	kind := a2a.ErrServerError
	switch e.Code {
	case parley.NoSuchMessage, parley.NotAForm, parley.Archived:
		kind = a2a.ErrTaskNotFound
	case parley.Unauthenticated:
		kind = a2a.ErrUnauthenticated
	case parley.NotPermitted:
		kind = a2a.ErrUnauthorized
	case parley.NoPendingInput, parley.AlreadyAnswered, parley.AlreadyCancelled, parley.AlreadyDeclined, parley.AlreadyExpired:
		kind = a2a.ErrUnsupportedOperation
	case parley.Internal:
		kind = a2a.ErrInternalError
	case parley.InvalidArgument, parley.InvalidForm, parley.InvalidName, parley.InvalidAnswer, parley.TooLarge, parley.UnknownName,
		parley.UnknownRecipient, parley.AgentNotFound, parley.AgentArchived, parley.Ambiguous, parley.NameTaken, parley.NodeUnknown:
		kind = a2a.ErrInvalidParams
	}
	return a2a.NewError(kind, sanitize.Lines(e.Message)).WithErrorInfoMeta(map[string]string{"code": string(e.Code)})
}

// wrong refuses a request whose members do not fit.
func wrong(format string, arguments ...any) error {
	return a2a.NewError(a2a.ErrInvalidParams, fmt.Sprintf(format, arguments...))
}
