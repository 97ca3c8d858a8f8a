package gateway

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"parley/actors"
	"parley/capabilities"
)

// TestDialects runs the sessions in testdata/dialects, each with a node of its own. A connection is named by
// its agent, and by a number after a dot if there are several: host, host.2.
//
//	agent NAME      makes an agent
//	connect CONN    opens a connection
//	say CONN        sends the frames below, one a line; $1 is the ID that was shown as $1
//	hear CONN n=2   waits for so many frames (default 1) and shows them
//	only CONN       shows that what was said is done, and was answered with nothing
//	leave CONN      breaks a connection off
//	restart         stops the node and starts it again: connections end
//	values AGENT N  shows the answer to a form as the agent's mailbox has it
//	cancel AGENT N  takes a form back, and decline says no to one, elsewhere
func TestDialects(t *testing.T) {
	datadriven.Walk(t, "testdata/dialects", func(t *testing.T, path string) {
		s := stage{testServer: openTestServer(t), ids: map[string]string{}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.t = t
			return s.play(d)
		})
	})
}

// stage is a server, and the IDs that were shown of it.
type stage struct {
	*testServer
	ids map[string]string // by how they are shown
}

func (s *stage) play(d *datadriven.TestData) string {
	s.t.Helper()
	arg := func(i int) string {
		if i >= len(d.CmdArgs) {
			d.Fatalf(s.t, "want more arguments")
		}
		return d.CmdArgs[i].Key
	}
	switch d.Cmd {
	case "agent":
		s.guest(arg(0))
	case "connect":
		agent, _, _ := strings.Cut(arg(0), ".")
		s.clients[arg(0)] = s.dial(agent)
	case "say":
		for f := range strings.Lines(d.Input) {
			for shown, id := range s.ids {
				f = strings.ReplaceAll(f, `"`+shown+`"`, `"`+id+`"`)
			}
			s.clients[arg(0)].say(f)
		}
	case "hear":
		n := 1
		d.MaybeScanArgs(s.t, "n", &n)
		var heard strings.Builder
		for range n {
			heard.WriteString(s.plain(s.clients[arg(0)].hear()) + "\n")
		}
		return heard.String()
	case "only":
		s.clients[arg(0)].say(`{"type":"fetch_questions_request","requestId":"only","sessionId":"none"}`)
		if got := s.clients[arg(0)].hear(); !strings.Contains(got, `"requestId":"only"`) {
			return s.plain(got) + "\n"
		}
	case "leave":
		s.clients[arg(0)].leave()
		delete(s.clients, arg(0))
	case "restart":
		return s.restart()
	case "values":
		return s.values(arg(0), arg(1))
	case "cancel", "decline":
		end := s.agent(arg(0)).Decline
		if d.Cmd == "cancel" {
			end = s.agent(arg(0)).Cancel
		}
		if _, err := end(s.t.Context(), mustRef(arg(1)), "not now"); err != nil {
			s.t.Fatal(err)
		}
	default:
		d.Fatalf(s.t, "unknown command")
	}
	return "ok\n"
}

func (s *stage) restart() string {
	closed := make(chan struct{})
	go func() {
		s.close()
		close(closed)
	}()
	ends := map[string]int{}
	for name, k := range s.clients {
		ends[strconv.Itoa(int(k.end()))]++
		delete(s.clients, name)
	}
	<-closed
	s.open(nil)
	return fmt.Sprintln("closed:", ends)
}

func (s *stage) agent(name string) *actors.Agent {
	s.t.Helper()
	if name == "host" {
		name = ""
	}
	a, err := s.node.ActAs(s.t.Context(), name)
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

func (s *stage) values(agent, number string) string {
	e, err := s.agent(agent).Message(s.t.Context(), mustRef(number))
	if err != nil {
		s.t.Fatal(err)
	}
	if e.Outcome == nil {
		return "open\n"
	}
	return fmt.Sprintln(e.Outcome.Status, e.Outcome.Values.Text())
}

var (
	anID  = regexp.MustCompile(`[0-9A-Z]{26}@N[A-Z2-7]{55}`)
	aTime = regexp.MustCompile(`20\d\d-\d\d-\d\dT[0-9:.]+Z`)
)

// plain shows a frame with IDs numbered as they turn up, and without its times.
func (s *stage) plain(frame string) string {
	frame = anID.ReplaceAllStringFunc(frame, func(id string) string {
		for shown, known := range s.ids {
			if known == id {
				return shown
			}
		}
		shown := "$" + strconv.Itoa(len(s.ids)+1)
		s.ids[shown] = id
		return shown
	})
	return aTime.ReplaceAllString(frame, "TIME")
}

// mustRef is capabilities.ParseFormRef for text that names a form.
func mustRef(s string) capabilities.FormRef {
	ref, err := capabilities.ParseFormRef(s)
	if err != nil {
		panic(err)
	}
	return ref
}
