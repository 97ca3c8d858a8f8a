package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
)

// restate is a Restate server and the service that asks.
type restate struct {
	*program
	service *program
	web     web
	last    atomic.Int64
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

func (r *restate) cycle(ctx context.Context, _ int) error {
	path := "/question/" + strconv.FormatInt(r.last.Add(1), 10)
	if _, err := r.web.call(ctx, path+"/run/send", question); err != nil {
		return err
	}
	type ended struct {
		text []byte
		err  error
	}
	waiter := make(chan ended, 1)
	go func() {
		text, err := r.web.call(ctx, "/restate/workflow"+path+"/attach", nil)
		waiter <- ended{text, err}
	}()
	_, err := r.web.call(ctx, path+"/answer", answered)
	e := <-waiter
	if err != nil {
		return err
	}
	if e.err != nil {
		return e.err
	}
	return wantAnswer(e.text)
}

func (r *restate) close() {
	for _, p := range []*program{r.program, r.service} {
		if p != nil {
			p.close()
		}
	}
}
