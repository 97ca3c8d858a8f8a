package gateway

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"parley/actors"
	"parley/actors/view"
	"parley/events"
	"parley/mailbox"
)

// gatedProgram is an agent that runs a shell script for each message. The script waits where it reads a line of "gate1", "gate2" or "gate3".
type gatedProgram struct {
	*actors.Agent
	h      *pageServer
	folder string
}

// program makes an agent with a program.
func (h *pageServer) program(name, script string) gatedProgram {
	h.t.Helper()
	folder := h.t.TempDir()
	for _, gate := range []string{"gate1", "gate2", "gate3"} {
		if err := syscall.Mkfifo(filepath.Join(folder, gate), 0o600); err != nil {
			h.t.Fatal(err)
		}
	}
	a, err := h.node.Host().Make(h.t.Context(), actors.NewAgent{
		Kind: events.Guest, Name: name, Wait: true,
		Program: &events.ProgramSet{Runtime: "exec", Command: []string{"sh", "-c", script}, Folder: folder},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return gatedProgram{a, h, folder}
}

// open lets the script go on at a gate.
func (p gatedProgram) open(gate string) {
	p.h.t.Helper()
	if err := os.WriteFile(filepath.Join(p.folder, gate), []byte("go\n"), 0o600); err != nil {
		p.h.t.Fatal(err)
	}
}

// hostileOutput is output that no page may take for more than text.
const hostileOutput = `printf '\033[31mred\033[0m <script>window.hacked = 1</script><img src=x onerror=hacked=1>\n'
printf '\033]8;;https://evil.example\033\\click\033]8;;\007 \342\200\256gnp.exe\n'
printf '10%%\r55%%\r\033[Kall of it\n'`

func TestAgentOutputAppearsWhileProgramRuns(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	w := h.program("w", hostileOutput+`
read x < gate1; echo second
read x < gate2; head -c 2000000 /dev/zero | tr '\0' y | fold -w 99; echo; echo the last line
read x < gate3`)
	b := h.openBrowser()
	b.open("/agents/w")
	b.live()
	b.run(`document.getElementById('line').focus()`)
	b.press("begin")
	b.press(kb.Enter, chromedp.ModifierShift)
	b.press("now")
	b.open("/agents/w") // the draft is kept
	b.until(`document.getElementById('line').value === 'begin\nnow'`)
	b.run(`document.getElementById('line').focus()`)
	b.press(kb.Enter)
	b.reads("#activity .mail.received", "begin\nnow")
	b.until(`document.getElementById('line').value === ''`)
	b.reads("#activity .output .f1", "red")
	b.reads("#activity .output", "all of it")
	b.reads(".standing", "Running")
	if got := b.text(`document.querySelector('#activity .output').textContent`); got != "red <script>window.hacked = 1</script><img src=x onerror=hacked=1>\nclick \\u{202e}gnp.exe\nall of it" {
		t.Errorf("it shows %q", got)
	}
	b.until(`!window.hacked && !document.querySelector('#activity .output :is(a, img, script)')`)

	w.open("gate1")
	b.reads("#activity .output", "second")
	b.run(`window.top0 = document.querySelector('#activity .output')`)
	w.open("gate2")
	b.until(`document.querySelector('#activity').textContent.trimEnd().endsWith('the last line')`)
	b.until(`document.querySelector('#activity').textContent.length < 100_000`)
	b.until(`document.scrollingElement.scrollHeight - document.scrollingElement.scrollTop - document.scrollingElement.clientHeight < 60 || document.getElementById('line').getBoundingClientRect().bottom <= innerHeight`)
	b.reads(".more", "Show earlier")
	b.click(".agent-head .stop")
	b.reads("#activity .ended", "Stopped by you")
	b.reads(".standing", "Stopped") // until it is started: what waits for it stays queued
	b.click(".agent-head [name=start]")
	b.reads(".standing", "Idle")
	b.reads(".agent-head [name=stop]", "Stop")
	b.checkNoFaults()
	if f, err := w.WaitForFinish(t.Context(), 0); err != nil || f.Status != view.FinishIdle {
		t.Errorf("%+v, %v", f, err)
	}
	before := b.text(`new URL(document.querySelector('.more a').href).searchParams.get('before')`)
	_, _, earlier := h.get("/agents/w?before="+before, "text/html")
	if strings.Contains(earlier, "the last line") || !strings.Contains(earlier, "yyyy") || len(earlier) > 200_000 {
		t.Errorf("the part before shows %.2000q", earlier)
	}
}

func TestAgentIsWrittenToAndStoppedWithoutScript(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	w := h.program("w", `read prompt; echo "$prompt" | tr a-z A-Z; read x < gate1`)
	for range 2 { // the same key is the same message
		if status, _, body := h.postForm("/agents/w", url.Values{"text": {"hello"}, "key": {"k1"}}); status != http.StatusSeeOther {
			t.Fatalf("%d %s", status, body)
		}
	}
	if _, err := w.Output().Beyond(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	_, _, body := h.get("/agents/w", "text/html")
	if !strings.Contains(body, "HELLO") || !strings.Contains(body, `name="stop"`) || strings.Count(body, `data-kind="message"`) != 1 {
		t.Errorf("it shows %s", body)
	}
	if status, _, body := h.postForm("/agents/w", url.Values{"stop": {"yes"}}); status != http.StatusSeeOther {
		t.Errorf("%d %s", status, body)
	}
	if _, _, body := h.get("/agents/w", "text/html"); !strings.Contains(body, "Stopped by you") || strings.Contains(body, `name="stop"`) {
		t.Errorf("stopped, it shows %s", body)
	}
	if status, _, body := h.postForm("/agents/w", url.Values{"text": {""}}); status != http.StatusBadRequest || !strings.Contains(body, `role="alert"`) {
		t.Errorf("without a text: %d %s", status, body)
	}
}

func TestAgentActivityIsAccessible(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile(axePath(t))
	if err != nil {
		t.Fatal(err)
	}
	h := openPageServer(t)
	var script strings.Builder
	for i := range 8 {
		fmt.Fprintf(&script, `printf '\033[3%dmtext\033[4%d;9%dmbright\033[0m \033[2;4%dmground\033[0m\n'; `, i, (i+3)%8, i, i)
	}
	w := h.program("w", script.String()+`echo wrong >&2; exit 3`)
	if _, err := h.node.Host().Prompt(t.Context(), w.Agent, "paint", "k"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.WaitForFinish(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	b := h.openBrowser()
	for _, width := range []int64{390, 1280} {
		if _, err := chromedp.Call(b.ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: 900, DeviceScaleFactor: 1}); err != nil {
			t.Fatal(err)
		}
		for _, scheme := range []string{"light", "dark"} {
			b.prefer(scheme)
			b.open("/agents/w")
			b.reads("#activity .ended", "Failed")
			if found := b.violations(string(source)); found != "" {
				t.Errorf("at %d in %s:\n%s", width, scheme, found)
			}
			b.until(`document.documentElement.scrollWidth <= innerWidth`)
		}
	}
}

// TestAbsenceIsSetOnThePage sets an absence on the reader's own page and ends it, and reads in the left pane that agents are
// away. The page looks again when the time of an absence has come.
func TestAbsenceIsSetOnThePage(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	joe := h.guest("joe")
	b := h.openBrowser()
	b.open("/agents/SELF")
	b.live()
	b.click("#agent .absence summary")
	b.choose("#agent .absence select", "72h")
	b.fill("#agent .absence input", "nobody")
	b.click("#agent button[name=away]")
	b.reads("#agent > .failure", `unknown recipient "nobody"`)
	b.set("#agent .absence input", "joe")
	b.click("#agent button[name=away]")
	b.reads("#agent .absence", "You are away until ")
	b.reads("#agent .absence", "forms go to joe")
	b.reads("#left-agents .own-absence", "You are away until ")
	now, err := h.node.Host().StandIns(t.Context())
	if err != nil || now.Away == nil || now.Away.To == nil || now.Away.To.ID != joe.ID() || now.Away.Until.Std().Sub(now.Away.From.Std()).Round(time.Hour) != 72*time.Hour {
		t.Fatalf("%+v, %v", now.Away, err)
	}
	if _, err := joe.SetAway(t.Context(), mailbox.SetAway{Until: now.Away.Until}); err != nil {
		t.Fatal(err)
	}
	b.reads(fmt.Sprintf("#left-agents a[data-part=%q] .away", joe.ID().String()), "away")
	shows := fmt.Sprintf(`((times) => times.length === 3 && times.every((e) => Date.parse(e.dataset.until) === %d))([...document.querySelectorAll('[data-until]')])`, now.Away.Until)
	b.until(shows)
	b.run(`for (const e of document.querySelectorAll('[data-until]')) e.dataset.until = new Date(0).toISOString(); // as if the absences had ended
		document.dispatchEvent(new Event('visibilitychange'))`)
	b.until(shows) // it has looked again, and the node knows better
	b.click("#agent button[name=back]")
	b.reads("#agent .absence summary", "Away…")
	b.until(`!document.querySelector('#left-agents .own-absence')`)
	b.checkNoFaults()
	if now, err := h.node.Host().StandIns(t.Context()); err != nil || now.Away != nil {
		t.Errorf("%+v, %v", now.Away, err)
	}
}
