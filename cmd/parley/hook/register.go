package hook

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"parley"
	"parley/gateway/api"
)

// registerTime bounds a registration. A node that does not answer holds no call up for longer.
const registerTime = 5 * time.Second

// Register has the node take what the agent's process has started, this process too, for the agent's guest: that of the
// folder it works in, or the one that the options name. It returns the name that requests of the guest have to give.
func (a Agent) Register(ctx context.Context, o Options) (name string, err error) {
	return a.register(ctx, toolCall{}, o)
}

func (a Agent) register(ctx context.Context, call toolCall, o Options) (name string, err error) {
	ctx, cancel := context.WithTimeout(ctx, registerTime)
	defer cancel()
	wanted := api.Register{Acting: api.Acting{As: o.As}, Program: a.Name, Title: a.Title, Folder: a.workFolder(call, o.Env), Session: call.session}
	if set, ok := o.Env(a.pid); ok && a.pid != "" {
		wanted.Process, _ = strconv.Atoi(set) // 0 names none
	}
	text, err := o.exchange(ctx, http.MethodPost, api.RegisterPath, wanted)
	if err != nil {
		return "", err
	}
	var done api.Registered
	if json.Unmarshal(text, &done) != nil || done.Name == "" {
		return "", parley.Refuse(parley.Internal, "the node's answer cannot be read")
	}
	return done.Name, nil
}
