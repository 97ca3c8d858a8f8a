package main

import (
	"context"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
)

// langGraph is a graph that is interrupted, behind HTTP. Nobody waits there: resuming the graph returns the answer.
type langGraph struct {
	*program
	web  web
	last atomic.Int64
}

func startLangGraph(ctx context.Context, o options) (running, error) {
	folder, err := installNode(ctx, o)
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("node", "langgraph.js", strconv.Itoa(port), filepath.Join(o.folder, "langgraph.db"))
	cmd.Dir = folder
	p, err := startProgram(o, cmd)
	if err != nil {
		return nil, err
	}
	l := &langGraph{program: p, web: newWeb(port)}
	if err := p.ready(ctx, func(ctx context.Context) error { return l.cycle(ctx, 0) }); err != nil {
		p.close()
		return nil, err
	}
	return l, nil
}

func (l *langGraph) cycle(ctx context.Context, _ int) error {
	thread := strconv.FormatInt(l.last.Add(1), 10)
	if _, err := l.web.call(ctx, "/ask/"+thread, question); err != nil {
		return err
	}
	text, err := l.web.call(ctx, "/answer/"+thread, answered)
	if err != nil {
		return err
	}
	return wantAnswer(text)
}
