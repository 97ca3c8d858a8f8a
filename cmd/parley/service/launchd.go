package service

import (
	"context"
	"encoding/xml"
	"fmt"
	"path/filepath"
	"strings"

	"parley"
)

// launchd starts services of a person on macOS.
type launchd struct{ Options }

func (l launchd) name() string { return "launchd" }

func (l launchd) path() string {
	return filepath.Join(l.Home, "Library", "LaunchAgents", l.unit()+".plist")
}

// log returns the path of the log.
func (l launchd) log() string { return filepath.Join(l.Home, "Library", "Logs", l.unit()+".log") }

func (l launchd) file() []byte {
	words := []string{l.Program, "serve"}
	if l.State != l.Default {
		words = append(words, "--state", l.State)
	}
	var args strings.Builder
	for _, w := range words {
		args.WriteString("\t\t<string>" + escaped(w) + "</string>\n")
	}
	head := `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<!-- The node of one person. parley service remove takes it away. -->
`
	return marked(head, "<!-- ", " -->", `<plist version="1.0">
<dict>
	<key>Label</key>
	<string>`+escaped(l.unit())+`</string>
	<key>ProgramArguments</key>
	<array>
`+args.String()+`	</array>
	<key>RunAtLoad</key>
	<true/>
	<key>KeepAlive</key>
	<true/>
	<key>ThrottleInterval</key>
	<integer>2</integer>
	<key>ExitTimeOut</key>
	<integer>30</integer>
	<key>StandardErrorPath</key>
	<string>`+escaped(l.log())+`</string>
</dict>
</plist>
`)
}

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a builder takes all
	return b.String()
}

func (l launchd) domain() string { return fmt.Sprintf("gui/%d", l.User) }

// check refuses where nobody is signed in to a desktop, as over ssh alone.
func (l launchd) check(ctx context.Context) error {
	if said, err := l.Run(ctx, "launchctl", "print", l.domain()); err != nil {
		return parley.Refuse(parley.InvalidArgument, "launchd does not run for you here, so nothing was changed: %s", firstLine(said, err)).
			WithHint("sign in to the desktop, or run parley start")
	}
	return nil
}

func (l launchd) install(ctx context.Context) error {
	_, _ = l.Run(ctx, "launchctl", "bootout", l.domain()+"/"+l.unit()) // it may not be there
	if said, err := l.Run(ctx, "launchctl", "bootstrap", l.domain(), l.path()); err != nil {
		return parley.Refuse(parley.Internal, "launchctl bootstrap: %s", firstLine(said, err)).WithHint("%s", l.logs())
	}
	return nil
}

func (l launchd) remove(ctx context.Context) error {
	_, _ = l.Run(ctx, "launchctl", "bootout", l.domain()+"/"+l.unit()) // it may not run
	return nil
}

func (l launchd) status(ctx context.Context) (running, starts bool) {
	said, err := l.Run(ctx, "launchctl", "print", l.domain()+"/"+l.unit())
	return err == nil && strings.Contains(said, "state = running"), err == nil
}

func (l launchd) logs() string { return "tail -f " + l.log() }
