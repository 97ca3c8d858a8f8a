//go:build !client

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"parley"
	"parley/actors"
	"parley/actors/trace"
	"parley/cmd/parley/proc"
	"parley/cmd/parley/shell"
	"parley/gateway"
	"parley/gateway/api"
	"parley/gateway/bridge"
	"parley/internal/natsauth"
	"parley/mailbox/quota"
)

// serveOptions are the options of a node.
type serveOptions struct {
	listen        string
	tls           gateway.TLS
	a2aNetwork    string
	peerListen    string
	peerPublic    string
	nats          string
	natsAccess    natsauth.Access // to nats
	replicas      int
	service       string
	serviceAccess natsauth.Access // to service
	name          string
	logLevel      string
	limits        limitFlag
	quotas        []string
	retention     duration

	programEnv  []string
	programUser string
	wrap        string
}

func (s *serveOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&s.listen, "listen", defaultListen, "`address` for pages and clients; off for none, port 0 for a free one")
	f.StringVar(&s.tls.Cert, "tls-cert", "", "`file` with the certificate for --listen, in PEM")
	f.StringVar(&s.tls.Key, "tls-key", "", "`file` with its key")
	f.BoolVar(&s.tls.Plain, "plain-http", false, "listen in the clear also beyond this machine: something else protects the way")
	f.StringVar(&s.a2aNetwork, "a2a-network", string(bridge.Public), "the nearest `network` in which a client of A2A may have its tasks' changes pushed: public, private or machine")
	f.StringVar(&s.peerPublic, "peer-address", "", "with --peer-listen: `address` that other nodes are told instead, where the way there leads through another")
	f.StringVar(&s.peerListen, "peer-listen", gateway.Off, "`address` on which other nodes reach this one; off for none, port 0 for a free one")
	f.StringVar(&s.nats, "nats", "", "keep the journal in the NATS system at this `URL` (default: in the state folder)")
	f.IntVar(&s.replicas, "replicas", 1, "with --nats: `copies` of the journal")
	f.StringVar(&s.service, "service", gateway.Off, "offer the operations as a micro service of the NATS system at this `URL` too; off for none. Whoever may read parley.rpc.> there reads the tokens of its clients")
	for _, a := range s.accesses() {
		f.StringVar(a.file, a.flag, "", a.help)
	}
	f.StringVar(&s.name, "node-name", "", "the node's display `name` (default: the machine's)")
	f.Var(&s.limits, "limit", "`key=value`, several with commas: how much one agent or address may have under way; parley serve --help lists the keys")
	f.StringSliceVar(&s.quotas, "quota", nil, "what each agent, or with peer. each other node, may have the node hold: `name=amount`, as in daily=64MiB,peer.inbox=none; parley agent quota shows the names")
	f.Var(&s.retention, "retention", "archive what is older than this `age`, as 90d, where that frees enough (default: nothing is archived; see parley log archive)")
	f.StringSliceVar(&s.programEnv, "program-env", nil, "`names` of variables that every program gets from the node's environment too, as MODEL_KEY,CLOUD_*")
	f.StringVar(&s.programUser, "program-user", "", "the system's `user` that programs run as (default: the node's own)")
	f.StringVar(&s.wrap, "program-wrap", "", "`command` that programs are wrapped in, as 'bwrap --ro-bind / / --dev /dev'")
	f.StringVar(&s.logLevel, "log-level", defaultLogLevel, "least `level` that is logged: debug, info, warn or error")
}

// usual are the options that most nodes need. The help of the commands that run a node in the background shows these; all of
// serve's are taken.
var usual = []string{"listen", "tls-cert", "tls-key", "peer-listen", "nats", "node-name", "quota", "retention", "program-user", "log-level"}

// usualFlags adds the options, and has help show the usual ones.
func (s *serveOptions) usualFlags(c *cobra.Command) {
	s.flags(c.Flags())
	c.Flags().VisitAll(func(f *pflag.Flag) { f.Hidden = !slices.Contains(usual, f.Name) })
	c.Long += "\nIt takes all options of serve: parley serve --help lists them."
}

// access is an option that names a file with which a NATS system is reached.
type access struct {
	flag, help string
	file       *string
}

// accesses returns the options of --nats and of --service that name files.
func (s *serveOptions) accesses() []access {
	return append(accessOptions("nats", &s.natsAccess), accessOptions("service", &s.serviceAccess)...)
}

func accessOptions(of string, a *natsauth.Access) []access {
	with := "with --" + of + ": "
	return []access{
		{of + "-creds", with + "`file` with a user's credentials, as nsc writes it", &a.Creds},
		{of + "-nkey", with + "`file` with a user's nkey seed", &a.NKey},
		{of + "-tls-ca", with + "`file` with the authorities that vouch for the servers, in PEM (default: the system's)", &a.CA},
		{of + "-tls-cert", with + "`file` with the certificate that is shown to the servers, in PEM", &a.Cert},
		{of + "-tls-key", with + "`file` with its key", &a.Key},
	}
}

// checkAccess refuses files that cannot be used, and files for an address that is not given.
func (s *serveOptions) checkAccess(c *cobra.Command) error {
	for _, a := range s.accesses() {
		of, _, _ := strings.Cut(a.flag, "-")
		if *a.file != "" && (of == "nats" && s.nats == "" || of == "service" && s.service == gateway.Off) {
			return usage(c, "--%s needs --%s", a.flag, of)
		}
	}
	if _, err := s.natsAccess.Options(); err != nil {
		return usage(c, "--nats: %s", parley.AsError(err).Message)
	}
	if _, err := s.serviceAccess.Options(); err != nil {
		return usage(c, "--service: %s", parley.AsError(err).Message)
	}
	return nil
}

// args returns the options as a command line, for another process.
func (s *serveOptions) args() []string {
	args := []string{"--listen", s.listen, "--peer-listen", s.peerListen, "--service", s.service, "--log-level", s.logLevel}
	if s.tls.Cert != "" || s.tls.Key != "" {
		args = append(args, "--tls-cert", whole(s.tls.Cert), "--tls-key", whole(s.tls.Key))
	}
	if s.tls.Plain {
		args = append(args, "--plain-http")
	}
	if s.a2aNetwork != string(bridge.Public) {
		args = append(args, "--a2a-network", s.a2aNetwork)
	}
	if s.peerPublic != "" {
		args = append(args, "--peer-address", s.peerPublic)
	}
	if s.nats != "" {
		args = append(args, "--nats", s.nats, "--replicas", strconv.Itoa(s.replicas))
	}
	for _, a := range s.accesses() {
		if *a.file != "" {
			args = append(args, "--"+a.flag, whole(*a.file))
		}
	}
	for _, q := range s.quotas {
		args = append(args, "--quota", q)
	}
	if s.retention > 0 {
		args = append(args, "--retention", s.retention.String())
	}
	if s.name != "" {
		args = append(args, "--node-name", s.name)
	}
	if s.limits.String() != "" {
		args = append(args, "--limit", s.limits.String())
	}
	if len(s.programEnv) > 0 {
		args = append(args, "--program-env", strings.Join(s.programEnv, ","))
	}
	if s.programUser != "" {
		args = append(args, "--program-user", s.programUser)
	}
	if s.wrap != "" {
		args = append(args, "--program-wrap", s.wrap)
	}
	return args
}

// whole returns a path that is valid in any folder.
func whole(path string) string {
	if abs, err := filepath.Abs(path); err == nil && path != "" {
		return abs
	}
	return path
}

// keep takes options that were not given from a node's status.
func (s *serveOptions) keep(given *pflag.FlagSet, was api.StatusResponse) {
	if !given.Changed("listen") {
		s.listen = was.Listen
	}
	if !given.Changed("tls-cert") && !given.Changed("tls-key") {
		s.tls.Cert, s.tls.Key = was.TLSCert, was.TLSKey
	}
	if !given.Changed("plain-http") {
		s.tls.Plain = was.PlainHTTP
	}
	if !given.Changed("a2a-network") && was.A2ANetwork != "" {
		s.a2aNetwork = was.A2ANetwork
	}
	if !given.Changed("peer-listen") && was.PeerListen != "" {
		s.peerListen = was.PeerListen
	}
	if !given.Changed("peer-address") {
		s.peerPublic = was.PeerAddress
	}
	if !given.Changed("quota") {
		s.quotas = slices.Concat(quotaSettings("", was.Quotas.Agents, quota.Agent()), quotaSettings(peerQuota, was.Quotas.Peers, quota.Peer()))
	}
	if !given.Changed("log-level") {
		s.logLevel = was.LogLevel
	}
	if limits, err := api.ParseLimits(was.LimitsSet); !given.Changed("limit") && err == nil {
		s.limits.Limits = limits
	}
	if !given.Changed("program-env") {
		s.programEnv = was.Programs.Environment
	}
	if !given.Changed("program-user") {
		s.programUser = was.Programs.User
	}
	if !given.Changed("program-wrap") {
		s.wrap = shell.Join(was.Programs.Wrap)
	}
	if machine, err := os.Hostname(); !given.Changed("node-name") && (err != nil || was.Name != machine) {
		s.name = was.Name
	}
}

// peers returns the address for other nodes, or "" for none.
func (s *serveOptions) peers() string {
	if s.peerListen == gateway.Off {
		return ""
	}
	return s.peerListen
}

func (s *serveOptions) level(c *cobra.Command) (slog.Level, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(s.logLevel)); err != nil {
		return level, usage(c, "unknown log level %q: want debug, info, warn or error", s.logLevel)
	}
	return level, nil
}

func serveCommand(env *environment) *cobra.Command {
	var s serveOptions
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run the node in the foreground",
		Long: `Runs the node in the foreground and logs to standard error. SIGTERM and Ctrl-C stop it: calls under way
finish, waits are cut short (clients resume them), and everything is on disk already. A second node on
the same state folder is refused.`,
		Example: `  parley serve
  parley serve --listen off --log-level debug
  parley serve --peer-listen 0.0.0.0:7421
  parley serve --nats nats://10.0.0.5:4222 --replicas 3
  parley serve --service nats://10.0.0.5:4222 --service-creds parley.creds
  parley serve --limit waits=8192,connections=4096`,
	}
	c.Long += "\n\n" + limitsHelp()
	s.flags(c.Flags())
	c.RunE = func(c *cobra.Command, _ []string) error {
		level, err := s.level(c)
		if err != nil {
			return err
		}
		if _, _, err := s.readQuotas(); err != nil {
			return usage(c, "--quota: %s", parley.AsError(err).Message)
		}
		if _, err := bridge.ParseNetwork(s.a2aNetwork); err != nil {
			return usage(c, "--a2a-network: %s", parley.AsError(err).Message)
		}
		if err := s.checkAccess(c); err != nil {
			return err
		}
		lines := newLogWriter(env.stderr)
		defer lines.Close()
		log := slog.New(slog.NewTextHandler(lines, &slog.HandlerOptions{Level: level}))
		ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGTERM, syscall.SIGINT)
		defer stop()
		context.AfterFunc(ctx, stop) // a second signal ends the process at once
		if own, ok := env.stdout.(*os.File); ok {
			if err := proc.LetGo(own); err != nil {
				return err
			}
		}
		return runNode(ctx, env, s, log)
	}
	return c
}

// programs returns the defaults for all programs of the node.
func (s *serveOptions) programs() (actors.ProgramDefaults, error) {
	wrap, err := shell.Split(s.wrap)
	return actors.ProgramDefaults{Environment: s.programEnv, User: s.programUser, Wrap: wrap}, err
}

// filesLeast is the number of files that a node has to be able to open: some 20 for its journal, its search and its log, and two for each
// of those who call at once. With fewer it would start, and take no connection.
const filesLeast = 64

// checkFiles refuses to run a node that could open too few files to answer anybody.
func checkFiles() error {
	if files, limited := gateway.FileLimit(); limited && files < filesLeast {
		return parley.Refuse(parley.QuotaExceeded, "a node needs %d open files, and this process may have %d", filesLeast, files).
			WithHint("raise the limit: ulimit -n 4096 in a shell, LimitNOFILE=65536 in a systemd unit")
	}
	return nil
}

// runNode runs a node until ctx ends, a client stops it, or it fails.
func runNode(ctx context.Context, env *environment, s serveOptions, log *slog.Logger) (err error) {
	tune()
	proc.RefuseTracing()
	if _, set := env.lookup("GOMEMLIMIT"); !set {
		proc.LimitMemory()
	}
	if zone := unknownZone(env); zone != "" {
		log.Warn("TZ is the name of no time zone: times are read and shown in UTC", "TZ", zone)
	}
	if err := checkFiles(); err != nil {
		return err
	}
	programs, err := s.programs()
	if err != nil {
		return err
	}
	l, err := env.options.state.lock()
	if err != nil {
		return err
	}
	moved, stopLooking, err := env.options.state.moved()
	if err != nil {
		return errors.Join(err, l.release())
	}
	defer stopLooking()
	defer func() { err = errors.Join(err, l.release()) }()
	agents, peers, err := s.readQuotas()
	if err != nil {
		return err
	}
	spans, err := trace.Exporter(ctx, env.lookup, log)
	if err != nil {
		return err
	}
	o := actors.Options{
		Spans:  spans,
		Quotas: agents, PeerQuotas: peers,
		Folder: string(env.options.state), Name: s.name, URL: s.nats, Access: s.natsAccess, Replicas: s.replicas, Peers: s.peers(), Public: s.peerPublic, Log: log, Unproved: s.limits.Unproved(),
		Programs: programs, TakeOver: true, Retention: time.Duration(s.retention),
	}
	if err := gateway.CheckCoders(env.options.state.coders()); err != nil {
		return err
	}
	node, err := openNode(ctx, env, o, log)
	if err != nil {
		if ctx.Err() != nil {
			return nil // it was stopped before it had begun
		}
		return err
	}
	// Closing has contexts of its own: ctx has ended by then.
	defer func() {
		if wasMoved(err) {
			return // closing would write to what is in the place of the folder
		}
		closing, cancel := context.WithTimeout(context.Background(), drainTime)
		defer cancel()
		err = errors.Join(err, node.Close(closing))
	}()
	server, err := gateway.Listen(node, gateway.Options{
		Socket: env.options.state.socket(), Listen: s.listen, TLS: s.tls, Version: version(), External: s.nats != "", Service: s.service, Access: s.serviceAccess, Limits: s.limits.Limits, Log: log,
		Bridges: env.options.state.bridges(), Pushes: env.options.state.pushes(), Coders: env.options.state.coders(), PushNetwork: bridge.Network(s.a2aNetwork),
	})
	if err != nil {
		return err
	}
	server.Serve()
	serving, end := context.WithCancel(ctx)
	var memory sync.WaitGroup
	memory.Go(func() { proc.ReturnMemory(serving) })
	defer func() { end(); memory.Wait() }()
	log.Info("ready", "node", node.State().Node, "state", env.options.state, "listen", server.Address(), "version", version())
	notify(log, "READY=1")

	err = untilStopped(ctx, node, server, moved)
	log.Info("stopping", "reason", stopReason(ctx, err))
	notify(log, "STOPPING=1")
	if wasMoved(err) {
		return err
	}
	draining, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	if drained := server.Drain(draining); drained != nil {
		log.Warn("not everything in flight had ended", "error", drained)
	}
	return err
}

// openNode opens a node. A standby waits until the node that runs has ended.
func openNode(ctx context.Context, env *environment, o actors.Options, log *slog.Logger) (*actors.Node, error) {
	waited := false
	o.Standby = func() { waited = true; markStandby(env, log) }
	node, err := actors.Open(ctx, o)
	for waited && parley.CodeOf(err) == parley.ReadOnly && ctx.Err() == nil { // its servers are out of reach, and will be back
		log.Warn("the standby could not begin; it waits again", "error", err)
		select {
		case <-time.After(standbyPause):
		case <-ctx.Done():
		}
		node, err = actors.Open(ctx, o)
	}
	if gone := os.Remove(env.options.state.standby()); gone != nil && !errors.Is(gone, os.ErrNotExist) {
		log.Warn("the mark of a standby stays", "error", gone)
	}
	return node, err
}

// notify tells the service manager, if there is one, of a state of this process.
func notify(log *slog.Logger, state string) {
	if err := proc.Notify(state); err != nil {
		log.Warn("the service manager does not hear from this process", "state", state, "error", err)
	}
}

// markStandby reports, in the log and to the process that started this one, that this process is a standby.
func markStandby(env *environment, log *slog.Logger) {
	log.Info("standby: the node runs in another process, and in this one when that ends")
	if err := os.WriteFile(env.options.state.standby(), []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		log.Warn("it cannot be shown that this is a standby", "error", err)
	}
}

func untilStopped(ctx context.Context, node *actors.Node, server *gateway.Server, moved <-chan error) error {
	select {
	case <-ctx.Done():
		return nil
	case <-server.Stopped():
		return nil
	case err := <-server.Broken():
		return err
	case err := <-moved:
		return err
	case <-node.Done():
		return fmt.Errorf("the node cannot go on: %w", node.Err())
	}
}

func stopReason(ctx context.Context, err error) string {
	switch {
	case err != nil:
		return err.Error()
	case ctx.Err() != nil:
		return "signal"
	}
	return "asked to"
}

// lastFailure returns the error at the end of a node's log.
func lastFailure(log string) *parley.Error {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		rest, ok := strings.CutPrefix(lines[i], "parley: ")
		if !ok {
			continue
		}
		code, message, ok := strings.Cut(rest, ": ")
		if !ok {
			continue
		}
		e := &parley.Error{Code: parley.Code(code), Message: message}
		if i+1 < len(lines) {
			e.Hint, _ = strings.CutPrefix(lines[i+1], "hint: ")
		}
		return e
	}
	return nil
}

// readQuotas reads the quotas of agents and of other nodes.
func (s *serveOptions) readQuotas() (agents, peers map[string]int64, err error) {
	var ofAgents, ofPeers []string
	for _, q := range s.quotas {
		if rest, ok := strings.CutPrefix(q, peerQuota); ok {
			ofPeers = append(ofPeers, rest)
		} else {
			ofAgents = append(ofAgents, q)
		}
	}
	if agents, err = quota.Parse(ofAgents); err != nil {
		return nil, nil, err
	}
	peers, err = quota.Parse(ofPeers)
	return agents, peers, err
}
