// Package ntfy tells phones of forms by a topic of an ntfy server. An approval has buttons that answer it. Who reads the topic
// may press them, so a topic is a secret. What is told of one form replaces what was told before, by its sequence ID.
package ntfy
