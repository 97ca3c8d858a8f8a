package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// restate is a Restate server and the service that asks.
type restate struct {
	*program
	service *program
	web     web
	tells   net.Listener // of the IDs of awakeables
	told    sync.Map     // of channels for an ID, by cycle
	last    atomic.Int64 // cycle
}

func startRestate(ctx context.Context, o options) (_ running, err error) {
	folder, err := installNode(ctx, o)
	if err != nil {
		return nil, err
	}
	var ports [4]int
	for i := range ports {
		if ports[i], err = freePort(); err != nil {
			return nil, err
		}
	}
	ingress, admin, fabric, port := ports[0], ports[1], ports[2], ports[3]
	r := &restate{web: newWeb(ingress)}
	if r.tells, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	go http.Serve(r.tells, r) //nolint:errcheck // until close
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	cmd := exec.Command("node", "restate.js", strconv.Itoa(port))
	cmd.Dir = folder
	if r.service, err = startProgram(o, cmd); err != nil {
		return nil, err
	}
	at := func(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
	cmd = exec.Command(filepath.Join(folder, "node_modules/.bin/restate-server"), "--base-dir", filepath.Join(o.folder, "restate"), "--node-name", "bench")
	cmd.Env = append(os.Environ(),
		"DO_NOT_TRACK=1", "RESTATE_DISABLE_TELEMETRY=true", "RESTATE_DEFAULT_NUM_PARTITIONS=4", "RESTATE_LOG_FILTER=warn",
		"RESTATE_INGRESS__BIND_ADDRESS="+at(ingress), "RESTATE_ADMIN__BIND_ADDRESS="+at(admin), "RESTATE_BIND_ADDRESS="+at(fabric),
		"RESTATE_ADVERTISED_ADDRESS=http://"+at(fabric)+"/", "RESTATE_ADMIN__DISABLE_WEB_UI=true")
	if r.program, err = startProgram(o, cmd); err != nil {
		return nil, err
	}
	adminWeb := newWeb(admin)
	err = r.ready(ctx, func(ctx context.Context) error {
		_, err := adminWeb.call(ctx, "/deployments", map[string]any{"uri": "http://" + at(port)})
		return err
	})
	return r, err
}

// ServeHTTP receives the IDs of awakeables, as /CYCLE/ID. A replay tells an ID again.
func (r *restate) ServeHTTP(_ http.ResponseWriter, q *http.Request) {
	cycle, id, _ := strings.Cut(q.URL.Path[1:], "/")
	if told, waits := r.told.LoadAndDelete(cycle); waits {
		told.(chan string) <- id
	}
}

// cycle asks with a call that blocks until the answer is there, and resolves the awakeable that it is told.
func (r *restate) cycle(ctx context.Context, _ int) error {
	type ended struct {
		text []byte
		err  error
	}
	waiter, told := make(chan ended, 1), make(chan string, 1)
	cycle := strconv.FormatInt(r.last.Add(1), 10)
	r.told.Store(cycle, told)
	go func() {
		tell := fmt.Sprintf("http://%s/%s/", r.tells.Addr(), cycle)
		text, err := r.web.call(ctx, "/question/ask", map[string]any{"question": question, "tell": tell})
		waiter <- ended{text, err}
	}()
	select {
	case id := <-told:
		if _, err := r.web.call(ctx, "/restate/awakeables/"+id+"/resolve", answered); err != nil {
			return err
		}
	case e := <-waiter:
		return fmt.Errorf("the question ended before it was asked: %s: %w", e.text, e.err)
	}
	e := <-waiter
	if e.err != nil {
		return e.err
	}
	return wantAnswer(e.text)
}

func (r *restate) close() {
	_ = r.tells.Close() // it only listens
	for _, p := range []*program{r.program, r.service} {
		if p != nil {
			p.close()
		}
	}
}
