package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"

	"parley"
	"parley/events"
	"parley/gateway/bridge"
	"parley/internal/eventually"
)

// pushPlace is a receiver of push notifications.
type pushPlace struct {
	*httptest.Server

	mu     sync.Mutex
	status int
	tries  int
	ids    map[string]bool // of the tries
	told   []pushTold
}

type pushTold struct {
	state  sdk.TaskState
	body   string
	header http.Header
}

func newPushPlace(t *testing.T) *pushPlace {
	t.Helper()
	p := &pushPlace{status: http.StatusOK, ids: map[string]bool{}}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var got sdk.StreamResponse
		if err == nil {
			err = json.Unmarshal(body, &got)
		}
		task, ok := got.Event.(*sdk.Task)
		if err != nil || !ok {
			t.Errorf("the receiver was told %s, %v", body, err)
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.tries++
		p.ids[r.Header.Get("Webhook-Id")] = true
		if p.status == http.StatusOK {
			p.told = append(p.told, pushTold{task.Status.State, string(body), r.Header})
		}
		w.WriteHeader(p.status)
	}))
	t.Cleanup(p.Close)
	return p
}

// answerWith has the place answer with a status from now on.
func (p *pushPlace) answerWith(status int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status = status
}

// count returns the tries so far.
func (p *pushPlace) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tries
}

// last waits until the place was told of a state last, and returns all that it was told.
func (p *pushPlace) last(t *testing.T, want sdk.TaskState) (told []pushTold) {
	t.Helper()
	eventually.Holds(t, "the receiver is told of "+string(want), func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		told = p.told
		return len(told) > 0 && told[len(told)-1].state == want
	})
	return told
}

// openPushing returns a server whose receivers may be on this machine.
func openPushing(t *testing.T) *testServer {
	t.Helper()
	h := openTestServer(t)
	h.close()
	h.network = bridge.Machine
	h.open(nil)
	return h
}

// ask has the host ask an agent one question.
func (h *testServer) ask(agent, text string) {
	h.t.Helper()
	if _, err := h.node.Host().Ask(h.t.Context(), parley.Form{To: agent, Description: text, Fields: []events.Field{{Name: "a"}}}); err != nil {
		h.t.Fatal(err)
	}
}

// keptPush is what the node has on disk of a push configuration.
type keptPush struct {
	Told  string `json:"told"`
	Mark  string `json:"mark"`
	Tries int    `json:"tries"`
}

// keptPushes returns those that are on disk.
func (h *testServer) keptPushes() (all []keptPush) {
	h.t.Helper()
	files, err := filepath.Glob(filepath.Join(h.folder, "a2a-push", "*.json"))
	if err != nil {
		h.t.Fatal(err)
	}
	for _, file := range files {
		var kept keptPush
		b, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(b, &kept)
		}
		if err == nil { // else it has ended meanwhile
			all = append(all, kept)
		}
	}
	return all
}

// configs returns the push configurations of a task.
func configs(t *testing.T, c *a2aclient.Client, id sdk.TaskID) []*sdk.PushConfig {
	t.Helper()
	got, err := c.ListTaskPushConfigs(t.Context(), &sdk.ListTaskPushConfigRequest{TaskID: id})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestA2APushTellsEachStateOnce(t *testing.T) {
	t.Parallel()
	for _, binding := range []sdk.TransportProtocol{sdk.TransportProtocolJSONRPC, sdk.TransportProtocolHTTPJSON} {
		t.Run(strings.ReplaceAll(string(binding), "+", ""), func(t *testing.T) {
			t.Parallel()
			h, place := openPushing(t), newPushPlace(t)
			h.guest("fae")
			dead, err := net.Listen("tcp", "127.0.0.1:0") // it connects, and that is all
			if err != nil {
				t.Fatal(err)
			}
			defer dead.Close() //nolint:errcheck // the test is over
			c := h.a2aClient("fae", binding)
			m := sdk.NewMessage(sdk.MessageRoleUser, sdk.NewTextPart("Book a flight"))
			config := &sdk.PushConfig{URL: place.URL + "/hook", Token: "t1", Auth: &sdk.PushAuthInfo{Scheme: "Bearer", Credentials: "secret-1"}}
			var task *sdk.Task
			for range 2 { // the second is a repeat
				got, err := c.SendMessage(t.Context(), &sdk.SendMessageRequest{Message: m, Config: &sdk.SendMessageConfig{ReturnImmediately: true, PushConfig: config}})
				if err != nil {
					t.Fatal(err)
				}
				task = got.(*sdk.Task) //nolint:forcetypeassert // the node sends tasks alone
			}
			if _, err := c.CreateTaskPushConfig(t.Context(), &sdk.PushConfig{TaskID: task.ID, ID: "dead", URL: "http://" + dead.Addr().String()}); err != nil {
				t.Fatal(err)
			}
			list := configs(t, c, task.ID)
			if len(list) != 2 || list[0].Token != "" || list[0].URL == list[1].URL {
				t.Fatalf("the list is %+v", list)
			}

			h.ask("fae", "Which day?")
			place.last(t, sdk.TaskStateInputRequired)
			eventually.Holds(t, "what was told is kept", func() bool { // else the end of the node cuts the response off
				return slices.ContainsFunc(h.keptPushes(), func(k keptPush) bool { return strings.HasPrefix(k.Told, "question") })
			})
			h.close()
			h.open(nil)
			c = h.a2aClient("fae", binding)
			asked := a2aTask(t, c, task.ID, sdk.TaskStateInputRequired)
			a2aSend(t, c, sdk.NewMessageForTask(sdk.MessageRoleUser, asked, sdk.NewTextPart("Monday")))
			place.last(t, sdk.TaskStateWorking)
			answerLast(t, h.node.Host(), "answer", "Booked.")
			told := place.last(t, sdk.TaskStateCompleted)
			if told[0].state == sdk.TaskStateWorking { // it was delivered after the configuration was made
				told = told[1:]
			}
			if len(place.ids) != place.count() {
				t.Errorf("%d tellings have %d IDs", place.count(), len(place.ids))
			}
			if len(told) != 3 {
				t.Errorf("the receiver was told %d times: %v", len(told), told)
			}
			end := told[len(told)-1]
			if end.header.Get("Authorization") != "Bearer secret-1" || end.header.Get("A2A-Notification-Token") != "t1" || end.header.Get("Content-Type") != "application/a2a+json" {
				t.Errorf("the headers are %v", end.header)
			}
			if !strings.Contains(end.body, "Booked.") {
				t.Errorf("the end is told as %s", end.body)
			}
			eventually.Holds(t, "the configuration ends with its task", func() bool { return len(configs(t, c, task.ID)) == 1 })
		})
	}
}

func TestA2APushTriesAgainAfterARestart(t *testing.T) {
	t.Parallel()
	h, place := openPushing(t), newPushPlace(t)
	h.guest("fae")
	c := h.a2aClient("fae", sdk.TransportProtocolJSONRPC)
	begun := a2aSend(t, c, sdk.NewMessage(sdk.MessageRoleUser, sdk.NewTextPart("Deploy")))
	begun = a2aTask(t, c, begun.ID, sdk.TaskStateWorking)
	if _, err := c.CreateTaskPushConfig(t.Context(), &sdk.PushConfig{TaskID: begun.ID, URL: place.URL}); err != nil {
		t.Fatal(err)
	}
	place.answerWith(http.StatusServiceUnavailable)
	answerLast(t, h.node.Host(), "answer", "Done.")
	eventually.Holds(t, "the receiver refuses", func() bool { return place.count() > 0 })
	place.answerWith(http.StatusOK)
	h.close()
	h.open(nil)
	if told := place.last(t, sdk.TaskStateCompleted); len(told) != 1 {
		t.Errorf("the receiver was told %v", told)
	}
	if len(place.ids) != 1 || place.ids[""] {
		t.Errorf("the tries of one state have the IDs %v", place.ids)
	}
	eventually.Holds(t, "nothing is kept", func() bool { return len(h.keptPushes()) == 0 })
	tries := place.count()
	c = h.a2aClient("fae", sdk.TransportProtocolJSONRPC)
	for i := range 70 { // of a task that has ended: they are kept, but not in the way of each other
		if _, err := c.CreateTaskPushConfig(t.Context(), &sdk.PushConfig{TaskID: begun.ID, ID: strconv.Itoa(i), URL: place.URL}); err != nil {
			t.Fatal(err)
		}
	}
	h.close()
	h.open(nil)
	if n := len(configs(t, h.a2aClient("fae", sdk.TransportProtocolJSONRPC), begun.ID)); n != 64 || place.count() != tries {
		t.Errorf("%d configurations, %d tries more", n, place.count()-tries)
	}
}

func TestA2APushEnds(t *testing.T) {
	t.Parallel()
	h, place, other := openPushing(t), newPushPlace(t), newPushPlace(t)
	fae := h.guest("fae")
	h.guest("bob")
	c := h.a2aClient("fae", sdk.TransportProtocolJSONRPC)
	begin := func(place *pushPlace) sdk.TaskID {
		begun := a2aSend(t, c, sdk.NewMessage(sdk.MessageRoleUser, sdk.NewTextPart("Deploy")))
		a2aTask(t, c, begun.ID, sdk.TaskStateWorking)
		if _, err := c.CreateTaskPushConfig(t.Context(), &sdk.PushConfig{TaskID: begun.ID, ID: "one", URL: place.URL}); err != nil {
			t.Fatal(err)
		}
		return begun.ID
	}
	deleted := begin(other)
	if err := h.a2aClient("bob", sdk.TransportProtocolJSONRPC).DeleteTaskPushConfig(t.Context(), &sdk.DeleteTaskPushConfigRequest{TaskID: deleted, ID: "one"}); !errors.Is(err, sdk.ErrTaskNotFound) {
		t.Errorf("deleted by another: %v", err)
	}
	if len(configs(t, c, deleted)) != 1 {
		t.Error("another deleted it")
	}
	for range 2 {
		if err := c.DeleteTaskPushConfig(t.Context(), &sdk.DeleteTaskPushConfigRequest{TaskID: deleted, ID: "one"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.GetTaskPushConfig(t.Context(), &sdk.GetTaskPushConfigRequest{TaskID: deleted, ID: "one"}); !errors.Is(err, sdk.ErrTaskNotFound) {
		t.Errorf("after it was deleted: %v", err)
	}
	gone := begin(place)
	place.answerWith(http.StatusGone)
	if _, err := c.CancelTask(t.Context(), &sdk.CancelTaskRequest{ID: deleted}); err != nil {
		t.Fatal(err)
	}
	h.ask("fae", "Where?")
	eventually.Holds(t, "a receiver that is gone is told no more", func() bool { return len(configs(t, c, gone)) == 0 })
	if other.count() != 0 {
		t.Error("the receiver was told after its configuration was deleted")
	}

	revoked := begin(other)
	list, err := fae.Tokens().List(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	if err := fae.Tokens().Revoke(t.Context(), list[0].ID); err != nil {
		t.Fatal(err)
	}
	answerLast(t, h.node.Host(), "answer", "Done.")
	h.tokens["fae"] = makeToken(t, fae, "read", "ask", "answer")
	c = h.a2aClient("fae", sdk.TransportProtocolJSONRPC)
	eventually.Holds(t, "it ends with the token", func() bool { return len(configs(t, c, revoked)) == 0 })
	if other.count() != 0 {
		t.Error("the receiver was told after the token had ended")
	}
}

func TestA2APushRefuses(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	fae := h.guest("fae")
	h.tokens["reader"] = makeToken(t, fae, "read")
	c := h.a2aClient("fae", sdk.TransportProtocolJSONRPC)
	begun := a2aSend(t, c, sdk.NewMessage(sdk.MessageRoleUser, sdk.NewTextPart("Deploy")))
	long := strings.Repeat("x", 5000)
	for name, config := range map[string]sdk.PushConfig{
		"plain HTTP": {URL: "http://a.example/"}, "no URL": {}, "a file": {URL: "file:///etc/passwd"}, "a password": {URL: "https://me:you@a.example/"},
		"a long URL": {URL: "https://a.example/" + long}, "a long ID": {ID: long, URL: "https://a.example/"}, "a broken ID": {ID: "a\nb", URL: "https://a.example/"},
		"a broken token":             {Token: "a\r\nX: y", URL: "https://a.example/"},
		"a broken scheme":            {URL: "https://a.example/", Auth: &sdk.PushAuthInfo{Scheme: "a b", Credentials: "c"}},
		"broken credentials":         {URL: "https://a.example/", Auth: &sdk.PushAuthInfo{Scheme: "Bearer", Credentials: "c\n"}},
		"credentials, but no scheme": {URL: "https://a.example/", Auth: &sdk.PushAuthInfo{Credentials: "c"}},
	} {
		config.TaskID = begun.ID
		if _, err := c.CreateTaskPushConfig(t.Context(), &config); !errors.Is(err, sdk.ErrInvalidParams) {
			t.Errorf("%s: %v", name, err)
		}
		m := sdk.NewMessage(sdk.MessageRoleUser, sdk.NewTextPart("Never"))
		if _, err := c.SendMessage(t.Context(), &sdk.SendMessageRequest{Message: m, Config: &sdk.SendMessageConfig{PushConfig: &config}}); !errors.Is(err, sdk.ErrInvalidParams) {
			t.Errorf("%s with a message: %v", name, err)
		}
	}
	if list, err := c.ListTasks(t.Context(), &sdk.ListTasksRequest{}); err != nil || len(list.Tasks) != 1 {
		t.Errorf("what was refused began tasks: %v, %v", list, err)
	}
	reader := h.a2aClient("reader", sdk.TransportProtocolJSONRPC)
	if _, err := reader.CreateTaskPushConfig(t.Context(), &sdk.PushConfig{TaskID: begun.ID, URL: "https://a.example/"}); !errors.Is(err, sdk.ErrUnauthorized) {
		t.Errorf("a token that may only read: %v", err)
	}
	for i := range 64 {
		if _, err := c.CreateTaskPushConfig(t.Context(), &sdk.PushConfig{TaskID: begun.ID, URL: fmt.Sprintf("https://127.0.0.1:1/%d", i)}); err != nil {
			t.Fatal(i, err)
		}
	}
	_, err := c.CreateTaskPushConfig(t.Context(), &sdk.PushConfig{TaskID: begun.ID, URL: "https://127.0.0.1:1/more"})
	if err == nil || !strings.Contains(err.Error(), "64 push configurations") {
		t.Errorf("one too many: %v", err)
	}
}

func TestA2APushReachesNothingNearer(t *testing.T) {
	t.Parallel()
	h, reached := openTestServer(t), make(chan string, 8)
	h.guest("fae")
	inside := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { reached <- r.URL.Path }))
	defer inside.Close()
	c := h.a2aClient("fae", sdk.TransportProtocolJSONRPC)
	begun := a2aSend(t, c, sdk.NewMessage(sdk.MessageRoleUser, sdk.NewTextPart("Deploy")))
	config := &sdk.PushConfig{TaskID: begun.ID, ID: "inside", URL: strings.Replace(inside.URL, "127.0.0.1", "localhost", 1)}
	if _, err := c.CreateTaskPushConfig(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	answerLast(t, h.node.Host(), "answer", "Done.")
	eventually.Holds(t, "a try is made", func() bool {
		return slices.ContainsFunc(h.keptPushes(), func(k keptPush) bool { return k.Mark == "ended" && k.Tries > 0 })
	})
	h.close() // what was begun has ended
	select {
	case path := <-reached:
		t.Errorf("the node reached %s inside", path)
	default:
	}
}
