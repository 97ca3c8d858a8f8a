package a2a

import (
	"context"
	"iter"
	"strconv"
	"strings"
	"sync"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"parley"
	"parley/actors/view"
	"parley/gateway/api"
	"parley/gateway/exchange"
	"parley/gateway/sanitize"
)

// handler implements a2asrv.RequestHandler.
type handler struct {
	version  string
	answered recent
	pushes   *pushes // nil for none
}

// GetTask implements a2asrv.RequestHandler.
func (h *handler) GetTask(ctx context.Context, r *a2a.GetTaskRequest) (*a2a.Task, error) {
	c, err := callerOf(ctx)
	if err != nil {
		return nil, err
	}
	e, err := exchange.Find(ctx, c, string(r.ID))
	if err != nil {
		return nil, refusal(err)
	}
	return cut(taskOf(e, nil), r.HistoryLength), nil
}

// cut leaves out the history that was not asked for.
func cut(t *a2a.Task, length *int) *a2a.Task {
	if length != nil && *length <= 0 {
		t.History = nil
	}
	return t
}

const defaultTasks, maxTasks = 50, 100

// ListTasks implements a2asrv.RequestHandler. A page has fewer tasks than asked for if the search took long.
func (h *handler) ListTasks(ctx context.Context, r *a2a.ListTasksRequest) (*a2a.ListTasksResponse, error) {
	c, err := callerOf(ctx)
	if err != nil {
		return nil, err
	}
	size := r.PageSize
	if size == 0 {
		size = defaultTasks
	}
	if size < 1 || size > maxTasks {
		return nil, wrong("a page has 1 to %d tasks", maxTasks)
	}
	var before uint64
	if r.PageToken != "" {
		if before, err = strconv.ParseUint(r.PageToken, 10, 64); err != nil || before == 0 {
			return nil, wrong("the page token is not one of a response")
		}
	}
	list, next, err := exchange.List(ctx, c, before, size, func(m *view.Message) bool {
		e := exchange.Exchange{Form: *m}
		return r.ContextID == "" || r.ContextID == e.Agent()
	})
	if err != nil {
		return nil, refusal(err)
	}
	got := &a2a.ListTasksResponse{Tasks: []*a2a.Task{}, PageSize: size}
	for _, e := range list {
		t := cut(taskOf(e, nil), r.HistoryLength)
		if r.Status != "" && r.Status != t.Status.State || r.StatusTimestampAfter != nil && !t.Status.Timestamp.After(*r.StatusTimestampAfter) {
			continue
		}
		if !r.IncludeArtifacts {
			t.Artifacts = nil
		}
		got.Tasks = append(got.Tasks, t)
	}
	got.TotalSize = len(got.Tasks)
	if next > 0 {
		got.NextPageToken = strconv.FormatUint(next, 10)
	}
	return got, nil
}

// CancelTask implements a2asrv.RequestHandler. It withdraws the caller's form, or declines one that was put to it.
func (h *handler) CancelTask(ctx context.Context, r *a2a.CancelTaskRequest) (*a2a.Task, error) {
	c, err := callerOf(ctx)
	if err != nil {
		return nil, err
	}
	e, err := exchange.Find(ctx, c, string(r.ID))
	if err != nil {
		return nil, refusal(err)
	}
	if e.Ended() {
		return nil, a2a.NewError(a2a.ErrTaskNotCancelable, "the task has ended")
	}
	if err := e.End(ctx, c, "the client cancelled the task"); err != nil {
		switch parley.CodeOf(err) {
		case parley.AlreadyAnswered, parley.AlreadyCancelled, parley.AlreadyDeclined, parley.AlreadyExpired:
			return nil, a2a.NewError(a2a.ErrTaskNotCancelable, "the task has ended")
		}
		return nil, refusal(err)
	}
	return h.GetTask(ctx, &a2a.GetTaskRequest{ID: r.ID})
}

// SendMessage implements a2asrv.RequestHandler.
func (h *handler) SendMessage(ctx context.Context, r *a2a.SendMessageRequest) (a2a.SendMessageResult, error) {
	e, trouble, err := h.take(ctx, r)
	if err != nil {
		return nil, err
	}
	c, err := callerOf(ctx)
	if err != nil {
		return nil, err
	}
	var length *int
	waits := trouble == nil
	if r.Config != nil {
		length = r.Config.HistoryLength
		waits = waits && !r.Config.ReturnImmediately
	}
	if waits {
		if later, err := exchange.Await(ctx, c, e.ID(), maxWait); err == nil { // else the task is as it was: it is on disk
			e = later
		}
	}
	return cut(taskOf(e, trouble), length), nil
}

// SendStreamingMessage implements a2asrv.RequestHandler.
func (h *handler) SendStreamingMessage(ctx context.Context, r *a2a.SendMessageRequest) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		e, trouble, err := h.take(ctx, r)
		if err != nil {
			yield(nil, err)
			return
		}
		if trouble != nil {
			yield(taskOf(e, trouble), nil)
			return
		}
		h.follow(ctx, e.ID(), false, yield)
	}
}

// SubscribeToTask implements a2asrv.RequestHandler.
func (h *handler) SubscribeToTask(ctx context.Context, r *a2a.SubscribeToTaskRequest) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		t, err := h.GetTask(ctx, &a2a.GetTaskRequest{ID: r.ID})
		if err == nil && t.Status.State.Terminal() {
			err = a2a.NewError(a2a.ErrUnsupportedOperation, "the task has ended")
		}
		if err != nil {
			yield(nil, err)
			return
		}
		h.follow(ctx, string(r.ID), true, yield)
	}
}

// follow yields a task as it is, and then its changes until it has ended or requires input. Section 11.7 of the
// specification closes a stream at an interrupted state. AUTH_REQUIRED closes none: the permission is given elsewhere,
// and section 7.6.1 keeps the stream then. A subscriber may also wait for the answer of somebody else: a task that
// requires input already is followed until it does so again.
func (h *handler) follow(ctx context.Context, id string, subscribed bool, yield func(a2a.Event, error) bool) {
	c, err := callerOf(ctx)
	if err != nil {
		yield(nil, err)
		return
	}
	first := true
	for e, err := range exchange.Follow(ctx, c, id) {
		if err != nil {
			yield(nil, refusal(err))
			return
		}
		t := taskOf(e, nil)
		ends := t.Status.State == a2a.TaskStateInputRequired && !(first && subscribed)
		if first {
			if first = false; !yield(t, nil) || ends {
				return
			}
			continue
		}
		for _, a := range t.Artifacts {
			if !yield(&a2a.TaskArtifactUpdateEvent{TaskID: t.ID, ContextID: t.ContextID, Artifact: a, LastChunk: true}, nil) {
				return
			}
		}
		if !yield(&a2a.TaskStatusUpdateEvent{TaskID: t.ID, ContextID: t.ContextID, Status: t.Status}, nil) || ends {
			return
		}
	}
}

// GetExtendedAgentCard implements a2asrv.RequestHandler. The skills name the agents that the caller sees, as tenants.
func (h *handler) GetExtendedAgentCard(ctx context.Context, r *a2a.GetExtendedAgentCardRequest) (*a2a.AgentCard, error) {
	c, err := callerOf(ctx)
	if err != nil {
		return nil, err
	}
	request := api.FetchAgentsRequest{}
	seen, err := api.FetchAgents.Do(ctx, c, request)
	if err != nil {
		return nil, refusal(err)
	}
	card := h.card(c.base, r.Tenant)
	for _, a := range seen.Agents[:min(len(seen.Agents), maxTasks)] {
		tenant := a.Name
		if tenant == "" {
			tenant = a.ID.String()
		}
		card.Skills = append(card.Skills, a2a.AgentSkill{
			ID: "ask " + tenant, Name: sanitize.Line(strings.TrimSpace("Ask " + tenant + " " + a.Title)), Tags: []string{"agent"},
			Description: "Send with the tenant " + parley.Quoted(tenant, 200) + ".",
		})
	}
	return card, nil
}

// maxRecent bounds the answers that are remembered.
const maxRecent = 4096

// recent remembers the IDs of the last messages that answered a question.
type recent struct {
	mu   sync.Mutex
	all  map[string]bool
	fifo []string
}

// begin reports whether an ID is new, and remembers it.
func (r *recent) begin(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all[id] {
		return false
	}
	if len(r.fifo) >= maxRecent {
		delete(r.all, r.fifo[0])
		r.fifo = r.fifo[1:]
	}
	r.all[id] = true
	r.fifo = append(r.fifo, id)
	return true
}

// forget lets an ID be used again.
func (r *recent) forget(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, id)
}
