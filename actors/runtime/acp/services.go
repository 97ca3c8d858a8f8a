package acp

import (
	"context"
	"encoding/json"

	"github.com/coder/acp-go-sdk"
)

// services are what an agent may ask of the node during a turn.
var services = map[string]func(context.Context, *turn, json.RawMessage) (any, error){
	acp.ClientMethodSessionRequestPermission: permit,
	acp.ClientMethodElicitationCreate:        elicit,
	acp.ClientMethodFsReadTextFile:           readFile,
	acp.ClientMethodFsWriteTextFile:          writeFile,
	acp.ClientMethodTerminalCreate:           createTerminal,
	acp.ClientMethodTerminalOutput:           terminalOutput,
	acp.ClientMethodTerminalWaitForExit:      waitForTerminal,
	acp.ClientMethodTerminalKill:             killTerminal,
	acp.ClientMethodTerminalRelease:          releaseTerminal,
}

// parse reads the parameters of a request. The session that they name, if any, is the turn's.
func (t *turn) parse(params json.RawMessage, into any, session *string) error {
	if err := json.Unmarshal(params, into); err != nil {
		return acp.NewInvalidParams(err.Error())
	}
	if *session != "" && *session != string(t.peer.session) {
		return acp.NewInvalidParams("there is no such session")
	}
	return nil
}
