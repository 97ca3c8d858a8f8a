//go:build unix

package exec

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// playEcho puts out each prompt, in the form of a program that is kept, and asks or ends as it says.
func playEcho() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 64<<20)
	for in.Scan() {
		var l struct{ Type, Text, Run, Status, ID string }
		if err := json.Unmarshal(in.Bytes(), &l); err != nil {
			panic(err)
		}
		switch {
		case l.Type == "cancel":
			fmt.Println(`{"type":"done","run":"` + l.Run + `"}`)
		case l.Type == "answer":
			fmt.Println(l.ID, l.Status)
			fmt.Println(`{"type":"done"}`)
		case strings.HasPrefix(l.Text, "ask "):
			fmt.Printf("{\"type\":\"ask\",\"id\":%q,\"prompt\":\"?\"}\n", l.Text[4:])
		case l.Text == "die":
			fmt.Fprintln(os.Stderr, "I die")
			os.Exit(3)
		case l.Text == "wait":
			fmt.Println("waiting")
		default:
			fmt.Println(os.Getpid(), l.Text)
			fmt.Fprintln(os.Stderr, "beside", l.Text)
			fmt.Println(`{"type":"done","run":"` + l.Run + `"}`)
			fmt.Println(`{"type":"done","run":"` + l.Run + `"}`)
		}
	}
}

// playGrandchild leaves a process behind that holds its pipes: one in its group, one that is none of it.
func playGrandchild() {
	for _, attributes := range []*syscall.SysProcAttr{nil, {Setsid: true}} {
		c := exec.Command("sleep", "60")
		c.Stdout, c.Stderr, c.SysProcAttr = os.Stdout, os.Stderr, attributes
		if err := c.Start(); err != nil {
			panic(err)
		}
		fmt.Println(c.Process.Pid)
	}
}

// playStubborn does not end when asked to.
func playStubborn() {
	signal.Ignore(syscall.SIGTERM)
	fmt.Println(os.Getpid())
	time.Sleep(time.Hour)
}

// playFlood puts out numbered lines as fast as it can, 4 MiB of them.
func playFlood() {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for i := range 1 << 16 {
		fmt.Fprintf(out, "%063d\n", i)
	}
}

// playMany asks 100 questions at once.
func playMany() {
	for i := range 100 {
		fmt.Printf("{\"type\":\"ask\",\"id\":\"q%d\",\"prompt\":\"%d?\"}\n", i, i)
	}
	in := bufio.NewScanner(os.Stdin)
	for n := 0; n < 101 && in.Scan(); n++ {
		fmt.Println(">", in.Text())
	}
	fmt.Println(`{"type":"done"}`)
}

// playDeaf says what is wrong, and never reads that it is.
func playUnread() {
	for i := range 20_000 {
		fmt.Printf("{\"type\":\"nonsense %d\"}\n", i)
	}
	fmt.Println(`{"type":"done"}`)
}
