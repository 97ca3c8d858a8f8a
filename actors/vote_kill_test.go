package actors

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// votesEnv has the duration for which TestVotesSurviveKills goes on.
const votesEnv = "PARLEY_VOTES"

// voteCall is a call to a process that runs one of the nodes. Who is an agent's name, or "" for the host.
type voteCall struct {
	ID       int
	Who      string
	Kind     string // of a voteOp, or show
	Form     string
	Revision uint64
}

// voteOnCalls performs the calls that come by standard input. It prints the result of each, and ends with the input.
func voteOnCalls(ctx context.Context, host *Agent) error {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var c voteCall
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			return err
		}
		go func() {
			got := c.perform(ctx, host)
			outputMu.Lock()
			defer outputMu.Unlock()
			fmt.Println("result", c.ID, got)
		}()
	}
	return io.EOF
}

// perform returns the result of an operation, or the revision that is shown.
func (c voteCall) perform(ctx context.Context, who *Agent) string {
	id, err := capabilities.ParseID(c.Form)
	if err == nil && c.Who != "" {
		who, err = who.node.ActAs(ctx, c.Who)
	}
	if err != nil {
		return ""
	}
	form := capabilities.FormID(id)
	if c.Kind != "show" {
		return voteOp{kind: c.Kind, revision: c.Revision}.perform(ctx, who, form)
	}
	m, err := who.Message(ctx, form)
	if err != nil {
		return ""
	}
	return fmt.Sprint(m.AnswerRevision())
}

// voter is one of the nodes in a process of its own, which takes calls.
type voter struct {
	node *clusterNode

	mu  sync.Mutex // held while there is no process
	run *voterRun
}

// voterRun is one process of a voter.
type voterRun struct {
	cmd   *exec.Cmd
	calls io.WriteCloser
	ended chan struct{} // closed when all results have been read

	mu      sync.Mutex
	next    int
	waiting map[int]chan string
}

// start runs the process and blocks until its node listens.
func (v *voter) start(t *testing.T) {
	t.Helper()
	o := v.node.options
	spec, err := json.Marshal(processSpec{Role: o.Name, Votes: true, Folder: o.Folder, Peers: o.Peers, Public: o.Public})
	if err != nil {
		t.Fatal(err)
	}
	r := &voterRun{cmd: exec.Command(os.Args[0]), ended: make(chan struct{}), waiting: map[int]chan string{}}
	r.cmd.Env = append(os.Environ(), processEnv+"="+string(spec))
	r.cmd.Stderr = os.Stderr
	out, err := r.cmd.StdoutPipe()
	if err == nil {
		r.calls, err = r.cmd.StdinPipe()
	}
	if err == nil {
		err = r.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	v.run = r
	listens := make(chan string, 1)
	go r.read(out, listens)
	at, ok := <-listens
	if !ok {
		t.Fatalf("%s does not start", o.Name)
	}
	if v.node.proxy != nil {
		v.node.proxy.setTarget(at)
	}
}

// read hands out the results that the process prints.
func (r *voterRun) read(out io.Reader, listens chan string) {
	defer close(r.ended)
	defer close(listens)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var id int
		var got string
		if at, first := strings.CutPrefix(lines.Text(), "listens "); first {
			listens <- at
			continue
		}
		if n, _ := fmt.Sscanf(lines.Text(), "result %d %s", &id, &got); n == 0 {
			fmt.Fprintln(os.Stderr, "a voter says:", lines.Text())
			continue
		}
		r.mu.Lock()
		r.waiting[id] <- got
		r.mu.Unlock()
	}
}

// kill ends the process with SIGKILL.
func (v *voter) kill() {
	if v.run != nil {
		_ = v.run.cmd.Process.Kill() // it fails if the process has ended
		<-v.run.ended
		_ = v.run.cmd.Wait() // it was killed
		v.run = nil
	}
}

// call makes a call to the process, and returns the result. It is "" if the process is killed before it responds.
func (v *voter) call(t *testing.T, c voteCall) string {
	v.mu.Lock()
	r := v.run
	r.mu.Lock()
	r.next++
	c.ID = r.next
	result := make(chan string, 1)
	r.waiting[c.ID] = result
	r.mu.Unlock()
	line, err := json.Marshal(c)
	if err != nil {
		t.Error(err)
	}
	_, _ = r.calls.Write(append(line, '\n')) // it fails if the process has ended
	v.mu.Unlock()
	select {
	case got := <-result:
		return got
	case <-r.ended:
	}
	select {
	case got := <-result:
		return got
	default:
		return ""
	}
}

// killOne kills the process after a moment, and starts it again.
func (v *voter) killOne(t *testing.T) {
	time.Sleep(rand.N(40 * time.Millisecond)) // some operations are under way, and no synchronization
	v.mu.Lock()
	defer v.mu.Unlock()
	v.kill()
	v.start(t)
}

// principals are the voters of a form: the hosts of the three nodes, and 13 more hosts at the form's home.
type principals struct {
	t      *testing.T
	voters []*voter
	client int
}

const morePrincipals = 13

// place returns the process and the name of a principal. The one behind all is the asker.
func (p *principals) place(nth int) (*voter, string) {
	switch {
	case nth < len(p.voters):
		return p.voters[nth], ""
	case nth < len(p.voters)+morePrincipals:
		return p.voters[0], fmt.Sprint("host", nth-len(p.voters))
	}
	return p.voters[0], "fae"
}

// race has all principals act on a form at once, while a process is killed, and returns the history.
func (p *principals) race(form capabilities.ID, victim *voter) (history []porcupine.Operation) {
	var (
		mu      sync.Mutex
		running sync.WaitGroup
		start   = time.Now()
		end     = start.Add(time.Minute)
	)
	perform := func(nth int, op voteOp) {
		v, who := p.place(nth)
		called := time.Since(start)
		got := v.call(p.t, voteCall{Who: who, Kind: op.kind, Form: form.String(), Revision: op.revision})
		done := time.Since(start)
		if got == "" {
			done = time.Hour
		}
		mu.Lock()
		defer mu.Unlock()
		p.client++ // each is a client of its own, because some never return
		history = append(history, porcupine.Operation{ClientId: p.client, Input: op, Output: got, Call: int64(called), Return: int64(done)})
	}
	all := len(p.voters) + morePrincipals
	for i := range all {
		running.Go(func() {
			for n := range 3 {
				v, who := p.place(i)
				var shown uint64
				for shown == 0 { // a process that has just started may not have read the form
					if time.Now().After(end) {
						p.t.Errorf("principal %d does not see the form", i)
						return
					}
					_, _ = fmt.Sscan(v.call(p.t, voteCall{Who: who, Kind: "show", Form: form.String()}), &shown)
				}
				op := voteOp{kind: "vote", principal: i, revision: shown}
				if n > 0 && rand.IntN(2) == 0 {
					op = voteOp{kind: "withdraw", principal: i}
				}
				perform(i, op)
			}
		})
	}
	running.Go(func() {
		for range rand.IntN(3) {
			perform(all, voteOp{kind: "amend"})
		}
	})
	victim.killOne(p.t)
	running.Wait()
	return history
}

// TestVotesSurviveKills has 16 principals of three nodes vote and withdraw while the asker amends, and kills the nodes'
// processes meanwhile. Each history is one of the sequential model, and all nodes agree on the end.
func TestVotesSurviveKills(t *testing.T) {
	t.Parallel()
	period := time.Duration(0)
	if text := os.Getenv(votesEnv); text != "" {
		var err error
		if period, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	a, b, c := openThreeNodes(t)
	guest(t, a.Node, "fae")
	for i := range morePrincipals {
		if _, err := a.Host().Make(t.Context(), NewAgent{Kind: events.Host, Name: fmt.Sprint("host", i)}); err != nil {
			t.Fatal(err)
		}
	}
	p := &principals{t: t}
	for _, s := range []*clusterNode{a, b, c} {
		v := &voter{node: s}
		p.voters = append(p.voters, v)
		t.Cleanup(v.kill)
	}
	var (
		ended     = map[string]int{}
		forms     int
		began     = time.Now()
		showsMore = func() bool {
			return ended["vote voted"] == 0 || ended["withdraw withdrawn"] == 0 || ended["killed"] == 0
		}
	)
	for batch := 0; !t.Failed() && (batch == 0 || time.Since(began) < period || showsMore() && batch < 10); batch++ {
		forms += p.batch(ended)
	}
	t.Logf("%d forms, as many kills: %v", forms, ended)
	if showsMore() {
		t.Errorf("the histories show too little: %v", ended)
	}
}

// batch makes a few forms, races the principals on each, and checks the histories and what all nodes say at the end. It
// counts the results in ended, and returns the number of forms.
func (p *principals) batch(ended map[string]int) int {
	t := p.t
	a := p.voters[0].node
	fae, err := a.ActAs(t.Context(), "fae")
	if err != nil {
		t.Fatal(err)
	}
	needs := []int{3, 8, 14}
	rand.Shuffle(len(needs), func(i, j int) { needs[i], needs[j] = needs[j], needs[i] })
	var forms []capabilities.ID
	for _, need := range needs {
		forms = append(forms, p.ask(fae, uint32(need)))
	}
	for _, v := range p.voters {
		closeNode(t, v.node.Node)
	}
	for _, v := range p.voters {
		v.start(t)
	}
	histories := make([][]porcupine.Operation, len(forms))
	for i, form := range forms {
		histories[i] = p.race(form, p.voters[i])
	}
	for _, v := range p.voters {
		v.kill()
		v.node.open(t)
	}
	for i, history := range histories {
		for _, op := range history {
			result := op.Input.(voteOp).kind + " " + op.Output.(string)
			if op.Output == "" {
				result = "killed"
			}
			ended[result]++
		}
		if !checkVotes(t, needs[i], history) {
			ended["undecided"]++
		}
	}
	if fae, err = a.ActAs(t.Context(), "fae"); err != nil {
		t.Fatal(err)
	}
	for _, form := range forms {
		p.checkEnd(fae, form)
	}
	return len(forms)
}

// ask asks for a form that all principals have.
func (p *principals) ask(fae *Agent, need uint32) capabilities.ID {
	t := p.t
	a, b, c := p.voters[0].node, p.voters[1].node, p.voters[2].node
	form := askAndForward(t, fae, []*Agent{a.Host(), b.Host(), c.Host()}, parley.Form{To: "HOST", Need: need})
	for i := range morePrincipals {
		name := fmt.Sprint("host", i)
		if err := a.Host().Forward(t.Context(), capabilities.FormID(form), name); err != nil {
			t.Fatal(err)
		}
		h, err := a.ActAs(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		awaitMessage(t, h, form)
	}
	return form
}

// checkEnd ends a form, and checks that all nodes have the same outcome.
func (p *principals) checkEnd(fae *Agent, form capabilities.ID) {
	t, ref := p.t, capabilities.FormID(form)
	if _, err := fae.Cancel(t.Context(), ref, ""); err != nil && parley.CodeOf(err) != parley.AlreadyAnswered {
		t.Fatal(err)
	}
	home, err := fae.Message(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	var holders []*Agent
	for _, v := range p.voters {
		holders = append(holders, v.node.Host())
	}
	awaitSameOutcome(t, form, home.Outcome.Status, fae, holders...)
}
