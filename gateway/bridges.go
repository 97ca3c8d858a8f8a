package gateway

import (
	"context"
	"crypto/sha256"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"parley"
	"parley/gateway/api"
	"parley/gateway/backend"
	"parley/gateway/bridge"
	"parley/gateway/bridge/mail"
	"parley/gateway/bridge/ntfy"
	"parley/gateway/bridge/slack"
	"parley/gateway/bridge/webhook"
	"parley/gateway/httpd"
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
		if err == nil {
			w, err = bridge.NewWorker(bridge.Options{
				Name: c.Name, For: c.Receiver(), Backend: b.backend, Host: b.backend.Local(), Receiver: r, Base: func() string { return b.baseFor(c) },
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
		if err := bridge.Drop(ctx, bridge.Options{Backend: b.backend, Host: b.backend.Local(), File: file, Log: b.log, Now: time.Now}); err != nil {
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

// answerPage asks for a confirmation, since programs follow links too. It shows how the form ended.
var answerPage = template.Must(template.New("answer").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Parley</title>
<main><h1>{{.Title}}</h1>{{with .Text}}<p>{{.}}</p>{{end}}{{if .Ask}}<form method="post"><button>{{.Ask}}</button></form>{{end}}</main></html>
`))

type answerShown struct{ Title, Text, Ask string }

// serveAnswer answers a form by the right in the path. The request needs no token. Only a POST answers. It reports
// whether the path is such an address.
func (s *Server) serveAnswer(w http.ResponseWriter, r *http.Request) bool {
	path, ok := strings.CutPrefix(r.URL.Path, bridge.AnswerPath)
	if !ok {
		return false
	}
	secret, outcome, _ := strings.Cut(path, "/")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'")
	w.Header().Set("Referrer-Policy", "no-referrer") // the address is a secret
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	label := map[string]string{"once": "Allow once", "deny": "Deny", "decline": "Decline"}[outcome]
	switch {
	case label == "":
		httpd.Refuse(w, parley.Refuse(parley.InvalidArgument, "there is no such answer"), http.StatusNotFound)
	case isRead(r.Method):
		showAnswer(w, http.StatusOK, answerShown{Title: label + "?", Ask: label})
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", "GET, HEAD, POST")
		httpd.Refuse(w, parley.Refuse(parley.InvalidArgument, "an answer is posted"), http.StatusMethodNotAllowed)
	default:
		s.takeAnswer(w, r, api.AnswerWithRequest{Secret: secret, Outcome: outcome}, label)
	}
	return true
}

// takeAnswer answers a form by a right. It writes a page, or JSON for the script that shows notifications.
func (s *Server) takeAnswer(w http.ResponseWriter, r *http.Request, with api.AnswerWithRequest, label string) {
	isProgram := r.Header.Get("Accept") == "application/json"
	err := s.presses.allow(digestOf(with.Secret), "uses of this link")
	if err == nil {
		_, err = s.backend.AnswerWith(r.Context(), with)
	}
	if err != nil {
		s.monitor.Failed(r.Context(), "answer_with", err)
	}
	switch {
	case isProgram && err != nil:
		httpd.Refuse(w, err, 0)
	case isProgram:
		w.Header()["Content-Type"] = jsonType
		_, _ = fmt.Fprintf(w, "{\"answered\":%q}\n", with.Outcome) // the error is that of a client that has gone away
	case err != nil:
		showAnswer(w, api.HTTPStatus(parley.CodeOf(err)), answerShown{Title: "Not answered", Text: parley.AsError(err).Message})
	default:
		showAnswer(w, http.StatusOK, answerShown{Title: "Answered: " + label})
	}
}

// digestOf returns what stands for the secret of a link where its uses are counted.
func digestOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return string(sum[:])
}

func showAnswer(w http.ResponseWriter, status int, shown answerShown) {
	w.WriteHeader(status)
	_ = answerPage.Execute(w, shown) // the error is that of a client that has gone away
}
