package main

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"parley/actors/view"
	"parley/cmd/parley/terminal"
	"parley/mailbox"
)

// lists are the functions that may list agents, by file. To find one agent, clients send its name to the node, which
// resolves it.
var lists = map[string][]string{
	"cmd/parley/agents.go":         {"lsCommand"},
	"cmd/parley/message.go":        {"nameFunc"}, // two folders of one name are told apart by looking at all
	"cmd/parley/watch/follow.go":   {"names"},    // as above, once
	"gateway/backend/operation.go": {"handlers"},
	"gateway/api/operation.go":     {"", "Operations"}, // the name, and the table
	"gateway/mcp/agents.go":        {"listAgents"},
	"gateway/mcp/result.go":        {""}, // the operation of each tool
	"gateway/edgetest/scenes.go":   {"agents"},
	"gateway/client/agent.go":      {"Agents"},
	"gateway/client/update.go":     {"FollowAgents", "run"},  // reports agents that were removed during an interruption
	"gateway/ws/binary.go":         {"dispatch"},             // the scope of a follow of agents
	"gateway/ws/text.go":           {"agentsFrame"},          // as above
	"gateway/web/agents_pane.go":   {"statuses"},             // the agents beside the lists of mail, and their names
	"gateway/a2a/handler.go":       {"GetExtendedAgentCard"}, // the skills of a card

	"gateway/client/typescript/agents.js":     nil,
	"gateway/client/typescript/client.js":     nil,
	"gateway/client/typescript/operations.js": nil,
	"gateway/client/typescript/wire.js":       nil,
}

func TestClientsListAgentsOnlyForLists(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	seen := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		at, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		at = filepath.ToSlash(at)
		switch {
		case strings.HasSuffix(at, "_test.go"):
		case strings.HasSuffix(at, ".go"):
			for _, function := range listing(t, path) {
				seen++
				if !slices.Contains(lists[at], function) {
					t.Errorf("%s: %s fetches a list of agents: pass on what the agent is called by", at, function)
				}
			}
		case strings.HasSuffix(at, ".js"):
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if _, known := lists[at]; strings.Contains(string(text), "fetch_agents") && !known {
				t.Errorf("%s fetches a list of agents: pass on what the agent is called by", at)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 6 {
		t.Errorf("only %d of the places that list agents were found", seen)
	}
}

// listing returns the functions of a file that contain the operation's name.
func listing(t *testing.T, path string) []string {
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, d := range f.Decls {
		name := ""
		if function, ok := d.(*ast.FuncDecl); ok {
			name = function.Name.Name
		}
		ast.Inspect(d, func(n ast.Node) bool {
			text, isText := n.(*ast.BasicLit)
			typed, isTyped := n.(*ast.Ident)
			if isText && strings.Contains(text.Value, "fetch_agents") || isTyped && typed.Name == "FetchAgents" {
				found = append(found, name)
			}
			return true
		})
	}
	return found
}

// called checks that an operation was called since the node of the script's state folder started: called OPERATION.
func called(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: called OPERATION")
	}
	socket := filepath.Join(ts.MkAbs(ts.Getenv("PARLEY_STATE")), socketFile)
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}
	answer, err := client.Get("http://parley/metrics")
	ts.Check(err)
	defer answer.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(answer.Body)
	ts.Check(err)
	if was := strings.Contains(string(text), fmt.Sprintf("operation=%q", args[0])); was == neg {
		ts.Fatalf("%s was called: %v", args[0], was)
	}
}

// TestListSaysWhyAnAgentIsInError lists an agent whose mailbox was put aside.
func TestListSaysWhyAnAgentIsInError(t *testing.T) {
	text := agentTable([]listedAgent{{AgentStatus: view.AgentStatus{Name: "fae", Status: mailbox.Failed, Error: "the log\ncannot be read"}}}, terminal.Screen{}, true)
	if !strings.Contains(text, `error`) || !strings.Contains(text, `the log\ncannot be read`) {
		t.Error(text)
	}
}
