package main

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"parley/gateway/api"
)

func TestServeUsesNATSOption(t *testing.T) {
	t.Parallel()
	system, err := natsserver.NewServer(&natsserver.Options{Host: "127.0.0.1", Port: natsserver.RANDOM_PORT, Username: "ann", Password: "secret", NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	system.Start()
	defer system.WaitForShutdown()
	defer system.Shutdown()
	if !system.ReadyForConnections(time.Minute) {
		t.Fatal("the NATS server is not ready")
	}
	where := strings.TrimPrefix(system.ClientURL(), "nats://")
	state := t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan string, 1)
	go func() {
		p := &program{ // configured by the environment
			environment: environment{
				stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard,
				lookup: func(name string) (string, bool) { return "nats://ann:secret@" + where, name == "PARLEY_SERVICE" },
			},
			args: []string{"--state", state, "serve", "--listen", "off"},
		}
		if exit := p.run(ctx); exit != 0 {
			ended <- "it failed"
		}
		close(ended)
	}()
	defer func() {
		stop()
		if why := <-ended; why != "" {
			t.Error(why)
		}
	}()
	out, errs, _ := runTest(t.Context(), state, nil, "status", "--wait", "15s", "--json")
	var status api.StatusResponse
	if err := json.Unmarshal([]byte(out), &status); err != nil || status.Service != "nats://"+where {
		t.Fatalf("%s %s", out, errs)
	}
	if out, _, _ := runTest(t.Context(), state, nil, "status"); !strings.Contains(out, "service:    nats://"+where+"\n") && !strings.HasSuffix(strings.TrimSpace(out), "nats://"+where) {
		t.Errorf("%s", out)
	}
	made, errs, _ := runTest(t.Context(), state, nil, "token", "create", "--json")
	var token struct{ Token string }
	if err := json.Unmarshal([]byte(made), &token); err != nil {
		t.Fatalf("%s %s", made, errs)
	}
	conn, err := nats.Connect("nats://ann:secret@" + where)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	m := nats.NewMsg("parley.rpc." + status.Node.String() + ".status")
	m.Header.Set("Authorization", "Bearer "+token.Token)
	if got, err := conn.RequestMsg(m, time.Minute); err != nil || !strings.Contains(string(got.Data), `"name"`) || strings.Contains(string(got.Data), "secret") {
		t.Errorf("%v %v", got, err)
	}
	if _, errs, exit := runTest(t.Context(), state, nil, "restart"); exit != exitUsage || !strings.Contains(errs, "--service") {
		t.Errorf("a restart that forgets the service: %d %s", exit, errs)
	}
}

func TestServeRefusesMalformedNATSAddress(t *testing.T) {
	t.Parallel()
	_, errs, exit := runTest(t.Context(), t.TempDir(), nil, "serve", "--listen", "off", "--service", "nats://ann:sec%ret@x")
	if exit != 1 || !strings.Contains(errs, "INVALID_ARGUMENT") || strings.Contains(errs, "sec%") {
		t.Errorf("%d %s", exit, errs)
	}
}
