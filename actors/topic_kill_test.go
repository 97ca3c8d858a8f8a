package actors

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/internal/eventually"
	"parley/mailbox"
)

// postingNodeEnv is the environment variable with the folder of a node on which posts are made to a topic until it is killed.
const postingNodeEnv = "PARLEY_TEST_POSTING_NODE"

// quickClock returns a clock by which a minute lasts 30 milliseconds, in each process.
func quickClock() time.Time {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return began.Add(2000 * time.Since(began))
}

// runPostingNode posts to a topic to which another guest subscribes, and prints the text of each post that was accepted. It never returns.
func runPostingNode(folder string) {
	ctx := context.Background()
	n, err := Open(ctx, Options{Folder: folder, Name: "posting", Clock: quickClock})
	if err == nil {
		err = postForever(ctx, n)
	}
	fmt.Println("failed", err)
	os.Exit(1)
}

func postForever(ctx context.Context, n *Node) error {
	bob, err := n.ActAs(ctx, "bob")
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		text := fmt.Sprintf("post %d of %d", i, os.Getpid())
		if _, err := TopicsOf(bob).Post(ctx, "news", parley.Post{Text: text}); err != nil {
			return err
		}
		fmt.Println(text)
	}
}

// TestDigestsHaveEachPostOnceOverKills has a node be killed with SIGKILL while it posts and sends digests. Each post that was accepted
// is in the topic, and the digests that came have each of them once: their number is that of the posts that they are about.
func TestDigestsHaveEachPostOnceOverKills(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	n := openWith(t, Options{Folder: folder, Name: "posting", Clock: quickClock})
	fae, _ := guest(t, n, "fae"), guest(t, n, "bob")
	if _, err := TopicsOf(n.Host()).Make(t.Context(), "news", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := TopicsOf(fae).Subscribe(t.Context(), "news", mailbox.Subscribe{Every: time.Minute}); err != nil {
		t.Fatal(err)
	}
	closeNode(t, n)
	accepted := 0
	for range 5 {
		accepted += runAndKillPostingNode(t, folder, 60)
	}
	n = openWith(t, Options{Folder: folder, Name: "posting", Clock: quickClock})
	fae, err := n.ActAs(t.Context(), "fae")
	if err != nil {
		t.Fatal(err)
	}
	one, err := TopicsOf(fae).find(t.Context(), "news")
	if err != nil {
		t.Fatal(err)
	}
	var topic mailbox.Topic
	eventually.Holds(t, "what was posted before the last kill has come", func() bool {
		topic, err = query(t.Context(), one.Agent, func(s *mailbox.State, _ capabilities.Time) (mailbox.Topic, error) { return *s.Topic, nil })
		return err != nil || int(topic.Posted) >= accepted
	})
	if err != nil || int(topic.Posted) < accepted || int(topic.Posted) > accepted+5 {
		t.Fatalf("%d posts were accepted, and the topic has had %d: %v", accepted, topic.Posted, err)
	}
	seen := topic.Of(fae.id).Seen
	var in view.Inbox
	told, digests := 0, 0
	eventually.Holds(t, "the digests have come", func() bool {
		in, err = fae.Mail().Page(t.Context(), view.MessageFilter{}, 0, 1000)
		told, digests = 0, 0
		for _, m := range in.Messages {
			var count int
			if _, failed := fmt.Sscanf(m.Subject, "news: %d post", &count); failed != nil || m.Priority != events.Low {
				t.Fatalf("%q, %q", m.Subject, m.Priority)
			}
			told, digests = told+count, digests+1
		}
		return err != nil || told >= int(seen)
	})
	if err != nil || told != int(seen) || digests < 3 {
		t.Errorf("%d digests have %d posts, and the topic has told of %d: %v", digests, told, seen, err)
	}
}

// runAndKillPostingNode runs a node until it has accepted some posts, and kills it. It returns how many it has accepted.
func runAndKillPostingNode(t *testing.T, folder string, most int) (accepted int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), postingNodeEnv+"="+folder)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "failed") {
			t.Fatal(lines.Text())
		}
		if accepted++; accepted == most {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait() // it was killed
	return accepted
}
