package main

import (
	"context"
	"os"
	"os/signal"
)

func main() {
	tune()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program whatever it is doing
	p := &program{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		args: os.Args[1:], env: os.LookupEnv,
	}
	os.Exit(p.run(ctx))
}
