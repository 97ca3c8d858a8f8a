package persistence

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley"
)

const childReader = "PARLEY_TEST_READER_FOLDER"

// readAsChild opens a journal and reads all of it. It prints the error's code and the peak of its memory.
func readAsChild(folder string) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	j, err := Open(ctx, Options{Folder: folder, Node: testNode(1)})
	if err == nil {
		_, err = j.Verify(ctx)
	}
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if peak, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			fmt.Println(parley.CodeOf(err), strings.Fields(peak)[0])
		}
	}
}

// recordByte is the offset of a byte in a block, and the name of its field.
type recordByte struct {
	name string
	at   int
}

// recordBytes returns bytes of the fields with a record's lengths and with its number.
func recordBytes(block []byte, record int) (all []recordByte) {
	at := 0
	for range record {
		at += int(binary.LittleEndian.Uint32(block[at:]) & recordLength)
	}
	subject := int(binary.LittleEndian.Uint16(block[at+20:]))
	for i := range 8 {
		all = append(all, recordByte{fmt.Sprintf("byte %d of the number", i), at + 4 + i})
	}
	return append(all, recordByte{"the length", at + 1}, recordByte{"the length", at + 3}, recordByte{"the subject's length", at + 21},
		recordByte{"the headers' length", at + recordHead + subject + 1}, recordByte{"the headers' length", at + recordHead + subject + 3})
}

// TestChangedLengthsDoNotExhaustMemory changes the lengths and numbers of a journal's records, one after another, and opens the
// journal in a process of its own.
func TestChangedLengthsDoNotExhaustMemory(t *testing.T) {
	const most = 128 << 10 // KiB
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	base := newClosedJournal(t, func(*Options, string) {})
	block, err := os.ReadFile(filepath.Join(blockFolder(&base), "1.blk"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range recordBytes(block, 50) {
		for _, kept := range []bool{true, false} {
			o := copyJournal(t, base)
			rewrite(t, filepath.Join(blockFolder(&o), "1.blk"), func(b []byte) []byte { b[f.at] ^= 0x55; return b })
			if !kept {
				removeServerIndex(t, &o)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			cmd := exec.CommandContext(ctx, self)
			cmd.Env = append(os.Environ(), childReader+"="+o.Folder)
			out, err := cmd.Output()
			cancel()
			var code parley.Code
			var peak int
			if _, err := fmt.Sscan(string(out), &code, &peak); err != nil {
				t.Errorf("%s: %q, %v", f.name, out, err)
			}
			if err != nil || code != parley.CorruptLog || peak > most {
				t.Errorf("%s, index kept %v: %q after %d KiB, %v", f.name, kept, code, peak, err)
			}
		}
	}
}
