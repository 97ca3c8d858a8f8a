package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coder/acp-go-sdk"
)

// acpAgent is the name under which scripts run the test binary as an agent that speaks the Agent Client Protocol.
const acpAgent = "acp-agent"

// scriptedAgent is an agent whose prompts are scripts: steps, separated by the word then. It reports the result of each
// step. It attempts everything that it is told to: the node prevents forbidden steps.
//
// It waits for its requests without a time limit, and gets their outcomes also after a cancel.
type scriptedAgent struct {
	acp.Agent // the rest of the protocol
	conn      *acp.AgentSideConnection
	session   acp.SessionId
	calls     int
}

// note appends a line to a file.
func note(file string, line any) {
	noted, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	must(err)
	_, err = fmt.Fprintln(noted, line)
	must(err)
	must(noted.Close())
}

// playACPAgent runs the agent. It appends its process to the file agents, so that scripts can count processes, and each prompt to the
// file prompts.
func playACPAgent() {
	a := &scriptedAgent{}
	note("agents", os.Getpid())
	a.conn = acp.NewAgentSideConnection(a, os.Stdout, bufio.NewReader(os.Stdin))
	<-a.conn.Done()
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(9)
	}
}

func (a *scriptedAgent) Initialize(_ context.Context, r acp.InitializeRequest) (acp.InitializeResponse, error) {
	may := r.ClientCapabilities
	fmt.Fprintf(os.Stderr, "may read %t, write %t, terminal %t, ask %t\n", may.Fs.ReadTextFile, may.Fs.WriteTextFile, may.Terminal, may.Elicitation != nil)
	return acp.InitializeResponse{ProtocolVersion: acp.ProtocolVersionNumber}, nil
}

func (a *scriptedAgent) NewSession(context.Context, acp.NewSessionRequest) (acp.NewSessionResponse, error) {
	a.session = acp.SessionId(fmt.Sprint("session-", os.Getpid()))
	return acp.NewSessionResponse{SessionId: a.session}, nil
}

func (a *scriptedAgent) Cancel(context.Context, acp.CancelNotification) error {
	return a.say("heard session/cancel")
}

func (a *scriptedAgent) Prompt(ctx context.Context, r acp.PromptRequest) (acp.PromptResponse, error) {
	note("prompts", r.Prompt[0].Text.Text)
	for step := range strings.SplitSeq(r.Prompt[0].Text.Text, " then ") {
		word, rest, _ := strings.Cut(step, " ")
		do, known := a.steps()[word]
		if !known {
			return acp.PromptResponse{}, acp.NewInvalidParams("no step " + word)
		}
		did, err := do(rest)
		if err != nil {
			did = "refused: " + err.Error()
		}
		if err := a.say(word + " " + did); err != nil {
			return acp.PromptResponse{}, err
		}
		if ctx.Err() != nil {
			return acp.PromptResponse{StopReason: acp.StopReasonCancelled}, nil
		}
	}
	return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
}

func (a *scriptedAgent) steps() map[string]func(rest string) (string, error) {
	return map[string]func(string) (string, error){
		"call": a.call, "ask": a.ask, "read": a.read, "write": a.write, "run": a.run,
		"say": func(text string) (string, error) { return text, nil },
		"The": func(text string) (string, error) { return text, nil }, // call was denied: a reason
	}
}

func (a *scriptedAgent) say(line string) error {
	return a.conn.SessionUpdate(context.Background(), acp.SessionNotification{SessionId: a.session, Update: acp.UpdateAgentMessageText(line + "\n")})
}

// call asks for permission to call a tool, as in call TOOL INPUT, and returns the kind of the chosen option.
func (a *scriptedAgent) call(rest string) (string, error) {
	tool, input, _ := strings.Cut(rest, " ")
	a.calls++
	var options []acp.PermissionOption
	for _, kind := range []acp.PermissionOptionKind{
		acp.PermissionOptionKindAllowAlways, acp.PermissionOptionKindRejectAlways, acp.PermissionOptionKindAllowOnce, acp.PermissionOptionKindRejectOnce,
	} {
		options = append(options, acp.PermissionOption{Kind: kind, Name: string(kind), OptionId: acp.PermissionOptionId("option-" + string(kind))})
	}
	got, err := a.conn.RequestPermission(context.Background(), acp.RequestPermissionRequest{
		SessionId: a.session, Options: options,
		ToolCall: acp.ToolCallUpdate{ToolCallId: acp.ToolCallId(fmt.Sprint("call-", a.calls)), Title: &tool, RawInput: json.RawMessage(input)},
	})
	if err != nil {
		return "", err
	}
	did := rest + ": cancelled"
	if chosen := got.Outcome.Selected; chosen != nil {
		at := slices.IndexFunc(options, func(o acp.PermissionOption) bool { return o.OptionId == chosen.OptionId })
		did = rest + ": " + string(options[at].Kind)
	}
	if got.Meta == nil {
		return did, nil
	}
	meta, err := json.Marshal(got.Meta)
	return did + " " + string(meta), err
}

// ask sends a form for a port and returns its outcome.
func (a *scriptedAgent) ask(message string) (string, error) {
	got, err := a.conn.UnstableCreateElicitation(context.Background(), acp.UnstableCreateElicitationRequest{Form: &acp.UnstableCreateElicitationForm{
		Mode: "form", Message: message,
		RequestedSchema: acp.UnstableElicitationSchema{
			Type: "object", Required: []string{"port"},
			Properties: map[string]any{"port": map[string]any{"type": "integer", "title": "Port", "minimum": 1}},
		},
	}})
	if err != nil {
		return "", err
	}
	answer, err := json.Marshal(got)
	return string(answer), err
}

// inFolder returns an absolute path, which the protocol requires.
func inFolder(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	folder, err := os.Getwd()
	must(err)
	return filepath.Join(folder, path)
}

func (a *scriptedAgent) read(path string) (string, error) {
	got, err := a.conn.ReadTextFile(context.Background(), acp.ReadTextFileRequest{SessionId: a.session, Path: inFolder(path)})
	return got.Content, err
}

func (a *scriptedAgent) write(rest string) (string, error) {
	path, content, _ := strings.Cut(rest, " ")
	_, err := a.conn.WriteTextFile(context.Background(), acp.WriteTextFileRequest{SessionId: a.session, Path: inFolder(path), Content: content})
	return path, err
}

// run runs a shell command in a terminal of the node, and returns its output.
func (a *scriptedAgent) run(command string) (string, error) {
	made, err := a.conn.CreateTerminal(context.Background(), acp.CreateTerminalRequest{SessionId: a.session, Command: "sh", Args: []string{"-c", command}})
	if err != nil {
		return "", err
	}
	if _, err := a.conn.WaitForTerminalExit(context.Background(), acp.WaitForTerminalExitRequest{SessionId: a.session, TerminalId: made.TerminalId}); err != nil {
		return "", err
	}
	got, err := a.conn.TerminalOutput(context.Background(), acp.TerminalOutputRequest{SessionId: a.session, TerminalId: made.TerminalId})
	return got.Output, err
}
