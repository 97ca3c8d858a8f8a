package bridgetest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"parley/internal/eventually"
)

// The tokens that a SlackServer takes.
const (
	SlackApp = "xapp-1"
	SlackBot = "xoxb-1"
)

// SlackServer speaks Slack's web calls and the socket of Socket Mode. It has one channel, C1.
type SlackServer struct {
	*httptest.Server
	User string // who presses

	t        *testing.T
	mu       sync.Mutex
	messages []*SlackMessage
	said     []url.Values // to one user alone
	dialogs  []json.RawMessage
	sockets  []*slackSocket
	refuse   bool
	refused  int
	sent     int
}

// SlackMessage is a message in the channel, with all that it has been.
type SlackMessage struct {
	Mark     string
	Versions []url.Values
}

// slackSocket is a connection of an app.
type slackSocket struct {
	conn *websocket.Conn
	done chan struct{}

	mu   sync.Mutex
	acks map[string]chan json.RawMessage
}

// NewSlackServer runs a server until the test ends.
func NewSlackServer(t *testing.T) *SlackServer {
	t.Helper()
	s := &SlackServer{t: t, User: "U1"}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/apps.connections.open", s.call(SlackApp, func(url.Values) (map[string]any, error) {
		return map[string]any{"url": strings.Replace(s.URL, "http", "ws", 1) + "/socket"}, nil
	}))
	mux.HandleFunc("POST /api/chat.postMessage", s.call(SlackBot, s.post))
	mux.HandleFunc("POST /api/chat.update", s.call(SlackBot, s.update))
	mux.HandleFunc("POST /api/chat.postEphemeral", s.call(SlackBot, func(v url.Values) (map[string]any, error) {
		s.said = append(s.said, v)
		return map[string]any{"message_ts": "1"}, nil
	}))
	mux.HandleFunc("POST /api/views.open", func(w http.ResponseWriter, r *http.Request) {
		var opened struct {
			Trigger string `json:"trigger_id"`
			View    json.RawMessage
		}
		if err := json.NewDecoder(r.Body).Decode(&opened); err != nil || opened.Trigger != "trigger" || r.Header.Get("Authorization") != "Bearer "+SlackBot {
			t.Errorf("a dialog is opened by %+v: %v", opened, err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.dialogs = append(s.dialogs, opened.View)
		_, _ = fmt.Fprint(w, `{"ok":true}`)
	})
	mux.HandleFunc("GET /socket", s.socket)
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// call serves a call whose request is a form.
func (s *SlackServer) call(token string, do func(url.Values) (map[string]any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			s.t.Error(err)
		}
		if r.Header.Get("Authorization") != "Bearer "+token && r.PostForm.Get("token") != token {
			_, _ = fmt.Fprint(w, `{"ok":false,"error":"invalid_auth"}`)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		response, err := do(r.PostForm)
		body := map[string]any{"ok": err == nil}
		if err != nil {
			body["error"] = err.Error()
		} else {
			maps.Copy(body, response)
		}
		_ = json.NewEncoder(w).Encode(body)
	}
}

func (s *SlackServer) post(v url.Values) (map[string]any, error) {
	if s.refuse {
		s.refused++
		return nil, fmt.Errorf("internal_error")
	}
	if v.Get("channel") != "C1" {
		return nil, fmt.Errorf("channel_not_found")
	}
	m := &SlackMessage{Mark: fmt.Sprintf("17%d.0001", len(s.messages)), Versions: []url.Values{v}}
	s.messages = append(s.messages, m)
	return map[string]any{"channel": "C1", "ts": m.Mark}, nil
}

func (s *SlackServer) update(v url.Values) (map[string]any, error) {
	for _, m := range s.messages {
		if m.Mark == v.Get("ts") {
			m.Versions = append(m.Versions, v)
			return map[string]any{"channel": "C1", "ts": m.Mark}, nil
		}
	}
	return nil, fmt.Errorf("message_not_found")
}

func (s *SlackServer) socket(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return
	}
	socket := &slackSocket{conn: conn, done: make(chan struct{}), acks: map[string]chan json.RawMessage{}}
	defer close(socket.done)
	if wsjson.Write(r.Context(), conn, map[string]any{"type": "hello", "num_connections": 1}) != nil {
		return
	}
	s.mu.Lock()
	s.sockets = append(s.sockets, socket)
	s.mu.Unlock()
	for {
		var ack struct {
			ID      string `json:"envelope_id"`
			Payload json.RawMessage
		}
		if wsjson.Read(r.Context(), conn, &ack) != nil {
			return
		}
		socket.mu.Lock()
		if waits := socket.acks[ack.ID]; waits != nil {
			waits <- ack.Payload
		}
		socket.mu.Unlock()
	}
}

// live returns the last socket, once there is one that is open.
func (s *SlackServer) live() (socket *slackSocket) {
	s.t.Helper()
	eventually.Holds(s.t, "the app has a socket", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.sockets) == 0 {
			return false
		}
		socket = s.sockets[len(s.sockets)-1]
		select {
		case <-socket.done:
			return false
		default:
			return true
		}
	})
	return socket
}

// Send sends an interaction to the app, and returns what the app acknowledges it with.
func (s *SlackServer) Send(interaction map[string]any) json.RawMessage {
	s.t.Helper()
	s.mu.Lock()
	s.sent++
	id := fmt.Sprintf("envelope-%d", s.sent)
	s.mu.Unlock()
	for {
		socket := s.live()
		acked := make(chan json.RawMessage, 1)
		socket.mu.Lock()
		socket.acks[id] = acked
		socket.mu.Unlock()
		_ = wsjson.Write(context.Background(), socket.conn, map[string]any{
			"type": "interactive", "envelope_id": id, "accepts_response_payload": true, "payload": interaction,
		}) // one that fails ends the socket
		select {
		case payload := <-acked:
			return payload
		case <-socket.done: // Slack sends it again
		case <-time.After(eventually.Patience):
			s.t.Fatalf("the app has not acknowledged %v", interaction)
		}
	}
}

// Press implements Presser. A button is the JSON of its element, with the mark of its message.
func (s *SlackServer) Press(button string) (answered bool, text string) {
	s.t.Helper()
	var pressed map[string]any
	if err := json.Unmarshal([]byte(button), &pressed); err != nil {
		s.t.Fatal(err)
	}
	mark, _ := pressed["mark"].(string)
	delete(pressed, "mark")
	s.mu.Lock()
	before, dialogs := len(s.said), len(s.dialogs)
	s.mu.Unlock()
	wasOpen := s.isOpen(mark)
	s.Send(map[string]any{
		"type": "block_actions", "trigger_id": "trigger", "user": map[string]string{"id": s.User}, "channel": map[string]string{"id": "C1"},
		"message": map[string]string{"ts": mark}, "actions": []any{pressed},
	})
	eventually.Holds(s.t, "the press has shown an effect", func() bool {
		s.mu.Lock()
		said := len(s.said) > before
		opened := len(s.dialogs) > dialogs
		if said {
			text = s.said[len(s.said)-1].Get("text")
		}
		s.mu.Unlock()
		answered = !said && !opened && wasOpen && !s.isOpen(mark)
		return said || opened || answered
	})
	return answered, text
}

// Open returns the marks of the messages with buttons.
func (s *SlackServer) Open() (marks []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.messages {
		if len(buttonsOf(m.Versions[len(m.Versions)-1], m.Mark)) > 0 {
			marks = append(marks, m.Mark)
		}
	}
	return marks
}

// isOpen reports whether a message has buttons.
func (s *SlackServer) isOpen(mark string) bool { return slices.Contains(s.Open(), mark) }

// buttonsOf returns the buttons of a message by their labels.
func buttonsOf(v url.Values, mark string) map[string]string {
	var blocks []struct {
		ID       string `json:"block_id"`
		Elements []map[string]any
	}
	_ = json.Unmarshal([]byte(v.Get("blocks")), &blocks) // one without has none
	all := map[string]string{}
	for _, block := range blocks {
		for _, e := range block.Elements {
			if e["type"] != "button" {
				continue
			}
			label, _ := e["text"].(map[string]any)["text"].(string)
			e["mark"], e["block_id"] = mark, block.ID
			b, _ := json.Marshal(e)
			all[label] = string(b)
		}
	}
	return all
}

// ToldWith returns all that was told in the channel of forms with a text in their first message, oldest first.
func (s *SlackServer) ToldWith(text string) (told []Telling) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.messages {
		if !strings.Contains(m.Versions[0].Get("blocks"), text) {
			continue
		}
		for _, v := range m.Versions {
			buttons := buttonsOf(v, m.Mark)
			told = append(told, Telling{Text: v.Get("text") + "\n" + v.Get("blocks"), Open: strings.HasPrefix(v.Get("text"), "Question"), Buttons: buttons})
		}
	}
	return told
}

// Told implements Place. The value of a button begins with the form.
func (s *SlackServer) Told(form string) []Telling { return s.ToldWith(form) }

// Said returns what single users were told.
func (s *SlackServer) Said() []url.Values {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]url.Values(nil), s.said...)
}

// Dialog returns the last dialog.
func (s *SlackServer) Dialog() json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.dialogs) == 0 {
		return nil
	}
	return s.dialogs[len(s.dialogs)-1]
}

// Refuse implements Place.
func (s *SlackServer) Refuse(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = on
}

// Refused implements Place.
func (s *SlackServer) Refused() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}
