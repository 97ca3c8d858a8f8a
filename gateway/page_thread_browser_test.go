package gateway

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
	"parley/internal/eventually"
	"parley/mailbox"
)

// post sends a message or a reply of an agent.
func (h *pageServer) post(by *actors.Agent, what mailbox.PostMessage) view.Sent {
	h.t.Helper()
	sent, err := actors.Post(h.t.Context(), by, what)
	if err != nil {
		h.t.Fatal(err)
	}
	return sent
}

// last returns the newest message of an agent's mailbox.
func (h *pageServer) last(of *actors.Agent) view.Message {
	h.t.Helper()
	in, err := of.Mail().Last(h.t.Context(), view.MessageFilter{All: true}, 0, 1)
	if err != nil || len(in.Messages) != 1 {
		h.t.Fatalf("%+v %v", in, err)
	}
	return in.Messages[0]
}

// TestThreadIsOneConversation reads a thread as one row and one item, replies with a file, and reads what comes while a reply is
// begun.
func TestThreadIsOneConversation(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	host := h.node.Host()
	first := h.post(h.fae, mailbox.PostMessage{To: "HOST", Post: parley.Post{Header: parley.Header{Subject: "Order of the week"}, Text: "May the migration go **first**?"}})
	h.post(h.fae, mailbox.PostMessage{To: "HOST", Post: parley.Post{Text: "something else"}})
	h.post(host, mailbox.PostMessage{Reply: capabilities.FormID(first.Message), Post: parley.Post{Text: "It may."}})
	at := capabilities.FormNumber(h.last(h.fae).Number)
	h.post(h.fae, mailbox.PostMessage{Reply: at, Post: parley.Post{Text: "Then Monday <b>it</b> is."}})
	b := h.openBrowser()
	b.open("/mail")
	b.live()
	b.until(`document.querySelectorAll(".entry").length === 2`)
	b.reads(".entry .from", "Order of the week")
	b.reads(".entry .what", "fae, you: Then Monday")
	b.reads("#alone .heading", "Order of the week")
	b.until(`[...document.querySelectorAll("#alone .post .text")].map((e) => e.innerText.trim()).join("|") === "May the migration go first?|It may.|Then Monday <b>it</b> is."`)
	b.until(`document.querySelector("#alone .post strong")?.textContent === "first"`)
	b.reads("#alone .post .receipt", "Handled (replied)")
	b.reads("#alone .reply .to", "To fae")
	b.click(".entry a")
	b.until(`document.querySelectorAll(".entry[data-new]").length === 1`) // all of the thread are read, and the other message is not
	b.run(`(() => {
		const files = new DataTransfer();
		files.items.add(new File(["it works"], "restore.log", { type: "text/plain" }));
		const input = document.querySelector("#alone .attach input");
		input.files = files.files;
		input.dispatchEvent(new Event("change", { bubbles: true }));
	})()`)
	b.reads("#alone .clips", "restore.log")
	b.fill("#alone .reply textarea", "here is the log")
	h.post(h.fae, mailbox.PostMessage{Reply: at, Post: parley.Post{Text: "One more word."}})
	b.reads("#alone .posts", "One more word.")
	b.until(`document.querySelector("#alone .reply textarea").value === "here is the log"`) // what was begun stays
	b.reads(".entry .what", "One more word.")
	b.until(`document.querySelectorAll(".entry").length === 2`)
	b.run(`document.querySelector("#alone .reply textarea").focus()`)
	b.press("\r", chromedp.ModifierCtrl)
	b.reads("#alone .posts", "here is the log")
	b.reads("#alone .attachments", "restore.log")
	b.until(`document.querySelector("#alone .reply textarea").value === "" && !document.querySelector("#alone .clips").children.length`)
	eventually.Holds(t, "the reply arrives with its file", func() bool {
		m := h.last(h.fae)
		return m.Text == "here is the log" && len(m.Files) == 1 && m.Files[0].Name == "restore.log" && m.Thread == first.Message
	})
	b.checkNoFaults()
}

// TestThreadsAreNotMixed reads two threads with the same agent, and one whose beginning is not in the mail.
func TestThreadsAreNotMixed(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	var first []view.Sent
	for i := range 2 {
		first = append(first, h.post(h.fae, mailbox.PostMessage{To: "HOST", Post: parley.Post{Text: fmt.Sprintf("thread %d", i)}}))
	}
	for i, f := range first {
		h.post(h.node.Host(), mailbox.PostMessage{Reply: capabilities.FormID(f.Message), Post: parley.Post{Text: fmt.Sprintf("reply %d", i)}})
	}
	for i, f := range first {
		_, _, body := h.get("/forms/"+f.Message.String()+"?pane=item", "text/html")
		if strings.Count(body, `class="post"`) != 2 || !strings.Contains(body, fmt.Sprintf("reply %d", i)) || strings.Contains(body, fmt.Sprintf("reply %d", 1-i)) {
			t.Errorf("thread %d: %s", i, body)
		}
	}
}
