package a2a

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"golang.org/x/net/http/httpguts"

	"parley"
	"parley/gateway/bridge"
	"parley/gateway/exchange"
)

// Bounds of a push configuration, in bytes.
const (
	maxConfigID    = 128
	maxAddress     = 2048
	maxToken       = 1024
	maxCredentials = 4096
)

// GetTaskPushConfig implements a2asrv.RequestHandler.
func (h *handler) GetTaskPushConfig(ctx context.Context, r *a2a.GetTaskPushConfigRequest) (*a2a.PushConfig, error) {
	c, _, err := h.forPush(ctx, r.TaskID)
	if err != nil {
		return nil, err
	}
	for _, config := range h.pushes.list(c.Identity(), r.TaskID) {
		if config.ID == r.ID {
			return config, nil
		}
	}
	return nil, a2a.NewError(a2a.ErrTaskNotFound, "the task has no such push configuration")
}

// ListTaskPushConfigs implements a2asrv.RequestHandler. One page has all.
func (h *handler) ListTaskPushConfigs(ctx context.Context, r *a2a.ListTaskPushConfigRequest) (*a2a.ListTaskPushConfigResponse, error) {
	c, _, err := h.forPush(ctx, r.TaskID)
	if err != nil {
		return nil, err
	}
	if r.PageSize < 0 || r.PageToken != "" {
		return nil, wrong("one page has all push configurations of a task")
	}
	return &a2a.ListTaskPushConfigResponse{Configs: h.pushes.list(c.Identity(), r.TaskID)}, nil
}

// CreateTaskPushConfig implements a2asrv.RequestHandler. It replaces a configuration with the same ID.
func (h *handler) CreateTaskPushConfig(ctx context.Context, config *a2a.PushConfig) (*a2a.PushConfig, error) {
	c, e, err := h.forPush(ctx, config.TaskID)
	if err == nil {
		err = h.checkPush(c, config)
	}
	if err != nil {
		return nil, err
	}
	return h.push(c, e, config, e.Mark())
}

// DeleteTaskPushConfig implements a2asrv.RequestHandler. It is no error if there is none.
func (h *handler) DeleteTaskPushConfig(ctx context.Context, r *a2a.DeleteTaskPushConfigRequest) error {
	c, _, err := h.forPush(ctx, r.TaskID)
	if err == nil {
		err = mayPush(c)
	}
	if err == nil {
		err = h.pushes.remove(c.Identity(), r.TaskID, r.ID)
	}
	return err
}

// forPush returns the client of a request for the configurations of a task, and the task's exchange.
func (h *handler) forPush(ctx context.Context, id a2a.TaskID) (*caller, *exchange.Exchange, error) {
	if h.pushes == nil {
		return nil, nil, a2a.ErrPushNotificationNotSupported
	}
	c, err := callerOf(ctx)
	if err != nil {
		return nil, nil, err
	}
	e, err := exchange.Find(ctx, c, string(id))
	if err != nil {
		return nil, nil, refusal(err)
	}
	return c, e, nil
}

// mayPush refuses a client that may not ask: it has the node send nothing either.
func mayPush(c *caller) error {
	if err := c.May("form"); err != nil {
		return refusal(err)
	}
	return nil
}

// checkPush refuses a configuration that a task cannot have.
func (h *handler) checkPush(c *caller, config *a2a.PushConfig) error {
	if h.pushes == nil {
		return a2a.ErrPushNotificationNotSupported
	}
	if err := mayPush(c); err != nil {
		return err
	}
	switch {
	case len(config.ID) > maxConfigID || !utf8.ValidString(config.ID) || strings.ContainsFunc(config.ID, unicode.IsControl):
		return wrong("the ID of a push configuration has %d bytes at most, and no control characters", maxConfigID)
	case len(config.URL) > maxAddress:
		return wrong("the URL of a push configuration has %d bytes at most", maxAddress)
	case len(config.Token) > maxToken || !httpguts.ValidHeaderFieldValue(config.Token):
		return wrong("the token of a push configuration has %d bytes at most, as a header may have", maxToken)
	}
	if a := config.Auth; a != nil && (len(a.Credentials) > maxCredentials || !httpguts.ValidHeaderFieldName(a.Scheme) || !httpguts.ValidHeaderFieldValue(a.Credentials)) {
		return wrong("the authentication of a push configuration has a scheme, and credentials of %d bytes at most, as a header may have", maxCredentials)
	}
	if err := bridge.CheckReceiver(config.URL, h.pushes.Network); err != nil {
		return wrong("%s", parley.AsError(err).Message)
	}
	return nil
}

// push has a receiver told of the changes of a task after the state with a mark.
func (h *handler) push(c *caller, e *exchange.Exchange, config *a2a.PushConfig, known string) (*a2a.PushConfig, error) {
	own := *config
	own.TaskID = a2a.TaskID(e.ID())
	if own.ID == "" { // the same for the same address: a repeated request adds nothing
		sum := sha256.Sum256([]byte(own.URL))
		own.ID = hex.EncodeToString(sum[:8])
	}
	if err := h.pushes.put(&push{By: c.Credential(), Config: own, Told: known, Idle: e.Ended()}); err != nil {
		return nil, refusal(err)
	}
	return shown(&own), nil
}

// shown returns a configuration without its secrets, which nobody needs to read.
func shown(config *a2a.PushConfig) *a2a.PushConfig {
	own := *config
	own.Token = ""
	if own.Auth != nil {
		own.Auth = &a2a.PushAuthInfo{Scheme: own.Auth.Scheme}
	}
	return &own
}
