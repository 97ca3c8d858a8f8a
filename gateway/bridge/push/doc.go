// Package push tells browsers of forms by Web Push: a message that is encrypted for the browser (RFC 8291), and signed with
// the node's key (VAPID, RFC 8292). The browser shows a notification, also while no page is open. An approval has buttons
// that answer it. What is told of one form replaces what was told before, by its tag and topic.
package push
