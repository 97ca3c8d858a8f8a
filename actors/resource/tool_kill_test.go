//go:build linux

package resource_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"parley/actors/resource"
	"parley/events"
	"parley/internal/eventually"
)

// startingTool is the environment variable with a file in which a server of tools is to write its process ID.
const startingTool = "PARLEY_TEST_STARTING_TOOL"

func TestMain(m *testing.M) {
	if file := os.Getenv(startingTool); file != "" { // the node: it waits for a server that never answers, until it is killed
		_, _ = resource.ToolsOf(context.Background(), &events.ResourceMade{Command: []string{"sh", "-c", `trap "" HUP TERM INT; echo $$ > "$1.new"; mv "$1.new" "$1"; while :; do read -r line || sleep 1; done`, "sh", file}})
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// TestAToolsServerEndsWithTheNode kills a node while a server of tools runs that takes no notice of the end of its input.
func TestAToolsServerEndsWithTheNode(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	node := exec.Command(os.Args[0])
	node.Env = append(os.Environ(), startingTool+"="+file)
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	server := 0
	eventually.Holds(t, "the server runs", func() bool {
		b, err := os.ReadFile(file)
		if err == nil {
			server, err = strconv.Atoi(strings.TrimSpace(string(b)))
		}
		return err == nil
	})
	if err := node.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = node.Wait() // it was killed
	eventually.Holds(t, "the server has ended", func() bool {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(server) + "/stat")
		return err != nil || strings.Contains(string(stat), ") Z ")
	})
}
