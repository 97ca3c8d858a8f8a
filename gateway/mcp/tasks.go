package mcp

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/api"
)

// The Tasks extension (2026-07-28). A question that is not answered at once is a task, whose ID is the form's: so a task
// outlives the connection and the node's process, and is the form's page, its number and its outcome.
const (
	tasksExtension = "io.modelcontextprotocol/tasks"

	methodGetTask    = "tasks/get"
	methodUpdateTask = "tasks/update"
	methodCancelTask = "tasks/cancel"

	pollInterval = 2000 // milliseconds

	nameHeader     = "Mcp-Name"
	headerMismatch = -32020 // the error of a header that differs from the body
)

// The statuses of a task that a form has. A form never fails: that it was declined is a result.
const (
	taskWorking   = "working"
	taskCompleted = "completed"
	taskCancelled = "cancelled"
)

// task is a form as the extension describes one, with its result if it has ended.
type task struct {
	sdk.ResultBase
	ResultType   string              `json:"resultType"`
	ID           string              `json:"taskId"`
	Status       string              `json:"status"`
	Message      string              `json:"statusMessage,omitempty"`
	Created      capabilities.Time   `json:"createdAt"`
	Updated      capabilities.Time   `json:"lastUpdatedAt"`
	TTL          *int64              `json:"ttlMs"` // null: a form is kept
	PollInterval int                 `json:"pollIntervalMs,omitempty"`
	Result       *sdk.CallToolResult `json:"result,omitempty"`
}

// taskParams are the parameters of the extension's methods.
type taskParams struct {
	sdk.ParamsBase
	ID        string          `json:"taskId"`
	Responses json.RawMessage `json:"inputResponses"`
}

// acknowledgement is the result of an update and of a cancellation.
type acknowledgement struct {
	sdk.ResultBase
	ResultType string `json:"resultType"`
}

// takesTasks reports whether the client of a call takes a task in place of a result. Clients say so with each request.
func (c *call) takesTasks() bool {
	if _, said := c.request.Params.Meta[sdk.MetaKeyClientCapabilities]; !said {
		return false
	}
	can := c.request.ClientCapabilities()
	if can == nil {
		return false
	}
	_, declared := can.Extensions[tasksExtension]
	return declared
}

// taskOf returns the task of a form that the agent has asked. The result of a call that creates one has the type task.
func taskOf(m *view.Message) *task {
	t := &task{ResultType: "complete", ID: m.MessageID.String(), Status: taskWorking, Created: m.Date, Updated: m.Date, PollInterval: pollInterval}
	o := m.Outcome
	if o == nil {
		return t
	}
	t.Updated, t.PollInterval = o.At, 0
	if o.Status == view.StatusCancelled {
		t.Status = taskCancelled
		return t
	}
	t.Status = taskCompleted
	t.Result = result(endingOf(o, t.ID))
	return t
}

// createdTask returns the result of a call whose form is still open: a task.
func (c *call) createdTask(ctx context.Context, form string) (any, error) {
	m, err := c.message(ctx, form)
	if err != nil {
		return nil, err
	}
	if m.Outcome != nil {
		return endingOf(m.Outcome, form), nil
	}
	t := taskOf(m)
	t.ResultType = "task"
	return t, nil
}

// addTasks adds the extension's methods to a server. The SDK reads their parameters, and serveTasks serves them.
func addTasks(p *sdk.Server) error {
	for _, method := range []string{methodGetTask, methodUpdateTask, methodCancelTask} {
		err := sdk.AddReceivingCustomMethod(p, method, func(context.Context, *sdk.ServerSession, *taskParams) (*acknowledgement, error) {
			return nil, fmt.Errorf("nothing serves %s", method)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// serveTasks returns the middleware that serves the extension's methods, and creates tasks.
func (s *Server) serveTasks(who func(sdk.Request) (Client, error)) sdk.Middleware {
	return func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
			switch method {
			case methodGetTask, methodUpdateTask, methodCancelTask:
				return s.serveTask(ctx, who, method, r)
			}
			got, err := next(ctx, method, r)
			if answer, ok := got.(*sdk.CallToolResult); ok && err == nil {
				if t, ok := answer.StructuredContent.(*task); ok {
					return t, nil
				}
			}
			return got, err
		}
	}
}

// serveTask serves a method of the extension for the agent of the request, which must have asked the task's form.
func (s *Server) serveTask(ctx context.Context, who func(sdk.Request) (Client, error), method string, r sdk.Request) (sdk.Result, error) {
	params, ok := r.GetParams().(*taskParams)
	if !ok || params == nil || params.ID == "" {
		return nil, invalidTask("a taskId is missing")
	}
	if extra := r.GetExtra(); extra != nil && extra.Header.Get(nameHeader) != "" && extra.Header.Get(nameHeader) != params.ID {
		return nil, &jsonrpc.Error{Code: headerMismatch, Message: "the header " + nameHeader + " names another task"}
	}
	a, err := who(r)
	if err == nil {
		err = s.enter(a)
	}
	if err != nil {
		return nil, taskError(err)
	}
	defer s.leave(a)
	c := &call{Server: s, agent: a}
	got, err := s.perform(ctx, func(ctx context.Context, c *call) (any, error) { return c.doTask(ctx, method, params.ID) }, c)
	if err != nil {
		return nil, taskError(err)
	}
	return got.(sdk.Result), nil //nolint:forcetypeassert // doTask returns results
}

// doTask returns the task of a form, or ends it. What was answered for a task is ignored: its questions are asked in the
// call that creates it.
func (c *call) doTask(ctx context.Context, method, id string) (any, error) {
	if _, err := capabilities.ParseID(id); err != nil {
		return nil, parley.Refuse(parley.NoSuchMessage, "there is no task %.100q", id)
	}
	m, err := c.message(ctx, id)
	if err != nil {
		return nil, err
	}
	if !m.Sent || m.Type == "message" {
		return nil, parley.Refuse(parley.NoSuchMessage, "there is no task %.100q", id)
	}
	switch method {
	case methodGetTask:
		return taskOf(m), nil
	case methodCancelTask:
		if m.Outcome != nil {
			break
		}
		err := api.CancelForm.Run(ctx, steady{c.agent}, api.EndRequest{FormRef: api.RefTo(id), Reason: "the client cancelled the task"})
		switch parley.CodeOf(err) {
		case "", parley.AlreadyAnswered, parley.AlreadyCancelled, parley.AlreadyDeclined, parley.AlreadyExpired:
		default:
			return nil, err
		}
	}
	return &acknowledgement{ResultType: "complete"}, nil
}

// taskError returns an error as one of the protocol: the extension's methods have no results with errors.
func taskError(err error) error {
	e := sanitizeError(parley.AsError(err))
	switch e.Code {
	case parley.Internal:
		return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
	case parley.NoSuchMessage, parley.InvalidArgument, parley.NotPermitted:
		return invalidTask(e.Message)
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: e.Message}
}

func invalidTask(why string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: why}
}
