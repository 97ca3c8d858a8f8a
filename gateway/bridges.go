package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"parley"
	"parley/capabilities"
	"parley/gateway/backend"
	"parley/gateway/bridge"
	"parley/gateway/bridge/mail"
	"parley/gateway/bridge/ntfy"
	"parley/gateway/bridge/slack"
	"parley/gateway/bridge/webhook"
)

// bridgeLook is the time between two looks at the settings of the bridges.
const bridgeLook = time.Second

// bridges runs the bridges of a node.
type bridges struct {
	settings string // path of the file
	base     string // the address of the server for receivers; "" if it has none
	backend  *backend.Backend
	devices  *devices
	log      *slog.Logger
}

// run runs the bridges of the file of settings until ctx ends. When the file changes, it runs those of the new one.
func (b *bridges) run(ctx context.Context) {
	for ctx.Err() == nil {
		mark := markOf(b.settings)
		these, stop := context.WithCancel(ctx)
		var running sync.WaitGroup
		b.start(these, &running)
		awaitChange(ctx, b.settings, mark)
		stop()
		running.Wait()
	}
}

// awaitChange blocks until a file has another mark, or ctx ends.
func awaitChange(ctx context.Context, path, mark string) {
	tick := time.NewTicker(bridgeLook)
	defer tick.Stop()
	for markOf(path) == mark {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// markOf returns a text that differs once a file was replaced.
func markOf(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return fmt.Sprint(info.ModTime().UnixNano(), info.Size())
}

func (b *bridges) start(ctx context.Context, running *sync.WaitGroup) {
	all, err := bridge.ReadConfigs(b.settings)
	if err != nil {
		b.log.Error("the settings of the bridges cannot be read", "error", err)
		return
	}
	b.drop(ctx, all)
	for _, c := range all {
		r, err := b.receiverOf(c)
		var w *bridge.Worker
		var agent capabilities.ID
		if err == nil {
			agent, err = c.Of()
		}
		if err == nil {
			w, err = bridge.NewWorker(bridge.Options{
				Name: c.Name, For: c.Receiver(), Backend: b.backend, Agent: agent, Acting: b.backend.Person, Receiver: r, Base: func() string { return b.baseFor(c) },
				File: BridgeFile(b.settings, c.Name), Log: b.log, Now: time.Now,
			})
		}
		if err != nil {
			b.log.Error("a bridge cannot begin", "bridge", c.Name, "error", err)
			continue
		}
		running.Go(func() {
			if err := parley.Survive(func() error { return w.Run(ctx) }); err != nil && ctx.Err() == nil {
				b.log.Error("a bridge has ended", "bridge", c.Name, "error", err)
			}
		})
	}
}

// drop revokes the rights in the notices of bridges that were removed.
func (b *bridges) drop(ctx context.Context, all []bridge.Config) {
	files, _ := filepath.Glob(BridgeFile(b.settings, "*")) // the pattern is well formed
	for _, file := range files {
		if slices.ContainsFunc(all, func(c bridge.Config) bool { return file == BridgeFile(b.settings, c.Name) }) {
			continue
		}
		if err := bridge.Drop(ctx, bridge.Options{Backend: b.backend, Acting: b.backend.Person, File: file, Log: b.log, Now: time.Now}); err != nil {
			b.log.Error("what a bridge has told cannot be revoked", "file", file, "error", err)
		}
	}
}

// CheckBridge refuses with INVALID_ARGUMENT settings that no bridge can have.
func CheckBridge(c bridge.Config) error {
	if err := c.Check(); err != nil {
		return err
	}
	if c.Kind == pushKind {
		return parley.Refuse(parley.InvalidArgument, "a browser is added on the page that it shows").WithHint("parley open, then Devices")
	}
	_, err := receiverOf(c, nil)
	return err
}

// BridgeFile returns the path of the file in which a bridge records its notices, beside the file of settings.
func BridgeFile(settings, name string) string {
	return filepath.Join(filepath.Dir(settings), "bridge-"+name+".json")
}

// baseFor returns the address of this server for the receivers of a bridge; "" if it has none.
func (b *bridges) baseFor(c bridge.Config) string {
	if c.Address != "" {
		return strings.TrimSuffix(c.Address, "/")
	}
	return b.base
}

// receiverOf returns the receiver of a bridge of this node.
func (b *bridges) receiverOf(c bridge.Config) (bridge.Receiver, error) {
	if c.Kind == pushKind {
		return b.devices.receiver(c)
	}
	return receiverOf(c, b.log)
}

// receiverOf returns the receiver of a bridge. It refuses with INVALID_ARGUMENT settings that it cannot have.
func receiverOf(c bridge.Config, log *slog.Logger) (bridge.Receiver, error) {
	network, err := bridge.ParseNetwork(c.Network)
	if err != nil {
		return nil, err
	}
	switch c.Kind {
	case "webhook":
		key, err := webhook.ParseKey(c.Key)
		if err != nil {
			return nil, err
		}
		shared, err := webhook.ParseShared(c.Token)
		return &webhook.Webhook{URL: c.URL, Key: key, Shared: shared, Client: bridge.Client(network), Now: time.Now}, err
	case "ntfy":
		server, topic, err := ntfy.Parse(c.URL)
		return &ntfy.Ntfy{Server: server, Topic: topic, Token: c.Token, Client: bridge.Client(network)}, err
	case "mail":
		return mailOf(c, network)
	case "slack":
		return slack.New(slack.Options{
			URL: c.URL, Tokens: c.Token, Key: c.Key, Users: c.Users, Client: bridge.Client(network), Dial: bridge.Dialer(network).DialContext, Log: log,
		})
	}
	return nil, parley.Refuse(parley.InvalidArgument, "unknown kind of bridge %s", parley.Quoted(c.Kind, 40)).WithHint("kinds are mail, ntfy, slack and webhook")
}

// mailOf returns the receiver of a bridge of kind mail.
func mailOf(c bridge.Config, network bridge.Network) (bridge.Receiver, error) {
	server, err := mail.ParseServer(c.URL)
	if err != nil {
		return nil, err
	}
	from, err := mail.ParseAddress("sender", c.From)
	if err != nil {
		return nil, err
	}
	to, err := mail.ParseAddress("recipient", c.To)
	if err != nil {
		return nil, err
	}
	if (c.Login == "") != (c.Token == "") {
		return nil, parley.Refuse(parley.InvalidArgument, "a name at the mail server needs a password, and the other way round").WithHint("--login has the name, --token-file the password")
	}
	return &mail.Mail{Server: server, From: from, To: to, Login: c.Login, Secret: c.Token, Dial: bridge.Dialer(network).DialContext}, nil
}
