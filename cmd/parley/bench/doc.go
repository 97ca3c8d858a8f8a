// Package bench measures how many forms a node has asked, answered and awaited per second, against its disk.
//
// The node is one in this process, or a running one behind a client. Every acknowledgement that counts is on disk. The
// same run measures the disk by itself, before and after. Figures of two machines compare by their ratio only. The package
// leaves no files behind; agents that it made on a running node stay there without names.
package bench
