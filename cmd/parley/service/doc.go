// Package service has the node start when its person signs in: by a unit of systemd on Linux, and an agent of launchd on macOS.
//
// It writes one file, of which it says all before, and tells the system's own program to read it. Where there is none of the two
// it changes nothing and says so. A file that somebody else wrote, or changed since, is left alone. The package neither prints
// nor asks.
package service
