//go:build unix

package acp

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// testAgent is an agent that writes the messages of the Agent Client Protocol itself, so that it can violate the protocol.
type testAgent struct {
	in      *bufio.Scanner
	calls   int
	session string
	later   []rpc // messages received during a call
}

// rpc is a message of either direction.
type rpc struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      any             `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
}

// playAgent runs an agent whose prompts are scripts: a command and its arguments on each line.
func playAgent() {
	a := &testAgent{in: bufio.NewScanner(os.Stdin)}
	a.in.Buffer(nil, 64<<20)
	fmt.Fprintln(os.Stderr, "starting")
	if os.Getenv("AGENT_FAILS") != "" {
		fmt.Fprintln(os.Stderr, "no key")
		os.Exit(3)
	}
	for m, ok := a.next(); ok; m, ok = a.next() {
		switch m.Method {
		case "initialize":
			version := "1"
			if v := os.Getenv("AGENT_VERSION"); v != "" {
				version = v
			}
			fmt.Fprintf(os.Stderr, "told %s\n", m.Params)
			a.answer(m, fmt.Sprintf(`{"protocolVersion":%s,"agentCapabilities":{"loadSession":%t}}`, version, os.Getenv("AGENT_LOADS") != ""))
		case "session/new":
			a.session = fmt.Sprintf("s%d", os.Getpid())
			a.answer(m, `{"sessionId":"`+a.session+`"}`)
		case "session/load":
			var p struct{ SessionID string }
			must(json.Unmarshal(m.Params, &p))
			a.session = p.SessionID
			a.say("told again")
			a.answer(m, `null`)
		case "session/prompt":
			var p struct{ Prompt []struct{ Text string } }
			must(json.Unmarshal(m.Params, &p))
			reason := "end_turn"
			for l := range strings.Lines(p.Prompt[0].Text) {
				if r := a.do(strings.TrimSpace(l)); r != "" {
					reason = r
				}
			}
			if reason == "fail" {
				a.write(rpc{ID: m.ID, Error: json.RawMessage(`{"code":-32000,"message":"Authentication required","data":{"why":"no key"}}`)})
			} else {
				a.answer(m, `{"stopReason":"`+reason+`"}`)
			}
		}
	}
}

// do runs a line of a prompt. It returns a stop reason if the turn has to end.
func (a *testAgent) do(line string) string {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "say":
		a.say(rest)
	case "pid":
		a.say(fmt.Sprint(os.Getpid(), " ", a.session, "\n"))
	case "update":
		a.update(rest)
	case "raw":
		fmt.Println(rest)
	case "garbage":
		os.Stdout.Write([]byte("\xff\x00{\n"))
	case "errors":
		fmt.Fprintln(os.Stderr, rest)
	case "long":
		a.say(strings.Repeat("x", 10<<20))
	case "deep":
		a.update(strings.Repeat("[", 100) + strings.Repeat("]", 100))
	case "bulk":
		for range 12 {
			a.say(strings.Repeat("x", 900<<10))
		}
	case "flood":
		for i := range 5000 {
			a.say(fmt.Sprintf("%d\n", i))
		}
	case "call": // prints the response
		method, params, _ := strings.Cut(rest, " ")
		m := a.call(method, params)
		if m.Error != nil {
			a.say("error " + string(m.Error) + "\n")
		} else {
			a.say("result " + string(m.Result) + "\n")
		}
	case "spam": // without end, and without reading
		for {
			a.calls++
			a.write(rpc{ID: a.calls, Method: strings.Repeat("nothing", 100)})
		}
	case "ask": // without waiting
		method, params, _ := strings.Cut(rest, " ")
		a.calls++
		a.write(rpc{ID: a.calls, Method: method, Params: json.RawMessage(strings.ReplaceAll(params, "SESSION", a.session))})
	case "receive": // waits for one response
		for {
			m, ok := a.next()
			if !ok {
				os.Exit(1)
			}
			if m.Method == "" {
				a.say("received " + string(m.Result) + string(m.Error) + "\n")
				return ""
			}
		}
	case "exit":
		os.Exit(4)
	case "shut":
		os.Stdout.Close()
		time.Sleep(time.Hour)
	case "hang":
		a.say("hanging")
		time.Sleep(time.Hour)
	case "until": // waits for the cancellation
		a.say("waiting")
		for m, ok := a.next(); ok; m, ok = a.next() {
			if m.Method == "session/cancel" {
				a.say(" cancelled")
				return "cancelled"
			}
		}
		os.Exit(1)
	case "stop":
		return rest
	}
	return ""
}

func (a *testAgent) next() (rpc, bool) {
	if len(a.later) > 0 {
		m := a.later[0]
		a.later = a.later[1:]
		return m, true
	}
	return a.read()
}

func (a *testAgent) read() (m rpc, ok bool) {
	if !a.in.Scan() {
		return rpc{}, false
	}
	must(json.Unmarshal(a.in.Bytes(), &m))
	return m, true
}

func (a *testAgent) write(m rpc) {
	m.JSONRPC = "2.0"
	text, err := json.Marshal(m)
	must(err)
	os.Stdout.Write(append(text, '\n'))
}

func (a *testAgent) answer(to rpc, result string) {
	a.write(rpc{ID: to.ID, Result: json.RawMessage(result)})
}

func (a *testAgent) say(text string) {
	words, err := json.Marshal(text)
	must(err)
	a.update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":` + string(words) + `}}`)
}

func (a *testAgent) update(update string) {
	a.write(rpc{Method: "session/update", Params: json.RawMessage(`{"sessionId":"` + a.session + `","update":` + update + `}`)})
}

func (a *testAgent) call(method, params string) rpc {
	a.calls++
	id := a.calls
	a.write(rpc{ID: id, Method: method, Params: json.RawMessage(strings.ReplaceAll(params, "SESSION", a.session))})
	for {
		m, ok := a.read()
		if !ok {
			os.Exit(1)
		}
		if m.Method == "" && fmt.Sprint(m.ID) == fmt.Sprint(id) {
			return m
		}
		a.later = append(a.later, m)
	}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(9)
	}
}
