package actors

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/persistence"
	"parley/persistence/archive/store"
)

var (
	night     = flag.Duration("night", 0, "kill nodes that archive and back up for so long, as in -run TestNight -night 8h -timeout 0")
	nightSeed = flag.Uint64("night.seed", 0, "the seed of the first node of -night (default: random)")
)

// nightEnv has the folder and the seed of a node that runs until it kills itself.
const nightEnv = "PARLEY_TEST_NIGHT"

// nightPlaces are the folders of a night: the node, the place of its segments, and its backup.
type nightPlaces struct{ node, segments, backup string }

func nightIn(folder string) nightPlaces {
	return nightPlaces{filepath.Join(folder, "node"), filepath.Join(folder, "segments"), filepath.Join(folder, "backup")}
}

// runNight runs a node that is asked, archives, moves segments and is backed up. It is killed before or after the step
// of the journal that its seed gives, or after a time. It prints the answers that it acknowledged.
func runNight(spec string) {
	folder, text, _ := strings.Cut(spec, "\n")
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		panic(err)
	}
	random := rand.New(rand.NewPCG(seed, 0))
	var steps, last atomic.Int64
	last.Store(random.Int64N(20)) // at the start
	if random.IntN(4) > 0 {
		last.Store(random.Int64N(4000))
	}
	kill := func(why string) {
		fmt.Println("killed", why)
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Kill()
		}
		fmt.Println("failed", err)
		os.Exit(1)
	}
	places := nightIn(folder)
	archives := random.IntN(3) > 0 // kill only while it archives, moves or backs up
	var archiving atomic.Bool
	n, err := Open(context.Background(), Options{Folder: places.node, Failpoint: func(step string) error {
		if (!archives || archiving.Load()) && steps.Add(1) > last.Load() {
			kill(step)
		}
		return nil
	}})
	if archives {
		last.Store(random.Int64N(200))
	}
	if err != nil {
		fmt.Println("failed", err)
		os.Exit(1)
	}
	go func() {
		time.Sleep(time.Duration(random.IntN(8_000)) * time.Millisecond)
		kill("at any time")
	}()
	for i := range 3 {
		go func() {
			err := askAndAnswerForever(context.Background(), n, fmt.Sprint("guest", i))
			fmt.Println("failed", err)
			os.Exit(1)
		}()
	}
	chores := rand.New(rand.NewPCG(seed, 1))
	for {
		archiving.Store(false)
		if err := nightChores(n, chores, places, &archiving); err != nil {
			fmt.Println("failed", err)
			os.Exit(1)
		}
	}
}

// nightChores does one thing of what a node's operator does.
func nightChores(n *Node, random *rand.Rand, places nightPlaces, archiving *atomic.Bool) error {
	ctx := context.Background()
	text := strings.Repeat("a line of a long message\n", 5000)
	for i := range 20 + random.IntN(60) {
		if _, err := n.Host().Send(ctx, "guest0", fmt.Sprint(i, text)); err != nil && parley.CodeOf(err) != parley.UnknownRecipient { // a new node has nobody yet
			return err
		}
	}
	archiving.Store(true)
	to, err := store.Open(places.segments)
	if err != nil {
		return err
	}
	_, err = n.Archive().MoveBefore(ctx, n.now().Add(-time.Duration(random.IntN(5))*time.Second))
	if err == nil && random.IntN(2) == 0 {
		err = backUp(n, places.backup)
	}
	var some []uint64
	for _, s := range n.Archive().List().Segments {
		if random.IntN(2) == 0 {
			some = append(some, s.First)
		}
	}
	if err == nil && len(some) > 0 && random.IntN(2) == 0 {
		_, err = n.Archive().Move(ctx, to, some)
	}
	if err == nil && random.IntN(2) == 0 {
		_, err = n.Archive().Fetch(ctx, nil, nil)
	}
	if err == nil {
		_, err = n.Host().Mail().Last(ctx, view.MessageFilter{All: true}, 0, 200)
	}
	return err
}

// backUp adds a part to a backup. A segment that is elsewhere is no error.
func backUp(n *Node, folder string) error {
	_, err := persistence.AddPart(folder, n.ID(), func(after persistence.Mark, w io.Writer) error {
		return n.BackupAfter(context.Background(), after, w)
	})
	if parley.CodeOf(err) == parley.Archived {
		return nil
	}
	return err
}

// TestNight runs nodes that are asked, archive, move segments and are backed up, and that are killed, for as long as
// -night says. Each acknowledged answer is there afterwards once, the log is whole, and so is what the backup restores.
// It prints each seed, with which -night.seed begins.
func TestNight(t *testing.T) {
	if *night == 0 {
		t.Skip("it takes as long as -night says")
	}
	end := time.Now().Add(*night)
	seed := *nightSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	folder := t.TempDir()
	answered := map[string]string{}
	kills := map[string]int{}
	for round := 0; time.Now().Before(end); round++ {
		t.Logf("round %d: -night.seed %d, %d answers", round, seed, len(answered))
		if round%50 == 49 { // a night is not to fill the disk
			if err := os.RemoveAll(folder); err != nil {
				t.Fatal(err)
			}
			folder, answered = t.TempDir(), map[string]string{}
		}
		kills[nightRound(t, folder, seed, answered)]++
		checkNight(t, folder, round%10 == 2, answered)
		if t.Failed() {
			t.FailNow()
		}
		seed = rand.New(rand.NewPCG(seed, 2)).Uint64()
	}
	t.Logf("killed at %v", kills)
}

// nightRound runs a node until it is killed, and returns where.
func nightRound(t *testing.T, folder string, seed uint64, answered map[string]string) (where string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, os.Args[0])
	c.Env = append(os.Environ(), nightEnv+"="+folder+"\n"+strconv.FormatUint(seed, 10))
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		kind, rest, _ := strings.Cut(lines.Text(), " ")
		switch f := strings.Fields(rest); kind {
		case "answered":
			answered[f[1]] = f[2]
		case "killed":
			where = rest
		case "failed":
			t.Errorf("it %s", lines.Text())
		}
	}
	if err := c.Wait(); c.ProcessState == nil || c.ProcessState.ExitCode() != -1 || where == "" {
		t.Errorf("it was not killed: %v", err)
	}
	return where
}

// checkNight checks a node after it was killed.
func checkNight(t *testing.T, folder string, restores bool, answered map[string]string) {
	t.Helper()
	places := nightIn(folder)
	if _, err := os.Stat(places.node); err != nil {
		return // it was killed before it had made it
	}
	n := openNode(t, places.node)
	if _, err := n.Archive().Fetch(t.Context(), nil, nil); err != nil {
		t.Errorf("fetch: %v", err)
	}
	if _, err := n.Verify(t.Context()); err != nil {
		t.Errorf("verify: %v", err)
	}
	checkAnswers(t, n, answered)
	id := n.ID()
	var err error
	if restores {
		err = backUp(n, places.backup)
	}
	closeNode(t, n)
	if err != nil || !restores || t.Failed() {
		if err != nil {
			t.Errorf("back up: %v", err)
		}
		return
	}
	parts, err := persistence.Parts(places.backup, id)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := persistence.OpenParts(parts, id)
	if err != nil {
		t.Fatal(err)
	}
	again := filepath.Join(t.TempDir(), "again")
	err = os.Mkdir(again, 0o700)
	if err == nil {
		err = persistence.Restore(t.Context(), persistence.Options{Folder: again, Node: id}, whole)
	}
	var key []byte
	if err == nil {
		key, err = os.ReadFile(filepath.Join(places.node, "node.key"))
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(again, "node.key"), key, 0o600)
	}
	if err = errors.Join(err, whole.Close()); err != nil {
		t.Fatalf("restore: %v", err)
	}
	n = openNode(t, again)
	if _, err := n.Verify(t.Context()); err != nil {
		t.Errorf("verify what was restored: %v", err)
	}
	checkAnswers(t, n, answered)
	closeNode(t, n)
	if err := os.RemoveAll(again); err != nil {
		t.Error(err)
	}
}

// checkAnswers checks that a node has the forms that were answered, or that they are elsewhere.
func checkAnswers(t *testing.T, n *Node, answered map[string]string) {
	t.Helper()
	looked := 0
	for form, value := range answered {
		if looked++; looked > 300 {
			return
		}
		id, err := capabilities.ParseID(form)
		if err != nil {
			t.Fatal(err)
		}
		m, err := n.Host().Message(t.Context(), capabilities.FormID(id))
		if parley.CodeOf(err) == parley.Archived {
			continue
		}
		if err != nil || m.Outcome == nil || m.Outcome.Values.Text() != fmt.Sprintf(`{"a":%q}`, value) {
			t.Errorf("the form %s is %+v, %v", form, m, err)
		}
	}
	settled := map[capabilities.ID]bool{}
	l, err := n.Host().Log(t.Context(), 0, 1<<20)
	if err != nil {
		t.Error(err)
	}
	for _, e := range l.Entries {
		if a, ok := e.Payload.(*events.FormAnswered); ok {
			if settled[a.Form] {
				t.Errorf("the form %s is answered twice", a.Form)
			}
			settled[a.Form] = true
		}
	}
}
