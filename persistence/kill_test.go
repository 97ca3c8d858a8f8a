package persistence

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"parley/capabilities"
	"parley/events"
)

const childWriter = "PARLEY_TEST_WRITER_FOLDER"

// writeAsChild appends to one mailbox until it is killed, and prints the acknowledged versions.
func writeAsChild(folder string) {
	j, err := Open(context.Background(), Options{Folder: folder, Node: testNode(1)})
	if err != nil {
		panic(err)
	}
	m, _ := j.Mailbox(mailboxID(1))
	for version := m.Version + 1; ; version++ {
		body, err := events.Append(nil, events.Recorded{At: 1, Event: &events.NameBound{Name: "n", Value: capabilities.Int(int64(version))}})
		if err != nil {
			panic(err)
		}
		pos := j.Append(events.Section{Mailbox: mailboxID(1), First: version, Count: 1, Body: body, Summary: events.Summary{Open: uint32(version)}})
		released := make(chan struct{})
		j.Release(pos, func(err error) {
			if err == nil {
				fmt.Println(version)
			}
			close(released)
		})
		if version%64 == 0 { // bound the appends that are not durable
			<-released
		}
	}
}

func TestAcknowledgedAppendsSurviveKill(t *testing.T) {
	o := testOptions(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for round := range 4 {
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), childWriter+"="+o.Folder)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		acknowledged := uint64(0)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			n, err := strconv.ParseUint(lines.Text(), 10, 64)
			if err != nil {
				continue
			}
			if acknowledged == 0 {
				time.AfterFunc(time.Duration(70*(round+1))*time.Millisecond, func() { _ = cmd.Process.Kill() })
			}
			acknowledged = n
		}
		_ = cmd.Wait()
		j := open(t, o)
		m, _ := j.Mailbox(mailboxID(1))
		if m.Version < acknowledged || acknowledged == 0 {
			t.Fatalf("round %d: log has version %d, acknowledged %d", round, m.Version, acknowledged)
		}
		writer{1: m.Version}.check(t, j)
		t.Logf("round %d: %d in the log, %d acknowledged", round, m.Version, acknowledged)
		closeJournal(t, j)
	}
}
