package actors

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/persistence"
)

// attachingNodeEnv is the environment variable with the folder of a node on which files are attached until it is killed.
const attachingNodeEnv = "PARLEY_TEST_ATTACHING_NODE"

// runAttachingNode sends messages with files, and prints the ID of each that was accepted. It never returns.
func runAttachingNode(folder string) {
	ctx := context.Background()
	n, err := Open(ctx, Options{Folder: folder, Name: "attaching"})
	for err == nil {
		var sent view.Sent
		if sent, err = attachOnce(ctx, n.Host()); err == nil {
			fmt.Println(sent.Message)
		}
	}
	fmt.Println("failed", err)
	os.Exit(1)
}

// attachOnce stores a file of one to four pieces, in parts, and sends it.
func attachOnce(ctx context.Context, a *Agent) (view.Sent, error) {
	content := someContent(1+rand.IntN(4*persistence.MaxFilePiece), byte(rand.IntN(256)))
	p := FilePart{Size: int64(len(content))}
	for {
		p.Data = content[p.Offset:min(int(p.Offset)+persistence.MaxFilePiece, len(content))]
		at, err := a.Mail().Files().Store(ctx, p)
		if err != nil {
			return view.Sent{}, err
		}
		p.Upload, p.Offset = at.Upload, at.Offset
		if at.Digest != "" {
			f := events.File{Digest: at.Digest, Name: "a.bin", Size: p.Size, Type: "application/octet-stream"}
			return Post(ctx, a, mailbox.PostMessage{To: "fae", Post: parley.Post{Header: parley.Header{Files: []events.File{f}}, Text: "see"}})
		}
	}
}

// TestAttachmentsSurviveKills has a node be killed with SIGKILL while it stores files and sends them. Each message that its recipient has,
// and each that was accepted, has its file whole. What was half stored is gone.
func TestAttachmentsSurviveKills(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	n := openWith(t, Options{Folder: folder, Name: "attaching"})
	guest(t, n, "fae")
	closeNode(t, n)
	accepted := map[string]bool{}
	for range 4 {
		killAttachingNode(t, folder, 3+rand.IntN(8), accepted)
	}
	n = openWith(t, Options{Folder: folder, Name: "attaching"})
	fae, err := n.ActAs(t.Context(), "fae")
	if err != nil {
		t.Fatal(err)
	}
	for id := range accepted {
		parsed, err := capabilities.ParseID(id)
		if err != nil {
			t.Fatal(err)
		}
		awaitMessage(t, fae, parsed)
	}
	all := 0
	for m, err := range fae.Mail().All(t.Context(), view.MessageFilter{}) {
		if err != nil || len(m.Files) != 1 {
			t.Fatalf("%d files, %v", len(m.Files), err)
		}
		all++
		content, err := fetchAll(t.Context(), fae, capabilities.FormID(m.MessageID), m.Files[0].Digest)
		if sum := sha256.Sum256(content); err != nil || int64(len(content)) != m.Files[0].Size || hex.EncodeToString(sum[:]) != m.Files[0].Digest {
			t.Errorf("%d bytes of %d, %v", len(content), m.Files[0].Size, err)
		}
	}
	if all < len(accepted) {
		t.Errorf("%d of %d messages", all, len(accepted))
	}
	if left, err := os.ReadDir(filepath.Join(folder, uploadsFolder)); err != nil && !os.IsNotExist(err) || len(left) > 0 {
		t.Errorf("%d uploads are left, %v", len(left), err)
	}
}

// killAttachingNode runs a node until it has accepted some messages, and kills it, in the middle of whatever it does.
func killAttachingNode(t *testing.T, folder string, most int, accepted map[string]bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), attachingNodeEnv+"="+folder)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for had := 0; lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "failed") {
			t.Fatal(lines.Text())
		}
		accepted[lines.Text()] = true
		if had++; had == most {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait()
}

// TestLargestFileCrossesNodes sends a file of the largest size to another node, which opens it twice. It comes whole, in parts: neither node
// keeps it in memory. A byte more is refused.
func TestLargestFileCrossesNodes(t *testing.T) {
	a, b := openClusterNode(t, "a", false), openClusterNode(t, "b", true)
	connectHosts(t, b, a)
	content := someContent(persistence.MaxFile, 5)
	_, err := a.Host().Mail().Files().Store(t.Context(), FilePart{Size: persistence.MaxFile + 1, Data: content[:1]})
	refuses(t, err, parley.TooLarge)
	f := storeText(t, a.Host(), "a.bin", content, persistence.MaxFilePiece)
	ref := attach(t, a.Host(), "b", f)
	awaitMessage(t, b.Host(), ref.ID())
	wantFile(t, b.Host(), ref, f.Digest, content)
	var mem runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&mem)
	before := mem.HeapAlloc
	for offset := int64(0); offset < persistence.MaxFile; offset += persistence.MaxFilePiece {
		if p, err := b.Host().Mail().Files().Fetch(t.Context(), ref, f.Digest, offset); err != nil || len(p.Data) == 0 {
			t.Fatalf("%d bytes at %d, %v", len(p.Data), offset, err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&mem)
	if mem.HeapAlloc > before+persistence.MaxFile/4 {
		t.Errorf("after it was read once more, %d KiB more are in memory", (mem.HeapAlloc-before)>>10)
	}
}
