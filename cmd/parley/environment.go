package main

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/charmbracelet/x/term"

	"parley/cmd/parley/shell"
	"parley/gateway/api"
	"parley/gateway/client"
)

// environment is the environment of a command: input and output, variables, and the options of every command.
type environment struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	lookup         func(string) (string, bool) // returns an environment variable
	options        options
}

// client returns a client of the node that makes a call once. Its requests name the agent that they act for.
func (env *environment) client() *client.Client {
	return env.clientOf(client.Options{Patience: -1})
}

// patience is the time for which a wait outlasts its node: long enough for a restart.
const patience = 15 * time.Second

// waiter returns a client for waits, which continue through restarts of the node. known says that the node was there
// a moment ago. The client does not wait for another.
func (env *environment) waiter(known bool) *client.Client {
	return env.clientOf(client.Options{As: env.options.as, Patience: patience, Known: known})
}

func (env *environment) clientOf(o client.Options) *client.Client {
	o.Socket = env.options.state.socket()
	c, err := client.New(o)
	if err != nil {
		panic(err) // the options are those of a socket
	}
	return c
}

// call performs one operation.
func (env *environment) call(ctx context.Context, operation string, req, resp any) error {
	c := env.client()
	defer c.Close()
	return c.Call(ctx, operation, req, resp)
}

func (env *environment) acting() api.Acting { return api.Acting{As: env.options.as} }

// asFlag returns the flag that has another command act for the same agent.
func (env *environment) asFlag() string {
	if env.options.as == "" {
		return ""
	}
	return " --as " + shell.Word(env.options.as)
}

// interactive reports whether input and output are a terminal.
func (env *environment) interactive() bool {
	in, ok := env.stdin.(*os.File)
	if !ok || !term.IsTerminal(in.Fd()) {
		return false
	}
	out, ok := env.stdout.(*os.File)
	return ok && term.IsTerminal(out.Fd())
}

// listAll calls a listing page by page and returns the items of all pages. It never returns nil items.
func listAll[R, T any](ctx context.Context, env *environment, operation string, request func(api.Paging) any, page func(R) ([]T, api.Paged)) ([]T, error) {
	c := env.client()
	defer c.Close()
	all := []T{}
	for at := (api.Paging{}); ; {
		var got R
		if err := c.Call(ctx, operation, request(at), &got); err != nil {
			return nil, err
		}
		items, paged := page(got)
		all = append(all, items...)
		if at.After = paged.Next; at.After == "" {
			return all, nil
		}
	}
}
