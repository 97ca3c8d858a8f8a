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

// playEcho is a kept program that prints each prompt, and asks or ends as the prompt says.
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
		case l.Text == "hang":
			signal.Ignore(syscall.SIGTERM)
			fmt.Println(os.Getpid())
			time.Sleep(time.Hour)
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

// playGrandchild leaves processes that hold its pipes: one in its process group, and one in another.
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

// playStubborn ignores the signal to end.
func playStubborn() {
	signal.Ignore(syscall.SIGTERM)
	fmt.Println(os.Getpid())
	time.Sleep(time.Hour)
}

// playFlood prints 4 MiB of numbered lines as fast as it can.
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

// playUnread sends invalid lines, and never reads the errors.
func playUnread() {
	for i := range 20_000 {
		fmt.Printf("{\"type\":\"nonsense %d\"}\n", i)
	}
	fmt.Println(`{"type":"done"}`)
}
