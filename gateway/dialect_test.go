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
//	agent NAME        makes an agent
//	connect CONN      opens a connection
//	send CONN         sends the frames below, one a line; $1 is the ID that was shown as $1
//	receive CONN n=2  waits for a number of frames (default 1) and shows them
//	only CONN         checks that the frames sent so far were handled without a response
//	leave CONN        breaks a connection
//	restart           stops the node and starts it again; connections end
//	values AGENT N    shows the answer to a form as the agent's mailbox has it
//	cancel AGENT N    cancels a form outside the connections; decline AGENT N declines one
func TestDialects(t *testing.T) {
	datadriven.Walk(t, "testdata/dialects", func(t *testing.T, path string) {
		s := dialectTest{testServer: openTestServer(t), ids: map[string]string{}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.t = t
			return s.run(d)
		})
	})
}

// dialectTest is a server and the IDs that its script has shown.
type dialectTest struct {
	*testServer
	ids map[string]string // by their placeholders
}

func (s *dialectTest) run(d *datadriven.TestData) string {
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
	case "send":
		for f := range strings.Lines(d.Input) {
			for shown, id := range s.ids {
				f = strings.ReplaceAll(f, `"`+shown+`"`, `"`+id+`"`)
			}
			s.clients[arg(0)].send(f)
		}
	case "receive":
		n := 1
		d.MaybeScanArgs(s.t, "n", &n)
		var received strings.Builder
		for range n {
			received.WriteString(s.normalize(s.clients[arg(0)].receive()) + "\n")
		}
		return received.String()
	case "only":
		s.clients[arg(0)].send(`{"type":"fetch_questions_request","requestId":"only","sessionId":"none"}`)
		if got := s.clients[arg(0)].receive(); !strings.Contains(got, `"requestId":"only"`) {
			return s.normalize(got) + "\n"
		}
	case "leave":
		s.clients[arg(0)].disconnect()
		delete(s.clients, arg(0))
	case "restart":
		return s.restart()
	case "values":
		return s.values(arg(0), arg(1))
	case "cancel":
		if _, err := s.agent(arg(0)).Cancel(s.t.Context(), mustRef(arg(1)), "not now"); err != nil {
			s.t.Fatal(err)
		}
	case "decline":
		if _, err := s.agent(arg(0)).Decline(s.t.Context(), mustRef(arg(1)), 0, "not now"); err != nil {
			s.t.Fatal(err)
		}
	default:
		d.Fatalf(s.t, "unknown command")
	}
	return "ok\n"
}

func (s *dialectTest) restart() string {
	closed := make(chan struct{})
	go func() {
		s.close()
		close(closed)
	}()
	ends := map[string]int{}
	for name, k := range s.clients {
		ends[strconv.Itoa(int(k.closeStatus()))]++
		delete(s.clients, name)
	}
	<-closed
	s.open(nil)
	return fmt.Sprintln("closed:", ends)
}

func (s *dialectTest) agent(name string) *actors.Agent {
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

func (s *dialectTest) values(agent, number string) string {
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

// normalize returns a frame with IDs numbered in the order of their appearance, and without times.
func (s *dialectTest) normalize(frame string) string {
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

// mustRef parses a reference to a form, and panics if it is malformed.
func mustRef(s string) capabilities.FormRef {
	ref, err := capabilities.ParseFormRef(s)
	if err != nil {
		panic(err)
	}
	return ref
}
