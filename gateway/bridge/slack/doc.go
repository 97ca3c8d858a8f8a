// Package slack tells a Slack channel of forms, over Socket Mode: the node needs no public address. An approval has
// buttons, and a form whose fields fit has a dialog. A press is answered by a right of one use. Its secret is sealed in
// the button. So a copy that Slack keeps is useless without the key of the bridge.
package slack
